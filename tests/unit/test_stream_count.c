/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A count that streams wait for: the driver's comparison, the run's end, and COUNT and ENOUGH between CPU threads.
 * test_send_gpu_mutants.py builds it with the thread sanitizer, which finds a weakened barrier on any CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "base/stream_count.h"

#define ENOUGH STREAM_COUNT_ENOUGH

/* Each wait goes when its number is reached, not before, and at the end all go, however far ahead. */
static void reached(void **state)
{
	const uint64_t counts[] = { 0, 1, 2, 1000, UINT32_MAX, UINT64_C(1) << 48, ENOUGH - 1 };

	for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const uint64_t count = counts[i];

		assert_true(stream_count_reached(count, count));
		assert_true(stream_count_reached(count, 0));
		assert_false(stream_count_reached(count, count + 1));
		assert_false(stream_count_reached(count, ENOUGH + count));
		/* of what is ahead: the largest that the calls take */
		assert_true(stream_count_reached(count | ENOUGH, count + 1));
		assert_true(stream_count_reached(count | ENOUGH, ENOUGH));
		assert_true(stream_count_reached(count | ENOUGH, ENOUGH - 1));
		assert_int_equal(stream_count_of(count | ENOUGH), count);
		assert_true(stream_count_ended(count | ENOUGH));
		assert_false(stream_count_ended(count));
	}
	/* With bit 63 for the end, a wait for what is there would never go: what the bit must not be. */
	assert_false(stream_count_reached((UINT64_C(1) << 63) + 1, 1));
}

#define ENDS 20000u

static uint64_t word;
static uint32_t adds_stop; /* by atomics */

static void *adds(void *arg)
{
	uint64_t *added = arg;

	for (; !__atomic_load_n(&adds_stop, __ATOMIC_RELAXED); *added += 3)
		stream_count_add(&word, 3);
	return NULL;
}

/* The end stays whatever is added in the same moment, and nothing of the count is lost. */
static void at_once(void **state)
{
	uint64_t added = 0;
	uint32_t lost = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, adds, &added), 0);
	for (uint32_t i = 0; i < ENDS; i++) {
		const uint64_t before = __atomic_load_n(&word, __ATOMIC_RELAXED);

		stream_count_end(&word);
		/* until something was added to it */
		for (uint64_t seen = before; stream_count_of(seen) == before && !lost;) {
			seen = __atomic_load_n(&word, __ATOMIC_RELAXED);
			lost += !stream_count_ended(seen);
		}
		__atomic_fetch_and(&word, ~ENOUGH, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&adds_stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
	assert_int_equal(word, added);
}

#define THINGS 20000u

struct litmus {
	uint64_t word, wrong;
	uint64_t thing[THINGS]; /* plain: the word's barriers are all there is */
	uint32_t stop;
	uint64_t taken; /* relaxed: so that the two go side by side, and nothing else orders them */
	pthread_t thread;
};

#define APART 100u

/* As a stream with a kernel behind each wait. */
static void *litmus_wait(void *arg)
{
	struct litmus *litmus = arg;

	for (uint64_t seq = 0;; seq++) {
		uint64_t seen;

		while (!stream_count_reached(
			seen = __atomic_load_n(&litmus->word, __ATOMIC_ACQUIRE), seq + 1))
			sched_yield();
		if (stream_count_of(seen) <= seq) {
			litmus->wrong += !litmus->stop;
			return NULL;
		}
		litmus->wrong += litmus->thing[seq] != seq + 1;
		__atomic_store_n(&litmus->taken, seq + 1, __ATOMIC_RELAXED);
	}
}

static void order(void **state)
{
	static struct litmus litmus;

	assert_int_equal(pthread_create(&litmus.thread, NULL, litmus_wait, &litmus), 0);
	for (uint64_t i = 0; i < THINGS; i++) {
		while (i > __atomic_load_n(&litmus.taken, __ATOMIC_RELAXED) + APART)
			sched_yield();
		litmus.thing[i] = i + 1;
		stream_count_add(&litmus.word, 1);
	}
	litmus.stop = 1;
	stream_count_end(&litmus.word);
	pthread_join(litmus.thread, NULL);
	assert_int_equal(litmus.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reached),
		cmocka_unit_test(at_once),
		cmocka_unit_test(order),
	};

	return cmocka_run_group_tests_name("stream_count", tests, NULL, NULL);
}
