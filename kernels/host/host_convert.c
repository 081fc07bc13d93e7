/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads converted into images by CPU threads. */
#include <string.h>

#include "kernels/host/host_workers.h"
#include "kernels/place_convert.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "place_convert.h counts on it"
#endif

/* A conversion each, with sizes that the compiler knows. */
static inline __attribute__((always_inline)) void convert_by(uint32_t convert, uint8_t *to,
							     const uint8_t *from, uint32_t bytes)
{
	const uint32_t needs = place_convert_needs(convert);
	uint64_t in = 0, out;

	for (; bytes >= needs; bytes -= needs) {
		memcpy(&in, from, needs);
		out = place_convert_step(convert, in);
		memcpy(to, &out, sizeof(out));
		from += needs;
		to += sizeof(out);
	}
	memcpy(&in, from, bytes);
	out = place_convert_step(convert, in);
	memcpy(to, &out, bytes / image_convert_from(convert) * image_convert_to(convert));
}

#define CASE(convert)                                                                              \
	case convert:                                                                              \
		convert_by(convert, to, from, bytes);                                              \
		break

void host_convert(uint32_t convert, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	switch (convert) {
		CASE(IMAGE_CONVERT_SWAP16);
		CASE(IMAGE_CONVERT_SWAP32);
		CASE(IMAGE_CONVERT_SWAP64);
		CASE(IMAGE_CONVERT_UNPACK10_BE);
		CASE(IMAGE_CONVERT_UNPACK12_BE);
		CASE(IMAGE_CONVERT_MONO10P);
		CASE(IMAGE_CONVERT_MONO12P);
		CASE(IMAGE_CONVERT_INT8_FLOAT16);
		CASE(IMAGE_CONVERT_INT8_FLOAT32);
		CASE(IMAGE_CONVERT_INT16_FLOAT16);
		CASE(IMAGE_CONVERT_INT16_FLOAT32);
		CASE(IMAGE_CONVERT_INT16BE_FLOAT16);
		CASE(IMAGE_CONVERT_INT16BE_FLOAT32);
	default:
		memcpy(to, from, bytes);
	}
}
