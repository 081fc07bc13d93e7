/* SPDX-License-Identifier: BSD-3-Clause */
/* Which numbers of a stream came, as the verdict keeps it: ranges.c under verdict.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pattern/frame.h"
#include "verdict/verdict.h"
#include "verdict_records.h"

static struct verdict verdict;
static struct gdrcap_numbers rows[GDRCAP_RANGES_STREAM_MOST];

static int setup(void **state)
{
	return verdict_create(&verdict, 1, &(struct verdict_config){ .ranges = true });
}

static int teardown(void **state)
{
	verdict_destroy(&verdict);
	return 0;
}

static void came(uint16_t stream, uint64_t sequence, uint16_t count)
{
	add(&verdict, 0, record_of(stream, sequence, count, FRAME_VALID, 1));
}

/* Returns how many rows there are, or why there are none. */
static int rows_of(uint32_t index)
{
	return verdict_stream_ranges(&verdict, verdict_listed(&verdict, index), rows,
				     GDRCAP_RANGES_STREAM_MOST);
}

static void assert_row(uint32_t i, uint64_t first, uint64_t length, uint64_t step, uint64_t times)
{
	assert_true(rows[i].first == first && rows[i].length == length && rows[i].step == step &&
		    rows[i].times == times);
}

static void test_whole(void **state)
{
	for (uint64_t i = 0; i < 3 * SEQUENCE_WINDOW / 256; i++)
		came(3, 256 * i, 256);
	assert_int_equal(rows_of(0), -EAGAIN);
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), 1);
	assert_row(0, 0, 3 * SEQUENCE_WINDOW, 0, 1);
}

/* Every third frame, and two of five, go elsewhere. */
static void test_in_turn(void **state)
{
	for (uint64_t i = 0; i < 5000000; i++) {
		if (i % 3 != 1)
			came(0, i, 1);
		if (i % 5 == 4)
			came(1, i, 1);
	}
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), 2);
	assert_row(0, 0, 1, 0, 1);
	assert_row(1, 2, 2, 3, 1666666);
	assert_int_equal(rows_of(1), 1);
	assert_row(0, 4, 1, 5, 1000000);
}

/* Late, twice, damaged: a number came, once. */
static void test_what_came(void **state)
{
	came(0, 0, 10);
	came(0, 20, 10);
	came(0, 5, 1);
	came(0, 15, 2);
	add(&verdict, 0, record_of(0, 12, 1, FRAME_DAMAGED_PAYLOAD, 1));
	add(&verdict, 0, record_of(0, 13, 1, FRAME_DAMAGED_HEADER, 0));
	came(0, 12, 1);
	came(7, 1000, 1);
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), 4);
	assert_row(0, 0, 10, 0, 1);
	assert_row(1, 12, 1, 0, 1);
	assert_row(2, 15, 2, 0, 1);
	assert_row(3, 20, 10, 0, 1);
	assert_int_equal(rows_of(1), 1);
	assert_row(0, 1000, 1, 0, 1);
}

/* A lone number far away is nobody's, until the stream goes on there; so is a first one. */
static void test_doubt(void **state)
{
	came(0, 5000000, 1);
	came(0, 0, 10);
	came(0, 100000, 1);
	came(0, 10, 10);
	came(1, 0, 10);
	came(1, 100000, 1);
	came(1, 100001, 1);
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), 1);
	assert_row(0, 0, 20, 0, 1);
	assert_int_equal(rows_of(1), 2);
	assert_row(1, 100000, 2, 0, 1);
}

/* Jumps over more than the window: blocks that were not used have nothing. */
static void test_jumps(void **state)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		came(0, at, 2);
		at += SEQUENCE_WINDOW / 8 * (1 + i % 20);
	}
	verdict_finish(&verdict);
	assert_true(rows_of(0) > 50);
	at = 0;
	for (uint64_t i = 0, row = 0, t = 0; i < 1000; i++, t++) {
		if (t == rows[row].times) {
			t = 0;
			row++;
		}
		assert_true(rows[row].first + t * rows[row].step == at && rows[row].length == 2);
		at += SEQUENCE_WINDOW / 8 * (1 + i % 20);
	}
}

static void test_restart_is_unknown(void **state)
{
	struct frame_record first = record_of(0, 0, 100, FRAME_VALID, 1);

	first.detail = 7;
	add(&verdict, 0, first);
	first.detail = 8;
	add(&verdict, 0, first);
	came(0, 100, 10);
	came(1, 0, 5);
	verdict_finish(&verdict);
	assert_int_equal(verdict.restarts, 1);
	assert_int_equal(rows_of(0), -ENODATA);
	assert_int_equal(rows_of(1), 1);
	assert_int_equal(verdict.ranges->given_up, 1);
}

/* No two gaps alike: a row for each. */
static void scatter(uint16_t stream, uint32_t count)
{
	for (uint64_t i = 0, at = 0; i < count; i++, at += 3 + i % 3)
		came(stream, at, (uint16_t)(1 + i % 2));
}

static void test_too_many_of_a_stream(void **state)
{
	scatter(0, GDRCAP_RANGES_STREAM_MOST);
	scatter(1, GDRCAP_RANGES_STREAM_MOST + 1);
	came(2, 0, 5);
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), GDRCAP_RANGES_STREAM_MOST);
	assert_int_equal(rows_of(1), -ENODATA);
	assert_int_equal(rows_of(2), 1);
	assert_int_equal(verdict.ranges->given_up, 1);
}

/* What is left goes to others; who finds none is given up, and what it had is there for them. */
static void test_too_many_in_all(void **state)
{
	uint32_t kept = 0;

	for (uint16_t s = 0; s < 6; s++)
		scatter(s, GDRCAP_RANGES_STREAM_MOST - RANGES_CHUNK);
	verdict_finish(&verdict);
	for (uint32_t s = 0; s < 6; s++)
		kept += rows_of(s) == GDRCAP_RANGES_STREAM_MOST - RANGES_CHUNK;
	assert_int_equal(kept, 4);
	assert_int_equal(verdict.ranges->given_up, 2);
}

/* What does not add up is not believed. */
static void test_count_is_checked(void **state)
{
	struct ranges *ranges = ranges_take(verdict.ranges);

	ranges_add(ranges, 5, 10);
	ranges_add(ranges, 20, 10);
	ranges_finish(ranges, 20);
	assert_int_equal(ranges->count, 1);
	assert_false(ranges->given_up);
	ranges_restart(ranges);
	ranges_add(ranges, 5, 10);
	ranges_finish(ranges, 11);
	assert_true(ranges->given_up);
	assert_int_equal(ranges->count, 0);
}

static void test_not_asked_for(void **state)
{
	verdict_destroy(&verdict);
	assert_int_equal(verdict_create(&verdict, 1, &(struct verdict_config){ 0 }), 0);
	came(0, 0, 5);
	verdict_finish(&verdict);
	assert_int_equal(rows_of(0), -ENODATA);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_whole),
		CASE(test_in_turn),
		CASE(test_what_came),
		CASE(test_doubt),
		CASE(test_jumps),
		CASE(test_restart_is_unknown),
		CASE(test_too_many_of_a_stream),
		CASE(test_too_many_in_all),
		CASE(test_count_is_checked),
		CASE(test_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
