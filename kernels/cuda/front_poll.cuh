/* SPDX-License-Identifier: BSD-3-Clause */
/* The front's pollers: from completions to published bursts. Orderings: front.cuh. */
#ifndef GDRCAP_CUDA_FRONT_POLL_CUH
#define GDRCAP_CUDA_FRONT_POLL_CUH

#include "kernels/cuda/front.cuh"

/* What a look at completions found: so many frames without a gap; and whether something else than a
 * frame comes behind them. */
struct front_seen {
	uint32_t frames;
	bool odd, acquired;
};

/* What `rounds` times 32 completions from `frame` on are, by their last words. */
template <uint32_t rounds>
__device__ __forceinline__ struct front_seen
front_see(const struct kernel_front &front, uint32_t frame, const uint32_t (&tail)[rounds])
{
	struct front_seen seen = { 0, false, false };

#pragma unroll
	for (uint32_t k = 0; k < rounds; k++) {
		const uint32_t i = frame + lane_index() + FRONT_LANES * k;
		const bool frame_is = tail_is_frame(front, tail[k], i);
		const uint32_t good = __ballot_sync(WARP_ALL, frame_is);
		const uint32_t odd = __ballot_sync(
			WARP_ALL, !frame_is && cq_tail_is_new(tail[k], i, front.queue.cq_entries));

		if (seen.frames == FRONT_LANES * k) {
			const uint32_t n = cq_prefix(good);

			seen.frames += n;
			seen.odd = n < FRONT_LANES && (odd >> n & 1);
		}
	}
	return seen;
}

/* Looks at a whole burst's completions; `limit` of them count. A whole warp. */
__device__ __forceinline__ struct front_seen front_look_far(const struct kernel_front &front,
							    uint32_t frame, uint32_t limit)
{
	uint32_t tail[FRONT_ROUNDS];

#pragma unroll
	for (uint32_t k = 0; k < FRONT_ROUNDS; k++) {
		const uint32_t i = lane_index() + FRONT_LANES * k;

		tail[k] = i < limit ? cqe_tail(front, frame + i) : CQ_OP_INVALID << 28;
	}
	return front_see(front, frame, tail);
}

/* The same, of its first frames while there are no more. ARRIVED of few: the loads themselves acquire,
 * which is sooner than a fence behind them. */
__device__ __forceinline__ struct front_seen front_look(const struct kernel_front &front,
							uint32_t frame, uint32_t limit)
{
	const uint32_t lane = lane_index();
	uint32_t tail[1] = { CQ_OP_INVALID << 28 };
	struct front_seen seen;

	if (lane < limit)
		tail[0] = cqe_tail_acquire(front, frame + lane);
	__syncwarp();
	seen = front_see(front, frame, tail);
	seen.acquired = true;
	return seen.frames < FRONT_LANES || limit <= FRONT_LANES
		       ? seen
		       : front_look_far(front, frame, limit);
}

/*
 * Waits for the turn. *ahead: whether, with the frame that the turn begins with, a whole burst was seen to be there.
 * False: leave.
 */
__device__ __forceinline__ bool front_await_turn(struct front_shared &s, uint32_t turn,
						 uint32_t *frame, bool *ahead)
{
	const struct kernel_front &front = s.front;
	uint32_t seen_frame = 0, last;
	bool seen = false;

	for (;;) {
		const uint64_t word = look(s.turn);
		const uint32_t away = turn - (uint32_t)(word >> 32), next = (uint32_t)word;
		const uint32_t at = front_ahead(next, away, front.burst_max);

		if (away == 0) {
			*frame = next;
			*ahead = seen && seen_frame == next;
			return true;
		}
		if (look(s.leave))
			return false;
		/* beyond a lap, entries would be taken for those of another */
		if ((seen && seen_frame == at) ||
		    !front_may_look(away, front.burst_max, front.queue.cq_entries))
			continue;
		seen_frame = at;
		last = at + front.burst_max - 1;
		seen = __shfl_sync(WARP_ALL, (int)tail_is_frame(front, cqe_tail(front, last), last),
				   0);
		if (seen)
			seen = front_look_far(front, at, front.burst_max).frames == front.burst_max;
		else
			__nanosleep(FRONT_NAP_NS);
	}
}

/* The turn goes on to the next, or nobody has it any more. */
__device__ __forceinline__ void front_pass_turn(struct front_shared &s, uint32_t turn,
						uint32_t frame)
{
	if (lane_index() == 0)
		*(volatile uint64_t *)&s.turn = (uint64_t)(turn + 1) << 32 | frame;
	__syncwarp();
}

/*
 * The completion of `frame`, that stops the front, goes into the status; nobody takes a turn any more. Of several
 * that do, the first to come here is told of.
 */
__device__ __forceinline__ void front_fail(struct front_shared &s, uint32_t frame)
{
	const struct kernel_front &front = s.front;
	struct cq_fault *fault = &front.status->fault;
	const uint32_t lane = lane_index();
	uint32_t word, kind, first = 0;
	struct cq_words words;

	if (lane == 0)
		first = atomicExch(&s.fails, 1) == 0;
	if (!__shfl_sync(WARP_ALL, first, 0))
		return;
	fence_acquire_system(); /* ARRIVED, of the rest of it */
	word = cqe_word(front.queue, frame, lane % (CQ_BYTES / 4) * 4);
	if (lane < CQ_BYTES / 4)
		store_relaxed_system((uint32_t *)fault->cqe + lane, word);
	words.tail = __shfl_sync(WARP_ALL, word, CQ_TAIL_AT / 4);
	words.entry = __shfl_sync(WARP_ALL, word, CQ_ENTRY_AT / 4);
	words.byte_cnt = __shfl_sync(WARP_ALL, word, CQ_LENGTH_AT / 4);
	words.syndrome =
		__shfl_sync(WARP_ALL, word, CQ_SYNDROME_AT / 4) >> CQ_SYNDROME_AT % 4 * 8 & 0xff;
	kind = cq_kind_of(&front.queue, &words, frame, frame - front.first);
	if (kind <= CQ_FRAME)
		kind = CQ_ORDER; /* a broken card's: it has been changed since */
	if (lane == 0) {
		store_relaxed_system(&fault->index, frame);
		store_relaxed_system(&fault->next, frame - front.first);
		store_relaxed_system(&fault->kind, kind);
		__threadfence_system(); /* before FRONT_FAILED, which the keeper stores */
		*(volatile uint32_t *)&s.broken = 1;
	}
	__syncwarp();
}

/* By the poller that has the turn. True: the front is to stop. */
__device__ __forceinline__ bool front_is_broken(struct front_shared &s)
{
	const bool broken = look(s.broken);

	if (broken && lane_index() == 0)
		atomicCAS(&s.leave, FRONT_STAYS, FRONT_BROKEN);
	__syncwarp();
	return broken;
}

/* What a poller counted is told. */
__device__ __forceinline__ void front_count(struct front_shared &s, uint32_t *passes,
					    uint32_t *empty)
{
	__syncwarp();
	if (lane_index() == 0) {
		atomicAdd(&s.empty, (unsigned long long)*empty);
		atomicAdd(&s.passes, (unsigned long long)*passes);
	}
	*passes = *empty = 0;
}

/* A later completion is there, and that of `frame` is not, though a card writes them in their order: in this order
 * looked at, what comes between the two looks makes no gap. A bus that reorders them does not for long. */
__device__ __forceinline__ bool front_is_passed(const struct kernel_front &front, uint32_t frame)
{
	const uint32_t entries = front.queue.cq_entries;
	const uint32_t later = cqe_tail_acquire(front, frame + 1);
	const uint32_t next = cqe_tail(front, frame);

	return __shfl_sync(WARP_ALL,
			   (int)(cq_tail_is_new(later, frame + 1, entries) &&
				 !cq_tail_is_new(next, frame, entries)),
			   0);
}

/* Decides how many frames from `frame` on are the turn's burst. 0: leave. *acquired: ARRIVED. */
__device__ __forceinline__ uint32_t front_decide(struct front_shared &s, uint32_t turn,
						 uint32_t frame, bool *acquired)
{
	const struct kernel_front &front = s.front;
	const uint32_t limit = front_limit(frame, front.burst_max);
	const int64_t wait = (int64_t)front.burst_us * front.ticks_per_us;
	uint32_t passes = 0, empty = 0, frames = 0, passed = 0;
	int64_t began = 0;

	for (;;) {
		const bool drain = look(s.phase) != FRONT_RUN;
		const bool few = turn - look(s.freed) < front.eager;
		const struct front_seen seen = front_look(front, frame, limit);

		passes++;
		*acquired = seen.acquired;
		if (front_is_broken(s) || look(s.leave))
			break;
		if (seen.frames == limit || (seen.frames && (seen.odd || drain || few))) {
			frames = seen.frames;
			break;
		}
		if (seen.odd) {
			front_fail(s, frame);
			continue;
		}
		if (!seen.frames) {
			empty += look(s.posted) != frame;
			if (!drain && passes < FRONT_LOOKS_TOLD)
				continue;
			if (!drain) {
				front_count(s, &passes, &empty);
				passed = front_is_passed(front, frame) ? passed + 1 : 0;
				if (passed == FRONT_PASSED)
					front_fail(s, frame);
				continue;
			}
			if (lane_index() == 0)
				atomicCAS(&s.leave, FRONT_STAYS, FRONT_EMPTY);
			break;
		}
		began = began ? began : clock64();
		if (__shfl_sync(WARP_ALL, (int)(clock64() - began >= wait), 0)) {
			frames = seen.frames;
			break;
		}
	}
	front_count(s, &passes, &empty);
	return frames;
}

/* ROOM. False: leave. */
__device__ __forceinline__ bool front_await_room(struct front_shared &s, uint32_t turn,
						 uint32_t end)
{
	for (;;) {
		const bool room = front_fits(turn, look(s.room_turn), end, look(s.room_frame));

		if (room)
			return true;
		if (look(s.leave))
			return false;
		__nanosleep(FRONT_NAP_NS);
	}
}

/* INLINE: as burst_write_inline(), by a warp. desc: a lane's own. Returns the flags of the ready word. */
__device__ __forceinline__ uint64_t front_inline(struct front_shared &s, uint32_t slot,
						 uint32_t frames, uint64_t desc)
{
	const struct burst_ring_view &ring = s.ring.ring;
	const uint32_t lane = lane_index(), bit = 1u << slot % 32;
	struct burst_ready *ready = (struct burst_ready *)&ring.ready[slot];
	struct burst_beside *beside = (struct burst_beside *)&ring.beside[slot];
	uint32_t before = 0;
	uint64_t mark;

	if (__any_sync(WARP_ALL, lane < frames && (desc & BURST_DESC_MARK)))
		return 0;
	if (lane == 0)
		before = atomicXor(&s.marks[slot / 32], bit);
	mark = __shfl_sync(WARP_ALL, before, 0) & bit ? 0 : BURST_DESC_MARK;
	if (lane < BURST_INLINE_MAX) {
		uint64_t *to = lane < BURST_READY_DESCS ? &ready->desc[lane]
							: &beside->desc[lane - BURST_READY_DESCS];

		store_relaxed_system(to, (lane < frames ? desc : 0) | mark);
	}
	__syncwarp();
	return BURST_INLINE | (mark ? BURST_INLINE_MARK : 0);
}

/* The length that the completion of `frame` says, behind its last word; one that fits no slot where it is not that of its
 * work entry. */
__device__ __forceinline__ uint32_t front_length(const struct kernel_front &front, uint32_t frame)
{
	const struct cq_front_queue &queue = front.queue;
	const uint32_t shift = queue.stride_shift;
	const uint32_t length = cq_length(cq_swap32(cqe_word(queue, frame, CQ_LENGTH_AT)), shift);

	return !shift || cq_entry_is(cqe_word(queue, frame, CQ_ENTRY_AT), frame - front.first,
				     queue.slots, shift)
		       ? length
		       : 0;
}

/* A frame's descriptor, as its completion says. A length that is none is the broken card's: nothing behind the
 * slot is read, and the front stops. */
__device__ __forceinline__ uint64_t front_describe(const struct kernel_front &front, uint32_t frame,
						   uint32_t *bytes, bool *wrong)
{
	const struct cq_front_queue &queue = front.queue;
	const uint32_t length = front_length(front, frame);
	const bool fits = cq_length_fits(length, queue.slot_bytes);
	const uint32_t len = fits ? length : 0;

	*wrong |= !fits;
	*bytes += len;
	return cq_desc(queue.first_slot, queue.slots, frame - front.first, len) |
	       (fits ? 0 : (uint64_t)FRAME_DESC_CUT << 48);
}

/* Seldom: the first frame of a burst with a length that is none. */
static __device__ __noinline__ uint32_t front_first_wrong(const struct kernel_front &front,
							  uint32_t frame, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++)
		if (!cq_length_fits(front_length(front, frame + i), front.queue.slot_bytes))
			return i;
	return 0;
}

/* Descriptors of a burst, and PUBLISH. The turn is on its way already. */
__device__ __forceinline__ void front_publish(struct front_shared &s, uint32_t turn, uint32_t frame,
					      uint32_t frames, bool acquired)
{
	const struct burst_ring_view &ring = s.ring.ring;
	const struct kernel_front &front = s.front;
	const uint64_t burst = front.burst + turn;
	const uint32_t lane = lane_index(), slot = (uint32_t)burst & ring.burst_mask;
	uint64_t word = burst_word(burst, s.ring.burst_bits, frames, frame), desc[FRONT_ROUNDS];
	uint32_t bytes = 0;
	bool wrong = false;

	if (!acquired)
		fence_acquire_system(); /* ARRIVED */
#pragma unroll
	for (uint32_t k = 0; k < FRONT_ROUNDS; k++)
		if (lane + FRONT_LANES * k < frames)
			desc[k] = front_describe(front, frame + lane + FRONT_LANES * k, &bytes,
						 &wrong);
#pragma unroll
	for (uint32_t k = 0; k < FRONT_ROUNDS; k++)
		if (lane + FRONT_LANES * k < frames)
			*(uint64_t *)&ring.desc[(frame + lane + FRONT_LANES * k) & ring.desc_mask] =
				desc[k];
	if (ring.beside && frames <= BURST_INLINE_MAX)
		word |= front_inline(s, slot, frames, desc[0]);
	__syncwarp();
	if (lane == 0) {
		front.end[slot] = frame + frames;
		store_release_gpu((uint64_t *)&ring.ready[slot].word, word); /* PUBLISH */
		if (front.host_reads)
			store_release_system(&front.head[slot], word);
		else
			store_relaxed_system(&front.head[slot], word);
	}
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		bytes += __shfl_xor_sync(WARP_ALL, bytes, step);
	if (lane == 0) {
		atomicAdd(&s.frames, (unsigned long long)frames);
		atomicAdd(&s.bytes, (unsigned long long)bytes);
	}
	if (__any_sync(WARP_ALL, wrong))
		front_fail(s, frame + front_first_wrong(front, frame, frames));
}

/* Turn `poller`, and each `pollers` turns on. */
__device__ __forceinline__ void front_turns(struct front_shared &s, uint32_t poller,
					    uint32_t pollers)
{
	const uint32_t burst_max = s.front.burst_max;

	for (uint32_t turn = poller;; turn += pollers) {
		uint32_t frame, frames = burst_max;
		bool ahead, acquired = false;

		if (!front_await_turn(s, turn, &frame, &ahead) ||
		    !front_await_room(s, turn, frame + burst_max) || front_is_broken(s))
			return;
		if (!ahead)
			frames = front_decide(s, turn, frame, &acquired);
		if (!frames)
			return;
		front_pass_turn(s, turn, frame + frames);
		front_publish(s, turn, frame, frames, acquired);
	}
}

__device__ __forceinline__ void front_poller(struct front_shared &s, uint32_t poller,
					     uint32_t pollers)
{
	front_turns(s, poller, pollers);
	__threadfence(); /* all that it did before it counts as left; partner: the keeper's */
	if (lane_index() == 0)
		atomicAdd(&s.left, 1);
}

#endif
