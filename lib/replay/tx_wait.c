/* SPDX-License-Identifier: BSD-3-Clause */
/* How a sender waits: for what is due, for what is to be written, for room. */
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "replay/tx_worker.h"

/* Of one that polls: nobody else gets the core when the next frame is due so soon. */
#define TX_SPIN_US 50u
/* Earlier than that it sleeps: Linux wakes a sleeper in better time than it gives a thread that
 * yields its core back. It wakes so long before a frame is due, and now and then to see a stop. */
#define TX_WAKE_US 200u
#define TX_SLEEP_MOST_US 2000u
/*
 * Of one that sleeps: also between two frames, unless they are less than TX_NAP_LEAST_US apart. Those that are due
 * within TX_GROUP_US, or idle_sleep where that is less, leave together when the last of them is due. It is to be
 * woken as long before as Linux was late lately, but no earlier than the TX_EARLY_PART-th part of the time until
 * then: so long it waits awake, and so much of a core it takes at most.
 */
#define TX_NAP_LEAST_US 10u
#define TX_GROUP_US 200u
#define TX_EARLY_PART 16u
/* A port that takes nothing, of which nobody tells when it does. */
#define TX_STALLED_US 100u
/* Nothing was requested: it is not due for long, or there is no slot. */
#define TX_UNASKED_US 500u
#define TX_LOOKS 4u /* at a frame that is not due, before the clock is asked */

static __attribute__((noinline)) void tx_sleep(uint32_t us)
{
	const struct timespec pause = { .tv_nsec = 1000L * us };

	nanosleep(&pause, NULL);
}

/* The oldest frames that were requested are not yet written. */
static bool tx_waits_for_writer(const struct tx_worker *worker)
{
	return worker->sending != worker->ring.burst &&
	       !ring_is_done(&worker->ring, worker->sending);
}

/* Somebody wakes it: who writes frames, or who gives slots and room on the wire back. */
static bool tx_is_woken(const struct tx_worker *worker)
{
	return tx_waits_for_writer(worker) || (worker->config.wire && !worker->config.file);
}

/* Nothing is to be handed over. */
static void tx_rest(struct tx_worker *worker, unsigned int idle)
{
	const bool begun = atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) &&
			   !atomic_load_explicit(&worker->hold, memory_order_relaxed);
	uint32_t most_us = TX_SLEEP_MOST_US;

	if (!worker->rest.wake) {
		if (thread_may_nap(&worker->naps, idle))
			thread_nap(&worker->naps, idle);
		else
			thread_idle(idle);
		return;
	}
	if (!tx_is_woken(worker)) {
		most_us = thread_nap_next(&worker->naps, idle);
		if (begun)
			most_us = RTE_MIN(most_us,
					  worker->sending == worker->ring.burst &&
							  worker->config.pacing.kind != PACING_NONE
						  ? TX_UNASKED_US
						  : TX_STALLED_US);
	}
	if (!rest_step(&worker->rest, idle, most_us))
		thread_idle(idle);
}

static uint32_t tx_us(const struct tx_worker *worker, uint64_t ticks)
{
	return (uint32_t)(ticks * 1000000u / worker->tsc_hz);
}

/* When the next frame is to leave that is due in `until` ticks from `now`: late perhaps, never early. */
static int64_t tx_until_group(const struct tx_worker *worker, int64_t until, uint64_t now)
{
	const struct pacing *pacing = &worker->pacing;
	const uint64_t group = tx_ticks(worker, RTE_MIN(worker->config.idle_us, TX_GROUP_US));
	const struct ring_producer *ring = &worker->ring;
	const uint64_t due = ring->tsc[ring->tail & ring->desc_mask];
	int64_t later;

	if (!pacing->last_sent || due - pacing->last_due < tx_ticks(worker, TX_NAP_LEAST_US))
		return until;
	later = (int64_t)(pacing->last_sent + group - now);
	return RTE_MAX(until, later);
}

/* A frame is to leave in `until` ticks. */
static void tx_nap_until(struct tx_worker *worker, uint64_t until)
{
	const uint64_t early = RTE_MIN(worker->late_tsc, until / TX_EARLY_PART);
	const uint32_t us = RTE_MIN(tx_us(worker, until - early), TX_SLEEP_MOST_US);
	uint64_t since, slept;

	if (until < tx_ticks(worker, TX_NAP_LEAST_US)) {
		rte_pause();
		return;
	}
	since = rte_rdtsc();
	tx_sleep(us);
	slept = rte_rdtsc() - since;
	slept -= RTE_MIN(slept, tx_ticks(worker, us));
	worker->late_tsc = worker->late_tsc - worker->late_tsc / 8 + slept / 8;
}

/* The same of one that polls. */
static void tx_spin_until(struct tx_worker *worker, int64_t until)
{
	if (until < (int64_t)tx_ticks(worker, TX_SPIN_US))
		rte_pause();
	else if (until > (int64_t)tx_ticks(worker, TX_WAKE_US + TX_SLEEP_MOST_US))
		tx_sleep(TX_SLEEP_MOST_US);
	else if (until > (int64_t)tx_ticks(worker, 2 * TX_WAKE_US))
		tx_sleep(tx_us(worker, (uint64_t)until) - TX_WAKE_US);
	else
		tx_sleep(TX_SPIN_US / 2);
}

/* A paced sender waits for what is due, or for what is to be written: it spins or sleeps. */
static void tx_wait_due(struct tx_worker *worker, unsigned int idle)
{
	const bool sleeps = worker->rest.wake != NULL;
	uint64_t now;
	int64_t until;

	if (idle < (sleeps ? TX_LOOKS : IDLE_PAUSES)) {
		rte_pause();
		return;
	}
	if (worker->sending == worker->ring.burst || !worker->pacing.started ||
	    !ring_is_done(&worker->ring, worker->sending) ||
	    atomic_load_explicit(&worker->hold, memory_order_relaxed)) {
		if (sleeps || thread_may_nap(&worker->naps, idle))
			tx_rest(worker, idle);
		else
			tx_sleep(TX_SPIN_US);
		return;
	}
	now = rte_rdtsc();
	until = tx_until_due(worker, now);
	if (sleeps && until > 0)
		until = tx_until_group(worker, until, now);
	if (!sleeps)
		tx_spin_until(worker, until);
	else if (until > 0)
		tx_nap_until(worker, (uint64_t)until);
	else
		tx_rest(worker, idle);
}

void tx_wait(struct tx_worker *worker, unsigned int idle, bool paced)
{
	if (paced)
		tx_wait_due(worker, idle);
	else
		tx_rest(worker, idle);
}
