/* SPDX-License-Identifier: BSD-3-Clause */
/* What a block does that plays the network card: frames that lie in their slots, or are copied into them. */
#ifndef GDRCAP_APP_BENCH_CARD_PLAY_CUH
#define GDRCAP_APP_BENCH_CARD_PLAY_CUH

#include "bench/card.h"
#include "kernels/cuda/front.cuh"

#define CARD_THREADS 1024u
#define CARD_CHUNK 2048u /* frames that lie in their slots: of a block at a time */
#define CARD_END UINT32_MAX
#define CARD_FLUSHES 64u /* at a time */

/* In GPU memory, by queue. Writers: blocks. */
struct card_state {
	uint32_t chunk; /* whose completions are next; CARD_END: none any more */
	uint32_t next_chunk;
	uint64_t wire, completed, out_of_buffer, flushed;
	uint32_t failed; /* an error completion was written: nothing more comes */
	uint32_t base;	 /* completion of work entry 0 */
};

struct card_job {
	struct card_queue queue[CARD_QUEUES_MAX];
	struct card_state *states;
	struct card_counts *counts;
	const uint32_t *stop;
	uint32_t blocks, reserved;
};

/* How many places from `place` on are posted; 0 also for those before it. */
__device__ __forceinline__ uint32_t card_posted(const struct card_queue &queue, uint32_t place)
{
	/* REPOST's partner: acquire, so that what is written afterwards is */
	const uint32_t record = cq_swap32(load_relaxed_system(queue.record)) & 0xffff;
	const uint32_t entries = (record - (place >> queue.stride_shift)) & 0xffff;
	const uint32_t used = place & ((1u << queue.stride_shift) - 1);

	__threadfence_system();
	return !entries || entries > queue.slots >> queue.stride_shift
		       ? 0
		       : (entries << queue.stride_shift) - used;
}

__device__ __forceinline__ uint64_t *card_entry(const struct card_queue &queue, uint32_t frame)
{
	return (uint64_t *)(queue.cq + cq_at(frame, queue.cq_entries));
}

/* All of the completion of `place` but its last 8 bytes. */
__device__ __forceinline__ void card_write_body(const struct card_queue &queue, uint32_t frame,
						uint32_t place, uint32_t len)
{
	uint4 *to = (uint4 *)card_entry(queue, frame);
	uint32_t entry = 0;

	if (queue.stride_shift) {
		entry = cq_swap16(place >> queue.stride_shift) << 16;
		len += CQ_STRIDE;
	}
	to[0] = make_uint4(entry, 0, 0, 0);
	to[1] = make_uint4(0, 0, 0, 0);
	to[2] = make_uint4(0, 0, 0, cq_swap32(len));
	*(uint64_t *)&to[3] = frame;
}

__device__ __forceinline__ void card_write_tail(const struct card_queue &queue, uint32_t frame,
						uint32_t opcode, uint32_t place)
{
	const uint32_t counter = cq_counter(place, queue.stride_shift);
	const uint64_t own = opcode << 4 | cq_owner(frame, queue.cq_entries);

	store_relaxed_system(card_entry(queue, frame) + 7, own << 56 | (uint64_t)cq_swap16(counter)
									       << 32);
}

/* ---- frames that lie in their slots: as fast as it goes, chunk by chunk, by several blocks ---- */

/* Thread 0 of the block whose chunk is next. True: it does not come, nor any behind it. */
__device__ __forceinline__ bool card_ends(const struct card_queue &queue, struct card_state *state,
					  uint32_t chunk, uint32_t stop)
{
	if (!stop && !(queue.limit && (uint64_t)chunk * CARD_CHUNK >= queue.limit))
		return false;
	state->next_chunk = chunk;
	__threadfence();
	*(volatile uint32_t *)&state->chunk = CARD_END;
	return true;
}

/* Thread 0. False: no chunk comes any more. */
__device__ __forceinline__ bool card_await_slots(const struct card_job &job,
						 const struct card_queue &queue,
						 struct card_state *state, uint32_t chunk)
{
	for (;;) {
		const uint32_t now = *(volatile uint32_t *)&state->chunk;

		if (now == CARD_END)
			return false;
		if (card_posted(queue, chunk * CARD_CHUNK) >= CARD_CHUNK)
			return true;
		if (now == chunk && card_ends(queue, state, chunk, load_relaxed_system(job.stop)))
			return false;
	}
}

/* Thread 0: completions are in order. False: the card stopped before this chunk. */
__device__ __forceinline__ bool card_await_turn(const struct card_queue &queue,
						struct card_state *state, uint32_t chunk,
						uint32_t stop)
{
	uint32_t now;

	do {
		now = *(volatile uint32_t *)&state->chunk;
	} while (now != chunk && now != CARD_END);
	return now == chunk && !card_ends(queue, state, chunk, stop);
}

__device__ __forceinline__ void card_lying(const struct card_job &job,
					   const struct card_queue &queue, struct card_state *state,
					   uint32_t begin)
{
	__shared__ bool goes_on;

	for (uint32_t chunk = begin + blockIdx.x % job.blocks;; chunk += job.blocks) {
		const uint32_t first = chunk * CARD_CHUNK;
		uint32_t stop = 0;

		if (threadIdx.x == 0) {
			goes_on = card_await_slots(job, queue, state, chunk);
			/* over the bus, while bodies are written */
			stop = load_relaxed_system(job.stop);
		}
		__syncthreads();
		if (!goes_on)
			return;
		for (uint32_t i = threadIdx.x; i < CARD_CHUNK; i += CARD_THREADS)
			card_write_body(queue, first + i, first + i, queue.len);
		fence_release_system(); /* ARRIVED's partner */
		if (threadIdx.x == 0)
			goes_on = card_await_turn(queue, state, chunk, stop);
		__syncthreads();
		if (!goes_on)
			return;
		for (uint32_t i = threadIdx.x; i < CARD_CHUNK; i += CARD_THREADS)
			card_write_tail(queue, first + i, CQ_OP_RECEIVED, first + i);
		__syncthreads();
		if (threadIdx.x == 0) {
			__threadfence();
			*(volatile uint32_t *)&state->chunk = chunk + 1;
		}
	}
}

/* ---- frames that lie, a few each time the CPU says so: one warp ---- */

/* By a warp: both words in one round trip. False: stop. */
__device__ __forceinline__ bool card_await_word(const struct card_job &job,
						const struct card_queue &queue, uint64_t batches)
{
	const uint32_t lane = lane_index();
	uint64_t word = 0;

	do {
		if (lane == 0)
			word = load_relaxed_system(queue.go);
		else if (lane == 1)
			word = load_relaxed_system(job.stop);
		__syncwarp();
		if (__shfl_sync(WARP_ALL, word, 0) > batches)
			return true;
	} while (!__shfl_sync(WARP_ALL, word, 1));
	return false;
}

__device__ __forceinline__ void
card_on_word(const struct card_job &job, const struct card_queue &queue, struct card_state *state)
{
	const uint32_t lane = lane_index();
	uint64_t batches = state->wire / queue.batch;

	for (;; batches++) {
		const uint32_t frame = (uint32_t)(batches * queue.batch) + lane;
		bool stop = false;

		while (!stop &&
		       __shfl_sync(WARP_ALL, card_posted(queue, frame - lane), 0) < queue.batch)
			stop = __shfl_sync(WARP_ALL, load_relaxed_system(job.stop), 0);
		if (lane < queue.batch && !stop)
			card_write_body(queue, frame, frame, queue.len);
		fence_release_system(); /* ARRIVED's partner */
		stop = stop || !card_await_word(job, queue, batches);
		if (stop)
			break;
		if (lane < queue.batch)
			card_write_tail(queue, frame, CQ_OP_RECEIVED, frame);
	}
	if (lane == 0)
		state->wire = state->completed = batches * queue.batch;
}

/* ---- frames that are copied: batch by batch, by one block ---- */

struct card_batch {
	uint32_t frames, lost, first;
	uint32_t base; /* completion of work entry 0 */
	uint64_t wire;
	bool over;
};

/* Thread 0: what comes now. */
__device__ __forceinline__ void card_next_batch(const struct card_job &job,
						const struct card_queue &queue,
						struct card_state *state, struct card_batch *batch)
{
	const uint32_t turn = (uint32_t)(state->wire * 2654435761u >> 7);
	uint32_t come = queue.ragged ? 1 + turn % queue.batch : queue.batch, posted;

	if (queue.limit && state->wire + come > queue.limit)
		come = (uint32_t)(queue.limit - state->wire);
	batch->first = (uint32_t)state->completed;
	batch->base = state->base;
	batch->wire = state->wire;
	for (;;) {
		batch->over = !come || state->failed || load_relaxed_system(job.stop);
		posted = queue.fault == CARD_BLIND ? come
						   : card_posted(queue, batch->first - batch->base);
		if (batch->over || posted || queue.loses)
			break;
	}
	batch->frames = batch->over ? 0 : min(come, posted);
	batch->lost = batch->over || !queue.loses ? 0 : come - batch->frames;
}

/* By a warp. */
__device__ __forceinline__ void card_copy(const struct card_queue &queue, uint32_t entry,
					  uint64_t wire)
{
	const struct card_frame from = queue.list[wire % queue.list_count];
	const uint32_t slot = queue.first_slot + (entry & (queue.slots - 1));
	uint4 *to = (uint4 *)(queue.frames + ((size_t)slot << queue.slot_shift));

	for (uint32_t i = threadIdx.x % 32; i < (from.len + 15) / 16; i += 32)
		to[i] = ((const uint4 *)queue.bytes)[from.at + i];
}

__device__ __forceinline__ void card_complete(const struct card_queue &queue,
					      const struct card_batch &batch, uint32_t i)
{
	const uint32_t frame = batch.first + i;
	const bool fault = frame == queue.fault_at;
	const uint32_t opcode = fault && queue.fault == CARD_ERROR ? CQ_OP_ERROR : CQ_OP_RECEIVED;
	const uint32_t place = frame - batch.base + (fault && queue.fault == CARD_ODD_COUNTER);

	card_write_tail(queue, frame, opcode, place);
}

/* A thread a frame. */
__device__ __forceinline__ void card_write_bodies(const struct card_queue &queue,
						  const struct card_batch &batch)
{
	const uint32_t frame = batch.first + threadIdx.x;
	const uint32_t fault = frame == queue.fault_at ? queue.fault : CARD_SOUND;
	uint32_t place = frame - batch.base, len;

	if (threadIdx.x >= batch.frames)
		return;
	len = queue.list[(batch.wire + threadIdx.x) % queue.list_count].len;
	if (fault == CARD_TOO_LONG)
		len = 1u << 20;
	if (fault == CARD_FILLER)
		len = CQ_STRIDE_FILLER;
	if (fault == CARD_ODD_ENTRY)
		place += 1u << queue.stride_shift;
	card_write_body(queue, frame, place, len);
}

/* A card that is broken: completions some microseconds too early. */
static __device__ __noinline__ void card_complete_early(const struct card_queue &queue,
							const struct card_batch &batch)
{
	__threadfence_system();
	if (threadIdx.x < batch.frames)
		card_complete(queue, batch, threadIdx.x);
	__nanosleep(5000);
}

/* What is posted comes back as errors. */
__device__ __forceinline__ void card_flush(const struct card_queue &queue, struct card_state *state)
{
	const uint32_t first = (uint32_t)state->completed;
	const uint32_t n = min(card_posted(queue, first - state->base), CARD_FLUSHES);

	for (uint32_t i = 0; i < n; i++) {
		card_write_body(queue, first + i, first + i - state->base, 0);
		__threadfence_system();
		card_write_tail(queue, first + i, CQ_OP_ERROR_SENDING, first + i - state->base);
	}
	state->completed += n;
	state->flushed += n;
	state->failed = 1;
}

__device__ __forceinline__ void
card_copying(const struct card_job &job, const struct card_queue &queue, struct card_state *state)
{
	__shared__ struct card_batch batch;

	for (;;) {
		if (threadIdx.x == 0)
			card_next_batch(job, queue, state, &batch);
		__syncthreads();
		if (batch.over)
			return;
		if (queue.fault == CARD_EARLY)
			card_write_bodies(queue, batch);
		if (queue.fault == CARD_EARLY || queue.fault == CARD_TORN)
			card_complete_early(queue, batch);
		for (uint32_t i = threadIdx.x / 32; i < batch.frames; i += CARD_THREADS / 32)
			card_copy(queue, batch.first - batch.base + i, batch.wire + i);
		if (queue.fault != CARD_EARLY)
			card_write_bodies(queue, batch);
		__threadfence_system(); /* ARRIVED's partner, with the barrier */
		__syncthreads();
		if (threadIdx.x < batch.frames && queue.fault != CARD_EARLY &&
		    queue.fault != CARD_TORN)
			card_complete(queue, batch, threadIdx.x);
		__syncthreads();
		if (threadIdx.x == 0) {
			const uint32_t before = queue.fault_at - batch.first;

			state->wire += batch.frames + batch.lost;
			state->completed += batch.frames;
			state->out_of_buffer += batch.lost;
			if (queue.fault == CARD_ERROR && before < batch.frames)
				card_flush(queue, state);
		}
		for (uint32_t ns = 0; ns < queue.pause_ns; ns += 1000)
			__nanosleep(min(queue.pause_ns, 1000));
		__syncthreads();
	}
}

#endif
