/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What receiving costs on the CPU. "rx_burst", if nothing is done with the frames: a bare loop of
 * rte_eth_rx_burst() and the mbufs back to their pool, which its per-core cache serves. "rx_worker":
 * a receive burst, descriptors, PUBLISH, and slots back to the pool. The real rx_worker_run() runs;
 * a receive function put before the port's own plays consumer and accountant, and feeds the wire.
 * On net_null the whole time counts; on a wire the cycles that feed it are subtracted. No payload is
 * read or written, and no other thread works.
 */
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "bench/bench_util.h"
#include "capture/rx_worker.h"

struct rx_stage {
	struct bench_loop loop;
	struct gdrcap_bench_point point;
	struct bench_rx rx;
};

/* ---- both ---- */

static uint32_t rx_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return bench_burst_points(bench, "null", "ring", points);
}

static int rx_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *opened,
		   struct gdrcap_error *error)
{
	struct rx_stage *state = opened;

	state->loop.bench = bench;
	state->point = *point;
	return bench_rx_open(&state->rx, point, error);
}

static void rx_close(void *arg)
{
	struct rx_stage *state = arg;

	bench_rx_close(&state->rx);
}

static int rx_run(struct rx_stage *state, void (*body)(void *state, uint32_t index),
		  uint32_t run_ms, struct bench_sample *sample, struct gdrcap_error *error)
{
	if (state->rx.wire)
		snprintf(sample->note, sizeof(sample->note),
			 "one reading of the time stamp a burst is in it");
	return bench_loop_run(&state->loop, 1, body, run_ms, sample, error);
}

/* ---- the bare loop ---- */

static inline uint16_t receive_and_put(const struct bench_rx *rx, struct rte_mbuf **mbufs,
				       uint16_t burst)
{
	const uint16_t n = rte_eth_rx_burst(rx->port, 0, mbufs, burst);

	/* As the rx worker: raw, a driver's mbufs being as the pool's must be. */
	if (n)
		rte_mempool_put_bulk(rx->pool, (void *const *)mbufs, n);
	return n;
}

static void null_loop(void *arg, uint32_t index)
{
	struct rx_stage *state = arg;
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	const struct bench_rx rx = state->rx;
	const uint64_t began = rte_rdtsc();
	uint64_t frames = 0, now;

	do {
		for (uint32_t i = 0; i < BENCH_LOOK; i++)
			frames += receive_and_put(&rx, mbufs, (uint16_t)state->point.burst);
		now = rte_rdtsc();
	} while (now - began < state->loop.run_cycles);
	state->loop.frames = frames;
	state->loop.cycles = now - began;
}

static void wire_loop(void *arg, uint32_t index)
{
	struct rx_stage *state = arg;
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	const struct bench_rx rx = state->rx;
	const uint64_t began = rte_rdtsc();
	uint64_t frames = 0, cycles = 0, before, now;

	do {
		bench_rx_feed(&rx, (uint16_t)state->point.burst);
		before = rte_rdtsc();
		frames += receive_and_put(&rx, mbufs, (uint16_t)state->point.burst);
		now = rte_rdtsc();
		cycles += now - before;
	} while (now - began < state->loop.run_cycles);
	state->loop.frames = frames;
	state->loop.cycles = cycles;
}

static int rx_burst_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
			struct gdrcap_error *error)
{
	struct rx_stage *state = arg;

	return rx_run(state, state->rx.wire ? wire_loop : null_loop, run_ms, sample, error);
}

const struct bench_stage bench_rx_burst = {
	.about = {
		.id = "rx_burst",
		.group = "limit",
		.what = "a bare loop of rte_eth_rx_burst() and the mbufs back to their pool's "
			"per-core cache, on net_null and on a software wire that is fed "
			"beforehand; nothing is read of a frame",
		.unit = "ns/frame",
		.less_is_better = 1,
	},
	.points = rx_points,
	.state_bytes = sizeof(struct rx_stage),
	.open = rx_open,
	.run = rx_burst_run,
	.close = rx_close,
};

/* ---- the rx worker ---- */

/* A receive function knows nothing but its queue, so this is the process's: only while a run is on.
 * Writer and reader: its thread. */
static struct {
	const struct bench_rx *rx;
	eth_rx_burst_t receive; /* the port's own */
	uint64_t until;		/* tsc */
	uint64_t harness_cycles;
	uint32_t polls;
} play;

/* The consumer and the accountant are through with everything. */
static void play_collect(void)
{
	struct ring_producer *ring = &play.rx->worker->ring;

	atomic_store_explicit(&ring->collected,
			      atomic_load_explicit(&ring->published, memory_order_relaxed),
			      memory_order_release);
}

static void play_end(void)
{
	atomic_store_explicit(&play.rx->worker->phase, RX_DRAIN, memory_order_relaxed);
}

/* The cycles up to the port's own function are the harness's, not the rx worker's. */
static uint16_t play_wire(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint64_t before = rte_rdtsc();
	/* once at least, however late this thread came to run */
	const bool more = play.polls++ == 0 || before < play.until;

	play_collect();
	if (more)
		bench_rx_feed(play.rx, n);
	else
		play_end();
	play.harness_cycles += rte_rdtsc() - before;
	/* When it is over the wire is empty. */
	return play.receive(queue, mbufs, n);
}

/* Nothing is subtracted: to look at the time stamp for it would cost more than it does. */
static uint16_t play_null(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	play_collect();
	if ((++play.polls & (BENCH_LOOK - 1)) == 0 && rte_rdtsc() >= play.until) {
		play_end();
		return 0;
	}
	return play.receive(queue, mbufs, n);
}

static void rx_measure(void *arg, uint32_t index)
{
	struct rx_stage *state = arg;
	struct rx_worker *worker = state->rx.worker;
	eth_rx_burst_t *receive = &rte_eth_fp_ops[state->rx.port].rx_pkt_burst;
	const uint64_t before = atomic_load(&worker->frames);
	uint64_t began;

	play.rx = &state->rx;
	play.receive = *receive;
	play.harness_cycles = 0;
	play.polls = 0;
	/* As before its first run; the ring goes on where it is. */
	atomic_store(&worker->ring.ended, 0);
	atomic_store(&worker->phase, RX_RUN);
	*receive = state->rx.wire ? play_wire : play_null;
	began = rte_rdtsc();
	play.until = began + state->loop.run_cycles;
	rx_worker_run(worker);
	state->loop.cycles = rte_rdtsc() - began - play.harness_cycles;
	state->loop.frames = atomic_load(&worker->frames) - before;
	*receive = play.receive;
}

static int rx_worker_measure(void *arg, uint32_t run_ms, struct bench_sample *sample,
			     struct gdrcap_error *error)
{
	struct rx_stage *state = arg;
	const uint64_t back = atomic_load(&state->rx.worker->back);
	const int ret = rx_run(state, rx_measure, run_ms, sample, error);

	if (ret < 0)
		return ret;
	sample->lost = sample->frames - (atomic_load(&state->rx.worker->back) - back);
	sample->limit = bench_limit_alike(state->loop.bench, "rx_burst", &state->point);
	return 0;
}

const struct bench_stage bench_rx_worker = {
	.about = {
		.id = "rx_worker",
		.group = "cpu",
		.what = "the rx worker without consumer, from the call of rte_eth_rx_burst() to "
			"the slots back in their pool: descriptors, publish and reclaim; what "
			"feeds a wire and plays the consumer is left out",
		.unit = "ns/frame",
		.less_is_better = 1,
		.limit = "rx_burst",
	},
	.points = rx_points,
	.state_bytes = sizeof(struct rx_stage),
	.open = rx_open,
	.run = rx_worker_measure,
	.close = rx_close,
};
