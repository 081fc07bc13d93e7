/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that sleeps is woken up: ARM and WAKE of base/wake.h, played by two threads that meet at every
 * step. The one that brings work makes one piece at a time, and the next when that was taken: a wake-up
 * that is lost is never made good. Both ways of fencing, both ways of sleeping.
 *
 * Usage: test_wake [fences|membarriers SECONDS]: only that play, for so long: test_wake_mutants.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rest.h"
#include "base/wake.h"
#include "nap.h"
#include "test_long.h"

/* As many pieces as PLAY_NS are enough for, LEAST at least. */
#define PLAY_NS (test_cases(10, 1) * 100000000)
#define LEAST 200u
#define LOST_US 10000000u /* nothing takes so long */

static uint64_t play_ns;

struct play {
	struct wake wake;
	_Atomic uint64_t brought, taken, reached; /* reached: the sleeper is about to arm */
	_Atomic int stop;
	_Atomic uint64_t sleeps;
};

static void spin(uint32_t times)
{
	for (volatile uint32_t i = 0; i < times; i++)
		;
}

/* Until it is `value`, or more: at once where both threads have a core. */
static void meet(_Atomic uint64_t *word, uint64_t value)
{
	for (uint32_t i = 0; atomic_load_explicit(word, memory_order_relaxed) < value; i++)
		if (i > 10000)
			nap();
}

static void *bring(void *arg)
{
	struct play *play = arg;
	uint32_t seed = 1, delay = 100;
	uint64_t piece = 0, sleeps = 0;

	while (!atomic_load(&play->stop)) {
		meet(&play->reached, piece + 1);
		/* Before the sleeper's ARM it finds the piece, after it, it sleeps: towards the point
		 * where it does either. */
		seed = seed * 1664525 + 1013904223;
		spin(delay + (seed >> 28));
		/* A plain store on x86. */
		atomic_store_explicit(&play->brought, ++piece, memory_order_release);
		wake_look(&play->wake);
		meet(&play->taken, piece);
		if (atomic_load(&play->sleeps) == sleeps)
			delay++;
		else if (delay)
			delay--;
		sleeps = atomic_load(&play->sleeps);
	}
	return NULL;
}

static bool is_there(struct play *play, uint64_t next)
{
	return atomic_load_explicit(&play->brought, memory_order_acquire) > next;
}

static void wait_for(struct play *play, uint64_t next)
{
	while (!is_there(play, next)) {
		const uint64_t since = now_ns();
		uint32_t ticket;

		assert_true(wake_arm(&play->wake, &ticket));
		if (is_there(play, next))
			break;
		atomic_fetch_add(&play->sleeps, 1);
		wake_sleep(&play->wake, ticket, LOST_US, -1);
		if (now_ns() - since >= UINT64_C(1000) * LOST_US)
			fail_msg("piece %llu, which is %s, woke nobody", (unsigned long long)next,
				 is_there(play, next) ? "there" : "not there");
	}
}

static void play_through(bool by_membarrier, bool by_fd)
{
	static struct play play;
	const uint64_t until = now_ns() + play_ns;
	bool before;
	pthread_t other;
	uint64_t next = 0;

	memset(&play, 0, sizeof(play));
	wake_init(&play.wake);
	before = wake_by_membarrier;
	/* Where the kernel has none both plays are of fences. */
	wake_by_membarrier &= by_membarrier;
	if (by_fd)
		assert_int_equal(wake_use_fd(&play.wake), 0);
	assert_int_equal(pthread_create(&other, NULL, bring, &play), 0);
	for (; next < LEAST || now_ns() < until; next++) {
		atomic_store_explicit(&play.reached, next + 1, memory_order_relaxed);
		wait_for(&play, next);
		atomic_store_explicit(&play.taken, next + 1, memory_order_release);
	}
	atomic_store(&play.stop, 1);
	/* It may be about to bring one more. */
	atomic_store(&play.reached, next + 1);
	atomic_store(&play.taken, next + 1);
	pthread_join(other, NULL);
	print_message("%s, %s: %llu pieces, %llu sleeps\n",
		      wake_by_membarrier ? "membarrier" : "fences", by_fd ? "eventfd" : "futex",
		      (unsigned long long)next, (unsigned long long)atomic_load(&play.sleeps));
	assert_true(atomic_load(&play.sleeps) > 0);
	wake_by_membarrier = before;
	wake_close(&play.wake);
}

static void none_is_lost(void **state)
{
	for (int way = 0; way < 4; way++)
		play_through(way & 1, way & 2);
}

static void fences(void **state)
{
	play_through(false, false);
}

static void membarriers(void **state)
{
	play_through(true, false);
}

static void steps(void **state)
{
	for (int by_fd = 0; by_fd < 2; by_fd++) {
		struct wake wake;
		uint32_t ticket;

		wake_init(&wake);
		if (by_fd)
			assert_int_equal(wake_use_fd(&wake), 0);
		/* Nobody sleeps. */
		wake_look(&wake);
		wake_look(NULL);
		assert_int_equal(wake.word, 0);
		assert_true(wake_arm(&wake, &ticket));
		assert_int_equal(wake.word, 1);
		wake_look(&wake);
		assert_int_equal(wake.word, 2);
		/* Once is enough. */
		wake_look(&wake);
		assert_int_equal(wake.word, 2);
		/* It was woken before it slept: else this test does not end in time. */
		assert_false(wake_sleep(&wake, ticket, 3600000000u, -1));
		/* Nobody wakes it. */
		assert_true(wake_arm(&wake, &ticket));
		assert_int_equal(ticket, 3);
		assert_false(wake_sleep(&wake, ticket, 1000, -1));
		wake_close(&wake);
	}
}

static void *sleep_twice(void *arg)
{
	struct play *play = arg;

	for (uint64_t next = 0; next < 2; next++) {
		atomic_fetch_add(&play->reached, 1);
		wait_for(play, next);
		atomic_fetch_add(&play->taken, 1);
	}
	return NULL;
}

/* Both sleep on one wake; each piece wakes both. */
static void two_sleepers(void **state)
{
	static struct play play;
	pthread_t sleepers[2];

	wake_init(&play.wake);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&sleepers[i], NULL, sleep_twice, &play), 0);
	for (uint64_t piece = 1; piece <= 2; piece++) {
		meet(&play.reached, 2 * piece);
		atomic_store_explicit(&play.brought, piece, memory_order_release);
		wake_look(&play.wake);
		meet(&play.taken, 2 * piece);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(sleepers[i], NULL);
}

/* ---- rest.h ---- */

static void rests(void **state)
{
	struct wake wake;
	struct rest rest;
	uint32_t idle = REST_POLLS;

	rest_init(&rest, NULL);
	assert_false(rest_step(&rest, 1000000, 1));
	wake_init(&wake);
	rest_init(&rest, &wake);
	assert_false(rest_step(&rest, REST_POLLS - 1, 1));
	/* One more look, and then it sleeps. */
	assert_true(rest_step(&rest, idle++, 3600000000u));
	assert_true(rest.armed);
	wake_look(&wake);
	assert_true(rest_step(&rest, idle++, 3600000000u));
	assert_false(rest.armed);
	/* Work was found meanwhile: it is to look again. */
	rest.awake_us = 0;
	assert_true(rest_step(&rest, idle++, 1000));
	assert_true(rest.armed);
	assert_true(rest_step(&rest, REST_POLLS, 3600000000u));
	assert_true(rest.armed);
}

/* After short sleeps it stays awake, after long ones less and less. */
static void rests_as_it_learns(void **state)
{
	struct wake wake;
	struct rest rest;
	uint32_t idle = REST_POLLS;
	const int fd = eventfd(1, EFD_NONBLOCK);

	wake_init(&wake);
	assert_int_equal(wake_use_fd(&wake), 0);
	rest_init(&rest, &wake);
	rest.port_fd = fd;
	/* The port ends each at once, unless this thread had no core meanwhile. */
	while (rest.awake_us < REST_AWAKE_MOST_US) {
		rest.port = false;
		while (!rest.port)
			if (!rest_step(&rest, idle++, 3600000000u))
				assert_true(rest.awake_us > 0);
	}
	rest.port_fd = -1;
	for (uint32_t before = rest.awake_us; before; before = rest.awake_us) {
		while (rest.awake_us == before)
			rest_step(&rest, idle++, 2 * REST_SHORT_US);
		assert_true(rest.awake_us <= before / 2);
	}
	wake_close(&wake);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(two_sleepers),
		cmocka_unit_test(none_is_lost),
		cmocka_unit_test(rests),
		cmocka_unit_test(rests_as_it_learns),
	};
	const struct CMUnitTest played[] = { cmocka_unit_test(fences) };
	const struct CMUnitTest barriers[] = { cmocka_unit_test(membarriers) };

	play_ns = argc > 2 ? UINT64_C(1000000000) * strtoull(argv[2], NULL, 10) : PLAY_NS;
	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	return strcmp(argv[1], "fences") == 0 ? cmocka_run_group_tests(played, NULL, NULL)
					      : cmocka_run_group_tests(barriers, NULL, NULL);
}
