/* SPDX-License-Identifier: BSD-3-Clause */
/* Summaries of senders and receivers by the counts of their streams, and what is expected of their merge. */
#ifndef GDRCAP_TEST_MERGE_ROWS_H
#define GDRCAP_TEST_MERGE_ROWS_H

#include <inttypes.h>

#include "merge_play.h"

/* What one file has of a stream. */
struct row {
	uint32_t id;
	uint64_t sent, valid, damaged, duplicate;
};

static inline void begin(struct text *text, const char *command, const char *result, uint32_t pid)
{
	text->bytes = 0;
	add(text,
	    "{\"schema\":\"gdrcap.summary/1\",\"command\":\"%s\",\"result\":\"%s\","
	    "\"run\":{\"host\":\"mill\",\"pid\":%u,\"started_ns\":1700000000000000000},"
	    "\"pattern\":\"prbs31\",\"frame_size\":\"1518\",",
	    command, result, pid);
}

/* `unreadable`: damaged frames without a header, which fill gaps, then add to what was sent. */
static inline void receiver(struct text *text, uint32_t pid, const struct row *rows, uint32_t count,
			    uint64_t unreadable)
{
	uint64_t sent = 0, valid = 0, damaged = 0, duplicate = 0, lost;
	char reason[RESULTS_REASON_BYTES] = "";

	for (uint32_t i = 0; i < count; i++) {
		sent += rows[i].sent;
		valid += rows[i].valid;
		damaged += rows[i].damaged;
		duplicate += rows[i].duplicate;
	}
	lost = sent - valid - damaged;
	if (unreadable > lost)
		sent += unreadable - lost;
	lost = unreadable > lost ? 0 : lost - unreadable;
	damaged += unreadable;
	if (lost)
		reason_count(reason, lost, "frame", "lost");
	begin(text, "capture", lost || damaged || duplicate ? "fail" : "pass", pid);
	add(text,
	    "\"frames\":{\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"valid\":%" PRIu64
	    ",\"damaged\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"duplicate\":%" PRIu64
	    ",\"reordered\":0},\"filtered\":5,\"untracked\":0,\"errors\":[%s%s%s],\"streams\":[",
	    sent, valid + damaged + duplicate + 5, valid, damaged, lost, duplicate,
	    lost ? "\"" : "", reason,
	    lost			   ? "\""
	    : lost || damaged || duplicate ? "\"?\""
					   : "");
	for (uint32_t i = 0; i < count; i++)
		add(text,
		    "%s{\"stream\":%u,\"frames\":{\"sent\":%" PRIu64 ",\"received\":%" PRIu64
		    ",\"valid\":%" PRIu64 ",\"damaged\":%" PRIu64 ",\"lost\":%" PRIu64
		    ",\"duplicate\":%" PRIu64 ",\"reordered\":0}}",
		    i ? "," : "", rows[i].id, rows[i].sent,
		    rows[i].valid + rows[i].damaged + rows[i].duplicate, rows[i].valid,
		    rows[i].damaged, rows[i].sent - rows[i].valid - rows[i].damaged,
		    rows[i].duplicate);
	add(text, "]}\n");
}

#define NULLS                                                                                      \
	"\"received\":null,\"valid\":null,\"damaged\":null,\"lost\":null,\"duplicate\":null,"      \
	"\"reordered\":null"

/* `more`: sent, and of no stream that is listed. */
static inline void sender(struct text *text, uint32_t pid, const struct row *rows, uint32_t count,
			  uint64_t more)
{
	uint64_t sent = more;

	for (uint32_t i = 0; i < count; i++)
		sent += rows[i].sent;
	begin(text, "replay", "pass", pid);
	add(text,
	    "\"frames\":{\"sent\":%" PRIu64 "," NULLS
	    "},\"filtered\":null,\"untracked\":null,\"errors\":[],\"streams\":[",
	    sent);
	for (uint32_t i = 0; i < count; i++)
		add(text, "%s{\"stream\":%u,\"frames\":{\"sent\":%" PRIu64 "," NULLS "}}",
		    i ? "," : "", rows[i].id, rows[i].sent);
	add(text, "]}\n");
}

static inline void give_receiver(uint32_t pid, const struct row *rows, uint32_t count,
				 uint64_t unreadable)
{
	static struct text text;

	receiver(&text, pid, rows, count, unreadable);
	assert_string_equal(give(text.at, text.bytes)->why, "");
}

static inline void give_sender(uint32_t pid, const struct row *rows, uint32_t count, uint64_t more)
{
	static struct text text;

	sender(&text, pid, rows, count, more);
	assert_string_equal(give(text.at, text.bytes)->why, "");
}

static inline void join(enum report_status status)
{
	assert_int_equal(merge_join(&merge), 0);
	if (merge.status != status)
		for (uint32_t i = 0; i < merge.error_count; i++)
			print_error("%s\n", merge.errors[i]);
	assert_int_equal(merge.status, status);
	assert_int_equal(merge.error_count == 0, status == REPORT_EXIT_OK);
}

static inline void assert_count(enum merge_which which, uint64_t count)
{
	assert_true(merge.total.of[which].known);
	assert_int_equal(merge.total.of[which].count, count);
}

static inline void assert_unknown(enum merge_which which)
{
	assert_false(merge.total.of[which].known);
	assert_int_equal(merge.total.of[which].count, 0);
}

static inline void assert_said(const char *part)
{
	for (uint32_t i = 0; i < merge.error_count; i++)
		if (strstr(merge.errors[i], part))
			return;
	for (uint32_t i = 0; i < merge.error_count; i++)
		print_error("%s\n", merge.errors[i]);
	fail_msg("no reason has \"%s\"", part);
}

static inline void assert_not_said(const char *part)
{
	for (uint32_t i = 0; i < merge.error_count; i++)
		if (strstr(merge.errors[i], part))
			fail_msg("a reason has \"%s\": %s", part, merge.errors[i]);
}

#endif
