/* SPDX-License-Identifier: BSD-3-Clause */
/* A checker's last step: from the outcome of each frame of a burst to records. */
#ifndef GDRCAP_CUDA_RECORDS_CUH
#define GDRCAP_CUDA_RECORDS_CUH

#include "kernels/cuda/block.cuh"

struct record_mark { /* a record's first frame, and the sums over the frames before it */
	uint32_t index, bytes, frame_bytes;
};

struct records_shared {
	struct frame_result result[BURST_FRAMES_MAX];
	struct record_mark mark[BURST_FRAMES_MAX + 1];
	uint64_t totals[8];
	uint32_t records;
};

/* A record in three 16-byte stores: over PCIe it is one write. */
__device__ __forceinline__ void record_store(struct frame_record *to,
					     const struct frame_record &record)
{
	static_assert(sizeof(record) == 3 * sizeof(uint4), "a record is three pieces");
	union {
		struct frame_record record;
		uint4 piece[3];
	} out;

	out.record = record;
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

/* Tells of a burst's only record, by a warp whose lanes all have it. False: it is not PLAIN. */
__device__ __forceinline__ bool record_publish(const struct ring_shared &ring, uint64_t burst,
					       const struct frame_record &record)
{
	struct burst_plain plain;

	if (!record_is_plain(&record))
		return false;
	record_to_plain(&record, &plain);
	plain_store(plain_to_of(ring, burst), plain);
	return true;
}

/*
 * All work threads of a group call it, after a barrier behind the last result. joins(last, next)
 * says whether the second result goes on with the record of the first; wire(i) is frame i's length.
 * Returns the number of records; RECORDS_PUBLISHED for one that it could tell at once.
 * `written`, a constant: the consumer wrote to the frames, so that nothing may be told before that is seen.
 */
template <bool written, typename Joins, typename Wire>
__device__ __forceinline__ uint32_t write_records(const struct ring_shared &ring,
						  struct records_shared &s,
						  const struct burst_in &in, uint32_t thread,
						  Joins joins, Wire wire, uint32_t group = 0)
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
	uint32_t records;

	if (head) {
		struct record_mark *mark = &s.mark[before >> heads_at];

		mark->index = thread;
		mark->bytes = (uint32_t)before & sum_mask;
		mark->frame_bytes = (uint32_t)(before >> wire_at) & sum_mask;
	}
	if (thread == BURST_FRAMES_MAX - 1) {
		struct record_mark *end = &s.mark[sum >> heads_at];

		end->index = count;
		end->bytes = (uint32_t)sum & sum_mask;
		end->frame_bytes = (uint32_t)(sum >> wire_at) & sum_mask;
		s.records = (uint32_t)(sum >> heads_at);
	}
	barrier_sync(BARRIER_WORK + group, ring.work_threads);
	records = s.records;
	if (thread < (!written && records == 1 ? 32 : records)) {
		const uint32_t r = min(thread, records - 1);
		const struct record_mark mark = s.mark[r], next = s.mark[r + 1];
		struct frame_record record;

		record_begin(&record, &s.result[mark.index], mark.index, 0);
		record.count = (uint16_t)(next.index - mark.index);
		record.bytes = next.bytes - mark.bytes;
		record.frame_bytes = next.frame_bytes - mark.frame_bytes;
		if (record.verdict != FRAME_FILTERED)
			record.phase_next = s.result[next.index - 1].phase_next;
		if (!written && records == 1 && record_publish(ring, in.burst, record))
			return RECORDS_PUBLISHED;
		if (thread < records)
			record_store(record_at(&ring.ring, in.first, thread), record);
	}
	return records;
}

#endif
