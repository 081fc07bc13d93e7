/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers in frames: big-endian, at any address, so loads and stores are of bytes. Compiles as C
 * and CUDA.
 */
#ifndef GDRCAP_FRAME_BYTES_H
#define GDRCAP_FRAME_BYTES_H

#include "pattern/pattern.h"

GDRCAP_HD uint32_t frame_be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

GDRCAP_HD uint32_t frame_be32(const uint8_t *at)
{
	return frame_be16(at) << 16 | frame_be16(at + 2);
}

GDRCAP_HD uint64_t frame_be64(const uint8_t *at)
{
	return (uint64_t)frame_be32(at) << 32 | frame_be32(at + 4);
}

GDRCAP_HD void frame_put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

GDRCAP_HD void frame_put32(uint8_t *at, uint32_t value)
{
	frame_put16(at, value >> 16);
	frame_put16(at + 2, value);
}

GDRCAP_HD void frame_put64(uint8_t *at, uint64_t value)
{
	frame_put32(at, (uint32_t)(value >> 32));
	frame_put32(at + 4, (uint32_t)value);
}

/*
 * A frame, or its payload, whose beginning lies apart from the rest: `rest` is where byte
 * `first_bytes` is.
 */
struct frame_span {
	const uint8_t *first, *rest;
	uint32_t first_bytes;
	uint32_t whole; /* 1: all is at `first`; a constant, so that code without split frames pays
			 * nothing for it */
};

GDRCAP_HD uint32_t frame_span_byte(const struct frame_span *span, uint32_t at)
{
	return span->whole || at < span->first_bytes ? span->first[at]
						     : span->rest[at - span->first_bytes];
}

GDRCAP_HD uint32_t frame_span_be32(const struct frame_span *span, uint32_t at)
{
	if (span->whole || at + 4 <= span->first_bytes)
		return frame_be32(span->first + at);
	if (at >= span->first_bytes)
		return frame_be32(span->rest + (at - span->first_bytes));
	return frame_span_byte(span, at) << 24 | frame_span_byte(span, at + 1) << 16 |
	       frame_span_byte(span, at + 2) << 8 | frame_span_byte(span, at + 3);
}

/* From byte `at`, which lies in the first part, on. */
GDRCAP_HD struct frame_span frame_span_from(const struct frame_span *span, uint32_t at)
{
	struct frame_span from = *span;

	from.first += at;
	from.first_bytes -= at;
	return from;
}

GDRCAP_HD uint32_t frame_popcount(uint32_t x)
{
#ifdef __CUDA_ARCH__
	return (uint32_t)__popc(x);
#else
	return (uint32_t)__builtin_popcount(x);
#endif
}

#endif
