/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A consumer that sleeps is woken up: ARM and WAKE of capture/ring_wake.h, played by two threads that
 * meet at every step. The producer makes one burst at a time, and the next when that was taken: a
 * wake-up that is lost is never made good.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "capture/ring_wake.h"
#include "nap.h"
#include "test_long.h"

/* As many bursts as PLAY_NS are enough for, LEAST at least. */
#define PLAY_NS (test_cases(10, 1) * 300000000)
#define LEAST 200u
#define LOST_MS 240000 /* nothing takes so long */

struct play {
	struct ring_wake wake;
	_Atomic uint64_t published, taken, reached; /* reached: the consumer is about to arm */
	_Atomic int ended, stop;
	_Atomic uint64_t sleeps; /* the consumer's */
};

static void spin(uint32_t times)
{
	for (volatile uint32_t i = 0; i < times; i++)
		;
}

/* Until it is `value`: at once where both threads have a core. */
static void meet(_Atomic uint64_t *word, uint64_t value)
{
	for (uint32_t i = 0; atomic_load_explicit(word, memory_order_relaxed) != value; i++)
		if (i > 10000)
			nap();
}

static void *produce(void *arg)
{
	struct play *play = arg;
	uint32_t seed = 1, delay = 100;
	uint64_t burst = 0, sleeps = 0;

	while (!atomic_load(&play->stop)) {
		meet(&play->reached, burst + 1);
		/* Before the consumer's ARM it finds the burst, after it, it sleeps: towards the point
		 * where it does either. */
		seed = seed * 1664525 + 1013904223;
		spin(delay + (seed >> 28));
		/* PUBLISH: a plain store on x86. */
		atomic_store_explicit(&play->published, ++burst, memory_order_release);
		ring_wake_look(&play->wake, burst);
		meet(&play->taken, burst);
		if (atomic_load(&play->sleeps) == sleeps)
			delay++;
		else if (delay)
			delay--;
		sleeps = atomic_load(&play->sleeps);
	}
	atomic_store_explicit(&play->ended, 1, memory_order_release);
	ring_wake_end(&play->wake);
	return NULL;
}

static bool is_there(struct play *play, uint64_t next)
{
	return atomic_load_explicit(&play->published, memory_order_acquire) > next;
}

/* True when burst `next` is there, or none will be. */
static bool is_due(struct play *play, uint64_t next)
{
	const int ended = atomic_load_explicit(&play->ended, memory_order_acquire);

	return is_there(play, next) || ended;
}

/* True when burst `next` is there, false when none will be. As queue_arm() and its callers do. */
static bool wait_for(struct play *play, uint64_t next)
{
	struct pollfd fd = { .fd = ring_wake_fd(&play->wake), .events = POLLIN };

	for (;;) {
		if (ring_wake_arm(&play->wake, next) && is_due(play, next)) {
			ring_wake_disarm(&play->wake);
			break;
		}
		atomic_fetch_add(&play->sleeps, 1);
		if (poll(&fd, 1, LOST_MS) == 0)
			fail_msg("burst %llu, which is %s, woke nobody", (unsigned long long)next,
				 is_there(play, next) ? "there" : "not there");
		if (is_due(play, next))
			break;
	}
	return is_there(play, next);
}

static void none_is_lost(void **state)
{
	static struct play play;
	const uint64_t until = now_ns() + PLAY_NS;
	pthread_t producer;
	uint64_t next = 0;

	assert_true(ring_wake_fd(&play.wake) >= 0);
	assert_int_equal(pthread_create(&producer, NULL, produce, &play), 0);
	for (;; next++) {
		if (next >= LEAST && now_ns() > until)
			atomic_store(&play.stop, 1);
		atomic_store_explicit(&play.reached, next + 1, memory_order_relaxed);
		if (!wait_for(&play, next))
			break;
		atomic_store_explicit(&play.taken, next + 1, memory_order_release);
	}
	pthread_join(producer, NULL);
	print_message("%llu bursts, %llu sleeps\n", (unsigned long long)next,
		      (unsigned long long)atomic_load(&play.sleeps));
	assert_true(atomic_load(&play.sleeps) > 0);
	ring_wake_close(&play.wake);
}

static bool readable(struct ring_wake *wake)
{
	struct pollfd fd = { .fd = ring_wake_fd(wake), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void steps(void **state)
{
	struct ring_wake wake = { 0 };

	/* Nobody asked. */
	ring_wake_look(&wake, 5);
	ring_wake_end(&wake);
	/* Whoever asks is to look first. */
	assert_true(ring_wake_fd(&wake) >= 0);
	assert_int_equal(ring_wake_fd(&wake), wake.fd);
	assert_true(readable(&wake));
	ring_wake_look(&wake, 5);
	assert_true(ring_wake_arm(&wake, 5));
	assert_false(readable(&wake));
	/* Once is enough. */
	assert_false(ring_wake_arm(&wake, 5));
	/* Burst 4 is none that is waited for. */
	ring_wake_look(&wake, 5);
	assert_false(readable(&wake));
	ring_wake_look(&wake, 6);
	assert_true(readable(&wake));
	assert_true(atomic_load(&wake.armed) == 0);
	/* Found at the second look: it stays readable, as there may be more. */
	assert_true(ring_wake_arm(&wake, 7));
	assert_false(readable(&wake));
	ring_wake_disarm(&wake);
	assert_true(readable(&wake));
	assert_true(ring_wake_arm(&wake, 7));
	ring_wake_end(&wake);
	assert_true(readable(&wake));
	ring_wake_close(&wake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(none_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
