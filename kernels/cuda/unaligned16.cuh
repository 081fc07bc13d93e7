/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stretches of bytes in 16-byte pieces, whatever their addresses. Reading the whole piece that a
 * wanted byte lies in is safe: it crosses no page.
 */
#ifndef GDRCAP_CUDA_UNALIGNED16_CUH
#define GDRCAP_CUDA_UNALIGNED16_CUH

#include <stdint.h>

#define PIECE_BYTES 16u

/* A piece of global memory, where all frames lie: a load that need not ask whether. */
__device__ __forceinline__ uint4 piece_load(const uint4 *piece)
{
	uint4 out;

	asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
		     : "l"(__cvta_generic_to_global(piece)));
	return out;
}

/* The 16 bytes from byte `shift` (0..16) of two pieces that follow each other. */
__device__ __forceinline__ uint4 piece_between(uint4 first, uint4 second, uint32_t shift)
{
	uint32_t w0 = first.x, w1 = first.y, w2 = first.z, w3 = first.w, w4 = second.x;
	const uint32_t w5 = second.y, w6 = second.z, w7 = second.w, bits = 8 * (shift % 4);

	/* selects by the bits of the shift: registers have no index */
	if (shift & 16)
		return second;
	if (shift & 8) {
		w0 = w2;
		w1 = w3;
		w2 = w4;
		w3 = w5;
		w4 = w6;
	}
	if (shift & 4) {
		w0 = w1;
		w1 = w2;
		w2 = w3;
		w3 = w4;
		w4 = shift & 8 ? w7 : w5;
	}
	return make_uint4(__funnelshift_r(w0, w1, bits), __funnelshift_r(w1, w2, bits),
			  __funnelshift_r(w2, w3, bits), __funnelshift_r(w3, w4, bits));
}

/* Pieces that a lane has under way: with 30 warps 60 KiB a multiprocessor. */
#define PIECES_AT_ONCE 4u
/* While it copies: three rounds are all of a frame of 1,500 bytes. */
#define COPIES_AT_ONCE 3u
/* `words` of warp_copy_pieces() where read and written pieces begin at the same byte. */
#define PIECES_ALIGNED 4u

/* The 16 bytes that begin `words` words and `bits` bits into a lane's piece; their end is the neighbour's. */
template <uint32_t words> __device__ __forceinline__ uint4 piece_join(uint4 piece, uint32_t bits)
{
	uint32_t w[8] = { piece.x, piece.y, piece.z, piece.w };

#pragma unroll
	for (uint32_t k = 0; k <= words; k++)
		w[4 + k] = __shfl_down_sync(0xffffffffu, w[k], 1);
	return make_uint4(__funnelshift_r(w[words], w[words + 1], bits),
			  __funnelshift_r(w[words + 1], w[words + 2], bits),
			  __funnelshift_r(w[words + 2], w[words + 3], bits),
			  __funnelshift_r(w[words + 3], w[words + 4], bits));
}

/*
 * Whole pieces: `out` are written, of `in` that are read. Each is read by one lane, which takes its
 * written piece's end from its neighbour; so the last lane writes none, and reads again what the first
 * does in the next round.
 */
template <uint32_t words>
__device__ __forceinline__ void warp_copy_pieces(uint4 *to, uint32_t out, const uint4 *from,
						 uint32_t in, uint32_t bits)
{
	const uint32_t lane = threadIdx.x & 31, step = words == PIECES_ALIGNED ? 32 : 31;

	for (uint32_t first = 0; first < out; first += step * COPIES_AT_ONCE) {
		uint4 piece[COPIES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < COPIES_AT_ONCE; k++) {
			const uint32_t p = first + step * k + lane;

			piece[k] = make_uint4(0, 0, 0, 0);
			if (p < in)
				piece[k] = from[p];
		}
#pragma unroll
		for (uint32_t k = 0; k < COPIES_AT_ONCE; k++) {
			const uint32_t p = first + step * k + lane;
			uint4 whole = piece[k];

			if (first + step * k >= out)
				break;
			if constexpr (words != PIECES_ALIGNED)
				whole = piece_join<words>(whole, bits);
			if (p < out && lane < step)
				to[p] = whole;
		}
	}
}

/*
 * A warp copies `bytes` bytes: whole written pieces, and a lane each of the bytes before and behind them.
 * By how many words the pieces that are read begin before those that are written is the same for a whole
 * stretch: a variant each, so that no lane has to choose.
 */
__device__ __forceinline__ void warp_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t head = min(bytes, (uint32_t) - (uintptr_t)to % PIECE_BYTES);
	const uint32_t out = (bytes - head) / PIECE_BYTES, tail = (bytes - head) % PIECE_BYTES;
	const uint32_t shift = (uint32_t)(uintptr_t)(from + head) % PIECE_BYTES;
	const uint32_t bits = 8 * (shift % 4), in = out + (shift != 0);
	const uint4 *pieces = (const uint4 *)(from + head - shift);
	uint4 *written = (uint4 *)(to + head);
	/* lanes 0..15 the head, 16..31 the tail */
	const bool edge = lane % 16 < (lane < 16 ? head : tail);
	const uint32_t at = lane % 16 + (lane < 16 ? 0 : head + out * PIECE_BYTES);
	const uint8_t byte = edge ? from[at] : 0;

	if (!shift)
		warp_copy_pieces<PIECES_ALIGNED>(written, out, pieces, in, bits);
	else if (shift < 4)
		warp_copy_pieces<0>(written, out, pieces, in, bits);
	else if (shift < 8)
		warp_copy_pieces<1>(written, out, pieces, in, bits);
	else if (shift < 12)
		warp_copy_pieces<2>(written, out, pieces, in, bits);
	else
		warp_copy_pieces<3>(written, out, pieces, in, bits);
	if (edge)
		to[at] = byte;
}

#endif
