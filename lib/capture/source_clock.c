/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a run that receives from files only. */
#include "capture/source_clock.h"

#include "base/wake.h"
#include "capture/ring_producer.h"

void source_clock_hold(struct source_clock *clock, uint32_t source, uint64_t due, bool wants_room)
{
	const uint64_t bursts = clock->rings[source]->burst;

	if (atomic_load_explicit(&clock->source[source].due, memory_order_relaxed) == due &&
	    atomic_load_explicit(&clock->source[source].bursts, memory_order_relaxed) == bursts &&
	    atomic_load_explicit(&clock->source[source].wants_room, memory_order_relaxed) ==
		    wants_room)
		return;
	atomic_store_explicit(&clock->source[source].bursts, bursts, memory_order_relaxed);
	atomic_store_explicit(&clock->source[source].wants_room, wants_room, memory_order_relaxed);
	/* HOLD */
	atomic_store_explicit(&clock->source[source].due, due, memory_order_release);
	wake_look(clock->wake);
}

uint64_t source_clock_next(const struct source_clock *clock, bool *stuck)
{
	const uint64_t now = atomic_load_explicit(&clock->now, memory_order_relaxed);
	uint64_t next = SOURCE_CLOCK_OVER;

	*stuck = false;
	for (uint32_t i = 0; i < clock->count; i++) {
		/* HOLD */
		const uint64_t due =
			atomic_load_explicit(&clock->source[i].due, memory_order_acquire);
		const uint64_t bursts =
			atomic_load_explicit(&clock->source[i].bursts, memory_order_relaxed);

		if (atomic_load_explicit(&clock->rings[i]->accounted, memory_order_relaxed) <
		    bursts)
			return now;
		if (due >= next)
			continue;
		next = due;
		*stuck = atomic_load_explicit(&clock->source[i].wants_room, memory_order_relaxed);
	}
	*stuck &= next <= atomic_load_explicit(&clock->limit, memory_order_relaxed);
	return next == SOURCE_CLOCK_OVER || next < now ? now : next;
}

void source_clock_set(struct source_clock *clock, uint64_t now, uint64_t over)
{
	const uint64_t most = now + clock->step_ns;

	if (!clock->has_began)
		clock->began = now;
	clock->has_began = true;
	atomic_store_explicit(&clock->now, now, memory_order_relaxed);
	/* TIME */
	atomic_store_explicit(&clock->limit, over <= most ? over - 1 : most, memory_order_release);
	for (uint32_t i = 0; i < clock->count; i++)
		wake_look(clock->rings[i]->giver);
}
