/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run has to say, in one place and two shapes: a table for people, an object of schema
 * gdrcap.summary/1 (docs/json.md) for programs. Nothing here talks to a session: run_loop.c fills
 * struct report, so the output can be tested without ports.
 */
#ifndef GDRCAP_APP_REPORT_H
#define GDRCAP_APP_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "gdrcap.h"

#define REPORT_SCHEMA "gdrcap.summary/1"
#define REPORT_ERRORS_MAX 16
#define REPORT_STEPS_MAX 32
#define REPORT_MESSAGES_MAX 256
#define REPORT_CAUSES_MAX 32
#define REPORT_REASON_BYTES 512

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

/* Which run it is, of all of a site's: no other has all three. */
struct report_run {
	char host[256];
	uint32_t pid;
	uint64_t started_ns; /* since the Unix epoch */
};
/* This host and process, and the time that it is. */
void report_run_now(struct report_run *run);

struct report_stream {
	uint32_t stream;
	struct gdrcap_counts counts;
	struct gdrcap_numbers *ranges; /* NULL: not known; of the report's owner */
	uint32_t range_count;
};

struct report_images {
	const char *name;
	struct gdrcap_image_counts counts;
	struct {
		uint64_t id;
		struct gdrcap_image_counts counts;
	} streams[GDRCAP_IMAGE_STREAMS_MAX];
	uint32_t stream_count;
	struct gdrcap_incomplete incomplete[GDRCAP_INCOMPLETE_MAX];
	uint32_t incomplete_count;
};

struct report {
	const char *command; /* "loopback", "capture", "replay" */
	const char *version;
	struct report_run run;
	const struct gdrcap_config *config; /* NULL: the command line could not be read */
	enum report_result result;
	enum report_status status;

	int has_session; /* 1: memory, GPU and cores of `summary` are known */
	int has_summary; /* 1: the run was started and counted; else every count is unknown */
	struct gdrcap_summary summary;
	struct gdrcap_counts queues[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	uint32_t queue_count;
	struct report_stream streams[GDRCAP_STREAMS_MAX];
	uint32_t stream_count;
	int has_ranges; /* 1: it was asked for, and the run has ended */
	struct gdrcap_damage damage[GDRCAP_DAMAGE_MAX];
	uint32_t damage_count;

	struct report_images images[GDRCAP_IMAGES_MAX]; /* instead of frames that are checked */
	uint32_t image_count;
	int saves_images;
	uint64_t images_saved, images_missed;

	struct gdrcap_cause causes[REPORT_CAUSES_MAX]; /* of loss, and of slow senders */
	uint32_t cause_count;
	struct gdrcap_rule rules[GDRCAP_MATCH_MAX]; /* that the cards steer by */
	uint32_t rule_count;

	struct gdrcap_step steps[REPORT_STEPS_MAX]; /* of gdrcap_selftest(), copied */
	uint32_t step_count;

	const char *messages[REPORT_MESSAGES_MAX]; /* the library's lines, oldest first */
	uint32_t message_count;
	uint32_t messages_told; /* of them, in the lines before: a compact one has the others */
	char errors[REPORT_ERRORS_MAX][REPORT_REASON_BYTES]; /* why the result is "fail" */
	uint32_t error_count;
};

/* Adds a reason for failing and makes the result REPORT_FAIL. The first status but OK is kept. */
void report_error(struct report *report, enum report_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reasons that `gdrcap merge` looks for: what one receiver lacks may have come to another. */
#define REPORT_DAMAGED "damaged"
#define REPORT_LOST "lost"
#define REPORT_DUPLICATED "duplicated"
#define REPORT_REORDERED "reordered"
#define REPORT_ENDS_MISSING "streams whose end did not come: "
/* "1,234 frames lost". Returns `to`, of REPORT_REASON_BYTES. */
const char *report_count_reason(char *to, uint64_t count, const char *noun, const char *what);

/* Value `index` of an option of this run; NULL: it has none. */
const char *report_option(const struct report *report, const char *key, uint32_t index);
/* True for a run that receives frames; else it only sends. */
int report_receives(const struct report *report);

/* True for a stale frame of which such a byte is known: `offset` is its place, `got` what was seen
 * there, `expected` what came. */
int report_damage_is_late(const struct gdrcap_damage *damage);

/* Decides result and status from the counts: call once, when the run has ended. */
void report_judge(struct report *report);

/* ---- JSON: report_json.c ---- */

#define REPORT_JSON_FLAGS JSON_REAL_PRECISION(12)

/* `compact`: of a run that goes on, without parts and without what does not change: docs/json.md. NULL when memory
 * is short. */
json_t *report_to_json(const struct report *report, int compact);

/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int report_print_json(FILE *to, const struct report *report, int compact);

/* ---- text: report_text.c ---- */

#define REPORT_TEXT_BYTES 32

/* "10,000,000"; the buffer has REPORT_TEXT_BYTES. Returns it. */
const char *report_text_count(char *to, uint64_t count);
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
