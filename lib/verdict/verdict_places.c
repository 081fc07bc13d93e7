/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a file that came before their place, or again. */
#include "verdict/verdict_places.h"

#include <errno.h>
#include <stdlib.h>

#include "verdict/verdict_internal.h"

static int places_fill(struct verdict_places *places, const struct frame_store_view *store)
{
	uint32_t sum = 0;

	places->start = calloc((size_t)store->count + 1, sizeof(*places->start));
	places->member = calloc(store->count, sizeof(*places->member));
	if (!places->start || !places->member)
		return -ENOMEM;
	for (uint32_t i = 0; i < store->count; i++)
		places->start[store->frames[i].class_first + 1]++;
	for (uint32_t i = 0; i <= store->count; i++) {
		sum += places->start[i];
		places->start[i] = sum;
	}
	/* Filling moves each start to its end, which is the next one's start. */
	for (uint32_t i = 0; i < store->count; i++)
		places->member[places->start[store->frames[i].class_first]++] = i;
	for (uint32_t i = store->count; i > 0; i--)
		places->start[i] = places->start[i - 1];
	places->start[0] = 0;
	return 0;
}

static int waiting_create(struct verdict_places *places, uint32_t queues)
{
	places->slots = queues + PLACES_EARLY;
	places->waiting = calloc(places->slots, sizeof(*places->waiting));
	places->place = calloc(places->slots, sizeof(*places->place));
	if (!places->waiting || !places->place)
		return -ENOMEM;
	for (uint32_t i = 0; i < places->slots; i++)
		places->place[i] = PLACE_NONE;
	places->lowest = PLACE_NONE;
	return 0;
}

int verdict_places_create(struct verdict *verdict)
{
	const struct frame_store_view *store = verdict->config.expect;
	bool repeated = false;

	if (!store)
		return 0;
	for (uint32_t i = 0; i < store->count; i++) {
		const uint32_t first = store->frames[i].class_first;

		if (first > i || store->frames[first].class_first != first)
			return -EINVAL;
		repeated |= first != i;
	}
	verdict->places = calloc(1, sizeof(*verdict->places));
	if (!verdict->places)
		return -ENOMEM;
	if (waiting_create(verdict->places, verdict->queue_count) < 0)
		return -ENOMEM;
	return repeated ? places_fill(verdict->places, store) : 0;
}

void verdict_places_destroy(struct verdict *verdict)
{
	if (!verdict->places)
		return;
	free(verdict->places->start);
	free(verdict->places->member);
	free(verdict->places->waiting);
	free(verdict->places->place);
	free(verdict->places);
	verdict->places = NULL;
}

/* How many frames, of `count` from content `class`, the file has from `index` on; not 0. */
static uint32_t agreeing(const struct frame_store_view *store, uint32_t index, uint32_t class,
			 uint32_t count)
{
	uint32_t n = 0;

	while (n < count && store->frames[index].class_first == class) {
		n++;
		index = index_after(store, index);
		class = class_after(store, class);
	}
	return n;
}

/* The places of one content around the expected one, the nearest first. */
struct walk {
	const uint32_t *member;
	uint32_t count, ahead, back; /* members; the next ones to try */
	uint64_t expected;
	uint32_t index, period; /* expected % period; frames of the file */
	uint32_t ahead_tried, back_tried;
};

static uint32_t distance_ahead(const struct walk *walk)
{
	const uint32_t m = walk->member[walk->ahead];

	return m >= walk->index ? m - walk->index : walk->period - walk->index + m;
}

/* 1 .. period: the frame expected is ahead, a whole loop before it is behind. */
static uint32_t distance_back(const struct walk *walk)
{
	const uint32_t m = walk->member[walk->back];

	return m < walk->index ? walk->index - m : walk->period - m + walk->index;
}

static void walk_begin(struct walk *walk, const struct verdict_places *places,
		       const struct frame_store_view *store, uint32_t class, uint64_t expected)
{
	uint32_t low = 0, high;

	walk->member = places->start ? &places->member[places->start[class]] : NULL;
	walk->count = places->start ? places->start[class + 1] - places->start[class] : 1;
	walk->expected = expected;
	walk->period = store->count;
	walk->index = (uint32_t)(expected % store->count);
	walk->ahead_tried = 0;
	walk->back_tried = 0;
	/* The first member that is not before the expected frame. */
	for (high = walk->count; low < high;) {
		const uint32_t middle = low + (high - low) / 2;

		if (walk->member[middle] < walk->index)
			low = middle + 1;
		else
			high = middle;
	}
	walk->ahead = low < walk->count ? low : 0;
	walk->back = low ? low - 1 : walk->count - 1;
}

/* False: no other. */
static bool walk_next(struct walk *walk, uint64_t *place)
{
	const bool can_ahead = walk->ahead_tried < walk->count;
	const uint32_t ahead = distance_ahead(walk), back = distance_back(walk);
	const bool can_back = walk->back_tried < walk->count && back <= walk->expected;

	if (can_ahead && (!can_back || ahead <= back)) {
		*place = walk->expected + ahead;
		walk->ahead = walk->ahead + 1 == walk->count ? 0 : walk->ahead + 1;
		walk->ahead_tried++;
		return true;
	}
	if (!can_back)
		return false;
	*place = walk->expected - back;
	walk->back = walk->back ? walk->back - 1 : walk->count - 1;
	walk->back_tried++;
	return true;
}

uint64_t place_of(const struct verdict *verdict, uint64_t expected, uint32_t class, uint32_t *count)
{
	const struct frame_store_view *store = verdict->config.expect;
	const uint32_t index = (uint32_t)(expected % store->count);
	uint64_t place, best = expected;
	uint32_t most = 0;
	struct walk walk;

	if (!verdict->places->start) {
		const uint32_t ahead =
			class >= index ? class - index : store->count - index + class;
		const uint32_t back = store->count - ahead;

		return back < ahead && back <= expected ? expected - back : expected + ahead;
	}
	walk_begin(&walk, verdict->places, store, class, expected);
	for (uint32_t tried = 0; tried < PLACES_TRIED && most < *count; tried++) {
		uint32_t n;

		if (!walk_next(&walk, &place))
			break;
		n = agreeing(store, (uint32_t)(place % store->count), class, *count);
		if (n > most) {
			most = n;
			best = place;
		}
	}
	*count = most;
	return best;
}

bool place_behind(const struct verdict *verdict, uint64_t next, uint32_t class, uint64_t *place)
{
	const struct frame_store_view *store = verdict->config.expect;
	const uint32_t index = (uint32_t)(next % store->count);
	uint32_t back = class < index ? index - class : store->count - class + index;
	struct walk walk;

	if (verdict->places->start) {
		walk_begin(&walk, verdict->places, store, class, next);
		back = distance_back(&walk);
	}
	*place = next - back;
	return back <= next;
}
