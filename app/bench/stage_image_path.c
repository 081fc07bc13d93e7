/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole path with images, beside the same path that checks frames: one after the other in each run. */
#include <stdio.h>
#include <string.h>

#include "bench/bench_util.h"
#include "bench/path.h"
#include "bench/placing.h"

#define BURST BURST_FRAMES_MAX
#define POOL_SLOTS 65536u

struct image_path {
	struct path checker, image;
};

static uint32_t image_path_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const char *const engines[] = { "resident", "launched" };
	struct bench_points to = { bench, points, 0, NULL };

	for (uint32_t e = 0; e < (bench->cuda ? 2 : 1); e++) {
		const struct bench_grid grid = {
			.queues = BENCH_LIST(1),
			.frame_bytes = BENCH_LIST(1500, 9000),
			.bursts = BENCH_LIST(BURST),
			.memory = bench->cuda ? "device" : "host",
			.source = bench->cuda ? engines[e] : "threads",
		};

		bench_points_add(&to, &grid, 1);
	}
	return to.count;
}

static void image_path_close(void *state)
{
	struct image_path *both = state;

	path_close(&both->checker);
	path_close(&both->image);
}

static int image_path_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			   void *state, struct gdrcap_error *error)
{
	struct image_path *both = state;
	struct path *checker = &both->checker;
	const uint32_t pool = POOL_SLOTS * placing_slot_bytes(point->frame_bytes);
	int ret;

	checker->bench = bench;
	checker->point = *point;
	snprintf(checker->point.source, sizeof(checker->point.source), "null");
	snprintf(checker->point.pattern, sizeof(checker->point.pattern), PATH_PATTERN);
	ret = path_config(bench, &checker->point, NULL, &checker->config, error);
	if (ret == 0)
		ret = path_image_open(&both->image, bench, point, error);
	/* the same for both, and slots for more images than there are buffers */
	if (bench->cuda) {
		ret = bench_set(checker->config, ret, error, "pool", "%u", pool);
		ret = bench_set(both->image.config, ret, error, "pool", "%u", pool);
	}
	return ret;
}

static int image_path_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			  struct gdrcap_error *error)
{
	struct image_path *both = state;
	struct bench_sample checked = { 0 };
	int ret = path_run(&both->checker, run_ms, &checked, error);

	if (ret == 0)
		ret = path_run(&both->image, run_ms, sample, error);
	if (ret < 0)
		return ret;
	sample->value = sample->gbps;
	sample->limit = checked.gbps;
	sample->sequence_checked = false;
	sample->damaged = checked.damaged;
	sample->lost += checked.lost;
	return 0;
}

static uint32_t image_path_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	struct gdrcap_bench_point null = *point;

	snprintf(null.source, sizeof(null.source), "null");
	return path_threads(bench, &null);
}

const struct bench_stage bench_image_path = {
	.about = {
		.id = "image_path",
		.group = "image",
		.what = "frames from the port, through receive queue, ring, placing and assembler, to "
			"images taken by a thread; received without a sender from slots filled "
			"before; source: which engine; limit: the same path that checks every byte, "
			"just before",
		.unit = "Gb/s",
	},
	.cores = image_path_cores,
	.points = image_path_points,
	.state_bytes = sizeof(struct image_path),
	.open = image_path_open,
	.run = image_path_run,
	.close = image_path_close,
};
