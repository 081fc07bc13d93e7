/* SPDX-License-Identifier: BSD-3-Clause */
/* What checks a burst of patterns: see check.cu. Steps 1, 2 and 4; step 3 is in check_long.cuh. */
#ifndef GDRCAP_CUDA_CHECK_CUH
#define GDRCAP_CUDA_CHECK_CUH

#include "kernels/cuda/check_long.cuh"
#include "kernels/cuda/small_burst.cuh"

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
static __device__ __noinline__ void payload_count_staged(const struct pattern *pattern,
							 struct pattern_place place,
							 const uint32_t *staging, uint32_t at,
							 uint32_t bytes, uint32_t start,
							 struct frame_result *result)
{
	uint32_t wrong_bits = 0;
	uint4 piece = {};

	for (uint32_t o = 0; o < bytes; o += 4) {
		uint32_t expected, got, wrong;

		if (o % PIECE_BYTES == 0)
			piece = pattern_piece(*pattern, place, o);
		expected = piece.x;
		piece = make_uint4(piece.y, piece.z, piece.w, 0);
		got = staging_word(staging, at + o);
		wrong = (expected ^ got) & byte_mask(0, (int)(bytes - o));
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

template <bool split_or_stale>
__device__ __forceinline__ void long_add(struct check_group<split_or_stale> &g, uint32_t i,
					 const uint8_t *payload, bool wrong, bool medium)
{
	if constexpr (!split_or_stale)
		g.payload[i] = payload;
	if (medium && !wrong)
		g.long_frame[BURST_FRAMES_MAX - 1 - atomicAdd(&g.longs, MEDIUM_ONE) / MEDIUM_ONE] =
			(uint16_t)i;
	else
		g.long_frame[atomicAdd(&g.longs, 1) % MEDIUM_ONE] =
			(uint16_t)(i | (wrong ? LONG_IS_WRONG : 0));
}

/* frame_parse() of a staged frame, which begins `shift` bytes into the staging buffer. */
__device__ __forceinline__ enum frame_verdict
parse_staged(const uint32_t *nibbles, const struct frame_layout &layout, const uint32_t *staging,
	     uint32_t shift, uint32_t len, struct frame_header *header, int *header_ok)
{
	const uint8_t *frame = (const uint8_t *)staging + shift;
	const enum frame_verdict verdict = frame_recognise(&layout, frame, len);
	uint32_t crc = 0xffffffffu;

	if (verdict != FRAME_VALID) {
		frame_header_clear(header);
		*header_ok = 0;
		return verdict;
	}
	if (frame_has_header(&layout)) {
		const uint32_t at = shift + layout.own_offset;

#pragma unroll
		for (uint32_t o = 0; o < 32; o += 4)
			crc = crc_step(nibbles, crc, staging_word(staging, at + o));
	}
	return frame_read_header(&layout, frame, len, ~crc, header, header_ok);
}

/* True when all staged payload bytes of a PRBS are right; the first word is known to be. */
__device__ __forceinline__ bool prbs_staged_is_right(const struct pattern &pattern,
						     const uint32_t *staging, uint32_t at,
						     uint32_t bytes, uint32_t first)
{
	const struct prbs_taps taps = prbs_taps_of(pattern);
	uint32_t before = pattern_swap32(first), wrong = 0;

	for (uint32_t o = 4; o < bytes; o += 4) {
		const uint32_t word = pattern_swap32(staging_word(staging, at + o));

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
template <bool split_or_stale>
__device__ __forceinline__ void
phase_check_staged(const struct pattern &pattern, struct check_group<split_or_stale> &g, uint32_t i,
		   const uint8_t *begin, uint32_t at, uint32_t bytes)
{
	const uint32_t *staging = g.staging[i];
	const uint32_t first = staging_word(staging, at);
	const uint32_t phase = pattern_swap32(first) ^ (0u - pattern.invert);
	const bool whole = at + bytes <= staging_size<split_or_stale>::bytes;
	const bool wrong =
		!phase_is_one(&pattern, phase) ||
		!prbs_staged_is_right(pattern, staging, at,
				      min(bytes, staging_size<split_or_stale>::bytes - at), first);

	g.records.result[i].phase_first = phase;
	if (whole && !wrong) {
		const uint8_t *payload = (const uint8_t *)staging + at;

		g.records.result[i].phase_next =
			phase_after(pattern, { payload, payload, 0, 1 }, bytes);
		return;
	}
	long_add(g, i, begin, wrong, false);
}

/* Step 2: frame i of the burst, from its staged bytes. */
template <bool any_format, bool any_pattern, bool split_or_stale>
__device__ __noinline__ void frame_check_staged(uint32_t group, uint32_t turn, uint32_t i)
{
	struct check_shared<split_or_stale> &s = check_here<split_or_stale>();
	struct check_group<split_or_stale> &g = s.group[group];
	const struct burst_in &in = s.ring.in[turn];
	const struct device_job &job = s.ring.job;
	struct frame_layout own;
	const struct frame_layout &layout = any_format ? job.layout : own;
	const struct placed_frame frame = frame_placed(s.ring, s, in, i);
	const uint32_t shift = staging_shift(frame.at);
	const uint32_t *staging = g.staging[i];
	struct frame_result result;
	struct frame_header header;
	struct pattern_place place;
	enum frame_verdict verdict;
	uint32_t start, at, bytes, expected, got;
	int header_ok;
	bool whole, prbs, wrong;

	if (!frame.at) {
		frame_unreachable(&g.records.result[i]);
		return;
	}
	if (!any_format)
		layout_own(&own, job.layout);
	start = frame_payload_offset(&layout);
	at = shift + start;
	verdict = parse_staged(crc_nibbles_of(s), layout, staging, shift, frame.len, &header,
			       &header_ok);
	bytes = frame_result_begin(&layout, &job.pattern, verdict, &header, header_ok, &result);
	if (frame.cut) {
		frame_cut(&result);
		bytes = 0;
	}
	g.records.result[i] = result;
	if (!bytes)
		return;
	if (any_format && frame_is_self_phase(&layout, &job.pattern)) {
		phase_check_staged<split_or_stale>(job.pattern, g, i, frame.at + start, at, bytes);
		return;
	}
	frame_place(&layout, &header, &place);
	expected = pattern_word(&job.pattern, &place, 0);
	got = staging_word(staging, at);
	whole = at + bytes <= staging_size<split_or_stale>::bytes;
	prbs = !any_pattern || pattern_is_prbs(job.pattern.kind);
	wrong = ((expected ^ got) & byte_mask(0, (int)bytes)) ||
		(prbs &&
		 !prbs_staged_is_right(job.pattern, staging, at,
				       min(bytes, staging_size<split_or_stale>::bytes - at), got));
	if (!whole) {
		g.position[i] = header.position;
		long_add(g, i, frame.at + start, wrong, bytes <= MEDIUM_BYTES);
	} else if (wrong || (!prbs && bytes > 4)) {
		payload_count_staged(&job.pattern, place, staging, at, bytes, start,
				     &g.records.result[i]);
	}
}

/* Steps 1 to 3, of the frames that are due. Begins after a barrier and ends with one. */
template <bool any_format, bool any_pattern, bool split_or_stale>
__device__ __forceinline__ void check_pass(struct check_shared<split_or_stale> &s,
					   struct work_group group, const struct burst_in &in)
{
	struct check_group<split_or_stale> &g = s.group[group.index];
	const uint32_t thread = group.thread, barrier = BARRIER_WORK + group.index;
	const uint32_t turn = (uint32_t)(&in - s.ring.in);

	if (thread == 0)
		g.longs = 0;
	stage_frames(s.ring, s, g.staging, in, thread);
	barrier_sync(barrier, s.ring.work_threads);
	if (thread < in.count && frame_is_due(s, thread))
		frame_check_staged<any_format, any_pattern, split_or_stale>(group.index, turn,
									    thread);
	barrier_sync(barrier, s.ring.work_threads);
	if (!any_pattern || pattern_is_prbs(s.ring.job.pattern.kind))
		check_longs<any_format, split_or_stale>(group.index, turn, thread);
	else
		check_long_words<any_format, split_or_stale>(group.index, turn, thread);
	barrier_sync(barrier, s.ring.work_threads);
}

template <bool any_format, bool any_pattern, bool split_or_stale>
__device__ __forceinline__ uint32_t check_burst(struct check_shared<split_or_stale> &s,
						struct work_group group, const struct burst_in &in)
{
	struct check_group<split_or_stale> &g = s.group[group.index];
	const uint32_t thread = group.thread;

	if constexpr (!any_format && !split_or_stale) {
		const bool tried = burst_is_small(s.ring, g, in);

		if (tried && burst_check_small(s, group, in))
			return RECORDS_PUBLISHED;
		check_pass<any_format, any_pattern, split_or_stale>(s, group, in);
		if (thread == 0 && !tried)
			small_untried(g);
	} else if constexpr (split_or_stale) {
		check_split_or_stale(s.ring, s, in, g.records.result, thread, [&] {
			check_pass<any_format, any_pattern, split_or_stale>(s, group, in);
		});
	} else {
		check_pass<any_format, any_pattern, split_or_stale>(s, group, in);
	}
	return write_records<split_or_stale>(
		s.ring, g.records, in, thread,
		[&s](const struct frame_result &last, const struct frame_result &next) {
			struct frame_layout own;

			if (any_format)
				return record_joins(&s.ring.job.layout, NULL, &last, &next);
			layout_own(&own, s.ring.job.layout);
			return record_joins(&own, NULL, &last, &next);
		},
		[&](uint32_t i) { return frame_len(s, in, i); }, group.index);
}

/* ring_enter() of a checker of patterns. */
template <bool split_or_stale>
__device__ __forceinline__ bool check_enter(struct check_shared<split_or_stale> &s,
					    const struct device_job *job)
{
	const uint32_t words = check_places<split_or_stale>::crc_words, first = CRC_PLACED - words;

	for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
		s.crc[i] = crc_placed_entry(job->crc_table, first + i);
	if (threadIdx.x < max(1u, job->groups)) {
		s.group[threadIdx.x].small_misses = 0;
		s.group[threadIdx.x].small_wait = 0;
	}
	return ring_enter(s.ring, job, false);
}

/* A block of the kernel. */
template <bool any_format, bool any_pattern, bool split_or_stale>
__device__ __forceinline__ void check_run(const struct device_job *job)
{
	struct check_shared<split_or_stale> &s = check_here<split_or_stale>();
	struct work_group group;

	if (!check_enter(s, job))
		return;
	group = work_group_of(s.ring);
	ring_run_groups(s.ring, group, [&s, group](const struct burst_in &in, uint32_t) {
		return check_burst<any_format, any_pattern, split_or_stale>(s, group, in);
	});
}

#endif
