/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Step 3 of a checker: payloads longer than the staging buffer. A warp checks one; or four, MEDIUM_LANES lanes
 * each, that are so short that most of a warp would have nothing to do.
 */
#ifndef GDRCAP_CUDA_CHECK_LONG_CUH
#define GDRCAP_CUDA_CHECK_LONG_CUH

#include "kernels/cuda/check_words.cuh"
#include "kernels/cuda/phase.cuh"

/* Pieces of a long payload that a lane has under way. */
#define LONG_AT_ONCE 4u
/* Lanes that check a payload of so many bytes at most: its pieces, wherever it begins, are all under way then. */
#define MEDIUM_LANES 8u
#define MEDIUM_BYTES (MEDIUM_LANES * LONG_AT_ONCE * PIECE_BYTES - (PIECE_BYTES - 1))

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

/* Asks for the pieces from `first` on, each of the payload's lanes for every `lanes`th. */
template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ void prbs_load(const struct prbs_span<split_or_stale> &span,
					  uint32_t first, uint4 piece[LONG_AT_ONCE])
{
#pragma unroll
	for (uint32_t k = 0; k < LONG_AT_ONCE; k++) {
		const uint32_t p = first + lanes * k + lane_index() % lanes;

		piece[k] = make_uint4(0, 0, 0, 0);
		if (p < span.count)
			piece[k] = received_piece(span.payload, p);
	}
}

/* Not 0 where a lane's pieces do not follow the recurrence. `carry`: the last word before them. */
template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t prbs_wrong(struct prbs_taps taps,
					       const struct prbs_span<split_or_stale> &span,
					       uint32_t first, const uint4 piece[LONG_AT_ONCE],
					       uint32_t *carry)
{
	const uint32_t lane = lane_index() % lanes, neighbour = (lane + lanes - 1) % lanes;
	uint32_t wrong = 0;

#pragma unroll
	for (uint32_t k = 0; k < LONG_AT_ONCE; k++) {
		const uint32_t at = first + lanes * k;
		const uint32_t w0 = pattern_swap32(piece[k].x), w1 = pattern_swap32(piece[k].y);
		const uint32_t w2 = pattern_swap32(piece[k].z), w3 = pattern_swap32(piece[k].w);
		uint32_t e0, e1, e2, e3, before;

		if (!any_goes_on<lanes>(at < span.count))
			break;
		/* lanes read pieces next to each other: the word before a lane's comes from its
		 * neighbour; the first takes what the last had one round ago */
		before = __shfl_sync(WARP_ALL, lane == lanes - 1 ? *carry : w3, (int)neighbour,
				     lanes);
		*carry = w3;
		e0 = prbs_error(taps, before, w0);
		e1 = prbs_error(taps, w0, w1);
		e2 = prbs_error(taps, w1, w2);
		e3 = prbs_error(taps, w2, w3);
		if (at + lanes >= span.count) { /* the payload ends in one of these */
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

/* The same of all pieces of a payload that `lanes` lanes share. Whole warps. */
template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t prbs_check(struct prbs_taps taps,
					       const struct prbs_span<split_or_stale> &span)
{
	uint4 piece[LONG_AT_ONCE];
	uint32_t carry = span.before, wrong;

	prbs_load<lanes>(span, span.begin, piece);
	wrong = prbs_wrong<lanes>(taps, span, span.begin, piece, &carry);
	/* of few lanes all are under way at once */
	for (uint32_t first = span.begin + 32 * LONG_AT_ONCE; lanes == 32 && first < span.count;
	     first += 32 * LONG_AT_ONCE) {
		prbs_load<lanes>(span, first, piece);
		wrong |= prbs_wrong<lanes>(taps, span, first, piece, &carry);
	}
	return wrong;
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

/* What step 3 works with. */
template <bool any_format, bool split_or_stale> struct long_context {
	struct check_shared<split_or_stale> &s;
	struct check_group<split_or_stale> &g;
	const struct burst_in &in;
	const struct device_job &job;
	uint32_t start; /* of a payload in its frame */
};

template <bool any_format, bool split_or_stale>
__device__ __forceinline__ struct long_context<any_format, split_or_stale>
long_context_of(uint32_t group, uint32_t turn) {
	struct check_shared<split_or_stale> &s = check_here<split_or_stale>();
	const struct device_job &job = s.ring.job;
	const uint32_t own = job.layout.own_offset + (job.layout.raw ? 0 : FRAME_HEADER_BYTES);

	return { s, s.group[group], s.ring.in[turn], job,
		 any_format ? frame_payload_offset(&job.layout) : own };
}

/* The payload of frame i. */
__device__ __forceinline__ struct received<false>
long_payload(const struct check_shared<false> &, const struct check_group<false> &g,
	     const struct burst_in &, uint32_t, uint32_t i) {
	return { g.payload[i] };
}

__device__ __forceinline__ struct received<true>
long_payload(const struct check_shared<true> &s, const struct check_group<true> &g,
	     const struct burst_in &in, uint32_t start, uint32_t i) {
	return received_from<true>(frame_placed(s.ring, s, in, i).at, g.staging[i], start);
}

template <bool any_format, bool split_or_stale>
__device__ __forceinline__ struct received<split_or_stale>
long_payload_of(const struct long_context<any_format, split_or_stale> &c, uint32_t i) {
	return long_payload(c.s, c.g, c.in, c.start, i);
}

template <bool any_format, bool split_or_stale>
__device__ __forceinline__ struct pattern_place
long_place_of(const struct long_context<any_format, split_or_stale> &c, uint32_t i)
{
	const uint64_t sequence = c.g.records.result[i].sequence;

	return { c.g.position[i], any_format ? frame_number(&c.job.layout, sequence) : sequence,
		 c.g.records.result[i].stream };
}

/* Not 0 in a lane that found something wrong with frame i, which `lanes` lanes have: a PRBS. */
template <uint32_t lanes, bool any_format, bool split_or_stale>
__device__ __forceinline__ uint32_t long_prbs_wrong(
	const struct long_context<any_format, split_or_stale> &c, struct prbs_taps taps, uint32_t i)
{
	return prbs_check<lanes>(taps, prbs_span_of(long_payload_of(c, i), c.g.staging[i], c.start,
						    c.g.records.result[i].payload_bytes));
}

/* The same of another pattern. */
template <uint32_t lanes, bool any_format, bool split_or_stale>
__device__ __forceinline__ uint32_t
long_pattern_wrong(const struct long_context<any_format, split_or_stale> &c, uint32_t i)
{
	return pattern_wrong<lanes>(c.job.pattern, long_payload_of(c, i),
				    c.g.records.result[i].payload_bytes, long_place_of(c, i));
}

/* A warp counts what is wrong with frame i by the definition. */
template <bool any_format, bool split_or_stale>
__device__ __noinline__ void check_long_count(uint32_t group, uint32_t turn, uint32_t i)
{
	const struct long_context<any_format, split_or_stale> c =
		long_context_of<any_format, split_or_stale>(group, turn);
	const struct frame_span payload = received_span(long_payload_of(c, i));
	struct frame_result *result = &c.g.records.result[i];
	const uint32_t bytes = result->payload_bytes;
	const struct pattern_place place = long_place_of(c, i);
	const struct warp_wrong wrong =
		warp_compare([&](uint32_t o) { return frame_span_byte(&payload, o); }, bytes, bytes,
			     [&](uint32_t o) { return pattern_word(&c.job.pattern, &place, o); });

	if (wrong.bits && lane_index() == 0) {
		result->wrong_bits = wrong.bits;
		result->offset = (uint16_t)(c.start + wrong.first);
		result->expected = (uint8_t)wrong.expected;
		result->got = (uint8_t)wrong.got;
		result->verdict = FRAME_DAMAGED_PAYLOAD;
	}
}

/* A warp's medium frames, four at a time: wrong(i) is not 0 in a lane that found something wrong with frame i,
 * which MEDIUM_LANES lanes have; count(i) counts it, by a warp. */
template <bool split_or_stale, typename Wrong, typename Count>
__device__ __forceinline__ void check_mediums(const struct check_group<split_or_stale> &g,
					      uint32_t warp, uint32_t warps, Wrong wrong,
					      Count count)
{
	const uint32_t mediums = g.longs / MEDIUM_ONE, each = 32 / MEDIUM_LANES;

	for (uint32_t first = warp * each; first < mediums; first += warps * each) {
		/* lanes that have none left look at the first's once more */
		const uint32_t n = first + lane_index() / MEDIUM_LANES, last = BURST_FRAMES_MAX - 1;
		const uint32_t i = g.long_frame[last - (n < mediums ? n : first)];
		const bool found = wrong(i) && n < mediums;

		for (uint32_t left = __ballot_sync(WARP_ALL, found); left;) {
			const uint32_t lane = (__ffs(left) - 1) & ~(MEDIUM_LANES - 1);

			count(__shfl_sync(WARP_ALL, i, (int)lane));
			left &= ~(((1u << MEDIUM_LANES) - 1) << lane);
		}
	}
}

/* Step 3 of a PRBS. */
template <bool any_format, bool split_or_stale>
__device__ __noinline__ void check_longs(uint32_t group, uint32_t turn, uint32_t thread)
{
	const struct long_context<any_format, split_or_stale> c =
		long_context_of<any_format, split_or_stale>(group, turn);
	const struct prbs_taps taps = prbs_taps_of(c.job.pattern);
	const uint32_t longs = c.g.longs % MEDIUM_ONE, warps = c.s.ring.work_threads / 32;
	const auto count = [=](uint32_t i) {
		check_long_count<any_format, split_or_stale>(group, turn, i);
	};

	check_mediums(
		c.g, thread / 32, warps,
		[&](uint32_t i) { return long_prbs_wrong<MEDIUM_LANES>(c, taps, i); }, count);
	for (uint32_t n = thread / 32; n < longs; n += warps) {
		const uint32_t item = c.g.long_frame[n], i = item & ~LONG_IS_WRONG;
		struct frame_result *result = &c.g.records.result[i];
		uint32_t wrong = item & LONG_IS_WRONG;

		if (!wrong)
			wrong = __any_sync(WARP_ALL, long_prbs_wrong<32>(c, taps, i));
		if (any_format && frame_is_self_phase(&c.job.layout, &c.job.pattern))
			check_long_phase<split_or_stale>(c.job, long_payload_of(c, i),
							 result->payload_bytes, c.start, wrong,
							 result);
		else if (wrong)
			count(i);
	}
}

/* Step 3 of other patterns. */
template <bool any_format, bool split_or_stale>
__device__ __noinline__ void check_long_words(uint32_t group, uint32_t turn, uint32_t thread)
{
	const struct long_context<any_format, split_or_stale> c =
		long_context_of<any_format, split_or_stale>(group, turn);
	const uint32_t longs = c.g.longs % MEDIUM_ONE, warps = c.s.ring.work_threads / 32;
	const auto count = [=](uint32_t i) {
		check_long_count<any_format, split_or_stale>(group, turn, i);
	};

	check_mediums(
		c.g, thread / 32, warps,
		[&](uint32_t i) { return long_pattern_wrong<MEDIUM_LANES>(c, i); }, count);
	for (uint32_t n = thread / 32; n < longs; n += warps) {
		const uint32_t item = c.g.long_frame[n], i = item & ~LONG_IS_WRONG;

		if ((item & LONG_IS_WRONG) || __any_sync(WARP_ALL, long_pattern_wrong<32>(c, i)))
			count(i);
	}
}

#endif
