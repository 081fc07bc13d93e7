/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency: from PUBLISH of a burst in the ring to its result seen by the CPU that polls for it. The
 * frames are resident, every byte is checked.
 */
#include "bench/latency.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/resident.h"

#define PATTERN "prbs31"
#define WARM_MS 20u
#define LOAD_MS 50u
#define REGION_BYTES ((size_t)16 << 20) /* nobody waits for frames' memory at this load */
#define LOOPS_PER_LOOK 4096u		/* at whether workers still run */

struct latency {
	const struct bench *bench;
	struct resident *resident;
	uint64_t spacing_ns;
	double load_mpps;
	uint64_t sent_ns[RESIDENT_BURSTS]; /* of burst b & (RESIDENT_BURSTS - 1) */
	double *ns;
};

static uint32_t points_with(const struct bench *bench, const uint32_t *blocks,
			    struct gdrcap_bench_point *points)
{
	const struct bench_grid grid = {
		.queues = BENCH_LIST(1),
		.frame_bytes = BENCH_LIST(LATENCY_FRAME_BYTES),
		.bursts = BENCH_LIST(LATENCY_BURST),
		.blocks = blocks,
		.pattern = PATTERN,
		.memory = bench->cuda ? "device" : "host",
		.source = "resident",
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, &grid, 1);
	return to.count;
}

static uint32_t latency_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	if (!bench->cuda)
		return points_with(bench, BENCH_LIST(1), points);
	return points_with(bench,
			   bench->config->quick ? BENCH_LIST(LATENCY_BLOCKS)
						: BENCH_LIST(LATENCY_BLOCKS, 1, 2, 4, 8, 32),
			   points);
}

static void latency_close(void *state)
{
	struct latency *latency = state;

	resident_close(latency->resident);
	free(latency->ns);
}

/* Consumer and load of a state. */
static int latency_prepare(struct latency *latency, uint32_t blocks, struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = LATENCY_FRAME_BYTES,
		.burst = LATENCY_BURST,
		.rings = 1,
		.pattern = PATTERN,
		.memory = latency->bench->cuda ? "device" : "host",
		.bytes = REGION_BYTES,
	};
	struct resident_counts warm = { 0 }, counts = { 0 };
	int ret = resident_create(latency->bench, &config, &latency->resident, error);

	if (ret == 0)
		ret = resident_fill(latency->resident, error);
	if (ret == 0)
		ret = resident_start(latency->resident, KERNEL_CHECK, blocks, error);
	if (ret == 0)
		ret = resident_play(latency->resident, WARM_MS, 0, &warm, error);
	if (ret == 0)
		ret = resident_play(latency->resident, LOAD_MS, 0, &counts, error);
	if (ret < 0)
		return ret;
	latency->load_mpps =
		(double)counts.frames / counts.seconds / 1e6 * LATENCY_LOAD_PERCENT / 100;
	latency->spacing_ns = (uint64_t)(LATENCY_BURST * 1e3 / latency->load_mpps);
	return 0;
}

static int latency_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			void *state, struct gdrcap_error *error)
{
	struct latency *latency = state;

	latency->bench = bench;
	latency->ns = malloc(LATENCY_SAMPLES_MOST * sizeof(*latency->ns));
	if (!latency->ns)
		return error_set(error, -ENOMEM, "no memory for samples");
	bench_pin(bench, 0);
	return latency_prepare(latency, point->blocks, error);
}

int latency_load(const struct bench *bench, uint32_t blocks, uint64_t *spacing_ns, double *mpps,
		 struct gdrcap_error *error)
{
	struct gdrcap_bench_point point;
	struct latency *latency;
	void *state;
	int ret;

	points_with(bench, BENCH_LIST(blocks), &point);
	ret = bench_stage_open(&bench_latency, bench, &point, &state, error);
	if (ret < 0)
		return ret;
	latency = state;
	*spacing_ns = latency->spacing_ns;
	*mpps = latency->load_mpps;
	bench_stage_close(&bench_latency, state);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void latency_sample(double *ns, uint64_t count, struct bench_sample *sample)
{
	qsort(ns, count, sizeof(ns[0]), compare);
	sample->latencies = ns;
	sample->latency_count = count;
	/* nearest rank, as the runner's percentiles */
	sample->value = count ? ns[(count - 1) / 2] : 0;
}

/* Sends a burst when one is due. One that is late is sent at once, and the next at its distance. */
static inline void send_due(struct latency *latency, struct resident_ring *ring, uint64_t *due_ns)
{
	uint64_t now = bench_now_ns();

	if (now < *due_ns || !resident_has_room(ring))
		return;
	resident_describe(latency->resident, ring);
	now = bench_now_ns();
	latency->sent_ns[ring->published & (RESIDENT_BURSTS - 1)] = now;
	resident_publish(latency->resident, ring);
	*due_ns += latency->spacing_ns;
	if (*due_ns < now)
		*due_ns = now + latency->spacing_ns;
}

/* Until the run is over and nothing is under way. Returns the number of samples. */
static int latency_play(struct latency *latency, uint32_t run_ms, struct resident_counts *counts,
			uint64_t *samples, struct gdrcap_error *error)
{
	struct resident *resident = latency->resident;
	struct resident_ring *ring = &resident->ring[0];
	const uint64_t begin = bench_now_ns();
	uint64_t due = begin, seen = begin, count = 0;
	bool over = false;
	int ret = 0;

	for (uint32_t loop = 1; (!over || ring->collected < ring->published) && !ret; loop++) {
		if (ring->collected < ring->published && resident_done(ring)) {
			seen = bench_now_ns();
			if (count < LATENCY_SAMPLES_MOST)
				latency->ns[count++] =
					(double)(seen - latency->sent_ns[ring->collected &
									 (RESIDENT_BURSTS - 1)]);
			resident_account(resident, ring, counts);
			over = latency_is_over(count, seen - begin, run_ms);
		}
		if (!over)
			send_due(latency, ring, &due);
		/* the twin's thread has no CPU of its own */
		if (!latency->bench->cuda && latency->bench->cpu_count < 2)
			sched_yield();
		if (loop % LOOPS_PER_LOOK == 0)
			ret = resident_watch(resident, seen, error);
	}
	counts->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	*samples = count;
	return ret;
}

static int latency_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		       struct gdrcap_error *error)
{
	struct latency *latency = state;
	struct resident_counts counts = { 0 };
	uint64_t samples;
	int ret;

	bench_pin(latency->bench, 0);
	ret = latency_play(latency, run_ms, &counts, &samples, error);
	if (ret < 0)
		return ret;
	resident_sample(latency->resident, &counts, true, sample);
	sample->mpps = sample->gbps = 0;
	sample->sequence_checked = true;
	latency_sample(latency->ns, samples, sample);
	snprintf(sample->note, sizeof(sample->note),
		 "a burst each %llu ns: %u %% of what this consumer moves (%.3g Mpps)",
		 (unsigned long long)latency->spacing_ns, LATENCY_LOAD_PERCENT, latency->load_mpps);
	return 0;
}

const struct bench_stage bench_latency = {
	.about = {
		.id = "latency",
		.group = "latency",
		.what = "from a burst's publication in the ring to its verdict seen by the CPU: the "
			"median, frames resident",
		.unit = "ns",
		.less_is_better = 1,
		.limit = "round_trip",
	},
	.cores = resident_cores,
	.points = latency_points,
	.state_bytes = sizeof(struct latency),
	.open = latency_open,
	.run = latency_run,
	.close = latency_close,
};
