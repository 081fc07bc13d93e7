/* SPDX-License-Identifier: BSD-3-Clause */
/* app/merge: what files say, joined by stream. Texts in, counts and reasons out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"
#include "merge_rows.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
