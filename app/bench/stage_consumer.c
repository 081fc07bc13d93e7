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
#define RINGS 4u

static const uint32_t all_sizes[] = { 64, 128, 256, 512, 1024, 1500, 9000 };
static const uint32_t end_sizes[] = { 64, 1500 };

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

struct consumer {
	const struct bench *bench;
	struct resident *resident;
	double limit;
	uint32_t rings;
};

/* ---- points ---- */

struct list {
	const struct bench *bench;
	struct gdrcap_bench_point *points;
	uint32_t count;
};

/* The runner drops what is there already. */
static void add(struct list *list, uint32_t frame_bytes, uint32_t burst, uint32_t blocks,
		uint32_t rings, const char *pattern, const char *memory)
{
	struct gdrcap_bench_point *point = &list->points[list->count];

	if (list->count == BENCH_POINTS_MAX)
		return;
	/* The publishing thread has a CPU of its own, and so has each of the twin's. */
	if (!list->bench->cuda && blocks * rings > 1 && blocks * rings >= list->bench->cpu_count)
		return;
	*point = (struct gdrcap_bench_point){
		.frame_bytes = frame_bytes,
		.burst = burst,
		.blocks = blocks,
		.queues = rings,
		.source = "resident",
	};
	snprintf(point->pattern, sizeof(point->pattern), "%s", pattern);
	snprintf(point->memory, sizeof(point->memory), "%s", memory);
	list->count++;
}

static const char *own_memory(const struct bench *bench)
{
	return bench->cuda ? "device" : "host";
}

static uint32_t default_blocks(const struct bench *bench)
{
	return bench->cuda ? DEFAULT_BLOCKS : 1;
}

/* All blocks, or threads, that one ring can have; a GPU keeps a multiprocessor for copies. */
static uint32_t most_blocks(const struct bench *bench)
{
	const uint32_t units = bench->cuda ? bench->machine.gpu_units : bench->cpu_count;

	return units > 1 ? units - 1 : 1;
}

static void add_sizes(struct list *list, const char *pattern, const char *memory)
{
	for (uint32_t i = 0; i < COUNT(all_sizes); i++)
		add(list, all_sizes[i], BURST_LARGE, default_blocks(list->bench), 1, pattern,
		    memory);
}

static void add_blocks(struct list *list, uint32_t frame_bytes, uint32_t burst, uint32_t step,
		       const char *memory)
{
	for (uint32_t blocks = 1; blocks <= BLOCKS_MOST && blocks < most_blocks(list->bench);
	     blocks *= step)
		add(list, frame_bytes, burst, blocks, 1, "prbs31", memory);
	add(list, frame_bytes, burst, most_blocks(list->bench), 1, "prbs31", memory);
}

/* First pieces in host memory, the rest where it was. */
static void add_split(struct list *list)
{
	char memory[16];

	snprintf(memory, sizeof(memory), "%s-split", own_memory(list->bench));
	for (uint32_t i = 0; i < COUNT(end_sizes); i++)
		add(list, end_sizes[i], BURST_LARGE, default_blocks(list->bench), 1, "prbs31",
		    memory);
}

static void points_quick(struct list *list)
{
	const struct bench *bench = list->bench;
	const char *memory = own_memory(bench);
	static const uint32_t pinned[] = { 64, 1500, 9000 };

	add_sizes(list, "prbs31", memory);
	add(list, 1500, BURST_LARGE, default_blocks(bench), 1, "counter16be", memory);
	add(list, 1500, BURST_LARGE, default_blocks(bench), 1, "random", memory);
	for (uint32_t i = 0; bench->cuda && i < COUNT(end_sizes); i++) {
		add(list, end_sizes[i], BURST_LARGE, 2, 1, "prbs31", memory);
		add(list, end_sizes[i], BURST_LARGE, 8, 1, "prbs31", memory);
	}
	add(list, 64, BURST_SMALL, default_blocks(bench), 1, "prbs31", memory);
	add(list, 64, BURST_LARGE, default_blocks(bench), RINGS, "prbs31", memory);
	for (uint32_t i = 0; bench->cuda && i < COUNT(pinned); i++)
		add(list, pinned[i], BURST_LARGE, DEFAULT_BLOCKS, 1, "prbs31", "pinned");
}

static void points_full(struct list *list)
{
	const struct bench *bench = list->bench;
	const char *memory = own_memory(bench);

	add_sizes(list, "prbs31", memory);
	add_sizes(list, "counter16be", memory);
	add_sizes(list, "random", memory);
	for (uint32_t i = 0; i < COUNT(end_sizes); i++) {
		add_blocks(list, end_sizes[i], BURST_LARGE, 2, memory);
		add_blocks(list, end_sizes[i], BURST_SMALL, 2, memory);
		/* Many blocks a ring want more of one CPU than it has. */
		for (uint32_t blocks = 1; blocks <= DEFAULT_BLOCKS; blocks *= 2) {
			add(list, end_sizes[i], BURST_LARGE, blocks, RINGS, "prbs31", memory);
			add(list, end_sizes[i], BURST_SMALL, blocks, RINGS, "prbs31", memory);
		}
	}
	if (bench->cuda) {
		add_sizes(list, "prbs31", "pinned");
		add_blocks(list, 1500, BURST_LARGE, 4, "pinned");
	}
	add_split(list);
}

static uint32_t consumer_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	struct list list = { bench, points, 0 };

	if (bench->config->quick)
		points_quick(&list);
	else
		points_full(&list);
	return list.count;
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
