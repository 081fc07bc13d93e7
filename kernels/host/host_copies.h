/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads on their way into an image: copied together, with the next lines asked for meanwhile. */
#ifndef GDRCAP_HOST_COPIES_H
#define GDRCAP_HOST_COPIES_H

#include <string.h>

#include "kernels/host/host_workers.h"
#include "pattern/pattern_ahead.h"

/* What was claimed, and is to be copied before the worker leaves the image. A locked instruction waits for
 * all stores before it: so first all bits of a run are set, then its bytes copied. */
#define COPIES_MAX 256u
#define COPIES_AHEAD 64u /* lines on their way, 4 KiB */

struct place_copy {
	uint8_t *to;
	const uint8_t *from;
	uint32_t bytes; /* as sent */
};

struct place_copies {
	struct place_copy copy[COPIES_MAX];
	uint32_t count;
	uint32_t convert;		  /* enum image_convert */
	uint32_t fetched;		  /* the next to be fetched */
	const uint8_t *ahead, *ahead_end; /* lines of the one before */
};

/* The next line of what will be copied, into the cache. */
static inline __attribute__((always_inline)) void copies_fetch(struct place_copies *copies)
{
	__builtin_prefetch(copies->ahead);
	copies->ahead += AHEAD_LINE;
	if (copies->ahead < copies->ahead_end)
		return;
	if (copies->fetched < copies->count) {
		const struct place_copy *next = &copies->copy[copies->fetched++];

		copies->ahead = next->from;
		copies->ahead_end = next->from + next->bytes;
	} else {
		copies->ahead -= AHEAD_LINE;
	}
}

static inline void copies_convert(struct place_copies *copies)
{
	for (uint32_t c = 0; c < copies->count; c++)
		host_convert(copies->convert, copies->copy[c].to, copies->copy[c].from,
			     copies->copy[c].bytes);
	copies->count = 0;
}

/* A line fetched for each that is copied: asked for at once, they would take all places for lines on
 * their way. A function: inside of its callers the loop had to share their registers. */
static __attribute__((noinline)) void copies_flush(struct place_copies *copies)
{
	if (copies->convert)
		copies_convert(copies);
	if (!copies->count)
		return;
	copies->fetched = 1;
	copies->ahead = copies->copy[0].from;
	copies->ahead_end = copies->ahead + copies->copy[0].bytes;
	for (uint32_t l = 0; l < COPIES_AHEAD; l++)
		copies_fetch(copies);
	for (uint32_t c = 0; c < copies->count; c++) {
		const uint8_t *from = copies->copy[c].from;
		uint8_t *to = copies->copy[c].to;
		uint32_t bytes = copies->copy[c].bytes;

		for (; bytes >= AHEAD_LINE; bytes -= AHEAD_LINE) {
			copies_fetch(copies);
			memcpy(to, from, AHEAD_LINE);
			to += AHEAD_LINE;
			from += AHEAD_LINE;
		}
		copies_fetch(copies);
		memcpy(to, from, bytes);
	}
	copies->count = 0;
}

#endif
