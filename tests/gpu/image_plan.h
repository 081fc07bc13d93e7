/* SPDX-License-Identifier: BSD-3-Clause */
/* What is sent of very many images, in which order, and what has to come out of it: planned by chance. */
#ifndef GDRCAP_TEST_IMAGE_PLAN_H
#define GDRCAP_TEST_IMAGE_PLAN_H

#include "image/images.h"
#include "image_truth.h"
#include "place_scene.h"

#define SLOTS 65536u
#define STREAMS_MAX 3u
#define OPEN 6u
#define NEWER_MOST 16u /* images that some frame of an older one may come after */
#define COMPARE_AT_ONCE 256u

/* An image as it is sent. */
struct sent_image {
	uint64_t there; /* bit i: piece i comes; 0: nothing of the image does */
	uint64_t end;	/* enum gdrcap_image_end */
};

struct sent_frame {
	uint32_t slot, key;
	uint32_t image; /* index in the run; UINT32_MAX: none */
};

/* What has to come out. */
struct planned {
	uint64_t placed, again, misfit, filtered, late_least;
	uint64_t begun, complete, newer, stopped, pieces_lost;
};

struct million {
	struct place_scene s;
	struct truth truth;
	struct gdrcap_images *images;
	uint32_t count, streams; /* images in the run; streams that they belong to in turn */
	uint64_t first_number, modulus;
	struct sent_image *sent;
	struct truth_frame *write;
	struct sent_frame *order;
	uint32_t orders;
	struct truth_image *compare;
	const struct gdrcap_image *taken[COMPARE_AT_ONCE];
	uint32_t waiting;
	struct truth_found *found;
	struct planned planned;
	uint64_t wrong_images, last[STREAMS_MAX], handed;
	uint64_t random;
};

/* ---- the plan ---- */

static inline bool happens(struct million *m, uint32_t one_of)
{
	return place_random(&m->random) % one_of == 0;
}

/* Image `i` of the run, as extended: its number, and what it holds. */
static inline uint64_t number_of(const struct million *m, uint32_t i)
{
	return m->first_number + i / m->streams;
}

static inline void image_plan(struct million *m, uint32_t i)
{
	const uint64_t all = m->truth.pieces == 64 ? UINT64_MAX : (1ull << m->truth.pieces) - 1;
	struct sent_image *image = &m->sent[i];

	image->there = all;
	if (happens(m, 100) && i >= m->streams && i + m->streams < m->count)
		image->there = 0;
	else if (happens(m, 4))
		for (uint32_t p = 0; p < m->truth.pieces; p++)
			if (happens(m, 12))
				image->there &= ~(1ull << p);
	if (!image->there && i < m->streams)
		image->there = all;
}

/* What is to come of all images, once it is known which pieces do. */
static inline void ends_plan(struct million *m)
{
	uint32_t newer[STREAMS_MAX] = { 0 };

	for (uint32_t i = m->count; i-- > 0;) {
		struct sent_image *image = &m->sent[i];
		const uint32_t pieces = (uint32_t)__builtin_popcountll(image->there);

		if (!pieces)
			continue;
		m->planned.begun++;
		m->planned.placed += pieces;
		m->planned.pieces_lost += m->truth.pieces - pieces;
		if (pieces == m->truth.pieces)
			image->end = GDRCAP_IMAGE_COMPLETE;
		else
			image->end = newer[i % m->streams] >= OPEN ? GDRCAP_IMAGE_NEWER
								   : GDRCAP_IMAGE_STOPPED;
		m->planned.complete += image->end == GDRCAP_IMAGE_COMPLETE;
		m->planned.newer += image->end == GDRCAP_IMAGE_NEWER;
		m->planned.stopped += image->end == GDRCAP_IMAGE_STOPPED;
		newer[i % m->streams]++;
	}
}

static inline void frame_add(struct million *m, uint32_t slot, uint32_t image, uint32_t key)
{
	m->order[m->orders++] = (struct sent_frame){ slot, key, image };
}

static inline struct truth_frame frame_of(const struct million *m, uint32_t i, uint32_t piece,
					  uint32_t slot)
{
	const uint64_t number = number_of(m, i);

	return (struct truth_frame){
		.id = (uint64_t)(i % m->streams) << 48 | number,
		.number = (uint32_t)(m->modulus ? number % m->modulus : number),
		.slot = slot,
		.stream = (uint16_t)(i % m->streams),
		.index = (uint16_t)piece,
		.type = TRUTH_TYPE,
		.piece = (uint16_t)piece,
	};
}

static inline int by_key(const void *a, const void *b)
{
	const struct sent_frame *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->slot < y->slot ? -1 : 1;
}

/* Of the images of a part: at which place in the order something of it comes first, and all of it is there. */
struct coming {
	uint32_t first, all;
};

static inline struct coming *coming_of(const struct million *m, uint32_t from, uint32_t to)
{
	struct coming *coming = malloc((to - from) * sizeof(*coming));
	uint8_t *seen = calloc(SLOTS, 1);

	memset(coming, 0xff, (to - from) * sizeof(*coming));
	for (uint32_t o = 0; o < m->orders; o++) {
		struct coming *image = &coming[m->order[o].image - from];

		if (m->order[o].image == UINT32_MAX || seen[m->order[o].slot]++)
			continue;
		image->all = o;
		if (image->first == UINT32_MAX)
			image->first = o;
	}
	free(seen);
	return coming;
}

/* By when OPEN images newer than `a`, of those that could overtake it, have begun. */
static inline uint32_t closed_at(const struct million *m, const struct coming *coming, uint32_t a,
				 uint32_t n)
{
	uint32_t begins[NEWER_MOST], count = 0;

	for (uint32_t b = a + m->streams; b < n && count < NEWER_MOST; b += m->streams) {
		uint32_t at = count;

		if (coming[b].first == UINT32_MAX)
			continue;
		for (; at && begins[at - 1] > coming[b].first; at--)
			begins[at] = begins[at - 1];
		begins[at] = coming[b].first;
		count++;
	}
	return count < OPEN ? UINT32_MAX : begins[OPEN - 1];
}

/*
 * In this order, is all of each image there before it is closed, and something of it before a newer one of its
 * stream is handed out? Then what comes of it does not depend on how fast anybody is.
 */
static inline bool order_holds(const struct million *m, uint32_t from, uint32_t to)
{
	struct coming *coming = coming_of(m, from, to);
	const uint32_t n = to - from;
	bool holds = true;

	for (uint32_t a = 0; a < n && holds; a++) {
		uint32_t newer = 0;

		if (coming[a].first == UINT32_MAX)
			continue;
		holds = coming[a].all < closed_at(m, coming, a, n);
		for (uint32_t b = a + m->streams; b < n && newer < NEWER_MOST; b += m->streams) {
			if (coming[b].first == UINT32_MAX)
				continue;
			holds = holds && coming[a].first < coming[b].all;
			newer++;
		}
	}
	free(coming);
	return holds;
}

/* Frames of images [from, to): written into slots, and in which order they will come. */
static inline int part_plan(struct million *m, uint32_t from, uint32_t to)
{
	uint32_t slots = 0, window = m->truth.pieces;
	bool held;

	m->orders = 0;
	for (uint32_t i = from; i < to; i++)
		for (uint32_t p = 0; p < m->truth.pieces; p++) {
			if (!(m->sent[i].there >> p & 1))
				continue;
			m->write[slots] = frame_of(m, i, p, slots);
			frame_add(m, slots, i, 0);
			if (happens(m, 40)) {
				frame_add(m, slots, i, 0);
				m->planned.again++;
			}
			slots++;
			if (happens(m, 500)) { /* a piece that no image has */
				m->write[slots] = frame_of(m, i, p, slots);
				m->write[slots].index = (uint16_t)(m->truth.pieces + p);
				frame_add(m, slots++, UINT32_MAX, 0);
				m->planned.misfit++;
			}
			if (happens(m, 500)) { /* somebody else's */
				m->write[slots] = frame_of(m, i, p, slots);
				m->write[slots].type = 0x88b7;
				frame_add(m, slots++, UINT32_MAX, 0);
				m->planned.filtered++;
			}
		}
	do {
		for (uint32_t o = 0; o < m->orders; o++)
			m->order[o].key = m->order[o].slot +
					  (uint32_t)(place_random(&m->random) % (window + 1));
		qsort(m->order, m->orders, sizeof(*m->order), by_key);
		held = order_holds(m, from, to);
		if (!held && !window)
			return -1;
		window /= 2;
	} while (!held);
	return truth_write(&m->truth, m->write, slots);
}

#endif
