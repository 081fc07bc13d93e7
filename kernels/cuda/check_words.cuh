/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Step 3 of a checker of patterns that are no PRBS: payloads beside their pattern's bytes, by the 16-byte pieces
 * in which they lie in memory.
 */
#ifndef GDRCAP_CUDA_CHECK_WORDS_CUH
#define GDRCAP_CUDA_CHECK_WORDS_CUH

#include "kernels/cuda/check_state.cuh"

/* Pieces that a lane has under way. */
#define WORDS_AT_ONCE 2u

/* A loop's condition where each `lanes` lanes of a warp have a payload of their own, and go on together. */
template <uint32_t lanes> __device__ __forceinline__ bool any_goes_on(bool mine)
{
	if constexpr (lanes == 32)
		return mine;
	else
		return __any_sync(WARP_ALL, mine);
}

/* Of a little-endian word, all bits but the first `bits`, of which there may be none or more than 32. */
__device__ __forceinline__ uint32_t bits_from(int bits)
{
	return __funnelshift_lc(0, 0xffffffffu, (uint32_t)max(bits, 0));
}

/*
 * Not 0 where a lane's pieces of a payload, which `lanes` lanes share, are not the pattern's. want(p) gives piece
 * p, counted from the one that the payload's first byte lies in; what it gives of bytes before and behind the
 * payload is of no matter. Called by whole warps, and so is want(): a lane calls it for every `step`th piece, in order.
 * Lanes from `step` on check no piece.
 */
template <uint32_t lanes, uint32_t step = lanes, bool split_or_stale, typename Want>
__device__ __forceinline__ uint32_t words_wrong(const struct received<split_or_stale> &payload,
						uint32_t bytes, Want want)
{
	const uint32_t lane = lane_index() % lanes, shift = staging_shift(payload.at);
	const uint32_t end = shift + bytes, count = (end + PIECE_BYTES - 1) / PIECE_BYTES;
	uint32_t wrong = 0;

	for (uint32_t first = 0; any_goes_on<lanes>(first < count); first += step * WORDS_AT_ONCE) {
		uint4 piece[WORDS_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < WORDS_AT_ONCE; k++) {
			const uint32_t p = first + step * k + lane;

			piece[k] = make_uint4(0, 0, 0, 0);
			if (p < count)
				piece[k] = received_any_piece(payload, p);
		}
#pragma unroll
		for (uint32_t k = 0; k < WORDS_AT_ONCE; k++) {
			const uint32_t at = first + step * k, p = at + lane;
			uint4 other;

			if (!any_goes_on<lanes>(at < count))
				break;
			other = want(p);
			other.x ^= piece[k].x;
			other.y ^= piece[k].y;
			other.z ^= piece[k].z;
			other.w ^= piece[k].w;
			if (at == 0) { /* the payload begins in the first of these */
				const int bits = 8 * ((int)shift - (int)(PIECE_BYTES * p));

				other.x &= bits_from(bits);
				other.y &= bits_from(bits - 32);
				other.z &= bits_from(bits - 64);
				other.w &= bits_from(bits - 96);
			}
			if (at + step >= count) { /* it ends in one of these */
				const int bits = 8 * ((int)end - (int)(PIECE_BYTES * p));

				other.x &= ~bits_from(bits);
				other.y &= ~bits_from(bits - 32);
				other.z &= ~bits_from(bits - 64);
				other.w &= ~bits_from(bits - 96);
			}
			wrong |= other.x | other.y;
			wrong |= other.z | other.w;
		}
	}
	return lane < step ? wrong : 0;
}

/* ---- what belongs there ---- */

/* 16 bytes of counters of 1 << log2 bytes from position q on, by words that begin at multiples of four. */
template <uint32_t log2, bool big_endian> __device__ __forceinline__ uint4 counter_piece(uint64_t q)
{
	const uint32_t bits = 8 * (uint32_t)(q % 4);
	const uint64_t at = q - q % 4;
	uint32_t word[5];

#pragma unroll
	for (uint32_t w = 0; w < 5; w++)
		word[w] = log2 < 3 ? pattern_counter_bytes(log2, big_endian,
							   (at >> log2) + (4 * w >> log2), 0)
				   : pattern_counter_word(log2, big_endian, at + 4 * w);
	return make_uint4(
		__funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits),
		__funnelshift_r(word[2], word[3], bits), __funnelshift_r(word[3], word[4], bits));
}

template <uint32_t lanes, uint32_t log2, bool big_endian, bool split_or_stale>
__device__ __forceinline__ uint32_t counter_wrong(const struct pattern &pattern,
						  const struct received<split_or_stale> &payload,
						  uint32_t bytes, const struct pattern_place &place)
{
	/* of the first piece's first byte */
	const uint64_t q = (pattern.restart ? 0 : place.position) - staging_shift(payload.at);

	return words_wrong<lanes>(payload, bytes, [&](uint32_t p) {
		return counter_piece<log2, big_endian>(q + PIECE_BYTES * p);
	});
}

/* A block of the generator. */
__device__ __forceinline__ uint4 random_piece(const struct pattern &pattern,
					      const struct pattern_place &place, uint32_t block)
{
	uint32_t word[4];

	pattern_random_block(&pattern, &place, block, word);
	return make_uint4(word[0], word[1], word[2], word[3]);
}

/*
 * random_wrong() where blocks begin `words` words and `bits` bits before a piece's end, or with it: a lane makes the block
 * before, or that of its piece, and has the piece's end from its neighbour; so the last one checks none.
 */
template <uint32_t lanes, uint32_t words, bool split_or_stale>
__device__ __forceinline__ uint32_t random_wrong_by(const struct pattern &pattern,
						    const struct received<split_or_stale> &payload,
						    uint32_t bytes,
						    const struct pattern_place &place,
						    uint32_t bits)
{
	const uint32_t before = staging_shift(payload.at) ? 1 : 0;

	return words_wrong<lanes, lanes - 1>(payload, bytes, [&](uint32_t p) {
		return piece_join<words>(random_piece(pattern, place, p - before), bits);
	});
}

template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t
random_wrong_from(const struct pattern &pattern, const struct received<split_or_stale> &payload,
		  uint32_t bytes, const struct pattern_place &place, uint32_t from)
{
	const uint32_t bits = 8 * (from % 4);

	switch (from / 4) {
	case 0:
		return random_wrong_by<lanes, 0>(pattern, payload, bytes, place, bits);
	case 1:
		return random_wrong_by<lanes, 1>(pattern, payload, bytes, place, bits);
	case 2:
		return random_wrong_by<lanes, 2>(pattern, payload, bytes, place, bits);
	default:
		return random_wrong_by<lanes, 3>(pattern, payload, bytes, place, bits);
	}
}

template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t random_wrong(const struct pattern &pattern,
						 const struct received<split_or_stale> &payload,
						 uint32_t bytes, const struct pattern_place &place)
{
	const uint32_t from = (0 - staging_shift(payload.at)) % PIECE_BYTES;
	struct pattern own; /* in registers */
	uint32_t wrong = 0;

	own.seed = pattern.seed;
	if constexpr (lanes == 32) {
		wrong = random_wrong_from<lanes>(own, payload, bytes, place, from);
	} else {
		/* a warp's payloads mostly begin alike; if not, one kind after the other */
		for (uint32_t left = WARP_ALL; left;) {
			const uint32_t now = __shfl_sync(WARP_ALL, from, __ffs(left) - 1);
			const uint32_t found =
				random_wrong_from<lanes>(own, payload, bytes, place, now);

			wrong |= from == now ? found : 0;
			left &= ~__ballot_sync(WARP_ALL, from == now);
		}
	}
	return wrong;
}

/* Four bytes of any pattern from `offset` on, which may lie before the payload. */
static __device__ __noinline__ uint32_t pattern_word_from(const struct pattern &pattern,
							  const struct pattern_place &place,
							  int offset)
{
	const uint32_t before = (uint32_t)max(-offset, 0);

	return __funnelshift_lc(0, pattern_word(&pattern, &place, (uint32_t)max(offset, 0)),
				8 * before);
}

template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t other_wrong(const struct pattern &pattern,
						const struct received<split_or_stale> &payload,
						uint32_t bytes, const struct pattern_place &place)
{
	const int shift = (int)staging_shift(payload.at);

	return words_wrong<lanes>(payload, bytes, [&](uint32_t p) {
		const int offset = (int)(PIECE_BYTES * p) - shift;

		return make_uint4(pattern_word_from(pattern, place, offset),
				  pattern_word_from(pattern, place, offset + 4),
				  pattern_word_from(pattern, place, offset + 8),
				  pattern_word_from(pattern, place, offset + 12));
	});
}

/* Not 0 in a lane that found something wrong with a payload that `lanes` lanes share. Whole warps. */
template <uint32_t lanes, bool split_or_stale>
__device__ __forceinline__ uint32_t pattern_wrong(const struct pattern &pattern,
						  const struct received<split_or_stale> &payload,
						  uint32_t bytes, const struct pattern_place &place)
{
	switch (pattern.kind) {
	case PATTERN_RANDOM:
		return random_wrong<lanes>(pattern, payload, bytes, place);
	case PATTERN_COUNTER8:
		return counter_wrong<lanes, 0, false>(pattern, payload, bytes, place);
	case PATTERN_COUNTER16_BE:
		return counter_wrong<lanes, 1, true>(pattern, payload, bytes, place);
	case PATTERN_COUNTER16_LE:
		return counter_wrong<lanes, 1, false>(pattern, payload, bytes, place);
	case PATTERN_COUNTER32_BE:
		return counter_wrong<lanes, 2, true>(pattern, payload, bytes, place);
	case PATTERN_COUNTER32_LE:
		return counter_wrong<lanes, 2, false>(pattern, payload, bytes, place);
	case PATTERN_COUNTER64_BE:
		return counter_wrong<lanes, 3, true>(pattern, payload, bytes, place);
	case PATTERN_COUNTER64_LE:
		return counter_wrong<lanes, 3, false>(pattern, payload, bytes, place);
	default:
		return other_wrong<lanes>(pattern, payload, bytes, place);
	}
}

/* The 16 payload bytes from `offset` on, a multiple of 16, where one thread reads a payload: of a random one a
 * block of the generator. */
__device__ __forceinline__ uint4 pattern_piece(const struct pattern &pattern,
					       const struct pattern_place &place, uint32_t offset)
{
	uint32_t word[4];

	if (pattern.kind == PATTERN_RANDOM) {
		pattern_random_block(&pattern, &place, offset / PIECE_BYTES, word);
	} else {
#pragma unroll
		for (uint32_t w = 0; w < 4; w++)
			word[w] = pattern_word_from(pattern, place, (int)(offset + 4 * w));
	}
	return make_uint4(word[0], word[1], word[2], word[3]);
}

#endif
