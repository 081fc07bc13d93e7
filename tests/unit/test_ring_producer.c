/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of the burst ring, with the consumer and the port played by the test: the
 * ring never overflows whatever the consumer does, bursts never wrap round the end of the
 * descriptors, and tags and free-running indices may wrap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include <rte_common.h>

#include "base/eal.h"
#include "number_set.h"
#include "gpu/gpu_open.h"
#include "memory/region.h"
#include "capture/ring_producer.h"

struct play {
	struct ring_producer *ring;
	uint32_t frames; /* mbufs in the pool */
	uint32_t out;	 /* of them in the ring */
	uint64_t taken;	 /* next burst of the consumer */
	uint8_t *busy;	 /* by descriptor: filled, not reclaimed */
	uint64_t most;	 /* bursts outstanding, the highest */
	uint64_t random;
};

static int16_t gpu;

static int gpu_set_up(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };

	if (eal_start(&needs, NULL) < 0)
		return -1;
	gpu = (int16_t)gpu_open_host(false, NULL);
	return gpu < 0 ? -1 : 0;
}

static void play_begin(struct play *play, uint32_t frames, uint32_t burst_max, bool replay)
{
	const struct region region = { .gpu = gpu, .slot_shift = 11 };
	const struct ring_config config = {
		.region = &region,
		.frames = frames,
		.burst_max = burst_max,
		.replay = replay,
		.inlines = true,
	};

	memset(play, 0, sizeof(*play));
	play->frames = frames;
	play->random = frames * 1000ull + burst_max;
	play->ring = aligned_alloc(RING_LINE, sizeof(*play->ring));
	assert_non_null(play->ring);
	assert_int_equal(ring_create(play->ring, &config, NULL), 0);
	assert_true(play->ring->desc_mask + 1 >= frames);
	play->busy = calloc(play->ring->desc_mask + 1, 1);
	assert_non_null(play->busy);
}

/* As if it had run for long: number of the next burst and the free-running descriptor index. */
static void play_age(struct play *play, uint64_t burst, uint32_t head)
{
	struct ring_producer *ring = play->ring;
	const uint64_t bursts = (uint64_t)ring->burst_mask + 1;

	ring->burst = ring->reclaimed = play->taken = burst;
	ring->head = ring->first = ring->tail = head;
	atomic_store(&ring->published, burst);
	for (uint64_t b = burst - bursts; b != burst; b++) {
		ring->ready[b & ring->burst_mask].word = burst_word(b, ring->burst_bits, 1, 0);
		ring->result[b & ring->burst_mask].done = burst_word(b, ring->burst_bits, 1, 0);
	}
}

static void play_end(struct play *play)
{
	ring_destroy(play->ring);
	free(play->ring);
	free(play->busy);
}

/* The port gives up to n frames; as rx_receive(). */
static uint32_t play_receive(struct play *play, uint32_t n)
{
	struct ring_producer *ring = play->ring;
	const uint32_t room = ring_room(ring), at = ring->head & ring->desc_mask;

	/* A full burst is published before more is asked for. */
	assert_in_range(room, 1, ring->burst_max);
	assert_true(at + room <= ring->desc_mask + 1);
	n = RTE_MIN(n, RTE_MIN(room, play->frames - play->out));
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(play->busy[at + i], 0);
		play->busy[at + i] = 1;
		ring->mbuf[at + i] = (struct rte_mbuf *)(uintptr_t)(ring->head + i + 1);
		ring->desc[at + i] = (struct frame_desc){ .slot = ring->head + i };
	}
	ring->head += n;
	play->out += n;
	return n;
}

/* Descriptor i of those of a burst that are INLINE. */
static uint64_t inline_desc(const struct burst_ready *ready, const struct burst_beside *beside,
			    uint32_t i)
{
	return i < BURST_READY_DESCS ? ready->desc[i] : beside->desc[i - BURST_READY_DESCS];
}

/* A small burst's descriptors stand with its word, and each there has the mark that none had
 * before. Those of a large one do not, nor orders', and nothing of them is touched. */
static void play_inline(const struct ring_producer *ring, uint32_t slot, uint32_t first,
			uint32_t count, uint64_t mark_before)
{
	const struct burst_ready *ready = &ring->ready[slot];
	const bool inlines = ring->beside && count <= BURST_INLINE_MAX;
	const uint64_t mark = ready->desc[0] & BURST_DESC_MARK;

	assert_false(ring->request && ring->beside);
	assert_ptr_equal(ring->view.beside, ring->beside);
	assert_int_equal((ready->word & BURST_INLINE) != 0, inlines);
	assert_int_equal(mark != mark_before, inlines);
	if (!inlines)
		return;
	assert_int_equal((ready->word & BURST_INLINE_MARK) != 0, mark != 0);
	for (uint32_t i = 0; i < BURST_INLINE_MAX; i++) {
		const uint64_t desc = inline_desc(ready, &ring->beside[slot], i);
		uint64_t want;

		assert_int_equal(desc & BURST_DESC_MARK, mark);
		memcpy(&want, &ring->desc[(first + i) & ring->desc_mask], sizeof(want));
		if (i < count)
			assert_int_equal(desc & ~BURST_DESC_MARK, want);
	}
}

static void play_publish(struct play *play)
{
	struct ring_producer *ring = play->ring;
	const uint64_t b = ring->burst;
	const uint32_t slot = (uint32_t)b & ring->burst_mask, pending = ring_pending(ring);
	const uint32_t first = ring->first;
	uint64_t word, mark;

	assert_in_range(pending, 1, ring->burst_max);
	/* Contiguous. */
	assert_true((first & ring->desc_mask) + pending <= ring->desc_mask + 1);
	/* The word's last burst is through: nothing is overwritten. */
	assert_true(b - ring->reclaimed <= ring->burst_mask);
	/* What is there does not look like this burst before it is. */
	assert_false(burst_word_is(ring->ready[slot].word, b, ring->burst_bits));
	assert_false(ring_is_done(ring, b));
	mark = ring->ready[slot].desc[0] & BURST_DESC_MARK;
	ring_publish(ring);
	word = ring->ready[slot].word;
	play_inline(ring, slot, first, pending, mark);
	assert_true(burst_word_is(word, b, ring->burst_bits));
	assert_int_equal(burst_word_count(word), pending);
	assert_int_equal(burst_word_first(word), first);
	assert_int_equal(ring_pending(ring), 0);
	assert_true(atomic_load(&ring->published) == b + 1);
	play->most = RTE_MAX(play->most, ring->burst - ring->reclaimed);
}

/* The consumer finishes burst b. */
static void play_done(struct play *play, uint64_t b)
{
	struct ring_producer *ring = play->ring;
	const uint64_t word = ring->ready[b & ring->burst_mask].word;

	assert_true(burst_word_is(word, b, ring->burst_bits));
	for (uint32_t i = 0; i < burst_word_count(word); i++) {
		const uint32_t index = burst_word_first(word) + i;

		assert_int_equal(ring->desc[index & ring->desc_mask].slot, index);
	}
	ring->result[b & ring->burst_mask].done = burst_word(b, ring->burst_bits, 0, 0);
	assert_true(ring_is_done(ring, b));
}

/* As rx_reclaim(). */
static void play_reclaim(struct play *play)
{
	struct ring_producer *ring = play->ring;
	uint64_t through = ring->reclaimed;

	while (through != ring->burst && ring_is_done(ring, through))
		through++;
	if (through == ring->reclaimed)
		return;
	for (uint32_t end = ring->end[(through - 1) & ring->burst_mask]; ring->tail != end;
	     ring->tail++) {
		const uint32_t at = ring->tail & ring->desc_mask;

		assert_int_equal(play->busy[at], 1);
		assert_ptr_equal(ring->mbuf[at], (void *)(uintptr_t)(ring->tail + 1));
		play->busy[at] = 0;
		play->out--;
	}
	ring->reclaimed = through;
	assert_int_equal(play->out, ring->head - ring->tail);
}

/* Frames come one at a time and the consumer stands still until every slot is out; twice, from
 * wherever the ring then is. */
static void stalled_consumer(struct play *play)
{
	struct ring_producer *ring = play->ring;

	for (int round = 0; round < 3; round++) {
		while (play_receive(play, 1))
			if (ring_due(ring))
				play_publish(play);
		assert_int_equal(play->out, play->frames);
		while (play->taken != ring->burst)
			play_done(play, play->taken++);
		play_reclaim(play);
		/* Those that waited for a full burst need not wait any longer. */
		if (ring_pending(ring)) {
			assert_true(ring_due(ring));
			play_publish(play);
			play_done(play, play->taken++);
			play_reclaim(play);
		}
		assert_int_equal(play->out, 0);
		/* Not always from the same place. */
		for (int i = 0; i < 7; i++) {
			play_receive(play, 3);
			if (ring_due(ring))
				play_publish(play);
		}
	}
}

/* Frames as they like, bursts finished out of order, with pauses of all lengths. */
static void random_consumer(struct play *play)
{
	struct ring_producer *ring = play->ring;
	const uint64_t laps = 3ull * (ring->desc_mask + 1);
	uint64_t received = 0;

	while (received < laps) {
		const uint64_t mood = random_below(&play->random, 12);

		for (uint64_t i = random_below(&play->random, mood < 4 ? 3000 : 20); i; i--) {
			received += play_receive(
				play,
				mood & 1 ? 1 : 1 + (uint32_t)random_below(&play->random, 300));
			if (ring_due(ring))
				play_publish(play);
			if (play->out == play->frames)
				break;
		}
		while (ring->reclaimed != ring->burst && random_below(&play->random, 200)) {
			/* Any of the next few: workers take bursts in turn. */
			const uint64_t b =
				ring->reclaimed +
				random_below(&play->random,
					     RTE_MIN(ring->burst - ring->reclaimed, 8ull));

			if (!ring_is_done(ring, b))
				play_done(play, b);
			if (random_below(&play->random, 3) == 0)
				play_reclaim(play);
			if (mood < 6 && random_below(&play->random, 30) == 0)
				break;
		}
		play_reclaim(play);
		if (ring_due(ring))
			play_publish(play);
	}
	play->taken = ring->burst;
}

static const uint32_t sizes[][2] = {
	/* frames, burst_max */
	{ 1, 1 },     { 1, 256 },    { 256, 1 },     { 2048, 1 },    { 2048, 7 },  { 4096, 64 },
	{ 5000, 32 }, { 16384, 64 }, { 16384, 255 }, { 16384, 256 }, { 20000, 3 }, { 65536, 256 },
};

static void cannot_overflow(void **state)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int replay = 0; replay < 2; replay++) {
			struct play play;

			play_begin(&play, sizes[i][0], sizes[i][1], replay);
			stalled_consumer(&play);
			random_consumer(&play);
			assert_true(play.most <= play.ring->burst_mask + 1ull);
			play_end(&play);
		}
}

static void numbers_wrap(void **state)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Tags have 16 bits: laps 65534 and 65535 are followed by tags 0 and 1. */
		static const uint64_t laps[] = { 1, 65533, 65534, 65535, 65536, 1ull << 40 };

		for (size_t l = 0; l < sizeof(laps) / sizeof(laps[0]); l++) {
			struct play play;

			play_begin(&play, sizes[i][0], sizes[i][1], false);
			play_age(&play, (laps[l] << play.ring->burst_bits) - 5, 0u - 100u);
			stalled_consumer(&play);
			play_age(&play, (laps[l] << play.ring->burst_bits) - 5, 0u - 100u);
			memset(play.busy, 0, play.ring->desc_mask + 1);
			play.out = 0;
			random_consumer(&play);
			play_end(&play);
		}
	}
}

/* A single frame is published at once while the consumer keeps up. */
static void nothing_waits_for_a_full_burst(void **state)
{
	struct play play;

	play_begin(&play, 4096, 64, false);
	for (uint32_t i = 0; i < 3 * RING_SMALL_BURSTS; i++) {
		assert_false(ring_due(play.ring));
		assert_int_equal(play_receive(&play, 1), 1);
		assert_true(ring_due(play.ring));
		play_publish(&play);
		play_done(&play, i);
		play_reclaim(&play);
	}
	play_end(&play);
}

/* What is for both sides lies in the memory that the GPU was shown, and nothing there overlaps. */
static void views(void **state)
{
	uint8_t frames[1], heads[1];
	uint32_t generation[1];
	const struct region region = {
		.gpu = gpu,
		.slot_shift = 11,
		.device = frames,
		.bytes = 4096ull << 11,
	};
	const struct region head_region = {
		.gpu = gpu,
		.slot_shift = REGION_HEAD_SHIFT,
		.device = heads,
		.bytes = 4096ull << 8,
	};

	for (int split = 0; split < 2; split++) {
		const struct ring_config config = {
			.region = &region,
			.heads = split ? &head_region : NULL,
			.generation = split ? generation : NULL,
			.frames = 4096,
			.burst_max = 64,
			.times = !split,
		};
		struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));
		const struct burst_ring_view *view = &ring->view;
		const uint8_t *from, *to;

		assert_int_equal(ring_create(ring, &config, NULL), 0);
		from = ring->memory;
		to = from + ring->memory_bytes;
		assert_ptr_equal(view->frames, frames);
		assert_true(view->frames_bytes == region.bytes && view->slot_shift == 11);
		assert_ptr_equal(view->desc, ring->desc);
		assert_ptr_equal(view->head_desc, ring->head_desc);
		assert_ptr_equal(view->generation, config.generation);
		assert_int_equal(ring->tsc != NULL, !split);
		assert_int_equal(ring->head_mbuf != NULL, split);
		assert_ptr_equal(view->heads, split ? heads : NULL);
		assert_true(view->heads_bytes == (split ? head_region.bytes : 0));
		assert_int_equal(view->head_shift, split ? REGION_HEAD_SHIFT : 0);
		assert_int_equal(ring->head_desc != NULL, split);
		if (split) {
			assert_true((const uint8_t *)ring->head_desc >= from);
			assert_true((const uint8_t *)&ring->head_desc[4096] <= to);
			assert_true(&ring->head_desc[4096] <= ring->desc ||
				    &ring->desc[4096] <= ring->head_desc);
			assert_true((const uint8_t *)&ring->head_desc[4096] <=
					    (const uint8_t *)ring->result ||
				    (const uint8_t *)&ring->result[ring->burst_mask + 1] <=
					    (const uint8_t *)ring->head_desc);
		}
		ring_destroy(ring);
		free(ring);
	}
}

/* Offsets that need the mark's bit, of slots that no frame needs: their descriptors do not count,
 * and those that are written have one mark all the same. */
static void mark_is_taken(void **state)
{
	struct frame_desc desc[3] = { { 7, 60, 0x4010 }, { 8, 60, 0x10 }, { 9, 60, 0x4000 } };
	struct burst_beside beside = { 0 };
	struct burst_ready ready = { 0 };

	for (uint64_t b = 0; b < 4; b++) {
		desc[0].offset = b == 2 ? 0x10 : 0x4010;
		desc[2].offset = b == 2 ? 0 : 0x4000;
		burst_publish(&ready, &beside, desc, b, 0, 3, 0);
		assert_int_equal(ready.word,
				 burst_word(b, 0, 3, 0) |
					 (b == 2 ? BURST_INLINE | BURST_INLINE_MARK : 0));
		for (uint32_t i = 0; i < BURST_INLINE_MAX; i++)
			assert_int_equal((inline_desc(&ready, &beside, i) & BURST_DESC_MARK) != 0,
					 b % 2 == 0);
	}
	/* nobody reads it */
	burst_publish(&ready, NULL, desc, 4, 0, 3, 0);
	assert_int_equal(ready.word, burst_word(4, 0, 3, 0));
	assert_int_equal(ready.desc[0] & BURST_DESC_MARK, 0);
}

/* All that a plain outcome tells comes back, and it is done only when all four words are there. */
static void plain_words(void **state)
{
	static const struct burst_plain plain[] = {
		{ UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX, UINT16_MAX },
		{ 0, 0, 0, 0, 0, 0 },
		{ 0x0123456789abcdefu, 0x01020304, 0x50607080, 0x90a0, 0xb0c0, 0xd0e0 },
	};

	for (uint64_t burst = 0; burst < 1u << 20; burst += 4093)
		for (size_t p = 0; p < sizeof(plain) / sizeof(plain[0]); p++)
			for (uint32_t absent = 0; absent < 4; absent++) {
				struct burst_result result = { 0 };
				struct burst_plain back;
				uint64_t *word = &result.done, late;

				burst_tell(&result, &plain[p], burst, 3);
				assert_int_equal(burst_word_count(result.done), 1);
				assert_true(burst_is_done(&result, burst, 3));
				late = word[absent];
				word[absent] = burst_word(burst - 8, 3, 0, 0) |
					       burst_plain_bits(&plain[p], absent);
				assert_false(burst_is_done(&result, burst, 3));
				word[absent] = late;
				burst_plain_read(&result, &back);
				assert_int_equal(back.sequence, plain[p].sequence);
				assert_int_equal(back.bytes, plain[p].bytes);
				assert_int_equal(back.frame_bytes, plain[p].frame_bytes);
				assert_int_equal(back.stream, plain[p].stream);
				assert_int_equal(back.count, plain[p].count);
				assert_int_equal(back.source, plain[p].source);
			}
}

static void words(void **state)
{
	for (uint32_t bits = 0; bits < 20; bits += 3)
		for (uint64_t lap = 0; lap < 200000; lap += 1 + lap / 50) {
			const uint64_t burst = lap << bits | (bits ? 1 : 0);
			const uint64_t word = burst_word(burst, bits, 256, 0xfffffff0u);

			assert_true(burst_word_is(word, burst, bits));
			assert_false(burst_word_is(word, burst + (1ull << bits), bits));
			assert_int_equal(burst_word_count(word), 256);
			assert_int_equal(burst_word_first(word), 0xfffffff0u);
			if (lap % 65536 != 65535)
				assert_false(burst_word_is(0, burst, bits));
		}
}

static bool is_armed(struct wake *wake)
{
	return atomic_load(&wake->word) & 1;
}

/* What is published, and STOP, wake who takes bursts. */
static void the_taker_is_woken(void **state)
{
	const struct region region = { .gpu = gpu, .slot_shift = 11 };
	struct ring_config config = { .region = &region, .frames = 512, .burst_max = 64 };
	struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));
	uint32_t ticket;

	assert_non_null(ring);
	assert_int_equal(ring_create(ring, &config, NULL), 0);
	assert_null(ring->work);
	ring_destroy(ring);
	config.sleeps = true;
	assert_int_equal(ring_create(ring, &config, NULL), 0);
	assert_true(wake_arm(ring->work, &ticket));
	ring->head++;
	assert_true(is_armed(ring->work));
	ring_publish(ring);
	assert_false(is_armed(ring->work));
	assert_true(wake_arm(ring->work, &ticket));
	ring_leave(ring);
	assert_false(is_armed(ring->work));
	ring_destroy(ring);
	free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cannot_overflow),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(mark_is_taken),
		cmocka_unit_test(plain_words),
		cmocka_unit_test(nothing_waits_for_a_full_burst),
		cmocka_unit_test(views),
		cmocka_unit_test(words),
		cmocka_unit_test(the_taker_is_woken),
	};

	return cmocka_run_group_tests(tests, gpu_set_up, NULL);
}
