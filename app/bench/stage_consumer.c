/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer alone: frames that lie in its memory already are checked as fast as it can. One CPU
 * thread publishes bursts and collects results; a frame counts as validated only when its burst
 * came back as the one run of valid frames that was expected.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench_util.h"
#include "bench/resident.h"

#define DEFAULT_BLOCKS 16u /* of a GPU; its twin has one thread */
#define BURST_LARGE 256u   /* the largest there is */
#define BURST_SMALL 64u	   /* a session's */
#define BLOCKS_MOST 64u	   /* in steps of two; then all */
#define BLOCKS_STEPS 16
#define RINGS 4u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct consumer {
	const struct bench *bench;
	struct resident *resident;
	double limit;
	uint32_t rings;
};

/* ---- points ---- */

/* The publishing thread has a CPU of its own, and so has each of the twin's. */
static bool consumer_fits(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	const uint32_t threads = point->blocks * point->queues;

	return bench->cuda || threads <= 1 || threads < bench->cpu_count;
}

/* 1, `step`, ... and all blocks, or threads, that one ring can have; a GPU keeps a multiprocessor for
 * copies. */
static void blocks_up(const struct bench *bench, uint32_t step, uint32_t blocks[BLOCKS_STEPS])
{
	const uint32_t units = bench->cuda ? bench->machine.gpu_units : bench->cpu_count;
	const uint32_t most = units > 1 ? units - 1 : 1;
	uint32_t count = 0;

	for (uint32_t n = 1; n <= BLOCKS_MOST && n < most; n *= step)
		blocks[count++] = n;
	blocks[count++] = most;
	blocks[count] = 0;
}

static uint32_t consumer_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const char *own = bench->cuda ? "device" : "host", *from = "resident", *prbs = "prbs31";
	/* First pieces in host memory, the rest where it was. */
	const char *split = bench->cuda ? "device-split" : "host-split";
	const uint32_t *sizes = BENCH_LIST(64, 128, 256, 512, 1024, 1500, 9000);
	const uint32_t *ends = BENCH_LIST(64, 1500), *one = BENCH_LIST(1);
	const uint32_t *rings = BENCH_LIST(RINGS), *large = BENCH_LIST(BURST_LARGE);
	const uint32_t *both = BENCH_LIST(BURST_LARGE, BURST_SMALL);
	const uint32_t usual[] = { bench->cuda ? DEFAULT_BLOCKS : 1, 0 };
	uint32_t doubled[BLOCKS_STEPS], fourfold[BLOCKS_STEPS];
	const struct bench_grid quick[] = {
		{ one, sizes, large, usual, prbs, own, .source = from },
		{ one, BENCH_LIST(1500), large, usual, "counter16be", own, .source = from },
		{ one, BENCH_LIST(1500), large, usual, "random", own, .source = from },
		{ one, ends, large, BENCH_LIST(2, 8), prbs, own, .source = from,
		  .needs_cuda = true },
		{ one, BENCH_LIST(64), BENCH_LIST(BURST_SMALL), usual, prbs, own, .source = from },
		{ rings, BENCH_LIST(64), large, usual, prbs, own, .source = from },
		{ one, BENCH_LIST(64, 1500, 9000), large, usual, prbs, "pinned", .source = from,
		  .needs_cuda = true },
	};
	const struct bench_grid full[] = {
		{ one, sizes, large, usual, prbs, own, .source = from },
		{ one, sizes, large, usual, "counter16be", own, .source = from },
		{ one, sizes, large, usual, "random", own, .source = from },
		{ one, ends, both, doubled, prbs, own, .source = from },
		/* Many blocks a ring want more of one CPU than it has. */
		{ rings, ends, both, BENCH_LIST(1, 2, 4, 8, 16), prbs, own, .source = from },
		{ one, sizes, large, usual, prbs, "pinned", .source = from, .needs_cuda = true },
		{ one, BENCH_LIST(1500), large, fourfold, prbs, "pinned", .source = from,
		  .needs_cuda = true },
		{ one, ends, large, usual, prbs, split, .source = from },
	};
	struct bench_points to = { bench, points, 0, consumer_fits };

	blocks_up(bench, 2, doubled);
	blocks_up(bench, 4, fourfold);
	if (bench->config->quick)
		bench_points_add(&to, quick, COUNT(quick));
	else
		bench_points_add(&to, full, COUNT(full));
	return to.count;
}

/* ---- life ---- */

/* Gb/s that so many blocks read from the GPU's memory, or the most that any number does. 0: not
 * measured. */
static double gpu_memory_limit(const struct bench *bench, uint32_t blocks)
{
	for (size_t i = 0; i < bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &bench->results[i];

		if (!strcmp(result->point.stage, "gpu_memory") && result->point.blocks == blocks)
			return result->median;
	}
	return bench_limit(bench, "gpu_memory", NULL);
}

/* What memory, the bus or a core brings at most, in Gb/s of frames with FCS, which is not in
 * memory. 0: not known. */
static double limit_of(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	const double len = point->frame_bytes - FRAME_FCS_BYTES;

	if (!strcmp(point->memory, "pinned"))
		return bench_limit(bench, "zero_copy", "pinned") * point->frame_bytes / len;
	if (!strcmp(point->memory, "device-split"))
		return bench_limit(bench, "zero_copy", "pinned") * point->frame_bytes /
		       (len < RESIDENT_SPLIT ? len : RESIDENT_SPLIT);
	if (!strcmp(point->memory, "device"))
		return gpu_memory_limit(bench, point->blocks * point->queues) * point->frame_bytes /
		       len;
	if (!strncmp(point->memory, "host", 4))
		return bench_memory_limit(bench, point->blocks * point->queues) *
		       point->frame_bytes / len;
	return 0;
}

static void consumer_close(void *state)
{
	resident_close(((struct consumer *)state)->resident);
}

static int consumer_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			 void *state, struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = point->frame_bytes,
		.burst = point->burst,
		.rings = point->queues,
		.pattern = point->pattern,
		.memory = point->memory,
	};
	struct consumer *consumer = state;
	int ret;

	consumer->bench = bench;
	consumer->rings = point->queues;
	consumer->limit = limit_of(bench, point);
	bench_pin(bench, 0);
	ret = resident_create(bench, &config, &consumer->resident, error);
	if (ret == 0)
		ret = resident_fill(consumer->resident, error);
	return ret < 0 ? ret
		       : resident_start(consumer->resident, KERNEL_CHECK, point->blocks, error);
}

static int consumer_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			struct gdrcap_error *error)
{
	struct consumer *consumer = state;
	struct resident_counts counts = { 0 };
	int ret;

	bench_pin(consumer->bench, 0);
	ret = resident_play(consumer->resident, run_ms, 0, &counts, error);
	if (ret < 0)
		return ret;
	resident_sample(consumer->resident, &counts, true, sample);
	sample->value = sample->gbps;
	sample->limit = consumer->limit;
	sample->sequence_checked = true;
	if (consumer->resident->split)
		snprintf(sample->note, sizeof(sample->note),
			 "of each frame the first %u bytes in host memory", RESIDENT_SPLIT);
	else if (consumer->rings > 1)
		snprintf(sample->note, sizeof(sample->note),
			 "one CPU core publishes into all %u "
			 "rings",
			 consumer->rings);
	return 0;
}

const struct bench_stage bench_consumer = {
	.about = {
		.id = "consumer",
		.group = "consumer",
		.what = "frames that lie in memory already are checked, from publication in a ring to "
			"the collected verdict; limited by reads of that memory: gpu_memory by as "
			"many blocks, zero_copy, or memory_read by as many cores",
		.unit = "Gb/s",
	},
	.more_limits = { "gpu_memory", "zero_copy", "memory_read" },
	.cores = resident_cores,
	.points = consumer_points,
	.state_bytes = sizeof(struct consumer),
	.open = consumer_open,
	.run = consumer_run,
	.close = consumer_close,
};
