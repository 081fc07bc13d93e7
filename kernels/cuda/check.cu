/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistent checker of patterns. For each burst:
 *   1. all threads bring the first STAGE_BYTES of every frame into shared memory, together;
 *   2. one thread a frame reads its header there and, if the payload is all there, checks it;
 *   3. one warp a frame checks the longer payloads where they lie;
 *   4. one thread a frame, together, turn outcomes into runs.
 *
 * Built three times: `any` and `more` are constant. Without `any` frames are our own and no rules
 * say which are meant; without `more` they lie whole and no slot is poisoned (more.cuh): so that
 * what other frames need costs no register there.
 */
#include "phase.cuh"
#include "runs.cuh"
#include "stage.cuh"

/* In the list of long payloads: the first word was wrong already. */
#define LONG_IS_WRONG 0x8000u

template <bool more> struct check_shared : more_shared<more> {
	struct ring_shared ring;
	struct runs_shared runs;
	uint64_t position[BURST_FRAMES_MAX];
	uint32_t longs, next_long;
	uint16_t long_frame[BURST_FRAMES_MAX];
	uint32_t stage[BURST_FRAMES_MAX][stage_size<more>::stride];
};
static_assert(sizeof(check_shared<true>) <= 64 << 10, "a block of Turing has 64 KiB");

/*
 * What reading one of our own frames needs of the layout: a copy from which the compiler sees what
 * cannot be.
 */
__device__ __forceinline__ void layout_own(struct frame_layout *own,
					   const struct frame_layout &layout)
{
	own->format = layout.format == FRAME_IPV4_UDP ? FRAME_IPV4_UDP : FRAME_ETHERNET;
	own->own_offset = layout.own_offset;
	own->raw = layout.raw;
	own->raw_payload = layout.raw_payload;
	own->ethertype = layout.ethertype;
	own->vlan = layout.vlan;
	own->udp_port = layout.udp_port;
	own->match.count = 0;
}

/* Compares a staged payload word by word with the definition. */
__device__ __noinline__ void payload_count_staged(const struct pattern_plan *plan,
						  struct pattern_place place, const uint32_t *stage,
						  uint32_t at, uint32_t bytes, uint32_t start,
						  struct frame_result *result)
{
	uint32_t wrong_bits = 0;

	for (uint32_t o = 0; o < bytes; o += 4) {
		const uint32_t expected = pattern_word(plan, &place, o),
			       got = stage_word(stage, at + o);
		const uint32_t wrong = (expected ^ got) & byte_mask(0, (int)(bytes - o));

		if (!wrong)
			continue;
		if (!wrong_bits) {
			const uint32_t byte = (__ffs(wrong) - 1) / 8;

			result->offset = (uint16_t)(start + o + byte);
			result->expected = (uint8_t)(expected >> (8 * byte));
			result->got = (uint8_t)(got >> (8 * byte));
			result->verdict = FRAME_DAMAGED_PAYLOAD;
		}
		wrong_bits += __popc(wrong);
	}
	result->wrong_bits = wrong_bits;
}

/* True when all staged payload bytes of a PRBS are right; the first word is known to be. */
__device__ __forceinline__ bool prbs_staged_is_right(const struct pattern_plan &plan,
						     const uint32_t *stage, uint32_t at,
						     uint32_t bytes, uint32_t first)
{
	const struct prbs_taps taps = prbs_taps_of(plan);
	uint32_t before = pattern_swap32(first), wrong = 0;

	for (uint32_t o = 4; o < bytes; o += 4) {
		const uint32_t word = pattern_swap32(stage_word(stage, at + o));

		wrong |= pattern_swap32(prbs_error(taps, before, word)) &
			 byte_mask(0, (int)(bytes - o));
		before = word;
	}
	return !wrong;
}

/*
 * Step 2 of a payload whose phase is not known, by its staged start: right when its first word is
 * one of the sequence and the others follow. Its warp does what is left to do, which is all where
 * something is wrong.
 */
template <bool more>
__device__ __forceinline__ void phase_check_staged(struct check_shared<more> &s, uint32_t i,
						   uint32_t at, uint32_t bytes)
{
	const struct pattern_plan &plan = s.ring.job.plan;
	const uint32_t *stage = s.stage[i];
	const uint32_t first = stage_word(stage, at);
	const uint32_t phase = pattern_swap32(first) ^ (0u - plan.invert);
	bool wrong = !phase_is_one(&plan, phase);

	s.runs.result[i].phase_first = phase;
	if (at + bytes <= stage_size<more>::bytes) {
		wrong = wrong || !prbs_staged_is_right(plan, stage, at, bytes, first);
		if (!wrong) {
			const uint8_t *payload = (const uint8_t *)stage + at;

			s.runs.result[i].phase_next =
				phase_after(plan, { payload, payload, 0, 1 }, bytes);
			return;
		}
	}
	s.long_frame[atomicAdd(&s.longs, 1)] = (uint16_t)(i | (wrong ? LONG_IS_WRONG : 0));
}

/* Step 2: frame i of the burst, from its staged bytes. */
template <bool any, bool more>
__device__ __forceinline__ void frame_check_staged(struct check_shared<more> &s,
						   const struct burst_in &in, uint32_t i)
{
	const struct device_job &job = s.ring.job;
	struct frame_layout own;
	const struct frame_layout &layout = any ? job.layout : own;
	const struct placed_frame frame = frame_placed(s.ring, s, in, i);
	const uint32_t shift = stage_shift(frame.at);
	const uint32_t *stage = s.stage[i];
	struct frame_result result;
	struct frame_header header;
	struct pattern_place place;
	enum frame_verdict verdict;
	uint32_t start, at, bytes, expected, got, mask;
	int header_ok;

	if (!frame.at) {
		frame_unreachable(&s.runs.result[i]);
		return;
	}
	if (!any)
		layout_own(&own, job.layout);
	start = frame_payload_offset(&layout);
	at = shift + start;
	verdict = frame_parse(&layout, s.ring.crc_table, (const uint8_t *)stage + shift, frame.len,
			      &header, &header_ok);
	bytes = frame_result_begin(&layout, &job.plan, verdict, &header, header_ok, &result);
	if (frame.cut) {
		frame_cut(&result);
		bytes = 0;
	}
	s.runs.result[i] = result;
	if (!bytes)
		return;
	if (any && frame_is_self_phase(&layout, &job.plan)) {
		phase_check_staged<more>(s, i, at, bytes);
		return;
	}
	frame_place(&layout, &header, &place);
	expected = pattern_word(&job.plan, &place, 0);
	got = stage_word(stage, at);
	mask = byte_mask(0, (int)bytes);
	if (at + bytes > stage_size<more>::bytes) {
		const uint32_t wrong = (expected ^ got) & mask;

		s.position[i] = header.position;
		s.long_frame[atomicAdd(&s.longs, 1)] = (uint16_t)(i | (wrong ? LONG_IS_WRONG : 0));
		return;
	}
	if (!((expected ^ got) & mask) &&
	    (bytes <= 4 || (pattern_is_prbs(job.plan.kind) &&
			    prbs_staged_is_right(job.plan, stage, at, bytes, got))))
		return;
	payload_count_staged(&job.plan, place, stage, at, bytes, start, &s.runs.result[i]);
}

template <bool more> struct long_payload {
	struct received<more> payload;
	uint32_t bytes;
	struct pattern_place place;
};

/*
 * A warp: 0 in all lanes when the payload follows the recurrence; its first word was compared.
 * Lanes read pieces next to each other, and the word before a lane's piece comes from its
 * neighbour.
 */
template <bool more>
__device__ __forceinline__ uint32_t warp_check_prbs(const struct pattern_plan &plan,
						    const struct long_payload<more> &frame)
{
	const struct prbs_taps taps = prbs_taps_of(plan);
	const uint32_t lane = lane_index();
	const uint32_t shift = stage_shift(frame.payload.at);
	const int end = (int)frame.bytes;
	const uint32_t count = (shift + frame.bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	uint32_t wrong = 0, carry = 0;

	for (uint32_t first = 0; first < count; first += 32 * PIECES_AT_ONCE) {
		uint4 piece[PIECES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane;

			piece[k] = p < count ? received_piece(frame.payload, p)
					     : make_uint4(0, 0, 0, 0);
		}
#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane;
			const uint32_t w0 = pattern_swap32(piece[k].x),
				       w1 = pattern_swap32(piece[k].y);
			const uint32_t w2 = pattern_swap32(piece[k].z),
				       w3 = pattern_swap32(piece[k].w);
			const int o =
				(int)(p * PIECE_BYTES) - (int)shift; /* of the piece's first byte */
			uint32_t e0, e1, e2, e3, before;

			if (first + 32 * k >= count)
				break;
			/* lane 0 takes what lane 31 had one round ago */
			before = __shfl_sync(WARP_ALL, lane == 31 ? carry : w3, (lane + 31) & 31);
			carry = w3;
			e0 = prbs_error(taps, before, w0);
			e1 = prbs_error(taps, w0, w1);
			e2 = prbs_error(taps, w1, w2);
			e3 = prbs_error(taps, w2, w3);
			if (o < 4 || o + (int)PIECE_BYTES > end) {
				e0 = pattern_swap32(e0) & byte_mask(4 - o, end - o);
				e1 = pattern_swap32(e1) & byte_mask(-o, end - o - 4);
				e2 = pattern_swap32(e2) & byte_mask(-4 - o, end - o - 8);
				e3 = pattern_swap32(e3) & byte_mask(-8 - o, end - o - 12);
			}
			wrong |= e0 | e1 | e2 | e3;
		}
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* The same for any pattern: lanes compute the words that they read. */
template <bool more>
__device__ __forceinline__ uint32_t warp_check_words(const struct pattern_plan &plan,
						     const struct long_payload<more> &frame)
{
	const uint32_t shift = (uint32_t)(uintptr_t)frame.payload.at % 4;
	const uint32_t count = (shift + frame.bytes + 3) / 4;
	uint32_t wrong = 0;

#pragma unroll 2
	for (uint32_t w = lane_index(); w < count; w += 32) {
		const uint32_t got = received_word(frame.payload, w);

		if (w) {
			const uint32_t o = 4 * w - shift;

			wrong |= (got ^ pattern_word(&plan, &frame.place, o)) &
				 byte_mask(0, (int)(frame.bytes - o));
		} else {
			wrong |= (got ^ pattern_word(&plan, &frame.place, 0) << (8 * shift)) &
				 byte_mask((int)shift, (int)(shift + frame.bytes));
		}
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* A warp counts what is wrong with a payload by the definition. */
template <bool more>
__device__ __noinline__ void warp_count(const struct pattern_plan &plan,
					struct long_payload<more> frame, uint32_t start,
					struct frame_result *result)
{
	const struct frame_span payload = received_span(frame.payload);
	const struct warp_wrong wrong = warp_compare(
		[&](uint32_t o) { return frame_span_byte(&payload, o); }, frame.bytes, frame.bytes,
		[&](uint32_t o) { return pattern_word(&plan, &frame.place, o); });

	if (wrong.bits && lane_index() == 0) {
		result->wrong_bits = wrong.bits;
		result->offset = (uint16_t)(start + wrong.first);
		result->expected = (uint8_t)wrong.expected;
		result->got = (uint8_t)wrong.got;
		result->verdict = FRAME_DAMAGED_PAYLOAD;
	}
}

/* Step 3 of a payload whose phase is not known. */
template <bool more>
__device__ __forceinline__ void
check_long_phase(const struct device_job &job, const struct long_payload<more> &frame,
		 uint32_t start, uint32_t wrong, struct frame_result *result)
{
	if (!wrong)
		wrong = warp_check_prbs(job.plan, frame);
	if (wrong)
		warp_phase_check<more>(job, frame.payload, frame.bytes, start, result);
	else if (lane_index() == 0)
		result->phase_next =
			phase_after(job.plan, received_span(frame.payload), frame.bytes);
}

/* Step 3. */
template <bool any, bool more>
__device__ __forceinline__ void check_longs(struct check_shared<more> &s, const struct burst_in &in)
{
	const struct device_job &job = s.ring.job;
	const uint32_t start =
		any ? frame_payload_offset(&job.layout)
		    : job.layout.own_offset + (job.layout.raw ? 0 : FRAME_HEADER_BYTES);
	const uint32_t longs = s.longs;

	for (uint32_t n; (n = warp_next(&s.next_long)) < longs;) {
		const uint32_t item = s.long_frame[n], i = item & ~LONG_IS_WRONG;
		struct frame_result *result = &s.runs.result[i];
		struct long_payload<more> frame;
		uint32_t wrong = item & LONG_IS_WRONG;

		frame.payload =
			received_from<more>(frame_placed(s.ring, s, in, i).at, s.stage[i], start);
		frame.bytes = result->payload_bytes;
		if (any && frame_is_self_phase(&job.layout, &job.plan)) {
			check_long_phase(job, frame, start, wrong, result);
			continue;
		}
		frame.place.position = s.position[i];
		frame.place.sequence =
			any ? frame_number(&job.layout, result->sequence) : result->sequence;
		frame.place.stream = result->stream;
		if (!wrong)
			wrong = pattern_is_prbs(job.plan.kind) ? warp_check_prbs(job.plan, frame)
							       : warp_check_words(job.plan, frame);
		if (wrong)
			warp_count(job.plan, frame, start, result);
	}
}

/* Steps 1 to 3, of the frames that are due. Begins after a barrier and ends with one. */
template <bool any, bool more>
__device__ __forceinline__ void check_pass(struct check_shared<more> &s, const struct burst_in &in,
					   uint32_t thread)
{
	if (thread == 0) {
		s.longs = 0;
		s.next_long = 0;
	}
	stage_frames<more>(s.ring, s, s.stage, in, thread);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	if (thread < in.count && frame_is_due(s, thread))
		frame_check_staged<any, more>(s, in, thread);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	check_longs<any, more>(s, in);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
}

template <bool any, bool more>
__device__ __forceinline__ uint32_t check_burst(struct check_shared<more> &s,
						const struct burst_in &in, uint32_t thread)
{
	if constexpr (more)
		check_more(s.ring, s, in, s.runs.result, thread,
			   [&] { check_pass<any, more>(s, in, thread); });
	else
		check_pass<any, more>(s, in, thread);
	return write_runs(
		s.ring, s.runs, in, thread,
		[&s](const struct frame_result &last, const struct frame_result &next) {
			struct frame_layout own;

			if (any)
				return run_joins(&s.ring.job.layout, NULL, &last, &next);
			layout_own(&own, s.ring.job.layout);
			return run_joins(&own, NULL, &last, &next);
		},
		[&](uint32_t i) { return frame_len(s, in, i); });
}

template <bool any, bool more>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct check_shared<more> &s = *(struct check_shared<more> *)memory;

	if (!ring_enter(s.ring, job, false))
		return;
	ring_run(s.ring, [&s](const struct burst_in &in, uint32_t thread) {
		return check_burst<any, more>(s, in, thread);
	});
}

struct kernel_program check_program(void)
{
	return { "check", (const void *)check_kernel<false, false>,
		 sizeof(struct check_shared<false>) };
}

struct kernel_program check_any_program(void)
{
	return { "check", (const void *)check_kernel<true, false>,
		 sizeof(struct check_shared<false>) };
}

struct kernel_program check_more_program(void)
{
	return { "check", (const void *)check_kernel<true, true>,
		 sizeof(struct check_shared<true>) };
}
