/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front as a CPU thread (cq_front.h): one a receive queue of our own. It is the rx worker's body
 * where no driver and no mbuf is between the card and the burst ring: it polls completions, writes
 * descriptors, publishes bursts, and gives slots back by the queue's doorbell record. Counters, phases
 * and the ring are struct rx_worker's, so whoever watches one watches the other. It never reads a payload byte,
 * allocates, locks, logs or makes a system call (an idle one yields or sleeps, and a consumer that
 * sleeps is woken up).
 *
 * Descriptors and work entries' places go in step: place n is descriptor base + n, where base moves only
 * when the queue is reset. So the ring's head and tail are all that has to be known of the queue.
 *
 * A completion that is no frame in order stops it (enum cq_kind): what came before is published, what
 * comes after is only counted. Control then resets the queue:
 *   1. phase RX_PAUSE, until `paused`;
 *   2. own_rx_halt(), which takes back what was posted and sets the record to 0; own_rx_start();
 *   3. cq_worker_was_reset(), phase RX_RUN.
 * The thread throws away the completions of before, waits until the consumer has given every slot
 * back, and posts them all anew. Meanwhile the card finds nothing posted, and counts what comes.
 */
#ifndef GDRCAP_CQ_WORKER_H
#define GDRCAP_CQ_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/cq_front.h"
#include "capture/rx_worker.h"

struct cq_worker {
	/* Read-only while running. */
	struct cq_front_queue queue;

	/* This worker only. */
	_Alignas(RING_LINE) uint64_t index; /* of the next completion: goes on over resets */
	uint32_t base;	 /* descriptor that place 0 of work entry 0 is, since the last reset */
	uint32_t posted; /* places, since the last reset */
	uint32_t passed; /* looks in a row that found a later completion, and not the next */
	bool stopped;	 /* until the queue is reset and all slots are back */
	bool posts_anew; /* it is reset */

	/* Writer: this worker; of `state` control too, in RX_PAUSE. Readers: anybody, relaxed, but for `fault`. */
	_Alignas(RING_LINE) _Atomic int state; /* enum cq_state. Release, after `fault`; partner:
						* the acquire load of who reads that */
	_Atomic uint64_t stops[CQ_KINDS];      /* how often each kind stopped it */
	_Atomic uint64_t discarded; /* frames that had a slot and came behind what stopped it */
	_Atomic uint64_t flushed;   /* work entries that came back unused */
	_Atomic uint64_t reposts;   /* stores to the record */
	struct cq_fault fault;	    /* of the last stop */

	/* Writer: control, in RX_PAUSE; then this worker. */
	_Alignas(RING_LINE) _Atomic int reset;
};

/* For `worker`, which is created and does not run; posts every slot. Both stay where they are. */
int cq_worker_create(struct cq_worker *cq, struct rx_worker *worker,
		     const struct cq_front_queue *queue, struct gdrcap_error *error);
/* The body of the rx worker's thread. */
void cq_worker_run(void *worker);

/* Control, while no thread runs it and all that it published is back: takes the next frame, if there is one,
 * past the ring. Its slot stays as it is until the thread runs, which posts it again. */
bool cq_worker_take(struct cq_worker *cq, const struct rx_worker *worker, struct frame_desc *desc);
/* The same: what the next completion is; CQ_ORDER too where it was passed over. */
enum cq_kind cq_worker_look(const struct cq_worker *cq, const struct rx_worker *worker);
/* What a completion that stops a front was, for people; of what the front kept of it; of its kind alone. */
const char *cq_worker_fault_words(const struct cq_fault *fault);
const char *cq_worker_words(enum cq_kind kind);
/* Control, in RX_PAUSE: the queue has nothing posted, and its record is 0. */
void cq_worker_was_reset(struct cq_worker *cq);

#endif
