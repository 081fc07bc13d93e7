/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placing alone: payloads of frames that lie in memory already go to their places in images, beside a copy
 * of the same machine's. The bytes of some images are compared after the warm-up.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/placing.h"
#ifdef GDRCAP_WITH_CUDA
#include "bench/bench_kernels.h"
#endif

#define BURST BURST_FRAMES_MAX
/* Four times as many as bursts under way can have: an image's number comes again when all slots were used, and its
 * entry has to be closed by then, by a kernel that is launched some 100 us after it was complete. */
#define SLOTS_MOST (4 * RESIDENT_BURSTS * BURST_FRAMES_MAX)
#define DEVICE_BYTES ((size_t)2 << 30)
#define DEVICE_IMAGE_BYTES (8u << 20) /* about */
#define DEVICE_UNDER_WAY 512u	      /* bursts: some for each block */
#define DEVICE_PIECES 8192u
#define HOST_UNDER_WAY 16u
#define COPY_BYTES ((size_t)256 << 20)
#define COPY_TIMES 8u
#define COPY_PART 4u /* of a run, for each way of copying */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Frames with FCS, and where their pieces begin. A frame begins at a multiple of 128. */
static const struct image_size {
	uint32_t frame_bytes, payload;
} sizes[] = {
	{ 1418, 50 }, /* 1364 bytes, 2 off a multiple of 16 */
	{ 1092, 64 }, /* 1024 bytes, on one */
	{ 9018, 50 }, /* 8964 bytes, 2 off */
	{ 118, 50 },  /* 64 bytes, 2 off */
	{ 1494, 50 }, /* 1440 bytes, 2 off: whole groups of each conversion */
};

/* Some of a layout's, in the place of a pattern. */
static const char *const conversions[] = { "none", "swap16", "unpack10-be", "mono12p",
					   "int16be-float32" };

struct image_place {
	const struct bench *bench;
	struct placing placing;
	bool compared;
	double limit; /* Gb/s of a copy in the GPU's memory */
};

static uint32_t payload_of(uint32_t frame_bytes)
{
	for (size_t i = 0; i < COUNT(sizes); i++)
		if (sizes[i].frame_bytes == frame_bytes)
			return sizes[i].payload;
	return sizes[0].payload;
}

static uint32_t image_place_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const uint32_t units = bench->machine.gpu_units;
	/* one multiprocessor is left for what closes images, and for copies */
	const uint32_t most = units > 1 ? units - 1 : 1;
	const uint32_t *few = BENCH_LIST(4, 16);
	const uint32_t *all = BENCH_LIST(1, 4, 16, units / 2, most);
	const uint32_t *one = BENCH_LIST(1), *burst = BENCH_LIST(BURST);
	const uint32_t *usual = BENCH_LIST(1418), *others = BENCH_LIST(1092, 9018, 118);
	const bool quick = bench->config->quick;
	const struct bench_grid host = { one,
					 BENCH_LIST(1418, 1092, 9018, 118),
					 burst,
					 one,
					 .memory = "host",
					 .source = "threads" };
	const struct bench_grid device[] = {
		{ one, usual, burst, all, .memory = "device", .source = "resident" },
		{ one, others, burst, quick ? few : all, .memory = "device", .source = "resident" },
		{ one, usual, burst, quick ? few : all, .memory = "device", .source = "launched" },
		{ one, others, burst, quick ? BENCH_LIST(16) : all, .memory = "device",
		  .source = "launched" },
	};
	struct bench_points to = { bench, points, 0, NULL };

	if (bench->cuda)
		bench_points_add(&to, device, COUNT(device));
	else
		bench_points_add(&to, &host, 1);
	for (size_t c = 0; c < COUNT(conversions) && !quick; c++) {
		const struct bench_grid grid = {
			one,
			BENCH_LIST(1494),
			burst,
			bench->cuda ? BENCH_LIST(4, most) : one,
			.pattern = conversions[c],
			.memory = bench->cuda ? "device" : "host",
			.source = bench->cuda ? "resident" : "threads",
		};

		bench_points_add(&to, &grid, 1);
	}
	return to.count;
}

static void image_place_close(void *state)
{
	placing_close(&((struct image_place *)state)->placing);
}

/* Of a GPU: what a copy within its memory does, while there is nothing in it. */
static int limit_measure(struct image_place *place, struct gdrcap_error *error)
{
#ifdef GDRCAP_WITH_CUDA
	const struct resident *resident = place->placing.resident;
	const size_t half = resident->bytes / 2, bytes = half < COPY_BYTES ? half : COPY_BYTES;
	double seconds;
	int ret = 0;

	if (!resident->gpu)
		return 0;
	for (uint32_t i = 0; i < 2 && !ret; i++) /* the first is the warm-up */
		ret = bench_gpu_copy(resident->gpu, resident->frames + half, resident->frames,
				     bytes, COPY_TIMES, &seconds);
	if (ret)
		return error_set(error, ret, "%s", kernel_error());
	place->limit = 8e-9 * (double)bytes * COPY_TIMES / seconds;
#else
	(void)place;
	(void)error;
#endif
	return 0;
}

static int image_place_open(const struct bench *bench, const struct gdrcap_bench_point *point,
			    void *state, struct gdrcap_error *error)
{
	const size_t most = (size_t)SLOTS_MOST * placing_slot_bytes(point->frame_bytes);
	struct image_place *place = state;
	struct placing_config config = {
		.frame_bytes = point->frame_bytes,
		.payload = payload_of(point->frame_bytes),
		.pieces = BURST,
		.burst = point->burst,
		.under_way = bench->cuda ? DEVICE_UNDER_WAY : HOST_UNDER_WAY,
		.persistent = strcmp(point->source, "resident") == 0,
		.descs = bench->cuda ? SLOTS_MOST : 0, /* so that descriptors stay the same */
		.bytes = !bench->cuda	       ? 0
			 : most < DEVICE_BYTES ? most
					       : DEVICE_BYTES,
	};
	int ret;

	while (bench->cuda && config.pieces * point->frame_bytes < DEVICE_IMAGE_BYTES &&
	       config.pieces < DEVICE_PIECES)
		config.pieces *= 2;
	place->bench = bench;
	bench_pin(bench, 0);
	ret = placing_create(&place->placing, bench, &config, error);
	if (ret == 0)
		ret = limit_measure(place, error);
	if (ret == 0)
		ret = placing_fill(&place->placing, error);
	return ret < 0 ? ret : placing_start(&place->placing, point->blocks, error);
}

/* ---- runs ---- */

/* Gb/s of this thread's memcpy() from the frames into the images, by pieces or by images. */
static double host_copy(const struct placing *placing, uint32_t ms, bool whole)
{
	const struct place_view *view = &placing->place.view;
	const struct resident *resident = placing->resident;
	const uint32_t slots = resident->ring[0].slots, pieces = placing->pieces;
	const uint64_t begin = bench_now_ns(), end = begin + ms * UINT64_C(1000000);
	uint64_t bytes = 0, now = begin;

	for (uint32_t first = 0, n = 0; now < end; first = (first + pieces) % slots, n++) {
		const uint8_t *from = resident->frames + ((size_t)first << resident->slot_shift) +
				      PLACING_FRAME_AT + placing->payload;
		uint8_t *to = view->images + n % view->ring * view->stride;

		if (whole)
			memcpy(to, from, (size_t)pieces * placing->piece);
		for (uint32_t p = 0; p < pieces && !whole; p++)
			memcpy(to + (size_t)p * placing->piece,
			       from + ((size_t)p << resident->slot_shift), placing->piece);
		bytes += (uint64_t)pieces * placing->piece;
		now = bench_now_ns();
	}
	return 8 * (double)bytes / (double)(now - begin);
}

static int image_place_run(void *state, uint32_t run_ms, struct bench_sample *sample,
			   struct gdrcap_error *error)
{
	struct image_place *place = state;
	struct placing *placing = &place->placing;
	const uint32_t copy_ms = run_ms / COPY_PART + 1;
	struct resident_counts counts = { 0 };
	uint64_t damaged = 0;
	int ret;

	bench_pin(place->bench, 0);
	ret = resident_play(placing->resident, run_ms, 0, &counts, error);
	if (ret == 0 && !place->compared)
		ret = placing_compare(placing, &damaged, error);
	if (ret < 0)
		return ret;
	place->compared = true;
	counts.lost += placing->wrong;
	counts.damaged = damaged;
	placing->wrong = 0;
	resident_sample(placing->resident, &counts, false, sample);
	sample->value = sample->mpps * placing->piece * 8e-3;
	sample->limit = place->limit;
	if (place->bench->cuda) {
		snprintf(sample->note, sizeof(sample->note),
			 "%u B at byte %u; limit: a copy in the GPU's memory", placing->piece,
			 placing->payload);
		return 0;
	}
	sample->limit = host_copy(placing, copy_ms, true);
	snprintf(sample->note, sizeof(sample->note),
		 "%u B at byte %u; limit: memcpy() of images; by pieces it does %.3g Gb/s",
		 placing->piece, placing->payload, host_copy(placing, copy_ms, false));
	return 0;
}

const struct bench_stage bench_image_place = {
	.about = {
		.id = "image_place",
		.group = "image",
		.what = "payloads that lie in memory already are placed into images, from publication "
			"in a ring to the collected record and the image handed out; source: which "
			"engine; beside a copy of the same machine's",
		.unit = "Gb/s",
	},
	.cores = resident_cores,
	.points = image_place_points,
	.state_bytes = sizeof(struct image_place),
	.open = image_place_open,
	.run = image_place_run,
	.close = image_place_close,
};
