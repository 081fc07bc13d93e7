/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sums of a GPU's front (kernels/front.h, capture/cq_front.h), played by one thread: turns, room, slots back, over many
 * laps and over the end of 32 bits, with a card, a consumer and a host of random speed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/front.h"
#include "kernels/kernel_job.h"

#define TURNS 200000u
#define ENDS 64u /* bursts of the ring */

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)((z ^ z >> 31) % n);
}

/* Frames from the first of the run on, in 64 bits that do not wrap; the product's have 32. */
struct play {
	uint32_t slots, burst_max, descs, begin, strides;
	uint64_t arrived, next, end[ENDS], collected_end;
	uint64_t turn, freed, collected, lease, given, posted;
};

static uint32_t number(const struct play *play, uint64_t frame)
{
	return play->begin + (uint32_t)frame;
}

static uint64_t end_of(const struct play *play, uint64_t turn)
{
	return turn ? play->end[(turn - 1) % ENDS] : 0;
}

/* A burst, if there is room and something is there. */
static void publish(struct play *play)
{
	const uint32_t limit = front_limit(number(play, play->next), play->burst_max);
	const uint64_t there = play->arrived - play->next;
	const uint32_t frames = there < limit ? (uint32_t)there : limit;
	const uint64_t seen = play->collected < play->freed ? play->collected : play->freed;
	const uint32_t room_frame = number(play, end_of(play, seen) + play->descs);

	assert_int_equal(front_earlier((uint32_t)play->collected, (uint32_t)play->freed),
			 (uint32_t)seen);
	if (!frames || !front_fits((uint32_t)play->turn, (uint32_t)seen + ENDS,
				   number(play, play->next + play->burst_max), room_frame))
		return;
	/* no words, descriptors or records of one that is not collected */
	assert_true(play->turn - play->collected < ENDS);
	assert_true(play->next + frames - end_of(play, play->collected) <= play->descs);
	/* none goes round the end of the descriptors */
	assert_true((number(play, play->next) & (play->descs - 1)) + frames <= play->descs);
	/* who is n turns away looks where that turn will begin, if all are full from here on */
	for (uint32_t away = 1, at = number(play, play->next); away < 40; away++) {
		at += front_limit(at, play->burst_max);
		assert_int_equal(front_ahead(number(play, play->next), away, play->burst_max), at);
	}
	play->next += frames;
	play->end[play->turn++ % ENDS] = play->next;
}

static void give(struct play *play)
{
	const uint64_t through = play->lease < play->freed ? play->lease : play->freed;
	uint32_t back;

	assert_int_equal(front_through((uint32_t)play->freed, (uint32_t)play->lease, 1),
			 (uint32_t)through);
	assert_int_equal(front_through((uint32_t)play->freed, 0, 0), (uint32_t)play->freed);
	if (through > play->given)
		play->given = through;
	/* as the keeper does: of the places since `begin`, whole work entries */
	back = play->begin + play->slots - number(play, play->posted) +
	       cq_whole(number(play, end_of(play, play->given)) - play->begin, play->strides);
	if (!cq_repost_due(back, number(play, play->posted) - number(play, play->next),
			   play->slots))
		return;
	play->posted += back;
	/* what is with the card is of bursts that are freed, and not leased */
	assert_true(play->posted ==
		    (end_of(play, play->given) >> play->strides << play->strides) + play->slots);
	/* and the card is told of them in its own count, of 16 bits */
	assert_int_equal(
		cq_swap32(cq_record((number(play, play->posted) - play->begin) >> play->strides)),
		play->posted >> play->strides & 0xffff);
}

static void play_once(uint32_t slots, uint32_t burst_max, uint32_t descs, uint32_t begin,
		      uint32_t strides)
{
	struct play play = { .slots = slots,
			     .burst_max = burst_max,
			     .descs = descs,
			     .begin = begin,
			     .strides = strides,
			     .posted = slots };

	while (play.turn < TURNS) {
		play.arrived += below((uint32_t)(play.posted - play.arrived) + 1);
		publish(&play);
		play.freed += below((uint32_t)(play.turn - play.freed) + 1);
		play.collected += below((uint32_t)(play.freed - play.collected) + 1);
		play.lease += below((uint32_t)(play.collected - play.lease) + 1);
		give(&play);
		assert_true(play.posted - play.next <= slots);
	}
}

static void test_play(void **unused)
{
	(void)unused;
	play_once(64, 32, 64, 0, 0);
	play_once(64, 64, 256, UINT32_MAX - 63, 0);
	play_once(1024, 256, 2048, UINT32_MAX - 100 * 1024 + 1, 0);
	play_once(32768, 256, 32768, UINT32_MAX - 32768 * 3 + 1, 0);
	play_once(32768, 1, 65536, 0, 0);
	play_once(64, 32, 64, 0, 4);
	play_once(64, 64, 256, UINT32_MAX - 63, 1);
	play_once(1024, 256, 2048, UINT32_MAX - 100 * 1024 + 1, 8);
	play_once(32768, 256, 32768, UINT32_MAX - 32768 * 3 + 1, 13);
	play_once(32768, 256, 65536, 5, 9);
}

/* Of all turns that may be looked at, no entry can be taken for one of another lap. */
static void test_look(void **unused)
{
	(void)unused;
	for (uint32_t bits = 7; bits <= 16; bits++)
		for (uint32_t burst_max = 1; burst_max <= 256 && burst_max <= 1u << (bits - 1);
		     burst_max *= 2)
			for (uint32_t away = 1; away < 64; away++) {
				const uint32_t last =
					front_ahead(burst_max - 1, away, burst_max) + burst_max - 1;

				assert_true(!front_may_look(away, burst_max, 1u << bits) ||
					    last - (burst_max - 1) <= 1u << bits);
			}
	assert_true(front_may_look(1, 256, 512));
	assert_false(front_may_look(2, 256, 512));
}

/* ---- what a job of fronts may be ---- */

static _Alignas(64) uint8_t completions[512 * CQ_BYTES], region[64 << 8];
static _Alignas(64) uint64_t words[4096];
static struct front_words host_words;
static struct front_status status;

static void front_job(struct kernel_job *job, struct burst_ring_view *ring,
		      struct kernel_front *front)
{
	*ring = (struct burst_ring_view){
		.desc = (const struct frame_desc *)words,
		.ready = (const struct burst_ready *)words,
		.result = (struct burst_result *)words,
		.records = (struct frame_record *)words,
		.stop = (const uint32_t *)words,
		.free_word = words,
		.frames = region,
		.frames_bytes = sizeof(region),
		.slot_shift = 8,
		.desc_mask = 63,
		.burst_mask = 15,
	};
	*front = (struct kernel_front){
		.queue = { .cq = completions,
			   .record = (uint32_t *)words,
			   .cq_entries = 128,
			   .slots = 64,
			   .slot_bytes = 256 },
		.words = &host_words,
		.status = &status,
		.head = words,
		.end = (uint32_t *)words,
		.burst_max = 32,
	};
	*job = (struct kernel_job){
		.role = KERNEL_FRONT, .rings = ring, .ring_count = 1, .fronts = front
	};
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		front_job(&job, &ring, &front);                                                    \
		change;                                                                            \
		assert_int_equal(kernel_job_check(&job), -EINVAL);                                 \
	} while (0)

static void test_job(void **unused)
{
	struct burst_ring_view ring;
	struct kernel_workers *workers;
	struct kernel_front front;
	struct kernel_job job;

	(void)unused;
	front_job(&job, &ring, &front);
	assert_int_equal(kernel_job_check(&job), 0);
	/* the CPU backend has no GPU that could poll */
	assert_int_equal(kernel_host_ops.start(NULL, &job, &workers), -ENOTSUP);
	REFUSED(job.fronts = NULL);
	REFUSED(front.queue.cq = NULL);
	REFUSED(front.queue.cq++);
	REFUSED(front.queue.record = NULL);
	REFUSED(front.words = NULL);
	REFUSED(front.status = NULL);
	REFUSED(front.head = NULL);
	REFUSED(front.end = NULL);
	REFUSED(ring.free_word = NULL);
	REFUSED(front.queue.slots = 48);
	REFUSED(front.queue.stride_shift = 5);
	REFUSED(front.queue.stride_shift = 32);
	REFUSED(front.queue.slots = 0);
	REFUSED(front.queue.slots = 65536);
	REFUSED(front.queue.cq_entries = 64);
	REFUSED(front.queue.cq_entries = 192);
	REFUSED(front.burst_max = 24);
	REFUSED(front.burst_max = 0);
	REFUSED(front.burst_max = 512);
	REFUSED(front.burst_max = 128);
	REFUSED(ring.desc_mask = 31);
	REFUSED(ring.burst_mask = 32767);
	REFUSED(front.queue.first_slot = 1);
	REFUSED(front.queue.first_slot = UINT32_MAX);
	REFUSED(front.queue.slot_bytes = 257);
	REFUSED(front.queue.slot_bytes = 0);
	REFUSED(front.warps = 2);
	REFUSED(front.warps = 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_play),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
