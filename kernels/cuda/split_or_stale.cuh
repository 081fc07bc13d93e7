/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rings with header-data split or the stale-read detector (stale.h) need of a checker. The
 * checkers are built twice: `split_or_stale` is constant, and without it nothing of this is there.
 */
#ifndef GDRCAP_CUDA_SPLIT_OR_STALE_CUH
#define GDRCAP_CUDA_SPLIT_OR_STALE_CUH

#include "kernels/cuda/ring.cuh"
#include "kernels/stale.h"

template <bool split_or_stale> struct split_or_stale_shared {
};

template <> struct split_or_stale_shared<true> {
	struct frame_desc head[BURST_FRAMES_MAX]; /* a frame's first piece; zeros: there is none */
	uint8_t due[BURST_FRAMES_MAX];		  /* 1: frames that the next pass checks */
};

/* Where a frame begins, or would begin if it lay whole where its rest is: address arithmetic only,
 * the first piece is not there. NULL: it cannot be reached. */
struct placed_frame {
	const uint8_t *at;
	uint32_t len, cut;
};

__device__ __forceinline__ struct placed_frame
frame_placed(const struct ring_shared &ring, const struct split_or_stale_shared<false> &,
	     const struct burst_in &in, uint32_t i)
{
	const struct frame_desc desc = in.desc[i];

	return { frame_at(&ring.ring, desc), desc.len, desc.offset & FRAME_DESC_CUT };
}

__device__ __forceinline__ struct placed_frame
frame_placed(const struct ring_shared &ring, const struct split_or_stale_shared<true> &extra,
	     const struct burst_in &in, uint32_t i)
{
	const struct frame_desc desc = in.desc[i], head = extra.head[i];
	struct frame_pieces pieces;
	const int reachable = frame_pieces(&ring.ring, desc, head, &pieces);

	return { reachable ? (const uint8_t *)((uintptr_t)pieces.rest - pieces.head_len) : NULL,
		 frame_pieces_len(desc, head), frame_pieces_cut(desc, head) };
}

/* Its length, as frame_placed() has it. */
__device__ __forceinline__ uint32_t frame_len(const struct split_or_stale_shared<false> &,
					      const struct burst_in &in, uint32_t i)
{
	return in.desc[i].len;
}

__device__ __forceinline__ uint32_t frame_len(const struct split_or_stale_shared<true> &extra,
					      const struct burst_in &in, uint32_t i)
{
	return frame_pieces_len(in.desc[i], extra.head[i]);
}

/* Whether this pass checks frame i. */
__device__ __forceinline__ bool frame_is_due(const struct split_or_stale_shared<false> &, uint32_t)
{
	return true;
}

__device__ __forceinline__ bool frame_is_due(const struct split_or_stale_shared<true> &extra,
					     uint32_t i)
{
	return extra.due[i];
}

/* The first step of a burst. Needs a barrier behind it. */
__device__ __forceinline__ void split_or_stale_begin(const struct ring_shared &ring,
						     struct split_or_stale_shared<true> &extra,
						     const struct burst_in &in, uint32_t thread)
{
	const struct burst_ring_view &view = ring.ring;

	if (thread >= in.count)
		return;
	extra.head[thread] = view.head_desc ? view.head_desc[(in.first + thread) & view.desc_mask]
					    : frame_desc{ 0, 0, 0 };
	extra.due[thread] = 1;
}

/* True in all work threads when it is in any. A barrier. */
__device__ __forceinline__ bool work_any(const struct ring_shared &ring, bool mine)
{
	uint32_t any;

	__syncwarp();
	asm volatile("{\n\t"
		     ".reg .pred p, q;\n\t"
		     "setp.ne.u32 p, %1, 0;\n\t"
		     "bar.red.or.pred q, %2, %3, p;\n\t"
		     "selp.u32 %0, 1, 0, q;\n\t"
		     "}"
		     : "=r"(any)
		     : "r"((uint32_t)mine), "r"((uint32_t)BARRIER_WORK), "r"(ring.work_threads)
		     : "memory");
	return any;
}

/* Frame i's words, if it is one that is poisoned. */
__device__ __forceinline__ bool area_of(const struct ring_shared &ring,
					const struct split_or_stale_shared<true> &extra,
					const struct burst_in &in, uint32_t i,
					struct stale_area *area)
{
	struct frame_pieces pieces;

	if (!frame_pieces(&ring.ring, in.desc[i], extra.head[i], &pieces) || !pieces.rest_len)
		return false;
	stale_area_of(&ring.ring, in.desc[i], &pieces, area);
	return true;
}

/* What a work thread knows of its frame between passes. */
struct stale_state {
	struct stale_area area;
	struct frame_result before; /* the first pass's outcome */
	uint32_t seen;		    /* stale_seen() */
	uint64_t until;		    /* ns */
	bool due;		    /* not settled, and to be checked again */
	bool absent;		    /* nothing of it was there before the last pass */
	bool over; /* the pass that comes, or came, is the last; the same in all threads */
};

/* After the first pass. */
__device__ __forceinline__ void stale_begin(const struct ring_shared &ring,
					    const struct split_or_stale_shared<true> &extra,
					    const struct burst_in &in,
					    const struct frame_result *result, uint32_t thread,
					    struct stale_state &state)
{
	state.due = false;
	state.absent = false;
	state.over = false;
	state.until = global_ns() + (uint64_t)ring.ring.stale_us * 1000u;
	if (thread >= in.count || stale_settles(&result[thread]) ||
	    frame_pieces_cut(in.desc[thread], extra.head[thread]) ||
	    !area_of(ring, extra, in, thread, &state.area))
		return;
	state.due = true;
	state.before = result[thread];
	state.seen = stale_seen(&state.area);
}

/*
 * After a pass, `first` or another: true when those frames that are due now are to be checked
 * again. False: all outcomes are final, and seen after the next barrier. All work threads, after a
 * barrier.
 */
__device__ __forceinline__ bool stale_again(const struct ring_shared &ring,
					    struct split_or_stale_shared<true> &extra,
					    const struct burst_in &in, struct frame_result *result,
					    uint32_t thread, struct stale_state &state, bool first)
{
	const bool settles = state.due && !first && stale_settles(&result[thread]);

	if (settles)
		stale_found(&state.area, state.seen, &state.before, &result[thread]);
	else if (state.due && !first && (state.over || !state.seen))
		result[thread] = state.before;
	if (state.absent && !settles)
		stale_absent(&result[thread]);
	state.due = state.due && !settles && (first || (!state.over && state.seen));
	if (!work_any(ring, state.due))
		return false;
	state.over = work_any(ring, global_ns() >= state.until);
	if (thread < in.count)
		extra.due[thread] = state.due;
	/* before the last pass reads the frame: what comes in between is seen */
	state.absent = state.due && state.over && state.seen && stale_is_absent(&state.area);
	/* What the pass reads is read again: after the fence nothing of the multiprocessor's own
	 * cache serves. Partner: whoever writes the frame. */
	fence_acq_rel_system();
	barrier_sync(BARRIER_WORK, ring.work_threads);
	return true;
}

/* Poisons the burst's slots. All work threads, after a barrier; nobody reads the frames anymore. */
__device__ __forceinline__ void stale_poison_all(const struct ring_shared &ring,
						 const struct split_or_stale_shared<true> &extra,
						 const struct burst_in &in, uint32_t thread)
{
	const uint32_t words = in.count * 2 * STALE_EDGE_WORDS;
	struct stale_area area;

	for (uint32_t n = thread; n < words; n += ring.work_threads) {
		const uint32_t i = n / (2 * STALE_EDGE_WORDS), k = n % (2 * STALE_EDGE_WORDS);

		if (area_of(ring, extra, in, i, &area) && k < stale_edges(&area))
			stale_poison(&area, k);
	}
	/* all have read the generations */
	barrier_sync(BARRIER_WORK, ring.work_threads);
	if (thread < in.count && area_of(ring, extra, in, thread, &area))
		ring.ring.generation[area.slot] = area.generation + 1;
}

/*
 * A burst up to its records. pass() checks all frames that are due; it is called after a barrier
 * and ends with one. All work threads.
 */
template <typename Pass>
__device__ __forceinline__ void
check_split_or_stale(const struct ring_shared &ring, struct split_or_stale_shared<true> &extra,
		     const struct burst_in &in, struct frame_result *result, uint32_t thread,
		     Pass pass)
{
	const bool poisons = ring.ring.generation != NULL;
	struct stale_state state;

	split_or_stale_begin(ring, extra, in, thread);
	barrier_sync(BARRIER_WORK, ring.work_threads);
	for (bool first = true;; first = false) {
		pass();
		if (!poisons)
			return;
		if (first)
			stale_begin(ring, extra, in, result, thread, state);
		if (!stale_again(ring, extra, in, result, thread, state, first))
			break;
	}
	stale_poison_all(ring, extra, in, thread);
}

#endif
