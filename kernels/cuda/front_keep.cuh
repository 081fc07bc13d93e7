/* SPDX-License-Identifier: BSD-3-Clause */
/* The front's other two warps: what the host wants, and slots back to the card. Orderings: front.cuh. */
#ifndef GDRCAP_CUDA_FRONT_KEEP_CUH
#define GDRCAP_CUDA_FRONT_KEEP_CUH

#include "kernels/cuda/front.cuh"

/* ---- the host's words ---- */

/* Lane 0..2 a word each, together. A burst's number is told as the turn that it was. */
__device__ __forceinline__ void front_host(struct front_shared &s)
{
	const struct front_words *words = s.front.words;
	const uint32_t lane = lane_index();
	const uint64_t *at = lane == 0	 ? &words->phase
			     : lane == 1 ? &words->collected
					 : &words->lease;
	uint64_t before = 0;

	for (;;) {
		uint64_t word = 0;

		/* LEASE, ROOM: acquire */
		if (lane < 3)
			word = load_acquire_system(at);
		if (lane == 0) {
			*(volatile uint32_t *)&s.phase = (uint32_t)word;
			if (word == FRONT_LEAVE)
				*(volatile uint32_t *)&s.leave = FRONT_GONE;
		} else if (lane < 3) {
			/* partner: the keeper's in front_repost() */
			__threadfence_block();
			*(volatile uint32_t *)(lane == 1 ? &s.collected : &s.lease) =
				(uint32_t)(word - s.front.burst);
			if (lane == 2)
				*(volatile uint32_t *)&s.leases = word != UINT64_MAX;
		}
		__syncwarp();
		if (look(s.over))
			return;
		if (!__any_sync(WARP_ALL, word != before))
			__nanosleep(POLL_SLEEP_MAX_NS);
		before = word;
	}
}

/* ---- the keeper ---- */

struct front_keeper {
	uint32_t freed;	      /* turns */
	uint32_t freed_frame; /* the frame after their last */
	uint32_t posted;      /* frames before this one have a slot that is posted */
	uint32_t given;	      /* turns whose slots may go back */
	uint64_t reposts, told;
	uint32_t backlog;
};

/* FREE: the bursts behind `freed` without a gap. */
__device__ __forceinline__ uint32_t front_take_freed(const struct front_shared &s, uint32_t freed)
{
	if (s.front.host_frees) {
		const int32_t n = (int32_t)(look(s.collected) - freed);

		__threadfence_block(); /* partner: the host warp's, before it stores the word */
		return n > 0 ? (uint32_t)n : 0;
	}

	const uint64_t burst = s.front.burst + freed + lane_index();
	const uint64_t word =
		load_acquire_gpu(&s.ring.ring.free_word[burst & s.ring.ring.burst_mask]);
	const uint32_t is = __ballot_sync(WARP_ALL, burst_word_is(word, burst, s.ring.burst_bits));

	__syncwarp();
	return cq_prefix(is);
}

/* Where the frames of the turns before `turn` end. */
__device__ __forceinline__ uint32_t front_end_of(const struct front_shared &s, uint32_t turn)
{
	return turn == 0 ? s.front.next
			 : *(volatile uint32_t *)&s.front.end[(uint32_t)(s.front.burst + turn - 1) &
							      s.ring.ring.burst_mask];
}

/* REPOST, when it is worth it. All lanes alike. */
__device__ __forceinline__ void front_repost(struct front_shared &s, struct front_keeper &k,
					     bool all)
{
	const struct kernel_front &front = s.front;
	const uint32_t next = (uint32_t)look(s.turn);
	/* until the host's words were read once, nothing goes back */
	const uint32_t may = front_through(k.freed, look(s.lease), look(s.leases));
	uint32_t slots;

	__threadfence_block();
	/* draining: what is posted may still come, and no more, so that it has an end */
	if (!all && (may == k.given || look(s.phase) != FRONT_RUN))
		return;
	if ((int32_t)(may - k.given) > 0)
		k.given = may;
	slots = front.first + front.queue.slots - k.posted +
		cq_whole(front_end_of(s, k.given) - front.first, front.queue.stride_shift);
	if (all ? !slots : !cq_repost_due(slots, k.posted - next, front.queue.slots))
		return;
	k.posted += slots;
	k.reposts++;
	fence_release_system(); /* REPOST */
	if (lane_index() == 0) {
		store_relaxed_system(front.queue.record, cq_record((k.posted - front.first) >>
								   front.queue.stride_shift));
		*(volatile uint32_t *)&s.posted = k.posted;
	}
	__syncwarp();
}

/* ROOM: told to pollers. */
__device__ __forceinline__ void front_room(struct front_shared &s, const struct front_keeper &k)
{
	const uint32_t collected = look(s.collected);
	/* where those end that are freed is certain to be seen */
	const uint32_t seen = front_earlier(collected, k.freed);
	const uint32_t frame = front_end_of(s, seen) + s.ring.ring.desc_mask + 1;

	if (lane_index() == 0) {
		*(volatile uint32_t *)&s.room_frame = frame;
		*(volatile uint32_t *)&s.room_turn = seen + s.ring.ring.burst_mask + 1;
	}
	__syncwarp();
}

__device__ __forceinline__ void front_tell(struct front_shared &s, const struct front_keeper &k,
					   uint32_t next, enum front_state state)
{
	const uint32_t lane = lane_index();
	struct front_status *status = s.front.status;
	const uint64_t turns = look(s.turn) >> 32;

	if (lane == 0) {
		store_relaxed_system(&status->frames, look_alone(s.frames));
		store_relaxed_system(&status->bytes, look_alone(s.bytes));
		store_relaxed_system(&status->bursts, turns);
		store_relaxed_system(&status->passes, look_alone(s.passes));
		store_relaxed_system(&status->empty, look_alone(s.empty));
		store_relaxed_system(&status->reposts, k.reposts);
		store_relaxed_system(&status->backlog, k.backlog);
		store_relaxed_system(&status->next, next);
		/* FRONT_ENDED: after all else that the front did */
		store_release_system(&status->state, state);
	}
	__syncwarp();
}

/* Behind a completion that was no frame's: what has come since, of any kind, is flushed. */
__device__ __forceinline__ uint32_t front_flushed(const struct front_shared &s, uint32_t next)
{
	const uint32_t i = next + lane_index();
	const uint32_t there = __ballot_sync(
		WARP_ALL, cq_tail_is_new(cqe_tail(s.front, i), i, s.front.queue.cq_entries));

	return next + cq_prefix(there);
}

/* The keeper until all that was published is freed, or the host says LEAVE. */
__device__ __forceinline__ void front_keep(struct front_shared &s, struct front_keeper &k)
{
	uint64_t passes = 0;
	uint32_t told = 0, idle = 0;

	for (;;) {
		const uint32_t leave = look(s.leave);
		const uint32_t n = front_take_freed(s, k.freed);
		const uint64_t turn = look(s.turn);

		k.freed += n;
		if (n) {
			const uint32_t backlog = (uint32_t)turn - front_end_of(s, k.given);

			k.backlog = max(k.backlog, backlog);
			if (lane_index() == 0)
				*(volatile uint32_t *)&s.freed = k.freed;
			__syncwarp();
		}
		front_room(s, k);
		front_repost(s, k, false);
		if (leave == FRONT_GONE || (leave && k.freed == (uint32_t)(turn >> 32)))
			return;
		idle = n ? 0 : idle + (idle <= POLLS_PER_SLEEP);
		if (k.freed - told >= FRONT_STATUS_BURSTS ||
		    (idle >= POLLS_PER_SLEEP && (k.freed != told || look(s.passes) != passes))) {
			told = k.freed;
			passes = look(s.passes);
			front_tell(s, k, (uint32_t)turn, leave ? FRONT_DRAINS : FRONT_RUNS);
		}
		if (idle > POLLS_PER_SLEEP)
			__nanosleep(FRONT_NAP_NS);
	}
}

__device__ __forceinline__ void front_keeper(struct front_shared &s, uint32_t pollers)
{
	struct front_keeper k = {};
	uint32_t next;

	/* nothing is out: whoever had the queue before ended with all slots back */
	k.posted = s.front.first + s.front.queue.slots +
		   cq_whole(s.front.next - s.front.first, s.front.queue.stride_shift);
	if (lane_index() == 0) {
		store_relaxed_system(s.front.queue.record, cq_record((k.posted - s.front.first) >>
								     s.front.queue.stride_shift));
		*(volatile uint32_t *)&s.posted = k.posted;
	}
	front_tell(s, k, s.front.next, FRONT_RUNS);
	front_keep(s, k);
	next = (uint32_t)look(s.turn);
	if (look(s.leave) == FRONT_BROKEN) {
		front_tell(s, k, next, FRONT_FAILED);
		/* the phase is asked first: what came before it was said is counted */
		for (bool last = false; !last;) {
			last = look(s.phase) != FRONT_RUN;
			for (uint32_t before = next + 1; before != next;) {
				before = next;
				next = front_flushed(s, next);
			}
			__nanosleep(POLL_SLEEP_MAX_NS);
		}
	} else if (look(s.leave) == FRONT_EMPTY) {
		front_repost(s, k, true);
	}
	while (look(s.left) != pollers)
		__nanosleep(FRONT_NAP_NS);
	__threadfence();
	if (lane_index() == 0)
		*(volatile uint32_t *)&s.over = 1;
	front_tell(s, k, next, FRONT_ENDED);
}

#endif
