/* SPDX-License-Identifier: BSD-3-Clause */
/* A received frame found among those of a file. */
#include <string.h>

#include "pattern/frame_store.h"

/* Not an index of a store's frame. */
#define NO_FRAME UINT32_MAX

/* One body, for frames that lie whole and for those in two parts. */
#define BODY static inline __attribute__((always_inline))

/* Piece `index` as four little-endian words; what the frame does not have is 0. No piece lies in
 * two parts. */
BODY void piece_words(const struct frame_span *frame, uint32_t len, uint32_t index,
		      uint32_t word[4])
{
	const uint32_t at = index * STORE_PIECE_BYTES;
	const uint32_t bytes = len > at ? len - at : 0;
	const uint8_t *piece = frame->whole || at < frame->first_bytes
				       ? frame->first + at
				       : frame->rest + (at - frame->first_bytes);

	if (bytes >= STORE_PIECE_BYTES) {
		memcpy(word, piece, STORE_PIECE_BYTES);
	} else {
		memset(word, 0, STORE_PIECE_BYTES);
		if (bytes)
			memcpy(word, piece, bytes);
	}
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	for (uint32_t i = 0; i < 4; i++)
		word[i] = __builtin_bswap32(word[i]);
#endif
}

BODY void part_sums(const struct frame_span *frame, uint32_t len, uint64_t sum[STORE_PARTS])
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
BODY uint32_t frame_find(const struct frame_store_view *store, const struct frame_span *frame,
			 uint32_t len)
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
BODY int frame_is_equal(const uint8_t *stored, const struct frame_span *frame, uint32_t len)
{
	const uint32_t part = frame->whole || len < frame->first_bytes ? len : frame->first_bytes;

	return !memcmp(stored, frame->first, part) &&
	       (part == len || !memcmp(stored + part, frame->rest, len - part)) &&
	       all_zero(stored + len, store_padded(len) - len);
}

/* Counts the wrong bits; finds the first wrong byte. */
BODY void frame_count(const uint8_t *stored, const struct frame_span *frame, uint32_t len,
		      struct frame_result *result)
{
	const uint32_t bytes = store_padded(len);

	if (frame_is_equal(stored, frame, len))
		return;
	for (uint32_t i = 0; i < bytes; i++) {
		const uint8_t want = stored[i];
		const uint8_t got = i < len ? (uint8_t)frame_span_byte(frame, i) : 0;

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

BODY void expect_check(const struct frame_layout *layout, const struct frame_store_view *store,
		       const struct frame_span *frame, uint32_t len, struct frame_result *result)
{
	uint32_t found;

	memset(result, 0, sizeof(*result));
	if (layout->match.count && !frame_matches(&layout->match, frame->first, len)) {
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

void frame_expect_check(const struct frame_layout *layout, const struct frame_store_view *store,
			const uint8_t *frame, uint32_t len, struct frame_result *result)
{
	const struct frame_span span = { frame, frame, 0, 1 };

	expect_check(layout, store, &span, len, result);
}

BODY int expect_next(const struct frame_layout *layout, const struct frame_store_view *store,
		     uint64_t after, const struct frame_span *frame, uint32_t len,
		     struct frame_result *result)
{
	const uint32_t next = (uint32_t)((after + 1) % store->count);
	const struct store_frame *guess = &store->frames[next];

	if (store_padded(guess->len) != store_padded(len) ||
	    (layout->match.count && !frame_matches(&layout->match, frame->first, len)) ||
	    !frame_is_equal(store->data + guess->at, frame, len))
		return 0;
	found_begin(store, next, len, result);
	return 1;
}

void frame_expect_check_after(const struct frame_layout *layout,
			      const struct frame_store_view *store, uint64_t after,
			      const uint8_t *frame, uint32_t len, struct frame_result *result)
{
	const struct frame_span span = { frame, frame, 0, 1 };

	if (!expect_next(layout, store, after, &span, len, result))
		frame_expect_check(layout, store, frame, len, result);
}

void frame_expect_check_span(const struct frame_layout *layout,
			     const struct frame_store_view *store, uint64_t after,
			     const struct frame_span *frame, uint32_t len,
			     struct frame_result *result)
{
	if (!expect_next(layout, store, after, frame, len, result))
		expect_check(layout, store, frame, len, result);
}
