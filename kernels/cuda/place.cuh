/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A burst's payloads into images, by a group of work threads. For each burst:
 *   1. frames' first bytes are staged in shared memory, and one thread a frame reads its headers;
 *   2. neighbours of one image are a run; one warp a run finds or begins the image;
 *   3. one thread a run enters it (ENTER): after a barrier, since nobody inside may wait for the lock;
 *      where one was closed since, all leave, and look for it again;
 *   4. one thread a frame claims its piece; one warp a frame copies it, and claims where a frame has
 *      several pieces or several parts;
 *   5. one thread a run leaves (LEAVE); where pieces were there already it turns, one warp a frame compares
 *      (COMPARE), and the run leaves after that: so a group waits for no writer of its own;
 *   6. one thread a frame, together, write records.
 * kernels/place.h says why that is safe beside other blocks. Used by the persistent kernel and by the
 * finite ones (place.cu).
 */
#ifndef GDRCAP_CUDA_PLACE_CUH
#define GDRCAP_CUDA_PLACE_CUH

#include "kernels/cuda/place_compare.cuh"

/* ---- 4: pieces ---- */

/* Item i's sender did not begin its image. True: the layout's legs allow this sender. Else the frame is a conflict. */
static __device__ __noinline__ bool place_is_leg(struct place_context c, uint32_t i)
{
	struct place_item &item = c.g->item[i];
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];

	if (place_source_fits(&view.table->slot[target.slot], view.layout.legs, item.source))
		return true;
	place_note_conflict(&view, &target, place_frame(item.frame), &item.packet, 0);
	item.outcome = PLACE_CONFLICT;
	item.work = PLACE_NOTHING;
	return false;
}

/* One thread a frame: its outcome, and its piece where it has only one. */
__device__ __forceinline__ void place_claim_one(const struct place_context &c, uint32_t i)
{
	struct place_item &item = c.g->item[i];
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];
	uint32_t *present = view.present + (uint64_t)target.slot * view.present_words;
	uint32_t base;
	const bool is_short = item.ends_short;
	int claimed = 0;

	if (target.outcome != PLACE_PLACED) {
		item.outcome = place_outcome_of(&target, &item.packet);
		item.work = PLACE_NOTHING;
		if (item.outcome == PLACE_PLACED) {
			item.packet.pieces = 0;
			item.packet.ends = 0;
		}
		return;
	}
	if (item.source != c.g->run[item.run].source && !place_is_leg(c, i))
		return;
	if (item.packet.what == IMAGE_BEGIN)
		place_describe(&view, target.slot, place_frame(item.frame), &item.packet);
	if (is_short)
		claimed = place_claim_short(&view.table->slot[target.slot], present, item.past,
					    item.part_bytes % view.layout.piece);
	item.ends_short = claimed > 0;
	if (claimed < 0) {
		item.outcome = PLACE_MISFIT;
		item.work = PLACE_NOTHING;
		item.packet.pieces = IMAGE_WHY_PAYLOAD;
		item.place = image_why_values(item.part_bytes, view.layout.piece);
		return;
	}
	if (item.work == PLACE_COPY || item.work == PLACE_CONVERT) {
		if (is_short ? claimed > 0 : place_claim(present, item.piece, 1, 0, &base) != 0) {
			item.bytes = item.part_bytes;
			item.pieces = 1;
		} else {
			item.outcome = PLACE_DUPLICATE;
			item.work = PLACE_COMPARE;
		}
	}
	c.g->has[item.work] = 1;
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
static __device__ __noinline__ void warp_place_parts(struct place_context c,
						     struct place_item &item)
{
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];
	uint8_t *image = view.images + target.slot * view.stride;
	struct image_packet packet = item.packet;
	struct image_part part;
	uint32_t bytes = 0, pieces = 0, all = 0;

	while (image_next_part(&view.layout, place_frame(item.frame), &packet, &part) > 0) {
		all += part.pieces;
		if (part.short_at) {
			bytes += warp_copy_some(view.layout, image, item.frame, part,
						part.short_at - 1, item.ends_short);
			pieces += item.ends_short;
			part.bytes = --part.pieces * view.layout.piece;
		}
		if (part.pieces)
			bytes += warp_place_part(view.layout, image,
						 view.present +
							 (uint64_t)target.slot * view.present_words,
						 item.frame, part, &pieces);
	}
	__syncwarp();
	if (lane_index() == 0) {
		item.bytes = bytes;
		item.pieces = pieces;
		if (!pieces)
			item.outcome = PLACE_DUPLICATE;
		if (pieces < all) {
			item.work = PLACE_COMPARE;
			c.g->has[PLACE_COMPARE] = 1;
		}
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

/* Parts that are copied as they are. Nothing is called here: what a loop needs would be in memory then. */
__device__ __forceinline__ void place_copies(const struct place_context &c, uint32_t count)
{
	struct place_group &g = known_shared(c.g);
	const struct place_view *views = &known_shared(c.views);
	uint32_t next;

	for (uint32_t i = warp_next(&g.next); i < count; i = next) {
		const struct place_item &item = g.item[i];
		const struct place_view &view = views[item.view];

		next = warp_next(&g.next);
		if (next < count)
			warp_prefetch(g.item[next]);
		if (item.work == PLACE_COPY)
			warp_copy(known_global(view.images +
					       g.run[item.run].target.slot * view.stride +
					       item.place),
				  known_global(item.frame + item.from), item.part_bytes);
	}
}

/* Other frames' parts. */
static __device__ __noinline__ void place_others(struct place_context c, uint32_t count)
{
	uint32_t next;

	for (uint32_t i = warp_next(&c.g->next_other); i < count; i = next) {
		struct place_item &item = c.g->item[i];
		const struct place_view &view = c.views[item.view];

		next = warp_next(&c.g->next_other);
		if (next < count)
			warp_prefetch(c.g->item[next]);
		if (item.work == PLACE_CONVERT)
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
	const bool image = item.outcome == PLACE_PLACED || item.outcome == PLACE_DUPLICATE ||
			   item.outcome == PLACE_CONFLICT;
	const bool refused = item.outcome == PLACE_MISFIT || item.outcome == PLACE_FILTERED;
	union {
		struct place_record record;
		uint4 piece[3];
	} out = {};

	out.record.number = item.outcome == PLACE_NO_ROOM ? target.number
			    : refused			  ? item.place
			    : image			  ? g.ends[r] >> 1
							  : 0;
	out.record.bytes = next.bytes - mark.bytes;
	out.record.pieces = next.pieces - mark.pieces;
	out.record.slot = image ? target.slot : PLACE_NO_SLOT;
	out.record.use = image ? target.use : 0;
	out.record.expected = refused ? item.packet.pieces : g.expected[r];
	out.record.past = g.past[r];
	out.record.frame_bytes = next.frame_bytes - mark.frame_bytes;
	out.record.count = (uint16_t)(next.index - mark.index);
	out.record.first = (uint16_t)mark.index;
	out.record.stream =
		item.outcome == PLACE_MISFIT ? PLACE_NO_STREAM : (uint16_t)target.stream;
	out.record.outcome = (uint8_t)item.outcome;
	out.record.ends = (uint8_t)(g.ends[r] & 1);
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
	if (mine && (g.item[i].outcome == PLACE_PLACED || g.item[i].pieces)) {
		const uint32_t r = (uint32_t)(sum >> PLACE_HEADS_AT) - 1;

		if (g.item[i].packet.pieces > g.expected[r])
			atomicMax(&g.expected[r], g.item[i].packet.pieces);
		if (g.item[i].past > g.past[r])
			atomicMax(&g.past[r], g.item[i].past);
		if (g.item[i].packet.ends | g.item[i].ends_short)
			atomicOr(&g.ends[r],
				 (g.item[i].packet.ends != 0) |
					 (g.item[i].ends_short ? g.item[i].past << 1 : 0));
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
		g.next_other = 0;
		g.closed = 0;
	}
	if (i < PLACE_WORKS)
		g.has[i] = 0;
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
	if (g.has[PLACE_COPY])
		place_copies(c, count);
	if (g.has[PLACE_CONVERT] || g.has[PLACE_PARTS])
		place_others(c, count);
	if (i == count - 1)
		place_remember(c, i);
	place_barrier(c);
	if (g.has[PLACE_COMPARE])
		place_compares(c, count);
	else if (i < g.runs && g.run[i].target.outcome == PLACE_PLACED)
		place_leave(place_run_slot(c, g.run[i]));
	return place_records(c, in);
}

#endif
