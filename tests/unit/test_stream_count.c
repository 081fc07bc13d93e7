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

static uint64_t word;

static void *ends(void *arg)
{
	for (int i = 0; i < 1000; i++)
		stream_count_end(&word);
	return NULL;
}

/* Nothing of the count is lost, and the end stays. */
static void at_once(void **state)
{
	pthread_t thread;

	for (int round = 0; round < 50; round++) {
		word = 0;
		assert_int_equal(pthread_create(&thread, NULL, ends, NULL), 0);
		for (uint64_t i = 0; i < 1000; i++)
			stream_count_add(&word, 3);
		pthread_join(thread, NULL);
		assert_true(stream_count_ended(word));
		assert_int_equal(stream_count_of(word), 3000);
	}
}

#define THINGS 20000u

struct litmus {
	uint64_t word, wrong;
	uint64_t thing[THINGS]; /* plain: the word's barriers are all there is */
	uint32_t stop;
	pthread_t thread;
};

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
	}
}

static void order(void **state)
{
	static struct litmus litmus;

	assert_int_equal(pthread_create(&litmus.thread, NULL, litmus_wait, &litmus), 0);
	for (uint64_t i = 0; i < THINGS; i++) {
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
