/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front's thread (capture/cq_worker.c) between a card and a consumer that the test plays, each a
 * thread: card and control are one, consumer and accountant two. The card writes a payload and then its
 * completion, and only into what is posted; the consumer checks the payload and writes over it; the
 * accountant, which keeps slots a while as a saver does, reads that. All of it is plain memory, so the
 * thread sanitizer finds a barrier that is missing, on any CPU. test_front_mutants.py takes each out.
 */
#ifndef GDRCAP_TEST_FRONT_PLAY_H
#define GDRCAP_TEST_FRONT_PLAY_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "capture/cq_worker.h"
#include "memory/region.h"
#include "nap.h"

#define PLAY_SLOT_SHIFT 8u
#define PLAY_SLOT_BYTES 192u /* room for a frame */
#define PLAY_FIRST_SLOT 5u   /* in the region */
#define PLAY_WORDS 4u	     /* of a payload, 8 bytes each */
#define PLAY_HANG_SECONDS 240

struct front_setup {
	uint32_t slots, burst;
	uint32_t bursts;    /* of the ring; fewer than it needs: ROOM holds the front back */
	uint32_t cq_factor; /* completions a slot: 2 at least */
	uint32_t strides;   /* log2 of the slots of a work entry; 0: the queue is cyclic */
	bool accounted;	    /* the accountant gives slots back, not the consumer */
	bool flush, times, card_times;
	uint32_t keeps; /* bursts that the accountant keeps at most */
};

struct front_play {
	const struct front_setup *setup;
	struct rx_worker worker;
	struct cq_worker cq;
	struct region region;
	uint8_t *completions; /* behind them is a page that nobody may touch */
	_Alignas(RING_LINE) uint32_t record;
	uint64_t (*payload)[PLAY_WORDS]; /* of slot */

	/* The card's. */
	_Alignas(RING_LINE) uint64_t index; /* of the next completion */
	uint32_t done;			    /* places since the last reset */
	uint64_t given, bytes;		    /* frames that are to come out */

	/* The consumer's. */
	_Alignas(RING_LINE) uint64_t taken, seen; /* bursts, frames */
	_Atomic uint64_t consumed;		  /* frames, for who waits */

	/* The accountant's. */
	_Alignas(RING_LINE) uint64_t collected;

	_Alignas(RING_LINE) _Atomic int stand; /* the consumer takes nothing */
	_Atomic int gate;		       /* work of the three that is to end */
	uint64_t flushes;
	pthread_t front, consumer, accountant;
	time_t until;
};

#define PLAY_CHECK(play, true_one)                                                                 \
	do {                                                                                       \
		if (!(true_one)) {                                                                 \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #true_one);     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static bool play_wait(struct front_play *play)
{
	PLAY_CHECK(play, time(NULL) < play->until);
	return nap();
}

/* Word w of the payload of frame `number`, as the card (side 0) and the consumer (1) write it. */
static uint64_t play_value(uint64_t number, uint32_t w, uint32_t side)
{
	return (number * 2 + side) * 0x9e3779b97f4a7c15u + w;
}

static uint32_t play_length(uint64_t number)
{
	return 1 + (uint32_t)(play_value(number, 7, 0) >> 32) % PLAY_SLOT_BYTES;
}

static uint64_t play_time(uint64_t number)
{
	return number * 0x0102030405060708u + 3;
}

/* ---- the card ---- */

/* Places that are posted and not done: what the record says of work entries, seen as a card does. */
static uint32_t card_posted(struct front_play *play)
{
	/* Partner: REPOST */
	const uint32_t record = __atomic_load_n(&play->record, __ATOMIC_ACQUIRE);
	const uint8_t *byte = (const uint8_t *)&record;
	const uint16_t posted = (uint16_t)(byte[2] << 8 | byte[3]);
	const uint32_t strides = play->setup->strides, used = play->done & ((1u << strides) - 1);
	const uint16_t left = (uint16_t)(posted - (play->done >> strides));

	PLAY_CHECK(play, byte[0] == 0 && byte[1] == 0);
	PLAY_CHECK(play, left <= play->setup->slots >> strides);
	/* An entry that is in use is posted still. */
	PLAY_CHECK(play, left || !used);
	return ((uint32_t)left << strides) - used;
}

static void put_be(uint8_t *at, uint64_t value, uint32_t bytes)
{
	while (bytes-- > 0) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* One completion of work entry `entry`, opcode and all; the last word after the others. */
static void card_write_of(struct front_play *play, uint32_t opcode, uint32_t entry,
			  uint32_t counter, uint32_t length, uint64_t time_stamp, uint32_t syndrome)
{
	const uint32_t entries = play->cq.queue.cq_entries;
	uint8_t *cqe = play->completions + (play->index % entries) * CQ_BYTES, tail[4] = { 0 };
	uint32_t word;

	put_be(cqe + CQ_ENTRY_AT + 2, entry & 0xffff, 2);
	put_be(cqe + CQ_LENGTH_AT, length, 4);
	put_be(cqe + CQ_TIME_AT, time_stamp, 8);
	if (opcode == CQ_OP_ERROR)
		cqe[CQ_SYNDROME_AT] = (uint8_t)syndrome;
	put_be(tail, counter & 0xffff, 2);
	tail[3] = (uint8_t)(opcode << 4 | (play->index / entries & 1));
	memcpy(&word, tail, sizeof(word));
	/* Partner: ARRIVED */
	__atomic_store_n((uint32_t *)(void *)(cqe + CQ_TAIL_AT), word, __ATOMIC_RELEASE);
	play->index++;
}

/* That of place `place`; `length`: as the queue's kind has it. */
static void card_write(struct front_play *play, uint32_t opcode, uint32_t place, uint32_t length,
		       uint64_t time_stamp, uint32_t syndrome)
{
	const uint32_t strides = play->setup->strides;

	if (strides)
		card_write_of(play, opcode, place >> strides, place & ((1u << strides) - 1),
			      length + CQ_STRIDE, time_stamp, syndrome);
	else
		card_write_of(play, opcode, 0xabcd, place, length, time_stamp, syndrome);
}

/* The next frame, if there is a slot. */
static bool card_give(struct front_play *play)
{
	const uint64_t number = play->given;
	uint64_t *payload = play->payload[play->done % play->setup->slots];

	if (card_posted(play) == 0)
		return false;
	for (uint32_t w = 0; w < PLAY_WORDS; w++)
		payload[w] = play_value(number, w, 0);
	card_write(play, CQ_OP_RECEIVED, play->done, play_length(number), play_time(number), 0);
	play->done++;
	play->given++;
	play->bytes += play_length(number);
	return true;
}

static void card_give_all(struct front_play *play, uint64_t frames)
{
	while (play->given < frames)
		if (!card_give(play))
			play_wait(play);
}

/* ---- the consumer, and the accountant ---- */

static void consumer_frame(struct front_play *play, uint32_t at)
{
	const struct ring_producer *ring = &play->worker.ring;
	const struct frame_desc *desc = &ring->desc[at];
	const uint32_t entry = desc->slot - PLAY_FIRST_SLOT;
	const uint64_t number = play->seen++;

	PLAY_CHECK(play, entry < play->setup->slots);
	PLAY_CHECK(play, desc->len == play_length(number) && desc->offset == 0);
	for (uint32_t w = 0; w < PLAY_WORDS; w++) {
		PLAY_CHECK(play, play->payload[entry][w] == play_value(number, w, 0));
		play->payload[entry][w] = play_value(number, w, 1);
	}
	if (play->setup->times && play->setup->card_times)
		PLAY_CHECK(play, ring->tsc[at] == play_time(number));
	if (play->setup->times && !play->setup->card_times)
		PLAY_CHECK(play, ring->tsc[at] >= atomic_load(&play->worker.first_tsc) &&
					 ring->tsc[at] <= atomic_load(&play->worker.last_tsc));
}

static void *consumer_run(void *arg)
{
	struct front_play *play = arg;
	struct ring_producer *ring = &play->worker.ring;
	uint64_t word;

	for (;;) {
		const uint32_t slot = (uint32_t)play->taken & ring->burst_mask;
		const int ended = atomic_load(&ring->ended);

		/* TAKE */
		word = __atomic_load_n(&ring->ready[slot].word, __ATOMIC_ACQUIRE);
		if (atomic_load(&play->stand) ||
		    !burst_word_is(word, play->taken, ring->burst_bits)) {
			if (ended && play->taken == atomic_load(&ring->published))
				return NULL;
			play_wait(play);
			continue;
		}
		PLAY_CHECK(play,
			   burst_word_count(word) && burst_word_count(word) <= play->setup->burst);
		for (uint32_t i = 0; i < burst_word_count(word); i++)
			consumer_frame(play, (burst_word_first(word) + i) & ring->desc_mask);
		/* FREE */
		burst_publish_records(&ring->result[slot], burst_word_count(word), play->taken,
				      ring->burst_bits);
		play->taken++;
		atomic_store(&play->consumed, play->seen);
	}
}

/* Of a burst that it has kept: what the consumer wrote is still there. */
static void accountant_release(struct front_play *play, uint64_t *number)
{
	struct ring_producer *ring = &play->worker.ring;
	const uint32_t slot = (uint32_t)play->collected & ring->burst_mask;
	const uint64_t word = __atomic_load_n(&ring->ready[slot].word, __ATOMIC_RELAXED);
	const uint64_t done = __atomic_load_n(&ring->result[slot].done, __ATOMIC_RELAXED);

	/* ROOM: neither has been overwritten. */
	PLAY_CHECK(play, burst_word_is(word, play->collected, ring->burst_bits));
	PLAY_CHECK(play, burst_word_is(done, play->collected, ring->burst_bits));
	for (uint32_t i = 0; i < burst_word_count(word); i++, ++*number) {
		const uint32_t at = (burst_word_first(word) + i) & ring->desc_mask;
		const uint64_t *payload = play->payload[ring->desc[at].slot - PLAY_FIRST_SLOT];

		for (uint32_t w = 0; w < PLAY_WORDS; w++)
			PLAY_CHECK(play, payload[w] == play_value(*number, w, 1));
	}
	play->collected++;
	/* LEASE */
	atomic_store_explicit(&ring->collected, play->collected, memory_order_release);
}

static void *accountant_run(void *arg)
{
	struct front_play *play = arg;
	struct ring_producer *ring = &play->worker.ring;
	uint64_t number = 0, done = 0;

	for (;;) {
		const int ended = atomic_load(&ring->ended);

		if (ring_is_done(ring, done)) { /* COLLECT */
			if (++done - play->collected > play->setup->keeps)
				accountant_release(play, &number);
			continue;
		}
		if (ended && done == atomic_load(&ring->published)) {
			while (play->collected != done)
				accountant_release(play, &number);
			return NULL;
		}
		/* What is kept is kept until more comes or a while has gone. */
		if (play->collected != done)
			accountant_release(play, &number);
		play_wait(play);
	}
}

/* ---- the play ---- */

static int play_flush(void *context)
{
	((struct front_play *)context)->flushes++;
	return 0;
}

static void *zeroed(size_t bytes)
{
	void *block = aligned_alloc(128, (bytes + 127) / 128 * 128);

	if (!block)
		abort();
	memset(block, 0, (bytes + 127) / 128 * 128);
	return block;
}

/* Bytes that end where a page begins that nobody may touch. */
static uint8_t *guarded(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
	uint8_t *block = mmap(NULL, pages + page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED || mprotect(block + pages, page, PROT_NONE) != 0)
		abort();
	return block + pages - bytes;
}

static void guarded_free(uint8_t *block, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;

	munmap(block + bytes - pages, pages + page);
}

static void play_ring(struct front_play *play)
{
	const struct front_setup *setup = play->setup;
	struct ring_producer *ring = &play->worker.ring;

	ring->burst_max = setup->burst;
	ring->desc_mask = setup->slots - 1;
	ring->burst_mask = setup->bursts - 1;
	ring->burst_bits = (uint32_t)__builtin_ctz(setup->bursts);
	ring->desc = zeroed(setup->slots * sizeof(*ring->desc));
	ring->ready = zeroed(setup->bursts * sizeof(*ring->ready));
	ring->beside = zeroed(setup->bursts * sizeof(*ring->beside));
	ring->result = zeroed(setup->bursts * sizeof(*ring->result));
	ring->end = zeroed(setup->bursts * sizeof(*ring->end));
	if (setup->times)
		ring->tsc = zeroed(setup->slots * sizeof(*ring->tsc));
}

static void *front_run(void *play)
{
	cq_worker_run(&((struct front_play *)play)->worker);
	return NULL;
}

static struct front_play *play_open(const struct front_setup *setup)
{
	struct front_play *play = zeroed(sizeof(*play));
	const uint32_t entries = setup->slots * setup->cq_factor;
	const struct cq_front_queue queue = {
		.cq = play->completions = guarded((size_t)entries * CQ_BYTES),
		.record = &play->record,
		.cq_entries = entries,
		.slots = setup->slots,
		.first_slot = PLAY_FIRST_SLOT,
		.slot_bytes = PLAY_SLOT_BYTES,
		.stride_shift = setup->strides,
	};

	play->setup = setup;
	play->until = time(NULL) + PLAY_HANG_SECONDS;
	play->region.slot_shift = PLAY_SLOT_SHIFT;
	play->region.slots = PLAY_FIRST_SLOT + setup->slots;
	play->worker.config = (struct rx_config){
		.region = &play->region,
		.times = setup->card_times ? RX_TIMES_CARD : RX_TIMES_TSC,
		.flush = setup->flush ? play_flush : NULL,
		.flush_context = play,
		.in_flight_max = UINT32_MAX,
		.starved_from = UINT32_MAX,
		.accounted = setup->accounted,
	};
	play_ring(play);
	play->payload = zeroed(setup->slots * sizeof(*play->payload));
	memset(play->completions, 0xf1, (size_t)entries * CQ_BYTES);
	PLAY_CHECK(play, cq_worker_create(&play->cq, &play->worker, &queue, NULL) == 0);
	PLAY_CHECK(play, card_posted(play) == setup->slots);
	PLAY_CHECK(play, pthread_create(&play->front, NULL, front_run, play) == 0);
	PLAY_CHECK(play, pthread_create(&play->consumer, NULL, consumer_run, play) == 0);
	if (setup->accounted)
		PLAY_CHECK(play,
			   pthread_create(&play->accountant, NULL, accountant_run, play) == 0);
	return play;
}

/* Every frame that was given has come out. */
static void play_settle(struct front_play *play)
{
	while (atomic_load(&play->consumed) != play->given)
		play_wait(play);
}

static void play_close(struct front_play *play)
{
	struct rx_worker *worker = &play->worker;
	struct ring_producer *ring = &worker->ring;

	play_settle(play);
	atomic_store(&worker->phase, RX_DRAIN);
	pthread_join(play->front, NULL);
	pthread_join(play->consumer, NULL);
	if (play->setup->accounted)
		pthread_join(play->accountant, NULL);
	PLAY_CHECK(play, play->seen == play->given);
	PLAY_CHECK(play, atomic_load(&worker->frames) == play->given);
	PLAY_CHECK(play, atomic_load(&worker->back) == play->given);
	PLAY_CHECK(play, atomic_load(&worker->bytes) == play->bytes);
	PLAY_CHECK(play, atomic_load(&worker->bursts) == ring->burst);
	PLAY_CHECK(play, play->flushes == (play->setup->flush ? ring->burst : 0));
	PLAY_CHECK(play, atomic_load(&worker->last_tsc) >= atomic_load(&worker->first_tsc));
	free(ring->desc);
	free(ring->ready);
	free(ring->beside);
	free(ring->result);
	free(ring->end);
	free(ring->tsc);
	free(play->payload);
	guarded_free(play->completions, (size_t)play->cq.queue.cq_entries * CQ_BYTES);
	free(play);
}

/* ---- control ---- */

static void play_phase(struct front_play *play, enum rx_phase phase)
{
	/* PHASE. Partner: the front's acquire load. */
	atomic_store_explicit(&play->worker.phase, (int)phase, memory_order_release);
	/* PHASE. Partner: the front's release store. */
	while (atomic_load_explicit(&play->worker.paused, memory_order_acquire) !=
	       (phase == RX_PAUSE))
		play_wait(play);
}

static enum cq_kind play_stopped(struct front_play *play)
{
	while (atomic_load_explicit(&play->cq.state, memory_order_acquire) != CQ_STOPPED)
		play_wait(play);
	return (enum cq_kind)play->cq.fault.kind;
}

/* The card gives back `left` places: work entries, every other one with a frame in it; of several places, an
 * entry is flushed as one, however many of its strides had frames. */
static void card_flush(struct front_play *play, uint32_t left)
{
	const uint32_t all = 1u << play->setup->strides;

	while (left) {
		const uint32_t places = all - (play->done & (all - 1));

		card_write(play, left / places % 2 ? CQ_OP_ERROR : CQ_OP_RECEIVED, play->done, 60,
			   0, CQ_SYNDROME_FLUSHED);
		play->done += left < places ? left : places;
		left -= left < places ? left : places;
	}
}

/* The card forgets what was posted; what it writes before stays in the queue: `late` completions. */
static void play_reset(struct front_play *play, uint32_t late)
{
	play_phase(play, RX_PAUSE);
	card_flush(play, late);
	play->record = 0;
	play->done = 0;
	cq_worker_was_reset(&play->cq);
	play_phase(play, RX_RUN);
}

#endif
