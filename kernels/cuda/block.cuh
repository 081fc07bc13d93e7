/* SPDX-License-Identifier: BSD-3-Clause */
/* What the work threads of a block do together. */
#ifndef GDRCAP_CUDA_BLOCK_CUH
#define GDRCAP_CUDA_BLOCK_CUH

#include "kernels/cuda/prbs.cuh"
#include "kernels/cuda/ring.cuh"

/*
 * Inclusive sum over work threads 0..255 of one value each, by warps and then by the eight warps'
 * totals. All work threads of a group call it; those from 256 on pass 0 and get the total. `totals`
 * is shared and free again after the group's next BARRIER_WORK.
 */
__device__ __forceinline__ uint64_t block_scan(uint64_t value, uint64_t totals[8], uint32_t thread,
					       uint32_t work_threads, uint32_t group = 0)
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
	barrier_sync(BARRIER_WORK + group, work_threads);
#pragma unroll
	for (uint32_t w = 0; w < 8; w++)
		value += w < warp ? totals[w] : 0;
	return value;
}

__device__ __forceinline__ uint32_t warp_sum(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_add_sync(WARP_ALL, value);
#else
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		value += __shfl_xor_sync(WARP_ALL, value, step);
	return value;
#endif
}

__device__ __forceinline__ uint32_t warp_min(uint32_t value)
{
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		value = min(value, __shfl_xor_sync(WARP_ALL, value, step));
	return value;
}

/* What a warp found; the same in all lanes. */
struct warp_wrong {
	uint32_t bits, first;	/* wrong bits; offset of the first wrong byte */
	uint32_t expected, got; /* that byte; 0 when nothing is wrong */
};

/*
 * A warp counts what is wrong with a payload of `bytes` bytes, of which those after the first
 * `have` are zeros that are not there; payload(o) gives the byte at o. expected(o) gives the four
 * bytes that belong at o; a lane is asked for each 32nd word, in order, the first time for word
 * number lane.
 */
template <typename Payload, typename Expected>
__device__ __forceinline__ struct warp_wrong warp_compare(Payload payload, uint32_t have,
							  uint32_t bytes, Expected expected)
{
	struct warp_wrong found = { 0, 0xffffffffu, 0, 0 };
	uint32_t least;

	for (uint32_t o = 4 * lane_index(); o < bytes; o += 128) {
		const uint32_t count = min(4u, bytes - o), want = expected(o);
		uint32_t got = 0, wrong;

		for (uint32_t b = 0; b < count && o + b < have; b++)
			got |= (uint32_t)payload(o + b) << (8 * b);
		wrong = (want ^ got) & byte_mask(0, (int)count);
		found.bits += __popc(wrong);
		if (wrong && found.first == 0xffffffffu) {
			const uint32_t byte = (__ffs(wrong) - 1) / 8;

			found.first = o + byte;
			found.expected = want >> (8 * byte) & 0xff;
			found.got = got >> (8 * byte) & 0xff;
		}
	}
	found.bits = warp_sum(found.bits);
	least = warp_min(found.first);
	if (found.bits) {
		const int owner = (int)(least / 4 % 32);

		found.expected = __shfl_sync(WARP_ALL, found.expected, owner);
		found.got = __shfl_sync(WARP_ALL, found.got, owner);
	}
	found.first = least;
	return found;
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
