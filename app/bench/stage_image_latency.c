/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How soon an image is there: from PUBLISH of the burst with its last packet, or with the packet that closes
 * an image of which one is missing, to the thread that takes it. That thread accounts for bursts as well.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/latency.h"
#include "bench/placing.h"

#define FRAME_BYTES 1418u
#define PAYLOAD 50u
#define PIECES 64u
#define BURST LATENCY_BURST
#define BURSTS (PIECES / BURST) /* of an image */
#define OPEN 2u			/* images, before the oldest is closed: placing.c's */
#define REGION_BYTES ((size_t)16 << 20)
#define UNDER_WAY 256u
#define WARM_MS 20u
#define LOAD_MS 50u
/* An image is closed by a kernel of its own, of which one runs after the other. */
#define LOAD_CLOSE_PERCENT 1u
#define LOOPS_PER_LOOK 4096u /* at whether workers still run */

struct image_latency {
	const struct bench *bench;
	struct placing placing;
	uint64_t spacing_ns;
	double load_mpps;
	uint32_t percent;
	uint64_t sent_ns[RESIDENT_BURSTS]; /* of burst b & (RESIDENT_BURSTS - 1) */
	uint64_t taken;			   /* images */
	uint64_t samples;
	bool counting;
	double *ns;
};

static uint32_t image_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const uint32_t *one = BENCH_LIST(1), *frame = BENCH_LIST(FRAME_BYTES);
	const uint32_t *burst = BENCH_LIST(BURST);
	const uint32_t *blocks = bench->config->quick ? BENCH_LIST(4) : BENCH_LIST(4, 1, 16);
	const struct bench_grid host = {
		one, frame, burst, one, .memory = "host", .source = "threads"
	};
	const struct bench_grid device[] = {
		{ one, frame, burst, blocks, .memory = "device", .source = "resident" },
		{ one, frame, burst, blocks, .memory = "device", .source = "launched" },
	};
	struct bench_points to = { bench, points, 0, NULL };

	if (bench->cuda)
		bench_points_add(&to, device, 2);
	else
		bench_points_add(&to, &host, 1);
	return to.count;
}

static void image_latency_close(void *state)
{
	struct image_latency *latency = state;

	placing_close(&latency->placing);
	free(latency->ns);
}

/* ---- which burst an image waits for ---- */

static uint64_t burst_of(const struct placing *placing, uint64_t number)
{
	return placing->holes ? (number + OPEN) * BURSTS : (number + 1) * BURSTS - 1;
}

/* Images that are there, or will be, when so many bursts were published. */
static uint64_t images_due(const struct placing *placing, uint64_t published)
{
	if (!placing->holes)
		return published / BURSTS;
	return published > OPEN * BURSTS ? (published - 1) / BURSTS - OPEN + 1 : 0;
}

static void image_taken(void *context, const struct gdrcap_image *image)
{
	struct image_latency *latency = context;
	const uint64_t burst = burst_of(&latency->placing, image->number);

	latency->taken++;
	if (latency->counting && latency->samples < LATENCY_SAMPLES_MOST)
		latency->ns[latency->samples++] =
			(double)(bench_now_ns() - latency->sent_ns[burst & (RESIDENT_BURSTS - 1)]);
}

/* ---- life ---- */

static int placing_prepare(struct image_latency *latency, const struct gdrcap_bench_point *point,
			   bool holes, struct gdrcap_error *error)
{
	const struct placing_config config = {
		.frame_bytes = point->frame_bytes,
		.payload = PAYLOAD,
		.pieces = PIECES,
		.burst = point->burst,
		.under_way = UNDER_WAY,
		.persistent = strcmp(point->source, "resident") == 0,
		.holes = holes,
		.bytes = REGION_BYTES,
	};
	struct placing *placing = &latency->placing;
	int ret;

	memset(placing, 0, sizeof(*placing));
	latency->taken = 0;
	placing->taken = image_taken;
	placing->context = latency;
	ret = placing_create(placing, latency->bench, &config, error);
	if (ret == 0)
		ret = placing_fill(placing, error);
	return ret < 0 ? ret : placing_start(placing, point->blocks, error);
}

/* What these workers move at most, of complete images. */
static int load_measure(struct image_latency *latency, struct gdrcap_error *error)
{
	struct resident_counts warm = { 0 }, counts = { 0 };
	int ret = resident_play(latency->placing.resident, WARM_MS, 0, &warm, error);

	if (ret == 0)
		ret = resident_play(latency->placing.resident, LOAD_MS, 0, &counts, error);
	if (ret < 0)
		return ret;
	latency->load_mpps = (double)counts.frames / counts.seconds / 1e6 * latency->percent / 100;
	latency->spacing_ns = (uint64_t)(BURST * 1e3 / latency->load_mpps);
	return 0;
}

static int latency_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			struct image_latency *latency, bool holes, struct gdrcap_error *error)
{
	int ret;

	latency->bench = bench;
	latency->percent = holes ? LOAD_CLOSE_PERCENT : LATENCY_LOAD_PERCENT;
	latency->ns = malloc(LATENCY_SAMPLES_MOST * sizeof(*latency->ns));
	if (!latency->ns)
		return error_set(error, -ENOMEM, "no memory for samples");
	bench_pin(bench, 0);
	ret = placing_prepare(latency, point, false, error);
	if (ret == 0)
		ret = load_measure(latency, error);
	if (ret < 0 || !holes)
		return ret;
	placing_close(&latency->placing);
	return placing_prepare(latency, point, true, error);
}

static int image_latency_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			      void *state, struct gdrcap_error *error)
{
	return latency_open(bench, point, state, false, error);
}

static int image_close_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			    void *state, struct gdrcap_error *error)
{
	return latency_open(bench, point, state, true, error);
}

/* ---- runs ---- */

/* One that is late is sent at once, and the next at its distance. */
static void send_due(struct image_latency *latency, struct resident_ring *ring, uint64_t *due_ns)
{
	uint64_t now = bench_now_ns();

	if (now < *due_ns || !resident_has_room(ring))
		return;
	resident_describe(latency->placing.resident, ring);
	now = bench_now_ns();
	latency->sent_ns[ring->published & (RESIDENT_BURSTS - 1)] = now;
	resident_publish(latency->placing.resident, ring);
	*due_ns += latency->spacing_ns;
	if (*due_ns < now)
		*due_ns = now + latency->spacing_ns;
}

/* Until the run is over, and all images are taken that can be. */
static int latency_play(struct image_latency *latency, uint32_t run_ms,
			struct resident_counts *counts, struct gdrcap_error *error)
{
	struct placing *placing = &latency->placing;
	struct resident *resident = placing->resident;
	struct resident_ring *ring = &resident->ring[0];
	const uint64_t begin = bench_now_ns();
	uint64_t due = begin, moved = begin, taken = latency->taken, now = begin;
	int ret = 0;

	for (uint32_t loop = 1; !ret; loop++) {
		const bool over = latency_is_over(latency->samples, now - begin, run_ms);

		if (ring->collected < ring->published && resident_done(ring))
			resident_account(resident, ring, counts);
		else
			placing_round(placing, now);
		if (!over)
			send_due(latency, ring, &due);
		else if (latency->taken >= images_due(placing, ring->published) &&
			 ring->collected == ring->published)
			break;
		/* the twin's thread has no CPU of its own */
		if (!latency->bench->cuda && latency->bench->cpu_count < 2)
			sched_yield();
		now = bench_now_ns();
		moved = latency->taken != taken ? now : moved;
		taken = latency->taken;
		if (loop % LOOPS_PER_LOOK == 0)
			ret = resident_watch(resident, moved, error);
	}
	counts->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	return ret;
}

static int image_latency_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			     struct gdrcap_error *error)
{
	struct image_latency *latency = state;
	struct placing *placing = &latency->placing;
	struct resident_counts counts = { 0 };
	int ret;

	bench_pin(latency->bench, 0);
	latency->samples = 0;
	latency->counting = true;
	ret = latency_play(latency, run_ms, &counts, error);
	latency->counting = false;
	if (ret < 0)
		return ret;
	counts.lost += placing->wrong;
	placing->wrong = 0;
	resident_sample(placing->resident, &counts, false, sample);
	sample->mpps = sample->gbps = 0;
	latency_sample(latency->ns, latency->samples, sample);
	snprintf(sample->note, sizeof(sample->note),
		 "images of %u frames, a burst each %llu ns: %u %% of what these workers move "
		 "(%.3g Mpps)",
		 PIECES, (unsigned long long)latency->spacing_ns, latency->percent,
		 latency->load_mpps);
	return 0;
}

const struct bench_stage bench_image_latency = {
	.about = {
		.id = "image_latency",
		.group = "image",
		.what = "from publication of the burst with an image's last packet to the complete "
			"image in the hands of the thread that collects and polls: the median",
		.unit = "ns",
		.less_is_better = 1,
		.limit = "round_trip",
	},
	.cores = resident_cores,
	.points = image_points,
	.state_bytes = sizeof(struct image_latency),
	.open = image_latency_open,
	.run = image_latency_run,
	.close = image_latency_close,
};

const struct bench_stage bench_image_close = {
	.about = {
		.id = "image_close",
		.group = "image",
		.what = "from publication of the burst by which too many images are open to the oldest, "
			"of which a piece is missing, in the hands of the thread that collects and "
			"polls: the median",
		.unit = "ns",
		.less_is_better = 1,
		.limit = "round_trip",
	},
	.cores = resident_cores,
	.points = image_points,
	.state_bytes = sizeof(struct image_latency),
	.open = image_close_open,
	.run = image_latency_run,
	.close = image_latency_close,
};
