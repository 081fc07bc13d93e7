/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When frames are due: against exact rational arithmetic, over as many frames as a long run has;
 * gap errors against a list that is sorted; what text is a rate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "number_set.h"
#include "replay/pacing.h"

#define HZ 2596123457ull /* a TSC's, with no round factor */

static void init(struct pacing *pacing, enum pacing_kind kind, double value)
{
	const struct pacing_config config = { kind, value };

	pacing_init(pacing, &config, HZ);
}

/* ---- times ---- */

/* Due at the exact tick number / by, rounded down; or at the one before where that is less than a
 * millionth away. */
static void due_exactly(uint64_t due, unsigned __int128 number, uint64_t by)
{
	const uint64_t exact = (uint64_t)(number / by);

	if (due == exact)
		return;
	assert_true(due + 1 == exact);
	assert_true(number % by < by / 1000000 + 1);
}

/* `frames` frames of mixed lengths. */
static void bits_exact(uint64_t rate, uint64_t frames)
{
	static const uint32_t lengths[] = { 60, 1514, 9212, 61, 508, 60, 14 };
	struct pacing pacing;
	unsigned __int128 bytes = 0;

	init(&pacing, PACING_BITS, (double)rate);
	for (uint64_t i = 0; i < frames; i++) {
		const uint32_t length = lengths[i % 7];
		const uint64_t due = pacing_next(&pacing, length, 0);

		/* A division takes longer than all of pacing_next(). */
		if (i % 1009 == 0 || i + 1 == frames)
			due_exactly(due, bytes * 8 * HZ, rate);
		bytes += length + PACING_WIRE_OVERHEAD;
	}
}

static void rates_do_not_drift(void **state)
{
	bits_exact(1000000, 100000000);
	bits_exact(9500000000, 10000000);
	bits_exact(100000000000, 100000000);
	bits_exact(10000000, 10000000);
	bits_exact(333333333, 10000000);
	bits_exact(399999999999, 10000000);
	bits_exact(1, 1000);
}

static void frames_a_second(void **state)
{
	static const uint64_t rates[] = { 1, 7, 1000, 1999999, 148809524, 1000000000 };

	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		struct pacing pacing;

		init(&pacing, PACING_FRAMES, (double)rates[r]);
		for (uint64_t i = 0; i < 3000000; i++) {
			const uint64_t due = pacing_next(&pacing, 60 + i % 1000, 0);

			due_exactly(due, (unsigned __int128)i * HZ, rates[r]);
		}
	}
}

/* A share of a rate is no whole number. */
static void shares(void **state)
{
	struct pacing third, whole;
	uint64_t due = 0, all = 0;

	init(&third, PACING_BITS, 1e10 / 3);
	init(&whole, PACING_BITS, 1e10);
	for (uint64_t i = 0; i < 10000000; i++) {
		due = pacing_next(&third, 1514, 0);
		all = pacing_next(&whole, 1514, 0);
	}
	assert_in_range(due, 3 * all - 3, 3 * all + 3);
}

static void original_times(void **state)
{
	static const double factors[] = { 1, 2, 0.5, 10, 0.25 };
	uint64_t random = 5;

	for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
		struct pacing pacing;
		uint64_t ns = 0, due;

		init(&pacing, PACING_ORIGINAL, factors[f]);
		for (uint64_t i = 0; i < 2000000; i++) {
			/* Looking does not change it. */
			due = pacing_due(&pacing, ns);
			assert_true(pacing_next(&pacing, 60, ns) == due);
			due_exactly(due, (unsigned __int128)ns * HZ,
				    (uint64_t)(factors[f] * 1000000000));
			ns += random_below(&random, i % 100 ? 2000 : 2000000000);
		}
	}
}

static void steps_back_are_gaps_of_none(void **state)
{
	struct pacing pacing;
	uint64_t due;

	init(&pacing, PACING_ORIGINAL, 1);
	pacing_next(&pacing, 60, 1000000);
	due = pacing_next(&pacing, 60, 5000000);
	assert_true(pacing_next(&pacing, 60, 2000000) == due);
	assert_true(pacing_next(&pacing, 60, 5000000) == due);
	assert_true(pacing_next(&pacing, 60, 5001000) > due);
}

/* Times of hostile files, and rates that are next to none, end up far away, not in the past. */
static void far_times_saturate(void **state)
{
	static const uint64_t times[] = { 0, 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX };
	struct pacing pacing;
	uint64_t last = 0;

	init(&pacing, PACING_ORIGINAL, 1e-6);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		const uint64_t due = pacing_next(&pacing, 60, times[i]);

		assert_true(due >= last && due <= INT64_MAX);
		last = due;
	}
	assert_true(last >= (uint64_t)1 << 61);
	init(&pacing, PACING_BITS, 1e-300);
	last = 0;
	for (int i = 0; i < 1000000; i++) {
		const uint64_t due = pacing_next(&pacing, 9212, 0);

		assert_true(due >= last && due <= INT64_MAX);
		last = due;
	}
}

/* ---- who is due ---- */

static void only_who_is_due(void **state)
{
	const uint64_t due[] = { 0, 100, 100, 250 };
	struct pacing pacing;

	init(&pacing, PACING_BITS, 1e9);
	pacing_start(&pacing, 1000);
	assert_int_equal(pacing_ready(&pacing, due, 4, 1000, 0), 1);
	assert_int_equal(pacing_ready(&pacing, due, 4, 1099, 0), 1);
	assert_int_equal(pacing_ready(&pacing, due, 4, 1100, 0), 3);
	assert_int_equal(pacing_ready(&pacing, due + 1, 3, 1099, 0), 0);
	assert_int_equal(pacing_ready(&pacing, due + 1, 3, 1099, 1), 2);
	assert_int_equal(pacing_ready(&pacing, due + 1, 3, 5000, 0), 3);
	assert_int_equal(pacing_ready(&pacing, due + 1, 1, 5000, 0), 1);
	assert_true(pacing.base_tsc == 1000 && atomic_load(&pacing.rebased) == 0);
}

static void lag_is_given_up(void **state)
{
	const uint64_t lag = HZ / 1000 * PACING_LAG_MS;
	const uint64_t due[] = { 10, 20, lag, 2 * lag };
	struct pacing pacing;

	init(&pacing, PACING_BITS, 1e9);
	pacing_start(&pacing, 7);
	/* As late as may be: all that was missed at once. */
	assert_int_equal(pacing_ready(&pacing, due, 4, 7 + 10 + lag, 0), 3);
	assert_int_equal(atomic_load(&pacing.rebased), 0);
	/* Later: the timeline goes on from here. */
	assert_int_equal(pacing_ready(&pacing, due, 4, 7 + 10 + lag + 1, 0), 1);
	assert_int_equal(atomic_load(&pacing.rebased), 1);
	assert_int_equal(pacing_ready(&pacing, due + 1, 3, 7 + 10 + lag + 1 + 9, 0), 0);
	assert_int_equal(pacing_ready(&pacing, due + 1, 3, 7 + 10 + lag + 1 + 10, 0), 1);
	assert_int_equal(atomic_load(&pacing.rebased), 1);

	/* A file's own times are kept, however late. */
	init(&pacing, PACING_ORIGINAL, 1);
	pacing_start(&pacing, 7);
	assert_int_equal(pacing_ready(&pacing, due, 4, 7 + 50 * lag, 0), 4);
	assert_int_equal(atomic_load(&pacing.rebased), 0);
	assert_true(pacing.base_tsc == 7);
}

/* ---- gaps ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void near_above(uint64_t value, uint64_t exact)
{
	assert_in_range(value, exact, exact + exact / 8);
}

/* Gaps with known errors, handed over one by one, in two senders. */
static void percentiles(void **state)
{
	enum { COUNT = 100000 };
	const struct pacing_config config = { PACING_FRAMES, 1e6 };
	struct pacing pacing[2];
	const struct pacing *const both[] = { &pacing[0], &pacing[1] };
	uint64_t *error = malloc(COUNT * sizeof(*error));
	struct pacing_gaps gaps;
	uint64_t random = 9;

	assert_non_null(error);
	for (int round = 0; round < 4; round++) {
		uint64_t now[2] = { 1000000, 5000000 }, due[2] = { 0, 0 };

		pacing_init(&pacing[0], &config, 1000000000); /* a tick is a ns */
		pacing_init(&pacing[1], &config, 1000000000);
		for (int p = 0; p < 2; p++)
			pacing_sent(&pacing[p], &due[p], 1, now[p]);
		for (uint32_t i = 0; i < COUNT; i++) {
			const int p = i & 1;
			const uint64_t gap = 5000000;

			error[i] = round == 0	? 0
				   : round == 1 ? i % 7
				   : round == 2 ? random_below(&random, 4000000)
						: 1ull << random_below(&random, 22);
			due[p] += gap;
			/* Too late and too early. */
			now[p] += i & 2 ? gap + error[i] : gap - error[i];
			pacing_sent(&pacing[p], &due[p], 1, now[p]);
		}
		qsort(error, COUNT, sizeof(*error), compare);
		pacing_gaps(both, 2, &gaps);
		assert_int_equal(gaps.count, COUNT);
		assert_int_equal(atomic_load(&pacing[0].gaps), COUNT / 2);
		near_above(gaps.p50_ns, error[COUNT / 2 - 1]);
		near_above(gaps.p99_ns, error[COUNT / 100 * 99 - 1]);
		assert_int_equal(gaps.max_ns, error[COUNT - 1]);
	}
	free(error);
}

/* Frames handed over together are 0 apart. */
static void gaps_in_a_burst(void **state)
{
	const uint64_t due[] = { 0, 1000, 3000, 3000 };
	const struct pacing_config config = { PACING_FRAMES, 1 };
	struct pacing pacing;
	const struct pacing *one = &pacing;
	struct pacing_gaps gaps;

	pacing_init(&pacing, &config, 1000000000);
	pacing_gaps(&one, 1, &gaps);
	assert_int_equal(gaps.count, 0);
	pacing_sent(&pacing, due, 4, 50000);
	pacing_gaps(&one, 1, &gaps);
	assert_int_equal(gaps.count, 3);
	assert_int_equal(gaps.max_ns, 2000);
	near_above(gaps.p50_ns, 1000);
	/* The first of the next call is compared with the last of this one. */
	pacing_sent(&pacing, (const uint64_t[]){ 10000 }, 1, 50000 + 7000 + 100000);
	pacing_gaps(&one, 1, &gaps);
	assert_int_equal(gaps.count, 4);
	assert_int_equal(gaps.max_ns, 100000);
	pacing_sent(&pacing, due, 0, 60000);
	assert_int_equal(atomic_load(&pacing.gaps), 4);
}

static void late_frames(void **state)
{
	const uint64_t due[] = { 0, 1000, 3000 };
	const struct pacing_config config = { PACING_FRAMES, 1 };
	struct pacing pacing;

	pacing_init(&pacing, &config, 1000000000);
	pacing_start(&pacing, 100);
	pacing_handed(&pacing, due, 3, 100);
	assert_int_equal(atomic_load(&pacing.late), 0);
	pacing_handed(&pacing, due, 3, 100 + 1500);
	assert_int_equal(atomic_load(&pacing.late), 2);
	assert_int_equal(atomic_load(&pacing.late_max_ns), 1500);
	assert_int_equal(atomic_load(&pacing.gaps), 0);
}

/* ---- text ---- */

static void rate_texts(void **state)
{
	static const struct {
		const char *text;
		enum pacing_kind kind;
		double value;
	} good[] = {
		{ "max", PACING_NONE, 0 },	    { "9.5gbit", PACING_BITS, 9.5e9 },
		{ "100mbit", PACING_BITS, 1e8 },    { "1bit", PACING_BITS, 1 },
		{ "64kbit", PACING_BITS, 64e3 },    { "0.4tbit", PACING_BITS, 4e11 },
		{ "2mpps", PACING_FRAMES, 2e6 },    { "500kpps", PACING_FRAMES, 5e5 },
		{ "1000pps", PACING_FRAMES, 1000 }, { "0.5pps", PACING_FRAMES, 0.5 },
		{ ".5gbit", PACING_BITS, 5e8 },
	};
	static const char *const bad[] = {
		"",
		"gbit",
		"0gbit",
		"0pps",
		"-1gbit",
		"+1gbit",
		"1e9bit",
		"nanbit",
		"infbit",
		"1",
		"1 gbit",
		"1gbits",
		" 1gbit",
		"1gbit ",
		"1..gbit",
		"1.2.3bit",
		".bit",
		"0x1bit",
		"99999999tbit",
		"maximum",
		"1,5gbit",
		"0.00001pps",
		"1000000000000000000000000000000000000000000000000000bit",
	};
	struct pacing_config config;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(pacing_parse_rate(good[i].text, &config), 0);
		assert_int_equal(config.kind, good[i].kind);
		assert_true(config.value == good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(pacing_parse_rate(bad[i], &config) < 0);
}

static void speed_texts(void **state)
{
	static const char *const bad[] = { "",	  "x",	  "0x", "0",	      "-2x",	 "2xx",
					   "2 x", "1e3x", "2X", "0.0000001x", "1000001x" };
	struct pacing_config config;

	assert_int_equal(pacing_parse_speed("2x", &config), 0);
	assert_true(config.kind == PACING_ORIGINAL && config.value == 2);
	assert_int_equal(pacing_parse_speed("0.5x", &config), 0);
	assert_true(config.kind == PACING_ORIGINAL && config.value == 0.5);
	assert_int_equal(pacing_parse_speed("10", &config), 0);
	assert_true(config.kind == PACING_ORIGINAL && config.value == 10);
	assert_int_equal(pacing_parse_speed("max", &config), 0);
	assert_int_equal(config.kind, PACING_NONE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(pacing_parse_speed(bad[i], &config) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_do_not_drift),
		cmocka_unit_test(frames_a_second),
		cmocka_unit_test(shares),
		cmocka_unit_test(original_times),
		cmocka_unit_test(steps_back_are_gaps_of_none),
		cmocka_unit_test(far_times_saturate),
		cmocka_unit_test(only_who_is_due),
		cmocka_unit_test(lag_is_given_up),
		cmocka_unit_test(percentiles),
		cmocka_unit_test(gaps_in_a_burst),
		cmocka_unit_test(late_frames),
		cmocka_unit_test(rate_texts),
		cmocka_unit_test(speed_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
