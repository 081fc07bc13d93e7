/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file's frames for a kernel back end: a random store with its table, requests to copy from it, and
 * what a capture of it may look like.
 */
#ifndef GDRCAP_TEST_SCENE_STORE_H
#define GDRCAP_TEST_SCENE_STORE_H

#include "../unit/kernel_scene.h"

#define STORE_FRAMES 700u
#define STORE_BUCKETS 8192u /* five hashes a frame at most */

struct store_scene {
	struct frame_store_view view;
	uint8_t *data;
	struct store_frame *frames;
	struct store_bucket *buckets;
	const struct scene_memory *memory;
};

/* What store_start() puts into jobs of this table. */
static const struct frame_store_view *store_of_jobs;
static const struct kernel_ops *store_ops_beneath;

static int store_start(struct kernel_device *device, const struct kernel_job *job,
		       struct kernel_workers **workers)
{
	struct kernel_job with = *job;

	with.store = store_of_jobs;
	return store_ops_beneath->start(device, &with, workers);
}

/* A back end whose jobs all have the store. */
static struct kernel_ops store_ops(const struct kernel_ops *ops,
				   const struct frame_store_view *store)
{
	struct kernel_ops with = *ops;

	store_of_jobs = store;
	store_ops_beneath = ops;
	with.start = store_start;
	return with;
}

static void store_bucket_add(struct store_scene *store, uint64_t hash, uint32_t frame)
{
	uint32_t i = (uint32_t)hash & (STORE_BUCKETS - 1);

	for (; store->buckets[i].frame; i = (i + 1) & (STORE_BUCKETS - 1)) {
		if (store->buckets[i].hash != hash)
			continue;
		store->buckets[i].shared = 1;
		return;
	}
	store->buckets[i].hash = hash;
	store->buckets[i].frame = frame + 1;
}

static void store_frame_hash(struct store_scene *store, uint32_t frame)
{
	const uint32_t len = store->frames[frame].len, pieces = store_pieces(len);
	const uint8_t *data = store->data + store->frames[frame].at;
	uint64_t sum[STORE_PARTS] = { 0 };

	for (uint32_t p = 0; p < pieces; p++) {
		uint32_t word[4];

		memcpy(word, data + 16 * p, 16);
		sum[store_part_of(p, pieces)] += store_hash_piece(p, word);
	}
	store_bucket_add(store, store_hash_frame(len, sum), frame);
	for (uint32_t part = 0; part < STORE_PARTS; part++)
		store_bucket_add(store, store_hash_part(part, len, sum[part]), frame);
}

/* Content of frame n: new, equal to an earlier one, or equal to it in some parts. */
static void store_frame_make(struct scene *scene, struct store_scene *store, uint32_t n)
{
	struct store_frame *frame = &store->frames[n];
	uint8_t *data = store->data + frame->at;
	const uint32_t other = n ? scene_below(scene, n) : 0;

	frame->len = scene_len(scene);
	if (frame->len > FRAME_LEN_MAX || !frame->len)
		frame->len = 60;
	frame->class_first = n;
	if (n && scene_chance(scene, 4)) {
		frame->len = store->frames[other].len;
		memcpy(data, store->data + store->frames[other].at, frame->len);
		if (scene_chance(scene, 2)) {
			frame->class_first = store->frames[other].class_first;
			return;
		}
		data[scene_below(scene, frame->len)] ^= 0x20;
	} else {
		for (uint32_t i = 0; i < frame->len; i++)
			data[i] = (uint8_t)scene_next(&scene->random);
	}
	/* the change may have made it equal to a third */
	for (uint32_t i = 0; i < n && frame->class_first == n; i++)
		if (store_padded(store->frames[i].len) == store_padded(frame->len) &&
		    !memcmp(store->data + store->frames[i].at, data, store_padded(frame->len)))
			frame->class_first = store->frames[i].class_first;
}

static int store_make(struct scene *scene, struct store_scene *store,
		      const struct scene_memory *memory, bool resident)
{
	const size_t each = (FRAME_MAX_BYTES + 15) & ~15u;
	uint64_t at = 0;

	store->memory = memory;
	store->data = memory->ring_alloc(STORE_FRAMES * each);
	store->frames = memory->ring_alloc(STORE_FRAMES * sizeof(*store->frames));
	store->buckets = memory->ring_alloc(STORE_BUCKETS * sizeof(*store->buckets));
	if (!store->data || !store->frames || !store->buckets)
		return -1;
	for (uint32_t n = 0; n < STORE_FRAMES; n++) {
		store->frames[n].at = at;
		store_frame_make(scene, store, n);
		at += (uint64_t)store_pieces(store->frames[n].len) * STORE_PIECE_BYTES;
		if (store->frames[n].class_first == n)
			store_frame_hash(store, n);
	}
	store->view = (struct frame_store_view){
		.data = store->data,
		.frames = store->frames,
		.count = STORE_FRAMES,
		.bucket_mask = STORE_BUCKETS - 1,
		.buckets = store->buckets,
		.data_bytes = at,
		.resident = resident,
	};
	return 0;
}

static void store_free(struct store_scene *store)
{
	store->memory->ring_free(store->data);
	store->memory->ring_free(store->frames);
	store->memory->ring_free(store->buckets);
}

/* Orders for the scene's bursts: the file's frames in a circle, some lengths not the file's. */
static inline void store_requests(struct scene *scene, const struct store_scene *store)
{
	uint64_t next = 0;

	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];

		if (next + burst->count > STORE_FRAMES && !scene_chance(scene, 4))
			next = 0; /* else the last ones lie behind the store's end */
		memset(&burst->request, 0, sizeof(burst->request));
		burst->request.position = next;
		if (scene_chance(scene, 8)) {
			burst->request.end = 1;
			burst->request.stream = 5;
			continue;
		}
		for (uint32_t i = 0; i < burst->count; i++, next++) {
			struct frame_desc *desc = &burst->desc[i];

			if (next < STORE_FRAMES)
				desc->len = (uint16_t)store->frames[next].len;
			if (scene_chance(scene, 50))
				desc->len = (uint16_t)scene_below(scene, desc->len + 1u);
		}
	}
}

/* A capture of the file's frames, with losses, repeats and padding by a card. */
static void store_capture(struct scene *scene, const struct store_scene *store)
{
	uint32_t next = scene_below(scene, STORE_FRAMES);

	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			struct frame_desc *desc = &scene->burst[b].desc[i];
			const struct store_frame *from = &store->frames[next];
			uint8_t *frame;

			desc->len = (uint16_t)from->len;
			if (from->len < STORE_PAD_BYTES && scene_chance(scene, 2))
				desc->len = STORE_PAD_BYTES;
			frame = scene_frame(scene, *desc);
			if (frame) {
				memset(frame, 0, desc->len);
				memcpy(frame, store->data + from->at, from->len);
			}
			next = (next + 1) % STORE_FRAMES;
			if (scene_chance(scene, 30))
				next = scene_below(scene, STORE_FRAMES);
		}
	}
}

#endif
