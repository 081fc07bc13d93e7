/* SPDX-License-Identifier: BSD-3-Clause */
/* Which whole paths are measured, and what they need of a machine. */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "bench/bench_util.h"
#include "bench/path.h"

#define BURST 64u	 /* as a session's default ... */
#define BURST_LARGE 256u /* ... and the largest */

#define BY_GPU "gpu" /* of rx_by and tx_by: no thread of the CPU's */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool path_is_null(const struct gdrcap_bench_point *point)
{
	return strcmp(point->source, "null") == 0;
}

const char *path_tx_by(const struct bench *bench)
{
	return bench->config->tx_by ? bench->config->tx_by : "driver";
}

uint32_t path_threads(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	/* Of the device's twin; a GPU's are no CPU's. */
	const uint32_t checkers = bench->cuda ? 0 : point->blocks ? point->blocks : 1;
	const uint32_t writers = bench->cuda ? 0 : 1;
	const uint32_t pollers = strcmp(point->source, BY_GPU) != 0;
	const uint32_t senders = path_is_null(point)			  ? 0
				 : strcmp(path_tx_by(bench), BY_GPU) == 0 ? writers
									  : 1 + writers;

	/* The one is the accountant. */
	return point->queues * (pollers + checkers + senders) + 1;
}

bool path_fits(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return path_threads(bench, point) < bench->cpu_count;
}

/* One queue is measured on any machine, if need be by threads that share CPUs. */
static bool path_can(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return path_fits(bench, point) ||
	       (point->queues == 1 && (point->blocks <= 1 || bench->cuda));
}

/* Of more queues there is one point even where they do not fit, whose result says so. */
static void points_all(struct bench_points *to, const char *memory, const char *source)
{
	const bool null = strcmp(source, "null") == 0;
	const uint32_t *queues = BENCH_LIST(1, 2, 4, 8), *one = BENCH_LIST(1);
	const uint32_t *sizes = BENCH_LIST(64, 128, 256, 512, 1024, 1500, 9000);
	const uint32_t *usual = BENCH_LIST(BURST), *both = BENCH_LIST(BURST, BURST_LARGE);
	const uint32_t *others = null ? BENCH_LIST(32, 128, BURST_LARGE) : BENCH_LIST(BURST_LARGE);
	const uint32_t *ends = BENCH_LIST(64, 1500), *blocks = BENCH_LIST(1, 2, 4, 8, 16, 32);
	const struct bench_grid grids[] = {
		{ queues, BENCH_LIST(64), usual, NULL, PATH_PATTERN, memory, .source = source,
		  .always = true },
		{ queues, BENCH_LIST(64), others, NULL, PATH_PATTERN, memory, .source = source },
		{ BENCH_LIST(1, 4), sizes, both, NULL, PATH_PATTERN, memory, .source = source },
		{ one, ends, usual, blocks, PATH_PATTERN, memory, .source = source },
	};

	bench_points_add(to, grids, COUNT(grids));
}

/* Scaling and sizes with large bursts, the default's burst once, and few, some and many blocks. */
static void points_essential(struct bench_points *to, const char *memory, const char *source)
{
	const uint32_t *queues = BENCH_LIST(1, 2, 4, 8), *one = BENCH_LIST(1);
	const uint32_t *small = BENCH_LIST(64), *sizes = BENCH_LIST(512, 1500, 9000);
	const uint32_t *usual = BENCH_LIST(BURST), *large = BENCH_LIST(BURST_LARGE);
	const struct bench_grid pinned[] = {
		{ one, small, usual, NULL, PATH_PATTERN, memory, .source = source },
		{ one, BENCH_LIST(64, 1500, 9000), large, NULL, PATH_PATTERN, memory,
		  .source = source },
	};
	const struct bench_grid grids[] = {
		{ one, small, usual, NULL, PATH_PATTERN, memory, .source = source },
		{ queues, small, large, NULL, PATH_PATTERN, memory, .source = source,
		  .always = true },
		{ BENCH_LIST(1, 4), sizes, large, NULL, PATH_PATTERN, memory, .source = source },
		{ one, small, usual, BENCH_LIST(2, 8, 32), PATH_PATTERN, memory, .source = source },
	};

	if (strcmp(memory, "pinned") == 0)
		bench_points_add(to, pinned, COUNT(pinned));
	else
		bench_points_add(to, grids, COUNT(grids));
}

/* Over ports that were given: by who takes the frames from them. */
static uint32_t points_of_ports(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const char *by = bench->config->rx_by ? bench->config->rx_by : "driver";
	const uint32_t *all = BENCH_LIST(64, 128, 256, 512, 1024, 1500);
	const uint32_t *sizes = bench->config->quick ? BENCH_LIST(64, 512, 1500) : all;
	struct bench_points to = { bench, points, 0, path_can };

	while (*by) {
		const size_t length = strcspn(by, ",");
		char source[sizeof(points->source)];
		const struct bench_grid grid = {
			BENCH_LIST(1, 2, 4), sizes,
			BENCH_LIST(BURST),   NULL,
			PATH_PATTERN,	     bench->cuda ? "device" : "host",
			.source = source
		};

		snprintf(source, sizeof(source), "%.*s", (int)RTE_MIN(length, sizeof(source) - 1),
			 by);
		bench_points_add(&to, &grid, 1);
		by += length + (by[length] != 0);
	}
	return to.count;
}

uint32_t path_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	/* A session whose threads share CPUs changes how idle threads of the whole process wait, so
	 * the source that needs fewer comes first. */
	static const char *const sources[] = { "null", "ring" };
	static const char *const memories[] = { "device", "pinned" };
	struct bench_points to = { bench, points, 0, path_can };

	if (bench->config->port)
		return points_of_ports(bench, points);
	for (size_t s = 0; s < COUNT(sources); s++)
		/* To the device's twin all memory is the host's. */
		for (size_t m = 0; m < (bench->cuda ? COUNT(memories) : 1); m++)
			(bench->config->quick ? points_essential : points_all)(
				&to, bench->cuda ? memories[m] : "host", sources[s]);
	return to.count;
}
