/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a frame takes through the front on a GPU: the CPU tells the kernel that plays the card, which has all but
 * the completions' last words written, and waits for the verdict. So what is timed has one way to the
 * GPU more in it than a card's completion has: some half of an empty round trip.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/fronts.h"
#include "bench/latency.h"

#define SLOTS 4096u
#define STUCK_NS 5000000000ull
#define GAP_NS 5000u /* from a verdict to the next completion */

struct front_latency {
	const struct bench *bench;
	struct fronts *fronts;
	double *ns;
};

static uint32_t front_latency_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const struct bench_grid grids[] = {
		{ BENCH_LIST(1), BENCH_LIST(LATENCY_FRAME_BYTES), BENCH_LIST(1, LATENCY_BURST),
		  BENCH_LIST(1, LATENCY_BLOCKS), "prbs31", "device", .source = "card",
		  .needs_cuda = true },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, 1);
	return to.count;
}

static void front_latency_close(void *state)
{
	struct front_latency *latency = state;

	fronts_close(latency->fronts);
	free(latency->ns);
}

static int front_latency_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			      void *state, struct gdrcap_error *error)
{
	const struct card_queue card = { .batch = point->burst };
	const struct fronts_config config = {
		.queues = 1,
		.slots = SLOTS,
		.burst = BURST_FRAMES_MAX,
		.checkers = point->blocks,
		.card_blocks = 1,
		.frame_bytes = point->frame_bytes,
		.burst_us = 20,
		.pattern = point->pattern,
		.card = &card,
		.on_word = true,
	};
	struct front_latency *latency = state;

	latency->bench = bench;
	latency->ns = malloc(LATENCY_SAMPLES_MOST * sizeof(*latency->ns));
	if (!latency->ns)
		return error_set(error, -ENOMEM, "no memory for samples");
	bench_pin(bench, 0);
	return fronts_open(bench, &config, &latency->fronts, error);
}

/* One batch of `burst` frames. 0: no verdict came. */
static uint64_t batch_play(struct front_latency *latency, uint32_t burst, uint64_t *word,
			   struct fronts_counts *counts)
{
	const uint64_t frames = counts->frames + burst, begin = bench_now_ns();
	uint64_t now;

	__atomic_store_n(word, *word + 1, __ATOMIC_RELEASE);
	do {
		fronts_collect(latency->fronts, counts);
		now = bench_now_ns();
		if (counts->frames >= frames)
			return now - begin;
	} while (now - begin < STUCK_NS);
	return 0;
}

static int front_latency_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			     struct gdrcap_error *error)
{
	struct front_latency *latency = state;
	struct fronts_counts counts = { 0 };
	uint64_t *word = fronts_go(latency->fronts), samples = 0;
	const uint64_t begin = bench_now_ns();
	const uint32_t burst = fronts_batch(latency->fronts);
	int ret;

	bench_pin(latency->bench, 0);
	ret = fronts_begin(latency->fronts, error);
	while (!ret && !latency_is_over(samples, bench_now_ns() - begin, run_ms)) {
		const uint64_t ns = batch_play(latency, burst, word, &counts);
		const uint64_t next = bench_now_ns() + GAP_NS;

		if (!ns)
			ret = error_set(error, -ETIMEDOUT, "no verdict came for 5 s: see dmesg");
		latency->ns[samples++] = (double)ns;
		while (bench_now_ns() < next)
			;
	}
	if (fronts_card_stop(latency->fronts) < 0 && !ret)
		ret = error_set(error, -EIO, "%s", kernel_error());
	sample->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	sample->frames = counts.frames;
	sample->validated = counts.validated;
	sample->damaged = counts.damaged;
	sample->sequence_checked = true;
	latency_sample(latency->ns, samples, sample);
	snprintf(sample->note, sizeof(sample->note),
		 "with the CPU's word to the card, some half of an empty round trip; %.2f bursts a "
		 "batch",
		 (double)counts.bursts / (double)(samples ? samples : 1));
	return ret;
}

const struct bench_stage bench_front_latency = {
	.about = {
		.id = "front_latency",
		.group = "latency",
		.what = "from the CPU's word to the kernel that plays the card, which then completes frames, "
			"through the GPU's front and checker to the verdict seen by the CPU: the median",
		.unit = "ns",
		.less_is_better = 1,
		.limit = "round_trip",
	},
	.needs_cuda = true,
	.points = front_latency_points,
	.state_bytes = sizeof(struct front_latency),
	.open = front_latency_open,
	.run = front_latency_run,
	.close = front_latency_close,
};
