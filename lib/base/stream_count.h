/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A count that work in a CUDA stream waits for: things so far, in memory that the GPU reads, and from the
 * run's end on a bit that lets every wait go. Orderings, by name:
 *
 * COUNT: the teller's add, release, after the things that it counts are there for their readers. Partner: the
 * stream's wait, behind which a kernel begins that takes them by an acquire of its own (TAKE, GIVE, ROOM). Were
 * the word written before, the kernel would find nothing, and nobody would wake it again.
 * ENOUGH: the bit is set, release, after the words that say that nothing more will come. Partner: the same wait.
 * Were it set before, the kernel behind it would find neither a thing nor the end.
 *
 * The wait is the driver's "greater or equal", which is cyclic: word - least, as a signed number, is not
 * negative. So the bit is 62, not 63, and counts stay below it: at 10^9 a second for 146 years.
 * Tests: tests/unit/test_stream_count.c.
 */
#ifndef GDRCAP_STREAM_COUNT_H
#define GDRCAP_STREAM_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define STREAM_COUNT_ENOUGH (UINT64_C(1) << 62)

/* COUNT. An add, since another thread may set the bit meanwhile. */
static inline void stream_count_add(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELEASE);
}

/* ENOUGH; any thread, also several times. */
static inline void stream_count_end(uint64_t *word)
{
	__atomic_fetch_or(word, STREAM_COUNT_ENOUGH, __ATOMIC_RELEASE);
}

/* What the driver asks of a word. */
static inline bool stream_count_reached(uint64_t word, uint64_t least)
{
	return (int64_t)(word - least) >= 0;
}

static inline bool stream_count_ended(uint64_t word)
{
	return (word & STREAM_COUNT_ENOUGH) != 0;
}

static inline uint64_t stream_count_of(uint64_t word)
{
	return word & ~STREAM_COUNT_ENOUGH;
}

#endif
