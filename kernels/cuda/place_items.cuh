/* SPDX-License-Identifier: BSD-3-Clause */
/* A burst's frames while they are placed into images: what is known of each, and how its headers are read. */
#ifndef GDRCAP_CUDA_PLACE_ITEMS_CUH
#define GDRCAP_CUDA_PLACE_ITEMS_CUH

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/place_convert.cuh"
#include "kernels/cuda/unaligned16.cuh"
#include "kernels/place.h"

/* Of a frame that are staged while its headers are read, from a whole piece on. */
#define PLACE_STAGED_PIECES 8u
#define PLACE_STAGED_BYTES (PLACE_STAGED_PIECES * PIECE_BYTES)
static_assert(PLACE_STAGED_BYTES - (PIECE_BYTES - 1) >= FRAME_MATCH_BYTES, "what rules compare");

#define PLACE_LINE_BYTES 128u /* of the second cache */

/* What is left to do for a frame's payload. */
enum place_work {
	PLACE_NOTHING,
	PLACE_COPY,    /* claimed: copy the whole part */
	PLACE_CONVERT, /* claimed: convert it */
	PLACE_PARTS,   /* claim, and copy or convert, part by part */
	PLACE_COMPARE, /* pieces of it were there */
	PLACE_WORKS
};

/*
 * A frame. Writer: its thread; from step 4 on, of PLACE_PARTS: its warp. While headers are read, the frame's
 * staged bytes lie here. 136 bytes: threads that read the same byte of their frames meet in a bank by twos.
 */
struct place_item {
	struct image_packet packet;
	const uint8_t *frame;
	uint64_t
		place; /* of the only part; of a frame that brings nothing: image_refuse()'s values */
	uint32_t piece, from, part_bytes;
	uint32_t run;
	uint8_t view;
	uint8_t outcome;    /* enum place_outcome */
	uint8_t work;	    /* enum place_work */
	uint8_t ends_short; /* the piece before `past` is short; from step 4 on: and this frame's */
	uint32_t bytes, pieces; /* placed */
	uint32_t past;		/* the last of its pieces, + 1 */
	uint32_t len;
	uint32_t source; /* image_source() */
};
static_assert(sizeof(struct place_item) == 136, "banks");

/* Neighbouring frames of one image, or of none. Writer: its warp; after step 2 its thread. */
struct place_run {
	struct place_target target;
	uint32_t first;	 /* frame */
	uint32_t source; /* place_slot.source of the target */
};

/* A record's first frame, and the sums over the frames before it. */
struct place_mark {
	uint32_t index, bytes, frame_bytes, pieces;
};

/* The image of a burst's last frame. Writer: the last frame's thread. */
struct place_known {
	uint64_t stream_id, number;
	uint32_t view, stream, slot, use; /* use 0: none */
};

struct place_group {
	struct place_item item[BURST_FRAMES_MAX];
	struct place_run run[BURST_FRAMES_MAX];
	struct place_mark mark[BURST_FRAMES_MAX + 1];
	/* by record */
	uint32_t expected[BURST_FRAMES_MAX], past[BURST_FRAMES_MAX];
	uint32_t ends
		[BURST_FRAMES_MAX]; /* bit 0: one was the sender's last; above: place_record.number */
	uint64_t totals[8];
	uint32_t runs, records;
	uint32_t next, next_other; /* frame whose part is copied, or placed in another way */
	uint32_t closed;	   /* runs whose image was closed before they were inside */
	uint32_t has[PLACE_WORKS]; /* 1: some frame's work is this */
	struct place_known known;
};

/* What a group works with. */
struct place_context {
	const struct place_view *views; /* in shared memory */
	uint32_t view_count;
	const struct burst_ring_view *ring;
	struct place_group *g;
	uint32_t thread, threads, group; /* of the group; its number */
};

__device__ __forceinline__ void place_barrier(const struct place_context &c)
{
	barrier_sync(BARRIER_WORK + c.group, c.threads);
}

/* ---- 1: headers ---- */

/* A frame as it lies in memory. */
__device__ __forceinline__ struct frame_span place_frame(const uint8_t *frame)
{
	return { frame, frame, 0, 1 };
}

/* Asks the second cache for a line. */
__device__ __forceinline__ void line_prefetch(const uint8_t *at)
{
	asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

/* Of a burst of so few frames all lines are asked for while headers are read. */
#define PLACE_SMALL_BURST 32u
static_assert(PLACE_SMALL_BURST * PLACE_STAGED_PIECES <= BURST_FRAMES_MAX, "a thread a piece");

/* Lines part + 1, part + 1 + PLACE_STAGED_PIECES, ... of a frame into the second cache. */
__device__ __forceinline__ void place_prefetch(const uint8_t *frame, uint32_t len, uint32_t part)
{
#pragma unroll 1
	for (uint32_t at = (part + 1) * PLACE_LINE_BYTES; at < len;
	     at += PLACE_STAGED_PIECES * PLACE_LINE_BYTES)
		line_prefetch(frame + at);
}

/* Pieces that a thread has under way. */
#define PLACE_STAGES_AT_ONCE 4u

/*
 * All threads of the group: the frames' first pieces to their items' memory. Nothing else stands between the loads:
 * what took their registers would have each waited for before the next.
 */
__device__ __forceinline__ void place_stage(const struct place_context &c,
					    const struct burst_in &in)
{
	const uint32_t part = c.thread % PLACE_STAGED_PIECES, mine = c.thread / PLACE_STAGED_PIECES;
	const uint32_t step = c.threads / PLACE_STAGED_PIECES;

	if (in.count <= PLACE_SMALL_BURST && mine < in.count && frame_at(c.ring, in.desc[mine]))
		place_prefetch(frame_at(c.ring, in.desc[mine]), in.desc[mine].len, part);
	for (uint32_t first = mine; first < in.count; first += step * PLACE_STAGES_AT_ONCE) {
		uint4 piece[PLACE_STAGES_AT_ONCE];
		bool has[PLACE_STAGES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < PLACE_STAGES_AT_ONCE; k++) {
			const uint32_t i = min(first + k * step, in.count - 1);
			const struct frame_desc desc = in.desc[i];
			const uint8_t *frame = frame_at(c.ring, desc);
			const uint32_t shift = (uint32_t)(uintptr_t)frame % PIECE_BYTES;

			has[k] = frame && part * PIECE_BYTES < shift + desc.len &&
				 first + k * step < in.count;
			if (has[k])
				piece[k] = piece_load((const uint4 *)(frame - shift) + part);
		}
#pragma unroll
		for (uint32_t k = 0; k < PLACE_STAGES_AT_ONCE; k++) {
			uint2 *to = (uint2 *)&c.g->item[first + k * step] + 2 * part;

			if (!has[k])
				continue;
			to[0] = make_uint2(piece[k].x, piece[k].y);
			to[1] = make_uint2(piece[k].z, piece[k].w);
		}
	}
}

/* Whether all parts of the frame fit; the only one's place goes to *item. */
__device__ __forceinline__ bool place_parts_fit(const struct image_layout &layout,
						const struct frame_span &frame,
						struct place_item *item)
{
	struct image_packet *packet = &item->packet;
	const uint32_t from = packet->from;
	struct image_part part;
	int more;

	while ((more = image_next_part(&layout, frame, packet, &part)) > 0) {
		item->place = part.place;
		item->piece = part.piece;
		item->from = part.from;
		item->part_bytes = part.bytes;
		item->past = max(item->past, part.piece + part.pieces);
		item->ends_short = part.short_at != 0;
		item->work = packet->parts != 1 || part.pieces != 1 ? PLACE_PARTS
			     : layout.convert			    ? PLACE_CONVERT
								    : PLACE_COPY;
	}
	/* for who goes through them again */
	packet->part = 0;
	packet->from = from;
	return !more;
}

/* Of a frame whose first bytes are staged. */
static __device__ __noinline__ void place_parse(struct place_context c, const struct burst_in &in,
						uint32_t i)
{
	struct place_item &known = known_shared(&c.g->item[i]);
	const struct place_view *views = &known_shared(c.views);
	const struct frame_desc desc = known_shared(&in).desc[i];
	const uint8_t *at = frame_at(&known_shared(c.ring), desc);
	const uint32_t shift = (uint32_t)(uintptr_t)at % PIECE_BYTES;
	const uint32_t staged = PLACE_STAGED_BYTES - shift;
	const struct frame_span frame = { (const uint8_t *)&known + shift, at + staged, staged, 0 };
	struct place_item item = {};

	item.frame = at;
	item.len = desc.len;
	item.outcome = at ? PLACE_FILTERED : PLACE_MISFIT;
	if (!at)
		image_refuse(&item.packet, IMAGE_MISFIT, IMAGE_WHY_UNREADABLE, 0, 0);
	for (; at && item.view < c.view_count; item.view++) {
		image_parse(&views[item.view].layout, frame, desc.len, &item.packet);
		if (item.packet.what == IMAGE_FILTERED)
			continue;
		item.outcome = PLACE_PLACED;
		item.source = image_source(frame, desc.len, item.packet.ip);
		if (item.packet.what != IMAGE_MISFIT && (desc.offset & FRAME_DESC_CUT))
			image_refuse(&item.packet, IMAGE_MISFIT, IMAGE_WHY_CUT, desc.len, 0);
		if (item.packet.what == IMAGE_MISFIT ||
		    (item.packet.what == IMAGE_DATA &&
		     !place_parts_fit(views[item.view].layout, frame, &item)))
			item.outcome = PLACE_MISFIT;
		break;
	}
	if (item.view == c.view_count)
		item.view = 0;
	if (item.outcome != PLACE_PLACED) {
		item.work = PLACE_NOTHING;
		item.place = item.packet.number;
	}
	known = item;
}

#endif
