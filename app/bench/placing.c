/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident frames that are placed into images: placing.h. */
#include "bench/placing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/image_load.h"

#define ETHERTYPE_AT 12u /* of an experiment: 0x88b6 */
#define NUMBER_AT 14u
#define INDEX_AT 22u
#define FILL_BYTES ((size_t)16 << 20)
#define BUFFERS_MORE 8u /* than images under way: who takes them is not in a hurry */
#define OPEN 2u
#define NUMBERS_LEAST 32u  /* so that late ones are not taken for the next round's */
#define COMPARED 4u	   /* image buffers */
#define TAKE_MAX 16u	   /* images at once */
#define NEVER (1ull << 62) /* ns */

/* ---- frames ---- */

uint32_t placing_slot_bytes(uint32_t frame_bytes)
{
	uint32_t bytes = 256;

	while (bytes < frame_bytes + PLACING_FRAME_AT)
		bytes *= 2;
	return bytes;
}

void placing_layout(char *text, size_t bytes, uint32_t piece, uint32_t payload, uint32_t pieces,
		    const char *more)
{
	snprintf(text, bytes,
		 "{name: bench, base: frame, number: {at: %u, bytes: 8}, "
		 "index: {at: %u, bytes: 4}, piece: %u, pieces: %u, late: 4, "
		 "data: {payload: %u}, match: [\"ethertype=0x88b6\"]%s}",
		 NUMBER_AT, INDEX_AT, piece, pieces, payload, more);
}

static void put(uint8_t *at, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static void payload_make(uint8_t *to, uint32_t bytes, uint64_t number, uint32_t piece)
{
	uint64_t state = number << 32 | piece;

	for (uint32_t at = 0; at < bytes; at += 8) {
		const uint64_t word = (state += 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

		memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
	}
}

void placing_frame(uint8_t *frame, uint32_t bytes, uint32_t payload, uint64_t number,
		   uint32_t piece)
{
	memset(frame, 2, payload);
	put(frame + ETHERTYPE_AT, 0x88b6, 2);
	put(frame + NUMBER_AT, number, 8);
	put(frame + INDEX_AT, piece, 4);
	payload_make(frame + payload, bytes - payload, number, piece);
}

int placing_fill(struct placing *placing, struct gdrcap_error *error)
{
	struct resident *resident = placing->resident;
	const struct bench *bench = resident->bench;
	const uint32_t slots = resident->ring[0].slots, last = placing->pieces - 1;
	const uint32_t some = (uint32_t)(FILL_BYTES >> resident->slot_shift);
	uint8_t *copy = calloc(some, (size_t)1 << resident->slot_shift);
	int ret = copy ? 0 : error_set(error, -ENOMEM, "no memory for frames to fill slots with");

	for (uint32_t slot = 0; slot < slots && !ret; slot += some) {
		const uint32_t count = slots - slot < some ? slots - slot : some;

		for (uint32_t i = 0; i < count; i++) {
			const uint32_t n = slot + i, piece = n % placing->pieces;

			placing_frame(copy + ((size_t)i << resident->slot_shift) + PLACING_FRAME_AT,
				      resident->frame_bytes - FRAME_FCS_BYTES, placing->payload,
				      n / placing->pieces,
				      placing->holes && piece == last ? last - 1 : piece);
		}
		ret = bench->ops->copy_in(bench->device,
					  resident->frames + ((size_t)slot << resident->slot_shift),
					  copy, (size_t)count << resident->slot_shift);
		if (ret)
			error_set(error, ret, "the slots cannot be filled: %s", kernel_error());
	}
	free(copy);
	return ret;
}

/* ---- images ---- */

static int image_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	const struct placing *placing = context;
	const struct bench *bench = placing->resident->bench;

	return bench->ops->place_close(bench->device, &placing->place.view, slot, use, pieces,
				       fill);
}

static int image_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	const struct placing *placing = context;
	const struct bench *bench = placing->resident->bench;

	return bench->ops->place_close_whole(bench->device, &placing->place.view, images, count);
}

void placing_round(struct placing *placing, uint64_t now_ns)
{
	const struct gdrcap_image *image[TAKE_MAX];
	int n;

	(void)assembler_round(&placing->images->assembler, now_ns, now_ns);
	while ((n = gdrcap_image_poll(placing->images, image, TAKE_MAX)) > 0) {
		for (int i = 0; i < n; i++) {
			placing->wrong +=
				(image[i]->end == GDRCAP_IMAGE_COMPLETE) == placing->holes;
			if (placing->taken)
				placing->taken(placing->context, image[i]);
		}
		gdrcap_image_release(placing->images, image, (unsigned int)n);
	}
}

/* A burst that is done. */
static void burst_account(void *context, const struct resident_ring *ring,
			  struct resident_counts *counts)
{
	struct placing *placing = context;
	const struct burst_result *result =
		&ring->view.result[ring->collected & (RESIDENT_BURSTS - 1)];
	const uint32_t first = (uint32_t)(ring->collected * placing->resident->burst);
	const uint64_t now = bench_now_ns();

	for (uint32_t r = 0; r < burst_word_count(result->done); r++) {
		const struct place_record *record =
			(const struct place_record *)&ring->view
				.records[(first + r) & ring->view.desc_mask];

		if (record->outcome != PLACE_PLACED &&
		    (!placing->holes || record->outcome != PLACE_DUPLICATE))
			counts->lost += record->count;
		assembler_add(&placing->images->assembler, now, record);
	}
	placing_round(placing, now);
}

/* ---- life ---- */

static int view_alloc(struct placing *placing, uint32_t buffers, struct gdrcap_error *error)
{
	struct place_view *view = &placing->place.view;
	const struct resident *resident = placing->resident;
	const size_t bitmaps = sizeof(uint32_t) * view->present_words * buffers;

	view->table = resident_alloc(resident, sizeof(*view->table), false, error);
	if (view->table)
		view->images = resident_alloc(resident, view->stride * buffers, false, error);
	if (view->images)
		view->present = resident_alloc(resident, bitmaps, false, error);
	if (view->present)
		view->shared = resident_alloc(resident, sizeof(*view->shared), true, error);
	if (view->shared)
		view->present_host = resident_alloc(resident, bitmaps, true, error);
	return view->present_host ? 0 : -ENOMEM;
}

static int images_create(struct placing *placing, uint32_t under_way, const char *convert,
			 struct gdrcap_error *error)
{
	const struct resident *resident = placing->resident;
	const uint32_t buffers = under_way * resident->burst / placing->pieces + BUFFERS_MORE;
	struct place_view *view = &placing->place.view;
	struct image_settings settings = { 0 };
	struct assembler_config config = {
		.view = view,
		.open = OPEN,
		.timeout = NEVER,
		.linger = NEVER,
		.shut = ASSEMBLER_SHUT_US * 1000,
		.close = image_close,
		.close_whole = image_close_whole,
		.ns_a_tick = 1,
		.context = placing,
	};
	char text[320], more[48] = "";
	int ret;

	placing->numbers = resident->ring[0].slots / placing->pieces;
	if (placing->converts)
		snprintf(more, sizeof(more), ", convert: %s", convert);
	placing_layout(text, sizeof(text), placing->piece, placing->payload, placing->pieces, more);
	ret = image_load_text(text, "bench", &settings, error);
	if (ret < 0)
		return ret;
	view->layout = settings.layout;
	/* numbers come round */
	view->layout.number_modulus = placing->numbers;
	view->layout.match.count = 0;
	view->ring = buffers < PLACE_RING_MAX ? buffers : PLACE_RING_MAX;
	view->stride =
		(image_in_buffer(&settings.layout, settings.layout.bytes) + 511) & ~(uint64_t)511;
	view->present_words = place_words(settings.layout.pieces);
	ret = view_alloc(placing, view->ring, error);
	placing->images = calloc(1, sizeof(*placing->images));
	if (ret == 0 && !placing->images)
		ret = error_set(error, -ENOMEM, "no memory for images' accounts");
	if (ret < 0)
		return ret;
	config.data = view->images;
	images_init(placing->images, &config, resident->bench->ops, resident->bench->device,
		    "bench");
	return 0;
}

int placing_create(struct placing *placing, const struct bench *bench,
		   const struct placing_config *config, struct gdrcap_error *error)
{
	const struct resident_config frames = {
		.frame_bytes = config->frame_bytes,
		.burst = config->burst,
		.rings = 1,
		.pattern = "prbs31",
		.memory = bench->cuda ? "device" : "host",
		.bytes = config->bytes,
		.descs = config->descs,
		.least = config->pieces * NUMBERS_LEAST,
		.offset = PLACING_FRAME_AT,
	};
	struct resident_ring *ring;
	int ret = resident_create(bench, &frames, &placing->resident, error);

	if (ret < 0)
		return ret;
	placing->payload = config->payload;
	placing->piece = config->frame_bytes - FRAME_FCS_BYTES - config->payload;
	placing->pieces = config->pieces;
	placing->holes = config->holes;
	placing->converts = config->convert && config->convert[0];
	ring = &placing->resident->ring[0];
	ring->slots = ring->slots / config->pieces * config->pieces;
	/* half of the numbers, so that it is known which round one is of */
	ring->most = ring->slots / 2 / config->burst;
	if (ring->most > config->under_way)
		ring->most = config->under_way;
	placing->place.persistent = config->persistent;
	placing->place.account = burst_account;
	placing->place.context = placing;
	placing->resident->place = &placing->place;
	return images_create(placing, (uint32_t)ring->most, config->convert, error);
}

int placing_start(struct placing *placing, uint32_t blocks, struct gdrcap_error *error)
{
	return resident_start(placing->resident, KERNEL_PLACE, blocks, error);
}

void placing_close(struct placing *placing)
{
	struct place_view *view = &placing->place.view;
	struct resident *resident = placing->resident;
	struct gdrcap_error error;

	if (!resident)
		return;
	if (resident_stop(resident, &error) < 0) {
		log_warning("bench: %s", error.text);
		return; /* they still use it */
	}
	resident_free(resident, view->present_host, true);
	resident_free(resident, view->shared, true);
	resident_free(resident, view->present, false);
	resident_free(resident, view->images, false);
	resident_free(resident, view->table, false);
	resident_destroy(resident);
	free(placing->images);
}

/* ---- what lies there ---- */

static uint64_t image_compare(const struct placing *placing, uint64_t number, const uint8_t *image,
			      uint8_t *piece)
{
	uint64_t damaged = 0;

	for (uint32_t p = 0; p < placing->pieces; p++) {
		payload_make(piece, placing->piece, number % placing->numbers, p);
		damaged += memcmp(image + (size_t)p * placing->piece, piece, placing->piece) != 0;
	}
	return damaged;
}

int placing_compare(struct placing *placing, uint64_t *damaged, struct gdrcap_error *error)
{
	const struct place_view *view = &placing->place.view;
	const struct assembler *assembler = &placing->images->assembler;
	uint8_t *copy = malloc(view->layout.bytes + placing->piece);
	uint32_t compared = placing->converts ? COMPARED : 0;
	int ret = copy ? 0 : error_set(error, -ENOMEM, "no memory to compare images in");

	*damaged = 0;
	for (uint32_t slot = 0; slot < view->ring && compared < COMPARED && !ret; slot++) {
		const struct gdrcap_image *image = &assembler->slot[slot].image;

		/* handed out, gone back, and not begun since */
		if (assembler->slot[slot].state != ASSEMBLER_GIVEN || !image->pieces ||
		    image->end != GDRCAP_IMAGE_COMPLETE)
			continue;
		ret = gdrcap_image_copy(image, 0, image->bytes, copy);
		if (ret)
			error_set(error, ret, "%s", kernel_error());
		else
			*damaged += image_compare(placing, image->number, copy,
						  copy + view->layout.bytes);
		compared++;
	}
	free(copy);
	return ret;
}
