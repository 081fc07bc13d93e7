/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converting payloads on their way into an image: one definition of the arithmetic for the CPU backend and
 * the CUDA kernels, without either's own types. A step makes 8 bytes of the image, which are whole groups,
 * from the bytes that these need. Both are numbers with their first byte as the least significant, as all
 * machines that gdrcap runs on load and store them. What lies above the bytes that a step needs does
 * not matter, and groups behind those that are wanted are the caller's to leave out.
 */
#ifndef GDRCAP_PLACE_CONVERT_H
#define GDRCAP_PLACE_CONVERT_H

#include "pattern/image_convert.h"

#define PLACE_CONVERT_STEP 8u /* bytes of the image */

/* Bytes as sent that a step needs: 2..8. */
GDRCAP_HD uint32_t place_convert_needs(uint32_t convert)
{
	return PLACE_CONVERT_STEP / image_convert_to(convert) * image_convert_from(convert);
}

GDRCAP_HD uint64_t place_swap16(uint64_t in)
{
	return (in & 0x00ff00ff00ff00ffu) << 8 | (in >> 8 & 0x00ff00ff00ff00ffu);
}

GDRCAP_HD uint64_t place_swap32(uint64_t in)
{
	in = place_swap16(in);
	return (in & 0x0000ffff0000ffffu) << 16 | (in >> 16 & 0x0000ffff0000ffffu);
}

GDRCAP_HD uint64_t place_swap64(uint64_t in)
{
	in = place_swap32(in);
	return in << 32 | in >> 32;
}

/* Four numbers of `bits` bits, the first in the lowest: 16 bits each. */
GDRCAP_HD uint64_t place_spread(uint64_t in, uint32_t bits)
{
	const uint64_t mask = ((uint64_t)1 << bits) - 1;

	return (in & mask) | (in >> bits & mask) << 16 | (in >> 2 * bits & mask) << 32 |
	       (in >> 3 * bits & mask) << 48;
}

/* The same with the first in the highest bits of the bytes, as big-endian senders pack them. */
GDRCAP_HD uint64_t place_spread_be(uint64_t in, uint32_t bits)
{
	const uint64_t last_first = place_spread(place_swap64(in) >> (64 - 4 * bits), bits);

	/* the four are in reverse order: swapping bytes, and those of each word back, turns them */
	return place_swap16(place_swap64(last_first));
}

/* IEEE 754 binary32 of a whole number that it can hold exactly. */
GDRCAP_HD uint32_t place_float32(int32_t value)
{
	union {
		float number;
		uint32_t bits;
	} out;

	out.number = (float)value;
	return out.bits;
}

/* IEEE 754 binary16 of -65504 .. 65504, to the nearest, and of two as near to the even one. */
GDRCAP_HD uint32_t place_float16(int32_t value)
{
	const uint32_t wide = place_float32(value), bits = wide & 0x7fffffffu;
	/* 13 bits less of fraction, and an exponent whose 0 is 112 further on */
	const uint32_t narrow = ((bits + 0xfffu + (bits >> 13 & 1)) >> 13) - (112u << 10);

	return wide >> 16 & 0x8000u ? narrow | 0x8000u : (value ? narrow : 0);
}

GDRCAP_HD uint64_t place_floats16(int32_t a, int32_t b, int32_t c, int32_t d)
{
	return place_float16(a) | (uint64_t)place_float16(b) << 16 |
	       (uint64_t)place_float16(c) << 32 | (uint64_t)place_float16(d) << 48;
}

GDRCAP_HD uint64_t place_floats32(int32_t a, int32_t b)
{
	return place_float32(a) | (uint64_t)place_float32(b) << 32;
}

GDRCAP_HD uint64_t place_int16_float16(uint64_t in)
{
	return place_floats16((int16_t)in, (int16_t)(in >> 16), (int16_t)(in >> 32),
			      (int16_t)(in >> 48));
}

GDRCAP_HD uint64_t place_int16_float32(uint64_t in)
{
	return place_floats32((int16_t)in, (int16_t)(in >> 16));
}

GDRCAP_HD uint64_t place_convert_step(uint32_t convert, uint64_t in)
{
	switch (convert) {
	case IMAGE_CONVERT_SWAP16:
		return place_swap16(in);
	case IMAGE_CONVERT_SWAP32:
		return place_swap32(in);
	case IMAGE_CONVERT_SWAP64:
		return place_swap64(in);
	case IMAGE_CONVERT_UNPACK10_BE:
		return place_spread_be(in, 10);
	case IMAGE_CONVERT_UNPACK12_BE:
		return place_spread_be(in, 12);
	case IMAGE_CONVERT_MONO10P:
		return place_spread(in, 10);
	case IMAGE_CONVERT_MONO12P:
		return place_spread(in, 12);
	case IMAGE_CONVERT_INT8_FLOAT16:
		return place_floats16((int8_t)in, (int8_t)(in >> 8), (int8_t)(in >> 16),
				      (int8_t)(in >> 24));
	case IMAGE_CONVERT_INT8_FLOAT32:
		return place_floats32((int8_t)in, (int8_t)(in >> 8));
	case IMAGE_CONVERT_INT16_FLOAT16:
		return place_int16_float16(in);
	case IMAGE_CONVERT_INT16_FLOAT32:
		return place_int16_float32(in);
	case IMAGE_CONVERT_INT16BE_FLOAT16:
		return place_int16_float16(place_swap16(in));
	case IMAGE_CONVERT_INT16BE_FLOAT32:
		return place_int16_float32(place_swap16(in));
	default:
		return in;
	}
}

#endif
