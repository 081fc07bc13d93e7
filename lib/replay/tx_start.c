/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender that begins at a time of the wall clock: what its thread does before. */
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "base/clock.h"
#include "replay/tx_worker.h"

/* From here on frames are written ahead. */
#define START_NEAR_NS UINT64_C(20000000)
/* So long at most before somebody who stops it is seen. */
#define START_NAP_NS UINT64_C(2000000)
/* Nobody else gets the core any more: a sleeper may be woken up so late. */
#define START_SPIN_NS UINT64_C(200000)

static void nap_ns(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	nanosleep(&pause, NULL);
}

enum tx_start tx_start_step(struct tx_worker *worker)
{
	const uint64_t start = worker->config.start_ns;
	const uint64_t now = time_ns(CLOCK_REALTIME), tsc = rte_rdtsc();
	uint64_t left;

	/* The clock may have been set, or have gone its own way, since the worker was made. */
	worker->clock_ns = now;
	worker->clock_tsc = tsc;
	if (now >= start) {
		worker->start_tsc = tsc;
		atomic_store_explicit(&worker->start_late_ns, now - start, memory_order_relaxed);
		/* STARTED: after how late it is. Partner: tx_start_late(). */
		atomic_store_explicit(&worker->started_tsc, tsc, memory_order_release);
		return TX_START_NOW;
	}
	counter_add(&worker->idle, 1);
	left = start - now;
	if (left > START_NEAR_NS) {
		nap_ns(RTE_MIN(left - START_NEAR_NS, START_NAP_NS));
		return TX_START_FAR;
	}
	worker->start_tsc = tsc + left * worker->tsc_hz / UINT64_C(1000000000) + 1;
	if (left > 2 * START_SPIN_NS)
		nap_ns(START_SPIN_NS / 2);
	else
		rte_pause();
	return TX_START_NEAR;
}

bool tx_start_late(const struct tx_worker *worker, uint64_t tsc, uint64_t *late_ns)
{
	const uint64_t started = atomic_load_explicit(&worker->started_tsc, memory_order_acquire);
	const uint64_t ticks = tsc > started ? tsc - started : 0;

	if (!started)
		return false;
	*late_ns = atomic_load_explicit(&worker->start_late_ns, memory_order_relaxed) +
		   (uint64_t)((double)ticks * 1e9 / (double)worker->tsc_hz);
	return true;
}
