/* SPDX-License-Identifier: BSD-3-Clause */
/* Silence, and how long something is waited for, of receivers that do what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_eal.h>

#include "nap.h"
#include "session/quiet.h"
#include "capture/rx_worker.h"

#define RECEIVERS 2u
#define BLOCKED_MS 20u

static struct rx_worker rx[RECEIVERS];
static struct quiet quiet;
static _Atomic bool end;

/* The counters of a receiver are the test's; its thread only is there. */
static void receiver_run(void *arg)
{
	(void)arg;
	while (!atomic_load(&end))
		nap();
}

static uint64_t receiver_rounds(const void *arg)
{
	const struct rx_worker *worker = arg;

	return atomic_load(&worker->frames) + atomic_load(&worker->idle);
}

static int scene_begin(void **state)
{
	struct gdrcap_error error;

	(void)state;
	memset(rx, 0, sizeof(rx));
	atomic_store(&end, false);
	for (uint32_t i = 0; i < RECEIVERS; i++) {
		rx[i].thread.rounds = receiver_rounds;
		if (thread_start(&rx[i].thread, "receiver", NULL, receiver_run, &rx[i], &error) < 0)
			return -1;
	}
	quiet_init(&quiet, rx, RECEIVERS);
	return 0;
}

static int scene_end(void **state)
{
	(void)state;
	atomic_store(&end, true);
	for (uint32_t i = 0; i < RECEIVERS; i++)
		thread_join(&rx[i].thread);
	return 0;
}

static void polls(uint32_t i, uint64_t empty)
{
	atomic_fetch_add(&rx[i].empty, empty);
	atomic_fetch_add(&rx[i].idle, empty);
}

static void frames(uint32_t i, uint64_t n)
{
	atomic_fetch_add(&rx[i].frames, n);
}

/* However long nobody listens. */
static bool is_over_in_time(uint32_t ms)
{
	bool over = false;

	for (uint32_t i = 0; i < 100; i++) {
		over |= quiet_is_over(&quiet, ms);
		nap();
	}
	return over;
}

static void test_time_alone_is_no_silence(void **state)
{
	(void)state;
	assert_false(is_over_in_time(1));
	polls(0, 1000);
	assert_false(is_over_in_time(1));
	polls(1, QUIET_LOOKS - 1);
	assert_false(is_over_in_time(1));
}

static void test_each_looks_before_and_after_the_time(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECEIVERS; i++)
		polls(i, QUIET_LOOKS);
	while (quiet.step != QUIET_AFTER)
		assert_false(is_over_in_time(1));
	polls(1, QUIET_LOOKS);
	assert_false(is_over_in_time(1));
	polls(0, QUIET_LOOKS - 1);
	assert_false(is_over_in_time(1));
	polls(0, 1);
	assert_true(quiet_is_over(&quiet, 1));
}

static void test_time_counts_from_the_looks(void **state)
{
	const uint32_t for_ever = 3600000;

	(void)state;
	is_over_in_time(0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < RECEIVERS; i++)
			polls(i, QUIET_LOOKS);
		assert_false(is_over_in_time(for_ever));
	}
	/* As if it were over: looks before do not count. */
	assert_false(quiet_is_over(&quiet, 0));
	for (uint32_t i = 0; i < RECEIVERS; i++)
		polls(i, QUIET_LOOKS);
	assert_true(quiet_is_over(&quiet, 0));
	quiet_begin(&quiet);
	assert_false(is_over_in_time(0));
}

static void test_idle_receiver_without_room_has_not_looked(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECEIVERS; i++)
		atomic_fetch_add(&rx[i].idle, 1000000);
	assert_false(is_over_in_time(0));
}

static void test_port_that_is_never_silent(void **state)
{
	(void)state;
	polls(1, 1000);
	frames(0, QUIET_FRAMES - 1);
	assert_false(is_over_in_time(0));
	frames(0, 1);
	assert_false(is_over_in_time(0));
	polls(1, QUIET_LOOKS);
	frames(0, QUIET_FRAMES);
	assert_true(quiet_is_over(&quiet, 0));
}

static void test_who_cannot_look_is_not_waited_for(void **state)
{
	(void)state;
	atomic_store(&rx[0].phase, RX_PAUSE);
	polls(1, QUIET_LOOKS);
	assert_false(is_over_in_time(0));
	polls(1, QUIET_LOOKS);
	assert_true(quiet_is_over(&quiet, 0));
	/* Threads that have left. */
	quiet_begin(&quiet);
	scene_end(NULL);
	assert_false(quiet_is_over(&quiet, 0));
	nap();
	assert_true(is_over_in_time(0));
	quiet_init(&quiet, rx, 0);
	nap();
	assert_true(quiet_is_over(&quiet, 0));
}

/* Both go their rounds, without room for what is at their ports. */
static bool is_blocked(void)
{
	for (uint32_t i = 0; i < RECEIVERS; i++)
		atomic_fetch_add(&rx[i].idle, 1);
	nap();
	return quiet_is_blocked(&quiet, BLOCKED_MS);
}

static void test_blocked_receivers(void **state)
{
	(void)state;
	/* Without a round it may as well have no core. */
	while (quiet.room.starved_ns < 3000000u * BLOCKED_MS)
		assert_false(quiet_is_blocked(&quiet, BLOCKED_MS));
	while (!is_blocked())
		;
	/* One that gets on is not blocked. */
	for (uint32_t n = 0; n < 5000; n++) {
		frames(1, 1);
		assert_false(is_blocked());
	}
	/* Nor is one that has looked. */
	for (uint32_t i = 0; i < RECEIVERS; i++)
		polls(i, QUIET_LOOKS);
	for (uint32_t n = 0; n < 5000; n++)
		assert_false(is_blocked());
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

static void test_patience(void **state)
{
	struct patience patience;

	(void)state;
	patience_begin(&patience);
	assert_true(patience_ends(&patience, 0, NULL, NULL));
	assert_false(patience_ends(&patience, 3600000, NULL, NULL));
	/* Hours in which nobody looked count as one look. */
	patience.look_ns -= UINT64_C(3600000000000);
	assert_false(patience_ends(&patience, 1000, NULL, NULL));
	assert_true(patience_ends(&patience, 100, NULL, NULL));
	patience_begin(&patience);
	while (patience.starved_ns < 50000000u) {
		assert_false(patience_ends(&patience, 1, always, NULL));
		nap();
	}
	while (!patience_ends(&patience, 50, NULL, NULL))
		nap();
	assert_true(patience.spent_ns >= 50000000u);
}

static int gpu_set_up(void **state)
{
	char *arguments[] = { "test", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", NULL };

	(void)state;
	return rte_eal_init(6, arguments) < 0 ? -1 : 0;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)
	const struct CMUnitTest tests[] = {
		CASE(test_time_alone_is_no_silence),
		CASE(test_each_looks_before_and_after_the_time),
		CASE(test_time_counts_from_the_looks),
		CASE(test_idle_receiver_without_room_has_not_looked),
		CASE(test_port_that_is_never_silent),
		CASE(test_who_cannot_look_is_not_waited_for),
		CASE(test_blocked_receivers),
		CASE(test_patience),
	};

	return cmocka_run_group_tests(tests, gpu_set_up, NULL);
}
