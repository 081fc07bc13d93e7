/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a run, on the main thread: frames are other threads', which never wait for it. */
#include "run_loop_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metrics.h"
#include "metrics_file.h"
#include "metrics_http.h"
#include "metrics_socket.h"
#include "run_loop_collect.h"
#include "run_timer.h"
#include "signals.h"
#include "telemetry.h"

#define EVERY_NS UINT64_C(1000000000)

struct run_metrics {
	struct metrics counts;
	struct metrics_socket socket;
	struct metrics_http *http;   /* NULL: nobody listens, yet */
	struct telemetry *telemetry; /* NULL: nobody wants it */
	json_t *streams;	     /* for it; NULL: none yet */
	struct run_timer write;	     /* at once, and then again */
	int failed;		     /* 1: the file could not be written, which has been told */
};

/* To whoever wants them. 0 or a negative errno. */
static int hand_out(struct run *run, int running)
{
	struct run_metrics *metrics = run->metrics;
	const char *path = run->options->metrics_textfile;
	size_t bytes = 0;
	const uint64_t now = clock_ns();
	char *text = metrics_text(&metrics->counts, &run->report, running, now, &bytes);
	int rc = 0;

	if (!text)
		return -ENOMEM;
	if (path)
		rc = metrics_file_write(path, text, bytes);
	if (metrics->telemetry)
		telemetry_set(metrics->telemetry, &run->report, metrics->streams, text);
	if (metrics->http)
		metrics_http_set(metrics->http, text, bytes, now);
	else
		free(text);
	return rc;
}

static const char *why_not(int rc)
{
	return rc == -EEXIST ? "what is there is not a regular file" : strerror(-rc);
}

static void close_all(struct run *run)
{
	telemetry_close(run->metrics->telemetry);
	if (run->metrics->http) {
		metrics_http_stop(run->metrics->http);
		metrics_socket_remove(&run->metrics->socket);
	} else {
		metrics_socket_close(&run->metrics->socket);
	}
	json_decref(run->metrics->streams);
	free(run->metrics);
	run->metrics = NULL;
}

static int open_socket(struct run *run)
{
	const char *where = run->options->metrics;
	char why[256] = "";
	int rc = -EINVAL;

	if (run->options->quiet && metrics_socket_any_port(where))
		snprintf(
			why, sizeof(why),
			"port 0 is any that is free, and with --quiet nobody is told which; give a "
			"port, or leave --quiet out");
	else if (!metrics_http_possible())
		snprintf(
			why, sizeof(why),
			"this program was built without libmicrohttpd; build it with libmicrohttpd-dev, or use "
			"--metrics-textfile");
	else
		rc = metrics_socket_open(&run->metrics->socket, where, why, sizeof(why));
	if (rc)
		report_error(&run->report, REPORT_EXIT_USAGE, "--metrics: '%s': %s", where, why);
	return rc;
}

static int open_telemetry(struct run *run)
{
	char why[768] = "";

	run->metrics->telemetry = telemetry_open(why, sizeof(why));
	if (run->metrics->telemetry)
		return 0;
	report_error(&run->report, REPORT_EXIT_USAGE, "--telemetry: %s", why);
	return -EIO;
}

int run_metrics_open(struct run *run)
{
	const char *path = run->options->metrics_textfile;
	int rc = 0;

	if (!run->options->metrics && !run->options->telemetry && !path)
		return 0;
	run->metrics = calloc(1, sizeof(*run->metrics));
	if (!run->metrics) {
		report_error(&run->report, REPORT_EXIT_NOT_RUN, "metrics: out of memory");
		return -ENOMEM;
	}
	run->metrics->socket.fd = -1;
	run->metrics->write.every_ns = EVERY_NS;
	run->metrics->counts.start_time = (uint64_t)time(NULL);
	if (run->options->metrics)
		rc = open_socket(run);
	if (!rc && run->options->telemetry)
		rc = open_telemetry(run);
	if (!rc && path) {
		rc = hand_out(run, 0);
		if (rc)
			report_error(
				&run->report, REPORT_EXIT_USAGE,
				"--metrics-textfile: %s cannot be written: %s; name a file in a "
				"folder that this user may write to",
				path, why_not(rc));
	}
	if (rc)
		close_all(run);
	return rc;
}

static void tell_where(struct run *run, const char *what, const char *where)
{
	char line[192];

	snprintf(line, sizeof(line), "%s: %s", what, where);
	run->log(run, GDRCAP_LOG_PROGRESS, line);
}

int run_metrics_start(struct run *run)
{
	struct run_metrics *metrics = run->metrics;
	const char *failed = NULL;

	if (!run->options->metrics && !run->options->telemetry)
		return 0;
	if (run->options->metrics) {
		metrics->http = metrics_http_start(metrics->socket.fd);
		failed = metrics->http ? failed : "--metrics";
	}
	if (run->options->telemetry && telemetry_start(metrics->telemetry))
		failed = "--telemetry";
	if (failed) {
		report_error(
			&run->report, REPORT_EXIT_NOT_RUN,
			"%s: no thread that answers could be started; is a limit of processes (ulimit -u) "
			"or of memory (ulimit -v) reached?",
			failed);
		return -EAGAIN;
	}
	hand_out(run, 0);
	if (metrics->http)
		tell_where(run, "metrics", metrics->socket.url);
	if (metrics->telemetry)
		tell_where(run, "telemetry", telemetry_path(metrics->telemetry));
	return 0;
}

/* The run goes on without; told once for each time that it begins to fail. */
static int write_now(struct run *run, int running)
{
	struct run_metrics *metrics = run->metrics;
	const int rc = hand_out(run, running);
	char line[512];

	if (rc && running && !metrics->failed) {
		snprintf(line, sizeof(line),
			 "--metrics-textfile: %s cannot be written: %s; it stays as it is until it "
			 "can, and the run goes on",
			 run->options->metrics_textfile, why_not(rc));
		run->log(run, GDRCAP_LOG_WARNING, line);
	}
	metrics->failed = rc != 0;
	return rc;
}

/* What is in the file says that the run goes on, for ever. */
static void tell_not_final(struct run *run, int rc)
{
	char line[512];

	snprintf(
		line, sizeof(line),
		"--metrics-textfile: %s cannot be written: %s; it has not the final counts of this "
		"run; remove what is there",
		run->options->metrics_textfile, why_not(rc));
	run->log(run, GDRCAP_LOG_ERROR, line);
	report_error(&run->report, REPORT_EXIT_NOT_RUN, "%s", line);
}

void run_metrics_event(struct run *run, const struct gdrcap_event *event)
{
	if (run->metrics)
		metrics_event(&run->metrics->counts, event);
}

/* The summary that telemetry has is without them. */
static void keep_streams(struct run *run)
{
	run_collect(run, GDRCAP_JSON_ALL);
	json_decref(run->metrics->streams);
	run->metrics->streams = json_incref(json_object_get(run->report.object, "streams"));
}

void run_metrics_tick(struct run *run)
{
	if (!run->metrics || !run_timer_due(&run->metrics->write, clock_ns()))
		return;
	if (run->metrics->telemetry)
		keep_streams(run);
	run_collect(run, GDRCAP_JSON_SETUP);
	write_now(run, 1);
}

void run_metrics_end(struct run *run)
{
	int rc;

	if (!run->metrics)
		return;
	rc = write_now(run, 0);
	if (rc && run->options->metrics_textfile)
		tell_not_final(run, rc);
	close_all(run);
}
