/* SPDX-License-Identifier: BSD-3-Clause */
/* What the work threads of a block do together. */
#ifndef GDRCAP_CUDA_BLOCK_CUH
#define GDRCAP_CUDA_BLOCK_CUH

#include "ring.cuh"

/*
 * Inclusive sum over work threads 0..255 of one value each, by warps and then by the eight warps'
 * totals. All work threads call it; those from 256 on pass 0 and get the total. `totals` is shared
 * and free again after the next BARRIER_WORK.
 */
__device__ __forceinline__ uint64_t block_scan(uint64_t value, uint64_t totals[8], uint32_t thread,
					       uint32_t work_threads)
{
	const uint32_t lane = thread & 31, warp = thread >> 5;

#pragma unroll
	for (uint32_t step = 1; step < 32; step *= 2) {
		const uint64_t other = __shfl_up_sync(WARP_ALL, value, step);

		if (lane >= step)
			value += other;
	}
	if (lane == 31 && warp < 8)
		totals[warp] = value;
	barrier_sync(BARRIER_WORK, work_threads);
#pragma unroll
	for (uint32_t w = 0; w < 8; w++)
		value += w < warp ? totals[w] : 0;
	return value;
}

__device__ __forceinline__ uint32_t warp_sum(uint32_t value)
{
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		value += __shfl_xor_sync(WARP_ALL, value, step);
	return value;
}

__device__ __forceinline__ uint32_t warp_min(uint32_t value)
{
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		value = min(value, __shfl_xor_sync(WARP_ALL, value, step));
	return value;
}

/* The next item of a list that the block's warps share, for the whole warp. */
__device__ __forceinline__ uint32_t warp_next(uint32_t *next)
{
	uint32_t item = 0;

	if (lane_index() == 0)
		item = atomicAdd(next, 1);
	return __shfl_sync(WARP_ALL, item, 0);
}

#endif
