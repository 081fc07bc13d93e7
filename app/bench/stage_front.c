/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front as a CPU thread: from a completion to the slot back in the doorbell record, without a
 * driver and without mbufs. The real cq_worker_run() runs, and a card is played that writes whole
 * completions for what is posted. Blocks 0: the same core plays the card, before each lap of all slots
 * and not timed, so what is measured is the front alone, its completions in the cache that it has just
 * left them in. Blocks n: so many other cores play the card at the same time, as fast as they can, in
 * turn CARD_CHUNK completions each, which the front may see in their order only: each core writes all of its
 * completions but their last words, and those when it has the turn. The slower of card and front is seen,
 * and the note says how often the front found nothing. The consumer is through with each burst as soon as
 * it is published. No payload is read or written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/eal.h"
#include "base/log.h"
#include "base/prefetch.h"
#include "bench/bench_util.h"
#include "capture/cq_worker.h"
#include "gpu/gpu_open.h"
#include "memory/region.h"

#define SLOTS CQ_FRONT_SLOTS_MAX
#define ENTRIES (2 * SLOTS)
#define SLOT_SHIFT 8u
#define FRAME_LEN 60u
#define CARD_PREFETCH 32u /* lines that the front has in its cache, and the card takes */
#define CARD_CHUNK 1024u  /* completions that one writes in turn */
#define EAL_BYTES ((size_t)128 << 20)

/* A core that plays the card, or a part of it. Writer: that core. */
struct front_card {
	_Alignas(RING_LINE) uint64_t index; /* of its next completion */
};

struct front_stage {
	struct bench_loop loop;
	struct region region; /* nobody's memory: descriptors say where frames would be */
	uint32_t cards;	      /* threads that play it; 0: the front's own */
	uint64_t until;	      /* frames, where it is the front's own */
	uint64_t before;      /* frames at the run's begin */
	struct rx_worker *worker;
	struct cq_worker *cq;
	uint8_t *completions;
	uint32_t *record;
	struct front_card *card;
	/* The completion whose last word is the next to be written. Writer: the core whose it is. */
	_Alignas(RING_LINE) _Atomic uint64_t turn;
	_Alignas(RING_LINE) _Atomic int over; /* Writer: the front's thread */
};

/* ---- the card ---- */

/* A completion but for its last word. */
static inline void card_write_body(uint8_t *completions, uint64_t index)
{
	uint8_t *cqe = completions + cq_at(index, ENTRIES);
	uint32_t head[12] = { 0 };

	prefetch_for_write(completions + cq_at(index + CARD_PREFETCH, ENTRIES));
	head[CQ_LENGTH_AT / 4] = cq_swap32(FRAME_LEN);
	memcpy(cqe, head, sizeof(head));
	__atomic_store_n((uint64_t *)(void *)(cqe + CQ_TIME_AT), cq_swap64(index),
			 __ATOMIC_RELAXED);
}

static inline void card_write_tail(uint8_t *completions, uint64_t index)
{
	__atomic_store_n((uint64_t *)(void *)(completions + cq_at(index, ENTRIES) + CQ_TAIL_AT - 4),
			 (uint64_t)cq_tail_frame(index, ENTRIES, (uint32_t)index) << 32,
			 __ATOMIC_RELEASE);
}

/* Each line whole, its last word last, as a card's write over the bus is seen. */
static inline void card_write(uint8_t *completions, uint64_t index, uint32_t n)
{
	for (; n; n--, index++) {
		card_write_body(completions, index);
		card_write_tail(completions, index);
	}
}

/* Work entries that are posted from `index` on. */
static inline uint32_t card_posted(const struct front_stage *state, uint64_t index)
{
	const uint32_t record = __atomic_load_n(state->record, __ATOMIC_ACQUIRE);
	const uint16_t posted = (uint16_t)(cq_swap32(record) - (uint32_t)index);

	/* One that plays a part may be ahead of what is posted. */
	return posted <= SLOTS ? posted : 0;
}

/* ---- played by the front's core ---- */

/* Before each PUBLISH: the consumer is through with this burst as soon as it is there; and with the
 * lap's last one the front ends. */
static int core_publishes(void *arg)
{
	struct front_stage *state = arg;
	struct rx_worker *worker = state->worker;

	atomic_store_explicit(&worker->ring.collected, worker->ring.burst + 1,
			      memory_order_release);
	if (atomic_load_explicit(&worker->frames, memory_order_relaxed) == state->until)
		atomic_store_explicit(&worker->phase, RX_DRAIN, memory_order_relaxed);
	return 0;
}

static void core_loop(struct front_stage *state)
{
	struct rx_worker *worker = state->worker;
	const uint64_t began = rte_rdtsc();
	uint64_t cycles = 0, before, now;

	do {
		const uint32_t posted = card_posted(state, state->card->index);

		card_write(state->completions, state->card->index, posted);
		state->card->index += posted;
		state->until += posted;
		atomic_store(&worker->ring.ended, 0);
		atomic_store(&worker->phase, RX_RUN);
		before = rte_rdtsc();
		cq_worker_run(worker);
		now = rte_rdtsc();
		cycles += now - before;
	} while (now - began < state->loop.run_cycles);
	state->loop.cycles = cycles;
}

/* ---- played by others ---- */

/* The consumer and the accountant are through with everything. */
static inline void thread_collect(struct ring_producer *ring)
{
	atomic_store_explicit(&ring->collected,
			      atomic_load_explicit(&ring->published, memory_order_relaxed),
			      memory_order_release);
}

/* One core's next completions. Without the turn, which comes with those before them, they stay as they are. */
static void thread_write(struct front_stage *state, uint32_t part)
{
	struct front_card *card = &state->card[part];

	for (uint32_t i = 0; i < CARD_CHUNK; i++)
		card_write_body(state->completions, card->index + i);
	/* Partner: the release store below, of the core before. */
	while (atomic_load_explicit(&state->turn, memory_order_acquire) != card->index) {
		if (part == 0)
			thread_collect(&state->worker->ring);
		if (atomic_load_explicit(&state->over, memory_order_relaxed))
			return;
		rte_pause();
	}
	for (uint32_t i = 0; i < CARD_CHUNK; i++)
		card_write_tail(state->completions, card->index + i);
	atomic_store_explicit(&state->turn, card->index + CARD_CHUNK, memory_order_release);
	card->index += (uint64_t)state->cards * CARD_CHUNK;
}

static void thread_card(struct front_stage *state, uint32_t part)
{
	struct front_card *card = &state->card[part];
	const uint64_t began = rte_rdtsc();
	uint32_t turns = 0;
	bool ends = false;

	/* Partner: the release store in thread_front(). */
	while (!atomic_load_explicit(&state->over, memory_order_acquire)) {
		if (part == 0)
			thread_collect(&state->worker->ring);
		if (ends)
			continue;
		if (card_posted(state, card->index) >= CARD_CHUNK)
			thread_write(state, part);
		if (++turns & (BENCH_LOOK - 1) || rte_rdtsc() - began < state->loop.run_cycles)
			continue;
		/* Its core may have been somebody else's for all of the time: a run without a frame
		 * has no figure. */
		if (atomic_load_explicit(&state->worker->frames, memory_order_relaxed) ==
		    state->before)
			continue;
		ends = true;
		atomic_store_explicit(&state->worker->phase, RX_DRAIN, memory_order_relaxed);
	}
}

static void thread_front(struct front_stage *state)
{
	const uint64_t began = rte_rdtsc();

	cq_worker_run(state->worker);
	state->loop.cycles = rte_rdtsc() - began;
	/* Partner: the acquire load in thread_card(). */
	atomic_store_explicit(&state->over, 1, memory_order_release);
}

/* ---- both ---- */

static void front_body(void *arg, uint32_t index)
{
	struct front_stage *state = arg;

	if (index) {
		thread_card(state, index - 1);
		return;
	}
	if (state->cards)
		thread_front(state);
	else
		core_loop(state);
	state->loop.frames = atomic_load(&state->worker->frames) - state->before;
}

static int front_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
		     struct gdrcap_error *error)
{
	struct front_stage *state = arg;
	struct rx_worker *worker = state->worker;
	const uint64_t idle = atomic_load(&worker->idle), bursts = atomic_load(&worker->bursts);
	int ret;

	atomic_store(&worker->ring.ended, 0);
	atomic_store(&worker->phase, RX_RUN);
	atomic_store(&state->over, 0);
	state->before = atomic_load(&worker->frames);
	ret = bench_loop_run(&state->loop, state->cards + 1, front_body, run_ms, sample, error);
	if (ret < 0)
		return ret;
	if (atomic_load(&state->cq->state) != CQ_RUNS)
		return error_set(error, -EIO, "the front stopped: %s: this is a defect",
				 cq_worker_fault_words(&state->cq->fault));
	sample->lost = atomic_load(&worker->frames) - atomic_load(&worker->back);
	if (state->cards)
		snprintf(sample->note, sizeof(sample->note),
			 "%.1f frames a burst, %.1f rounds a burst found nothing",
			 (double)sample->frames / (double)(atomic_load(&worker->bursts) - bursts),
			 (double)(atomic_load(&worker->idle) - idle) /
				 (double)(atomic_load(&worker->bursts) - bursts));
	return 0;
}

static uint32_t front_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const uint32_t cards[] = { 1, 4 };
	const uint32_t bursts = bench_burst_points(bench, NULL, NULL, points);
	uint32_t count = bursts;

	for (uint32_t c = 0; c < RTE_DIM(cards) && cards[c] < bench->cpu_count; c++)
		for (uint32_t i = 0; i < bursts; i++) {
			points[count] = points[i];
			points[count++].blocks = cards[c];
		}
	return count;
}

static uint32_t front_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return point->blocks + 1;
}

static void front_close(void *arg)
{
	struct front_stage *state = arg;

	if (state->worker)
		rx_worker_destroy(state->worker);
	free(state->worker);
	free(state->cq);
	free(state->completions);
	free(state->record);
	free(state->card);
}

static void *lines_zeroed(size_t bytes)
{
	void *lines = aligned_alloc(RING_LINE, bytes);

	if (lines)
		memset(lines, 0, bytes);
	return lines;
}

static int front_create(struct front_stage *state, const struct gdrcap_bench_point *point,
			struct gdrcap_error *error)
{
	const struct ring_config ring = {
		.region = &state->region,
		.frames = SLOTS,
		.burst_max = point->burst,
		.inlines = true,
	};
	const struct rx_config config = {
		.region = &state->region,
		.flush = state->cards ? NULL : core_publishes,
		.flush_context = state,
		.in_flight_max = UINT32_MAX,
		.starved_from = UINT32_MAX,
		.accounted = true,
	};
	const struct cq_front_queue queue = {
		.cq = state->completions,
		.record = state->record,
		.cq_entries = ENTRIES,
		.slots = SLOTS,
		.slot_bytes = 1u << SLOT_SHIFT,
	};
	int ret = rx_worker_create(state->worker, &config, &ring, error);

	memset(state->completions, 0xf1, (size_t)ENTRIES * CQ_BYTES);
	if (ret == 0)
		ret = cq_worker_create(state->cq, state->worker, &queue, error);
	return ret;
}

static int front_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		      void *opened, struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = EAL_BYTES };
	struct front_stage *state = opened;
	int ret = eal_start(&needs, error);

	if (ret == 0)
		ret = gpu_open_host(false, error);
	if (ret < 0)
		return ret;
	state->loop.bench = bench;
	state->cards = point->blocks;
	state->region.gpu = (int16_t)ret;
	state->region.slot_shift = SLOT_SHIFT;
	state->region.slots = SLOTS;
	state->worker = lines_zeroed(sizeof(*state->worker));
	state->cq = lines_zeroed(sizeof(*state->cq));
	state->record = lines_zeroed(RING_LINE);
	state->completions = lines_zeroed((size_t)ENTRIES * CQ_BYTES);
	state->card = lines_zeroed((state->cards + 1) * sizeof(*state->card));
	for (uint32_t c = 1; state->card && c < state->cards; c++)
		state->card[c].index = (uint64_t)c * CARD_CHUNK;
	if (!state->worker || !state->cq || !state->record || !state->completions || !state->card)
		return error_set(error, -ENOMEM, "no memory for %u completions", ENTRIES);
	return front_create(state, point, error);
}

const struct bench_stage bench_front = {
	.about = {
		.id = "front",
		.group = "cpu",
		.what = "the front of an own receive queue as a CPU thread, without driver and "
			"mbufs: completions, descriptors, publish, reclaim and doorbell record; "
			"blocks 0: the same core writes the completions, not timed; n: n other "
			"cores do, as fast as they can",
		.unit = "ns/frame",
		.less_is_better = 1,
	},
	.cores = front_cores,
	.points = front_points,
	.state_bytes = sizeof(struct front_stage),
	.open = front_open,
	.run = front_run,
	.close = front_close,
};
