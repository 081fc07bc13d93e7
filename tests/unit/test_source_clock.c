/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of files: when it moves on, and that a source sees what was closed before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "capture/ring_producer.h"
#include "capture/source_clock.h"

#define SOURCES 2u
#define STEP 10u
#define LAPS 20000u

static struct ring_producer ring[SOURCES];
static struct ring_producer *rings[SOURCES] = { &ring[0], &ring[1] };
static struct source_clock clock_;
static bool stuck;

static int scene_begin(void **state)
{
	(void)state;
	memset(ring, 0, sizeof(ring));
	memset(&clock_, 0, sizeof(clock_));
	clock_.step_ns = STEP;
	clock_.count = SOURCES;
	clock_.rings = rings;
	return 0;
}

static uint64_t next(void)
{
	return source_clock_next(&clock_, &stuck);
}

static void earliest_of_all(void **state)
{
	uint64_t now;

	(void)state;
	/* the other source has not said when its next frame is due */
	source_clock_hold(&clock_, 0, 1000, false);
	assert_int_equal(next(), 0);
	source_clock_hold(&clock_, 1, 1003, false);
	assert_int_equal(next(), 1000);
	source_clock_set(&clock_, 1000, UINT64_MAX);
	assert_int_equal(source_clock_limit(&clock_, &now), 1000 + STEP);
	assert_int_equal(now, 1000);
	/* an image is over sooner */
	source_clock_set(&clock_, 1000, 1004);
	assert_int_equal(source_clock_limit(&clock_, &now), 1003);
	source_clock_set(&clock_, 1000, UINT64_MAX);
	assert_int_equal(clock_.began, 1000);
	/* what it says is of then, until it says more */
	assert_int_equal(next(), 1000);
	source_clock_hold(&clock_, 0, 2000, false);
	assert_int_equal(next(), 1003);
	source_clock_set(&clock_, 1003, UINT64_MAX);
	assert_int_equal(clock_.began, 1000);
	source_clock_hold(&clock_, 1, SOURCE_CLOCK_OVER, false);
	assert_int_equal(next(), 2000);
	source_clock_hold(&clock_, 0, SOURCE_CLOCK_OVER, false);
	assert_int_equal(next(), 1003);
}

static void after_its_bursts(void **state)
{
	(void)state;
	source_clock_hold(&clock_, 1, SOURCE_CLOCK_OVER, false);
	ring[0].burst = 3;
	source_clock_hold(&clock_, 0, 1000, false);
	atomic_store(&ring[0].accounted, 2);
	assert_int_equal(next(), 0);
	atomic_store(&ring[0].accounted, 3);
	assert_int_equal(next(), 1000);
}

/* The frame that is due first waits for a buffer. */
static void is_stuck(void **state)
{
	(void)state;
	source_clock_set(&clock_, 1000, UINT64_MAX);
	source_clock_hold(&clock_, 0, 1005, true);
	source_clock_hold(&clock_, 1, 1002, false);
	(void)next();
	assert_false(stuck);
	source_clock_hold(&clock_, 1, 1020, false);
	(void)next();
	assert_true(stuck);
	source_clock_go(&clock_, 0);
	(void)next();
	assert_false(stuck);
	/* the clock has to come there first */
	source_clock_hold(&clock_, 0, 1000 + STEP + 1, true);
	(void)next();
	assert_false(stuck);
}

/* ---- three threads ---- */

static _Atomic uint64_t closed; /* up to then; relaxed: the accountant's, before TIME */
static _Atomic uint64_t published[SOURCES];
static _Atomic uint32_t early;
static _Atomic uint64_t placed[SOURCES]; /* up to then; relaxed: a source's, before HOLD */

static void *source_run(void *arg)
{
	const uint32_t i = (uint32_t)(uintptr_t)arg;

	for (uint64_t lap = 1, now; lap <= LAPS; lap++) {
		const uint64_t due = lap * (STEP + 1 + i);

		source_clock_hold(&clock_, i, due, false);
		while (source_clock_limit(&clock_, &now) < due)
			sched_yield();
		atomic_fetch_add(&early,
				 atomic_load_explicit(&closed, memory_order_relaxed) < due - STEP);
		atomic_store_explicit(&placed[i], due, memory_order_relaxed);
		atomic_store_explicit(&published[i], ++ring[i].burst, memory_order_release);
	}
	source_clock_hold(&clock_, i, SOURCE_CLOCK_OVER, false);
	return NULL;
}

static void threads(void **state)
{
	pthread_t thread[SOURCES];
	uint64_t now = 0;

	(void)state;
	atomic_store(&closed, 0);
	for (uintptr_t i = 0; i < SOURCES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, source_run, (void *)i), 0);
	while (now < LAPS * (STEP + SOURCES)) {
		uint64_t then;

		for (uint32_t i = 0; i < SOURCES; i++)
			atomic_store(&ring[i].accounted, atomic_load(&published[i]));
		then = next();
		if (then == now) {
			sched_yield();
			continue;
		}
		/* no source has placed a frame that is due after the limit */
		for (uint32_t i = 0; i < SOURCES; i++)
			assert_true(atomic_load_explicit(&placed[i], memory_order_relaxed) <=
				    now + STEP);
		now = then;
		atomic_store_explicit(&closed, now, memory_order_relaxed);
		source_clock_set(&clock_, now, UINT64_MAX);
	}
	for (uint32_t i = 0; i < SOURCES; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(early, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(earliest_of_all, scene_begin),
		cmocka_unit_test_setup(after_its_bursts, scene_begin),
		cmocka_unit_test_setup(is_stuck, scene_begin),
		cmocka_unit_test_setup(threads, scene_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
