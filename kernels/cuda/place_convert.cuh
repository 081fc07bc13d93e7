/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads converted into images by a warp: a lane a step of kernels/place_convert.h, so that stores lie beside
 * each other. */
#ifndef GDRCAP_CUDA_PLACE_CONVERT_CUH
#define GDRCAP_CUDA_PLACE_CONVERT_CUH

#include "kernels/place.h"
#include "kernels/place_convert.h"

/* Steps that a lane has under way. */
#define STEPS_AT_ONCE 4u

/* Bytes that are read in whole words: those that lie in `first` to `last` and no others. */
struct convert_words {
	const uint32_t *first, *last;
};

/* Word of these that `at` lies in; of those in front and behind, the nearest: what it says is left out. */
__device__ __forceinline__ uint32_t convert_word(const struct convert_words &words, uintptr_t at)
{
	const uintptr_t low = (uintptr_t)words.first, high = (uintptr_t)words.last;
	const uintptr_t word = at - at % 4;

	return *(const uint32_t *)(word < low ? low : word > high ? high : word);
}

/* The `needs` bytes at `at`; what is above them is anything. */
__device__ __forceinline__ uint64_t convert_load(const struct convert_words &words, uintptr_t at,
						 uint32_t needs)
{
	const uint32_t shift = (uint32_t)at % 4;
	const uint32_t w0 = convert_word(words, at);
	const uint32_t w1 = shift + needs > 4 ? convert_word(words, at + 4) : 0;
	const uint32_t w2 = shift + needs > 8 ? convert_word(words, at + 8) : 0;

	return (uint64_t)__funnelshift_r(w1, w2, 8 * shift) << 32 |
	       __funnelshift_r(w0, w1, 8 * shift);
}

/* Bytes [low, high) of a step. */
__device__ __forceinline__ void convert_store(uint8_t *to, uint64_t step, uint32_t low,
					      uint32_t high)
{
	if (high - low == PLACE_CONVERT_STEP && (uintptr_t)to % PLACE_CONVERT_STEP == 0) {
		*(uint64_t *)to = step;
		return;
	}
	for (uint32_t b = low; b < high; b++)
		to[b] = (uint8_t)(step >> 8 * b);
}

/* Not 0: bytes [low, high) of a step are not those at `to`. */
__device__ __forceinline__ uint32_t convert_differs(const uint8_t *to, uint64_t step, uint32_t low,
						    uint32_t high)
{
	uint32_t differs = 0;

	for (uint32_t b = low; b < high; b++)
		differs |= ((const volatile uint8_t *)to)[b] ^ (uint8_t)(step >> 8 * b);
	return differs;
}

/*
 * A warp places `bytes` bytes as sent, whole groups, in the image, or compares them: from `place` on, which is of
 * bytes as sent, too. Steps begin at the image's multiples of 8, so the first and the last may be parts. Returns not 0
 * to a lane whose bytes differ.
 */
template <bool compares>
__device__ __forceinline__ uint32_t warp_convert_steps(const struct image_layout &layout,
						       uint8_t *image, uint64_t place,
						       const uint8_t *from, uint32_t bytes)
{
	uint32_t differs = 0;
	const uint32_t convert = layout.convert, needs = place_convert_needs(convert);
	const uint32_t from_group = layout.convert_from, to_group = layout.convert_to;
	uint8_t *to = image + image_in_buffer(&layout, place);
	/* a caller's buffer may lie anywhere: then steps begin where the part does */
	const uint32_t odd = (uint32_t)((uintptr_t)to % PLACE_CONVERT_STEP);
	const uint32_t skip = odd % to_group ? 0 : odd;
	const uint32_t end = skip + bytes / from_group * to_group;
	const struct convert_words words = {
		(const uint32_t *)(from - (uintptr_t)from % 4),
		(const uint32_t *)(from + bytes - 1 - (uintptr_t)(from + bytes - 1) % 4),
	};
	const uintptr_t begin = (uintptr_t)from - skip / to_group * from_group;

	for (uint32_t first = (threadIdx.x & 31) * PLACE_CONVERT_STEP; first < end;
	     first += STEPS_AT_ONCE * 32 * PLACE_CONVERT_STEP) {
		uint64_t in[STEPS_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < STEPS_AT_ONCE; k++) {
			const uint32_t at = first + k * 32 * PLACE_CONVERT_STEP;

			in[k] = at < end ? convert_load(words,
							begin + at / PLACE_CONVERT_STEP * needs,
							needs)
					 : 0;
		}
#pragma unroll
		for (uint32_t k = 0; k < STEPS_AT_ONCE; k++) {
			const uint32_t at = first + k * 32 * PLACE_CONVERT_STEP;

			if (at >= end)
				continue;
			if constexpr (compares)
				differs |= convert_differs(
					to - skip + at, place_convert_step(convert, in[k]),
					at ? 0 : skip, min(end - at, PLACE_CONVERT_STEP));
			else
				convert_store(to - skip + at, place_convert_step(convert, in[k]),
					      at ? 0 : skip, min(end - at, PLACE_CONVERT_STEP));
		}
	}
	return differs;
}

static __device__ __noinline__ void warp_convert(const struct image_layout &layout, uint8_t *image,
						 uint64_t place, const uint8_t *from,
						 uint32_t bytes)
{
	(void)warp_convert_steps<false>(layout, image, place, from, bytes);
}

#endif
