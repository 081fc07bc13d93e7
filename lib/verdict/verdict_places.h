/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames expected from a file: where the file has a content. Place n is frame n % count of the
 * file, played again and again.
 */
#ifndef GDRCAP_VERDICT_PLACES_H
#define GDRCAP_VERDICT_PLACES_H

#include "verdict/verdict.h"

#define PLACES_TRIED 16u /* of a content that is repeated in the file */
#define PLACES_EARLY 32u /* early frames at a time; any more are copies of what lies behind */
#define PLACE_NONE UINT64_MAX

/* A frame, alone in its record, that came before its place. */
struct waiting {
	struct verdict_stream *stream;
	struct frame_record record;
	uint32_t queue;
	bool early; /* else in doubt */
};

struct verdict_places {
	/* The places of each content; where no two frames are alike, NULL twice. */
	uint32_t *start;  /* by index of a class's first frame: in member[]; [count]: its end */
	uint32_t *member; /* indices of frames, ascending within a class */
	/* Each queue's frame in doubt, then PLACES_EARLY early ones. */
	struct waiting *waiting;
	uint64_t *place; /* theirs; PLACE_NONE: the slot is free */
	uint32_t slots;
	uint64_t lowest; /* no frame waits for a place below this one */
};

static inline uint32_t index_after(const struct frame_store_view *store, uint32_t index)
{
	return index + 1 == store->count ? 0 : index + 1;
}

/* The content of the frame that follows one of content `class` in a record. */
static inline uint32_t class_after(const struct frame_store_view *store, uint32_t class)
{
	return store->frames[index_after(store, class)].class_first;
}

/* The place of a record, or of as many of its frames (*count) as are found together: the nearest to
 * the expected one, ahead when two are as near. */
uint64_t place_of(const struct verdict *verdict, uint64_t expected, uint32_t class,
		  uint32_t *count);
/* The nearest place of content `class` before `next`; false: the first loop has none. */
bool place_behind(const struct verdict *verdict, uint64_t next, uint32_t class, uint64_t *place);

#endif
