/* SPDX-License-Identifier: BSD-3-Clause */
/* The images of a burst's runs: found or begun, and entered. */
#ifndef GDRCAP_CUDA_PLACE_IMAGES_CUH
#define GDRCAP_CUDA_PLACE_IMAGES_CUH

#include "kernels/cuda/place_items.cuh"

/* ---- 2: images ---- */

__device__ __forceinline__ bool place_same_image(const struct place_item &a,
						 const struct place_item &b)
{
	return a.outcome == b.outcome && a.view == b.view &&
	       (a.outcome != PLACE_PLACED
			? a.packet.pieces == b.packet.pieces /* enum image_why */
			: a.packet.number == b.packet.number && a.packet.stream == b.packet.stream);
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
			place_open(&view, &found, place_frame(item.frame), &item.packet,
				   item.source);
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

	if (run.target.outcome != PLACE_PLACED)
		return;
	/* holds if the use is still the same, as place_slot_is() says; so it need not wait for ENTER */
	run.source = place_load_relaxed32(&place_run_slot(c, run)->source);
	if (!place_enter(place_run_slot(c, run), run.target.use)) {
		run.target.use = 0;
		atomicAdd(&c.g->closed, 1u);
	}
}

/* All threads, behind a barrier, where some run's image was closed since it was found: those are looked
 * for again, PLACE_TRIES times in all. Ends with a barrier. */
static __device__ __noinline__ void place_enter_again(struct place_context c)
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

#endif
