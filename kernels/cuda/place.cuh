/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A burst's payloads into images, by a group of work threads. For each burst:
 *   1. frames' first bytes are staged in shared memory, and one thread a frame reads its headers;
 *   2. neighbours of one image are a run; one warp a run finds or begins the image;
 *   3. one thread a run enters it (ENTER): after a barrier, since nobody inside may wait for the lock;
 *      where one was closed since, all leave, and look for it again;
 *   4. one thread a frame claims its piece; one warp a frame copies it, and claims where a frame has
 *      several pieces or several parts;
 *   5. one thread a run leaves (LEAVE);
 *   6. one thread a frame, together, write records.
 * kernels/place.h says why that is safe beside other blocks. Used by the persistent kernel and by the
 * finite ones (place.cu).
 */
#ifndef GDRCAP_CUDA_PLACE_CUH
#define GDRCAP_CUDA_PLACE_CUH

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
};

/*
 * A frame. Writer: its thread; from step 4 on, of PLACE_PARTS: its warp. While headers are read, the frame's
 * staged bytes lie here. 136 bytes: threads that read the same byte of their frames meet in a bank by twos.
 */
struct place_item {
	struct image_packet packet;
	const uint8_t *frame;
	uint64_t place; /* of the only part */
	uint32_t piece, from, part_bytes;
	uint32_t run;
	uint8_t view;
	uint8_t outcome;	/* enum place_outcome */
	uint8_t work;		/* enum place_work */
	uint8_t ends_short;	/* image_part.short_at is `past` */
	uint32_t bytes, pieces; /* placed */
	uint32_t past;		/* the last of its pieces, + 1 */
	uint32_t len;
};
static_assert(sizeof(struct place_item) == 136, "banks");

/* Neighbouring frames of one image, or of none. Writer: its warp; after step 2 its thread. */
struct place_run {
	struct place_target target;
	uint32_t first; /* frame */
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
	uint32_t expected[BURST_FRAMES_MAX], past[BURST_FRAMES_MAX], ends[BURST_FRAMES_MAX];
	uint64_t totals[8];
	uint32_t runs, records, next;
	uint32_t closed; /* runs whose image was closed before they were inside */
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

/* Lines part + 1, part + 1 + PLACE_STAGED_PIECES, ... of a frame into the second cache. */
__device__ __forceinline__ void place_prefetch(const uint8_t *frame, uint32_t len, uint32_t part)
{
	for (uint32_t at = (part + 1) * PLACE_LINE_BYTES; at < len;
	     at += PLACE_STAGED_PIECES * PLACE_LINE_BYTES)
		line_prefetch(frame + at);
}

/* All threads of the group: the frames' first pieces to their items' memory. */
__device__ __forceinline__ void place_stage(const struct place_context &c,
					    const struct burst_in &in)
{
	const uint32_t part = c.thread % PLACE_STAGED_PIECES;

#pragma unroll 4
	for (uint32_t i = c.thread / PLACE_STAGED_PIECES; i < in.count;
	     i += c.threads / PLACE_STAGED_PIECES) {
		const struct frame_desc desc = in.desc[i];
		const uint8_t *frame = frame_at(c.ring, desc);
		const uint32_t shift = (uint32_t)(uintptr_t)frame % PIECE_BYTES;
		uint2 *to = (uint2 *)&c.g->item[i] + 2 * part;
		uint4 piece;

		if (frame && in.count <= PLACE_SMALL_BURST)
			place_prefetch(frame, desc.len, part);
		if (!frame || part * PIECE_BYTES >= shift + desc.len)
			continue;
		piece = piece_load((const uint4 *)(frame - shift) + part);
		to[0] = make_uint2(piece.x, piece.y);
		to[1] = make_uint2(piece.z, piece.w);
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
static __device__ __noinline__ void place_parse(const struct place_context &c,
						const struct burst_in &in, uint32_t i)
{
	const struct frame_desc desc = in.desc[i];
	const uint8_t *at = frame_at(c.ring, desc);
	const uint32_t shift = (uint32_t)(uintptr_t)at % PIECE_BYTES;
	const uint32_t staged = PLACE_STAGED_BYTES - shift;
	const struct frame_span frame = { (const uint8_t *)&c.g->item[i] + shift, at + staged,
					  staged, 0 };
	struct place_item item = {};

	item.frame = at;
	item.len = desc.len;
	item.outcome = at ? PLACE_FILTERED : PLACE_MISFIT;
	for (; at && item.view < c.view_count; item.view++) {
		image_parse(&c.views[item.view].layout, frame, desc.len, &item.packet);
		if (item.packet.what == IMAGE_FILTERED)
			continue;
		item.outcome = PLACE_PLACED;
		if (item.packet.what == IMAGE_MISFIT || (desc.offset & FRAME_DESC_CUT) ||
		    (item.packet.what == IMAGE_DATA &&
		     !place_parts_fit(c.views[item.view].layout, frame, &item)))
			item.outcome = PLACE_MISFIT;
		break;
	}
	if (item.view == c.view_count)
		item.view = 0;
	if (item.outcome != PLACE_PLACED)
		item.work = PLACE_NOTHING;
	c.g->item[i] = item;
}

/* ---- 2: images ---- */

__device__ __forceinline__ bool place_same_image(const struct place_item &a,
						 const struct place_item &b)
{
	return a.outcome == b.outcome && a.view == b.view &&
	       (a.outcome != PLACE_PLACED ||
		(a.packet.number == b.packet.number && a.packet.stream == b.packet.stream));
}

/* Divides the burst into runs. Ends with a barrier. */
__device__ __forceinline__ void place_runs(const struct place_context &c, uint32_t count)
{
	struct place_group &g = *c.g;
	const uint32_t i = c.thread;
	const bool mine = i < count;
	const bool head = mine && (!i || !place_same_image(g.item[i - 1], g.item[i]));
	const uint32_t sum = (uint32_t)block_scan(head, g.totals, i, c.threads, c.group);

	if (mine)
		g.item[i].run = sum - 1;
	if (head)
		g.run[sum - 1].first = i;
	if (i == BURST_FRAMES_MAX - 1)
		g.runs = sum;
	place_barrier(c);
}

/* place_find() by a warp, a lane an entry. */
__device__ __forceinline__ uint32_t warp_find(const struct place_view &view, uint64_t stream_id,
					      uint64_t number, uint32_t *stream, uint32_t *use)
{
	const uint32_t lane = lane_index();

	for (uint32_t first = 0; first < view.ring; first += 32) {
		uint32_t my_use = 0, my_stream = 0, hit;

		if (first + lane < view.ring &&
		    !place_slot_is(&view.table->slot[first + lane], stream_id, number, &my_stream,
				   &my_use))
			my_use = 0;
		hit = __ballot_sync(WARP_ALL, my_use != 0);
		if (hit) {
			const int owner = __ffs(hit) - 1;

			*use = __shfl_sync(WARP_ALL, my_use, owner);
			*stream = __shfl_sync(WARP_ALL, my_stream, owner);
			return first + (uint32_t)owner;
		}
	}
	return PLACE_NO_SLOT;
}

/* The item's image, if it is open; by a warp. */
__device__ __forceinline__ bool warp_find_image(const struct place_view &view,
						const struct place_item &item,
						struct place_target *found)
{
	found->number = item.packet.number;
	found->outcome = PLACE_PLACED;
	found->stream = PLACE_NO_SLOT;
	found->slot = warp_find(view, item.packet.stream, item.packet.number, &found->stream,
				&found->use);
	return found->slot != PLACE_NO_SLOT;
}

/* Begins the run's image, or says why not. Lane 0 has the lock; all lanes empty the bitmap. */
static __device__ __noinline__ void warp_begin(const struct place_view &view,
					       const struct place_item &item,
					       struct place_target *target)
{
	struct place_target found = {};
	uint32_t fresh;

	if (__shfl_sync(WARP_ALL, lane_index() ? 0 : place_refused(&view, &item.packet, &found),
			0)) {
		if (lane_index() == 0)
			*target = found;
		__syncwarp();
		return;
	}
	/* all bursts of an image that begins come here: who does not get the lock looks whether he still
	 * needs it */
	while (!__shfl_sync(WARP_ALL, lane_index() ? 0 : place_take(&view.table->lock), 0)) {
		if (warp_find_image(view, item, &found)) {
			if (lane_index() == 0)
				*target = found;
			__syncwarp();
			return;
		}
		place_pause();
	}
	if (warp_find_image(view, item, &found)) { /* by somebody else, meanwhile */
		fresh = 0;
	} else {
		if (lane_index() == 0)
			place_begin(&view, &item.packet, &found);
		fresh = __shfl_sync(WARP_ALL, found.outcome == PLACE_PLACED, 0);
		found.slot = __shfl_sync(WARP_ALL, found.slot, 0);
	}
	for (uint32_t w = lane_index(); fresh && w < view.present_words; w += 32)
		view.present[(uint64_t)found.slot * view.present_words + w] = 0;
	__syncwarp();
	if (lane_index() == 0) {
		if (fresh)
			place_open(&view, &found, place_frame(item.frame), &item.packet);
		place_store(&view.table->lock, 0);
		*target = found;
	}
	__syncwarp();
}

/*
 * Whether the item's image is the one that the group's last burst ended with, and open: for then nothing has
 * to be searched.
 */
__device__ __forceinline__ bool warp_knows(const struct place_view &view,
					   const struct place_known &known,
					   const struct place_item &item,
					   struct place_target *found)
{
	uint64_t word;

	if (!known.use || known.view != item.view || known.number != item.packet.number ||
	    known.stream_id != item.packet.stream)
		return false;
	word = place_load64(&view.table->slot[known.slot].word);
	if (place_word_use(word) != known.use)
		return false;
	*found = { known.number, known.stream, known.slot, known.use, PLACE_PLACED };
	return true;
}

/* By a warp: the image of a run. */
__device__ __forceinline__ void warp_resolve(const struct place_context &c, uint32_t r)
{
	struct place_run &run = c.g->run[r];
	const struct place_item &item = c.g->item[run.first];
	const struct place_view &view = c.views[item.view];
	struct place_target found = { 0, PLACE_NO_SLOT, PLACE_NO_SLOT, 0, item.outcome };

	if (item.outcome == PLACE_PLACED && !warp_knows(view, c.g->known, item, &found) &&
	    !warp_find_image(view, item, &found)) {
		warp_begin(view, item, &run.target);
		return;
	}
	if (lane_index() == 0)
		run.target = found;
	__syncwarp();
}

/* ---- 3: inside ---- */

__device__ __forceinline__ struct place_slot *place_run_slot(const struct place_context &c,
							     const struct place_run &run)
{
	return &c.views[c.g->item[run.first].view].table->slot[run.target.slot];
}

/* One thread a run: enters its image, or says that it was closed. */
__device__ __forceinline__ void place_enter_run(const struct place_context &c, uint32_t r)
{
	struct place_run &run = c.g->run[r];

	if (run.target.outcome == PLACE_PLACED &&
	    !place_enter(place_run_slot(c, run), run.target.use)) {
		run.target.use = 0;
		atomicAdd(&c.g->closed, 1u);
	}
}

/* All threads, behind a barrier, where some run's image was closed since it was found: those are looked
 * for again, PLACE_TRIES times in all. Ends with a barrier. */
static __device__ __noinline__ void place_enter_again(const struct place_context &c)
{
	struct place_group &g = *c.g;
	const uint32_t i = c.thread;

	for (uint32_t tries = 1; g.closed; tries++) {
		struct place_target *target = &g.run[min(i, g.runs - 1)].target;

		if (i >= g.runs || target->outcome != PLACE_PLACED)
			target = NULL;
		if (target && target->use && tries < PLACE_TRIES)
			place_leave(place_run_slot(c, g.run[i]));
		if (target && !target->use && tries == PLACE_TRIES)
			*target = { target->number, target->stream, PLACE_NO_SLOT, 0, PLACE_LATE };
		place_barrier(c);
		if (i == 0)
			g.closed = 0;
		if (tries == PLACE_TRIES) {
			place_barrier(c);
			return;
		}
		for (uint32_t r = i / 32; r < g.runs; r += c.threads / 32)
			if (g.run[r].target.outcome == PLACE_PLACED && !g.run[r].target.use)
				warp_resolve(c, r);
		place_barrier(c);
		if (i < g.runs)
			place_enter_run(c, i);
		place_barrier(c);
	}
}

/* ---- 4: pieces ---- */

/* One thread a frame: its outcome, and its piece where it has only one. */
__device__ __forceinline__ void place_claim_one(const struct place_context &c, uint32_t i)
{
	struct place_item &item = c.g->item[i];
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];
	uint32_t base;

	if (target.outcome != PLACE_PLACED) {
		item.outcome = target.outcome;
		item.work = PLACE_NOTHING;
		return;
	}
	if (item.packet.what == IMAGE_BEGIN)
		place_describe(&view, target.slot, place_frame(item.frame), &item.packet);
	if (item.ends_short && !place_short_fits(&view.table->slot[target.slot], item.past)) {
		item.outcome = PLACE_MISFIT;
		item.work = PLACE_NOTHING;
		return;
	}
	if (item.work != PLACE_COPY && item.work != PLACE_CONVERT)
		return;
	if (place_claim(view.present + (uint64_t)target.slot * view.present_words, item.piece, 1, 0,
			&base)) {
		item.bytes = item.part_bytes;
		item.pieces = 1;
	} else {
		item.outcome = PLACE_DUPLICATE;
		item.work = PLACE_NOTHING;
	}
}

/* A warp copies or converts bytes that are claimed. */
__device__ __forceinline__ void warp_put(const struct image_layout &layout, uint8_t *image,
					 uint64_t place, const uint8_t *from, uint32_t bytes)
{
	if (layout.convert)
		warp_convert(layout, image, place, from, bytes);
	else
		warp_copy(image + place, from, bytes);
}

/* A warp places the pieces of `claimed`, bit 0 being piece `base`, of a part of which only some are
 * new. Returns their bytes. */
static __device__ __noinline__ uint32_t warp_copy_some(const struct image_layout &layout,
						       uint8_t *image, const uint8_t *frame,
						       const struct image_part &part, uint32_t base,
						       uint32_t claimed)
{
	uint32_t bytes = 0;

	for (; claimed; claimed &= claimed - 1) {
		const uint32_t piece = base + __ffs(claimed) - 1;
		const uint32_t at = (piece - part.piece) * layout.piece;
		const uint32_t size = min(layout.piece, part.bytes - at);

		warp_put(layout, image, part.place + at, frame + part.from + at, size);
		bytes += size;
	}
	return bytes;
}

/* A warp claims and copies a part; *pieces: how many were new. Returns their bytes. */
__device__ __forceinline__ uint32_t warp_place_part(const struct image_layout &layout,
						    uint8_t *image, uint32_t *present,
						    const uint8_t *frame,
						    const struct image_part &part, uint32_t *pieces)
{
	const uint32_t words = place_span_words(part.piece, part.pieces), lane = lane_index();
	uint32_t bytes = 0, found = 0;

	for (uint32_t first = 0; first < words; first += 32) {
		uint32_t base = 0, claimed = 0, count;

		if (first + lane < words)
			claimed =
				place_claim(present, part.piece, part.pieces, first + lane, &base);
		count = warp_sum(__popc(claimed));
		found += count;
		/* the whole part in one go, or, of more than 1,024 pieces and where some were there, by words */
		if (words <= 32 && count == part.pieces) {
			warp_put(layout, image, part.place, frame + part.from, part.bytes);
			bytes = part.bytes;
			break;
		}
		for (uint32_t l = 0; count && l < 32; l++)
			bytes += warp_copy_some(layout, image, frame, part,
						__shfl_sync(WARP_ALL, base, (int)l),
						__shfl_sync(WARP_ALL, claimed, (int)l));
	}
	*pieces += found;
	return bytes;
}

/* By a warp: a frame whose parts are several, or of several pieces. */
static __device__ __noinline__ void warp_place_parts(const struct place_context &c,
						     struct place_item &item)
{
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];
	struct image_packet packet = item.packet;
	struct image_part part;
	uint32_t bytes = 0, pieces = 0;

	while (image_next_part(&view.layout, place_frame(item.frame), &packet, &part) > 0)
		bytes += warp_place_part(view.layout, view.images + target.slot * view.stride,
					 view.present + (uint64_t)target.slot * view.present_words,
					 item.frame, part, &pieces);
	__syncwarp();
	if (lane_index() == 0) {
		item.bytes = bytes;
		item.pieces = pieces;
		if (!pieces)
			item.outcome = PLACE_DUPLICATE;
	}
}

/* For the group's next burst. */
__device__ __forceinline__ void place_remember(const struct place_context &c, uint32_t i)
{
	const struct place_item &item = c.g->item[i];
	const struct place_target &target = c.g->run[item.run].target;

	c.g->known = { item.packet.stream, item.packet.number,
		       item.view,	   target.stream,
		       target.slot,	   target.outcome == PLACE_PLACED ? target.use : 0 };
}

/* By a warp: a frame's payload into the second cache, a line a lane, while the one before it is copied. What
 * was staged is there. */
__device__ __forceinline__ void warp_prefetch(const struct place_item &item)
{
	const uint32_t at = (lane_index() + 1) * PLACE_LINE_BYTES;

	if (at < item.len)
		line_prefetch(item.frame + at);
}

__device__ __forceinline__ void place_copies(const struct place_context &c, uint32_t count)
{
	uint32_t next;

	for (uint32_t i = warp_next(&c.g->next); i < count; i = next) {
		struct place_item &item = c.g->item[i];
		const struct place_view &view = c.views[item.view];

		next = warp_next(&c.g->next);
		if (next < count)
			warp_prefetch(c.g->item[next]);
		if (item.work == PLACE_COPY)
			warp_copy(view.images + c.g->run[item.run].target.slot * view.stride +
					  item.place,
				  item.frame + item.from, item.part_bytes);
		else if (item.work == PLACE_CONVERT)
			warp_convert(view.layout,
				     view.images + c.g->run[item.run].target.slot * view.stride,
				     item.place, item.frame + item.from, item.part_bytes);
		else if (item.work == PLACE_PARTS)
			warp_place_parts(c, item);
	}
}

/* ---- 6: records ---- */

/* Sums over frames in one word: bytes and lengths below 2^25 each, heads at most 256. */
#define PLACE_SUM_BITS 25u
#define PLACE_HEADS_AT 50u

__device__ __forceinline__ void place_mark_set(struct place_mark *mark, uint32_t index,
					       uint64_t sum, uint64_t pieces)
{
	const uint32_t mask = (1u << PLACE_SUM_BITS) - 1;

	mark->index = index;
	mark->bytes = (uint32_t)sum & mask;
	mark->frame_bytes = (uint32_t)(sum >> PLACE_SUM_BITS) & mask;
	mark->pieces = (uint32_t)pieces;
}

__device__ __forceinline__ void place_record_write(const struct place_context &c,
						   const struct burst_in &in, uint32_t r)
{
	const struct place_group &g = *c.g;
	const struct place_mark &mark = g.mark[r], &next = g.mark[r + 1];
	const struct place_item &item = g.item[mark.index];
	const struct place_target &target = g.run[item.run].target;
	const bool image = item.outcome == PLACE_PLACED || item.outcome == PLACE_DUPLICATE;
	union {
		struct place_record record;
		uint4 piece[3];
	} out = {};

	out.record.number = item.outcome == PLACE_NO_ROOM ? target.number : 0;
	out.record.bytes = next.bytes - mark.bytes;
	out.record.pieces = next.pieces - mark.pieces;
	out.record.slot = image ? target.slot : PLACE_NO_SLOT;
	out.record.use = image ? target.use : 0;
	out.record.expected = g.expected[r];
	out.record.past = g.past[r];
	out.record.frame_bytes = next.frame_bytes - mark.frame_bytes;
	out.record.count = (uint16_t)(next.index - mark.index);
	out.record.first = (uint16_t)mark.index;
	out.record.stream =
		item.outcome == PLACE_MISFIT ? PLACE_NO_STREAM : (uint16_t)target.stream;
	out.record.outcome = (uint8_t)item.outcome;
	out.record.ends = (uint8_t)g.ends[r];
	out.record.layout = item.view;
	for (uint32_t k = 0; k < 3; k++)
		((uint4 *)record_at(c.ring, in.first, r))[k] = out.piece[k];
}

__device__ __forceinline__ uint32_t place_records(const struct place_context &c,
						  const struct burst_in &in)
{
	struct place_group &g = *c.g;
	const uint32_t i = c.thread, count = in.count;
	const bool mine = i < count;
	const bool head = mine && (!i || g.item[i - 1].run != g.item[i].run ||
				   g.item[i - 1].outcome != g.item[i].outcome);
	const uint64_t value = mine ? (uint64_t)g.item[i].bytes |
					       (uint64_t)g.item[i].len << PLACE_SUM_BITS |
					       (uint64_t)head << PLACE_HEADS_AT
				    : 0;
	const uint64_t sum = block_scan(value, g.totals, i, c.threads, c.group);
	const uint64_t pieces = mine ? g.item[i].pieces : 0;
	uint64_t pieces_sum;

	place_barrier(c); /* totals are free again */
	pieces_sum = block_scan(pieces, g.totals, i, c.threads, c.group);
	if (head)
		place_mark_set(&g.mark[(sum - value) >> PLACE_HEADS_AT], i, sum - value,
			       pieces_sum - pieces);
	if (i == BURST_FRAMES_MAX - 1) {
		place_mark_set(&g.mark[sum >> PLACE_HEADS_AT], count, sum, pieces_sum);
		g.records = (uint32_t)(sum >> PLACE_HEADS_AT);
	}
	if (mine && g.item[i].outcome == PLACE_PLACED) {
		const uint32_t r = (uint32_t)(sum >> PLACE_HEADS_AT) - 1;

		if (g.item[i].packet.pieces > g.expected[r])
			atomicMax(&g.expected[r], g.item[i].packet.pieces);
		if (g.item[i].past > g.past[r])
			atomicMax(&g.past[r], g.item[i].past);
		if (g.item[i].packet.ends)
			atomicOr(&g.ends[r], 1u);
	}
	place_barrier(c);
	if (i < g.records)
		place_record_write(c, in, i);
	return g.records;
}

/* ---- all ---- */

/* Places a burst; returns the number of records, which are the group's threads' stores. */
__device__ __forceinline__ uint32_t place_burst(const struct place_context &c,
						const struct burst_in &in)
{
	struct place_group &g = *c.g;
	const uint32_t i = c.thread, count = in.count;

	if (i == 0) {
		g.next = 0;
		g.closed = 0;
	}
	place_stage(c, in);
	place_barrier(c);
	if (i < count) {
		g.expected[i] = 0;
		g.past[i] = 0;
		g.ends[i] = 0;
		place_parse(c, in, i);
	}
	place_barrier(c);
	place_runs(c, count);
	for (uint32_t r = i / 32; r < g.runs; r += c.threads / 32)
		warp_resolve(c, r);
	place_barrier(c);
	if (i < g.runs)
		place_enter_run(c, i);
	place_barrier(c);
	if (g.closed)
		place_enter_again(c);
	if (i < count)
		place_claim_one(c, i);
	place_barrier(c);
	place_copies(c, count);
	if (i == count - 1)
		place_remember(c, i);
	place_barrier(c);
	if (i < g.runs && g.run[i].target.outcome == PLACE_PLACED)
		place_leave(place_run_slot(c, g.run[i]));
	return place_records(c, in);
}

#endif
