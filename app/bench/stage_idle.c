/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a consumer that waits costs: the speed that it leaves to a bystander, a kernel of others
 * that fills the GPU, and the cache lines of the ring that it reads over the bus.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench_util.h"
#ifdef GDRCAP_WITH_CUDA
#include "base/log.h"
#include "bench/fronts.h"
#include "bench/resident.h"
#include "bench/bench_kernels.h"

#define IDLE_BLOCKS 2u
#define FRAME_BYTES 1500u /* chooses the largest blocks */
#define FRONT_SLOTS 4096u
#define BYSTANDER_BLOCKS 64u /* a multiprocessor */
#define BYSTANDER_THREADS 256u
#define BYSTANDER_BYTES ((size_t)1 << 30)
#define SETTLE_MS 5u /* polls are as rare as they get after some microseconds */
#define LAUNCHES_LEAST 4u
#define JOIN_MS 1000u

struct idle {
	const struct bench *bench;
	uint32_t blocks;
	bool front;	       /* a front polls beside the consumer */
	bool memory;	       /* the bystander reads memory; else it only calculates */
	struct bench_gpu *gpu; /* the bystander's */
	void *buffer;
	uint64_t *reads; /* pinned, one a block */
	struct resident *resident;
	bool waits;  /* the kernel that counts reads runs */
	double once; /* seconds of one launch alone */
};

static uint32_t idle_points(const struct bench *bench, const char *const *sources, size_t count,
			    struct gdrcap_bench_point *points)
{
	const uint32_t *blocks =
		bench->config->quick ? BENCH_LIST(IDLE_BLOCKS) : BENCH_LIST(IDLE_BLOCKS, 1, 16);
	struct bench_points to = { bench, points, 0, NULL };

	for (size_t i = 0; i < count; i++)
		bench_points_add(&to,
				 &(struct bench_grid){ .queues = BENCH_LIST(1),
						       .blocks = blocks,
						       .source = sources[i] },
				 1);
	return to.count;
}

static uint32_t cost_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	struct bench_points to = { bench, points, 0, NULL };

	to.count = idle_points(bench, (const char *const[]){ "memory-bound", "compute-bound" }, 2,
			       points);
	for (uint32_t i = 0; i < 2; i++)
		bench_points_add(
			&to,
			&(struct bench_grid){ .queues = BENCH_LIST(1),
					      .blocks = BENCH_LIST(1),
					      .source = i ? "front-compute" : "front-memory" },
			1);
	return to.count;
}

static uint32_t reads_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return idle_points(bench, (const char *const[]){ NULL }, 1, points);
}

/* ---- life ---- */

static void idle_close(void *state)
{
	struct idle *idle = state;
	struct gdrcap_error error;

	if (idle->waits) {
		/* It still uses its memory. */
		log_warning("bench: a kernel that waits did not leave");
		return;
	}
	if (idle->resident) {
		if (resident_stop(idle->resident, &error) < 0)
			log_warning("bench: %s", error.text);
		/* So do they: freeing would wait for them. */
		if (idle->resident->workers)
			return;
		resident_destroy(idle->resident);
	}
	if (idle->buffer)
		bench_gpu_free(idle->gpu, idle->buffer, 0);
	if (idle->reads)
		bench_gpu_free(idle->gpu, idle->reads, 1);
	if (idle->gpu)
		bench_gpu_close(idle->gpu);
}

/* `times` launches of the bystander. */
static int bystander(struct idle *idle, uint32_t times, double *seconds, struct gdrcap_error *error)
{
	const uint32_t blocks = BYSTANDER_BLOCKS * idle->bench->machine.gpu_units;
	uint64_t sum;
	int ret;

	if (idle->memory)
		ret = bench_gpu_read(idle->gpu, idle->buffer, BYSTANDER_BYTES, blocks,
				     BYSTANDER_THREADS, times, seconds, &sum);
	else
		ret = bench_gpu_compute(idle->gpu, blocks, times, seconds);
	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Both kinds: a ring that stays empty, and a stream of its own. */
static int idle_create(struct idle *idle, const struct bench *bench,
		       const struct gdrcap_bench_point *point, struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = FRAME_BYTES,
		.burst = BURST_FRAMES_MAX,
		.rings = 1,
		.pattern = "prbs31",
		.memory = "device",
		.bytes = (size_t)1 << 20,
	};
	int ret;

	idle->bench = bench;
	idle->blocks = point->blocks;
	idle->front = !strncmp(point->source, "front-", 6);
	idle->memory = !strstr(point->source, "compute");
	bench_pin(bench, 0);
	ret = bench_gpu_open(bench->ordinal, &idle->gpu);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	return resident_create(bench, &config, &idle->resident, error);
}

/* ---- what it leaves to others ---- */

static int cost_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		     struct gdrcap_error *error)
{
	struct idle *idle = state;
	double warm;
	int ret = idle_create(idle, bench, point, error);

	if (ret < 0)
		return ret;
	if (idle->memory)
		idle->buffer = bench_gpu_alloc(idle->gpu, BYSTANDER_BYTES, 0);
	if (idle->memory && !idle->buffer)
		return error_set(error, -ENOMEM, "%s", kernel_error());
	ret = bystander(idle, LAUNCHES_LEAST, &warm, error);
	if (ret == 0)
		ret = bystander(idle, LAUNCHES_LEAST, &idle->once, error);
	idle->once /= LAUNCHES_LEAST;
	return ret;
}

/* With a front beside it that polls an empty completion queue, and its consumer. */
static int cost_beside_front(struct idle *idle, uint32_t times, double *seconds,
			     struct gdrcap_error *error)
{
	const struct fronts_config config = {
		.queues = 1,
		.slots = FRONT_SLOTS,
		.burst = BURST_FRAMES_MAX,
		.checkers = idle->blocks,
		.card_blocks = 1,
		.frame_bytes = FRAME_BYTES,
		.burst_us = 20,
		.pattern = "prbs31",
	};
	struct fronts *fronts;
	int ret = fronts_open(idle->bench, &config, &fronts, error);

	if (ret < 0)
		return ret;
	sleep_ms(SETTLE_MS);
	ret = bystander(idle, times, seconds, error);
	fronts_close(fronts);
	return ret;
}

/* With the consumer beside it. */
static int cost_beside(struct idle *idle, uint32_t times, double *seconds,
		       struct gdrcap_error *error)
{
	int ret = resident_start(idle->resident, KERNEL_CHECK, idle->blocks, error), stopped;

	if (ret < 0)
		return ret;
	sleep_ms(SETTLE_MS);
	ret = bystander(idle, times, seconds, error);
	if (ret == 0 && idle->bench->ops->running(idle->resident->workers) != 1)
		ret = error_set(error, -EIO, "the consumer did not wait: %s", kernel_error());
	stopped = resident_stop(idle->resident, ret ? NULL : error);
	return ret ? ret : stopped;
}

/* Alone, beside it twice as often, alone: a clock that drifts evenly makes no difference. */
static int cost_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	struct idle *idle = state;
	const double fit = run_ms * 1e-3 / 4 / idle->once;
	const uint32_t times = fit > LAUNCHES_LEAST ? (uint32_t)fit : LAUNCHES_LEAST;
	double before = 0, beside = 0, after = 0;
	int ret = bystander(idle, times, &before, error);

	if (ret == 0)
		ret = idle->front ? cost_beside_front(idle, 2 * times, &beside, error)
				  : cost_beside(idle, 2 * times, &beside, error);
	if (ret == 0)
		ret = bystander(idle, times, &after, error);
	if (ret < 0)
		return ret;
	sample->seconds = before + beside + after;
	sample->value = (before + after) / beside;
	snprintf(sample->note, sizeof(sample->note),
		 "a launch takes %.1f us alone, %.1f us beside the %s",
		 (before + after) / 2 / times * 1e6, beside / 2 / times * 1e6,
		 idle->front ? "front and one block of its consumer" : "consumer");
	return 0;
}

/* ---- its reads ---- */

static int reads_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		      void *state, struct gdrcap_error *error)
{
	struct idle *idle = state;
	const int ret = idle_create(idle, bench, point, error);

	if (ret < 0)
		return ret;
	idle->reads = bench_gpu_alloc(idle->gpu, idle->blocks * sizeof(*idle->reads), 1);
	return idle->reads ? 0 : error_set(error, -ENOMEM, "%s", kernel_error());
}

/* The kernel that counts runs the ring's own wait; the workers do not run meanwhile. */
static int reads_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		     struct gdrcap_error *error)
{
	struct idle *idle = state;
	struct resident *resident = idle->resident;
	uint64_t reads = 0;
	uint64_t begin;
	int ret;

	resident_reset(resident, KERNEL_CHECK);
	begin = bench_now_ns();
	ret = bench_gpu_idle_start(idle->gpu, &resident->ring[0].view, idle->blocks, idle->reads);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	idle->waits = true;
	sleep_ms(run_ms);
	sample->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	/* STOP */
	__atomic_store_n(resident->stop, 1, __ATOMIC_RELAXED);
	ret = bench_gpu_join(idle->gpu, JOIN_MS);
	idle->waits = ret == -ETIMEDOUT;
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	for (uint32_t b = 0; b < idle->blocks; b++)
		reads += idle->reads[b];
	if (!reads)
		return error_set(error, -EIO, "no block counted what it read from the ring");
	sample->value = (double)reads / sample->seconds;
	snprintf(sample->note, sizeof(sample->note),
		 "cache lines, counted by the ring's own wait, one warp a block: the ready word "
		 "and, with some polls, the stop word");
	return 0;
}
#endif

/* Without CUDA nobody asks a stage that needs it for points. */
const struct bench_stage bench_idle_cost = {
	.about = {
		.id = "idle_cost",
		.group = "idle",
		.what = "the speed of another kernel, 64 blocks a multiprocessor, while a consumer, or a front "
			"with one, waits, as part of its speed alone",
		.unit = "part",
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = cost_points,
	.state_bytes = sizeof(struct idle),
	.open = cost_open,
	.run = cost_run,
	.close = idle_close,
#endif
};

const struct bench_stage bench_idle_reads = {
	.about = {
		.id = "idle_reads",
		.group = "idle",
		.what = "reads of the ring over the bus by a consumer that waits",
		.unit = "reads/s",
		.less_is_better = 1,
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = reads_points,
	.state_bytes = sizeof(struct idle),
	.open = reads_open,
	.run = reads_run,
	.close = idle_close,
#endif
};
