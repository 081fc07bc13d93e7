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
#define SPACING_NS 4000u /* from batch to batch; the card asks for the word each 1.4 us */
#define UNDER_WAY 256u

struct front_latency {
	const struct bench *bench;
	struct fronts *fronts;
	double *ns;
	uint64_t left; /* batches of the last run without a verdict */
};

static uint32_t front_latency_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const struct bench_grid grids[] = {
		{ BENCH_LIST(1), BENCH_LIST(LATENCY_FRAME_BYTES), BENCH_LIST(1, LATENCY_BURST),
		  BENCH_LIST(1, 4, LATENCY_BLOCKS), "prbs31", "device", .source = "card",
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

/* Tells the card of a batch when one is due, and takes the time of those that are through. */
static void batches_play(struct front_latency *latency, uint32_t run_ms, uint64_t *samples,
			 struct fronts_counts *counts)
{
	const uint32_t burst = fronts_batch(latency->fronts);
	const uint64_t begin = bench_now_ns(), first = *fronts_go(latency->fronts);
	uint64_t sent_ns[UNDER_WAY], sent = 0, due = begin, now = begin, seen = begin;
	bool over = false;

	while ((!over || *samples < sent) && now - seen < STUCK_NS) {
		fronts_collect(latency->fronts, counts);
		now = bench_now_ns();
		for (; *samples < sent && counts->frames >= (*samples + 1) * burst; seen = now) {
			latency->ns[*samples] = (double)(now - sent_ns[*samples % UNDER_WAY]);
			++*samples;
		}
		over = over || latency_is_over(*samples + UNDER_WAY, now - begin, run_ms);
		if (over || now < due || sent - *samples >= UNDER_WAY)
			continue;
		sent_ns[sent++ % UNDER_WAY] = bench_now_ns();
		__atomic_store_n(fronts_go(latency->fronts), first + sent, __ATOMIC_RELEASE);
		due = now + SPACING_NS;
	}
	latency->left = sent - *samples;
}

static int front_latency_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			     struct gdrcap_error *error)
{
	struct front_latency *latency = state;
	struct fronts_counts counts = { 0 };
	const uint64_t begin = bench_now_ns();
	uint64_t samples = 0;
	double half;
	int ret;

	bench_pin(latency->bench, 0);
	ret = fronts_begin(latency->fronts, error);
	if (ret == 0)
		batches_play(latency, run_ms, &samples, &counts);
	if (latency->left)
		ret = error_set(error, -ETIMEDOUT, "no verdict came for 5 s: see dmesg");
	if (fronts_card_stop(latency->fronts) < 0 && !ret)
		ret = error_set(error, -EIO, "%s", kernel_error());
	sample->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	sample->frames = counts.frames;
	sample->validated = counts.validated;
	sample->damaged = counts.damaged;
	sample->lost = counts.frames - counts.validated - counts.damaged;
	sample->sequence_checked = true;
	latency_sample(latency->ns, samples, sample);
	half = bench_limit(latency->bench, "round_trip", NULL) / 2;
	snprintf(
		sample->note, sizeof(sample->note),
		"a batch each %u ns, %.2f bursts a batch; less half a round trip, the CPU's word: %.0f ns",
		SPACING_NS, (double)counts.bursts / (double)(samples ? samples : 1),
		sample->value - half);
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
