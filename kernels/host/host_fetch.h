/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames are fetched into the cache while one is checked. Inside kernels/host only. */
#ifndef GDRCAP_HOST_FETCH_H
#define GDRCAP_HOST_FETCH_H

#include <stdbool.h>

#include "kernels/frame_records.h"
#include "pattern/pattern_ahead.h"

/*
 * So much is on its way beyond the frame in work: slots are too far apart for the CPU's own
 * prefetcher to see the next one coming, and while memory answers once, a core checks some 6 KiB.
 * Of small frames fewer bytes: each is a line, and more lines at once it cannot ask for.
 */
#define FETCH_BYTES 6144u
#define FETCH_FRAMES 16u

struct fetch {
	uint32_t first, count; /* descriptors that may be read: this burst's, then the next one's */
	uint32_t next;	       /* of them, the first that was not yet asked for */
	uint32_t frames, bytes; /* asked for, and not yet in work */
	uint64_t burst;		/* the one to go on with, of this worker */
	bool looked;		/* whether it is there */
	struct pattern_ahead ahead;
};

/* A worker whose bursts are `step` apart begins `burst`. */
static inline void fetch_begin(struct fetch *fetch, uint64_t burst, uint64_t step, uint64_t ready)
{
	*fetch = (struct fetch){
		.first = burst_word_first(ready),
		.count = burst_frames(ready),
		.next = 1,
		.burst = burst + step,
	};
}

/* Goes on with the next burst, unless it is not there: then who fills the ring is the slower one.
 */
static inline bool fetch_follow(const struct burst_ring_view *ring, struct fetch *fetch)
{
	uint64_t ready;

	if (fetch->looked)
		return false;
	fetch->looked = true;
	/* PEEK, partner PUBLISH: descriptors are read only after it */
	ready = __atomic_load_n(&ring->ready[fetch->burst & ring->burst_mask].word,
				__ATOMIC_ACQUIRE);
	if (!burst_word_is(ready, fetch->burst, ring_burst_bits(ring)))
		return false;
	fetch->first = burst_word_first(ready);
	fetch->count = burst_frames(ready);
	fetch->next = 0;
	return fetch->count;
}

/* A frame of this many bytes, which is not the burst's first, comes to work. */
static inline void fetch_arrived(struct fetch *fetch, uint32_t len)
{
	fetch->frames--;
	fetch->bytes -= len;
}

/*
 * What is to be fetched during the frame in work, or NULL: of several frames the last, after asking
 * for the others at once, which is where a burst begins.
 */
static inline const struct pattern_ahead *fetch_more(const struct burst_ring_view *ring,
						     struct fetch *fetch)
{
	const struct pattern_ahead *ahead = NULL;

	while (fetch->frames < FETCH_FRAMES && fetch->bytes < FETCH_BYTES) {
		struct frame_desc desc;
		const uint8_t *frame;

		if (fetch->next == fetch->count && !fetch_follow(ring, fetch))
			break;
		desc = ring->desc[(fetch->first + fetch->next++) & ring->desc_mask];
		frame = frame_at(ring, desc);
		fetch->frames++;
		fetch->bytes += desc.len;
		if (!frame || !desc.len)
			continue;
		ahead_all(ahead);
		fetch->ahead = ahead_of(frame, desc.len);
		ahead = &fetch->ahead;
	}
	return ahead;
}

#endif
