/* SPDX-License-Identifier: BSD-3-Clause */
/* A checker's last step: from the outcome of each frame of a burst to runs. */
#ifndef GDRCAP_CUDA_RUNS_CUH
#define GDRCAP_CUDA_RUNS_CUH

#include "kernels/cuda/block.cuh"

struct run_mark { /* a run's first frame, and the sums over the frames before it */
	uint32_t index, bytes, frame_bytes;
};

struct runs_shared {
	struct frame_result result[BURST_FRAMES_MAX];
	struct run_mark mark[BURST_FRAMES_MAX + 1];
	uint64_t totals[8];
	uint32_t runs;
};

/* A run in three 16-byte stores: over PCIe it is one write. */
__device__ __forceinline__ void run_store(struct frame_run *to, const struct frame_run &run)
{
	static_assert(sizeof(run) == 3 * sizeof(uint4), "a run is three pieces");
	union {
		struct frame_run run;
		uint4 piece[3];
	} out;

	out.run = run;
	((uint4 *)to)[0] = out.piece[0];
	((uint4 *)to)[1] = out.piece[1];
	((uint4 *)to)[2] = out.piece[2];
}

/* Where a lane of a warp writes its word of a PLAIN outcome, and the generation that it has. */
struct plain_to {
	uint64_t *word; /* NULL: a lane that writes none */
	uint64_t generation;
};

__device__ __forceinline__ struct plain_to plain_to_of(const struct ring_shared &ring,
						       uint64_t burst)
{
	uint64_t *done = &ring.ring.result[burst & ring.ring.burst_mask].done;

	static_assert(offsetof(struct burst_result, plain) == 8, "behind done");
	return { lane_index() < BURST_PLAIN_WORDS ? done + lane_index() : NULL,
		 burst_word(burst, ring.burst_bits, 0, 0) };
}

/* PLAIN, by a whole warp whose lanes all have it: one write over the bus. */
__device__ __forceinline__ void plain_store(const struct plain_to &to,
					    const struct burst_plain &plain)
{
	const uint64_t word = to.generation | burst_plain_bits(&plain, lane_index());

	if (to.word)
		store_relaxed_system(to.word, word);
}

/* Tells of a burst's only run, by a warp whose lanes all have it. False: it is not PLAIN. */
__device__ __forceinline__ bool run_tell(const struct ring_shared &ring, uint64_t burst,
					 const struct frame_run &run)
{
	struct burst_plain plain;

	if (!run_is_plain(&run))
		return false;
	run_to_plain(&run, &plain);
	plain_store(plain_to_of(ring, burst), plain);
	return true;
}

/*
 * All work threads of a group call it, after a barrier behind the last result. joins(last, next)
 * says whether the second result goes on with the run of the first; wire(i) is frame i's length.
 * Returns the number of runs; RUNS_TOLD for one that it could tell at once. `written`, a constant:
 * the consumer wrote to the frames, so that nothing may be told before that is seen.
 */
template <bool written, typename Joins, typename Wire>
__device__ __forceinline__ uint32_t write_runs(const struct ring_shared &ring,
					       struct runs_shared &s, const struct burst_in &in,
					       uint32_t thread, Joins joins, Wire wire,
					       uint32_t group = 0)
{
	/* sums in one word: bytes and wire bytes below 2^25 each (twice 65,535 a frame at most),
	 * heads at most 256 */
	const uint32_t wire_at = 25, heads_at = 50, sum_mask = (1u << 25) - 1;
	const uint32_t count = in.count;
	const bool mine = thread < count;
	const bool head = mine && (!thread || !joins(s.result[thread - 1], s.result[thread]));
	const uint64_t value = mine ? (uint64_t)run_bytes(&s.result[thread]) |
					       (uint64_t)wire(thread) << wire_at |
					       (uint64_t)head << heads_at
				    : 0;
	const uint64_t sum = block_scan(value, s.totals, thread, ring.work_threads, group);
	const uint64_t before = sum - value;
	uint32_t runs;

	if (head) {
		struct run_mark *mark = &s.mark[before >> heads_at];

		mark->index = thread;
		mark->bytes = (uint32_t)before & sum_mask;
		mark->frame_bytes = (uint32_t)(before >> wire_at) & sum_mask;
	}
	if (thread == BURST_FRAMES_MAX - 1) {
		struct run_mark *end = &s.mark[sum >> heads_at];

		end->index = count;
		end->bytes = (uint32_t)sum & sum_mask;
		end->frame_bytes = (uint32_t)(sum >> wire_at) & sum_mask;
		s.runs = (uint32_t)(sum >> heads_at);
	}
	barrier_sync(BARRIER_WORK + group, ring.work_threads);
	runs = s.runs;
	if (thread < (!written && runs == 1 ? 32 : runs)) {
		const uint32_t r = min(thread, runs - 1);
		const struct run_mark mark = s.mark[r], next = s.mark[r + 1];
		struct frame_run run;

		run_begin(&run, &s.result[mark.index], mark.index, 0);
		run.count = (uint16_t)(next.index - mark.index);
		run.bytes = next.bytes - mark.bytes;
		run.frame_bytes = next.frame_bytes - mark.frame_bytes;
		if (run.verdict != FRAME_FILTERED)
			run.phase_next = s.result[next.index - 1].phase_next;
		if (!written && runs == 1 && run_tell(ring, in.burst, run))
			return RUNS_TOLD;
		if (thread < runs)
			run_store(run_at(&ring.ring, in.first, thread), run);
	}
	return runs;
}

#endif
