/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run has to say: an object of schema gdrcap.summary/1 (docs/json.md) for programs, which is the library's, and a
 * table made of it for people. What went wrong in the program itself is added to both.
 */
#ifndef GDRCAP_APP_REPORT_H
#define GDRCAP_APP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "gdrcap.h"
#include "summary/results.h"

#define REPORT_ERRORS_MAX 16

enum report_result { REPORT_RUNNING, REPORT_PASS, REPORT_FAIL };

/* The exit status of the program. */
enum report_status {
	REPORT_EXIT_OK = 0,
	REPORT_EXIT_NOT_RUN = 1, /* could not run, or not to its end */
	REPORT_EXIT_USAGE = 2,	 /* command line or configuration */
	/* Ran, and frames were lost, damaged, duplicated or reordered, or not sent or saved though
	 * asked for. */
	REPORT_EXIT_FRAMES = 3,
};

struct report {
	const char *command;		    /* "loopback", "capture", "replay" */
	const struct gdrcap_config *config; /* NULL: the command line could not be read */
	enum report_result result;
	enum report_status status;
	json_t *object; /* the library's, as last collected; NULL: none yet, or no memory */

	bool saves_images;
	uint64_t images_saved, images_missed;
	struct gdrcap_cause causes[RESULTS_CAUSES_MAX]; /* what they mean */
	uint32_t cause_count;
	uint32_t step_count;	/* of the self-test, shown */
	uint32_t messages_told; /* in the lines before: a compact one has the others */
	char errors[REPORT_ERRORS_MAX][RESULTS_REASON_BYTES]; /* the program's own */
	uint32_t error_count;
};

/* Adds a reason for failing and makes the result REPORT_FAIL. The first status but OK is kept. */
void report_error(struct report *report, enum report_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Asks the session, or, where there is none, the configuration. `what`: GDRCAP_JSON_*. */
void report_collect(struct report *report, const struct gdrcap_session *session, uint32_t what);
/* Decides result and status: call once, when the run has ended. `failed`: what gdrcap_judge() says. */
void report_judge(struct report *report, int failed);
void report_free(struct report *report);

/* Value `index` of an option of this run; NULL: it has none. */
const char *report_option(const struct report *report, const char *key, uint32_t index);
/* True for a run that receives frames; else it only sends. */
bool report_receives(const struct report *report);
/* True once there is a session, and once it has begun. */
bool report_has_session(const struct report *report);
bool report_ran(const struct report *report);
uint32_t report_images(const struct report *report);
/* Why it failed: the library's reasons and the program's, a new array. */
json_t *report_errors(const struct report *report);

/* ---- JSON ---- */

/* The object with the program's own, a new one. `compact`: with those messages only that were not told before. NULL when
 * memory is short. */
json_t *report_to_json(const struct report *report, bool compact);

/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int report_print_json(FILE *to, const struct report *report, bool compact);

/* ---- text: report_text.c ---- */

#define REPORT_TEXT_BYTES 32

/* The end of a word that is counted. */
const char *report_plural(uint64_t count);
/* "1.234e-09", "< 1.2e-12" (one over the bits checked) when none was wrong, "not known". */
const char *report_text_ratio(char *to, uint64_t wrong, uint64_t checked);
/* "32 MiB"; exact, or with one decimal. */
const char *report_text_bytes(char *to, uint64_t bytes);

/* What is about to run: ports, memory as chosen, cores, frames. */
void report_print_header(FILE *to, const struct report *report);
void report_print_step(FILE *to, const struct gdrcap_step *step, uint32_t number, int colour);
/* Everything that was counted. */
void report_print_table(FILE *to, const struct report *report);
/* "PASS: ..." or "FAIL: ...": the last line of every run. */
void report_print_verdict(FILE *to, const struct report *report, int colour);

/* One second of a run that goes on. `before` is the summary a while earlier. */
struct report_tick {
	double elapsed, interval; /* seconds: since the start, since `before` */
	const struct gdrcap_summary *now, *before;
	const struct gdrcap_image_counts *images, *images_before; /* NULL: no images */
};
void report_format_tick(char *to, size_t bytes, const struct report_tick *tick);

#endif
