/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What payloads can be converted to on their way into an image, and how many bytes of theirs make how many
 * of the image's. The arithmetic: kernels/place_convert.h. Compiles as C and CUDA.
 */
#ifndef GDRCAP_IMAGE_CONVERT_H
#define GDRCAP_IMAGE_CONVERT_H

#include "pattern/pattern.h"

/* In the order of the words of `convert`. */
enum image_convert {
	IMAGE_CONVERT_NONE,
	IMAGE_CONVERT_SWAP16,
	IMAGE_CONVERT_SWAP32,
	IMAGE_CONVERT_SWAP64,
	IMAGE_CONVERT_UNPACK10_BE, /* RFC 4175: most significant bit first */
	IMAGE_CONVERT_UNPACK12_BE,
	IMAGE_CONVERT_MONO10P, /* GenICam: least significant bit first */
	IMAGE_CONVERT_MONO12P,
	IMAGE_CONVERT_INT8_FLOAT16,
	IMAGE_CONVERT_INT8_FLOAT32,
	IMAGE_CONVERT_INT16_FLOAT16, /* int16: least significant byte first */
	IMAGE_CONVERT_INT16_FLOAT32,
	IMAGE_CONVERT_INT16BE_FLOAT16,
	IMAGE_CONVERT_INT16BE_FLOAT32,
	IMAGE_CONVERTS
};

/* A group is the least that can be converted by itself: its bytes as sent, and in the image. */
GDRCAP_HD uint32_t image_convert_from(uint32_t convert)
{
	switch (convert) {
	case IMAGE_CONVERT_SWAP32:
		return 4;
	case IMAGE_CONVERT_SWAP64:
		return 8;
	case IMAGE_CONVERT_UNPACK10_BE:
	case IMAGE_CONVERT_MONO10P:
		return 5;
	case IMAGE_CONVERT_UNPACK12_BE:
	case IMAGE_CONVERT_MONO12P:
		return 3;
	case IMAGE_CONVERT_NONE:
	case IMAGE_CONVERT_INT8_FLOAT16:
	case IMAGE_CONVERT_INT8_FLOAT32:
		return 1;
	default:
		return 2;
	}
}

GDRCAP_HD uint32_t image_convert_to(uint32_t convert)
{
	switch (convert) {
	case IMAGE_CONVERT_NONE:
		return 1;
	case IMAGE_CONVERT_SWAP64:
	case IMAGE_CONVERT_UNPACK10_BE:
	case IMAGE_CONVERT_MONO10P:
		return 8;
	case IMAGE_CONVERT_SWAP16:
	case IMAGE_CONVERT_INT8_FLOAT16:
	case IMAGE_CONVERT_INT16_FLOAT16:
	case IMAGE_CONVERT_INT16BE_FLOAT16:
		return 2;
	default:
		return 4;
	}
}

#endif
