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
			atomic_load_explicit(&worker->last_tsc, memory_order_relaxed);
	ring_publish(&worker->ring);
	if (!accounted)
		ring_wake_look(&worker->ring.wake, worker->ring.burst);
	counter_add(&worker->bursts, 1);
}

/* An idle round found no slot free for what may come. Time counts from one such round to the next. */
__attribute__((cold)) void rx_starved(struct rx_worker *worker, unsigned int idle);

/* Nothing was found. Where slots are short they are looked for, and what is not published waits for
 * its turn: then it stays awake. */
__attribute__((cold)) void rx_sleep(struct rx_worker *worker, unsigned int idle);

#endif
