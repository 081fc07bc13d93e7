/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C by words. Each of a word's eight nibbles has a table of 16 entries, which lie in different
 * banks of shared memory: threads that look up different nibbles never wait for each other, and a
 * word costs one look-up's latency where the byte-wise way has four.
 *
 * The register is linear in the words that went in, so that of a few words each may be taken by
 * itself, by tables of what becomes of it in the steps behind it, and the parts be added.
 */
#ifndef GDRCAP_CUDA_CRC_CUH
#define GDRCAP_CUDA_CRC_CUH

#include <stdint.h>

#define CRC_NIBBLES 128u		      /* words of all tables of one place */
#define CRC_PLACES 8u			      /* words under a header's CRC */
#define CRC_PLACED (CRC_PLACES * CRC_NIBBLES) /* words of the tables of all places */

/* Entry i of the tables, from the byte-wise one: four zero bytes after the nibble alone. */
__device__ __forceinline__ uint32_t crc_nibble(const uint32_t *table, uint32_t i)
{
	uint32_t crc = (i % 16) << (4 * (i / 16));

	for (uint32_t b = 0; b < 4; b++)
		crc = crc >> 8 ^ table[crc & 0xff];
	return crc;
}

/* Entry i of the tables of all places, the last of which are those above. */
__device__ __forceinline__ uint32_t crc_placed_entry(const uint32_t *table, uint32_t i)
{
	uint32_t crc = crc_nibble(table, i % CRC_NIBBLES);

	for (uint32_t b = 4 * (i / CRC_NIBBLES + 1); b < 4 * CRC_PLACES; b++)
		crc = crc >> 8 ^ table[crc & 0xff];
	return crc;
}

/* The sum of what the tables of a place have for each nibble. */
__device__ __forceinline__ uint32_t crc_look_up(const uint32_t *nibbles, uint32_t bits)
{
	/* byte offsets of entries: those of the even nibbles, and of the odd ones */
	const uint32_t even = bits << 2 & 0x3c3c3c3cu, odd = bits >> 2 & 0x3c3c3c3cu;
	const uint8_t *table = (const uint8_t *)nibbles;
	uint32_t out = 0;

#pragma unroll
	for (uint32_t b = 0; b < 4; b++) {
		out ^= *(const uint32_t *)(table + 128 * b + (even >> (8 * b) & 0xff));
		out ^= *(const uint32_t *)(table + 128 * b + 64 + (odd >> (8 * b) & 0xff));
	}
	return out;
}

/* What the word at `place` adds to the register after all; the first word with the register that
 * it meets. */
__device__ __forceinline__ uint32_t crc_placed(const uint32_t *placed, uint32_t place,
					       uint32_t word)
{
	return crc_look_up(placed + place * CRC_NIBBLES, word);
}

/* The register after a word, whose first byte is in bits 7..0. */
__device__ __forceinline__ uint32_t crc_step(const uint32_t *nibbles, uint32_t crc, uint32_t word)
{
	return crc_look_up(nibbles, crc ^ word);
}

#endif
