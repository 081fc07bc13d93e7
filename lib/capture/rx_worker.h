/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rx worker: one thread a receive queue. It polls the port, publishes descriptors into the
 * burst ring, and gives slots back to the pool when their bursts are through. It never reads a
 * payload byte, allocates, locks, logs or makes a system call of its own (an idle one yields or sleeps,
 * and a consumer or sender that sleeps is woken up).
 */
#ifndef GDRCAP_RX_WORKER_H
#define GDRCAP_RX_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "capture/ring_producer.h"
#include "port/port_sleep.h"

struct cq_worker;
struct rte_mempool;
struct region;

/* Vector receive functions return 0 when asked for fewer frames (mlx5, others of DPDK's): a worker whose
 * ring has less room asks for this many, and keeps what is left over. */
#define RX_LEAST 4u

enum rx_phase {
	RX_RUN, /* receive and reclaim */
	/* Do not touch the port, reclaim; `paused` says that it is so. Whoever sets it back to
	 * RX_RUN does so with release, and waits until `paused` is 0 before the next pause. */
	RX_PAUSE,
	RX_DRAIN,   /* receive nothing more, reclaim until every slot is back */
	RX_ABANDON, /* leave at once: the consumer is dead */
};

/* Whose times are kept in the ring's tsc[]: only where that was asked for. */
enum rx_times {
	RX_TIMES_TSC,  /* of the CPU when the poll returned */
	RX_TIMES_CARD, /* the card's ticks, 0: none; from the mbuf's dynamic field */
};

/*
 * In place of the port's driver: fills up to n mbufs from the queue's pool, each with one segment, and returns how
 * many. A frame of which only the beginning is there says that it has two segments, and has no second one.
 */
enum {
	RX_SOURCE_WAITS = -1, /* there are frames, and no room for them */
	RX_SOURCE_OVER = -2,  /* there will be none */
};
typedef int (*rx_source_t)(void *source, struct rte_mbuf **mbufs, uint16_t n);

struct rx_config {
	uint16_t port, queue;
	rx_source_t receive; /* NULL: the port's driver receives */
	void *source;
	const uint64_t
		*came; /* the source's time of its newest frame; NULL: the poll's, in ticks */
	const struct region *region;
	struct rte_mempool *pool; /* where received mbufs come from */
	/* Header-data split: frames' first bytes; NULL: frames lie whole. */
	const struct region *heads;
	struct rte_mempool *head_pool;
	enum rx_times times;
	int time_offset;	     /* of the time in an mbuf: RX_TIMES_CARD */
	uint64_t time_flag;	     /* of an mbuf that has one */
	int (*flush)(void *context); /* before each publish; NULL: not needed */
	void *flush_context;
	uint32_t
		in_flight_max; /* frames; a driver that loses what it has read when the pool is empty is
				 * not asked for more than the pool surely has. UINT32_MAX: it loses none */
	uint32_t
		starved_from; /* frames in flight up to which the pool surely has more for the port:
				* beyond, it is looked at, and a poll that brings nothing may have
				* found no slot. UINT32_MAX: it has always more */
	bool mark_cut; /* with cut_from: they get FRAME_DESC_CUT. A chain's beginning always gets it */
	uint32_t
		cut_from; /* bytes: frames that are so long may have been longer; 0: only a chain was */
	struct port_sleep sleep; /* of an idle one */
	bool accounted; /* bursts are through when the accountant says so, not when they are done */
	bool wire; /* a software wire in this process: its sender wakes this worker, and waits for slots */
};

struct rx_worker {
	struct ring_producer ring;

	/* Read-only while running. */
	struct rx_config config;
	uint8_t *base, *head_base;
	uint32_t slot_shift, head_shift;
	bool split;
	struct cq_worker *cq; /* of a queue of our own: its body is cq_worker_run(); NULL: the
			       * port's driver receives */
	bool fronted;	      /* no thread runs it: a front on the GPU receives, and the accountant
			       * writes what follows (verdict/front_follow.h) */

	/* Writer: this worker. Readers: anybody, relaxed. */
	_Alignas(RING_LINE) _Atomic uint64_t frames;
	_Atomic uint64_t bytes;
	_Atomic uint64_t bursts;
	_Atomic uint64_t cut;  /* frames of which only the beginning is there */
	_Atomic uint64_t back; /* frames whose slots are back in the pool */
	_Atomic uint64_t idle; /* looks at the port and the ring that found nothing to do */
	_Atomic uint64_t
		empty; /* polls of the port that brought no frame though there were slots */
	_Atomic uint64_t starved;     /* times that the pool was empty, or nearly, ... */
	_Atomic uint64_t starved_tsc; /* ... and for how long in all */
	_Atomic int paused; /* in RX_PAUSE: the port is nobody's. Release; partner: the acquire load
			     * of who waits for it */
	_Atomic uint64_t began_tsc; /* before its first poll */
	_Atomic uint64_t first_tsc,
		last_tsc; /* of the first and the last poll that brought frames */
	_Atomic int flush_error;
	_Atomic int source_over; /* RX_SOURCE_OVER was said, and all frames are published */

	/* This worker only: received, and in the ring when it next has room. */
	_Alignas(RING_LINE) struct rte_mbuf *pending[RX_LEAST];
	uint32_t pending_next, pending_count;
	struct port_sleep sleep;
	unsigned int starved_idle; /* the last idle round that found the pool empty, and ... */
	uint64_t starved_last;	   /* ... when, TSC; and what was then: */
	uint64_t starved_frames, starved_empty;

	/* Writer: control. Reader: this worker. */
	_Alignas(RING_LINE) _Atomic int phase; /* enum rx_phase */
	_Atomic int awake;		       /* the run ends: no sleep any more */
	/* Who waits for the slots that it gives back: a wire's sender. Before the start; NULL: nobody. */
	struct wake *sender;

	struct wake wake; /* what it sleeps on */

	struct thread thread;
};

int rx_worker_create(struct rx_worker *worker, const struct rx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error);
void rx_worker_destroy(struct rx_worker *worker);
/* The thread's body. */
void rx_worker_run(void *worker);

/* It does nothing any more. Any thread. */
static inline bool rx_worker_has_left(const struct rx_worker *worker)
{
	return worker->fronted ? atomic_load_explicit(&worker->ring.ended, memory_order_acquire)
			       : thread_has_left(&worker->thread);
}

/* After ring.ended: true when its last poll found no free slot, so that it did not see whether more
 * frames were there. */
static inline bool rx_worker_ended_starved(const struct rx_worker *worker)
{
	return atomic_load_explicit(&worker->starved, memory_order_relaxed) &&
	       worker->starved_frames ==
		       atomic_load_explicit(&worker->frames, memory_order_relaxed) &&
	       worker->starved_empty == atomic_load_explicit(&worker->empty, memory_order_relaxed);
}

#endif
