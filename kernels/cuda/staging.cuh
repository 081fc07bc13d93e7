/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beginnings of a burst's frames in shared memory, for threads that read one frame each.
 *
 * A frame of header-data split is staged as if it lay whole where its rest lies, its first piece
 * before it: the pieces that its first piece touches are all in the staging buffer, and those behind them
 * are read where they are.
 */
#ifndef GDRCAP_CUDA_STAGING_CUH
#define GDRCAP_CUDA_STAGING_CUH

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/split_or_stale.cuh"
#include "kernels/cuda/unaligned16.cuh"

/* Frame f's byte 0 is byte staging_shift() of staging[f]. */
template <bool split_or_stale> struct staging_size {
	/* a first piece may end in the ninth, since a frame starts up to 15 bytes into its first */
	static constexpr uint32_t pieces = split_or_stale ? 9 : 8;
	static constexpr uint32_t bytes = PIECE_BYTES * pieces;
	/* One word more than the bytes need, so that threads which walk their frames in step meet
	 * no bank conflict. */
	static constexpr uint32_t stride = bytes / 4 + 1;
};

/* A frame starts up to 15 bytes into its first piece; its headers and first word must be staged. */
#define STAGE_FRAME_BYTES (staging_size<false>::bytes - (PIECE_BYTES - 1))
static_assert(STAGE_FRAME_BYTES >= FRAME_MAX_OVERHEAD + 4 &&
		      STAGE_FRAME_BYTES >= FRAME_CUSTOM_PAYLOAD_MAX + 8 &&
		      STAGE_FRAME_BYTES >= FRAME_FIELD_END_MAX &&
		      STAGE_FRAME_BYTES >= FRAME_MATCH_BYTES,
	      "staging holds the headers");
static_assert(staging_size<true>::bytes - (PIECE_BYTES - 1) >= FRAME_HEAD_BYTES_MAX,
	      "staging holds first pieces");

__device__ __forceinline__ uint32_t staging_shift(const uint8_t *frame)
{
	return (uint32_t)(uintptr_t)frame % PIECE_BYTES;
}

/* Four bytes of a staged frame from byte `at` of its staging buffer. */
__device__ __forceinline__ uint32_t staging_word(const uint32_t *staging, uint32_t at)
{
	return __funnelshift_r(staging[at / 4], staging[at / 4 + 1], 8 * (at % 4));
}

/* Bytes from .. from + 15 of a stretch of `bytes` bytes that may start anywhere; those before and
 * behind it are zeros. Reads only pieces in which some of it lies. */
__device__ __forceinline__ uint4 stretch_piece(const uint8_t *stretch, uint32_t bytes, int from)
{
	const uint8_t *at = stretch + from;
	const uint32_t shift = staging_shift(at);
	const uint4 *pieces = (const uint4 *)(at - shift);
	const int first = from - (int)shift, end = (int)bytes; /* of pieces[0], in the stretch */
	uint4 low = make_uint4(0, 0, 0, 0), high = low, out;

	if (end && first + (int)PIECE_BYTES > 0 && first < end)
		low = pieces[0];
	if (end && shift && first + 2 * (int)PIECE_BYTES > 0 && first + (int)PIECE_BYTES < end)
		high = pieces[1];
	out = piece_between(low, high, shift);
	return make_uint4(out.x & byte_mask(-from, end - from),
			  out.y & byte_mask(-from - 4, end - from - 4),
			  out.z & byte_mask(-from - 8, end - from - 8),
			  out.w & byte_mask(-from - 12, end - from - 12));
}

/* Piece `piece` of the staging buffer of a frame that may lie in two pieces. */
__device__ __forceinline__ uint4 staging_piece(const struct ring_shared &ring,
					       const struct split_or_stale_shared<true> &extra,
					       const struct burst_in &in, uint32_t f,
					       uint32_t piece)
{
	const uint8_t *frame = frame_placed(ring, extra, in, f).at;
	const int from = (int)(piece * PIECE_BYTES) - (int)staging_shift(frame);
	struct frame_pieces pieces;
	uint4 out = make_uint4(0, 0, 0, 0), head;

	if (!frame)
		return out;
	frame_pieces(&ring.ring, in.desc[f], extra.head[f], &pieces);
	out = stretch_piece(pieces.rest, pieces.rest_len, from - (int)pieces.head_len);
	if (from >= (int)pieces.head_len)
		return out;
	head = stretch_piece(pieces.head, pieces.head_len, from);
	return make_uint4(out.x | head.x, out.y | head.y, out.z | head.z, out.w | head.w);
}

/* Pieces of its frames that a thread has under way while it stages them. */
#define STAGE_AT_ONCE 4u

__device__ __forceinline__ void staging_store(uint32_t *to, uint4 bytes)
{
	to[0] = bytes.x;
	to[1] = bytes.y;
	to[2] = bytes.z;
	to[3] = bytes.w;
}

/* Where piece `piece` of frame f's staging buffer is in the region; NULL: nothing of the frame is there. */
__device__ __forceinline__ const uint4 *staging_source(const struct ring_shared &ring,
						       const struct burst_in &in, uint32_t f,
						       uint32_t piece)
{
	const struct frame_desc desc = in.desc[f];
	const uint8_t *frame = frame_at(&ring.ring, desc);
	const uint32_t shift = staging_shift(frame), from = piece * PIECE_BYTES;

	/* the region begins and ends at whole pieces */
	return frame && from < shift + desc.len ? (const uint4 *)(frame - shift + from) : NULL;
}

/* All work threads of a group, together; those of the group's next frames are asked for before the
 * first has come. */
__device__ __forceinline__ void stage_frames(const struct ring_shared &ring,
					     const struct split_or_stale_shared<false> &,
					     uint32_t (*staging)[staging_size<false>::stride],
					     const struct burst_in &in, uint32_t thread)
{
	const uint32_t per_frame = staging_size<false>::pieces,
		       step = ring.work_threads / per_frame;
	const uint32_t piece = thread % per_frame, count = in.count;

	for (uint32_t first = thread / per_frame; first < count; first += STAGE_AT_ONCE * step) {
		uint4 bytes[STAGE_AT_ONCE];
		uint32_t there = 0;

#pragma unroll
		for (uint32_t k = 0; k < STAGE_AT_ONCE; k++) {
			const uint32_t f = first + k * step;
			const uint4 *from = f < count ? staging_source(ring, in, f, piece) : NULL;

			bytes[k] = make_uint4(0, 0, 0, 0);
			if (from)
				bytes[k] = piece_load(from);
			there |= from ? 1u << k : 0;
		}
#pragma unroll
		for (uint32_t k = 0; k < STAGE_AT_ONCE; k++)
			if (there >> k & 1)
				staging_store(&staging[first + k * step][piece * PIECE_BYTES / 4],
					      bytes[k]);
	}
}

/* The same of those frames that are due, which may lie in two pieces. */
__device__ __forceinline__ void stage_frames(const struct ring_shared &ring,
					     const struct split_or_stale_shared<true> &extra,
					     uint32_t (*staging)[staging_size<true>::stride],
					     const struct burst_in &in, uint32_t thread)
{
	const uint32_t per_frame = staging_size<true>::pieces, pieces = in.count * per_frame;

	for (uint32_t i = thread; i < pieces; i += ring.work_threads) {
		const uint32_t f = i / per_frame, piece = i % per_frame;

		if (frame_is_due(extra, f))
			staging_store(&staging[f][piece * PIECE_BYTES / 4],
				      staging_piece(ring, extra, in, f, piece));
	}
}

/*
 * A received payload, or frame, that is read by a warp. Split: its first bytes are in the staging buffer.
 */
template <bool split_or_stale> struct received;

template <> struct received<false> {
	const uint8_t *at;
};

template <> struct received<true> {
	const uint8_t *at; /* where it would begin if it lay whole */
	const uint8_t *staged;
	uint32_t staged_bytes;
};

/* From byte `start` of frame i, which begins at `frame`, on. */
template <bool split_or_stale>
__device__ __forceinline__ struct received<split_or_stale>
received_from(const uint8_t *frame, const uint32_t *staging, uint32_t start) {
	if constexpr (split_or_stale) {
		const uint32_t before = staging_shift(frame) + start;

		return { frame + start, (const uint8_t *)staging + before,
			 staging_size<true>::bytes - before };
	} else {
		return { frame + start };
	}
}

__device__ __forceinline__ struct frame_span
received_span(const struct received<false> &from)
{
	return { from.at, from.at, 0, 1 };
}

__device__ __forceinline__ struct frame_span received_span(const struct received<true> &from)
{
	return { from.staged, from.at + from.staged_bytes, from.staged_bytes, 0 };
}

/* Piece p, counted from the one that its first byte lies in; one behind those that are staged. */
template <bool split_or_stale>
__device__ __forceinline__ uint4 received_piece(const struct received<split_or_stale> &from,
						uint32_t p)
{
	return piece_load((const uint4 *)(from.at - staging_shift(from.at)) + p);
}

/* The same, wherever it is. */
__device__ __forceinline__ uint4 received_any_piece(const struct received<false> &from, uint32_t p)
{
	return received_piece(from, p);
}

__device__ __forceinline__ uint4 received_any_piece(const struct received<true> &from, uint32_t p)
{
	const uint32_t shift = staging_shift(from.at);
	const uint32_t *staged = (const uint32_t *)(from.staged - shift) + PIECE_BYTES / 4 * p;

	/* staging ends with a whole piece */
	if (PIECE_BYTES * p < shift + from.staged_bytes)
		return make_uint4(staged[0], staged[1], staged[2], staged[3]);
	return received_piece(from, p);
}

#endif
