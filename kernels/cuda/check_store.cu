/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistent checker of frames that a file has. For each burst:
 *   1. where rules say which frames are meant, one thread a frame asks them;
 *   2. one warp a frame hashes it, finds the file's frame and compares every byte;
 *   3. one thread a frame, together, turn outcomes into records.
 * frame_expect_check() is the reference. Built twice: `split_or_stale` is constant
 * (split_or_stale.cuh); with it frames are always staged, since their first pieces are read over PCIe.
 */
#include "kernels/cuda/records.cuh"
#include "kernels/cuda/staging.cuh"

#define NO_FRAME 0xffffffffu

template <bool split_or_stale> struct check_store_shared : split_or_stale_shared<split_or_stale> {
	struct ring_shared ring;
	struct records_shared records;
	uint32_t next_frame;
	uint32_t staging[BURST_FRAMES_MAX][staging_size<split_or_stale>::stride];
};
static_assert(sizeof(check_store_shared<true>) <= 64 << 10, "a block of Turing has 64 KiB");

template <bool split_or_stale> struct received_frame {
	struct received<split_or_stale> from;
	uint32_t len, padded; /* bytes; bytes that count, those after len as zeros */
};

/* Pieces, from the frame's first byte on, that are in the staging buffer whole: a frame in two pieces must
 * be read from there so far. */
#define PIECES_STAGED (FRAME_HEAD_BYTES_MAX / PIECE_BYTES)

/* The bytes of a piece that come before `bytes` of its frame; the rest as zeros. */
__device__ __forceinline__ uint4 piece_cut(uint4 piece, uint32_t p, uint32_t bytes)
{
	const int left = (int)bytes - (int)(p * PIECE_BYTES);

	if (left >= (int)PIECE_BYTES)
		return piece;
	return make_uint4(piece.x & byte_mask(0, left), piece.y & byte_mask(0, left - 4),
			  piece.z & byte_mask(0, left - 8), piece.w & byte_mask(0, left - 12));
}

/* Piece p of a frame, which may start anywhere. */
template <bool split_or_stale>
__device__ __forceinline__ uint4 frame_piece(const struct received_frame<split_or_stale> &frame,
					     uint32_t p)
{
	const uint32_t shift = staging_shift(frame.from.at), end = shift + frame.len;
	const uint4 *pieces = (const uint4 *)(frame.from.at - shift);

	if constexpr (split_or_stale) {
		const uint32_t at = shift + p * PIECE_BYTES;
		const uint32_t *staging = (const uint32_t *)(frame.from.staged - shift);

		if (p < PIECES_STAGED) /* what is not the frame's is zero there */
			return make_uint4(staging_word(staging, at), staging_word(staging, at + 4),
					  staging_word(staging, at + 8),
					  staging_word(staging, at + 12));
		/* what is read below is then in the frame's rest */
		if (p * PIECE_BYTES >= frame.len)
			return make_uint4(0, 0, 0, 0);
	}
	const uint4 none = make_uint4(0, 0, 0, 0);
	const uint4 first = p * PIECE_BYTES < end ? pieces[p] : none;
	const uint4 second = shift && (p + 1) * PIECE_BYTES < end ? pieces[p + 1] : none;

	return piece_cut(piece_between(first, second, shift), p, frame.len);
}

__device__ __forceinline__ uint64_t warp_sum64(uint64_t value)
{
#pragma unroll
	for (uint32_t step = 16; step; step /= 2)
		value += __shfl_xor_sync(WARP_ALL, value, step);
	return value;
}

/* The sums over the pieces of each part, in all lanes. */
template <bool split_or_stale>
__device__ __forceinline__ void warp_part_sums(const struct received_frame<split_or_stale> &frame,
					       uint64_t sum[STORE_PARTS])
{
	const uint32_t count = store_pieces(frame.len);

	for (uint32_t part = 0; part < STORE_PARTS; part++)
		sum[part] = 0;
	for (uint32_t first = 0; first < count; first += 32 * PIECES_AT_ONCE) {
		uint4 piece[PIECES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++)
			piece[k] = frame_piece(frame, first + 32 * k + lane_index());
#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane_index();
			const uint32_t word[4] = { piece[k].x, piece[k].y, piece[k].z, piece[k].w };
			const uint32_t mine = store_part_of(p, count);
			const uint64_t hash = store_hash_piece(p, word);

			if (first + 32 * k >= count)
				break;
#pragma unroll
			for (uint32_t part = 0; part < STORE_PARTS; part++)
				sum[part] += p < count && part == mine ? hash : 0;
		}
	}
#pragma unroll
	for (uint32_t part = 0; part < STORE_PARTS; part++)
		sum[part] = warp_sum64(sum[part]);
}

/* The frame that this hash names, if it names one of this length. */
__device__ __forceinline__ uint32_t frame_named(const struct frame_store_view &store, uint64_t hash,
						uint32_t padded)
{
	const struct store_bucket *bucket = store_find(&store, hash);

	if (!bucket || bucket->shared || bucket->frame > store.count ||
	    store_padded(store.frames[bucket->frame - 1].len) != padded)
		return NO_FRAME;
	return bucket->frame - 1;
}

/* The frame that is meant: by the whole, else by the first part that tells. */
template <bool split_or_stale>
__device__ __forceinline__ uint32_t warp_find(const struct frame_store_view &store,
					      const struct received_frame<split_or_stale> &frame)
{
	const uint32_t lane = lane_index();
	uint64_t sum[STORE_PARTS], part_sum;
	uint32_t found = NO_FRAME, telling;

	warp_part_sums(frame, sum);
	if (lane == 0)
		found = frame_named(store, store_hash_frame(frame.len, sum), frame.padded);
	found = __shfl_sync(WARP_ALL, found, 0);
	if (found != NO_FRAME)
		return found;
	part_sum = lane & 2 ? (lane & 1 ? sum[3] : sum[2]) : (lane & 1 ? sum[1] : sum[0]);
	if (lane < STORE_PARTS)
		found = frame_named(store, store_hash_part(lane, frame.len, part_sum),
				    frame.padded);
	telling = __ballot_sync(WARP_ALL, found != NO_FRAME);
	return telling ? __shfl_sync(WARP_ALL, found, __ffs(telling) - 1) : NO_FRAME;
}

/* True in all lanes when all bytes are those of the file's frame. */
template <bool split_or_stale>
__device__ __forceinline__ bool warp_is_equal(const struct received_frame<split_or_stale> &frame,
					      const uint8_t *stored)
{
	const uint32_t count = store_pieces(frame.len);
	uint32_t wrong = 0;

#pragma unroll 2
	for (uint32_t p = lane_index(); p < count; p += 32) {
		const uint4 got = frame_piece(frame, p);
		const uint4 want = piece_cut(((const uint4 *)stored)[p], p, frame.padded);

		wrong |= (got.x ^ want.x) | (got.y ^ want.y) | (got.z ^ want.z) | (got.w ^ want.w);
	}
	return !__any_sync(WARP_ALL, wrong != 0);
}

/* Step 2: a warp, one frame. Lane 0 writes the result. */
template <bool split_or_stale>
__device__ __forceinline__ void warp_check_frame(const struct frame_store_view &store,
						 const struct received_frame<split_or_stale> &frame,
						 struct frame_result *to)
{
	const struct frame_span span = received_span(frame.from);
	const uint32_t found = warp_find(store, frame);
	struct warp_wrong wrong = { 0, 0, 0, 0 };
	struct frame_result result = {};

	result.verdict = FRAME_DAMAGED_HEADER;
	if (found != NO_FRAME) {
		const struct store_frame entry = store.frames[found];
		const uint8_t *stored = store.data + entry.at;

		if (!warp_is_equal(frame, stored))
			wrong = warp_compare(
				[&](uint32_t o) { return frame_span_byte(&span, o); }, frame.len,
				frame.padded,
				[&](uint32_t o) { return *(const uint32_t *)(stored + o); });
		result.verdict = FRAME_VALID;
		result.header_ok = 1;
		result.sequence = entry.class_first;
		result.payload_bytes = frame.len;
	}
	if (wrong.bits) {
		result.verdict = FRAME_DAMAGED_PAYLOAD;
		result.wrong_bits = wrong.bits;
		result.offset = (uint16_t)wrong.first;
		result.expected = (uint8_t)wrong.expected;
		result.got = (uint8_t)wrong.got;
	}
	if (lane_index() == 0)
		*to = result;
}

/* Step 1: frame i of the burst. Its verdict becomes FRAME_FILTERED or anything else. */
template <bool split_or_stale>
__device__ __forceinline__ void frame_match_staged(struct check_store_shared<split_or_stale> &s,
						   const struct burst_in &in, uint32_t i)
{
	const struct placed_frame frame = frame_placed(s.ring, s, in, i);
	struct frame_result result = {};

	if (!frame.at ||
	    frame_matches(&s.ring.job.layout.match,
			  (const uint8_t *)s.staging[i] + staging_shift(frame.at), frame.len))
		result.verdict = FRAME_VALID;
	else
		result.verdict = FRAME_FILTERED;
	s.records.result[i] = result;
}

/* Steps 1 and 2, of the frames that are due. Ends with a barrier. */
template <bool split_or_stale>
__device__ __forceinline__ void check_store_pass(struct check_store_shared<split_or_stale> &s,
						 const struct burst_in &in, uint32_t thread)
{
	const struct device_job &job = s.ring.job;
	const bool matching = job.layout.match.count != 0;
	const uint32_t count = in.count;

	if (thread == 0)
		s.next_frame = 0;
	if (matching || split_or_stale) {
		stage_frames(s.ring, s, s.staging, in, thread);
		barrier_sync(BARRIER_WORK, s.ring.work_threads);
		if (matching && thread < count && frame_is_due(s, thread))
			frame_match_staged<split_or_stale>(s, in, thread);
	}
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	for (uint32_t i; (i = warp_next(&s.next_frame)) < count;) {
		const struct placed_frame placed = frame_placed(s.ring, s, in, i);
		const struct received_frame<split_or_stale> frame = {
			received_from<split_or_stale>(placed.at, s.staging[i], 0), placed.len,
				store_padded(placed.len)
		};
		const bool filtered = matching && s.records.result[i].verdict == FRAME_FILTERED;

		__syncwarp(); /* all have read what lane 0 writes below */
		if (filtered || !frame_is_due(s, i))
			continue;
		if (placed.at && !placed.cut)
			warp_check_frame(job.store, frame, &s.records.result[i]);
		else if (lane_index() == 0)
			frame_unreachable(&s.records.result[i]);
	}
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
}

template <bool split_or_stale>
__device__ __forceinline__ uint32_t check_store_burst(struct check_store_shared<split_or_stale> &s,
						      const struct burst_in &in, uint32_t thread)
{
	const struct device_job &job = s.ring.job;

	if constexpr (split_or_stale)
		check_split_or_stale(s.ring, s, in, s.records.result, thread,
				     [&] { check_store_pass<split_or_stale>(s, in, thread); });
	else
		check_store_pass<split_or_stale>(s, in, thread);
	return write_records<split_or_stale>(
		s.ring, s.records, in, thread,
		[&job](const struct frame_result &last, const struct frame_result &next) {
			return record_joins(&job.layout, &job.store, &last, &next);
		},
		[&](uint32_t i) { return frame_len(s, in, i); });
}

template <bool split_or_stale>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_store_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct check_store_shared<split_or_stale> &s =
		*(struct check_store_shared<split_or_stale> *)memory;

	if (!ring_enter(s.ring, job, false))
		return;
	ring_run(s.ring, [&s](const struct burst_in &in, uint32_t thread) {
		return check_store_burst<split_or_stale>(s, in, thread);
	});
}

struct kernel_program check_store_program(void)
{
	return { "check", (const void *)check_store_kernel<false>,
		 sizeof(struct check_store_shared<false>) };
}

struct kernel_program check_store_split_or_stale_program(void)
{
	return { "check", (const void *)check_store_kernel<true>,
		 sizeof(struct check_store_shared<true>) };
}
