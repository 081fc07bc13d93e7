/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A front: one block polls the completion queue of a receive queue and publishes bursts. Its warps:
 *
 *   poller	takes bursts in turn. It waits for its turn, and meanwhile looks whether its burst's frames are
 *		there already, where they would be if all bursts before it were full; with the turn it knows from which
 *		frame on, decides how many, hands the turn on, and only then waits for memory: ARRIVED,
 *		descriptors, PUBLISH. So those waits overlap.
 *   host	reads what the host wants over PCIe, 1.4 us each time, for the keeper.
 *   keeper	takes freed bursts back, posts their slots, says how many bursts have room, tells of the state.
 *
 * Orderings; those of the burst ring are in burst_ring.h, those with the host in kernels/front.h:
 *
 * ARRIVED: a poller's loads, at system scope, of completions' last words, with the owner bit in them: acquire loads of
 * few, relaxed ones and then fence.acquire.sys of many. Then its loads of the rest of the completions, and PUBLISH.
 * Partner: the card writes payload, then completion, owner bit last, and what a card writes to a GPU is seen
 * there in its order where the GPU says so (cudaDevAttrGPUDirectRDMAWritesOrdering). Without it lengths of the
 * lap before would be taken, and payloads be checked before they are there.
 *
 * PUBLISH: as in burst_ring.h, at GPU scope, for producer and consumer are on one.
 *
 * FREE: the keeper's ld.acquire.gpu of free_word. Partner: a checker's done warp, after its last access.
 *
 * REPOST: the keeper's fence.release.sys after FREE and LEASE, then one relaxed store of the doorbell record. Partner: the
 * card reads the record before it writes into the slots that it says are posted. Without the fence it
 * could write into a slot that is still being read.
 */
#ifndef GDRCAP_CUDA_FRONT_CUH
#define GDRCAP_CUDA_FRONT_CUH

#include "kernels/cuda/ring.cuh"
#include "kernels/front.h"
#include "kernels/kernel_job.h"

#define FRONT_HELPERS 2u /* warps that do not poll */
#define FRONT_WARPS_MAX 32u
#define FRONT_LANES 32u
#define FRONT_ROUNDS (BURST_FRAMES_MAX / FRONT_LANES) /* frames a lane */
#define FRONT_STATUS_BURSTS 64u
#define FRONT_NAP_NS 20u
#define FRONT_LOOKS_TOLD 1024u /* by a poller that finds nothing: about a ms */
#define FRONT_PASSED 8u /* so often in a row a later completion was there, and not the next */

/* In leave of struct front_shared. */
enum front_leave {
	FRONT_STAYS,
	FRONT_EMPTY, /* drained */
	FRONT_BROKEN,
	FRONT_GONE, /* the host says so */
};

struct front_shared {
	struct ring_shared ring;
	struct kernel_front front;
	/* Turn << 32 | number of the frame that it begins with. Writer: the poller that has the turn. Burst
	 * front.burst + turn is the turn's. */
	uint64_t turn;
	/* enum front_leave. Writers: the poller that has the turn, which it then keeps, so that no burst is
	 * published that the keeper does not wait for; of FRONT_GONE the host warp. */
	uint32_t leave;
	uint32_t fails, broken;	   /* a poller tells why; has told */
	uint32_t left;		   /* pollers that have ended; writers: they, by atomics */
	uint32_t freed;		   /* turns; writer: keeper */
	uint32_t room_turn;	   /* turns before this one may be published; writer: keeper */
	uint32_t room_frame;	   /* and frames before this one */
	uint32_t phase;		   /* writer: host warp */
	uint32_t collected, lease; /* turns; writer: host warp */
	uint32_t leases;	   /* 0: none is ever held; writer: host warp */
	uint32_t posted;	   /* frames before this one have a slot; writer: keeper */
	uint32_t over;		   /* writer: keeper: the host's words are not wanted any more */
	/* Writers: pollers, by atomics. */
	unsigned long long frames, bytes, passes, empty;
	uint32_t marks[KERNEL_FRONT_BURSTS_MAX /
		       32]; /* of burst slot: mark of its last INLINE burst */
};

/* Shared memory that others write while this warp looks at it: by each lane; the same in all. */
template <typename T> __device__ __forceinline__ T look_alone(const T &at)
{
	return *(const volatile T *)&at;
}

template <typename T> __device__ __forceinline__ T look(const T &at)
{
	return __shfl_sync(WARP_ALL, look_alone(at), 0);
}

/* Four bytes of a completion, past L1. */
__device__ __forceinline__ uint32_t cqe_word(const struct cq_front_queue &queue, uint32_t frame,
					     uint32_t at)
{
	return load_relaxed_system_once(queue.cq + cq_at(frame, queue.cq_entries) + at);
}

/* The last word of that of frame `frame`. */
__device__ __forceinline__ uint32_t cqe_tail(const struct kernel_front &front, uint32_t frame)
{
	return cqe_word(front.queue, frame, CQ_TAIL_AT);
}

/* ARRIVED of one: what is read of it, and of its frame, comes after. */
__device__ __forceinline__ uint32_t cqe_tail_acquire(const struct kernel_front &front,
						     uint32_t frame)
{
	return load_acquire_system_global(front.queue.cq + cq_at(frame, front.queue.cq_entries) +
					  CQ_TAIL_AT);
}

__device__ __forceinline__ bool tail_is_frame(const struct kernel_front &front, uint32_t tail,
					      uint32_t frame)
{
	return (tail & CQ_TAIL_MASK) ==
	       cq_tail_frame(frame, front.queue.cq_entries,
			     cq_counter(frame - front.first, front.queue.stride_shift));
}

#endif
