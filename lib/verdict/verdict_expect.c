/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames expected from a file. What a run says is contents: the class of its first frame, and that
 * each next frame has the content that follows the class's first frame in the file. Here it becomes
 * frame numbers: place n is frame n % count of the file, played again and again, and place 0 the
 * first frame that counts as sent, so that loss at the head is seen.
 *
 * The place of a run is the one nearest to the expected one (the place after the newest frame seen)
 * where the file has the run's contents, ahead when both are as near. Of a file played more than
 * once a loss of more than half of it may thus look like frames sent twice. Where a content is
 * repeated in the file, PLACES_TRIED places of the run's first frame are tried; the one where most
 * of the run agrees is taken, and the rest of the run is looked for from there.
 */
#include <errno.h>
#include <stdlib.h>

#include "verdict_internal.h"

#define PLACES_TRIED 16u

/* The places of each content; where no two frames are alike, NULL twice. */
struct verdict_places {
	uint32_t *start; /* by index of a class's first frame: in member[]; [count]: its end */
	uint32_t *member; /* indices of frames, ascending within a class */
};

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
	return repeated ? places_fill(verdict->places, store) : 0;
}

void verdict_places_destroy(struct verdict *verdict)
{
	if (!verdict->places)
		return;
	free(verdict->places->start);
	free(verdict->places->member);
	free(verdict->places);
	verdict->places = NULL;
}

static uint32_t index_after(const struct frame_store_view *store, uint32_t index)
{
	return index + 1 == store->count ? 0 : index + 1;
}

/* The content of the frame that follows one of content `class` in a run. */
static uint32_t class_after(const struct frame_store_view *store, uint32_t class)
{
	return store->frames[index_after(store, class)].class_first;
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

/* 1 .. period: the frame expected is ahead, a whole lap before it is behind. */
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

/* The place of a run, or of as many of its frames (*count) as are found together. */
static uint64_t place_of(const struct verdict *verdict, uint64_t expected, uint32_t class,
			 uint32_t *count)
{
	const struct frame_store_view *store = verdict->config.expect;
	const uint32_t index = (uint32_t)(expected % store->count);
	uint64_t place, best = expected;
	uint32_t most = 0;
	struct walk walk;

	if (!verdict->places->start) {
		const uint32_t ahead = class >= index ? class - index
						      : store->count - index + class;
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

bool verdict_add_expected(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_run *run)
{
	const struct frame_store_view *store = verdict->config.expect;
	struct frame_run part = *run;
	uint32_t class, left = run->count;

	if (run->sequence >= store->count ||
	    store->frames[run->sequence].class_first != run->sequence)
		return false;
	class = (uint32_t)run->sequence;
	while (left) {
		uint32_t count = left;
		const uint64_t place = place_of(verdict, stream->sequence.next, class, &count);

		part.count = (uint16_t)count;
		if (run->verdict != FRAME_VALID)
			verdict_keep_damage(verdict, queue, run, place % store->count, true);
		verdict_add_readable(verdict, queue, stream, &part, place);
		/* The sums are the whole run's: they are counted once. */
		part.bytes = 0;
		part.wire_bytes = 0;
		part.wrong_bits = 0;
		left -= count;
		while (left && count--)
			class = class_after(store, class);
	}
	return true;
}
