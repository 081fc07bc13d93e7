/* SPDX-License-Identifier: BSD-3-Clause */
/* Until when all that came is in the accounts. */
#include "verdict/seen.h"

#include <rte_cycles.h>

#include "capture/rx_worker.h"

/* LOOKED: after two empty polls `published` has all that came before them. Partner: counter_add(), a release. */
static uint64_t count_of(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_acquire);
}

/* Two empty polls: one may have begun before. */
static bool port_was_empty(const struct seen *seen, uint32_t i)
{
	const struct rx_worker *worker = &seen->rx[i];

	return count_of(&worker->empty) - seen->at[i].empty >= 2 ||
	       count_of(&worker->frames) - seen->at[i].frames >= SEEN_FRAMES ||
	       rx_worker_has_left(worker) ||
	       atomic_load_explicit(&worker->ring.ended, memory_order_acquire) ||
	       atomic_load_explicit(&worker->phase, memory_order_relaxed) == RX_PAUSE;
}

static bool ports_were_empty(struct seen *seen)
{
	for (uint32_t i = 0; i < seen->rx_count; i++)
		if (!port_was_empty(seen, i))
			return false;
	for (uint32_t i = 0; i < seen->rx_count; i++)
		seen->at[i].published = count_of(&seen->rx[i].ring.published);
	return true;
}

static bool bursts_are_accounted(const struct seen *seen)
{
	for (uint32_t i = 0; i < seen->rx_count; i++)
		if (count_of(&seen->rx[i].ring.accounted) < seen->at[i].published)
			return false;
	return true;
}

void seen_look(struct seen *seen, uint64_t now)
{
	if (seen->step == SEEN_NEW) {
		seen->mark = now;
		for (uint32_t i = 0; i < seen->rx_count; i++) {
			seen->at[i].empty = count_of(&seen->rx[i].empty);
			seen->at[i].frames = count_of(&seen->rx[i].frames);
		}
		seen->step = SEEN_PORTS;
	}
	if (seen->step == SEEN_PORTS && ports_were_empty(seen))
		seen->step = SEEN_BURSTS;
	if ((seen->step != SEEN_BURSTS || !bursts_are_accounted(seen)) &&
	    (int64_t)(now - seen->mark) < (int64_t)(rte_get_tsc_hz() / 1000 * SEEN_WAIT_MS))
		return;
	seen->until = seen->mark;
	seen->step = SEEN_NEW;
}
