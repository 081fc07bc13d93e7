/* SPDX-License-Identifier: BSD-3-Clause */
/* Silence of the receivers. */
#include "session/quiet.h"

#include <string.h>

#include "base/tsc.h"
#include "capture/rx_worker.h"

/* LOOKED: what a receiver published before comes with its count. Partner: counter_add(). */
static uint64_t empty_polls(const struct rx_worker *worker)
{
	return atomic_load_explicit(&worker->empty, memory_order_acquire);
}

static uint64_t frames_of(const struct rx_worker *worker)
{
	return atomic_load_explicit(&worker->frames, memory_order_acquire);
}

static void marks_set(struct quiet *quiet)
{
	for (uint32_t i = 0; i < quiet->rx_count; i++)
		quiet->mark[i] = (struct quiet_mark){
			.empty = empty_polls(&quiet->rx[i]),
			.frames = frames_of(&quiet->rx[i]),
		};
}

void quiet_begin(struct quiet *quiet)
{
	marks_set(quiet);
	quiet->step = QUIET_BEFORE;
}

void quiet_init(struct quiet *quiet, struct rx_worker *rx, uint32_t rx_count)
{
	memset(quiet, 0, sizeof(*quiet));
	quiet->rx = rx;
	quiet->rx_count = rx_count;
	patience_begin(&quiet->room);
	quiet_begin(quiet);
}

/* One that does not run, or is kept away from a dead port, has nothing to look at. */
static bool receiver_has_looked(const struct quiet *quiet, uint32_t i)
{
	const struct rx_worker *worker = &quiet->rx[i];
	const struct quiet_mark *mark = &quiet->mark[i];

	return empty_polls(worker) - mark->empty >= QUIET_LOOKS ||
	       frames_of(worker) - mark->frames >= QUIET_FRAMES || rx_worker_has_left(worker) ||
	       atomic_load_explicit(&worker->phase, memory_order_relaxed) == RX_PAUSE;
}

static bool all_have_looked(const struct quiet *quiet)
{
	for (uint32_t i = 0; i < quiet->rx_count; i++)
		if (!receiver_has_looked(quiet, i))
			return false;
	return true;
}

bool quiet_is_over(struct quiet *quiet, uint32_t ms)
{
	if (!all_have_looked(quiet))
		return false;
	if (quiet->step == QUIET_BEFORE) {
		quiet->step = QUIET_TIME;
		quiet->since_tsc = rte_rdtsc();
	}
	if (quiet->step == QUIET_TIME && tsc_older(quiet->since_tsc, ms)) {
		marks_set(quiet);
		quiet->step = QUIET_AFTER;
		return quiet->rx_count == 0;
	}
	return quiet->step == QUIET_AFTER;
}

/* A receiver that makes no round says nothing of its room. */
static bool receivers_stand(void *arg)
{
	struct quiet *quiet = arg;
	bool stand = false;

	for (uint32_t i = 0; i < quiet->rx_count; i++) {
		const struct thread *thread = &quiet->rx[i].thread;
		uint64_t rounds;

		if (receiver_has_looked(quiet, i) || quiet->rx[i].fronted)
			continue;
		rounds = thread->rounds(thread->arg);
		stand |= rounds == quiet->mark[i].rounds;
		quiet->mark[i].rounds = rounds;
	}
	return stand;
}

bool quiet_is_blocked(struct quiet *quiet, uint32_t ms)
{
	uint64_t moved = 0;

	for (uint32_t i = 0; i < quiet->rx_count; i++)
		if (!receiver_has_looked(quiet, i))
			moved += 1 + empty_polls(&quiet->rx[i]) + frames_of(&quiet->rx[i]);
	if (moved == 0 || moved != quiet->moved) {
		quiet->moved = moved;
		patience_begin(&quiet->room);
		return false;
	}
	return patience_ends(&quiet->room, ms, receivers_stand, quiet);
}
