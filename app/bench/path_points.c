/* SPDX-License-Identifier: BSD-3-Clause */
/* Which whole paths are measured, and what they need of a machine. */
#include <stdio.h>
#include <string.h>

#include "bench/path.h"

#define BURST 64u	 /* as a session's default ... */
#define BURST_LARGE 256u /* ... and the largest */

struct list {
	const struct bench *bench;
	struct gdrcap_bench_point *points;
	uint32_t count;
	/* Of all points that follow. */
	const char *source, *memory;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool path_is_null(const struct gdrcap_bench_point *point)
{
	return strcmp(point->source, "null") == 0;
}

uint32_t path_threads(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	/* Of the device's twin; a GPU's are no CPU's. */
	const uint32_t checkers = bench->cuda ? 0 : point->blocks ? point->blocks : 1;
	const uint32_t writers = bench->cuda ? 0 : 1;
	const uint32_t senders = path_is_null(point) ? 0 : 1 + writers;

	/* The one is the accountant. */
	return point->queues * (1 + checkers + senders) + 1;
}

bool path_fits(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return path_threads(bench, point) < bench->cpu_count;
}

static struct gdrcap_bench_point point_of(const struct list *list, uint32_t frame_bytes,
					  uint32_t burst, uint32_t queues, uint32_t blocks)
{
	struct gdrcap_bench_point point = {
		.frame_bytes = frame_bytes,
		.burst = burst,
		.queues = queues,
		.blocks = blocks,
		.pattern = PATH_PATTERN,
	};

	snprintf(point.source, sizeof(point.source), "%s", list->source);
	snprintf(point.memory, sizeof(point.memory), "%s", list->memory);
	return point;
}

/* The runner drops what is there already. */
static void add(struct list *list, const struct gdrcap_bench_point *point)
{
	if (list->count < BENCH_POINTS_MAX)
		list->points[list->count++] = *point;
}

/* One queue is measured on any machine, if need be by threads that share CPUs; of more there is one
 * point even where they do not fit, whose result says so. */
static void add_queues(struct list *list, const uint32_t *bursts, size_t burst_count)
{
	static const uint32_t queues[] = { 1, 2, 4, 8 };

	for (size_t q = 0; q < COUNT(queues); q++)
		for (size_t b = 0; b < burst_count; b++) {
			const struct gdrcap_bench_point point =
				point_of(list, 64, bursts[b], queues[q], 0);

			if (queues[q] == 1 || b == 0 || path_fits(list->bench, &point))
				add(list, &point);
		}
}

static void add_sizes(struct list *list, const uint32_t *sizes, size_t size_count, uint32_t burst,
		      uint32_t queues)
{
	for (size_t s = 0; s < size_count; s++) {
		const struct gdrcap_bench_point point = point_of(list, sizes[s], burst, queues, 0);

		if (queues == 1 || path_fits(list->bench, &point))
			add(list, &point);
	}
}

static void add_blocks(struct list *list, const uint32_t *blocks, size_t block_count,
		       uint32_t frame_bytes)
{
	for (size_t b = 0; b < block_count; b++) {
		const struct gdrcap_bench_point point =
			point_of(list, frame_bytes, BURST, 1, blocks[b]);

		if (blocks[b] == 1 || list->bench->cuda || path_fits(list->bench, &point))
			add(list, &point);
	}
}

static void add_all(struct list *list)
{
	static const uint32_t ring_bursts[] = { BURST, BURST_LARGE };
	static const uint32_t null_bursts[] = { BURST, 32, 128, BURST_LARGE };
	static const uint32_t sizes[] = { 64, 128, 256, 512, 1024, 1500, 9000 };
	static const uint32_t blocks[] = { 1, 2, 4, 8, 16, 32 };

	if (strcmp(list->source, "null") == 0)
		add_queues(list, null_bursts, COUNT(null_bursts));
	else
		add_queues(list, ring_bursts, COUNT(ring_bursts));
	for (uint32_t queues = 1; queues <= 4; queues += 3) {
		add_sizes(list, sizes, COUNT(sizes), BURST, queues);
		add_sizes(list, sizes, COUNT(sizes), BURST_LARGE, queues);
	}
	add_blocks(list, blocks, COUNT(blocks), 64);
	add_blocks(list, blocks, COUNT(blocks), 1500);
}

/* Scaling and sizes with large bursts, the default's burst once, and few, some and many blocks. */
static void add_essential(struct list *list)
{
	static const uint32_t bursts[] = { BURST_LARGE };
	static const uint32_t small[] = { 64 }, sizes[] = { 512, 1500, 9000 };
	static const uint32_t blocks[] = { 2, 8, 32 };

	add_sizes(list, small, COUNT(small), BURST, 1);
	if (strcmp(list->memory, "pinned") == 0) {
		add_sizes(list, small, COUNT(small), BURST_LARGE, 1);
		add_sizes(list, sizes + 1, COUNT(sizes) - 1, BURST_LARGE, 1);
		return;
	}
	add_queues(list, bursts, COUNT(bursts));
	add_sizes(list, sizes, COUNT(sizes), BURST_LARGE, 1);
	add_sizes(list, sizes, COUNT(sizes), BURST_LARGE, 4);
	add_blocks(list, blocks, COUNT(blocks), 64);
}

uint32_t path_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	/* A session whose threads share CPUs changes how idle threads of the whole process wait, so
	 * the source that needs fewer comes first. */
	static const char *const sources[] = { "null", "ring" };
	static const char *const memories[] = { "device", "pinned" };
	struct list list = { .bench = bench, .points = points };

	for (size_t s = 0; s < COUNT(sources); s++)
		/* To the device's twin all memory is the host's. */
		for (size_t m = 0; m < (bench->cuda ? COUNT(memories) : 1); m++) {
			list.source = sources[s];
			list.memory = bench->cuda ? memories[m] : "host";
			if (bench->config->quick)
				add_essential(&list);
			else
				add_all(&list);
		}
	return list.count;
}
