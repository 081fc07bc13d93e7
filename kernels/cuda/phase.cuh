/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PRBS whose phase is not known, by a warp: phase_check() with the search, the way back to the
 * payload's first word and the count shared among the lanes.
 */
#ifndef GDRCAP_CUDA_PHASE_CUH
#define GDRCAP_CUDA_PHASE_CUH

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/prbs.cuh"
#include "kernels/cuda/staging.cuh"

/* What follows a payload that is right: its last 32 bits hold the whole state. */
__device__ __forceinline__ uint32_t phase_after(const struct pattern &pattern,
						const struct frame_span &payload, uint32_t bytes)
{
	return phase_step(&pattern, phase_word_at(&pattern, &payload, bytes - 4));
}

/* The vector that a matrix, one column a lane (lane b: what bit b contributes), makes of `bits`. */
__device__ __forceinline__ uint32_t warp_matrix_apply(uint32_t column, uint32_t bits)
{
	uint32_t out = bits >> lane_index() & 1 ? column : 0;

#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		out ^= __shfl_xor_sync(WARP_ALL, out, step);
	return out;
}

/*
 * `words` words back from `phase`, the same in all lanes. One word back is linear in the bits, so
 * its matrix is squared for each bit of `words`: a search may have come 2,300 words far.
 */
__device__ __forceinline__ uint32_t warp_phase_back(const struct pattern &pattern, uint32_t phase,
						    uint32_t words)
{
	uint32_t column = phase_step_back(&pattern, 1u << lane_index());

	for (; words; words >>= 1) {
		uint32_t square = 0;

		if (words & 1)
			phase = warp_matrix_apply(column, phase);
		for (uint32_t b = 0; b < 32; b++) {
			const uint32_t other = __shfl_sync(WARP_ALL, column, b);

			square ^= column >> b & 1 ? other : 0;
		}
		column = square;
	}
	return phase;
}

/* phase_count(), which see; lane 0 writes the result. False: too much is wrong. */
__device__ __forceinline__ bool warp_phase_count(const struct device_job &job, uint32_t phase,
						 const struct frame_span &payload, uint32_t bytes,
						 uint32_t payload_offset,
						 struct frame_result *result)
{
	const struct pattern &pattern = job.pattern;
	const uint32_t invert = 0u - pattern.invert, last = (bytes - 1) / 4,
		       rest = bytes - 4 * last;
	uint32_t state = prbs_by_lane(job.prbs_tables, lane_index(), phase), state_last = state;
	struct warp_wrong wrong;

	const auto got = [&](uint32_t o) { return frame_span_byte(&payload, o); };

	wrong = warp_compare(got, bytes, bytes, [&](uint32_t o) {
		const uint32_t word = pattern_swap32(state ^ invert);

		state_last = o == 4 * last ? state : state_last;
		state = prbs_by_step(job.prbs_tables + PRBS_LANE_WORDS, state);
		return word;
	});
	if (wrong.bits > phase_wrong_max(bytes))
		return false;
	state_last = __shfl_sync(WARP_ALL, state_last, (int)(last % 32));
	__syncwarp(); /* all have read from the result what they need */
	if (lane_index() == 0) {
		result->verdict = wrong.bits ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID;
		result->payload_bytes = bytes;
		result->wrong_bits = wrong.bits;
		result->offset =
			wrong.bits ? (uint16_t)(payload_offset + wrong.first) : (uint16_t)0;
		result->expected = (uint8_t)wrong.expected;
		result->got = (uint8_t)wrong.got;
		result->phase_first = phase;
		result->phase_next = rest == 4 ? phase_step(&pattern, state_last)
					       : phase_skip(&pattern, state_last, 8 * rest);
		result->detail = 0;
	}
	return true;
}

/* phase_check(), which see. */
template <bool split_or_stale>
__device__ __noinline__ void warp_phase_check(const struct device_job &job,
					      struct received<split_or_stale> from, uint32_t bytes,
					      uint32_t payload_offset, struct frame_result *result)
{
	const struct pattern &pattern = job.pattern;
	const struct frame_span payload = received_span(from);
	const uint32_t words = bytes / 4;
	uint32_t tries = 0;

	for (uint32_t first = 0; first < words && tries < PHASE_TRIES; first += 32) {
		const uint32_t mine = first + lane_index();
		const bool starts = mine < words && phase_is_start(&pattern, &payload, words, mine);
		uint32_t found = __ballot_sync(WARP_ALL, starts);

		for (; found && tries < PHASE_TRIES; found &= found - 1, tries++) {
			const uint32_t k = first + __ffs(found) - 1;
			const uint32_t phase = warp_phase_back(
				pattern, phase_word_at(&pattern, &payload, 4 * k), k);

			if (warp_phase_count(job, phase, payload, bytes, payload_offset, result))
				return;
		}
	}
	__syncwarp(); /* as above */
	if (lane_index() == 0)
		phase_unlocked(bytes, payload_offset, result);
}

#endif
