/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a receive queue's thread, whichever way it receives: rx_worker.c, cq_worker.c. */
#ifndef GDRCAP_RX_WORKER_STEPS_H
#define GDRCAP_RX_WORKER_STEPS_H

#include <rte_branch_prediction.h>

#include "capture/rx_worker.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* `accounted`: the consumer is the built-in one, which never sleeps. */
ALWAYS_INLINE void rx_publish(struct rx_worker *worker, const bool flush, const bool accounted)
{
	if (flush) {
		/* Completion -> CPU -> flush -> PUBLISH: the running kernel must see what the NIC
		 * wrote into GPU memory. Heads need none: the CPU sees the NIC's writes to host
		 * memory before the completion, and its PUBLISH is what the kernel's TAKE
		 * acquires. */
		int ret = worker->config.flush(worker->config.flush_context);

		if (unlikely(ret < 0))
			atomic_store_explicit(&worker->flush_error, ret, memory_order_relaxed);
	}
	if (worker->ring.came)
		worker->ring.came[worker->ring.burst & worker->ring.burst_mask] =
			worker->config.came
				? *worker->config.came
				: atomic_load_explicit(&worker->last_tsc, memory_order_relaxed);
	ring_publish(&worker->ring);
	if (!accounted)
		ring_wake_look(&worker->ring.wake, worker->ring.burst);
	counter_add(&worker->bursts, 1);
}

/* While the phase is RX_PAUSE, from the last access to the port or queue to the next one. What waits is published when
 * due() says so, not before its time, since the ring has words for no more (ring_producer.h); reclaim() gives slots
 * back. Returns the phase that follows. */
ALWAYS_INLINE int rx_hold(struct rx_worker *worker,
			  bool (*const due)(const struct ring_producer *ring),
			  unsigned int (*const reclaim)(struct rx_worker *worker))
{
	unsigned int idle = 0, work;
	int phase;

	/* PHASE: after the last access. Partner: the acquire load of who waits for it. */
	atomic_store_explicit(&worker->paused, 1, memory_order_release);
	/* PHASE: before the next one. Partner: the release store of who has done with it. */
	while ((phase = atomic_load_explicit(&worker->phase, memory_order_acquire)) == RX_PAUSE) {
		if (due(&worker->ring))
			rx_publish(worker, worker->config.flush != NULL, worker->config.accounted);
		work = reclaim(worker);
		idle = work ? 0 : idle + 1;
		if (idle) {
			counter_add(&worker->idle, 1);
			ring_wake_look(&worker->ring.wake, worker->ring.burst);
			thread_idle(idle);
		}
	}
	return phase;
}

/* The end of a loop: the last burst is published ... */
ALWAYS_INLINE void rx_end(struct rx_worker *worker, const bool flush, const bool accounted)
{
	if (ring_pending(&worker->ring))
		rx_publish(worker, flush, accounted);
	ring_end(&worker->ring);
}

/* ... and then slots come back until this says false: nothing is under way, or it is given up. */
ALWAYS_INLINE bool rx_drains(const struct rx_worker *worker)
{
	return worker->ring.reclaimed != worker->ring.burst &&
	       atomic_load_explicit(&worker->phase, memory_order_relaxed) != RX_ABANDON;
}

/* None did. */
ALWAYS_INLINE void rx_drain_idle(struct rx_worker *worker, unsigned int idle)
{
	counter_add(&worker->idle, 1);
	if (worker->sleep.naps.most_us)
		thread_nap(&worker->sleep.naps, idle);
	else
		thread_idle(IDLE_YIELDS + 1);
}

#define RX_LOOP(loop, name, flush, accounted, extra)                                               \
	static void loop##_##name(struct rx_worker *worker)                                        \
	{                                                                                          \
		loop(worker, flush, accounted, extra);                                             \
	}

/* Eight loops from `loop`, each without the questions whose answer is known at the start, and their
 * table: loop##s[extra][accounted][flush]. */
#define RX_LOOPS(loop)                                                                             \
	RX_LOOP(loop, plain, false, false, false)                                                  \
	RX_LOOP(loop, flush, true, false, false)                                                   \
	RX_LOOP(loop, accounted, false, true, false)                                               \
	RX_LOOP(loop, accounted_flush, true, true, false)                                          \
	RX_LOOP(loop, extra, false, false, true)                                                   \
	RX_LOOP(loop, extra_flush, true, false, true)                                              \
	RX_LOOP(loop, extra_accounted, false, true, true)                                          \
	RX_LOOP(loop, extra_accounted_flush, true, true, true)                                     \
	static void (*const loop##s[2][2][2])(struct rx_worker * worker) = {                       \
		{ { loop##_plain, loop##_flush }, { loop##_accounted, loop##_accounted_flush } },  \
		{ { loop##_extra, loop##_extra_flush },                                            \
		  { loop##_extra_accounted, loop##_extra_accounted_flush } },                      \
	};

/* An idle round found no slot free for what may come. Time counts from one such round to the next. */
__attribute__((cold)) void rx_starved(struct rx_worker *worker, unsigned int idle);

/* Nothing was found. Where slots are short they are looked for, and what is not published waits for
 * its turn: then it stays awake. */
__attribute__((cold)) void rx_sleep(struct rx_worker *worker, unsigned int idle);

#endif
