/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which sequence numbers of a stream came, as a list that grows with how often they stop and start, and not
 * with their count: runs of numbers, and of runs of one length that come at one distance (every second
 * frame, by a link aggregation of two) one row for all. All streams take their rows from one pool, which is
 * allocated before the run. A stream that needs more rows than there are is given up: of it nothing is said.
 */
#ifndef GDRCAP_RANGES_H
#define GDRCAP_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define RANGES_CHUNK 32u				  /* rows that a stream takes at a time */
#define RANGES_CHUNKS (GDRCAP_RANGES_MOST / RANGES_CHUNK) /* of the pool */
#define RANGES_STREAM_MOST GDRCAP_RANGES_STREAM_MOST

struct ranges_chunk {
	uint32_t next; /* its number + 1; 0: none */
	struct gdrcap_numbers rows[RANGES_CHUNK];
};

struct ranges {
	struct ranges_pool *pool;
	uint32_t first, last; /* chunks: numbers + 1; 0: none */
	uint32_t count;	      /* rows */
	bool given_up;
	struct gdrcap_numbers open; /* the run that numbers are being added to; length 0: none */
	uint64_t numbers;	    /* all that were added */
};

/* Writer: the accountant. */
struct ranges_pool {
	struct ranges_chunk chunks[RANGES_CHUNKS];
	uint32_t used; /* chunks that were ever taken */
	uint32_t free; /* of them, the first that is not in use: number + 1; 0: none */
	struct ranges of[GDRCAP_STREAMS_MAX];
	uint32_t count;	   /* of `of` */
	uint32_t given_up; /* of them */
};

/* NULL without memory; which pages of it take when they are written. */
struct ranges_pool *ranges_pool_create(void);

/* Of one more stream, GDRCAP_STREAMS_MAX in all. */
struct ranges *ranges_take(struct ranges_pool *pool);

/* Adds first .. first + count - 1, beyond all that were added before. Constant time, no allocation. */
void ranges_add(struct ranges *ranges, uint64_t first, uint64_t count);

/* No number follows. `count`: how many there must be; else the stream is given up. */
void ranges_finish(struct ranges *ranges, uint64_t count);

/* Nothing is known of its numbers from now on; its rows are others'. */
void ranges_give_up(struct ranges *ranges);

/* Forgets all. */
void ranges_restart(struct ranges *ranges);

/* The rows that fit. */
void ranges_copy(const struct ranges *ranges, struct gdrcap_numbers *to, uint32_t room);

#endif
