/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What receiving costs if nothing is done with the frames: a bare loop of rte_eth_rx_burst() and
 * the mbufs back to their pool, which its per-core cache serves. On net_null that is the loop's
 * whole time; on a wire the cycles that feed it are left out.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "bench/bench_util.h"

struct rx_burst {
	const struct bench *bench;
	struct bench_rx rx;
	uint16_t burst;
	/* Of the last run. */
	uint64_t run_cycles; /* asked for */
	uint64_t cycles, frames;
};

static uint32_t rx_burst_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const char *const sources[] = { "null", "ring" };

	return bench_burst_points(bench, sources, RTE_DIM(sources), points);
}

static void rx_burst_close(void *arg)
{
	struct rx_burst *state = arg;

	bench_rx_close(&state->rx);
	free(state);
}

static int rx_burst_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			 void **out, struct gdrcap_error *error)
{
	struct rx_burst *state = calloc(1, sizeof(*state));
	int ret;

	if (!state)
		return error_set(error, -ENOMEM, "no memory for a receive loop");
	state->bench = bench;
	state->burst = (uint16_t)point->burst;
	ret = bench_rx_open(&state->rx, point, error);
	if (ret < 0) {
		free(state);
		return ret;
	}
	*out = state;
	return 0;
}

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
	struct rx_burst *state = arg;
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	const struct bench_rx rx = state->rx;
	const uint64_t began = rte_rdtsc();
	uint64_t frames = 0, now;

	do {
		for (uint32_t i = 0; i < BENCH_LOOK; i++)
			frames += receive_and_put(&rx, mbufs, state->burst);
		now = rte_rdtsc();
	} while (now - began < state->run_cycles);
	state->frames = frames;
	state->cycles = now - began;
}

static void wire_loop(void *arg, uint32_t index)
{
	struct rx_burst *state = arg;
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	const struct bench_rx rx = state->rx;
	const uint64_t began = rte_rdtsc();
	uint64_t frames = 0, cycles = 0, before, now;

	do {
		bench_rx_feed(&rx, state->burst);
		before = rte_rdtsc();
		frames += receive_and_put(&rx, mbufs, state->burst);
		now = rte_rdtsc();
		cycles += now - before;
	} while (now - began < state->run_cycles);
	state->frames = frames;
	state->cycles = cycles;
}

static int rx_burst_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
			struct gdrcap_error *error)
{
	struct rx_burst *state = arg;
	double away;
	int ret;

	state->run_cycles = rte_get_tsc_hz() / 1000 * run_ms;
	ret = bench_on_cores(state->bench, 1, state->rx.wire ? wire_loop : null_loop, state, &away,
			     error);
	if (ret < 0)
		return ret;
	bench_frame_rate(sample, state->cycles, state->frames);
	if (state->rx.wire)
		snprintf(sample->note, sizeof(sample->note),
			 "one reading of the time stamp a burst is in it");
	bench_note_away(sample, away);
	return 0;
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
	.points = rx_burst_points,
	.open = rx_burst_open,
	.run = rx_burst_run,
	.close = rx_burst_close,
};
