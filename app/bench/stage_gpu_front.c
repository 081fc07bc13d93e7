/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front on a GPU with its checkers: a kernel on the same GPU plays the card and completes frames that lie in
 * their slots already, as fast as their slots come back; each is described, published, checked and
 * counted. A frame's sequence number is its slot's, so that order is checked too.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench_util.h"
#include "bench/fronts.h"

#define SLOTS 32768u /* as many as a queue can have */
#define BURST 256u
#define BURST_US 20u
#define CARD_BLOCKS 3u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct gpu_front {
	const struct bench *bench;
	struct fronts *fronts;
	uint32_t frame_bytes, queues;
};

static uint32_t gpu_front_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const struct bench_grid grids[] = {
		{ BENCH_LIST(1, 2, 4), BENCH_LIST(64), BENCH_LIST(BURST), BENCH_LIST(8), "prbs31",
		  "device", .source = "card", .needs_cuda = true },
		/* as many blocks as are sure to run together, with the card's */
		{ BENCH_LIST(8), BENCH_LIST(64), BENCH_LIST(BURST), BENCH_LIST(4), "prbs31",
		  "device", .source = "card", .needs_cuda = true },
		{ BENCH_LIST(1), BENCH_LIST(64, 1500), BENCH_LIST(BURST), BENCH_LIST(16), "prbs31",
		  "device", .source = "card", .needs_cuda = true },
		{ BENCH_LIST(1), BENCH_LIST(64), BENCH_LIST(64), BENCH_LIST(16), "prbs31", "device",
		  .source = "card", .needs_cuda = true },
		{ BENCH_LIST(4), BENCH_LIST(1500), BENCH_LIST(BURST), BENCH_LIST(16), "prbs31",
		  "device", .source = "card", .needs_cuda = true },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, COUNT(grids));
	return to.count;
}

static void gpu_front_close(void *state)
{
	fronts_close(((struct gpu_front *)state)->fronts);
}

static int gpu_front_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			  void *state, struct gdrcap_error *error)
{
	const struct fronts_config config = {
		.queues = point->queues,
		.slots = SLOTS,
		.burst = point->burst,
		.checkers = point->blocks,
		.card_blocks = CARD_BLOCKS,
		.frame_bytes = point->frame_bytes,
		.burst_us = BURST_US,
		.pattern = point->pattern,
	};
	struct gpu_front *front = state;

	front->bench = bench;
	front->frame_bytes = point->frame_bytes;
	front->queues = point->queues;
	bench_pin(bench, 0);
	return fronts_open(bench, &config, &front->fronts, error);
}

/* What the front says of itself, of the first queue. */
static void gpu_front_note(const struct gpu_front *front, const struct front_status *before,
			   const struct fronts_counts *counts, struct bench_sample *sample)
{
	const struct front_status *status = fronts_status(front->fronts, 0);

	snprintf(sample->note, sizeof(sample->note),
		 "%.1f frames a burst; of queue 0: %.1f looks and %.2f reposts a thousand frames",
		 (double)counts->frames / (double)counts->bursts,
		 (double)(status->passes - before->passes) * 1e3 * front->queues /
			 (double)counts->frames,
		 (double)(status->reposts - before->reposts) * 1e3 * front->queues /
			 (double)counts->frames);
}

static int gpu_front_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			 struct gdrcap_error *error)
{
	struct gpu_front *front = state;
	const struct front_status before = *fronts_status(front->fronts, 0);
	struct fronts_counts counts = { 0 };
	int ret;

	bench_pin(front->bench, 0);
	ret = fronts_play(front->fronts, run_ms, &counts, error);
	if (ret < 0)
		return ret;
	sample->seconds = counts.seconds;
	sample->frames = counts.frames;
	sample->validated = counts.validated;
	sample->damaged = counts.damaged;
	sample->lost = counts.frames - counts.validated - counts.damaged;
	sample->mpps = (double)counts.validated / counts.seconds / 1e6;
	sample->gbps = sample->mpps * front->frame_bytes * 8 / 1e3;
	sample->value = sample->mpps;
	sample->sequence_checked = true;
	gpu_front_note(front, &before, &counts, sample);
	return 0;
}

static uint32_t gpu_front_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return 1; /* the accountant */
}

const struct bench_stage bench_gpu_front = {
	.about = {
		.id = "gpu_front",
		.group = "consumer",
		.what = "completions that a kernel writes into GPU memory, as a card would, are polled "
			"by the GPU's front, and their frames, which lie in their slots, are checked, up to "
			"the counted verdict; slots are posted again",
		.unit = "Mpps",
	},
	.needs_cuda = true,
	.cores = gpu_front_cores,
	.points = gpu_front_points,
	.state_bytes = sizeof(struct gpu_front),
	.open = gpu_front_open,
	.run = gpu_front_run,
	.close = gpu_front_close,
};
