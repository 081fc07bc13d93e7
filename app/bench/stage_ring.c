/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two parts of the rx worker alone: slots from the pool and back, and the hand-over. In the second
 * the result words are written either by the same core, in between and not timed, or by a consumer
 * on another one, which takes each burst, reads its descriptors and answers with a run.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/eal.h"
#include "base/log.h"
#include "bench/bench_util.h"
#include "capture/ring_producer.h"
#include "gpu/gpu_open.h"
#include "memory/region.h"

#define FRAMES 16384u /* of the pool and the ring, as a session has for a queue */
#define SLOT_SHIFT 8u
#define FRAME_LEN 60u
#define EAL_BYTES ((size_t)128 << 20)
#define BATCH 32u /* bursts published before the same core plays the consumer */

_Static_assert(BATCH *BURST_FRAMES_MAX <= FRAMES, "a batch fits the ring");
_Static_assert(FRAMES % BURST_FRAMES_MAX == 0, "no burst meets the ring's end");

/* ---- mempool ---- */

struct mempool_stage {
	struct bench_loop loop;
	struct rte_mempool *pool;
	uint32_t burst;
	bool cached;
	bool empty; /* a get failed: it must not */
};

static uint32_t mempool_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return bench_burst_points(bench, "cache", "pool", points);
}

static void mempool_close(void *arg)
{
	struct mempool_stage *state = arg;

	rte_mempool_free(state->pool);
}

static int mempool_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			void *opened, struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = EAL_BYTES };
	static _Atomic unsigned int pools;
	struct mempool_stage *state = opened;
	char name[RTE_MEMPOOL_NAMESIZE];
	const int ret = eal_start(&needs, error);

	if (ret < 0)
		return ret;
	state->loop.bench = bench;
	state->burst = point->burst;
	state->cached = strcmp(point->source, "cache") == 0;
	snprintf(name, sizeof(name), "gdrcap_bench%u", pools++);
	state->pool = rte_pktmbuf_pool_create(name, FRAMES, REGION_POOL_CACHE, 0,
					      RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (!state->pool)
		return error_set(error, -rte_errno,
				 "cannot make a pool of %u mbufs: %s; reserve more hugepages",
				 FRAMES, rte_strerror(rte_errno));
	return 0;
}

static void mempool_loop(void *arg, uint32_t index)
{
	struct mempool_stage *state = arg;
	struct rte_mempool_cache *cache =
		state->cached ? rte_mempool_default_cache(state->pool, rte_lcore_id()) : NULL;
	void *objects[BURST_FRAMES_MAX];
	const uint64_t began = rte_rdtsc();
	uint64_t bursts = 0, now;

	do {
		for (uint32_t i = 0; i < BENCH_LOOK; i++) {
			if (rte_mempool_generic_get(state->pool, objects, state->burst, cache) < 0)
				state->empty = true;
			else
				rte_mempool_generic_put(state->pool, objects, state->burst, cache);
		}
		bursts += BENCH_LOOK;
		now = rte_rdtsc();
	} while (now - began < state->loop.run_cycles && !state->empty);
	state->loop.cycles = now - began;
	state->loop.frames = bursts * state->burst;
	/* Its lcore id may be another thread's next. */
	if (cache)
		rte_mempool_cache_flush(cache, state->pool);
}

static int mempool_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
		       struct gdrcap_error *error)
{
	struct mempool_stage *state = arg;
	const int ret = bench_loop_run(&state->loop, 1, mempool_loop, run_ms, sample, error);

	return ret == 0 && state->empty
		       ? error_set(error, -ENOBUFS,
				   "a pool of %u mbufs was empty: this is a defect", FRAMES)
		       : ret;
}

const struct bench_stage bench_mempool = {
	.about = {
		.id = "mempool",
		.group = "cpu",
		.what = "a burst of mbufs out of a pool and back, through the core's cache "
			"(source cache) and without one (source pool)",
		.unit = "ns/frame",
		.less_is_better = 1,
	},
	.points = mempool_points,
	.state_bytes = sizeof(struct mempool_stage),
	.open = mempool_open,
	.run = mempool_run,
	.close = mempool_close,
};

/* ---- burst ring ---- */

struct ring_stage {
	struct bench_loop loop;
	struct ring_producer ring;
	struct region region; /* nobody's memory: descriptors say where frames would be */
	uint32_t burst;
	bool consumer;			      /* a thread of its own */
	_Alignas(RING_LINE) _Atomic int over; /* Writer: producer, when all is through */
	/* Writer: consumer. */
	_Alignas(RING_LINE) uint64_t consumed;
	uint64_t seen; /* of the descriptors, so that they are read */
};

static uint32_t ring_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const uint32_t count = bench_burst_points(bench, NULL, NULL, points);

	if (bench->cpu_count < 2)
		return count;
	memcpy(points + count, points, count * sizeof(*points));
	for (uint32_t i = count; i < 2 * count; i++)
		points[i].blocks = 1;
	return 2 * count;
}

static void ring_close(void *arg)
{
	struct ring_stage *state = arg;

	ring_destroy(&state->ring);
}

static int ring_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		     void *opened, struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = EAL_BYTES };
	struct ring_stage *state = opened;
	const struct ring_config config = {
		.region = &state->region,
		.frames = FRAMES,
		.burst_max = point->burst,
		.inlines = true,
	};
	int ret = eal_start(&needs, error);

	if (ret == 0)
		ret = gpu_open_host(false, error);
	if (ret < 0)
		return ret;
	state->loop.bench = bench;
	state->burst = point->burst;
	state->consumer = point->blocks != 0;
	state->region.gpu = (int16_t)ret;
	state->region.slot_shift = SLOT_SHIFT;
	return ring_create(&state->ring, &config, error);
}

static inline void ring_fill(struct ring_producer *ring, uint32_t burst)
{
	struct frame_desc *desc = &ring->desc[ring->head & ring->desc_mask];

	for (uint32_t i = 0; i < burst; i++)
		desc[i] = (struct frame_desc){
			.slot = (ring->head + i) & ring->desc_mask,
			.len = FRAME_LEN,
			.offset = RTE_PKTMBUF_HEADROOM,
		};
	ring->head += burst;
}

/* As the rx worker, but that no slot goes anywhere. */
static inline void ring_reclaim(struct ring_producer *ring)
{
	while (ring->reclaimed != ring->burst && ring_is_done(ring, ring->reclaimed)) {
		ring->tail = ring->end[(uint32_t)ring->reclaimed & ring->burst_mask];
		ring->reclaimed++;
	}
}

/* Takes burst `b` if it is there, and answers as the built-in consumer does: one run. */
static inline bool ring_consume(struct ring_stage *state, uint64_t b)
{
	const struct burst_ring_view *view = &state->ring.view;
	const uint32_t slot = (uint32_t)b & view->burst_mask;
	/* TAKE. Partner: PUBLISH in ring_publish(). */
	const uint64_t word = __atomic_load_n(&view->ready[slot].word, __ATOMIC_ACQUIRE);
	const uint32_t count = burst_word_count(word);
	struct burst_plain plain = { .sequence = b * count, .count = (uint16_t)count };

	if (!burst_word_is(word, b, state->ring.burst_bits))
		return false;
	for (uint32_t i = 0; i < count; i++)
		plain.frame_bytes += view->desc[(burst_word_first(word) + i) & view->desc_mask].len;
	state->seen += plain.frame_bytes;
	burst_tell(&view->result[slot], &plain, b, state->ring.burst_bits);
	return true;
}

static void ring_alone(struct ring_stage *state)
{
	struct ring_producer *ring = &state->ring;
	const uint64_t began = rte_rdtsc();
	uint64_t cycles = 0, now;

	do {
		uint64_t before = rte_rdtsc();

		for (uint32_t i = 0; i < BATCH; i++) {
			ring_fill(ring, state->burst);
			ring_publish(ring);
		}
		cycles += rte_rdtsc() - before;
		while (ring_consume(state, state->consumed))
			state->consumed++;
		before = rte_rdtsc();
		ring_reclaim(ring);
		now = rte_rdtsc();
		cycles += now - before;
	} while (now - began < state->loop.run_cycles);
	state->loop.cycles = cycles;
}

static void ring_produce(struct ring_stage *state)
{
	struct ring_producer *ring = &state->ring;
	const uint64_t began = rte_rdtsc();
	uint32_t turns = 0;

	/* Descriptors are never more than their ring has; and there are words for a full ring. */
	while ((++turns & (BENCH_LOOK - 1)) || rte_rdtsc() - began < state->loop.run_cycles) {
		if (ring->head - ring->tail + state->burst <= ring->desc_mask + 1) {
			ring_fill(ring, state->burst);
			ring_publish(ring);
		}
		ring_reclaim(ring);
	}
	while (ring->reclaimed != ring->burst)
		ring_reclaim(ring);
	state->loop.cycles = rte_rdtsc() - began;
	/* Partner: the acquire load in ring_serve(). */
	atomic_store_explicit(&state->over, 1, memory_order_release);
}

static void ring_serve(struct ring_stage *state)
{
	while (!atomic_load_explicit(&state->over, memory_order_acquire))
		while (ring_consume(state, state->consumed))
			state->consumed++;
}

static void ring_body(void *arg, uint32_t index)
{
	struct ring_stage *state = arg;

	const uint64_t first = state->ring.burst;

	if (index) {
		ring_serve(state);
		return;
	}
	if (state->consumer)
		ring_produce(state);
	else
		ring_alone(state);
	state->loop.frames = (state->ring.burst - first) * state->burst;
}

static int ring_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	struct ring_stage *state = arg;
	int ret;

	atomic_store(&state->over, 0);
	ret = bench_loop_run(&state->loop, state->consumer ? 2 : 1, ring_body, run_ms, sample,
			     error);
	if (ret == 0)
		sample->lost = (state->ring.burst - state->consumed) * state->burst;
	return ret;
}

static uint32_t ring_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return point->blocks ? 2 : 1;
}

const struct bench_stage bench_ring = {
	.about = {
		.id = "ring",
		.group = "cpu",
		.what = "descriptors, publish and reclaim in the burst ring, without port and "
			"pool; blocks 0: the same core writes the result words, not timed; 1: a "
			"consumer on another core does",
		.unit = "ns/frame",
		.less_is_better = 1,
	},
	.cores = ring_cores,
	.points = ring_points,
	.state_bytes = sizeof(struct ring_stage),
	.open = ring_open,
	.run = ring_run,
	.close = ring_close,
};
