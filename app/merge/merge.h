/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One summary of many: senders' and receivers', each the JSON object of its run (docs/json.md), joined by
 * stream id. What nobody knows stays unknown. docs/merge.md has the rules.
 *
 * merge_file.c reads a file, merge_lines.c finds its object, merge_input.c and merge_ranges.c take what counts from that;
 * merge_join.c, merge_spread.c, merge_union.c and merge_judge.c know neither files nor JSON.
 */
#ifndef GDRCAP_MERGE_H
#define GDRCAP_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gdrcap.h"
#include "base/text.h"
#include "report.h"
#include "summary/results.h"

#define MERGE_SCHEMA "gdrcap.merge/1"
#define MERGE_FILES_MAX 4096u
/* A summary of 1,024 streams, each text as long as it can be, has some 2 MiB. */
#define MERGE_TEXT_MAX (16u << 20)
#define MERGE_STREAM_IDS 65536u
#define MERGE_REASONS_MAX 64u
#define MERGE_REASON_BYTES 640

/* Of frames; the order is that of their keys in JSON. */
enum merge_which {
	MERGE_SENT,
	MERGE_RECEIVED,
	MERGE_VALID,
	MERGE_DAMAGED,
	MERGE_LOST,
	MERGE_DUPLICATE,
	MERGE_REORDERED,
	MERGE_FILTERED,
	MERGE_COUNTS,
};

struct merge_count {
	uint64_t count;
	bool known; /* false: null, and `count` is 0 */
};

struct merge_counts {
	struct merge_count of[MERGE_COUNTS];
};

/* Which frames of a stream came to a receiver: rows in order, none of which overlaps another. */
struct merge_ranges {
	struct gdrcap_numbers *rows;
	uint32_t count;
	uint64_t first,
		end; /* of all of them: the lowest number, the highest + 1; 0 without rows */
	bool known;
};

struct merge_stream {
	uint32_t id;
	struct merge_counts counts;
	struct merge_ranges ranges;
	bool restarted; /* its numbers began again */
};

enum merge_state {
	MERGE_READ,
	MERGE_UNKNOWN, /* its machine gave nothing, or nothing final */
	MERGE_REFUSED, /* no summary, or none of these runs */
};

/* One file. */
struct merge_input {
	const char *file;
	enum merge_state state;
	char why[MERGE_REASON_BYTES]; /* unless it was read */
	bool has_run;		      /* `run` is known */
	struct results_run run;
	double elapsed;	      /* s, from its start to its end; below 0: not known */
	uint64_t text_hash;   /* of its object's text */
	bool sends, receives; /* a loopback does both */
	bool of_images;	      /* it received images, and its frames have no numbers */
	bool failed;	      /* its own result */
	char pattern[64], frame_size[64];
	struct merge_counts total;
	struct merge_count untracked; /* among the filtered: of too many streams */
	struct merge_stream *streams;
	uint32_t stream_count;
	uint32_t range_count; /* rows, of all streams */
	char (*errors)[MERGE_REASON_BYTES];
	uint32_t error_count;
};

/* A stream of all files. */
struct merge_joined {
	uint32_t id;
	uint32_t senders, receivers; /* files */
	struct merge_counts counts;
	uint64_t
		gaps; /* lost, of which no damaged frame without a readable header was one; where known */
	uint64_t lost_least;	 /* as far as is known */
	uint64_t again;		 /* frames that came to one receiver, and to another, ... */
	uint64_t valid, damaged; /* ... where there are any: sums of what receivers counted */
	uint64_t
		doubtful; /* valid frames beyond those of the receiver that has most: copies, or not */
};

struct merge {
	struct merge_input *inputs;
	uint32_t input_count;
	uint32_t senders, receivers; /* files that were read */
	uint32_t of_images;	     /* of these receivers */
	struct merge_joined *streams;
	uint32_t stream_count;
	uint64_t work;		   /* steps that are left for merge_unite() */
	bool apart;		   /* that runs were at different times was said */
	uint32_t unsettled;	   /* streams of which it is not known what is lost */
	struct merge_counts total; /* unknown where anything of it is */
	struct merge_counts least; /* what is known of it */
	enum report_status status;
	char errors[MERGE_REASONS_MAX][MERGE_REASON_BYTES];
	uint32_t error_count; /* more than MERGE_REASONS_MAX: the rest was not kept */
	char messages[MERGE_REASONS_MAX][MERGE_REASON_BYTES];
	uint32_t message_count;
};

/* No frame has a number by which it could be joined to others. */
static inline bool merge_is_of_images(const struct merge *merge)
{
	return merge->receivers && merge->of_images == merge->receivers && !merge->senders;
}

/* A reason for failing; a usage status outranks the others. */
void merge_error(struct merge *merge, enum report_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void merge_message(struct merge *merge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Ends what was read of the input. Returns -EINVAL. */
int merge_refuse(struct merge_input *input, enum merge_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Both say which run they are, and it is one. */
bool merge_same_run(const struct merge_input *a, const struct merge_input *b);

/* a + b; unknown where one is, and where 64 bits do not hold it. */
struct merge_count merge_sum(struct merge_count a, struct merge_count b);

/* An integer, or beyond 63 bits its decimal digits. False: neither, nor null. */
bool merge_count_of(const json_t *value, struct merge_count *count);

/* The stream's ranges, where there are any. 0, -ENOMEM, or -EINVAL: refused. */
int merge_ranges_read(struct merge_input *input, const json_t *array, struct merge_stream *stream);
/* Behind the last number of the row. */
uint64_t merge_row_end(const struct gdrcap_numbers *row);
/* How many different numbers they have. Takes what it costs from *work: 0, -ENOMEM, or -EOVERFLOW: it is too much. */
int merge_unite(const struct merge_ranges *of, uint32_t count, uint64_t *work, uint64_t *numbers);

/* What counts of a summary's object, and which run it is of, which summaries of older versions do not say. 0, -ENOMEM, or
 * -EINVAL: refused. */
int merge_object(struct merge_input *input, const json_t *object);
int merge_run(struct merge_input *input, const json_t *object);

/* Reads input->file. What cannot be used is said in the input. -ENOMEM. */
int merge_file(struct merge_input *input);
/* The same of an object's text: of JSON lines the last one counts. */
int merge_text(struct merge_input *input, const char *text, size_t bytes);
/* Before it, where only the last lines of a log are read: its first one, which is to be of their run. */
int merge_first_line(struct merge_input *input, const char *text, size_t bytes);
void merge_input_free(struct merge_input *input);

/* Joins merge->inputs, which stay the caller's, and judges. 0 or -ENOMEM. */
int merge_join(struct merge *merge);
void merge_free(struct merge *merge);
/* ---- of merge_join(): the reasons for failing, merge_judge.c ---- */

/* Of what was not read, and of what does not belong together. */
void merge_judge_files(struct merge *merge);
/* Of the rest, once all is joined. */
void merge_judge_all(struct merge *merge);

/* Names and reasons come from files: a terminal obeys none of them. */
void merge_print_safe(FILE *to, const char *text);
void merge_print_text(FILE *to, const struct merge *merge, bool colour);
/* 0 or a negative errno. */
int merge_print_json(FILE *to, const struct merge *merge);

#endif
