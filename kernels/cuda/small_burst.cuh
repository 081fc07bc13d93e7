/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small burst that is what is hoped for: one record of valid frames, whole in the staging buffer. To know
 * that takes no sums over the block and no outcome of each frame, so it is told 2 us sooner. Eight
 * lanes share a frame, for one thread's steps through it, each waiting for the one before, are what
 * takes the time. Where anything is otherwise nothing is told, and the burst is checked as any
 * other.
 */
#ifndef GDRCAP_CUDA_SMALL_BURST_CUH
#define GDRCAP_CUDA_SMALL_BURST_CUH

#include "kernels/cuda/check_state.cuh"

#define SMALL_LANES 8u
static_assert(SMALL_LANES == CRC_PLACES && SMALL_LANES == staging_size<false>::pieces,
	      "a lane a word of the header, and a piece of the staging");
static_assert(SMALL_LANES * SMALL_FRAMES <= WORK_THREADS_SMALL && SMALL_FRAMES <= 32,
	      "lanes enough in the smallest group, and a lane a frame in a warp");

#define SMALL_WORDS (SMALL_LANES / 2) /* of a PRBS at a time */
#define SMALL_WRONG 0xffffffffu	      /* in sums of struct small_frame: not what is hoped for */
static_assert(SMALL_FRAMES * staging_size<false>::bytes < 0x10000, "sums of 16 bits");

/* Xor over a frame's lanes, in all of them. */
__device__ __forceinline__ uint32_t small_xor(uint32_t value)
{
#pragma unroll
	for (uint32_t step = SMALL_LANES / 2; step; step /= 2)
		value ^= __shfl_xor_sync(WARP_ALL, value, step);
	return value;
}

/* Brings a frame that begins at `frame` into its staging buffer. Whole warps. False: it is not there, or
 * does not lie in the staging buffer whole. */
__device__ __forceinline__ bool small_staging(const uint8_t *frame, struct frame_desc desc,
					      uint32_t *staging, uint32_t lane)
{
	const uint32_t shift = staging_shift(frame), from = lane * PIECE_BYTES;
	const bool whole = frame && !(desc.offset & FRAME_DESC_CUT) &&
			   shift + desc.len <= staging_size<false>::bytes;
	uint4 bytes = make_uint4(0, 0, 0, 0);

	if (whole && from < shift + desc.len)
		bytes = piece_load((const uint4 *)(frame - shift + from));
	staging_store(&staging[from / 4], bytes);
	__syncwarp();
	return whole;
}

/* The header's words as its frame's lanes have them, one each. Of the time nothing is asked. */
__device__ __forceinline__ void small_header(uint32_t mine, uint32_t word[8])
{
	const uint32_t swapped = pattern_swap32(mine);

#pragma unroll
	for (uint32_t i = 0; i < 8; i++)
		word[i] = i < 6 ? __shfl_sync(WARP_ALL, swapped, (int)i, SMALL_LANES) : 0;
}

/* frame_source() of a staged frame. */
__device__ __forceinline__ uint32_t small_source(const struct frame_layout &layout,
						 const uint32_t *staging, uint32_t shift)
{
	const uint32_t ip = layout.format == FRAME_IPV4_UDP
				    ? staging_word(staging, shift + layout.own_offset - 16)
				    : 0;

	return frame_source_of(pattern_swap32(staging_word(staging, shift + 6)),
			       pattern_swap32(staging_word(staging, shift + 10)) >> 16,
			       pattern_swap32(ip));
}

/* Not 0 where words of the frame's beginning are other than those of a frame that is meant. */
__device__ __forceinline__ uint32_t small_look(const struct frame_look &look,
					       const uint32_t *staging, uint32_t shift,
					       uint32_t lane)
{
	const uint32_t first = staging_word(staging, shift + 4 * lane) & look.mask[lane];
	uint32_t wrong = first ^ look.want[lane];

	if (SMALL_LANES + lane < FRAME_LOOK_WORDS) {
		const uint32_t w = SMALL_LANES + lane;

		wrong |= (staging_word(staging, shift + 4 * w) & look.mask[w]) ^ look.want[w];
	}
	return wrong;
}

/*
 * Not 0 where words of a PRBS are wrong: four at a time, two lanes each, of which each has one part
 * of the jump. Whole warps. `jump`: of the lane's first word, asked for before.
 */
__device__ __forceinline__ uint32_t small_prbs(const struct pattern &pattern,
					       const struct pattern_place &place,
					       struct pattern_jump jump, const uint32_t *staging,
					       uint32_t at, uint32_t bytes, uint32_t lane)
{
	const uint32_t part = lane / SMALL_WORDS;
	uint32_t wrong = 0, o = 4 * (lane % SMALL_WORDS);

	for (;;) {
		uint32_t bits = pattern_jump_part(&jump, part);

		bits ^= __shfl_xor_sync(WARP_ALL, bits, SMALL_WORDS);
		if (o < bytes) /* frames of a warp may differ in length */
			wrong |= (pattern_prbs_bytes(&pattern, bits) ^
				  staging_word(staging, at + o)) &
				 byte_mask(0, (int)(bytes - o));
		o += 4 * SMALL_WORDS;
		if (!__any_sync(WARP_ALL, o < bytes))
			return wrong;
		if (o < bytes)
			pattern_prbs_jump(&pattern, pattern_prbs_phase(&pattern, &place, o), &jump);
	}
}

/*
 * Frame f of the burst, by its lanes, each of which has the word of the header and those of the
 * payload that are its own. Whole warps; f may be behind the last. What the jump of a PRBS reads is
 * asked for as soon as the header says where, right or wrong, and the rest is done meanwhile.
 */
__device__ __forceinline__ void small_check(struct check_shared<false> &s,
					    struct check_group<false> &g, const struct burst_in &in,
					    uint32_t f, uint32_t lane)
{
	const struct device_job &job = s.ring.job;
	const struct pattern &pattern = job.pattern;
	const bool mine = f < in.count, prbs = pattern_is_prbs(pattern.kind);
	const struct frame_desc desc = in.desc[mine ? f : 0];
	const uint8_t *received = mine ? frame_at(&s.ring.ring, desc) : NULL;
	const bool whole = small_staging(received, desc, g.staging[f], lane);
	const uint32_t *staging = g.staging[f], shift = staging_shift(received);
	const uint32_t start = job.layout.own_offset + FRAME_HEADER_BYTES;
	const uint32_t header_at = shift + job.layout.own_offset, at = shift + start;
	const uint32_t crc_word = staging_word(staging, header_at + 4 * lane);
	const uint32_t o = 4 * (lane % SMALL_WORDS);
	struct pattern_jump jump = { 0, 0 };
	struct frame_header header;
	struct pattern_place place;
	uint32_t word[8], crc, bytes, wrong, all;

	small_header(crc_word, word);
	frame_header_decode(word, &header);
	place.position = header.position;
	place.sequence = header.sequence;
	place.stream = header.stream;
	if (prbs && o < header.payload_bytes)
		pattern_prbs_jump(&pattern, pattern_prbs_phase(&pattern, &place, o), &jump);
	crc = ~small_xor(crc_placed(s.crc, lane, lane ? crc_word : ~crc_word));
	wrong = crc ^ pattern_swap32(staging_word(staging, header_at + 32));
	wrong |= small_look(job.look, staging, shift, lane);
	wrong |= !whole | (desc.len < start) | (header.payload_bytes > desc.len - start) |
		 !frame_header_is_own(word[0]) | (header.pattern != pattern.kind) |
		 !header.sequence; /* of frame 0 more is told than PLAIN can */
	/* of the lanes' sight of it any may be wrong; what is compared below stays in the staging buffer */
	bytes = pattern.kind == PATTERN_NONE ? 0 : header.payload_bytes;
	bytes = min(bytes, staging_size<false>::bytes - at);
	if (prbs)
		wrong |= small_prbs(pattern, place, jump, staging, at, bytes, lane);
	else
		for (uint32_t w = 4 * lane; w < bytes; w += 4 * SMALL_LANES)
			wrong |= (pattern_word(&pattern, &place, w) ^
				  staging_word(staging, at + w)) &
				 byte_mask(0, (int)(bytes - w));
	all = __ballot_sync(WARP_ALL, wrong != 0) >> (lane_index() & ~(SMALL_LANES - 1));
	if (mine && lane == 0)
		g.small[f] = { header.sequence,
			       header.stream | small_source(job.layout, staging, shift) << 16,
			       all & ((1u << SMALL_LANES) - 1) ? SMALL_WRONG
							       : bytes | (uint32_t)desc.len << 16 };
}

/* The group's first warp, a lane a frame, after the barrier. True: told. */
__device__ __forceinline__ bool small_tell(const struct plain_to &to,
					   const struct check_group<false> &g, uint32_t count)
{
	const uint32_t lane = lane_index();
	const bool mine = lane < count;
	const struct small_frame frame = g.small[mine ? lane : 0];
	const uint64_t first = __shfl_sync(WARP_ALL, frame.sequence, 0);
	const uint32_t sender = __shfl_sync(WARP_ALL, frame.sender, 0);
	/* as record_joins() */
	const bool joins = lane == 0 || (mine && frame.sender == sender && frame.sequence &&
					 frame.sequence == first + lane);
	const uint32_t sums = warp_sum(mine ? frame.sums : 0);
	struct burst_plain plain;

	if (!__all_sync(WARP_ALL, !mine || (joins && frame.sums != SMALL_WRONG)))
		return false;
	plain.sequence = first;
	plain.bytes = sums & 0xffff;
	plain.frame_bytes = sums >> 16;
	plain.stream = (uint16_t)sender;
	plain.source = (uint16_t)(sender >> 16);
	plain.count = (uint16_t)count;
	plain_store(to, plain);
	return true;
}

#define SMALL_MISSES 2u /* in a row: this traffic is not what is hoped for */
#define SMALL_WAIT 15u	/* bursts of a group that are not tried then */

/* True for a burst that is worth trying: all threads of a group see the same. What is asked is read
 * together. */
__device__ __forceinline__ bool burst_is_small(const struct ring_shared &ring,
					       const struct check_group<false> &g,
					       const struct burst_in &in)
{
	return (in.count - 1 < SMALL_FRAMES) & (in.desc[0].len <= STAGE_FRAME_BYTES) &
	       !ring.job.layout.raw & !g.small_wait;
}

/* Thread 0 remembers whether the burst was told. */
__device__ __forceinline__ void small_remember(struct check_group<false> &g, bool told)
{
	const uint32_t misses = told ? 0 : min(g.small_misses + 1u, SMALL_MISSES);

	g.small_told = told;
	g.small_misses = (uint8_t)misses;
	g.small_wait = misses == SMALL_MISSES ? SMALL_WAIT : 0;
}

/* Thread 0, of a burst that was not tried, when all threads have seen why. */
__device__ __forceinline__ void small_untried(struct check_group<false> &g)
{
	if (g.small_wait)
		g.small_wait--;
}

/* All work threads of a group call it, after a barrier. True: the burst is told. Ends with one. */
__device__ __forceinline__ bool
burst_check_small(struct check_shared<false> &s, struct work_group group, const struct burst_in &in)
{
	struct check_group<false> &g = s.group[group.index];
	const uint32_t barrier = BARRIER_WORK + group.index, warp = group.thread & ~31u;

	if (warp < in.count * SMALL_LANES)
		small_check(s, g, in, group.thread / SMALL_LANES, group.thread % SMALL_LANES);
	barrier_sync(barrier, s.ring.work_threads);
	if (warp == 0) {
		const bool told = small_tell(plain_to_of(s.ring, in.burst), g, in.count);

		if (group.thread == 0)
			small_remember(g, told);
	}
	barrier_sync(barrier, s.ring.work_threads);
	return g.small_told;
}

#endif
