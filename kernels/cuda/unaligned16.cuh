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

/* Pieces that a lane has under way: with 30 warps 60 KiB a multiprocessor. */
#define PIECES_AT_ONCE 4u

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

/* Writes bytes low .. high - 1 of a piece, in few stores: each may be a write over PCIe. */
__device__ __forceinline__ void piece_store_part(uint8_t *to, uint4 piece, uint32_t low,
						 uint32_t high)
{
	for (uint32_t at = low; at < high;) {
		const uint32_t word =
			at < 8 ? (at < 4 ? piece.x : piece.y) : (at < 12 ? piece.z : piece.w);

		if (at % 4 == 0 && at + 4 <= high) {
			*(uint32_t *)(to + at) = word;
			at += 4;
		} else {
			to[at] = (uint8_t)(word >> (8 * (at % 4)));
			at++;
		}
	}
}

/*
 * A warp copies `bytes` bytes. Each piece is read once and written once, and lanes take from their
 * neighbours what lies across a piece's end.
 */
__device__ __forceinline__ void warp_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t to_shift = (uint32_t)(uintptr_t)to % PIECE_BYTES;
	const uint32_t from_shift = (uint32_t)(uintptr_t)from % PIECE_BYTES;
	/* a written piece is made of read pieces p - 1 and p; ahead: it is number p - 1 itself */
	const uint32_t ahead = from_shift > to_shift;
	const uint32_t shift = from_shift - to_shift + (ahead ? 0 : PIECE_BYTES);
	const uint32_t in = bytes ? (from_shift + bytes + PIECE_BYTES - 1) / PIECE_BYTES : 0;
	const uint32_t out = bytes ? (to_shift + bytes + PIECE_BYTES - 1) / PIECE_BYTES : 0;
	const uint32_t count = max(in, out + ahead);
	const uint4 *pieces = (const uint4 *)(from - from_shift);
	uint8_t *base = to - to_shift;
	uint4 carry = make_uint4(0, 0, 0, 0);

	for (uint32_t first = 0; first < count; first += 32 * PIECES_AT_ONCE) {
		uint4 piece[PIECES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane;

			piece[k] = p < in ? pieces[p] : make_uint4(0, 0, 0, 0);
		}
#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane, o = p - ahead;
			/* lane 0 takes what lane 31 had one round ago */
			const uint4 given = lane == 31 ? carry : piece[k];
			const int neighbour = (int)((lane + 31) & 31);
			uint4 before, whole;

			if (first + 32 * k >= count)
				break;
			before.x = __shfl_sync(0xffffffffu, given.x, neighbour);
			before.y = __shfl_sync(0xffffffffu, given.y, neighbour);
			before.z = __shfl_sync(0xffffffffu, given.z, neighbour);
			before.w = __shfl_sync(0xffffffffu, given.w, neighbour);
			carry = piece[k];
			whole = piece_between(before, piece[k], shift);
			if (o >= out) /* also p before the first, which is a large number */
				continue;
			if (o * PIECE_BYTES >= to_shift &&
			    (o + 1) * PIECE_BYTES <= to_shift + bytes)
				*(uint4 *)(base + o * PIECE_BYTES) = whole;
			else
				piece_store_part(
					base + o * PIECE_BYTES, whole, o ? 0 : to_shift,
					min(PIECE_BYTES, to_shift + bytes - o * PIECE_BYTES));
		}
	}
}

#endif
