/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tx worker: one thread a send queue. It takes empty slots from the pool, orders frames into
 * them through a burst ring (a kernel or its host twin writes them, no CPU on this path touches a
 * payload), and hands finished bursts to the port. What the port does not take is offered again.
 */
#ifndef GDRCAP_TX_WORKER_H
#define GDRCAP_TX_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "ring_producer.h"
#include "thread.h"

struct rte_mempool;
struct region;

struct tx_config {
	uint16_t port, queue;
	const struct region *region;
	struct rte_mempool *pool;
	const struct frame_layout *layout;
	const uint16_t *lengths; /* in memory, without FCS: the cycle of frame lengths */
	uint32_t length_count;
	uint32_t stream_first, stream_count, stream_step; /* first, first + step, ... */
	uint64_t frames; /* to send; UINT64_MAX: until stopped */
};

struct tx_stream {
	uint64_t sequence, position; /* of the next frame to be ordered */
	_Atomic uint64_t sent; /* frames handed to the wire; readers: anybody */
};

struct tx_worker {
	struct ring_producer ring;

	/* Worker only. */
	struct tx_config config;
	struct tx_stream *streams;
	uint32_t length_at; /* in the cycle */
	uint32_t stream_at; /* whose turn it is */
	uint64_t ordered; /* frames */
	uint64_t sending; /* number of the burst that is being sent */
	uint64_t clock_tsc, clock_ns, tsc_hz; /* wall clock at clock_tsc */

	/* Writer: this worker. Readers: anybody, relaxed. */
	_Alignas(RING_LINE) _Atomic uint64_t sent; /* frames the port took */
	_Atomic uint64_t stalled; /* polls that found no free slot or a full wire */
	_Atomic int finished; /* all of config.frames are sent, or it was stopped */

	/* Writer: control. Reader: this worker. */
	_Alignas(RING_LINE) _Atomic int stop;

	struct thread thread;
};

int tx_worker_create(struct tx_worker *worker, const struct tx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error);
void tx_worker_destroy(struct tx_worker *worker);
/* The thread's body. */
void tx_worker_run(void *worker);
/* After the thread and the ring's consumer have ended: slots ordered and not sent go back. */
void tx_worker_reclaim(struct tx_worker *worker);

#endif
