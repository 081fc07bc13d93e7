/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast one CPU thread places GVSP payloads into images, beside memcpy() of the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/place_rig.h"
#include "kernels/host/host_workers.h"

#define BENCH_IMAGES 100u
#define BENCH_BYTES ((uint64_t)16 << 20)
#define BENCH_HUGE ((size_t)2 << 20)
/* In a slot: the frame, and what it brings behind Ethernet, IPv4, UDP and GVSP. */
#define BENCH_FRAME 128u
#define BENCH_PAYLOAD (BENCH_FRAME + 42 + 20)
#define BENCH_FRAMES (1u << 18)
#define BENCH_BURST 64u
#define BENCH_RING 8u

/* Of this thread: others may have its core meanwhile. */
static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Frames of one image, one a slot, in the order of a wire that takes slots in turn. */
struct bench {
	struct rig_images images;
	struct burst_ring_view ring;
	struct frame_desc *desc;
	struct frame_record *records;
	struct burst_ready ready[2]; /* of the next burst: not there */
	uint32_t frames, shift;
};

static void bench_create(struct bench *bench, uint32_t piece, uint64_t bytes)
{
	const struct image_layout layout = wire_layout_gvsp(bytes, piece);
	struct wire wire;

	memset(bench, 0, sizeof(*bench));
	rig_images_create(&bench->images, &layout, BENCH_RING);
	bench->shift = piece < 1900 ? 11 : 14;
	bench->frames = layout.pieces;
	bench->desc = rig_alloc(BENCH_FRAMES * sizeof(*bench->desc));
	bench->records = rig_alloc(BENCH_FRAMES * sizeof(*bench->records));
	bench->ring = (struct burst_ring_view){
		.desc = bench->desc,
		.records = bench->records,
		.ready = bench->ready,
		.frames_bytes = (uint64_t)layout.pieces << bench->shift,
		.desc_mask = BENCH_FRAMES - 1,
		.slot_shift = bench->shift,
	};
	bench->ring.frames = aligned_alloc(BENCH_HUGE, bench->ring.frames_bytes);
	/* as pools of slots are; a machine that has none is slower */
	madvise(bench->ring.frames, bench->ring.frames_bytes, MADV_HUGEPAGE);
	madvise(bench->images.mapped, bench->images.bytes, MADV_HUGEPAGE);
	for (uint32_t p = 0; p < layout.pieces; p++) {
		wire_gvsp_packet(&wire, &layout, 1, 1, p + 1);
		bench->desc[p] =
			(struct frame_desc){ .slot = p, .len = (uint16_t)wire.len, .offset = 128 };
		memcpy(bench->ring.frames + ((uint64_t)p << bench->shift) + BENCH_FRAME, wire.at,
		       wire.len);
	}
}

static void bench_free(struct bench *bench)
{
	rig_images_free(&bench->images);
	free(bench->ring.frames);
	free(bench->desc);
	free(bench->records);
}

static void bench_number(struct bench *bench, uint64_t number)
{
	for (uint32_t p = 0; p < bench->frames; p++)
		frame_put64(bench->ring.frames + ((uint64_t)p << bench->shift) + BENCH_FRAME + 42 +
				    8,
			    number);
}

/* One image, by the CPU backend. */
static void place_image(struct bench *bench, uint64_t number)
{
	const struct place_view *view = &bench->images.view;
	const struct host_work work = { .places = view, .place_count = 1, .step = 1 };

	for (uint32_t p = 0; p < bench->frames; p += BENCH_BURST) {
		const uint32_t left = bench->frames - p;

		host_burst_place(&bench->ring, &work, 0,
				 burst_word(0, 0, left < BENCH_BURST ? left : BENCH_BURST, p));
	}
	rig_give(view, (uint32_t)((number - 1) % BENCH_RING));
}

/* The same pieces, from the same slots. */
static void copy_pieces(struct bench *bench, uint64_t number)
{
	const struct place_view *view = &bench->images.view;
	uint8_t *image = rig_image(view, (uint32_t)(number % BENCH_RING));

	for (uint32_t p = 0; p < bench->frames; p++)
		memcpy(image + (uint64_t)p * view->layout.piece,
		       bench->ring.frames + ((uint64_t)p << bench->shift) + BENCH_PAYLOAD,
		       image_piece_bytes(&view->layout, p));
}

static void copy_image(struct bench *bench, uint64_t number)
{
	const struct place_view *view = &bench->images.view;

	memcpy(rig_image(view, (uint32_t)(number % BENCH_RING)), bench->ring.frames,
	       view->layout.bytes);
}

int main(void)
{
	static const uint32_t pieces[] = { 64, 512, 1364, 8192 };
	static void (*const ways[])(struct bench *, uint64_t) = { place_image, copy_pieces,
								  copy_image };

	for (uint32_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct bench bench;
		double best[3] = { 0, 0, 0 };

		bench_create(&bench, pieces[i], BENCH_BYTES);
		for (uint64_t number = 1; number <= BENCH_IMAGES; number++) {
			bench_number(&bench, number);
			for (uint32_t way = 0; way < 3; way++) {
				const double before = now();
				double rate;

				ways[way](&bench, number);
				rate = (double)BENCH_BYTES * 8e-9 / (now() - before);
				best[way] = rate > best[way] ? rate : best[way];
			}
		}
		printf("pieces of %4u bytes: placed %6.1f Gb/s; memcpy() by pieces %6.1f, of images "
		       "%6.1f\n",
		       pieces[i], best[0], best[1], best[2]);
		bench_free(&bench);
	}
	return 0;
}
