/* SPDX-License-Identifier: BSD-3-Clause */
/* Step 3 of a checker: payloads longer than the staging buffer. */
#ifndef GDRCAP_CUDA_CHECK_LONG_CUH
#define GDRCAP_CUDA_CHECK_LONG_CUH

#include "kernels/cuda/check_state.cuh"
#include "kernels/cuda/phase.cuh"

/* Pieces of a long payload that a lane has under way. */
#define LONG_AT_ONCE 4u

template <bool split_or_stale> struct long_payload {
	struct received<split_or_stale> payload;
	uint32_t bytes;
	struct pattern_place place;
};

/* All ones but for the first `bits` bits, of which there may be none or more than 32. */
__device__ __forceinline__ uint32_t bits_behind(int bits)
{
	return __funnelshift_rc(0xffffffffu, 0, (uint32_t)max(bits, 0));
}

/*
 * Of a long payload the thread that reads the header checks what is staged, and a warp the pieces
 * behind that: so each byte is read once, which counts where reading goes over PCIe. Pieces are
 * counted from the payload's first.
 */
template <bool split_or_stale> struct prbs_span {
	struct received<split_or_stale> payload;
	uint32_t begin, count; /* pieces */
	uint32_t end;	       /* bytes, from the first piece's beginning */
	uint32_t before;       /* the last word before them */
};

/* `start`: of the payload in its frame, whose beginning is in `staging`. */
template <bool split_or_stale>
__device__ __forceinline__ struct prbs_span<split_or_stale>
prbs_span_of(const struct received<split_or_stale> &payload, const uint32_t *staging,
	     uint32_t start, uint32_t bytes) {
	const uint32_t end = staging_shift(payload.at) + bytes;
	const uint32_t at = staging_shift(payload.at - start) + start; /* in the staging buffer */

	return { payload, staging_size<split_or_stale>::pieces - at / PIECE_BYTES,
		 (end + PIECE_BYTES - 1) / PIECE_BYTES, end,
		 pattern_swap32(staging[staging_size<split_or_stale>::bytes / 4 - 1]) };
}

/* Asks for the pieces from `first` on, each lane for every 32nd. */
template <bool split_or_stale>
__device__ __forceinline__ void prbs_load(const struct prbs_span<split_or_stale> &span,
					  uint32_t first, uint4 piece[LONG_AT_ONCE])
{
#pragma unroll
	for (uint32_t k = 0; k < LONG_AT_ONCE; k++) {
		const uint32_t p = first + 32 * k + lane_index();

		piece[k] = make_uint4(0, 0, 0, 0);
		if (p < span.count)
			piece[k] = received_piece(span.payload, p);
	}
}

/* Not 0 where a lane's pieces do not follow the recurrence. `carry`: the last word before them. */
template <bool split_or_stale>
__device__ __forceinline__ uint32_t prbs_wrong(struct prbs_taps taps,
					       const struct prbs_span<split_or_stale> &span,
					       uint32_t first, const uint4 piece[LONG_AT_ONCE],
					       uint32_t *carry)
{
	const uint32_t lane = lane_index(), neighbour = (lane + 31) & 31;
	uint32_t wrong = 0;

#pragma unroll
	for (uint32_t k = 0; k < LONG_AT_ONCE; k++) {
		const uint32_t at = first + 32 * k;
		const uint32_t w0 = pattern_swap32(piece[k].x), w1 = pattern_swap32(piece[k].y);
		const uint32_t w2 = pattern_swap32(piece[k].z), w3 = pattern_swap32(piece[k].w);
		uint32_t e0, e1, e2, e3, before;

		if (at >= span.count)
			break;
		/* lanes read pieces next to each other: the word before a lane's comes from its
		 * neighbour; lane 0 takes what lane 31 had one round ago */
		before = __shfl_sync(WARP_ALL, lane == 31 ? *carry : w3, (int)neighbour);
		*carry = w3;
		e0 = prbs_error(taps, before, w0);
		e1 = prbs_error(taps, w0, w1);
		e2 = prbs_error(taps, w1, w2);
		e3 = prbs_error(taps, w2, w3);
		if (at + 32 >= span.count) { /* the payload ends in one of these */
			const int bits = 8 * ((int)span.end - (int)(PIECE_BYTES * (at + lane)));

			e0 &= ~bits_behind(bits);
			e1 &= ~bits_behind(bits - 32);
			e2 &= ~bits_behind(bits - 64);
			e3 &= ~bits_behind(bits - 96);
		}
		wrong |= e0 | e1;
		wrong |= e2 | e3;
	}
	return wrong;
}

/*
 * A warp: 0 in all lanes when the payload's pieces follow the recurrence. The first ones were asked
 * for.
 */
template <bool split_or_stale>
__device__ __forceinline__ uint32_t warp_check_prbs(struct prbs_taps taps,
						    const struct prbs_span<split_or_stale> &span,
						    uint4 piece[LONG_AT_ONCE])
{
	uint32_t carry = span.before;
	uint32_t wrong = prbs_wrong(taps, span, span.begin, piece, &carry);

	for (uint32_t first = span.begin + 32 * LONG_AT_ONCE; first < span.count;
	     first += 32 * LONG_AT_ONCE) {
		prbs_load(span, first, piece);
		wrong |= prbs_wrong(taps, span, first, piece, &carry);
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* The same for any pattern: lanes compute the words that they read. */
template <bool split_or_stale>
__device__ __forceinline__ uint32_t
warp_check_words(const struct pattern &pattern, const struct long_payload<split_or_stale> &frame)
{
	const uint32_t shift = (uint32_t)(uintptr_t)frame.payload.at % 4;
	const uint32_t count = (shift + frame.bytes + 3) / 4;
	uint32_t wrong = 0;

#pragma unroll 2
	for (uint32_t w = lane_index(); w < count; w += 32) {
		const uint32_t got = received_word(frame.payload, w);

		if (w) {
			const uint32_t o = 4 * w - shift;

			wrong |= (got ^ pattern_word(&pattern, &frame.place, o)) &
				 byte_mask(0, (int)(frame.bytes - o));
		} else {
			wrong |= (got ^ pattern_word(&pattern, &frame.place, 0) << (8 * shift)) &
				 byte_mask((int)shift, (int)(shift + frame.bytes));
		}
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* A warp counts what is wrong with a payload by the definition. */
template <bool split_or_stale>
__device__ __forceinline__ void warp_count(const struct pattern &pattern,
					   const struct long_payload<split_or_stale> &frame,
					   uint32_t start, struct frame_result *result)
{
	const struct frame_span payload = received_span(frame.payload);
	const struct warp_wrong wrong = warp_compare(
		[&](uint32_t o) { return frame_span_byte(&payload, o); }, frame.bytes, frame.bytes,
		[&](uint32_t o) { return pattern_word(&pattern, &frame.place, o); });

	if (wrong.bits && lane_index() == 0) {
		result->wrong_bits = wrong.bits;
		result->offset = (uint16_t)(start + wrong.first);
		result->expected = (uint8_t)wrong.expected;
		result->got = (uint8_t)wrong.got;
		result->verdict = FRAME_DAMAGED_PAYLOAD;
	}
}

/* Step 3 of a payload whose phase is not known. */
template <bool split_or_stale>
__device__ __noinline__ void
check_long_phase(const struct device_job &job, struct received<split_or_stale> payload,
		 uint32_t bytes, uint32_t start, uint32_t wrong, struct frame_result *result)
{
	if (wrong)
		warp_phase_check<split_or_stale>(job, payload, bytes, start, result);
	else if (lane_index() == 0)
		result->phase_next = phase_after(job.pattern, received_span(payload), bytes);
}

/* Step 3 of what is rare, or no PRBS: compares words, and counts what is wrong. */
template <bool any_format, bool split_or_stale>
__device__ __noinline__ void
check_long_words(const struct device_job &job, struct received<split_or_stale> payload,
		 uint32_t start, uint64_t position, uint32_t wrong, struct frame_result *result)
{
	struct long_payload<split_or_stale> frame;

	frame.payload = payload;
	frame.bytes = result->payload_bytes;
	frame.place.position = position;
	frame.place.sequence =
		any_format ? frame_number(&job.layout, result->sequence) : result->sequence;
	frame.place.stream = result->stream;
	if (wrong || warp_check_words(job.pattern, frame))
		warp_count(job.pattern, frame, start, result);
}

/* The payload of frame i. */
__device__ __forceinline__ struct received<false>
long_payload_of(const struct check_shared<false> &, const struct check_group<false> &g,
		const struct burst_in &, uint32_t, uint32_t i) {
	return { g.payload[i] };
}

__device__ __forceinline__ struct received<true>
long_payload_of(const struct check_shared<true> &s, const struct check_group<true> &g,
		const struct burst_in &in, uint32_t start, uint32_t i) {
	return received_from<true>(frame_placed(s.ring, s, in, i).at, g.staging[i], start);
}

/* Step 3 of the frame of an entry of the list. `wrong`: something is. */
template <bool any_format, bool split_or_stale>
__device__ __forceinline__ void check_long_rest(const struct device_job &job,
						struct check_group<split_or_stale> &g,
						const struct received<split_or_stale> &payload,
						uint32_t start, uint32_t i, uint32_t wrong)
{
	struct frame_result *result = &g.records.result[i];

	if (any_format && frame_is_self_phase(&job.layout, &job.pattern))
		check_long_phase<split_or_stale>(job, payload, result->payload_bytes, start, wrong,
						 result);
	else if (wrong || !pattern_is_prbs(job.pattern.kind))
		check_long_words<any_format, split_or_stale>(job, payload, start, g.position[i],
							     wrong, result);
}

/* Step 3. */
template <bool any_format, bool split_or_stale>
__device__ __noinline__ void check_longs(uint32_t group, uint32_t turn, uint32_t thread)
{
	struct check_shared<split_or_stale> &s = check_here<split_or_stale>();
	struct check_group<split_or_stale> &g = s.group[group];
	const struct burst_in &in = s.ring.in[turn];
	const struct device_job &job = s.ring.job;
	const uint32_t start =
		any_format ? frame_payload_offset(&job.layout)
			   : job.layout.own_offset + (job.layout.raw ? 0 : FRAME_HEADER_BYTES);
	const uint32_t longs = g.longs, warps = s.ring.work_threads / 32;
	const bool prbs = pattern_is_prbs(job.pattern.kind);
	const struct prbs_taps taps = prbs_taps_of(job.pattern);

	for (uint32_t n = thread / 32; n < longs; n += warps) {
		const uint32_t item = g.long_frame[n], i = item & ~LONG_IS_WRONG;
		const struct received<split_or_stale> payload = long_payload_of(s, g, in, start, i);
		uint32_t wrong = item & LONG_IS_WRONG;

		if (prbs && !wrong) {
			const struct prbs_span<split_or_stale> span = prbs_span_of(
				payload, g.staging[i], start, g.records.result[i].payload_bytes);
			uint4 piece[LONG_AT_ONCE];

			prbs_load(span, span.begin, piece);
			wrong = warp_check_prbs(taps, span, piece);
		}
		check_long_rest<any_format, split_or_stale>(job, g, payload, start, i, wrong);
	}
}

#endif
