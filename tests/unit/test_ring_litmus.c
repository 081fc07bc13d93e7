/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUBLISH/TAKE and DONE/COLLECT between CPU threads: one producer, several consumers. Usage:
 * test_ring_litmus [BURSTS]. The thread sanitizer finds a weakened barrier on any CPU; x86 itself
 * hides one, since it reorders neither stores with stores nor loads with loads (the compiler may).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring_litmus.h"

/* A build with these other than the ring's orders shows that the test can fail. */
#ifndef LITMUS_RELEASE
#define LITMUS_RELEASE __ATOMIC_RELEASE
#endif
#ifndef LITMUS_ACQUIRE
#define LITMUS_ACQUIRE __ATOMIC_ACQUIRE
#endif

static uint64_t bursts = 150000; /* past the end of 16-bit laps of a one-burst ring */

struct consumer {
	const struct litmus *ring;
	uint64_t first, stride, end;
	pthread_t thread;
};

static uint32_t frames_take(const struct litmus *ring, uint64_t burst)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < LITMUS_FRAMES; i++) {
		uint64_t *frame = litmus_frame(ring, burst, i);

		for (uint32_t w = 0; w < LITMUS_WORDS; w++) {
			wrong += frame[w] != litmus_value(burst, w, 0);
			frame[w] = litmus_value(burst, w, 1);
		}
	}
	return wrong;
}

static void *consumer_main(void *argument)
{
	const struct consumer *consumer = argument;
	const struct litmus *ring = consumer->ring;

	for (uint64_t b = consumer->first; b < consumer->end; b += consumer->stride) {
		const uint32_t at = b & ring->burst_mask;
		uint32_t wrong;

		/* TAKE */
		while (!burst_word_is(__atomic_load_n(&ring->ready[at].word, LITMUS_ACQUIRE), b,
				      ring->burst_bits))
			sched_yield();
		wrong = litmus_wrong_words(ring, b) + frames_take(ring, b);
		litmus_answer(ring, b, wrong);
		/* DONE */
		__atomic_store_n(&ring->result[at].done, burst_word(b, ring->burst_bits, 1, 0),
				 LITMUS_RELEASE);
	}
	return NULL;
}

static uint32_t collect(const struct litmus *ring, uint64_t burst)
{
	const uint32_t at = burst & ring->burst_mask;
	uint32_t wrong;

	/* COLLECT */
	while (!burst_word_is(__atomic_load_n(&ring->result[at].done, LITMUS_ACQUIRE), burst,
			      ring->burst_bits))
		sched_yield();
	wrong = litmus_wrong_answer(ring, burst);
	for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
		for (uint32_t w = 0; w < LITMUS_WORDS; w++)
			wrong += litmus_frame(ring, burst, i)[w] != litmus_value(burst, w, 1);
	return wrong;
}

static uint64_t produce(const struct litmus *ring, uint64_t end)
{
	const uint64_t depth = (uint64_t)ring->burst_mask + 1;
	uint64_t wrong = 0;

	for (uint64_t b = 0; b < end + depth; b++) {
		if (b >= depth && b - depth < end)
			wrong += collect(ring, b - depth);
		if (b >= end)
			continue;
		litmus_fill(ring, b);
		for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
			for (uint32_t w = 0; w < LITMUS_WORDS; w++)
				litmus_frame(ring, b, i)[w] = litmus_value(b, w, 0);
		/* PUBLISH */
		__atomic_store_n(&ring->ready[b & ring->burst_mask].word,
				 burst_word(b, ring->burst_bits, LITMUS_FRAMES, litmus_first(b)),
				 LITMUS_RELEASE);
	}
	return wrong;
}

static void litmus_play(uint32_t bits, uint32_t threads)
{
	const size_t depth = (size_t)1 << bits;
	struct litmus ring = {
		.desc = calloc(depth * LITMUS_FRAMES, sizeof(struct frame_desc)),
		.ready = calloc(depth, sizeof(struct burst_ready)),
		.result = calloc(depth, sizeof(struct burst_result)),
		.order = calloc(depth, sizeof(struct burst_order)),
		.frames = calloc(depth * LITMUS_FRAMES * LITMUS_WORDS, sizeof(uint64_t)),
		.burst_mask = (uint32_t)depth - 1,
		.burst_bits = bits,
	};
	struct consumer consumer[4];
	uint64_t wrong;

	assert_true(ring.desc && ring.ready && ring.result && ring.order && ring.frames);
	for (uint32_t t = 0; t < threads; t++) {
		consumer[t] = (struct consumer){ &ring, t, threads, bursts, 0 };
		assert_int_equal(
			pthread_create(&consumer[t].thread, NULL, consumer_main, &consumer[t]), 0);
	}
	wrong = produce(&ring, bursts);
	for (uint32_t t = 0; t < threads; t++)
		pthread_join(consumer[t].thread, NULL);
	free(ring.desc);
	free(ring.ready);
	free(ring.result);
	free(ring.order);
	free(ring.frames);
	if (wrong)
		fail_msg("%llu values of other bursts with %zu bursts and %u consumers",
			 (unsigned long long)wrong, depth, threads);
}

static void test_one_consumer(void **state)
{
	/* one burst in flight; and so few that the 16-bit lap wraps */
	litmus_play(0, 1);
	litmus_play(2, 1);
	litmus_play(8, 1);
}

static void test_several_consumers(void **state)
{
	litmus_play(1, 2);
	litmus_play(3, 3);
	litmus_play(6, 4);
}

static void test_words(void **state)
{
	/* zeroed memory is never ready, nor is the word of a lap before or after */
	for (uint32_t bits = 0; bits <= 12; bits += 3) {
		for (uint64_t burst = 0; burst < 100000; burst += 997) {
			const uint64_t word = burst_word(burst, bits, 256, 0xfffffff0u);
			const uint64_t lap = (uint64_t)1 << bits;

			assert_true(burst_word_is(word, burst, bits));
			assert_false(burst_word_is(word, burst + lap, bits));
			assert_true(burst < lap || !burst_word_is(word, burst - lap, bits));
			assert_int_equal(burst_word_count(word), 256);
			assert_int_equal(burst_word_first(word), 0xfffffff0u);
		}
		assert_false(burst_word_is(0, 0, bits));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_one_consumer),
		cmocka_unit_test(test_several_consumers),
	};

	if (argc > 1)
		bursts = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
