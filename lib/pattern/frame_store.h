/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a file in memory, as the workers on the device see them: what a replay copies into
 * slots, and what a capture expects. Knows neither DPDK nor CUDA; compiles as C and CUDA.
 *
 * Finding a received frame in the file. Frames with the same content are one class, named by the
 * index of its first frame. A frame is seen as 16-byte pieces in four parts, so that a damaged one
 * is still found by a part that is right. Frames below 60 bytes count as if they were padded with
 * zeros to 60, since a card may have done so.
 */
#ifndef GDRCAP_FRAME_STORE_H
#define GDRCAP_FRAME_STORE_H

#include "pattern/frame.h"

#define STORE_PIECE_BYTES 16u
#define STORE_PARTS 4u
#define STORE_PAD_BYTES 60u

/* One frame: 16 bytes. */
struct store_frame {
	uint64_t at;  /* of its first byte in data, a multiple of STORE_PIECE_BYTES; zeros follow
		      * its last to the next multiple, and to STORE_PAD_BYTES */
	uint32_t len; /* bytes in memory, without FCS; at most 9212 */
	uint32_t class_first; /* index of the first frame with the same content */
};

/* One entry of the hash table (open addressing, linear probing). 16 bytes. */
struct store_bucket {
	uint64_t hash;
	uint32_t frame;	 /* index of a class's first frame, + 1; 0: the bucket is empty */
	uint32_t shared; /* a part that several classes have: it finds none of them */
};

struct frame_store_view {
	const uint8_t *data;
	const struct store_frame *frames;
	uint32_t count;	      /* entries of frames[]; a streamed file uses them in a circle */
	uint32_t bucket_mask; /* buckets less one, a power of two; 0: no table */
	const struct store_bucket *buckets; /* for frames that are expected */
	/* Sizes of the above in bytes, for a back end that makes its own copy. */
	uint64_t data_bytes;
	uint32_t resident; /* 1: nothing of it changes while workers run, so a copy may be made */
	uint32_t reserved;
};

/* ---- hashing: one definition ---- */

GDRCAP_HD uint64_t store_mix(uint64_t x)
{
	/* splitmix64's finaliser (Steele, Lea, Flood 2014) */
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * Piece `index` of a frame, as four little-endian words. A part's hash is the sum over its pieces,
 * so threads may share the work in any order: NH (Black et al., "UMAC", 1999) with keys made from
 * the piece's index.
 */
GDRCAP_HD uint64_t store_hash_piece(uint32_t index, const uint32_t word[4])
{
	const uint64_t key0 = store_mix(2u * index + 1), key1 = store_mix(2u * index + 2);

	return (uint64_t)(word[0] + (uint32_t)key0) * (word[1] + (uint32_t)(key0 >> 32)) +
	       (uint64_t)(word[2] + (uint32_t)key1) * (word[3] + (uint32_t)(key1 >> 32));
}

/* A frame's length as it is compared, its pieces, and the part that a piece belongs to. */
GDRCAP_HD uint32_t store_padded(uint32_t len)
{
	return len < STORE_PAD_BYTES ? STORE_PAD_BYTES : len;
}

GDRCAP_HD uint32_t store_pieces(uint32_t len)
{
	return (store_padded(len) + STORE_PIECE_BYTES - 1) / STORE_PIECE_BYTES;
}

GDRCAP_HD uint32_t store_part_of(uint32_t piece, uint32_t pieces)
{
	return piece * STORE_PARTS / pieces;
}

/* From the sums of the pieces to what the table holds: of one part, and of the whole frame. */
GDRCAP_HD uint64_t store_hash_part(uint32_t part, uint32_t len, uint64_t sum)
{
	return store_mix(sum ^
			 ((uint64_t)store_padded(len) << 8 | (part + 1)) * 0x9e3779b97f4a7c15u);
}

GDRCAP_HD uint64_t store_hash_frame(uint32_t len, const uint64_t sum[STORE_PARTS])
{
	uint64_t hash = store_padded(len);

	for (uint32_t part = 0; part < STORE_PARTS; part++)
		hash = store_mix(hash * 0x9e3779b97f4a7c15u + sum[part]);
	return hash;
}

/* The table's entry for `hash`, or NULL. */
GDRCAP_HD const struct store_bucket *store_find(const struct frame_store_view *store, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash & store->bucket_mask;; i = (i + 1) & store->bucket_mask) {
		const struct store_bucket *bucket = &store->buckets[i];

		if (!bucket->frame)
			return NULL;
		if (bucket->hash == hash)
			return bucket;
	}
}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The CPU backend's check of a received frame against the file, and the reference for the kernel.
 * The hash of the whole frame, then those of its parts in order, are looked up; the first bucket
 * that is there, is not shared and names a class of the same store_padded() length decides which
 * frame is meant. All its bytes are compared: of a received frame below 60 bytes, those that it
 * does not have count as zeros.
 *   all are equal        FRAME_VALID
 *   some are not         FRAME_DAMAGED_PAYLOAD with wrong_bits, offset, expected, got
 *   none decided         FRAME_DAMAGED_HEADER, header_ok 0, offset 0
 * sequence is the class's first index, stream 0, payload_bytes the received length where it was
 * compared. Frames that layout->match does not name are FRAME_FILTERED.
 */
void frame_expect_check(const struct frame_layout *layout, const struct frame_store_view *store,
			const uint8_t *frame, uint32_t len, struct frame_result *result);

/*
 * The same result, sooner where frames come in the file's order: the frame behind `after` (an index
 * in store->frames) is compared first, and only what is not equal to it is looked for.
 */
void frame_expect_check_after(const struct frame_layout *layout,
			      const struct frame_store_view *store, uint64_t after,
			      const uint8_t *frame, uint32_t len, struct frame_result *result);
/* The same of a frame whose first FRAME_HEAD_BYTES_MAX bytes, or all where it has fewer, are
 * frame->first. */
void frame_expect_check_span(const struct frame_layout *layout,
			     const struct frame_store_view *store, uint64_t after,
			     const struct frame_span *frame, uint32_t len,
			     struct frame_result *result);

#ifdef __cplusplus
}
#endif

#endif
