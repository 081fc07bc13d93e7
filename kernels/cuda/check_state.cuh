/* SPDX-License-Identifier: BSD-3-Clause */
/* What a checker's block has in shared memory: of the block, and of each group of work threads. */
#ifndef GDRCAP_CUDA_CHECK_STATE_CUH
#define GDRCAP_CUDA_CHECK_STATE_CUH

#include "kernels/cuda/crc.cuh"
#include "kernels/cuda/records.cuh"
#include "kernels/cuda/staging.cuh"

/* In the list of long payloads: something that is staged was wrong already. */
#define LONG_IS_WRONG 0x8000u
#define MEDIUM_ONE 0x10000u /* in their number: one of the other list */

#define SMALL_FRAMES 32u /* of a burst that small_burst.cuh may tell */

struct small_frame {
	uint64_t sequence;
	uint32_t sender; /* stream, and from bit 16 on source */
	uint32_t sums;	 /* payload bytes, and from bit 16 on wire bytes */
};

/* Where long payloads begin; of frames in two pieces, that is worked out again. And what
 * small_burst.cuh needs. */
template <bool split_or_stale> struct check_places {
	static constexpr uint32_t crc_words = CRC_NIBBLES;
};

template <> struct check_places<false> {
	static constexpr uint32_t crc_words = CRC_PLACED;
	union {
		const uint8_t *payload[BURST_FRAMES_MAX];
		struct small_frame small[SMALL_FRAMES]; /* before there is a list of payloads */
	};
};

/* What a group of work threads has of its burst. */
template <bool split_or_stale> struct check_group : check_places<split_or_stale> {
	struct records_shared records;
	uint64_t position[BURST_FRAMES_MAX];
	/* Frames that are left to a warp, and MEDIUM_ONE times those that are left to some of its lanes, longer
	 * than the staging buffer for the most: how many; which is in long_frame, from its beginning, and from
	 * its end on. */
	uint32_t longs;
	/* small_burst.cuh, writer: thread 0: told; bursts in a row that were not; those to come that are
	 * not tried */
	uint8_t small_told, small_misses, small_wait;
	uint16_t long_frame[BURST_FRAMES_MAX];
	uint32_t staging[BURST_FRAMES_MAX][staging_size<split_or_stale>::stride];
};

/* Followed by the groups behind the first, which only checkers without `split_or_stale` have. */
template <bool split_or_stale> struct check_shared : split_or_stale_shared<split_or_stale> {
	struct ring_shared ring;
	uint32_t crc
		[check_places<split_or_stale>::crc_words]; /* of places, the last if there is one */
	struct check_group<split_or_stale> group[1];
};
static_assert(sizeof(check_shared<true>) <= 64 << 10 && sizeof(check_shared<false>) <= 64 << 10,
	      "a block of Turing has 64 KiB");
static_assert(sizeof(check_shared<false>) + (GROUPS_MAX - 1) * sizeof(check_group<false>) <=
		      163 << 10,
	      "a block of the first Ampere has 163 KiB: all groups");

template <bool split_or_stale>
__device__ __forceinline__ const uint32_t *
crc_nibbles_of(const struct check_shared<split_or_stale> &s)
{
	return s.crc + check_places<split_or_stale>::crc_words - CRC_NIBBLES;
}

/*
 * A block's shared memory begins with it. Steps that take registers of their own are functions that
 * are called, and ask here: by an argument they would not know that it is shared memory.
 */
template <bool split_or_stale>
__device__ __forceinline__ struct check_shared<split_or_stale> &check_here(void) {
	extern __shared__ uint4 memory[];

	return *(struct check_shared<split_or_stale> *)memory;
}

#endif
