/* SPDX-License-Identifier: BSD-3-Clause */
/* app/merge: what files say, joined by stream. Texts in, counts and reasons out. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"
#include "merge_play.h"

/* What one file has of a stream. */
struct row {
	uint32_t id;
	uint64_t sent, valid, damaged, duplicate;
};

static void begin(struct text *text, const char *command, const char *result, uint32_t pid)
{
	text->bytes = 0;
	add(text,
	    "{\"schema\":\"gdrcap.summary/1\",\"command\":\"%s\",\"result\":\"%s\","
	    "\"run\":{\"host\":\"mill\",\"pid\":%u,\"started_ns\":1700000000000000000},"
	    "\"pattern\":\"prbs31\",\"frame_size\":\"1518\",",
	    command, result, pid);
}

/* `unreadable`: damaged frames without a header, which fill gaps, then add to what was sent. */
static void receiver(struct text *text, uint32_t pid, const struct row *rows, uint32_t count,
		     uint64_t unreadable)
{
	uint64_t sent = 0, valid = 0, damaged = 0, duplicate = 0, lost;
	char reason[REPORT_REASON_BYTES] = "";

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
		report_count_reason(reason, lost, "frame", "lost");
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
static void sender(struct text *text, uint32_t pid, const struct row *rows, uint32_t count,
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

static void give_receiver(uint32_t pid, const struct row *rows, uint32_t count, uint64_t unreadable)
{
	static struct text text;

	receiver(&text, pid, rows, count, unreadable);
	assert_string_equal(give(text.at, text.bytes)->why, "");
}

static void give_sender(uint32_t pid, const struct row *rows, uint32_t count, uint64_t more)
{
	static struct text text;

	sender(&text, pid, rows, count, more);
	assert_string_equal(give(text.at, text.bytes)->why, "");
}

static void join(enum report_status status)
{
	assert_int_equal(merge_join(&merge), 0);
	if (merge.status != status)
		for (uint32_t i = 0; i < merge.error_count; i++)
			print_error("%s\n", merge.errors[i]);
	assert_int_equal(merge.status, status);
	assert_int_equal(merge.error_count == 0, status == REPORT_EXIT_OK);
}

static void assert_count(enum merge_which which, uint64_t count)
{
	assert_true(merge.total.of[which].known);
	assert_int_equal(merge.total.of[which].count, count);
}

static void assert_unknown(enum merge_which which)
{
	assert_false(merge.total.of[which].known);
	assert_int_equal(merge.total.of[which].count, 0);
}

static void assert_said(const char *part)
{
	for (uint32_t i = 0; i < merge.error_count; i++)
		if (strstr(merge.errors[i], part))
			return;
	for (uint32_t i = 0; i < merge.error_count; i++)
		print_error("%s\n", merge.errors[i]);
	fail_msg("no reason has \"%s\"", part);
}

static void assert_not_said(const char *part)
{
	for (uint32_t i = 0; i < merge.error_count; i++)
		if (strstr(merge.errors[i], part))
			fail_msg("a reason has \"%s\": %s", part, merge.errors[i]);
}

/* ---- right results ---- */

static void test_pass(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 }, { .id = 1, .sent = 50 } }, 2, 0);
	give_sender(2, (struct row[]){ { .id = 7, .sent = 30 } }, 1, 0);
	give_receiver(3, (struct row[]){ { 1, 50, 50, 0, 0 }, { 7, 30, 30, 0, 0 } }, 2, 0);
	give_receiver(4, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_OK);
	assert_count(MERGE_SENT, 180);
	assert_count(MERGE_VALID, 180);
	assert_count(MERGE_RECEIVED, 190);
	assert_count(MERGE_LOST, 0);
	assert_int_equal(merge.stream_count, 3);
	assert_int_equal(merge.streams[2].id, 7);
}

/* The receiver cannot know of the last frames, nor of a stream of which nothing came. */
static void test_tail_is_lost(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 }, { .id = 1, .sent = 50 } }, 2, 0);
	give_receiver(2, (struct row[]){ { 0, 90, 88, 1, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_SENT, 150);
	assert_count(MERGE_LOST, 61);
	assert_count(MERGE_DAMAGED, 1);
	assert_int_equal(merge.streams[0].counts.of[MERGE_LOST].count, 11);
	assert_int_equal(merge.streams[1].counts.of[MERGE_LOST].count, 50);
	assert_said("61 frames lost");
	assert_not_said("2 frames lost"); /* the receiver's own view */
}

/* A file's own totals, whatever it has. */
static void test_one_file(void **state)
{
	give_receiver(2, (struct row[]){ { 0, 90, 80, 3, 9 }, { 4, 5, 5, 0, 0 } }, 2, 4);
	join(REPORT_EXIT_FRAMES);
	for (int which = 0; which < MERGE_COUNTS; which++)
		assert_count(which, inputs[0].total.of[which].count);
}

static void test_one_file_more_damaged_than_lost(void **state)
{
	give_receiver(2, (struct row[]){ { 0, 90, 88, 0, 0 } }, 1, 7);
	join(REPORT_EXIT_FRAMES);
	for (int which = 0; which < MERGE_COUNTS; which++)
		assert_count(which, inputs[0].total.of[which].count);
}

/* What was sent is known: there are only so many gaps, the rest came twice. */
static void test_damaged_fill_gaps(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 0, 98, 95, 0, 0 } }, 1, 7);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_SENT, 100);
	assert_count(MERGE_DAMAGED, 5);
	assert_count(MERGE_DUPLICATE, 2);
	assert_count(MERGE_LOST, 0);
}

/* One receiver's damaged frames are no gap of a stream that came to another. */
static void test_damaged_elsewhere(void **state)
{
	give_receiver(1, (struct row[]){ { 0, 100, 95, 0, 0 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 1, 100, 100, 0, 0 } }, 1, 3);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_LOST, 5);
	assert_count(MERGE_DAMAGED, 3);
	assert_count(MERGE_SENT, 203);
}

/* Sums that are right prove nothing: what came twice hides what is lost. */
static void test_spread_adds_up(void **state)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 3, 99, 50, 0, 0 } }, 1, 0);
	give_receiver(3, (struct row[]){ { 3, 100, 50, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	assert_int_equal(merge.least.of[MERGE_LOST].count, 0);
	assert_said("as many may be lost as came twice");
}

/* Both have the first half: no frame that came has a number of the other. */
static void test_spread_same_half(void **state)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 3, 50, 50, 0, 0 } }, 1, 0);
	give_receiver(3, (struct row[]){ { 3, 50, 50, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	assert_int_equal(merge.least.of[MERGE_LOST].count, 50);
	assert_said("so 50 or more are lost");
}

/* A receiver that had its end alone hides nothing. */
static void test_spread_end_alone(void **state)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 3, 100, 100, 0, 0 } }, 1, 0);
	give_receiver(3, (struct row[]){ { 3, 100, 0, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_OK);
	assert_count(MERGE_LOST, 0);
}

static void test_spread_is_unknown(void **state)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 }, { .id = 4, .sent = 9 } }, 2, 0);
	give_receiver(2, (struct row[]){ { 3, 99, 49, 0, 0 }, { 4, 9, 9, 0, 0 } }, 2, 0);
	give_receiver(3, (struct row[]){ { 3, 100, 48, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	/* Nor is what of both is a copy: 49 are none. */
	assert_unknown(MERGE_VALID);
	assert_unknown(MERGE_DUPLICATE);
	assert_int_equal(merge.least.of[MERGE_VALID].count, 49 + 9);
	assert_false(merge.streams[0].counts.of[MERGE_VALID].known);
	assert_true(merge.streams[1].counts.of[MERGE_VALID].known);
	assert_int_equal(merge.least.of[MERGE_LOST].count, 3);
	assert_true(merge.streams[1].counts.of[MERGE_LOST].known);
	assert_int_equal(merge.unsettled, 1);
	assert_said("stream 3");
	assert_said("so 3 or more are lost");
}

/* Begun so many seconds after the first file's run, over after so many more. */
static void run_at(uint32_t file, uint64_t begin, double elapsed)
{
	inputs[file].run.started_ns = (UINT64_C(1700000000) + begin) * UINT64_C(1000000000);
	inputs[file].elapsed = elapsed;
}

static void one_of_each(uint64_t receiver_begins, double receiver_elapsed, uint64_t sender_begins,
			double sender_elapsed, enum report_status status)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 3, 100, 100, 0, 0 } }, 1, 0);
	run_at(0, sender_begins, sender_elapsed);
	run_at(1, receiver_begins, receiver_elapsed);
	join(status);
	teardown(NULL);
	setup(NULL);
}

/* A folder that was used twice: the receiver's file is an earlier run's. */
static void test_runs_apart(void **state)
{
	one_of_each(0, 10, 1440, 5, REPORT_EXIT_FRAMES);
	one_of_each(1440, 10, 0, 5, REPORT_EXIT_FRAMES);
	/* receivers may wait for long, clocks may differ by a little, and older files do not say */
	one_of_each(0, 1500, 1440, 5, REPORT_EXIT_OK);
	one_of_each(0, 10, 69, 5, REPORT_EXIT_OK);
	one_of_each(0, -1, 1440, 5, REPORT_EXIT_OK);
	one_of_each(0, 1e300, 1440, 1e300, REPORT_EXIT_OK);
}

static void test_spread_came_twice(void **state)
{
	give_sender(1, (struct row[]){ { .id = 3, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 3, 99, 70, 0, 0 } }, 1, 0);
	give_receiver(3, (struct row[]){ { 3, 100, 50, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	assert_int_equal(merge.least.of[MERGE_LOST].count, 0);
	assert_said("20 or more came twice");
}

/* Frames of a file have no streams of the sender's. */
static void test_file_played(void **state)
{
	give_sender(1, NULL, 0, 100);
	give_receiver(2, (struct row[]){ { 0, 95, 93, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_SENT, 100);
	assert_count(MERGE_LOST, 7);
}

static void test_file_played_contradicts(void **state)
{
	give_sender(1, NULL, 0, 100);
	give_receiver(2, (struct row[]){ { 0, 101, 101, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	assert_said("do not list");
}

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % below;
}

/* Streams of several senders, each to one of several receivers, with planted loss. */
static void play_round(uint32_t round)
{
	struct row sent[4][32], came[4][32];
	uint32_t sent_count[4] = { 0 }, came_count[4] = { 0 }, id = 0;
	uint64_t all = 0, lost = 0, damaged = 0, duplicate = 0;

	for (uint32_t i = 0; i < 1 + draw(30); i++) {
		const uint32_t from = draw(4), to = draw(4);
		const uint64_t frames = 1 + draw(1000), gone = draw(3) ? 0 : draw(20);
		const uint64_t less = gone < frames ? gone : frames;
		const uint64_t wrong = less < frames && !draw(4) ? 1 : 0, twice = draw(4) ? 0 : 2;
		const uint64_t tail = less ? draw((uint32_t)less + 1) : 0;

		id += 1 + draw(1000);
		sent[from][sent_count[from]++] = (struct row){ .id = id, .sent = frames };
		all += frames;
		lost += less;
		if (less == frames)
			continue;
		damaged += wrong;
		duplicate += twice;
		came[to][came_count[to]++] =
			(struct row){ id, frames - tail, frames - less - wrong, wrong, twice };
	}
	for (uint32_t i = 0; i < 4; i++) {
		give_sender(10 + i, sent[i], sent_count[i], 0);
		give_receiver(20 + i, came[i], came_count[i], 0);
	}
	join(lost || damaged || duplicate || lost == all ? REPORT_EXIT_FRAMES : REPORT_EXIT_OK);
	assert_count(MERGE_SENT, all);
	assert_count(MERGE_LOST, lost);
	assert_count(MERGE_DAMAGED, damaged);
	assert_count(MERGE_DUPLICATE, duplicate);
	assert_count(MERGE_VALID, all - lost - damaged);
}

static void test_random(void **state)
{
	for (uint32_t round = 0; round < 2000; round++) {
		play_round(round);
		teardown(state);
		setup(state);
	}
}

/* ---- what is not known ---- */

static void test_machine_gave_nothing(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 }, { .id = 1, .sent = 100 } }, 2, 0);
	give_receiver(2, (struct row[]){ { 0, 100, 100, 0, 0 }, { 1, 100, 90, 0, 0 } }, 2, 0);
	give("", 0);
	join(REPORT_EXIT_FRAMES);
	for (int which = 0; which < MERGE_COUNTS; which++)
		assert_unknown(which);
	assert_int_equal(merge.least.of[MERGE_VALID].count, 190);
	/* What is there needs nobody else's word; what is not may be at the third. */
	assert_true(merge.streams[0].counts.of[MERGE_LOST].known);
	assert_false(merge.streams[1].counts.of[MERGE_LOST].known);
	assert_int_equal(merge.least.of[MERGE_LOST].count, 0);
	assert_said("c: unknown: is empty");
}

static void test_cut_off(void **state)
{
	static struct text text;

	receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	text.bytes--; /* the line feed alone */
	for (size_t bytes = 0; bytes <= text.bytes; bytes++) {
		struct merge_input input = { .file = "x" };
		/* A copy with nothing behind it. */
		char *copy = malloc(bytes + 1);

		assert_non_null(copy);
		memcpy(copy, text.at, bytes);
		copy[bytes] = '\0';
		assert_int_equal(merge_text(&input, copy, bytes), 0);
		if (input.state != (bytes == text.bytes ? MERGE_READ : MERGE_UNKNOWN))
			fail_msg("%zu bytes: %d, %s", bytes, input.state, input.why);
		merge_input_free(&input);
		free(copy);
	}
}

static void test_json_lines(void **state)
{
	static struct text line, lines;

	begin(&line, "capture", "running", 5);
	add(&line, "\"errors\":[]}\n");
	lines.bytes = 0;
	add(&lines, "%s%s", line.at, line.at);
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_UNKNOWN);
	assert_non_null(strstr(inputs[0].why, "had not ended"));
	receiver(&line, 5, (struct row[]){ { 0, 9, 9, 0, 0 } }, 1, 0);
	add(&lines, "%s", line.at);
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_READ);
	add(&lines, "%s", line.at);
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_REFUSED);
	assert_non_null(strstr(inputs[2].why, "more than one summary: line 3"));
	add(&lines, "{\"schema\":");
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_REFUSED);
}

/* A killed run, and a later one that wrote into the same file. */
static void test_lines_of_two_runs(void **state)
{
	static struct text line, lines;

	lines.bytes = 0;
	for (uint32_t pid = 5; pid < 7; pid++) {
		begin(&line, "capture", "running", pid);
		add(&lines, "%s\"errors\":[]}\n", line.at);
	}
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_REFUSED);
	assert_non_null(strstr(inputs[0].why, "more than one run: line 2"));
	receiver(&line, 7, (struct row[]){ { 0, 9, 9, 0, 0 } }, 1, 0);
	lines.bytes = (size_t)(strchr(lines.at, '\n') + 1 - lines.at);
	add(&lines, "%s", line.at);
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_REFUSED);
	assert_non_null(strstr(inputs[1].why, "more than one run: line 2"));
}

/* A line that was cut, and the next run's glued to it. */
static void test_bad_line_by_number(void **state)
{
	static struct text line, lines;

	begin(&line, "capture", "running", 5);
	add(&line, "\"errors\":[]}\n");
	lines.bytes = 0;
	add(&lines, "%s%s%.40s%s", line.at, line.at, line.at, line.at);
	assert_int_equal(give(lines.at, lines.bytes)->state, MERGE_REFUSED);
	assert_non_null(strstr(inputs[0].why, "no JSON: line 3:"));
}

/* Yesterday's receiver: the counts are right, and still somebody should look. */
static void test_far_apart(void **state)
{
	static struct text text;

	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	memcpy(strstr(text.at, "1700000000"), "1699913600", 10);
	assert_string_equal(give(text.at, text.bytes)->why, "");
	join(REPORT_EXIT_OK);
	assert_int_equal(merge.message_count, 1);
	assert_non_null(strstr(merge.messages[0], "b began 24.0 hours before a"));
}

static void test_no_receiver(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_SENT, 100);
	assert_unknown(MERGE_LOST);
	assert_unknown(MERGE_RECEIVED);
	assert_said("no summary of a receiver");
}

/* ---- what does not belong together, and what is no summary ---- */

static void test_twice(void **state)
{
	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	give_receiver(2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	/* Another state of the same run. */
	give_receiver(2, (struct row[]){ { 0, 90, 90, 0, 0 } }, 1, 0);
	join(REPORT_EXIT_USAGE);
	assert_said("c: is the run of b once more");
}

static void test_contradictions(void **state)
{
	static struct text text;
	char *pattern;

	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	receiver(&text, 2, (struct row[]){ { 0, 200, 100, 0, 0 } }, 1, 0);
	pattern = strstr(text.at, "prbs31");
	assert_non_null(pattern);
	memcpy(pattern, "prbs23", 6);
	give(text.at, text.bytes);
	join(REPORT_EXIT_USAGE);
	assert_said("a sent the pattern prbs31, and b expected prbs23");
	assert_said("receivers saw numbers of 200 frames, and 100 were sent");
	assert_unknown(MERGE_LOST);
}

static void test_same_stream_of_two(void **state)
{
	give_sender(1, (struct row[]){ { .id = 6, .sent = 100 } }, 1, 0);
	give_sender(2, (struct row[]){ { .id = 6, .sent = 100 } }, 1, 0);
	/* Kept apart by their sources. */
	give_receiver(3, (struct row[]){ { 6, 100, 100, 0, 0 }, { 6, 100, 100, 0, 0 } }, 2, 0);
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_LOST, 0);
	assert_said("stream 6 is of 2 senders");
}

static void assert_refused(const char *text, const char *why)
{
	struct merge_input input = { .file = "x" };

	assert_int_equal(merge_text(&input, text, strlen(text)), 0);
	if (input.state != MERGE_REFUSED || !strstr(input.why, why))
		fail_msg("state %d, %s: %s", input.state, input.why, text);
	assert_null(input.streams);
	merge_input_free(&input);
}

/* The summary with one part changed. */
static void assert_changed_refused(const char *from, const char *to, const char *why)
{
	static struct text text, changed;
	const char *at;

	receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	at = strstr(text.at, from);
	assert_non_null(at);
	changed.bytes = 0;
	add(&changed, "%.*s%s%s", (int)(at - text.at), text.at, to, at + strlen(from));
	assert_refused(changed.at, why);
}

static void test_hostile(void **state)
{
	char deep[9000];

	assert_refused("hello", "no JSON");
	assert_refused("[]", "no JSON object");
	assert_refused("{}", "no \"schema\"");
	assert_refused("{\"schema\":\"gdrcap.summary/2\"}", "schema gdrcap.summary/2");
	assert_refused("{\"schema\":\"gdrcap.doctor/1\",\"a\":1}", "schema gdrcap.doctor/1");
	assert_refused("{\"schema\":\"a\",\"schema\":\"b\"}", "no JSON");
	memset(deep, '[', sizeof(deep));
	memcpy(deep, "{\"a\":", 5);
	deep[sizeof(deep) - 1] = '\0';
	assert_refused(deep, "no JSON");
	assert_changed_refused("\"capture\"", "\"bench\"", "\"command\"");
	assert_changed_refused("\"pass\"", "7", "\"result\"");
	assert_changed_refused("\"valid\":100", "\"valid\":-100", "not a count");
	assert_changed_refused("\"valid\":100", "\"valid\":1e2", "not a count");
	assert_changed_refused("\"valid\":100", "\"valid\":\"-100\"", "not a count");
	assert_changed_refused("\"valid\":100", "\"valid\":\"18446744073709551616\"",
			       "not a count");
	assert_changed_refused("\"valid\":100", "\"valid\":99999999999999999999", "no JSON");
	assert_changed_refused("\"valid\":100,", "", "missing");
	assert_changed_refused("\"valid\":100", "\"valid\":99", "does not add up");
	assert_changed_refused("\"filtered\":5", "\"filtered\":6", "does not add up");
	/* 2^64 more is the same in 64 bits. */
	assert_changed_refused(
		"\"received\":105,\"valid\":100,\"damaged\":0,\"lost\":0,\"duplicate\":0",
		"\"received\":104,\"valid\":100,\"damaged\":0,\"lost\":0,"
		"\"duplicate\":\"18446744073709551615\"",
		"does not add up");
	assert_changed_refused("\"stream\":0", "\"stream\":65536", "id is not from 0");
	assert_changed_refused("\"streams\":[", "\"streams\":[7,", "missing");
	assert_changed_refused("\"streams\":[", "\"streams\":{},\"s\":[", "no list");
	assert_changed_refused(
		"\"streams\":[{",
		"\"streams\":[{\"stream\":3,\"frames\":{\"sent\":1,"
		"\"received\":1,\"valid\":1,\"damaged\":0,\"lost\":0,\"duplicate\":0,"
		"\"reordered\":0}},{",
		"more valid frames than");
}

/* In no stream of its own, and in no other's: it is still lost. */
static void test_lost_of_no_stream(void **state)
{
	static struct text text, changed;

	for (int failed = 0; failed < 2; failed++) {
		give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
		receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
		memcpy(strstr(text.at, "\"sent\":100"), "\"sent\":105", 10);
		memcpy(strstr(text.at, "\"lost\":0"), "\"lost\":5", 8);
		changed.bytes = 0;
		if (failed) {
			char *at = strstr(text.at, "\"pass\"");

			memcpy(at, "\"fail\"", 6);
			at = strstr(text.at, "\"errors\":[]");
			add(&changed, "%.*s\"errors\":[\"5 frames lost\"]%s", (int)(at - text.at),
			    text.at, at + 11);
		} else {
			add(&changed, "%s", text.at);
		}
		assert_string_equal(give(changed.at, changed.bytes)->why, "");
		join(REPORT_EXIT_FRAMES);
		assert_said(failed ? "b failed: 5 frames lost" : "b lost 5 frames in all");
		teardown(state);
		setup(state);
	}
}

/* A result that the rest of the object denies. */
static void test_pass_that_is_none(void **state)
{
	assert_changed_refused("\"errors\":[]", "\"errors\":[\"the card fell off\"]",
			       "\"errors\" say");
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"conflicts\":3",
			       "\"conflicts\" say");
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"saved\":{\"missed\":1}",
			       "\"missed\" say");
	assert_changed_refused(
		"\"errors\":[]",
		"\"errors\":[],\"stages\":[{\"state\":\"passed\"},{\"state\":\"failed\"}]",
		"\"stages\" say");
	assert_changed_refused("\"capture\"", "\"replay\",\"sender\":{\"errors\":5}",
			       "\"errors\" say");
	assert_changed_refused("\"duplicate\":0,\"reordered\":0}}",
			       "\"duplicate\":0,\"reordered\":3}}", "more reordered frames than");
}

static void test_too_many_streams(void **state)
{
	static struct text text;

	begin(&text, "capture", "pass", 2);
	add(&text, "\"frames\":{\"sent\":0," NULLS "},\"filtered\":0,\"untracked\":0,\"errors\":[],"
		   "\"streams\":[0");
	for (int i = 0; i < GDRCAP_STREAMS_MAX; i++)
		add(&text, ",0");
	add(&text, "]}");
	memcpy(strstr(text.at, "\"received\":null"), "\"received\":   0", 15);
	assert_refused(text.at, "at most 1024");
}

/* Sums beyond 64 bits are unknown, and not small. */
static void test_overflow(void **state)
{
	const uint64_t half = 1ull << 63;

	static struct text text;
	static const char *const of[] = { "\"9223372036854775808\"", "9223372036854775807" };

	for (uint32_t i = 0; i < 3; i++) {
		begin(&text, "capture", "pass", i);
		add(&text,
		    "\"frames\":{\"sent\":%s,\"received\":%s,\"valid\":%s,\"damaged\":0,\"lost\":0,"
		    "\"duplicate\":0,\"reordered\":0},\"filtered\":0,\"untracked\":0,\"errors\":[],"
		    "\"streams\":[{\"stream\":%u,\"frames\":{\"sent\":%s,\"received\":%s,\"valid\":%s,"
		    "\"damaged\":0,\"lost\":0,\"duplicate\":0,\"reordered\":0}}]}",
		    of[i > 0], of[i > 0], of[i > 0], i, of[i > 0], of[i > 0], of[i > 0]);
		assert_string_equal(give(text.at, text.bytes)->why, "");
		assert_int_equal(inputs[i].total.of[MERGE_VALID].count, half - (i > 0));
	}
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_VALID);
	assert_unknown(MERGE_SENT);
	assert_count(MERGE_DAMAGED, 0);
}

/* A session that receives another's stream, and sends frames of a program's own. */
static void test_program_that_answers(void **state)
{
	static struct text text, changed;
	const char *at;

	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	receiver(&text, 2, (struct row[]){ { 0, 97, 97, 0, 0 } }, 1, 0);
	at = strstr(text.at, "\"capture\"");
	assert_non_null(at);
	changed.bytes = 0;
	add(&changed, "%.*s\"loopback\",\"sender\":null%s", (int)(at - text.at), text.at, at + 9);
	assert_string_equal(give(changed.at, changed.bytes)->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_LOST, 3);
	assert_not_said("of 2 senders");
	assert_int_equal(merge.streams[0].senders, 1);
}

/* A receiver whose frames nobody judged: images, or a consumer of the caller's own. */
static void test_not_judged(void **state)
{
	static struct text text;

	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	begin(&text, "capture", "pass", 2);
	add(&text, "\"frames\":{\"sent\":0,\"received\":100,\"valid\":null,\"damaged\":null,"
		   "\"lost\":null,\"duplicate\":null,\"reordered\":null},\"filtered\":0,"
		   "\"untracked\":null,\"errors\":[],\"streams\":[]}");
	assert_string_equal(give(text.at, text.bytes)->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_VALID);
	assert_unknown(MERGE_LOST);
	assert_count(MERGE_RECEIVED, 100);
	teardown(state);
	setup(state);
	assert_string_equal(give(text.at, text.bytes)->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
}

/* Frames of streams that no list has. */
static void test_list_is_cut(void **state)
{
	static struct text text;
	char *at;

	receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 }, { 1, 100, 100, 0, 0 } }, 2, 0);
	at = strstr(text.at, ",{\"stream\":1");
	assert_non_null(at);
	strcpy(at, "]}\n");
	assert_string_equal(give(text.at, strlen(text.at))->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_count(MERGE_VALID, 200);
	assert_unknown(MERGE_LOST);
	assert_unknown(MERGE_SENT);
}

/* Frames without numbers: second copies may stand for lost ones. And too many streams for a receiver. */
static void test_unnumbered_and_untracked(void **state)
{
	static struct text text;

	give_sender(1, (struct row[]){ { .id = 0, .sent = 100 } }, 1, 0);
	begin(&text, "capture", "pass", 2);
	add(&text,
	    "\"frames\":{\"sent\":100,\"received\":100,\"valid\":100,\"damaged\":0,\"lost\":null,"
	    "\"duplicate\":null,\"reordered\":null},\"filtered\":0,\"untracked\":null,"
	    "\"errors\":[],\"streams\":[{\"stream\":0,\"frames\":{\"sent\":100,"
	    "\"received\":100,\"valid\":100,\"damaged\":0,\"lost\":null,\"duplicate\":null,"
	    "\"reordered\":null}}]}");
	assert_string_equal(give(text.at, text.bytes)->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
	assert_unknown(MERGE_DUPLICATE);
	assert_said("have no numbers");
	teardown(state);
	setup(state);
	receiver(&text, 2, (struct row[]){ { 0, 100, 100, 0, 0 } }, 1, 0);
	memcpy(strstr(text.at, "\"untracked\":0"), "\"untracked\":5", 13);
	assert_string_equal(give(text.at, text.bytes)->why, "");
	join(REPORT_EXIT_FRAMES);
	assert_unknown(MERGE_LOST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_pass),
		TEST(test_tail_is_lost),
		TEST(test_one_file),
		TEST(test_one_file_more_damaged_than_lost),
		TEST(test_damaged_fill_gaps),
		TEST(test_damaged_elsewhere),
		TEST(test_spread_adds_up),
		TEST(test_spread_same_half),
		TEST(test_spread_end_alone),
		TEST(test_spread_is_unknown),
		TEST(test_runs_apart),
		TEST(test_spread_came_twice),
		TEST(test_file_played),
		TEST(test_file_played_contradicts),
		TEST(test_random),
		TEST(test_machine_gave_nothing),
		TEST(test_cut_off),
		TEST(test_json_lines),
		TEST(test_lines_of_two_runs),
		TEST(test_bad_line_by_number),
		TEST(test_far_apart),
		TEST(test_no_receiver),
		TEST(test_twice),
		TEST(test_contradictions),
		TEST(test_same_stream_of_two),
		TEST(test_hostile),
		TEST(test_lost_of_no_stream),
		TEST(test_pass_that_is_none),
		TEST(test_too_many_streams),
		TEST(test_overflow),
		TEST(test_program_that_answers),
		TEST(test_not_judged),
		TEST(test_list_is_cut),
		TEST(test_unnumbered_and_untracked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
