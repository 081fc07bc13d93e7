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

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nap.h"
#include "ring_litmus.h"
#include "test_long.h"

/* A build with these other than the ring's orders shows that the test can fail. */
#ifndef LITMUS_RELEASE
#define LITMUS_RELEASE __ATOMIC_RELEASE
#endif
#ifndef LITMUS_ACQUIRE
#define LITMUS_ACQUIRE __ATOMIC_ACQUIRE
#endif

/* Of a ring, where they are played within PLAY_SECONDS; beside others' work, where a thread waits
 * for its core with each burst, LEAST of them at least. They begin LEAST / 2 before 16-bit laps
 * end. */
static uint64_t bursts;
#define LEAST 1000u
#define PLAY_SECONDS 2
static uint64_t end; /* atomic: no burst from this one on is published */

struct consumer {
	const struct litmus *ring;
	void (*take)(const struct litmus *ring, uint64_t burst, uint64_t *inlines);
	uint64_t first, stride;
	uint64_t inlines; /* bursts whose descriptors came with their word */
	pthread_t thread;
};

/* False: burst `b` does not come any more. */
static bool litmus_wait(uint64_t b, unsigned int *tries)
{
	if (++*tries < 4)
		sched_yield();
	else
		nap();
	return b < __atomic_load_n(&end, __ATOMIC_RELAXED);
}

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

/* As with ordered words. */
static void take_ordered(const struct litmus *ring, uint64_t b, uint64_t *inlines)
{
	const uint32_t at = b & ring->burst_mask;
	unsigned int tries = 0;
	uint32_t wrong;

	/* TAKE */
	while (!burst_word_is(__atomic_load_n(&ring->ready[at].word, LITMUS_ACQUIRE), b,
			      ring->burst_bits))
		if (!litmus_wait(b, &tries))
			return;
	wrong = litmus_wrong_words(ring, b) + frames_take(ring, b);
	litmus_answer(ring, b, wrong);
	/* DONE */
	__atomic_store_n(&ring->result[at].done, burst_word(b, ring->burst_bits, 1, 0),
			 LITMUS_RELEASE);
}

/* As a GPU does: the whole line in any order, here descriptors before their word; an outcome in any
 * order, here its first word first. */
static void take_told(const struct litmus *ring, uint64_t b, uint64_t *inlines)
{
	const uint32_t at = b & ring->burst_mask;
	const struct burst_ready *ready = &ring->ready[at];
	const struct burst_beside *beside = &ring->beside[at];
	struct burst_result *result = &ring->result[at];
	struct burst_plain plain;
	unsigned int tries = 0;
	uint64_t desc[LITMUS_FRAMES], word, lap;
	uint32_t wrong = 0;
	bool marked = true;

	for (;;) {
		for (uint32_t i = LITMUS_FRAMES; i-- > 0;) /* INLINE */
			desc[i] = __atomic_load_n(i < BURST_READY_DESCS
							  ? &ready->desc[i]
							  : &beside->desc[i - BURST_READY_DESCS],
						  __ATOMIC_RELAXED);
		word = __atomic_load_n(&ready->word, LITMUS_ACQUIRE); /* TAKE */
		if (burst_word_is(word, b, ring->burst_bits))
			break;
		if (!litmus_wait(b, &tries))
			return;
	}
	for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
		marked = marked && (word & BURST_INLINE) &&
			 !(desc[i] & BURST_DESC_MARK) == !(word & BURST_INLINE_MARK);
	for (uint32_t i = 0; i < LITMUS_FRAMES && marked; i++) {
		const uint64_t bare = desc[i] & ~BURST_DESC_MARK;
		struct frame_desc seen;

		memcpy(&seen, &bare, sizeof(seen));
		wrong += litmus_wrong_desc(b, i, &seen);
	}
	*inlines += marked;
	wrong += litmus_wrong_words(ring, b);
	for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
		for (uint32_t w = 0; w < LITMUS_WORDS; w++)
			wrong += litmus_frame(ring, b, i)[w] != litmus_value(b, w, 0);
	if (b % 5 == 0) { /* as other bursts */
		litmus_answer(ring, b, wrong);
		burst_publish_records(result, 1, b, ring->burst_bits);
		return;
	}
	plain = litmus_plain(b, wrong);
	/* PLAIN. The frames were read; to a CPU's thread that is no order by itself. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	lap = burst_word(b, ring->burst_bits, 0, 0);
	__atomic_store_n(&result->done, lap | burst_plain_bits(&plain, 0), LITMUS_RELEASE);
	for (uint32_t w = 1; w < BURST_PLAIN_WORDS; w++) {
		if (b % 256 == w) /* time to look at half of it */
			nap();
		__atomic_store_n(&result->plain[w - 1], lap | burst_plain_bits(&plain, w),
				 __ATOMIC_RELAXED);
	}
}

static void *consumer_main(void *argument)
{
	struct consumer *consumer = argument;

	for (uint64_t b = consumer->first; b < __atomic_load_n(&end, __ATOMIC_RELAXED);
	     b += consumer->stride)
		consumer->take(consumer->ring, b, &consumer->inlines);
	return NULL;
}

static uint32_t collect(const struct litmus *ring, uint64_t burst)
{
	const uint32_t at = burst & ring->burst_mask;
	unsigned int tries = 0;
	uint32_t wrong;

	/* COLLECT */
	while (!burst_word_is(__atomic_load_n(&ring->result[at].done, LITMUS_ACQUIRE), burst,
			      ring->burst_bits))
		litmus_wait(burst, &tries);
	wrong = litmus_wrong_answer(ring, burst);
	for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
		for (uint32_t w = 0; w < LITMUS_WORDS; w++)
			wrong += litmus_frame(ring, burst, i)[w] != litmus_value(burst, w, 1);
	return wrong;
}

/* The same of take_told(). */
static uint32_t collect_told(const struct litmus *ring, uint64_t burst)
{
	unsigned int tries = 0;

	while (!burst_is_done(&ring->result[burst & ring->burst_mask], burst, ring->burst_bits))
		litmus_wait(burst, &tries);
	return burst % 5 ? litmus_wrong_plain(ring, burst) : litmus_wrong_answer(ring, burst);
}

static void publish(const struct litmus *ring, uint64_t b, bool told)
{
	struct burst_ready *ready = &ring->ready[b & ring->burst_mask];

	if (told)
		burst_publish(ready, b % 3 ? &ring->beside[b & ring->burst_mask] : NULL,
			      &ring->desc[litmus_first(b) & litmus_desc_mask(ring)], b,
			      ring->burst_bits, LITMUS_FRAMES, litmus_first(b));
	else
		/* PUBLISH */
		__atomic_store_n(&ready->word,
				 burst_word(b, ring->burst_bits, LITMUS_FRAMES, litmus_first(b)),
				 LITMUS_RELEASE);
}

static uint64_t produce(const struct litmus *ring, uint64_t first, bool told)
{
	const uint64_t depth = (uint64_t)ring->burst_mask + 1;
	const time_t until = time(NULL) + PLAY_SECONDS;
	uint64_t wrong = 0;

	for (uint64_t b = first; b < end + depth; b++) {
		if (b >= first + depth)
			wrong += told ? collect_told(ring, b - depth) : collect(ring, b - depth);
		if (b < end && b - first >= LEAST && b % 64 == 0 && time(NULL) > until)
			__atomic_store_n(&end, b, __ATOMIC_RELAXED);
		if (b >= end)
			continue;
		litmus_fill(ring, b);
		for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
			for (uint32_t w = 0; w < LITMUS_WORDS; w++)
				litmus_frame(ring, b, i)[w] = litmus_value(b, w, 0);
		publish(ring, b, told);
	}
	return wrong;
}

static void litmus_play(uint32_t bits, uint32_t threads, bool told)
{
	const size_t depth = (size_t)1 << bits;
	struct litmus ring = {
		.desc = calloc(depth * LITMUS_FRAMES, sizeof(struct frame_desc)),
		.ready = calloc(depth, sizeof(struct burst_ready)),
		.beside = calloc(depth, sizeof(struct burst_beside)),
		.result = calloc(depth, sizeof(struct burst_result)),
		.records = calloc(depth * LITMUS_FRAMES, sizeof(struct frame_record)),
		.request = calloc(depth, sizeof(struct tx_request)),
		.frames = calloc(depth * LITMUS_FRAMES * LITMUS_WORDS, sizeof(uint64_t)),
		.burst_mask = (uint32_t)depth - 1,
		.burst_bits = bits,
	};
	const uint64_t first = ((uint64_t)UINT16_MAX << bits) - LEAST / 2;
	struct consumer consumer[4];
	uint64_t wrong, inlines = 0;

	assert_true(ring.desc && ring.ready && ring.beside && ring.result && ring.records &&
		    ring.request && ring.frames);
	__atomic_store_n(&end, first + bursts, __ATOMIC_RELAXED);
	for (uint32_t t = 0; t < threads; t++) {
		consumer[t] = (struct consumer){ &ring,	    told ? take_told : take_ordered,
						 first + t, threads,
						 0,	    0 };
		assert_int_equal(
			pthread_create(&consumer[t].thread, NULL, consumer_main, &consumer[t]), 0);
	}
	wrong = produce(&ring, first, told);
	for (uint32_t t = 0; t < threads; t++) {
		pthread_join(consumer[t].thread, NULL);
		inlines += consumer[t].inlines;
	}
	if (told)
		assert_in_range(inlines, 1, bursts);
	free(ring.desc);
	free(ring.ready);
	free(ring.beside);
	free(ring.result);
	free(ring.records);
	free(ring.request);
	free(ring.frames);
	if (wrong)
		fail_msg("%llu values of other bursts with %zu bursts and %u consumers",
			 (unsigned long long)wrong, depth, threads);
}

static void test_one_consumer(void **state)
{
	/* one burst in flight; the 16-bit lap wraps in each */
	litmus_play(0, 1, false);
	litmus_play(2, 1, false);
	litmus_play(8, 1, false);
}

static void test_several_consumers(void **state)
{
	litmus_play(1, 2, false);
	litmus_play(3, 3, false);
	litmus_play(6, 4, false);
}

/* INLINE and PLAIN */
static void test_words_that_tell(void **state)
{
	litmus_play(0, 1, true);
	litmus_play(2, 3, true);
	litmus_play(8, 4, true);
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
		cmocka_unit_test(test_words_that_tell),
	};

	if (argc > 1)
		bursts = strtoull(argv[1], NULL, 0);
	else
		bursts = test_cases(150000, 30000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
