/* SPDX-License-Identifier: BSD-3-Clause */
/* sequence.c against a set that forgets nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "number_set.h"
#include "verdict/ranges.h"
#include "verdict/sequence.h"

#define WINDOW ((uint64_t)SEQUENCE_WINDOW)
#define STEPS 20000

struct pair {
	struct sequence real;
	struct sequence_model model;
	bool from_zero;
};

static struct ranges_pool *pool;

static void pair_init(struct pair *pair, bool from_zero)
{
	struct ranges *ranges;

	if (!pool)
		pool = ranges_pool_create();
	assert_non_null(pool);
	pool->count = 0;
	ranges = ranges_take(pool);
	ranges_restart(ranges);
	memset(pair, 0, sizeof(*pair));
	pair->from_zero = from_zero;
	sequence_init(&pair->real, from_zero);
	assert_int_equal(sequence_open(&pair->real), 0);
	sequence_keep(&pair->real, ranges);
}

/* In order, none twice, and all that were seen. */
static void check_ranges(const struct pair *pair)
{
	static struct gdrcap_numbers rows[RANGES_STREAM_MOST];
	const struct ranges *ranges = sequence_ranges(&pair->real);
	uint64_t end = 0, numbers = 0;

	sequence_finish((struct sequence *)(uintptr_t)&pair->real);
	assert_false(ranges->given_up);
	ranges_copy(ranges, rows, RANGES_STREAM_MOST);
	for (uint32_t i = 0; i < ranges->count; i++) {
		assert_true(rows[i].first >= end && rows[i].length && rows[i].times);
		assert_true(rows[i].times == 1 || rows[i].step > rows[i].length);
		for (uint64_t t = 0; t < rows[i].times; t++)
			for (uint64_t n = 0; n < rows[i].length; n++, numbers++)
				assert_true(*number_slot(&pair->model.seen,
							 rows[i].first + t * rows[i].step + n));
		end = rows[i].first + (rows[i].times - 1) * rows[i].step + rows[i].length;
	}
	assert_true(numbers == pair->model.seen.used);
}

static void pair_free(struct pair *pair)
{
	if (pair->model.seen.used)
		check_ranges(pair);
	sequence_free(&pair->real);
	number_set_free(&pair->model.seen);
}

/* Returns the new ones. */
static uint32_t pair_mark(struct pair *pair, uint64_t s, uint32_t count)
{
	uint32_t expected = 0, got;

	for (uint32_t i = 0; i < count; i++)
		expected += sequence_model_add(&pair->model, s + i, WINDOW);
	got = sequence_mark(&pair->real, s, count);
	if (got != expected)
		print_error("mark(%#llx, %u): newest %#llx\n", (unsigned long long)s, count,
			    (unsigned long long)pair->model.newest);
	assert_int_equal(got, expected);
	assert_true(pair->real.unique == pair->model.seen.used);
	assert_true(sequence_expected(&pair->real) ==
		    sequence_model_expected(&pair->model, pair->from_zero));
	return got;
}

static void in_order_is_all_new(void **state)
{
	struct pair pair;

	pair_init(&pair, true);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(pair_mark(&pair, 256ull * i, 256), 256);
	pair_free(&pair);
}

static void losses_are_the_difference(void **state)
{
	struct pair pair;

	pair_init(&pair, true);
	pair_mark(&pair, 3, 2); /* 0, 1, 2 are lost: the sender began with 0 */
	pair_mark(&pair, 10, 1);
	assert_int_equal(sequence_expected(&pair.real) - pair.real.unique, 8);
	pair_free(&pair);
	pair_init(&pair, false);
	pair_mark(&pair, 3, 2); /* nobody knows of 0, 1, 2 */
	assert_int_equal(sequence_expected(&pair.real) - pair.real.unique, 0);
	pair_mark(&pair, 1, 1); /* now 1 is known, and so 2 */
	assert_int_equal(sequence_expected(&pair.real) - pair.real.unique, 1);
	pair_free(&pair);
}

static void window_is_exact(void **state)
{
	for (int zero = 0; zero < 2; zero++) {
		struct pair pair;

		pair_init(&pair, zero);
		pair_mark(&pair, 5 * WINDOW, 1);
		assert_int_equal(pair_mark(&pair, 4 * WINDOW, 1), 0);
		assert_int_equal(pair_mark(&pair, 4 * WINDOW + 1, 1), 1);
		assert_int_equal(pair_mark(&pair, 4 * WINDOW + 1, 1), 0);
		/* The bits of the numbers one window before are not taken for them. */
		assert_int_equal(pair_mark(&pair, 5 * WINDOW + 1, 1), 1);
		assert_int_equal(pair_mark(&pair, 6 * WINDOW + 1, 1), 1);
		assert_int_equal(pair_mark(&pair, 5 * WINDOW + 2, 1), 1);
		pair_free(&pair);
	}
}

static void restart_forgets(void **state)
{
	struct pair pair;

	pair_init(&pair, false);
	pair_mark(&pair, 5 * WINDOW, 70);
	number_set_free(&pair.model.seen);
	memset(&pair.model, 0, sizeof(pair.model));
	sequence_restart(&pair.real, false);
	assert_int_equal(pair_mark(&pair, 3 * WINDOW + 20, 3), 3);
	assert_int_equal(pair_mark(&pair, 3 * WINDOW, 70), 67);
	pair_free(&pair);
}

/* Memory is taken for the second number; the first is not forgotten over it. */
static void opened_for_the_second(void **state)
{
	for (int zero = 0; zero < 2; zero++) {
		struct sequence one;

		sequence_init(&one, zero);
		assert_int_equal(sequence_mark(&one, 777, 1), 1);
		assert_null(one.window);
		assert_int_equal(sequence_open(&one), 0);
		assert_int_equal(sequence_mark(&one, 777, 1), 0);
		assert_int_equal(sequence_mark(&one, 775, 4), 3);
		assert_true(sequence_expected(&one) == (zero ? 779 : 4));
		sequence_free(&one);
	}
}

/* A record that begins before the newest and ends after it. */
static void run_across_the_newest(void **state)
{
	struct pair pair;

	pair_init(&pair, true);
	pair_mark(&pair, 10, 10);
	assert_int_equal(pair_mark(&pair, 5, 30), 20);
	pair_free(&pair);
}

static void largest_numbers(void **state)
{
	struct pair pair;

	pair_init(&pair, true);
	pair_mark(&pair, 0, 100);
	pair_mark(&pair, UINT64_MAX - 3, 1);
	assert_int_equal(pair_mark(&pair, UINT64_MAX - 1, 1), 1);
	assert_int_equal(pair_mark(&pair, UINT64_MAX - 1, 1), 0);
	assert_int_equal(pair_mark(&pair, UINT64_MAX, 1), 0);
	assert_int_equal(pair_mark(&pair, UINT64_MAX - 5, 6), 3);
	/* Nothing begins anew afterwards. */
	assert_int_equal(pair_mark(&pair, 0, 100), 0);
	assert_int_equal(pair_mark(&pair, 200, 1), 0);
	pair_free(&pair);
	pair_init(&pair, false);
	assert_int_equal(pair_mark(&pair, UINT64_MAX, 1), 0);
	assert_int_equal(pair_mark(&pair, UINT64_MAX - 7, 8), 7);
	pair_free(&pair);
}

static uint64_t back(uint64_t at, uint64_t by)
{
	return by < at ? at - by : 0;
}

static uint64_t ahead(uint64_t at, uint64_t by)
{
	return by < UINT64_MAX - at ? at + by : UINT64_MAX;
}

/* Mostly the next one; also gaps, steps back, and more than a window either way. */
static uint64_t wander(uint64_t *random, uint64_t at)
{
	switch (random_below(random, 40)) {
	case 0:
		return ahead(at, WINDOW - 300 + random_below(random, 600));
	case 1:
		return back(at, WINDOW - 300 + random_below(random, 600));
	case 2:
		return ahead(at, WINDOW + random_below(random, 3 * WINDOW));
	case 3:
		return back(at, random_below(random, 3 * WINDOW));
	case 4 ... 12:
		return back(at, random_below(random, 700));
	case 13 ... 18:
		return ahead(at, random_below(random, 700));
	default:
		return at;
	}
}

static void random_walks(void **state)
{
	static const uint64_t bases[] = { 0,
					  1,
					  WINDOW - 100,
					  WINDOW * 7 + 3,
					  1ull << 32,
					  1ull << 63,
					  UINT64_MAX - 100,
					  UINT64_MAX - 2 * WINDOW,
					  UINT64_MAX - 40 * WINDOW };

	for (size_t b = 0; b < 2 * sizeof(bases) / sizeof(bases[0]); b++) {
		uint64_t random = b, at = bases[b / 2];
		struct pair pair;

		pair_init(&pair, b & 1);
		for (int i = 0; i < STEPS; i++) {
			uint32_t count = (uint32_t)random_below(&random, 256) + 1;

			at = wander(&random, at);
			/* A record never goes on after the largest number: kernels/frame_records.h */
			if (count - 1 > UINT64_MAX - at)
				count = (uint32_t)(UINT64_MAX - at) + 1;
			pair_mark(&pair, at, count);
			at = ahead(at, count);
		}
		pair_free(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_is_all_new), cmocka_unit_test(losses_are_the_difference),
		cmocka_unit_test(window_is_exact),     cmocka_unit_test(run_across_the_newest),
		cmocka_unit_test(largest_numbers),     cmocka_unit_test(random_walks),
		cmocka_unit_test(restart_forgets),     cmocka_unit_test(opened_for_the_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
