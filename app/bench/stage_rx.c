/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rx worker costs on the CPU: a receive burst, descriptors, PUBLISH, and slots back to the
 * pool. The real rx_worker_run() runs; a receive function put before the port's own plays consumer
 * and accountant, and feeds the wire, where the cycles it spends are subtracted. No payload is read
 * or written, and no other thread works.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "capture/rx_worker.h"

struct rx_stage {
	const struct bench *bench;
	struct gdrcap_bench_point point;
	struct bench_rx rx;
	uint64_t run_cycles; /* asked for */
	uint64_t cycles;     /* of the last run */
};

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

static uint32_t rx_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const char *const sources[] = { "ring", "null" };

	return bench_burst_points(bench, sources, RTE_DIM(sources), points);
}

static void rx_close(void *arg)
{
	struct rx_stage *state = arg;

	bench_rx_close(&state->rx);
	free(state);
}

static int rx_open(const struct bench *bench, const struct gdrcap_bench_point *point, void **out,
		   struct gdrcap_error *error)
{
	struct rx_stage *state = calloc(1, sizeof(*state));
	int ret;

	if (!state)
		return error_set(error, -ENOMEM, "no memory for an rx worker");
	state->bench = bench;
	state->point = *point;
	ret = bench_rx_open(&state->rx, point, error);
	if (ret < 0) {
		free(state);
		return ret;
	}
	*out = state;
	return 0;
}

static void rx_measure(void *arg, uint32_t index)
{
	struct rx_stage *state = arg;
	struct rx_worker *worker = state->rx.worker;
	eth_rx_burst_t *receive = &rte_eth_fp_ops[state->rx.port].rx_pkt_burst;
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
	play.until = began + state->run_cycles;
	rx_worker_run(worker);
	state->cycles = rte_rdtsc() - began - play.harness_cycles;
	*receive = play.receive;
}

static int rx_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
		  struct gdrcap_error *error)
{
	struct rx_stage *state = arg;
	const struct rx_worker *worker = state->rx.worker;
	const uint64_t before = atomic_load(&worker->frames), back = atomic_load(&worker->back);
	uint64_t frames;
	double away;
	int ret;

	state->run_cycles = rte_get_tsc_hz() / 1000 * run_ms;
	ret = bench_on_cores(state->bench, 1, rx_measure, state, &away, error);
	if (ret < 0)
		return ret;
	frames = atomic_load(&worker->frames) - before;
	bench_frame_rate(sample, state->cycles, frames);
	sample->lost = frames - (atomic_load(&worker->back) - back);
	sample->limit = bench_limit_alike(state->bench, "rx_burst", &state->point);
	if (state->rx.wire)
		snprintf(sample->note, sizeof(sample->note),
			 "one reading of the time stamp a burst is in it");
	bench_note_away(sample, away);
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
	.open = rx_open,
	.run = rx_run,
	.close = rx_close,
};
