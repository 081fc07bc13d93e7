/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap merge: one verdict of many runs' summaries. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "flags.h"
#include "merge/merge.h"

#define OPTIONS 3

static void usage(const struct flag *flags)
{
	printf("Usage: gdrcap merge [OPTION]... FILE...\n"
	       "One verdict of many runs: the JSON summaries of senders (gdrcap replay) and receivers\n"
	       "(gdrcap capture), of loopbacks too, joined by stream. What a file does not say, or a\n"
	       "machine that gave nothing, is unknown and fails; it is never taken for 0.\n\n"
	       "FILE - is standard input. A pipe is read to its end, however long its writer takes.\n\n"
	       "Examples:\n"
	       "  One sender, one receiver, each having printed its summary with --json:\n"
	       "    gdrcap merge sender.json receiver.json\n"
	       "  Of eight machines, for a program; of --json-lines logs the last line counts:\n"
	       "    gdrcap merge --json run1/*.json run1/*.jsonl | jq .result\n"
	       "  From another machine:\n"
	       "    gdrcap merge receiver.json <(ssh sender cat /tmp/sender.json)\n\n"
	       "Options:\n");
	flags_print(flags, OPTIONS);
	printf("\n"
	       "Exit status: 0 each frame was right and there once; 1 could not run; 2 command line, or a\n"
	       "file that is no summary, does not add up or belongs to another run; 3 frames were lost,\n"
	       "damaged, duplicated or reordered, or that is unknown.\n");
}

static int print(const struct merge *merge, bool json)
{
	const char *no_color = getenv("NO_COLOR");
	int rc;

	if (!json) {
		merge_print_text(stdout, merge,
				 isatty(STDOUT_FILENO) && !(no_color && no_color[0]));
		return (int)merge->status;
	}
	for (uint32_t i = 0; i < merge->error_count && i < MERGE_REASONS_MAX; i++) {
		fprintf(stderr, "gdrcap merge: ");
		merge_print_safe(stderr, merge->errors[i]);
		fprintf(stderr, "\n");
	}
	rc = merge_print_json(stdout, merge);
	if (rc == 0)
		return (int)merge->status;
	fprintf(stderr, "gdrcap merge: the result could not be written: %s\n", strerror(-rc));
	return REPORT_EXIT_NOT_RUN;
}

/* A program that asked for JSON gets an object in any case. */
static int refuse(struct merge *merge, bool json, enum report_status status, const char *why)
{
	merge_error(merge, status, "%s", why);
	if (json)
		merge_print_json(stdout, merge);
	return (int)status;
}

/* Files may be pipes, and large ranges take seconds. What follows is written over it. */
static void progress(bool lively, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void progress(bool lively, const char *format, ...)
{
	va_list arguments;

	if (!lively)
		return;
	va_start(arguments, format);
	fprintf(stderr, "\r\033[K");
	vfprintf(stderr, format, arguments);
	fflush(stderr);
	va_end(arguments);
}

static int run(struct merge *merge, const char **files, uint32_t count, bool json)
{
	const bool lively = isatty(STDERR_FILENO);
	int rc = 0;

	merge->inputs = calloc(count, sizeof(*merge->inputs));
	if (!merge->inputs)
		return -ENOMEM;
	merge->input_count = count;
	for (uint32_t i = 0; !rc && i < count; i++) {
		merge->inputs[i].file = files[i];
		progress(lively, "reading file %" PRIu32 " of %" PRIu32 " ...", i + 1, count);
		rc = merge_file(&merge->inputs[i]);
	}
	progress(lively, "joining streams ...");
	if (!rc)
		rc = merge_join(merge);
	progress(lively, "%s", "");
	if (!rc)
		rc = print(merge, json);
	merge_free(merge);
	for (uint32_t i = 0; i < count; i++)
		merge_input_free(&merge->inputs[i]);
	free(merge->inputs);
	return rc;
}

/* `files` has room for all arguments. */
static int merge_command(int argc, char **argv, const char **files)
{
	static struct merge merge; /* with room for every reason: large for a stack */
	uint32_t count = 0;
	int json = 0, rc;
	const struct flag flags[OPTIONS] = {
		{ NULL, "FILE", .words = files, .number = &count },
		{ "json", NULL, "Print one JSON object (schema gdrcap.merge/1, docs/merge.md).",
		  .on = &json },
		{ "help", NULL, "Print this text.", .on = NULL },
	};

	rc = flags_parse("merge", flags, OPTIONS, argc, argv);
	if (rc == 1)
		usage(flags);
	if (rc > 0)
		return REPORT_EXIT_OK;
	json |= flags_asked(argc, argv, "--json");
	if (rc < 0)
		return refuse(&merge, json, REPORT_EXIT_USAGE, FLAGS_WRONG);
	if (count == 0 || count > MERGE_FILES_MAX) {
		fprintf(stderr, "gdrcap merge: %s; 'gdrcap merge --help' has examples\n",
			count ? "too many files: 4,096 at most" : "no file was given");
		return refuse(&merge, json, REPORT_EXIT_USAGE, FLAGS_WRONG);
	}
	rc = run(&merge, files, count, json);
	if (rc >= 0)
		return rc;
	fprintf(stderr, "gdrcap merge: no memory\n");
	return REPORT_EXIT_NOT_RUN;
}

int cmd_merge(int argc, char **argv)
{
	const char **files = calloc((size_t)argc, sizeof(*files));
	int status = REPORT_EXIT_NOT_RUN;

	if (files)
		status = merge_command(argc, argv, files);
	else
		fprintf(stderr, "gdrcap merge: no memory\n");
	free(files);
	return status;
}
