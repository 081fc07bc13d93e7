/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginnings of a burst's frames in shared memory, for threads that read one frame each. */
#ifndef GDRCAP_CUDA_STAGE_CUH
#define GDRCAP_CUDA_STAGE_CUH

#include "block.cuh"
#include "pieces.cuh"

#define STAGE_PIECES 8u
#define STAGE_BYTES (PIECE_BYTES * STAGE_PIECES)
/* One word more than the bytes need, so that threads which walk their frames in step meet no bank
 * conflict. */
#define STAGE_STRIDE (STAGE_BYTES / 4 + 1)

/* A frame starts up to 15 bytes into its first piece; its headers and first word must be staged. */
#define STAGE_FRAME_BYTES (STAGE_BYTES - (PIECE_BYTES - 1))
static_assert(STAGE_FRAME_BYTES >= FRAME_MAX_OVERHEAD + 4 &&
		      STAGE_FRAME_BYTES >= FRAME_FOREIGN_PAYLOAD_MAX + 8 &&
		      STAGE_FRAME_BYTES >= FRAME_MATCH_BYTES,
	      "stage holds the headers");

/* Frame f's byte 0 is byte stage_shift() of stage[f]. */
__device__ __forceinline__ uint32_t stage_shift(const uint8_t *frame)
{
	return (uint32_t)(uintptr_t)frame % PIECE_BYTES;
}

/* All work threads, together. */
__device__ __forceinline__ void stage_frames(const struct ring_shared &ring,
					     uint32_t (*stage)[STAGE_STRIDE],
					     const struct burst_in &in, uint32_t thread)
{
	const uint32_t pieces = in.count * STAGE_PIECES;

	for (uint32_t i = thread; i < pieces; i += ring.work_threads) {
		const uint32_t f = i / STAGE_PIECES, piece = i % STAGE_PIECES;
		const struct frame_desc desc = in.desc[f];
		const uint8_t *frame = frame_at(&ring.ring, desc);
		const uint8_t *at = frame - stage_shift(frame) + piece * PIECE_BYTES;
		uint32_t *to = &stage[f][piece * PIECE_BYTES / 4];

		/* the region begins and ends at whole pieces */
		if (frame && at < frame + desc.len) {
			const uint4 bytes = *(const uint4 *)at;

			to[0] = bytes.x;
			to[1] = bytes.y;
			to[2] = bytes.z;
			to[3] = bytes.w;
		}
	}
}

#endif
