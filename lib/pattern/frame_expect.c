/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "frame_store.h"

/* Not an index of a store's frame. */
#define NO_FRAME UINT32_MAX

/* Piece `index` as four little-endian words; what the frame does not have is 0. */
static void piece_words(const uint8_t *frame, uint32_t len, uint32_t index, uint32_t word[4])
{
	const uint32_t at = index * STORE_PIECE_BYTES;
	const uint32_t bytes = len > at ? len - at : 0;

	if (bytes >= STORE_PIECE_BYTES) {
		memcpy(word, frame + at, STORE_PIECE_BYTES);
	} else {
		memset(word, 0, STORE_PIECE_BYTES);
		if (bytes)
			memcpy(word, frame + at, bytes);
	}
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	for (uint32_t i = 0; i < 4; i++)
		word[i] = __builtin_bswap32(word[i]);
#endif
}

static void part_sums(const uint8_t *frame, uint32_t len, uint64_t sum[STORE_PARTS])
{
	const uint32_t pieces = store_pieces(len);
	uint32_t word[4];

	memset(sum, 0, STORE_PARTS * sizeof(*sum));
	for (uint32_t i = 0; i < pieces; i++) {
		piece_words(frame, len, i, word);
		sum[store_part_of(i, pieces)] += store_hash_piece(i, word);
	}
}

/* The frame that this hash names, if it names one of this length. */
static uint32_t frame_named(const struct frame_store_view *store, uint64_t hash, uint32_t len)
{
	const struct store_bucket *bucket = store_find(store, hash);

	if (!bucket || bucket->shared || bucket->frame > store->count ||
	    store_padded(store->frames[bucket->frame - 1].len) != store_padded(len))
		return NO_FRAME;
	return bucket->frame - 1;
}

/* The frame that is meant. */
static uint32_t frame_find(const struct frame_store_view *store, const uint8_t *frame, uint32_t len)
{
	uint64_t sum[STORE_PARTS];
	uint32_t found;

	if (!store->bucket_mask)
		return NO_FRAME;
	part_sums(frame, len, sum);
	found = frame_named(store, store_hash_frame(len, sum), len);
	for (uint32_t part = 0; part < STORE_PARTS && found == NO_FRAME; part++)
		found = frame_named(store, store_hash_part(part, len, sum[part]), len);
	return found;
}

static int all_zero(const uint8_t *at, uint32_t bytes)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < bytes; i++)
		any |= at[i];
	return !any;
}

/* 1: the same bytes; `stored` has those up to STORE_PAD_BYTES. */
static int frame_is_equal(const uint8_t *stored, const uint8_t *frame, uint32_t len)
{
	return !memcmp(stored, frame, len) && all_zero(stored + len, store_padded(len) - len);
}

/* Counts the wrong bits; finds the first wrong byte. */
static void frame_count(const uint8_t *stored, const uint8_t *frame, uint32_t len,
			struct frame_result *result)
{
	const uint32_t bytes = store_padded(len);

	if (frame_is_equal(stored, frame, len))
		return;
	for (uint32_t i = 0; i < bytes; i++) {
		const uint8_t want = stored[i], got = i < len ? frame[i] : 0;

		if (want == got)
			continue;
		if (!result->wrong_bits) {
			result->verdict = FRAME_DAMAGED_PAYLOAD;
			result->offset = (uint16_t)i;
			result->expected = want;
			result->got = got;
		}
		result->wrong_bits += frame_popcount((uint32_t)(want ^ got));
	}
}

/* The result of a frame that is `index` of the store, as far as nothing is wrong with it. */
static void found_begin(const struct frame_store_view *store, uint32_t index, uint32_t len,
			struct frame_result *result)
{
	memset(result, 0, sizeof(*result));
	result->verdict = FRAME_VALID;
	result->header_ok = 1;
	result->sequence = store->frames[index].class_first;
	result->payload_bytes = len;
}

void frame_expect_check(const struct frame_layout *layout, const struct frame_store_view *store,
			const uint8_t *frame, uint32_t len, struct frame_result *result)
{
	uint32_t found;

	memset(result, 0, sizeof(*result));
	if (layout->match.count && !frame_matches(&layout->match, frame, len)) {
		result->verdict = FRAME_FILTERED;
		return;
	}
	/* so that offsets fit struct frame_result */
	if (len > 0xffff)
		len = 0xffff;
	found = frame_find(store, frame, len);
	if (found == NO_FRAME) {
		result->verdict = FRAME_DAMAGED_HEADER;
		return;
	}
	found_begin(store, found, len, result);
	frame_count(store->data + store->frames[found].at, frame, len, result);
}

void frame_expect_check_after(const struct frame_layout *layout,
			      const struct frame_store_view *store, uint64_t after,
			      const uint8_t *frame, uint32_t len, struct frame_result *result)
{
	const uint32_t next = (uint32_t)((after + 1) % store->count);
	const struct store_frame *guess = &store->frames[next];

	if (store_padded(guess->len) == store_padded(len) &&
	    (!layout->match.count || frame_matches(&layout->match, frame, len)) &&
	    frame_is_equal(store->data + guess->at, frame, len))
		found_begin(store, next, len, result);
	else
		frame_expect_check(layout, store, frame, len, result);
}
