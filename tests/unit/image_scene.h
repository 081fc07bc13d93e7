/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers in a few lines, for the assembler's tests: a table of images, frames of one piece each, records
 * that wait in queues, and what the assembler must say of all that. */
#ifndef GDRCAP_IMAGE_SCENE_H
#define GDRCAP_IMAGE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "image/images.h"

#define SCENE_PIECES 40u
#define SCENE_PIECE 100u
#define SCENE_WORDS 2u
#define SCENE_RING 16u
#define SCENE_QUEUES 2u
#define SCENE_WAITING 64u /* records a queue */

struct scene_entry {
	uint64_t number;
	uint32_t stream, use, uses;
	uint32_t present[SCENE_WORDS], pieces;
	bool open;
};

struct scene {
	struct place_view view;
	struct place_shared shared;
	uint8_t data[SCENE_RING * SCENE_PIECES * SCENE_PIECE];
	uint32_t present_host[SCENE_RING * SCENE_WORDS];
	struct gdrcap_images images;
	struct scene_entry entry[SCENE_RING];
	uint64_t taken, now;
	struct {
		uint64_t no_room, forgotten;
		bool has_no_room;
	} stream[PLACE_STREAMS_MAX];
	uint32_t wholes; /* images closed that were complete */
	/* an asynchronous device: closings that it has not done yet */
	uint32_t closing[SCENE_RING], closings;
	bool slow, broken;
	struct place_record queue[SCENE_QUEUES][SCENE_WAITING];
	uint32_t waiting[SCENE_QUEUES];
	uint64_t frames[PLACE_OUTCOMES];
};

static void scene_do_close(struct scene *scene, uint32_t slot)
{
	struct scene_entry *entry = &scene->entry[slot];

	memcpy(&scene->present_host[slot * SCENE_WORDS], entry->present, sizeof(entry->present));
	scene->shared.closed[slot].pieces = entry->pieces;
	scene->shared.closed[slot].bytes = (uint64_t)entry->pieces * SCENE_PIECE;
	scene->shared.closed[slot].use = entry->use;
	entry->open = false;
}

static int scene_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	struct scene *scene = context;

	assert_true(fill == 7 || fill == -1);
	assert_true(scene->entry[slot].open);
	assert_int_equal(scene->entry[slot].use, use);
	if (scene->broken)
		return -5;
	if (scene->slow)
		scene->closing[scene->closings++] = slot;
	else
		scene_do_close(scene, slot);
	return 0;
}

static int scene_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	struct scene *scene = context;

	assert_in_range(count, 1, PLACE_WHOLE_MAX);
	for (uint32_t i = 0; i < count; i++) {
		struct scene_entry *entry = &scene->entry[images[i].slot];

		assert_true(entry->use != images[i].use || entry->pieces == SCENE_PIECES);
		if (entry->use == images[i].use)
			entry->open = false;
	}
	scene->wholes += count;
	return scene->broken ? -5 : 0;
}

/* The device gets on. */
static inline void scene_closings(struct scene *scene)
{
	while (scene->closings)
		scene_do_close(scene, scene->closing[--scene->closings]);
}

static inline struct scene *scene_begin(uint32_t ring, uint32_t open)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct assembler_config config = {
		.open = open,
		.timeout = 100,
		.linger = 10,
		.fill = 7,
		.close = scene_close,
		.close_whole = scene_close_whole,
	};

	assert_non_null(scene);
	config.context = scene;
	config.view = &scene->view;
	config.data = scene->data;
	scene->view.layout = (struct image_layout){
		.late = 64,
		.counts = 1,
		.bytes = SCENE_PIECES * SCENE_PIECE,
		.row_bytes = SCENE_PIECES * SCENE_PIECE,
		.pitch = SCENE_PIECES * SCENE_PIECE,
		.piece = SCENE_PIECE,
		.row_pieces = SCENE_PIECES,
		.pieces = SCENE_PIECES,
		.known = 1,
	};
	scene->view.shared = &scene->shared;
	scene->view.stride = SCENE_PIECES * SCENE_PIECE;
	scene->view.present_host = scene->present_host;
	scene->view.present_words = SCENE_WORDS;
	scene->view.ring = ring;
	scene->now = 1000;
	images_init(&scene->images, &config, &kernel_host_ops, NULL, "scene");
	return scene;
}

static struct scene_entry *scene_find(struct scene *scene, uint32_t stream, uint64_t number)
{
	for (uint32_t s = 0; s < scene->view.ring; s++)
		if (scene->entry[s].open && scene->entry[s].stream == stream &&
		    scene->entry[s].number == number)
			return &scene->entry[s];
	return NULL;
}

/* The entry of an image, as place_begin() gives one, or why there is none. */
static struct scene_entry *scene_open(struct scene *scene, uint32_t stream, uint64_t number,
				      uint8_t *outcome)
{
	struct scene_entry *entry = scene_find(scene, stream, number);
	const uint64_t last = scene->shared.window[stream].last;
	uint32_t slot;

	*outcome = PLACE_PLACED;
	if (entry)
		return entry;
	if (last && number < last && last - 1 - number <= scene->view.layout.late) {
		*outcome = PLACE_LATE;
		return NULL;
	}
	if (scene->stream[stream].forgotten != scene->shared.window[stream].forgotten)
		scene->stream[stream].has_no_room = false;
	scene->stream[stream].forgotten = scene->shared.window[stream].forgotten;
	if ((scene->stream[stream].has_no_room && scene->stream[stream].no_room == number) ||
	    scene->taken == scene->shared.given) {
		scene->stream[stream].has_no_room = true;
		scene->stream[stream].no_room = number;
		*outcome = PLACE_NO_ROOM;
		return NULL;
	}
	slot = (uint32_t)scene->shared.credit[scene->taken++ % PLACE_RING_MAX];
	entry = &scene->entry[slot];
	*entry = (struct scene_entry){ .number = number,
				       .stream = stream,
				       .use = entry->uses + 1,
				       .uses = entry->uses + 1,
				       .open = true };
	scene->stream[stream].has_no_room = false;
	scene->shared.head[slot] = (struct place_head){
		.number = number,
		.stream_id = 1000 + stream,
		.stream = stream,
		.use = entry->use,
		.timestamp = number * 3,
	};
	return entry;
}

/* What a worker makes of a frame. `piece` UINT32_MAX: a trailer, that says `says` pieces. */
static struct place_record scene_place(struct scene *scene, uint32_t stream, uint64_t number,
				       uint32_t piece, uint32_t says)
{
	struct place_record record = {
		.slot = PLACE_NO_SLOT,
		.count = 1,
		.stream = (uint16_t)stream,
		.expected = says,
		.ends = piece == UINT32_MAX,
	};
	struct scene_entry *entry = scene_open(scene, stream, number, &record.outcome);

	if (record.outcome == PLACE_NO_ROOM)
		record.number = number;
	if (entry) {
		record.slot = (uint32_t)(entry - scene->entry);
		record.use = entry->use;
	}
	if (entry && piece != UINT32_MAX) {
		uint32_t *word = &entry->present[piece / 32];

		if (*word >> piece % 32 & 1) {
			record.outcome = PLACE_DUPLICATE;
		} else {
			*word |= (uint32_t)1 << piece % 32;
			entry->pieces++;
			record.pieces = 1;
			record.bytes = SCENE_PIECE;
			record.past = piece + 1;
		}
	}
	scene->frames[record.outcome]++;
	return record;
}

static inline void scene_frame(struct scene *scene, uint32_t stream, uint64_t number,
			       uint32_t piece)
{
	const struct place_record record = scene_place(scene, stream, number, piece, 0);

	assembler_add(&scene->images.assembler, scene->now, &record);
}

static inline void scene_trailer(struct scene *scene, uint64_t number, uint32_t says)
{
	const struct place_record record = scene_place(scene, 0, number, UINT32_MAX, says);

	assembler_add(&scene->images.assembler, scene->now, &record);
}

/* All pieces of an image but those from `from` to `to`. */
static inline void scene_image(struct scene *scene, uint32_t stream, uint64_t number, uint32_t from,
			       uint32_t to)
{
	for (uint32_t piece = 0; piece < SCENE_PIECES; piece++)
		if (piece < from || piece >= to)
			scene_frame(scene, stream, number, piece);
}

static inline void scene_later(struct scene *scene, uint64_t ticks)
{
	scene->now += ticks;
	(void)assembler_round(&scene->images.assembler, scene->now, scene->now);
}

static inline struct gdrcap_image_counts scene_counts(const struct scene *scene)
{
	struct gdrcap_image_counts counts;

	assembler_counts(&scene->images.assembler, &counts);
	assert_int_equal(counts.frames, counts.placed + counts.duplicate + counts.second_leg +
						counts.conflict + counts.late + counts.no_room +
						counts.misfit + counts.filtered);
	assert_int_equal(counts.begun,
			 counts.complete + counts.incomplete + counts.dropped + counts.open);
	assert_int_equal(counts.incomplete, counts.newer + counts.timeout + counts.stopped);
	assert_int_equal(counts.pieces_expected, counts.pieces_placed + counts.pieces_lost);
	return counts;
}

/* The next image, or NULL. */
static inline const struct gdrcap_image *scene_take(struct scene *scene)
{
	const struct gdrcap_image *image;

	return gdrcap_image_poll(&scene->images, &image, 1) == 1 ? image : NULL;
}

/* The next image is this one. Gives it back. */
static inline void scene_expect(struct scene *scene, uint64_t number, enum gdrcap_image_end end,
				uint32_t received)
{
	const struct gdrcap_image *image = scene_take(scene);

	assert_non_null(image);
	assert_int_equal(image->number, number);
	assert_int_equal(image->end, end);
	assert_int_equal(image->received, received);
	assert_int_equal(image->timestamp, number * 3);
	gdrcap_image_release(&scene->images, &image, 1);
}

static inline void scene_expect_none(struct scene *scene)
{
	assert_null(scene_take(scene));
}

#endif
