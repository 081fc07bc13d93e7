/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many different numbers several receivers have. Between two places where a row begins or ends each receiver has
 * one row at most there, whose runs come at one distance: what they cover together repeats after the least common
 * multiple of these distances, so that one period is looked at, however many there are. A file is anybody's: what is
 * too much work is not known.
 */
#include <errno.h>
#include <stdlib.h>

#include "merge/merge.h"

#define RUNS_MOST (1u << 20) /* of all rows, in one period */

struct edge {
	uint64_t at;
	uint32_t owner; /* its receiver */
	bool begins;
	const struct gdrcap_numbers *row;
};

struct run {
	uint64_t from, to;
};

struct going {
	const struct gdrcap_numbers *row;
	uint32_t owner;
};

struct uniting {
	struct edge *edges;
	size_t edge_count;
	struct going *active; /* rows that go on here, ... */
	uint32_t *place;      /* ... and by owner where in `active` */
	uint32_t active_count;
	uint32_t solid; /* of them, those without gaps */
	struct run *runs;
	size_t room; /* of `runs` */
	uint64_t *work;
};

static int by_place(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int by_from(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

uint64_t merge_row_end(const struct gdrcap_numbers *row)
{
	return row->first + row->step * (row->times - 1) + row->length;
}

/* Numbers of the row below x, which lies within it. */
static uint64_t count_below(const struct gdrcap_numbers *row, uint64_t x)
{
	const uint64_t rest = (x - row->first) % row->step;

	return (x - row->first) / row->step * row->length +
	       (rest < row->length ? rest : row->length);
}

/* Of all rows that go on here, from a to b, which is within all of them. */
static uint64_t cover(struct uniting *uniting, uint64_t a, uint64_t b)
{
	uint64_t numbers = 0, to = a;
	size_t count = 0;

	for (uint32_t i = 0; a < b && i < uniting->active_count; i++) {
		const struct gdrcap_numbers *row = uniting->active[i].row;
		uint64_t at = a - (a - row->first) % row->step;

		for (;; at += row->step) {
			const uint64_t from = at > a ? at : a,
				       end = row->length < b - at ? at + row->length : b;

			if (end > from)
				uniting->runs[count++] = (struct run){ from, end };
			if (row->step >= b - at)
				break;
		}
	}
	qsort(uniting->runs, count, sizeof(*uniting->runs), by_from);
	for (size_t i = 0; i < count; i++) {
		const struct run *run = &uniting->runs[i];
		const uint64_t from = run->from > to ? run->from : to;

		if (run->to <= from)
			continue;
		numbers += run->to - from;
		to = run->to;
	}
	return numbers;
}

/* After how many numbers all rows that go on here are where they were; `most` if it is more. */
static uint64_t period(const struct uniting *uniting, uint64_t most)
{
	unsigned __int128 all = 1;

	for (uint32_t i = 0; i < uniting->active_count; i++) {
		const uint64_t step = uniting->active[i].row->step;
		uint64_t a = (uint64_t)all, b = step;

		while (b) {
			const uint64_t rest = a % b;

			a = b;
			b = rest;
			*uniting->work -= *uniting->work != 0;
		}
		all = all / a * step;
		if (all >= most)
			return most;
	}
	return (uint64_t)all;
}

static int make_room(struct uniting *uniting, size_t runs)
{
	struct run *more;

	if (runs <= uniting->room)
		return 0;
	more = realloc(uniting->runs, 2 * runs * sizeof(*more));
	if (!more)
		return -ENOMEM;
	uniting->runs = more;
	uniting->room = 2 * runs;
	return 0;
}

/* From a to b, where the same rows go on throughout. */
static int add_part(struct uniting *uniting, uint64_t a, uint64_t b, uint64_t *numbers)
{
	uint64_t span, runs = 0;

	if (uniting->solid) {
		*numbers += b - a;
		return 0;
	}
	if (uniting->active_count == 1) {
		*numbers += count_below(uniting->active[0].row, b) -
			    count_below(uniting->active[0].row, a);
		return 0;
	}
	span = period(uniting, b - a);
	for (uint32_t i = 0; i < uniting->active_count; i++) {
		runs += span / uniting->active[i].row->step + 2;
		if (runs > RUNS_MOST || 2 * runs > *uniting->work)
			return -EOVERFLOW;
	}
	if (make_room(uniting, runs) < 0)
		return -ENOMEM;
	*uniting->work -= 2 * runs;
	*numbers += (b - a) / span * cover(uniting, a, a + span) +
		    cover(uniting, a, a + (b - a) % span);
	return 0;
}

static void step_over(struct uniting *uniting, const struct edge *edge)
{
	uint32_t at;

	if (edge->begins) {
		uniting->place[edge->owner] = uniting->active_count;
		uniting->active[uniting->active_count++] = (struct going){ edge->row, edge->owner };
		uniting->solid += edge->row->times == 1;
		return;
	}
	at = uniting->place[edge->owner];
	uniting->active_count--;
	uniting->active[at] = uniting->active[uniting->active_count];
	uniting->place[uniting->active[at].owner] = at;
	uniting->solid -= edge->row->times == 1;
}

static void collect(struct uniting *uniting, const struct merge_ranges *of, uint32_t count)
{
	struct edge *edge = uniting->edges;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t r = 0; r < of[i].count; r++) {
			const struct gdrcap_numbers *row = &of[i].rows[r];

			*edge++ = (struct edge){ row->first, i, true, row };
			*edge++ = (struct edge){ merge_row_end(row), i, false, row };
		}
	qsort(uniting->edges, uniting->edge_count, sizeof(*uniting->edges), by_place);
}

static int unite(struct uniting *uniting, uint64_t *numbers)
{
	size_t at = 0;
	int rc = 0;

	*numbers = 0;
	while (!rc && at < uniting->edge_count) {
		const uint64_t from = uniting->edges[at].at;
		size_t end = at;

		/* Rows that end here before those of the same receivers that begin. */
		for (; end < uniting->edge_count && uniting->edges[end].at == from; end++)
			if (!uniting->edges[end].begins)
				step_over(uniting, &uniting->edges[end]);
		for (; at < end; at++)
			if (uniting->edges[at].begins)
				step_over(uniting, &uniting->edges[at]);
		if (uniting->active_count)
			rc = add_part(uniting, from, uniting->edges[at].at, numbers);
	}
	return rc;
}

int merge_unite(const struct merge_ranges *of, uint32_t count, uint64_t *work, uint64_t *numbers)
{
	struct uniting uniting = { .work = work };
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < count; i++)
		uniting.edge_count += 2 * (size_t)of[i].count;
	if (uniting.edge_count > *work)
		return -EOVERFLOW;
	*work -= uniting.edge_count;
	uniting.edges = calloc(uniting.edge_count + 1, sizeof(*uniting.edges));
	uniting.active = calloc(count + 1, sizeof(*uniting.active));
	uniting.place = calloc(count + 1, sizeof(*uniting.place));
	if (uniting.edges && uniting.active && uniting.place) {
		collect(&uniting, of, count);
		rc = unite(&uniting, numbers);
	}
	free(uniting.edges);
	free(uniting.active);
	free(uniting.place);
	free(uniting.runs);
	return rc;
}
