/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PRBS in a kernel, by 32-bit words with the first bit in bit 31.
 *
 * Checking: a bit of x^n + x^m + 1 is the xor of the bits n and m before it (inverted in an
 * inverted sequence). So a payload is right exactly when its first 32 bits are right and every
 * later bit agrees with two received bits at most 31 before it: those lie in the word itself and
 * the word before, wherever the words are cut. No jump, no second read, and alignment does not
 * matter.
 *
 * Writing: 32 bits hold the whole state (n <= 31), and going on by a fixed number of bits is linear
 * in it: eight lookups by nibble.
 */
#ifndef GDRCAP_CUDA_PRBS_CUH
#define GDRCAP_CUDA_PRBS_CUH

#include "pattern/pattern.h"

struct prbs_taps {
	uint32_t far_shift, near_shift; /* 32 - n, 32 - m */
	uint32_t invert;		/* all ones in an inverted sequence */
};

__device__ __forceinline__ struct prbs_taps prbs_taps_of(const struct pattern &pattern)
{
	return { 32 - pattern.degree, 32 - pattern.tap, 0u - pattern.invert };
}

/* The bits of `word` that do not follow from it and the word before; both with bit 31 first. */
__device__ __forceinline__ uint32_t prbs_error(struct prbs_taps taps, uint32_t before,
					       uint32_t word)
{
	return word ^ __funnelshift_l(word, before, taps.far_shift) ^
	       __funnelshift_l(word, before, taps.near_shift) ^ taps.invert;
}

/*
 * Mask of the bytes low .. high - 1 of a little-endian word (byte 0 in bits 7..0); bounds may lie
 * outside 0..4, and high below low means none.
 */
__device__ __forceinline__ uint32_t byte_mask(int low, int high)
{
	const uint32_t from = low <= 0 ? 0xffffffffu : low >= 4 ? 0 : 0xffffffffu << (8 * low);
	const uint32_t to = high >= 4 ? 0xffffffffu : high <= 0 ? 0 : ~(0xffffffffu << (8 * high));

	return from & to;
}

/* The words of the tables are indexed by nibble, value and, in the first, lane: no bank conflict.
 */
__device__ __forceinline__ uint32_t prbs_by_lane(const uint32_t *table, uint32_t lane,
						 uint32_t word)
{
	uint32_t out = 0;

#pragma unroll
	for (uint32_t n = 0; n < 8; n++)
		out ^= table[(n * 16 + (word >> (4 * n) & 15)) * 32 + lane];
	return out;
}

__device__ __forceinline__ uint32_t prbs_by_step(const uint32_t *table, uint32_t word)
{
	uint32_t out = 0;

#pragma unroll
	for (uint32_t n = 0; n < 8; n++)
		out ^= table[n * 16 + (word >> (4 * n) & 15)];
	return out;
}

#endif
