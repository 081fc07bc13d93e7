/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON of a run, to standard output or to a file. */
#include "run_loop_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_line.h"
#include "run_loop_notify.h"
#include "signals.h"

int run_json_open(struct run *run)
{
	const char *path = run->options->json_file;
	const int rc = path ? json_file_open(&run->json, path) : 0;

	if (rc)
		report_error(&run->report, REPORT_EXIT_USAGE,
			     "--json-file: %s cannot be opened: %s; %s", path, strerror(-rc),
			     rc == -ELOOP   ? "it is a symbolic link, name what it leads to"
			     : rc == -ENXIO ? "nobody reads this pipe, start its reader before"
					    : "name a file that may be written");
	return rc;
}

void run_json_reopen(struct run *run)
{
	char line[512];
	int rc;

	if (!run->json.path || !signals_reopen())
		return;
	run_notify_reloading(run);
	rc = json_file_reopen(&run->json);
	run_notify_ready(run);
	if (!rc)
		return;
	snprintf(line, sizeof(line),
		 "--json-file: %s cannot be opened anew: %s; lines go on into the file that was "
		 "there; mend it, and send SIGHUP again",
		 run->json.path, strerror(-rc));
	run->log(run, GDRCAP_LOG_WARNING, line);
}

/* Told once: a disk that is full stays so for a while. */
static int to_file(struct run *run, bool compact)
{
	const bool told = run->json.missed > 0;
	size_t bytes = 0;
	char *text, line[512];
	int rc;

	run_json_reopen(run);
	text = json_line_text(report_to_json(&run->report, compact), RESULTS_JSON_FLAGS, &bytes);
	if (!text)
		return -ENOMEM;
	rc = json_file_write(&run->json, text, bytes);
	free(text);
	if (!rc || told)
		return rc;
	snprintf(
		line, sizeof(line),
		"--json-file: a line could not be written to %s: %s; the run goes on, and tells at "
		"its end how many are missing",
		run->json.path, strerror(-rc));
	run->log(run, GDRCAP_LOG_WARNING, line);
	return rc;
}

int run_json_line(struct run *run)
{
	const bool compact = run->options->json_compact;
	int rc;

	if (run->json.path)
		rc = to_file(run, compact);
	else
		rc = report_print_json(stdout, &run->report, compact);
	if (!rc)
		run->report.messages_told =
			(uint32_t)json_array_size(json_object_get(run->report.object, "messages"));
	return run->json.path ? 0 : rc;
}

int run_json_to_file(const struct run *run)
{
	const struct report *report = &run->report;

	return run->json.path &&
	       (report->status != REPORT_EXIT_USAGE || report_has_session(report));
}

int run_json_end(struct run *run)
{
	struct report *report = &run->report;
	const char *path = run->json.path;
	int rc, closed;

	if (!run_json_to_file(run)) {
		closed = json_file_close(&run->json);
		rc = report_print_json(stdout, report, 0);
		return rc ? rc : closed;
	}
	if (run->json.missed)
		report_error(report, REPORT_EXIT_NOT_RUN,
			     "--json-file: lines that could not be written to %s: %" PRIu64
			     "; the first: %s",
			     path, run->json.missed, strerror(-run->json.error));
	rc = to_file(run, 0);
	closed = json_file_close(&run->json);
	return rc ? rc : closed;
}
