/* SPDX-License-Identifier: BSD-3-Clause */
/* What conversions of images' payloads come to, bit by bit: a second definition, which shares nothing with
 * kernels/place_convert.h. */
#ifndef GDRCAP_TEST_CONVERT_REFERENCE_H
#define GDRCAP_TEST_CONVERT_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "pattern/image_convert.h"

enum reference_kind { REFERENCE_SWAP, REFERENCE_UNPACK, REFERENCE_FLOAT };

/* By enum image_convert: bits of a number as sent and as kept. */
static const struct reference_row {
	enum reference_kind kind;
	uint32_t in, out, big; /* big: most significant bit or byte first */
} reference_rows[IMAGE_CONVERTS] = {
	[IMAGE_CONVERT_SWAP16] = { REFERENCE_SWAP, 16, 16, 1 },
	[IMAGE_CONVERT_SWAP32] = { REFERENCE_SWAP, 32, 32, 1 },
	[IMAGE_CONVERT_SWAP64] = { REFERENCE_SWAP, 64, 64, 1 },
	[IMAGE_CONVERT_UNPACK10_BE] = { REFERENCE_UNPACK, 10, 16, 1 },
	[IMAGE_CONVERT_UNPACK12_BE] = { REFERENCE_UNPACK, 12, 16, 1 },
	[IMAGE_CONVERT_MONO10P] = { REFERENCE_UNPACK, 10, 16, 0 },
	[IMAGE_CONVERT_MONO12P] = { REFERENCE_UNPACK, 12, 16, 0 },
	[IMAGE_CONVERT_INT8_FLOAT16] = { REFERENCE_FLOAT, 8, 16, 0 },
	[IMAGE_CONVERT_INT8_FLOAT32] = { REFERENCE_FLOAT, 8, 32, 0 },
	[IMAGE_CONVERT_INT16_FLOAT16] = { REFERENCE_FLOAT, 16, 16, 0 },
	[IMAGE_CONVERT_INT16_FLOAT32] = { REFERENCE_FLOAT, 16, 32, 0 },
	[IMAGE_CONVERT_INT16BE_FLOAT16] = { REFERENCE_FLOAT, 16, 16, 1 },
	[IMAGE_CONVERT_INT16BE_FLOAT32] = { REFERENCE_FLOAT, 16, 32, 1 },
};

/* Number `n` of `from`: its bits one after the other. */
static inline uint64_t reference_number(const struct reference_row *row, const uint8_t *from,
					uint32_t n)
{
	uint64_t value = 0;

	for (uint32_t b = 0; b < row->in; b++) {
		const uint32_t at = n * row->in + b;
		const uint32_t down = row->big ? 7 - at % 8 : at % 8;
		const uint64_t bit = from[at / 8] >> down & 1;

		value |= bit << (row->big ? row->in - 1 - b : b);
	}
	return value;
}

/* IEEE 754 by arithmetic: sign, exponent, and `fraction` bits rounded to even. */
static inline uint64_t reference_float(int64_t number, uint32_t fraction, uint32_t bias,
				       uint32_t sign_at)
{
	const double value = fabs((double)number);
	double scaled;
	int exponent;

	if (number == 0)
		return 0;
	exponent = ilogb(value);
	scaled = nearbyint(ldexp(value, (int)fraction - exponent));
	/* what rounds up to a power of two carries into the exponent */
	return ((uint64_t)(exponent + (int)bias) << fraction) + (uint64_t)scaled -
	       ((uint64_t)1 << fraction) + ((uint64_t)(number < 0) << sign_at);
}

/* `bytes` bytes as sent, whole groups; returns how many bytes of the image they are. */
static inline uint32_t reference_convert(uint32_t convert, uint8_t *to, const uint8_t *from,
					 uint32_t bytes)
{
	const struct reference_row *row = &reference_rows[convert];
	uint32_t n = 0;

	if (!row->in) {
		memcpy(to, from, bytes);
		return bytes;
	}
	for (; n < 8 * bytes / row->in; n++) {
		uint64_t value = reference_number(row, from, n);

		if (row->kind == REFERENCE_FLOAT) {
			const int64_t number = (int64_t)(value << (64 - row->in)) >> (64 - row->in);

			value = row->out == 16 ? reference_float(number, 10, 15, 15)
					       : reference_float(number, 23, 127, 31);
		}
		for (uint32_t b = 0; b < row->out / 8; b++)
			to[n * row->out / 8 + b] = (uint8_t)(value >> 8 * b);
	}
	return n * row->out / 8;
}

#endif
