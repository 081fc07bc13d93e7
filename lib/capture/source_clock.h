/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time of a run that receives from files only: that at which their frames were captured. Images time out by it, and
 * streams fall silent. How fast the files are read changes nothing.
 *
 * A source hands out frames that are due by `limit`: before that no image is over, and no stream silent. The one after
 * these it holds back, and says when that one is due. When all sources have said so, and all that they handed out is
 * accounted for, the clock moves on to the earliest of these times; the accountant closes what is over by then, one
 * thing after the other, before a source sees it.
 *
 * HOLD: a source stores `bursts`, then `due`, release. Partner: the accountant's acquire of `due`; it may read a later
 * `bursts`, which is one more reason to wait.
 * TIME: the accountant stores what it closed and `now`, then `limit`, release. Partner: the source's acquire, before it
 * publishes frames to workers who look at what is closed.
 */
#ifndef GDRCAP_SOURCE_CLOCK_H
#define GDRCAP_SOURCE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define SOURCE_CLOCK_LINE 64
#define SOURCE_CLOCK_OVER UINT64_MAX /* due: there is no other frame */
#define SOURCE_CLOCK_MAX (GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX)
#define SOURCE_CLOCK_GRAIN_NS 100000u /* a burst's frames are due within this time */

struct ring_producer;
struct wake;

struct source_clock {
	/* Before the start. */
	uint64_t step_ns;		    /* most that `limit` is ahead of `now` */
	uint32_t count;			    /* sources */
	struct ring_producer *const *rings; /* by source */
	struct wake *wake;		    /* of the accountant */
	/* Writer: the accountant. ns since the Unix epoch; never falls. */
	_Alignas(SOURCE_CLOCK_LINE) _Atomic uint64_t now;
	_Atomic uint64_t limit;
	uint64_t began; /* of the first frame, with has_began */
	bool has_began;
	struct {
		/* Writer: the source. When its next frame is due, once it had published so many bursts. */
		_Alignas(SOURCE_CLOCK_LINE) _Atomic uint64_t due;
		_Atomic uint64_t bursts;
		_Atomic bool wants_room; /* that frame waits for an image buffer */
	} source[SOURCE_CLOCK_MAX];
};

/* ---- a source ---- */

/* The latest time of a frame that may be handed out, and what time it is. */
static inline uint64_t source_clock_limit(const struct source_clock *clock, uint64_t *now)
{
	/* TIME */
	const uint64_t limit = atomic_load_explicit(&clock->limit, memory_order_acquire);

	*now = atomic_load_explicit(&clock->now, memory_order_relaxed);
	return limit;
}

/* All that it handed out is published. */
void source_clock_hold(struct source_clock *clock, uint32_t source, uint64_t due, bool wants_room);
/* Its frame has room. Before the next PUBLISH, so that who sees where it went sees this too. */
static inline void source_clock_go(struct source_clock *clock, uint32_t source)
{
	atomic_store_explicit(&clock->source[source].wants_room, false, memory_order_relaxed);
}

/* ---- the accountant ---- */

/* The time to which the clock may move; its own if that is all. `stuck`: a frame waits for an image buffer, and no other
 * frame comes before that. */
uint64_t source_clock_next(const struct source_clock *clock, bool *stuck);
/* All that is over by then is closed, and nothing will be before `over`. */
void source_clock_set(struct source_clock *clock, uint64_t now, uint64_t over);

#endif
