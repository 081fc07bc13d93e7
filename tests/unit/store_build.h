/* SPDX-License-Identifier: BSD-3-Clause */
/* A store of frames for tests: written down from frame_store.h, apart from the product's. */
#ifndef GDRCAP_TEST_STORE_BUILD_H
#define GDRCAP_TEST_STORE_BUILD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/frame_store.h"

struct built_store {
	struct frame_store_view view;
	uint8_t *data;
	struct store_frame *frames;
	struct store_bucket *buckets;
};

struct built_memory {
	void *(*alloc)(size_t bytes); /* zeroed, aligned to 16 bytes at least; ends on failure */
	void (*free)(void *memory);
};

static inline void *built_alloc(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!memory)
		abort();
	memset(memory, 0, (bytes + 63) & ~(size_t)63);
	return memory;
}

static const struct built_memory built_here __attribute__((unused)) = { built_alloc, free };

/* A frame takes whole pieces, and 64 bytes at least. */
static inline uint64_t built_room(uint32_t len)
{
	return len < 60 ? 64 : (len + 15) / 16 * 16;
}

static inline void built_insert(struct built_store *store, uint64_t hash, uint32_t class)
{
	uint32_t b = (uint32_t)hash & store->view.bucket_mask;

	while (store->buckets[b].frame && store->buckets[b].hash != hash)
		b = (b + 1) & store->view.bucket_mask;
	if (store->buckets[b].frame && store->buckets[b].frame != class + 1) {
		store->buckets[b].shared = 1;
		return;
	}
	store->buckets[b].hash = hash;
	store->buckets[b].frame = class + 1;
}

static inline void built_index(struct built_store *store, uint32_t class)
{
	const struct store_frame *frame = &store->frames[class];
	const uint32_t pieces = (uint32_t)(built_room(frame->len) / 16);
	uint64_t sum[STORE_PARTS] = { 0 };

	for (uint32_t p = 0; p < pieces; p++) {
		const uint8_t *at = store->data + frame->at + 16 * p;
		uint32_t word[4];

		for (uint32_t w = 0; w < 4; w++)
			word[w] = (uint32_t)at[4 * w] | (uint32_t)at[4 * w + 1] << 8 |
				  (uint32_t)at[4 * w + 2] << 16 | (uint32_t)at[4 * w + 3] << 24;
		sum[p * STORE_PARTS / pieces] += store_hash_piece(p, word);
	}
	built_insert(store, store_hash_frame(frame->len, sum), class);
	for (uint32_t part = 0; part < STORE_PARTS; part++)
		built_insert(store, store_hash_part(part, frame->len, sum[part]), class);
}

/* Frame i has len[i] bytes, copied from bytes[i]. */
static inline void built_create(struct built_store *store, const struct built_memory *memory,
				const uint8_t *const *bytes, const uint32_t *len, uint32_t count)
{
	uint32_t buckets = 16;
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++)
		at += built_room(len[i]);
	while (buckets < 10 * count)
		buckets *= 2;
	memset(store, 0, sizeof(*store));
	store->data = memory->alloc(at);
	store->frames = memory->alloc(count * sizeof(*store->frames));
	store->buckets = memory->alloc(buckets * sizeof(*store->buckets));
	store->view.data = store->data;
	store->view.frames = store->frames;
	store->view.buckets = store->buckets;
	store->view.count = count;
	store->view.bucket_mask = buckets - 1;
	store->view.data_bytes = at;
	store->view.resident = 1;
	at = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct store_frame *frame = &store->frames[i];

		frame->at = at;
		frame->len = len[i];
		memcpy(store->data + at, bytes[i], len[i]);
		at += built_room(len[i]);
		/* the first with the same content, padded as a card would */
		while (frame->class_first < i) {
			const struct store_frame *other = &store->frames[frame->class_first];

			if (store_padded(other->len) == store_padded(len[i]) &&
			    !memcmp(store->data + other->at, store->data + frame->at,
				    store_padded(len[i])))
				break;
			frame->class_first++;
		}
		if (frame->class_first == i)
			built_index(store, i);
	}
}

static inline void built_destroy(struct built_store *store, const struct built_memory *memory)
{
	memory->free(store->data);
	memory->free(store->frames);
	memory->free(store->buckets);
}

#endif
