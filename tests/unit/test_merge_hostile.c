/* SPDX-License-Identifier: BSD-3-Clause */
/* app/merge: files that do not belong together, that deny themselves, and that are no summaries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"
#include "merge_rows.h"

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
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"bits\":{\"wrong\":50}",
			       "\"wrong\" say");
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"damage\":[{}]", "\"damage\" say");
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"lost_by\":{\"in_run\":50}",
			       "\"lost_by.in_run\" say");
	assert_changed_refused("\"errors\":[]", "\"errors\":[],\"in_flight\":3",
			       "\"in_flight\" say");
	assert_changed_refused("\"errors\":[],", "", "\"errors\" are no list");
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
