/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of which pieces were there already, compared with what is there. */
#ifndef GDRCAP_CUDA_PLACE_COMPARE_CUH
#define GDRCAP_CUDA_PLACE_COMPARE_CUH

#include "kernels/cuda/place_images.cuh"

/* By a warp; the same of all lanes. */
static __device__ __noinline__ bool warp_converted_equal(const struct image_layout &layout,
							 uint8_t *image, uint64_t place,
							 const uint8_t *from, uint32_t bytes)
{
	return !__any_sync(WARP_ALL,
			   warp_convert_steps<true>(layout, image, place, from, bytes) != 0);
}

/* The same of bytes that are not converted. */
__device__ __forceinline__ bool warp_bytes_equal(const uint8_t *to, const uint8_t *from,
						 uint32_t bytes)
{
	const uint32_t lane = lane_index();
	const uint32_t head = min(bytes, (uint32_t) - (uintptr_t)to % PIECE_BYTES);
	const uint32_t pieces = (bytes - head) / PIECE_BYTES, tail = (bytes - head) % PIECE_BYTES;
	const uint32_t shift = (uint32_t)(uintptr_t)(from + head) % PIECE_BYTES;
	const uint4 *sent = (const uint4 *)(from + head - shift);
	const uint4 *there = (const uint4 *)(to + head);
	/* lanes 0..15 the head, 16..31 the tail */
	const bool edge = lane % 16 < (lane < 16 ? head : tail);
	const uint32_t at = lane % 16 + (lane < 16 ? 0 : head + pieces * PIECE_BYTES);
	uint32_t differs = edge ? *(const volatile uint8_t *)(to + at) ^ from[at] : 0;

	for (uint32_t p = lane; p < pieces; p += 32) {
		const uint4 is = piece_load(there + p), first = piece_load(sent + p);
		const uint4 want =
			piece_between(first, shift ? piece_load(sent + p + 1) : first, shift);

		differs |= (is.x ^ want.x) | (is.y ^ want.y) | (is.z ^ want.z) | (is.w ^ want.w);
	}
	return !__any_sync(WARP_ALL, differs != 0);
}

/* Whether the image has the bytes of all parts of the frame. */
__device__ __forceinline__ bool warp_item_equal(const struct place_view &view, uint8_t *image,
						const struct place_item &item)
{
	struct image_packet packet = item.packet;
	struct image_part part;
	bool equal = true;

	while (equal && image_next_part(&view.layout, place_frame(item.frame), &packet, &part) > 0)
		equal = view.layout.convert
				? warp_converted_equal(view.layout, image, part.place,
						       item.frame + part.from, part.bytes)
				: warp_bytes_equal(image + part.place, item.frame + part.from,
						   part.bytes);
	return equal;
}

/* COMPARE, by a warp: what the frame is then. */
__device__ __forceinline__ void warp_compare(const struct place_context &c, struct place_item &item)
{
	const struct place_target &target = c.g->run[item.run].target;
	const struct place_view &view = c.views[item.view];
	uint8_t *image = view.images + target.slot * view.stride;
	uint32_t still;

	do {
		still = __shfl_sync(
			WARP_ALL, lane_index() ? 0 : place_is_still(&view.table->slot[target.slot]),
			0);
		__syncwarp(); /* lane 0's acquire is all lanes' */
		if (warp_item_equal(view, image, item))
			return;
		if (!still)
			place_pause();
	} while (!still);
	if (lane_index() == 0)
		item.outcome = place_differs(&view, &target, place_frame(item.frame), &item.packet);
	__syncwarp();
}

/* Whether run `r` is the first of its image in the burst. */
__device__ __forceinline__ bool place_is_first(const struct place_context &c, uint32_t r)
{
	for (uint32_t q = 0; q < r; q++)
		if (c.g->run[q].target.outcome == PLACE_PLACED &&
		    place_run_slot(c, c.g->run[q]) == place_run_slot(c, c.g->run[r]))
			return false;
	return true;
}

/* All threads, behind a barrier: step 5 of a burst with copies. */
static __device__ __noinline__ void place_compares(struct place_context c, uint32_t count)
{
	struct place_group &g = *c.g;
	const uint32_t i = c.thread;
	const bool inside = i < g.runs && g.run[i].target.outcome == PLACE_PLACED;
	const bool compares = inside && place_is_first(c, i);

	if (compares)
		place_turn(place_run_slot(c, g.run[i]));
	else if (inside)
		place_leave(place_run_slot(c, g.run[i]));
	place_barrier(c);
	for (uint32_t f = i / 32; f < count; f += c.threads / 32)
		if (g.item[f].work == PLACE_COMPARE)
			warp_compare(c, g.item[f]);
	place_barrier(c);
	if (compares)
		place_leave_comparer(place_run_slot(c, g.run[i]));
}

#endif
