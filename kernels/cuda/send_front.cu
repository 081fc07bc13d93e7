/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender on the GPU: one block a queue, in the order of the job's rings. It goes round:
 *
 *   look		warp 0, all in one trip over PCIe: which of the oldest bursts are written (WRITTEN), which
 *			completions came (SENT), what the host wants
 *   decide		thread 0: which bursts are posted, and where; what is asked for next
 *   fill		a warp a burst: work entries; descriptors and requests
 *   tell		thread 0: record and register (POSTED, RUNG); others: PUBLISH of the bursts asked for
 *
 * The orderings are sq_front.h's and burst_ring.h's; those with the host are in kernels/send.h. Here
 * WRITTEN is COLLECT by ld.acquire.sys, POSTED and RUNG are each a fence at system scope behind a
 * barrier of the block, and SENT is ld.acquire.sys.
 */
#include "kernels/cuda/front.cuh"
#include "kernels/send.h"

#define SEND_LOOKS 20u /* bursts looked at, and asked for, in a round: lanes 0.. */
#define SEND_CQES 8u   /* completions: the lanes behind */
#define SEND_CQE_LANE SEND_LOOKS
#define SEND_CONTROL_LANE (SEND_CQE_LANE + SEND_CQES)
#define SEND_STOP_LANE (SEND_CONTROL_LANE + 1)
static_assert(SEND_STOP_LANE < 32, "a lane for each");
#define SEND_PLANS 128u /* those ahead, and those that are posted in the same round */
static_assert(SEND_PLANS >= KERNEL_SEND_AHEAD + SEND_LOOKS, "none is used twice");
#define SEND_NAP_NS 100u

/* A burst that the writers were asked for. */
struct send_plan {
	uint64_t block;	       /* where it is posted */
	uint32_t count, first; /* frames; first descriptor */
	uint32_t slot_at, size_at;
	uint32_t stream, marked; /* index of its stream */
	struct tx_request request;
};

struct send_shared {
	struct ring_shared ring;
	struct kernel_send send;
	struct send_place place;
	struct sq_mark mark[KERNEL_SEND_MARKS_MAX];
	struct send_plan plan[SEND_PLANS];
	struct sq_mark *host_mark; /* where `mark` is handed over */
	uint64_t wall_offset;	   /* from the GPU's clock to the time of day */
	uint64_t sent, bytes, stalled, starved, idle;
	uint64_t post_from, request_from; /* bursts */
	uint32_t written, control;	  /* what the look found */
	uint32_t posts, requests, resumes, leave;
};

/* ---- look: warp 0 ---- */

__device__ __forceinline__ void send_look(struct send_shared &s)
{
	const struct burst_ring_view &ring = s.ring.ring;
	struct sq_front *front = &s.place.front;
	const uint32_t lane = lane_index();
	const uint64_t burst = s.place.sending + lane;
	const uint64_t entry = front->cqe + (lane - SEND_CQE_LANE);
	uint64_t word = 0;
	/* Each lane loads when it can: a completion may be there beside an older look at the one before it. */
	bool written = false, gapless = true;

	if (lane < SEND_LOOKS && burst < s.place.burst) {
		word = load_acquire_system(&ring.result[burst & ring.burst_mask].done);
		written = burst_word_is(word, burst, s.ring.burst_bits);
	} else if (lane >= SEND_CQE_LANE && lane < SEND_CONTROL_LANE) {
		word = load_acquire_system(
			(const uint64_t *)(front->queue.cq +
					   (entry & (front->queue.cqes - 1)) * SQ_BLOCK +
					   SQ_CQE_LAST));
	} else if (lane == SEND_CONTROL_LANE) {
		word = load_relaxed_system(&s.send.words->control);
	} else if (lane == SEND_STOP_LANE) {
		word = load_relaxed_system(ring.stop);
	}
	s.written = __ffs(~__ballot_sync(WARP_ALL, written)) - 1;
	s.control = __shfl_sync(WARP_ALL, (uint32_t)word, SEND_STOP_LANE)
			    ? (uint32_t)GPU_SEND_STOP
			    : __shfl_sync(WARP_ALL, (uint32_t)word, SEND_CONTROL_LANE);
	for (uint32_t i = 0; i < SEND_CQES; i++) {
		const uint64_t last = __shfl_sync(WARP_ALL, word, SEND_CQE_LANE + i);

		gapless = gapless && lane == 0 && front->state == SQ_RUNS &&
			  sq_cqe_is_new(front, last);
		if (gapless) {
			const volatile uint8_t *cqe = sq_cqe_at(front);
			const uint32_t syndrome = last >> 60 == SQ_CQE_ERROR
							  ? (uint32_t)cqe[SQ_CQE_SYNDROME - 1] |
								    (uint32_t)cqe[SQ_CQE_SYNDROME]
									    << 8
							  : 0;

			sq_take(front, last, syndrome);
		}
	}
	__syncwarp();
}

/* ---- decide: thread 0 ---- */

/* Sums over `count` frames of the cycle from `at` on. */
__device__ __forceinline__ void sizes_sum(const struct kernel_send &send, uint32_t at,
					  uint32_t count, uint64_t *bytes, uint64_t *payload)
{
	const struct send_size first = send.size[at];
	const struct send_size all = send.size[send.size_count];
	const uint32_t rounds = (at + count) / send.size_count;
	const struct send_size last = send.size[(at + count) % send.size_count];

	*bytes = rounds * all.bytes + last.bytes - first.bytes;
	*payload = rounds * all.payload + last.payload - first.payload;
}

__device__ __forceinline__ void posts_decide(struct send_shared &s)
{
	struct sq_front *front = &s.place.front;
	const int each = (int)s.send.each;

	s.posts = 0;
	s.post_from = s.place.sending;
	while (s.posts < s.written && s.control == GPU_SEND_RUN) {
		struct send_plan *plan = &s.plan[s.place.sending % SEND_PLANS];
		uint64_t bytes, payload;

		if (!sq_fits(front, plan->count, each)) {
			s.stalled++;
			break;
		}
		plan->block = front->posted;
		plan->marked = (uint32_t)sq_mark_due(front, plan->count, each);
		sq_burst_add(front, plan->count, each, (int)plan->marked);
		sizes_sum(s.send, plan->size_at, plan->count, &bytes, &payload);
		s.sent += plan->count;
		s.bytes += bytes;
		s.place.stream[plan->stream].sent += plan->count;
		s.place.tail += plan->count;
		s.place.sending++;
		s.posts++;
	}
	if (s.written == 0 && s.place.sending != s.place.burst)
		s.starved++;
}

__device__ __forceinline__ bool request_decide(struct send_shared &s)
{
	const struct burst_ring_view &ring = s.ring.ring;
	struct send_place *place = &s.place;
	struct send_stream *stream = &place->stream[place->stream_at];
	struct send_plan *plan = &s.plan[place->burst % SEND_PLANS];
	const uint64_t left = s.send.limit - place->requested;
	const uint32_t to_end = ring.desc_mask + 1 - (place->head & ring.desc_mask);
	const uint32_t room = s.send.slot_count - (uint32_t)(place->taken - place->front.sent);
	uint32_t count = min(s.send.burst_max, to_end);
	uint64_t bytes, payload;

	count = left < count ? (uint32_t)left : count;
	if (count == 0 || place->burst - place->sending >= KERNEL_SEND_AHEAD)
		return false;
	count = min(count, room);
	if (count == 0) {
		s.stalled++;
		return false;
	}
	sizes_sum(s.send, place->size_at, count, &bytes, &payload);
	plan->count = count;
	plan->first = place->head;
	plan->slot_at = place->slot_next;
	plan->size_at = place->size_at;
	plan->stream = place->stream_at;
	plan->request.sequence = stream->sequence;
	plan->request.position = stream->position;
	plan->request.time_ns = global_ns() + s.wall_offset;
	plan->request.stream = s.send.stream_first + place->stream_at * s.send.stream_step;
	plan->request.end = 0;
	stream->sequence += count;
	stream->position += payload;
	place->requested += count;
	place->taken += count;
	place->head += count;
	place->slot_next = (place->slot_next + count) % s.send.slot_count;
	place->size_at = (place->size_at + count) % s.send.size_count;
	place->stream_at = place->stream_at + 1 == s.send.stream_count ? 0 : place->stream_at + 1;
	place->burst++;
	return true;
}

__device__ __forceinline__ void send_decide(struct send_shared &s)
{
	posts_decide(s);
	s.requests = 0;
	s.request_from = s.place.burst;
	while (s.requests < SEND_LOOKS && s.control == GPU_SEND_RUN && request_decide(s))
		s.requests++;
	s.idle += s.posts + s.requests == 0;
	s.leave = s.control == GPU_SEND_STOP ||
		  (s.place.requested == s.send.limit && s.place.sending == s.place.burst);
}

/* ---- fill: a warp a burst ---- */

__device__ __forceinline__ void post_fill(const struct send_shared &s, const struct send_plan &plan)
{
	const struct sq_queue &queue = s.place.front.queue;
	const int each = (int)s.send.each;
	const uint32_t entries = sq_entries(plan.count, each);

	for (uint32_t i = lane_index(); i < plan.count; i += 32) {
		const uint64_t slot = s.send.slot[(plan.slot_at + i) % s.send.slot_count];

		sq_write_frame(&queue, plan.block, each, i,
			       s.send.address + (slot << s.ring.ring.slot_shift) + s.send.offset,
			       s.send.size[(plan.size_at + i) % s.send.size_count].length);
	}
	for (uint32_t e = lane_index(); e < entries; e += 32)
		sq_write_entry(&queue, plan.block + sq_entry_block(each, e),
			       sq_entry_frames(plan.count, each, e),
			       plan.marked && e + 1 == entries ? SQ_ALWAYS : SQ_IF_FIRST_TO_FAIL);
}

/* The ring's descriptors and requests are the host's memory, and constant to its consumers only. */
__device__ __forceinline__ void request_fill(const struct send_shared &s,
					     const struct send_plan &plan, uint64_t burst)
{
	const struct burst_ring_view &ring = s.ring.ring;
	struct frame_desc *descs = (struct frame_desc *)ring.desc;

	for (uint32_t i = lane_index(); i < plan.count; i += 32) {
		struct frame_desc desc;

		desc.slot = s.send.slot[(plan.slot_at + i) % s.send.slot_count];
		desc.len = (uint16_t)s.send.size[(plan.size_at + i) % s.send.size_count].length;
		desc.offset = (uint16_t)s.send.offset;
		descs[(plan.first + i) & ring.desc_mask] = desc;
	}
	if (lane_index() == 0)
		((struct tx_request *)ring.request)[burst & ring.burst_mask] = plan.request;
}

/* ---- tell ---- */

/* POSTED, RUNG: thread 0, behind the barrier that all who wrote entries came to. */
__device__ __forceinline__ void send_ring(struct send_shared &s)
{
	struct sq_front *front = &s.place.front;

	fence_release_system(); /* POSTED: entries before the record */
	store_relaxed_system(front->queue.record, sq_record(front));
	front->rings++;
	if (front->queue.bell) {
		__threadfence_system(); /* RUNG: the record before the register */
		store_register(front->queue.bell, front->bell);
		return;
	}
	store_relaxed_system(&s.send.status->bell, front->bell);
	store_release_system(&s.send.status->rings, front->rings); /* PROXY */
}

__device__ __forceinline__ void send_count(const struct send_shared &s)
{
	struct send_status *status = s.send.status;

	store_relaxed_system(&status->sent, s.sent);
	store_relaxed_system(&status->bytes, s.bytes);
	store_relaxed_system(&status->stalled, s.stalled);
	store_relaxed_system(&status->starved, s.starved);
	store_relaxed_system(&status->idle, s.idle);
}

/* ---- with the host ---- */

__device__ __forceinline__ void words_copy(void *to, const void *from, uint32_t bytes)
{
	for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)
		((volatile uint32_t *)to)[i] = ((const volatile uint32_t *)from)[i];
}

/* RESUME, or the beginning. All threads. */
__device__ __forceinline__ void place_take(struct send_shared &s)
{
	words_copy(&s.place, s.send.place, sizeof(s.place));
	__syncthreads();
	if (threadIdx.x == 0)
		s.host_mark = s.place.front.mark;
	__syncthreads();
	words_copy(s.mark, s.host_mark,
		   sq_marks_max(&s.place.front.queue) * (uint32_t)sizeof(struct sq_mark));
	__syncthreads();
	if (threadIdx.x == 0)
		s.place.front.mark = s.mark;
	__syncthreads();
}

/* HANDED. All threads. */
__device__ __forceinline__ void place_give(struct send_shared &s, enum gpu_send_state state)
{
	words_copy(s.host_mark, s.mark,
		   sq_marks_max(&s.place.front.queue) * (uint32_t)sizeof(struct sq_mark));
	if (threadIdx.x == 0) {
		s.place.front.mark = s.host_mark;
		send_count(s);
	}
	__syncthreads();
	words_copy(s.send.place, &s.place, sizeof(s.place));
	__syncthreads();
	if (threadIdx.x == 0)
		store_release_system(&s.send.status->state, state);
	__syncthreads();
}

/* The card has stopped the queue: the host mends it. All threads. False: stopped. */
__device__ __forceinline__ bool send_mend(struct send_shared &s)
{
	place_give(s, GPU_SEND_FAILED);
	if (threadIdx.x == 0) {
		s.resumes++;
		while (load_acquire_system(&s.send.words->resumes) != s.resumes &&
		       load_relaxed_system(&s.send.words->control) != GPU_SEND_STOP &&
		       !load_relaxed_system(s.ring.ring.stop))
			__nanosleep(10 * SEND_NAP_NS);
		s.leave = load_acquire_system(&s.send.words->resumes) != s.resumes;
	}
	__syncthreads();
	if (s.leave)
		return false;
	place_take(s);
	if (threadIdx.x == 0)
		store_relaxed_system(&s.send.status->state, GPU_SEND_RUNS);
	return true;
}

__device__ __forceinline__ void send_round(struct send_shared &s)
{
	const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;

	if (warp == 0)
		send_look(s);
	if (threadIdx.x == 0)
		send_decide(s);
	__syncthreads();
	for (uint32_t j = warp; j < s.posts; j += warps)
		post_fill(s, s.plan[(s.post_from + j) % SEND_PLANS]);
	for (uint32_t j = warp; j < s.requests; j += warps)
		request_fill(s, s.plan[(s.request_from + j) % SEND_PLANS], s.request_from + j);
	__syncthreads();
	if (threadIdx.x == 0 && s.posts)
		send_ring(s);
	if (warp == 1 && lane_index() < s.requests) {
		const struct burst_ring_view &ring = s.ring.ring;
		const uint64_t burst = s.request_from + lane_index();
		const struct send_plan &plan = s.plan[burst % SEND_PLANS];
		struct burst_ready *ready = (struct burst_ready *)ring.ready;

		/* PUBLISH: descriptors and request before it; partner: the writers' TAKE */
		store_release_system(&ready[burst & ring.burst_mask].word,
				     burst_word(burst, s.ring.burst_bits, plan.count, plan.first));
	}
	if (threadIdx.x == 64 && s.posts)
		send_count(s);
	if (threadIdx.x == 0 && s.posts + s.requests == 0)
		__nanosleep(SEND_NAP_NS);
	__syncthreads();
}

__global__ void __launch_bounds__(SEND_THREADS) send_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct send_shared &s = *(struct send_shared *)memory;
	const bool stays = ring_enter(s.ring, job, true);

	words_copy(&s.send, &s.ring.job.sends[blockIdx.x], sizeof(s.send));
	__syncthreads();
	if (!stays)
		return;
	if (threadIdx.x == 0) {
		s.wall_offset = s.send.wall_ns - global_ns();
		s.sent = s.bytes = s.stalled = s.starved = s.idle = 0;
		s.resumes = 0;
		store_relaxed_system(&s.send.status->state, GPU_SEND_RUNS);
	}
	place_take(s);
	for (;;) {
		send_round(s);
		if (s.leave || (s.place.front.state != SQ_RUNS && !send_mend(s)))
			break;
	}
	place_give(s, GPU_SEND_ENDED);
}

struct kernel_program send_program(void)
{
	return { "send", (const void *)send_kernel, sizeof(struct send_shared) };
}
