/* SPDX-License-Identifier: BSD-3-Clause */
/* From frames in memory to classes of equal frames, and a table that finds a class by the hash of
 * the whole frame or of one of its parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/file_frames.h"

#define TABLE_ALIGN ((size_t)64 << 10) /* of memory that is registered with a GPU */
#define KEYS (1 + STORE_PARTS)	       /* of a class */

struct frame_hashes {
	uint64_t whole, part[STORE_PARTS];
};

/* While classes are made: equal hashes are told apart by the frames' bytes. */
struct class_slot {
	uint64_t hash;
	uint32_t frame; /* index of the class's first frame, + 1; 0: empty */
};

/* A power of two with room for `entries` at half full. */
static uint64_t table_size(uint64_t entries)
{
	uint64_t size = 2;

	while (size < 2 * entries)
		size *= 2;
	return size;
}

static size_t table_bytes(uint64_t size)
{
	return (size * sizeof(struct store_bucket) + TABLE_ALIGN - 1) & ~(TABLE_ALIGN - 1);
}

size_t file_frames_index_bytes(uint64_t frames)
{
	return table_bytes(table_size(frames * KEYS)) +
	       table_size(frames) * sizeof(struct class_slot);
}

static void frame_hash(const struct frame_store_view *view, const struct store_frame *frame,
		       struct frame_hashes *hashes)
{
	const uint32_t pieces = store_pieces(frame->len);
	uint64_t sum[STORE_PARTS] = { 0 };

	for (uint32_t i = 0; i < pieces; i++) {
		const uint8_t *piece = view->data + frame->at + (size_t)i * STORE_PIECE_BYTES;
		uint32_t word[4];

		for (uint32_t w = 0; w < 4; w++)
			word[w] = (uint32_t)piece[4 * w] | (uint32_t)piece[4 * w + 1] << 8 |
				  (uint32_t)piece[4 * w + 2] << 16 |
				  (uint32_t)piece[4 * w + 3] << 24;
		sum[store_part_of(i, pieces)] += store_hash_piece(i, word);
	}
	for (uint32_t part = 0; part < STORE_PARTS; part++)
		hashes->part[part] = store_hash_part(part, frame->len, sum[part]);
	hashes->whole = store_hash_frame(frame->len, sum);
}

static int same_content(const struct frame_store_view *view, const struct store_frame *a,
			const struct store_frame *b)
{
	/* Zeros follow a short frame up to the length as which it is compared. */
	return store_padded(a->len) == store_padded(b->len) &&
	       memcmp(view->data + a->at, view->data + b->at, store_padded(a->len)) == 0;
}

/* Gives each frame its class; returns how many there are. */
static uint64_t classes_make(const struct frame_store_view *view, struct store_frame *frames,
			     struct class_slot *slots, uint64_t mask)
{
	struct frame_hashes hashes;
	uint64_t classes = 0;

	for (uint32_t i = 0; i < view->count; i++) {
		struct class_slot *slot;

		frame_hash(view, &frames[i], &hashes);
		for (uint64_t at = hashes.whole & mask;; at = (at + 1) & mask) {
			slot = &slots[at];
			if (!slot->frame ||
			    (slot->hash == hashes.whole &&
			     same_content(view, &frames[slot->frame - 1], &frames[i])))
				break;
		}
		if (!slot->frame) {
			slot->hash = hashes.whole;
			slot->frame = i + 1;
			classes++;
		}
		frames[i].class_first = slot->frame - 1;
	}
	return classes;
}

static void bucket_put(struct store_bucket *buckets, uint32_t mask, uint64_t hash,
		       uint32_t class_first)
{
	for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
		struct store_bucket *bucket = &buckets[at];

		if (!bucket->frame) {
			bucket->hash = hash;
			bucket->frame = class_first + 1;
			return;
		}
		if (bucket->hash != hash)
			continue;
		/* Also two whole frames with one hash: then neither is found by it. */
		bucket->shared |= bucket->frame != class_first + 1;
		return;
	}
}

int file_frames_index(struct frame_store_view *view, struct store_frame *frames,
		      struct store_bucket **buckets)
{
	const uint64_t slots = table_size(view->count);
	struct class_slot *slot = calloc(slots, sizeof(*slot));
	struct frame_hashes hashes;
	uint64_t size;

	*buckets = NULL;
	if (!slot)
		return -ENOMEM;
	size = table_size(KEYS * classes_make(view, frames, slot, slots - 1));
	free(slot);
	if (size > (uint64_t)UINT32_MAX + 1)
		return -ENOMEM;
	*buckets = aligned_alloc(TABLE_ALIGN, table_bytes(size));
	if (!*buckets)
		return -ENOMEM;
	memset(*buckets, 0, table_bytes(size));
	view->buckets = *buckets;
	view->bucket_mask = (uint32_t)(size - 1);
	for (uint32_t i = 0; i < view->count; i++) {
		if (frames[i].class_first != i)
			continue;
		frame_hash(view, &frames[i], &hashes);
		bucket_put(*buckets, view->bucket_mask, hashes.whole, i);
		for (uint32_t part = 0; part < STORE_PARTS; part++)
			bucket_put(*buckets, view->bucket_mask, hashes.part[part], i);
	}
	return 0;
}
