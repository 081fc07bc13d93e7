/* SPDX-License-Identifier: BSD-3-Clause */
/* The front's kernel: a block a receive queue, in the order of the job's rings. */
#include "kernels/cuda/front_keep.cuh"
#include "kernels/cuda/front_poll.cuh"

/* A front of a ring that was used before goes on with its marks. */
__device__ __forceinline__ void marks_read(struct front_shared &s)
{
	const struct burst_ring_view &ring = s.ring.ring;

	for (uint32_t slot = threadIdx.x; slot <= (ring.burst_mask | 31); slot += blockDim.x) {
		const bool mark =
			slot <= ring.burst_mask && (ring.ready[slot].desc[0] & BURST_DESC_MARK);
		const uint32_t word = __ballot_sync(WARP_ALL, mark);

		if (lane_index() == 0)
			s.marks[slot / 32] = word;
	}
}

__global__ void __launch_bounds__(FRONT_WARPS_MAX * 32) front_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct front_shared &s = *(struct front_shared *)memory;
	const uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
	bool stays = ring_enter(s.ring, job, false);

	for (uint32_t i = threadIdx.x; i < sizeof(s.front) / 4; i += blockDim.x)
		((uint32_t *)&s.front)[i] = ((const uint32_t *)&s.ring.job.fronts[blockIdx.x])[i];
	__syncthreads();
	if (threadIdx.x == 0) {
		s.turn = s.front.next;
		s.leave = FRONT_STAYS;
		s.fails = s.broken = s.left = 0;
		s.freed = s.lease = 0;
		/* until the host's words were read once, nothing has room */
		s.collected = 0u - (s.ring.ring.burst_mask + 1);
		s.phase = FRONT_RUN;
		s.room_turn = 0;
		s.room_frame = s.front.next;
		s.posted = s.front.next;
		s.frames = s.bytes = s.passes = s.empty = 0;
		s.leases = 1;
		s.over = 0;
	}
	marks_read(s);
	__syncthreads();
	if (!stays)
		return;
	if (warp == 0)
		front_keeper(s, warps - FRONT_HELPERS);
	else if (warp == 1)
		front_host(s);
	else
		front_poller(s, warp - FRONT_HELPERS, warps - FRONT_HELPERS);
}

struct kernel_program front_program(void)
{
	return { "front", (const void *)front_kernel, sizeof(struct front_shared) };
}
