/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequence numbers of streams as rows of a pool. */
#include "verdict/ranges.h"

#include <stdlib.h>

_Static_assert(GDRCAP_RANGES_MOST % RANGES_CHUNK == 0, "all rows are in chunks");
_Static_assert(RANGES_CHUNKS >= 2 * GDRCAP_STREAMS_MAX, "each stream may have some");

struct ranges_pool *ranges_pool_create(void)
{
	return calloc(1, sizeof(struct ranges_pool));
}

struct ranges *ranges_take(struct ranges_pool *pool)
{
	struct ranges *ranges = &pool->of[pool->count++];

	ranges->pool = pool;
	return ranges;
}

/* Its number + 1; 0: there is none. */
static uint32_t chunk_take(struct ranges_pool *pool)
{
	uint32_t chunk = pool->free;

	if (chunk)
		pool->free = pool->chunks[chunk - 1].next;
	else if (pool->used < RANGES_CHUNKS)
		chunk = ++pool->used;
	else
		return 0;
	pool->chunks[chunk - 1].next = 0;
	return chunk;
}

static void chunks_give_back(struct ranges *ranges)
{
	struct ranges_pool *pool = ranges->pool;

	if (ranges->last) {
		pool->chunks[ranges->last - 1].next = pool->free;
		pool->free = ranges->first;
	}
	ranges->first = 0;
	ranges->last = 0;
	ranges->count = 0;
}

void ranges_give_up(struct ranges *ranges)
{
	chunks_give_back(ranges);
	ranges->pool->given_up += !ranges->given_up;
	ranges->given_up = true;
}

void ranges_restart(struct ranges *ranges)
{
	chunks_give_back(ranges);
	ranges->pool->given_up -= ranges->given_up;
	ranges->given_up = false;
	ranges->open.length = 0;
	ranges->numbers = 0;
}

/* The place of one more row, or NULL: the stream is given up. */
static struct gdrcap_numbers *row_new(struct ranges *ranges)
{
	struct ranges_pool *pool = ranges->pool;
	const uint32_t at = ranges->count % RANGES_CHUNK;

	if (at == 0) {
		const uint32_t chunk = ranges->count < RANGES_STREAM_MOST ? chunk_take(pool) : 0;

		if (!chunk) {
			ranges_give_up(ranges);
			return NULL;
		}
		if (ranges->last)
			pool->chunks[ranges->last - 1].next = chunk;
		else
			ranges->first = chunk;
		ranges->last = chunk;
	}
	ranges->count++;
	return &pool->chunks[ranges->last - 1].rows[at];
}

/* The run goes on with the last row, at the distance of those in it, or begins a row. */
static void run_close(struct ranges *ranges)
{
	const struct gdrcap_numbers run = ranges->open;
	struct gdrcap_numbers *row;

	ranges->open.length = 0;
	if (ranges->count) {
		row = &ranges->pool->chunks[ranges->last - 1]
			       .rows[(ranges->count - 1) % RANGES_CHUNK];
		/* No overflow: step * (times - 1) leads to a number that came. */
		if (row->length == run.length &&
		    (row->times == 1 ||
		     run.first - row->first - row->step * (row->times - 1) == row->step)) {
			if (row->times++ == 1)
				row->step = run.first - row->first;
			return;
		}
	}
	row = row_new(ranges);
	if (row)
		*row = (struct gdrcap_numbers){ .first = run.first,
						.length = run.length,
						.times = 1 };
}

void ranges_add(struct ranges *ranges, uint64_t first, uint64_t count)
{
	struct gdrcap_numbers *open = &ranges->open;

	if (ranges->given_up)
		return;
	ranges->numbers += count;
	if (open->length && open->first + open->length == first) {
		open->length += count;
		return;
	}
	if (open->length)
		run_close(ranges);
	open->first = first;
	open->length = count;
}

void ranges_finish(struct ranges *ranges, uint64_t count)
{
	if (ranges->given_up)
		return;
	if (ranges->open.length)
		run_close(ranges);
	if (ranges->numbers != count)
		ranges_give_up(ranges);
}

void ranges_copy(const struct ranges *ranges, struct gdrcap_numbers *to, uint32_t room)
{
	uint32_t chunk = ranges->first;

	for (uint32_t i = 0; i < ranges->count && i < room; i++) {
		const struct ranges_chunk *at = &ranges->pool->chunks[chunk - 1];

		to[i] = at->rows[i % RANGES_CHUNK];
		if (i % RANGES_CHUNK == RANGES_CHUNK - 1)
			chunk = at->next;
	}
}
