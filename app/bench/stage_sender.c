/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender: frames written by the GPU, or its twin, into slots of its memory. With the source
 * "resident" the writer alone, ordered by one CPU thread; with "null" the real tx worker, which
 * hands the frames to net_null, whose send call frees them.
 *
 * What was written is checked afterwards, where it lies: slots are zeroed before a run, and each
 * that was written has to hold a valid frame. So at most one frame a slot is validated, the last.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/resident.h"
#include "bench/sender.h"

#define BURST_LARGE 256u
#define BURST_SMALL 64u
#define DEFAULT_BLOCKS 16u /* of a GPU; its twin has one thread */
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

struct sender {
	const struct bench *bench;
	uint32_t blocks;
	/* One of the two. */
	struct resident *resident;
	struct sender_tx *tx;
};

/* ---- points ---- */

static uint32_t sender_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const uint32_t *sizes = bench->config->quick
					? BENCH_LIST(64, 1500)
					: BENCH_LIST(64, 128, 256, 512, 1024, 1500, 9000);
	const uint32_t *one = BENCH_LIST(1), *small = BENCH_LIST(BURST_SMALL);
	const uint32_t *large = BENCH_LIST(BURST_LARGE), *few = BENCH_LIST(1, 2, 4, 8, 32);
	const uint32_t usual[] = { bench->cuda ? DEFAULT_BLOCKS : 1, 0 };
	const char *own = bench->cuda ? "device" : "host", *prbs = "prbs31";
	const struct bench_grid grids[] = {
		{ one, sizes, large, usual, prbs, own, .source = "resident" },
		{ one, BENCH_LIST(64), small, usual, prbs, own, .source = "resident" },
		{ one, sizes, large, usual, prbs, own, .source = "null" },
		{ one, BENCH_LIST(64), small, usual, prbs, own, .source = "null" },
		/* Not of a quick bench. */
		{ one, BENCH_LIST(64, 1500), large, few, prbs, own, .source = "resident",
		  .needs_cuda = true },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, COUNT(grids) - bench->config->quick);
	return to.count;
}

/* ---- life ---- */

static void sender_close(void *state)
{
	struct sender *sender = state;

	if (sender->tx)
		sender_tx_close(sender->tx);
	resident_close(sender->resident);
}

static int sender_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		       void *state, struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = point->frame_bytes,
		.burst = point->burst,
		.rings = 1,
		.pattern = point->pattern,
		.memory = point->memory,
	};
	struct sender *sender = state;

	sender->bench = bench;
	sender->blocks = point->blocks;
	bench_pin(bench, 0);
	return strcmp(point->source, "null") == 0
		       ? sender_tx_open(bench, point, &sender->tx, error)
		       : resident_create(bench, &config, &sender->resident, error);
}

/* ---- the writer alone ---- */

static int zero(struct sender *sender, struct gdrcap_error *error)
{
	const struct bench *bench = sender->bench;
	const struct resident *resident = sender->resident;
	const int ret = bench->ops->fill(bench->device, resident->frames, 0, resident->bytes);

	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Plays with workers of a role; with `bursts` 0 for run_ms. */
static int play(struct sender *sender, enum kernel_role role, uint32_t run_ms, uint64_t bursts,
		struct resident_counts *counts, struct gdrcap_error *error)
{
	struct resident *resident = sender->resident;
	/* the back end's choice of blocks is for all that is not measured */
	int ret = resident_start(resident, role, role == KERNEL_WRITE ? sender->blocks : 0, error);
	int stopped;

	if (ret < 0)
		return ret;
	ret = resident_play(resident, run_ms, bursts, counts, error);
	stopped = resident_stop(resident, ret ? NULL : error);
	return ret ? ret : stopped;
}

static int writer_run(struct sender *sender, uint32_t run_ms, struct bench_sample *sample,
		      struct gdrcap_error *error)
{
	struct resident *resident = sender->resident;
	const uint64_t slots = resident->ring[0].slots;
	struct resident_counts written = { 0 }, checked = { 0 };
	uint64_t bursts;
	int ret = zero(sender, error);

	if (ret == 0)
		ret = play(sender, KERNEL_WRITE, run_ms, 0, &written, error);
	if (ret < 0)
		return ret;
	bursts = (written.frames < slots ? written.frames : slots) / resident->burst;
	ret = play(sender, KERNEL_CHECK, 0, bursts, &checked, error);
	if (ret < 0)
		return ret;
	written.validated = checked.validated;
	written.damaged = checked.damaged;
	written.lost = checked.lost;
	resident_sample(resident, &written, false, sample);
	sample->value = sample->mpps;
	sample->sequence_checked = true;
	snprintf(sample->note, sizeof(sample->note),
		 "the last frame of each slot was validated, %llu in all",
		 (unsigned long long)checked.frames);
	return 0;
}

static int sender_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		      struct gdrcap_error *error)
{
	struct sender *sender = state;

	bench_pin(sender->bench, 0);
	return sender->tx ? sender_tx_run(sender->tx, run_ms, sample, error)
			  : writer_run(sender, run_ms, sample, error);
}

const struct bench_stage bench_sender = {
	.about = {
		.id = "sender",
		.group = "sender",
		.what = "frames are written where they are sent from: resident: the writer alone; null: "
			"one tx worker that hands them to net_null",
		.unit = "Mpps",
	},
	.cores = resident_cores,
	.points = sender_points,
	.state_bytes = sizeof(struct sender),
	.open = sender_open,
	.run = sender_run,
	.close = sender_close,
};
