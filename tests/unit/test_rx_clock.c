/* SPDX-License-Identifier: BSD-3-Clause */
/* Ticks to time: the line through what was measured, while both clocks drift, are set and fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rx_clock_scene.h"

/* Both clocks drift, differently from time to time; most readings are interrupted. */
static void drift(void **state)
{
	uint64_t last = 0, ticks, ns, before;
	struct rx_clock clock;

	fake.smooth = 3;
	fake.uneven = true;
	clock = opened();
	for (unsigned int i = 0; i < 300; i++) {
		if (i % 40 == 0)
			fake.rate *= 1e-6L * (long double)(999980 + random_below(&fake.random, 41));
		for (unsigned int k = 0; k < 20; k++) {
			pass(50000000 + random_below(&fake.random, 2000));
			ns = rx_clock_ns(&clock, card());
			assert_true(ns >= last);
			last = ns;
			/* 20 ppm are new at most, and are worked off. */
			is_right(&clock, i % 40 < 20 ? 60000 : 3000);
		}
		/* One that is asked for before and after the measurement, and one after it. */
		ticks = card();
		before = rx_clock_ns(&clock, ticks);
		pass(random_below(&fake.random, 1000000));
		rx_clock_renew(&clock);
		assert_in_range(apart(rx_clock_ns(&clock, ticks), before), 0, 50);
		ns = rx_clock_ns(&clock, card());
		assert_true(ns >= before && ns >= last);
		last = ns;
	}
	assert_true(clock.ns_a_tick * (double)fake.rate > 1 - 1e-6);
	assert_true(clock.ns_a_tick * (double)fake.rate < 1 + 1e-6);
}

/* Nobody asked for long. */
static void long_pause(void **state)
{
	const uint64_t began = fake.up;
	struct rx_clock clock = opened();

	/* Whatever signals come. */
	assert_true(fake.up - began >= 50000000);
	for (unsigned int i = 0; i < 12; i++) {
		pass(NS << i);
		rx_clock_renew(&clock);
		is_right(&clock, 1000);
	}
}

/* No measurement is better than one that was interrupted at each try. */
static void only_interrupted(void **state)
{
	struct rx_clock clock = opened(), was;

	for (unsigned int i = 0; i < 30; i++) {
		pass(NS);
		rx_clock_renew(&clock);
	}
	is_right(&clock, 100);
	was = clock;
	fake.latency = 400000;
	fake.uneven = true;
	pass(NS);
	rx_clock_renew(&clock);
	assert_true(clock.ticks == was.ticks && clock.slope == was.slope);
	is_right(&clock, 200);
}

static void system_clock_is_set(void **state)
{
	struct rx_clock clock = opened(), other;

	for (unsigned int i = 0; i < 10; i++) {
		pass(NS);
		rx_clock_renew(&clock);
		if (i == 5)
			fake.day += 3600 * NS;
	}
	/* The times go on as if it had not been; who begins now takes the new one. */
	assert_in_range(apart(rx_clock_ns(&clock, card()), now() - 3600 * NS), 0, 10000);
	other = opened();
	is_right(&other, 20000);
}

static void card_is_reset(void **state)
{
	struct rx_clock clock = opened();
	double rate;

	for (unsigned int i = 0; i < 10; i++) {
		pass(NS);
		rx_clock_renew(&clock);
	}
	rate = clock.ns_a_tick;
	fake.card = 5000;
	pass(1000);
	rx_clock_renew(&clock);
	is_right(&clock, 1000);
	assert_true(clock.ns_a_tick == rate);
	pass(NS);
	is_right(&clock, 3000);
	/* Forwards, too. */
	fake.card += 2e6L * fake.rate;
	rx_clock_renew(&clock);
	is_right(&clock, 1000);
}

static void card_answers_no_more(void **state)
{
	struct rx_clock clock = opened(), was;
	static const int codes[] = { -EIO, EINVAL, -ENODEV };

	pass(NS);
	rx_clock_renew(&clock);
	for (unsigned int i = 0; i < 3; i++) {
		was = clock;
		fake.clock_error = codes[i];
		fake.error_after = fake.reads + i;
		pass(NS);
		rx_clock_renew(&clock);
		assert_true(clock.ticks == was.ticks && clock.ns == was.ns);
		assert_true(clock.slope == was.slope && clock.measured == was.measured);
		is_right(&clock, 100000);
	}
}

/* Not before its time. */
static void renewed_each_second(void **state)
{
	struct rx_clock clock = opened();
	unsigned int reads = fake.reads;

	fake.hz = (uint64_t)1 << 60; /* a second is long */
	rx_clock_renew(&clock);
	assert_int_equal(fake.reads, reads);
	clock.renewed -= fake.hz;
	rx_clock_renew(&clock);
	assert_true(fake.reads > reads);
	reads = fake.reads;
	rx_clock_renew(&clock);
	assert_int_equal(fake.reads, reads);
}

/* A counter of 63 bits, and one of 64 that comes round. */
static void counter_is_long(void **state)
{
	static const long double starts[] = { 0x1p63L - 1e9L, 0x1p64L - 1e9L, 0x1p64L - 2e7L };

	fake.rate = 1;
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t last = 0, ns;
		struct rx_clock clock;

		fake.card = starts[i];
		clock = opened();
		for (unsigned int k = 0; k < 30; k++) {
			pass(NS / 10);
			if (k % 10 == 0)
				rx_clock_renew(&clock);
			is_right(&clock, 20000);
			ns = rx_clock_ns(&clock, card());
			assert_true(ns > last);
			last = ns;
		}
	}
	assert_true(card() < 0x1p63L);
}

/* Far from where the line goes through, ns count as they do near it. */
static void exact_far_away(void **state)
{
	const uint64_t far[] = { 1, 1000, NS, DAY, 200 * DAY + 1, 1000 * DAY + 3 };
	struct rx_clock clock;

	fake.rate = 1;
	fake.latency = 0;
	clock = opened();
	for (unsigned int i = 0; i < 6; i++) {
		const uint64_t ticks = clock.ticks + far[i], past = clock.ticks - far[i];

		assert_true(rx_clock_ns(&clock, ticks) == clock.ns + far[i]);
		assert_true(rx_clock_ns(&clock, ticks + 1) == clock.ns + far[i] + 1);
		if (far[i] < clock.ticks)
			assert_true(rx_clock_ns(&clock, past) == clock.ns - far[i]);
	}
	assert_true(rx_clock_ns(&clock, 0) == 0);
}

/* The one of this machine. */
static void cpu(void **state)
{
	struct rx_clock clock = { .port = RX_CLOCK_CPU };
	const uint64_t slack = 1000000; /* the system's clock is kept by somebody */
	struct timespec time;
	uint64_t before, ns, last = 0;

	fake.on = false;
	assert_int_equal(rx_clock_open(&clock, NULL), 0);
	assert_false(clock.real_time);
	for (int i = 0; i < 20; i++) {
		clock_gettime(CLOCK_REALTIME, &time);
		before = (uint64_t)time.tv_sec * NS + (uint64_t)time.tv_nsec;
		ns = rx_clock_ns(&clock, rte_rdtsc());
		clock_gettime(CLOCK_REALTIME, &time);
		assert_true(ns + slack > before);
		assert_true(ns < (uint64_t)time.tv_sec * NS + (uint64_t)time.tv_nsec + slack);
		assert_true(ns > last);
		last = ns;
		rx_clock_renew(&clock);
	}
	assert_true(rx_clock_ns(&clock, 0) == 0);
	/* Before it was opened, too: a second of ticks. */
	ns = rx_clock_ns(&clock, clock.ticks - (uint64_t)(1e9 / clock.ns_a_tick));
	assert_in_range(clock.ns - ns, NS - slack, NS + slack);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drift),
		TEST(long_pause),
		TEST(only_interrupted),
		TEST(system_clock_is_set),
		TEST(card_is_reset),
		TEST(card_answers_no_more),
		TEST(renewed_each_second),
		TEST(counter_is_long),
		TEST(exact_far_away),
		TEST(cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
