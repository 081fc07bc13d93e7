/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes and words of a frame that is placed into an image, for C and CUDA. */
#ifndef GDRCAP_IMAGE_BYTES_H
#define GDRCAP_IMAGE_BYTES_H

#include <string.h>

#include "pattern/frame_bytes.h"
#include "pattern/image_layout.h"

/*
 * A frame as its reader has it. CPU: where it lies. GPU: its first bytes, FRAME_MATCH_BYTES at least or all
 * of it, lie apart in shared memory: where each thread of a warp reads one byte of a frame of its own,
 * global memory is asked 32 times.
 */
#ifdef __CUDACC__
typedef const struct frame_span &image_frame;

GDRCAP_HD uint32_t image_u8(image_frame frame, uint32_t at)
{
	return frame_span_byte(&frame, at);
}

GDRCAP_HD int image_matches(const struct image_layout *layout, image_frame frame, uint32_t len)
{
	return frame_matches(&layout->match, frame.first, len);
}

/* Whether bytes at .. at + 7 can be read at once: they lie beside each other. */
GDRCAP_HD int image_has_eight(image_frame frame, uint32_t at, uint32_t end)
{
	(void)end; /* what is behind the frame's end is staged, or of no matter */
	return !frame.whole && at + 8 <= frame.first_bytes;
}

GDRCAP_HD uint64_t image_eight(image_frame frame, uint32_t at, int little)
{
#ifdef __CUDA_ARCH__
	const uint8_t *bytes = frame.first + at;
	const uint32_t shift = (uint32_t)(uintptr_t)bytes % 4;
	const uint32_t *word = (const uint32_t *)(bytes - shift);
	const uint32_t low = __funnelshift_r(word[0], word[1], 8 * shift);
	const uint32_t high = __funnelshift_r(word[1], word[2], 8 * shift);

	return little ? (uint64_t)high << 32 | low
		      : (uint64_t)__byte_perm(low, 0, 0x0123) << 32 | __byte_perm(high, 0, 0x0123);
#else
	(void)frame;
	(void)at;
	(void)little;
	return 0; /* frames have two parts on the GPU only */
#endif
}
#else
typedef const uint8_t *image_frame;

GDRCAP_HD uint32_t image_u8(image_frame frame, uint32_t at)
{
	return frame[at];
}

GDRCAP_HD int image_matches(const struct image_layout *layout, image_frame frame, uint32_t len)
{
	return frame_matches(&layout->match, frame, len);
}

GDRCAP_HD int image_has_eight(image_frame frame, uint32_t at, uint32_t end)
{
	(void)frame;
	return at + 8 <= end;
}

GDRCAP_HD uint64_t image_eight(image_frame frame, uint32_t at, int little)
{
	uint64_t value;

	memcpy(&value, frame + at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return little ? value : __builtin_bswap64(value);
#else
	return little ? __builtin_bswap64(value) : value;
#endif
}
#endif

GDRCAP_HD uint32_t image_be16(image_frame frame, uint32_t at)
{
	return image_u8(frame, at) << 8 | image_u8(frame, at + 1);
}

GDRCAP_HD uint32_t image_be32(image_frame frame, uint32_t at)
{
	return image_be16(frame, at) << 16 | image_be16(frame, at + 2);
}

GDRCAP_HD uint64_t image_be64(image_frame frame, uint32_t at)
{
	return (uint64_t)image_be32(frame, at) << 32 | image_be32(frame, at + 4);
}

#endif
