/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host only: what will be read next is fetched into the cache line by line, one for each that is
 * checked meanwhile. Asked for at once they would take all places for lines on their way, and what
 * is checked would wait behind them. Fetching is no reading: no address is wrong, and none faults.
 */
#ifndef GDRCAP_PATTERN_AHEAD_H
#define GDRCAP_PATTERN_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#define AHEAD_LINE 64u
#define AHEAD_INLINE static inline __attribute__((always_inline))

/* Lines from that of `at` to that of which `last` is the last byte. A pointer to it may be NULL:
 * nothing is ahead. */
struct pattern_ahead {
	const uint8_t *at, *last;
};

/* `bytes` bytes (at least 1) at `at`. */
AHEAD_INLINE struct pattern_ahead ahead_of(const uint8_t *at, size_t bytes)
{
	const size_t skew = (uintptr_t)at % AHEAD_LINE;
	const size_t lines = (skew + bytes + AHEAD_LINE - 1) / AHEAD_LINE;

	return (struct pattern_ahead){ at - skew, at - skew + lines * AHEAD_LINE - 1 };
}

/* For a loop that calls ahead_line(); `here` is read in it anyway. */
AHEAD_INLINE struct pattern_ahead ahead_begin(const struct pattern_ahead *ahead,
					      const uint8_t *here)
{
	return ahead ? *ahead : (struct pattern_ahead){ here, here };
}

/* One line. The last one stays: to ask for a line that is there costs less than to find out that
 * none is left. */
AHEAD_INLINE void ahead_line(struct pattern_ahead *ahead)
{
	const uint8_t *next = ahead->at + AHEAD_LINE;

	__builtin_prefetch(ahead->at);
	ahead->at = next <= ahead->last ? next : ahead->last;
}

/* All that is left. */
AHEAD_INLINE void ahead_all(const struct pattern_ahead *ahead)
{
	if (!ahead)
		return;
	for (const uint8_t *at = ahead->at; at < ahead->last; at += AHEAD_LINE)
		__builtin_prefetch(at);
}

#endif
