/* SPDX-License-Identifier: BSD-3-Clause */
#include "rx_worker.h"

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "mbuf_desc.h"
#include "region.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/*
 * A frame longer than a slot comes as a chain. Its first slot is kept, so that it is counted as a
 * damaged frame of its sequence number; the rest goes back. Returns its descriptor's mark.
 */
static __attribute__((noinline, cold)) uint16_t chain_cut(struct rx_worker *worker,
							  struct rte_mbuf *m)
{
	counter_add(&worker->cut, 1);
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	m->pkt_len = m->data_len;
	return worker->config.mark_cut ? FRAME_DESC_CUT : 0;
}

ALWAYS_INLINE unsigned int rx_receive(struct rx_worker *worker, const bool times)
{
	struct ring_producer *ring = &worker->ring;
	const uint32_t at = ring->head & ring->desc_mask;
	struct rte_mbuf **mbuf = &ring->mbuf[at];
	struct frame_desc *desc = &ring->desc[at];
	uint64_t bytes = 0, now;
	unsigned int n;

	if (unlikely(ring->head - ring->tail > worker->config.in_flight_max))
		return 0;
	n = rte_eth_rx_burst(worker->config.port, worker->config.queue, mbuf,
			     (uint16_t)ring_room(ring));
	if (n == 0)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = mbuf[i];
		uint16_t mark = 0;

		if (i + 4 < n)
			rte_prefetch0(mbuf[i + 4]);
		if (unlikely(m->nb_segs != 1))
			mark = chain_cut(worker, m);
		desc[i] = mbuf_desc(m, worker->base, worker->slot_shift);
		desc[i].offset |= mark;
		bytes += m->data_len;
	}
	ring->head += n;
	now = rte_rdtsc();
	for (unsigned int i = 0; times && i < n; i++)
		ring->tsc[at + i] = now;
	if (unlikely(atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0))
		atomic_store_explicit(&worker->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_tsc, now, memory_order_relaxed);
	counter_add(&worker->frames, n);
	counter_add(&worker->bytes, bytes);
	return n;
}

ALWAYS_INLINE void rx_publish(struct rx_worker *worker, const bool flush)
{
	if (flush) {
		/* Completion -> CPU -> flush -> PUBLISH: the running kernel must see what the NIC
		 * wrote. */
		int ret = worker->config.flush(worker->config.flush_context);

		if (unlikely(ret < 0))
			atomic_store_explicit(&worker->flush_error, ret, memory_order_relaxed);
	}
	ring_publish(&worker->ring);
	counter_add(&worker->bursts, 1);
}

/* Slots of bursts that are through go back to the pool, in bulk. Returns how many. */
ALWAYS_INLINE unsigned int rx_reclaim(struct rx_worker *worker, const bool accounted)
{
	struct ring_producer *ring = &worker->ring;
	uint64_t through = ring->reclaimed;
	uint32_t end, n, at, run;

	if (accounted) {
		/* The accountant has read the results and, before it, the consumer the frames.
		 * Partner: the release store in accountant_collect(). */
		through = atomic_load_explicit(&ring->collected, memory_order_acquire);
	} else {
		while (through != ring->burst && ring_is_done(ring, through))
			through++;
	}
	if (through == ring->reclaimed)
		return 0;
	end = ring->end[(uint32_t)(through - 1) & ring->burst_mask];
	n = end - ring->tail;
	at = ring->tail & ring->desc_mask;
	run = RTE_MIN(n, ring->desc_mask + 1 - at);
	/*
	 * Each mbuf is as a driver left it: one segment, one reference, external buffer pinned to
	 * it. So it may go back raw, without the per-mbuf checks of rte_pktmbuf_free_bulk().
	 */
	rte_mempool_put_bulk(worker->config.pool, (void *const *)&ring->mbuf[at], run);
	if (n != run)
		rte_mempool_put_bulk(worker->config.pool, (void *const *)ring->mbuf, n - run);
	ring->tail = end;
	ring->reclaimed = through;
	/* After the slots are back; pairs with the acquire load in gdrcap_get_stats(). */
	counter_add(&worker->back, n);
	return n;
}

ALWAYS_INLINE void rx_loop(struct rx_worker *worker, const bool flush, const bool accounted,
			   const bool times)
{
	struct ring_producer *ring = &worker->ring;
	unsigned int idle = 0, work;

	while (atomic_load_explicit(&worker->phase, memory_order_relaxed) == RX_RUN) {
		work = rx_receive(worker, times);
		if (ring_due(ring))
			rx_publish(worker, flush);
		work += rx_reclaim(worker, accounted);
		idle = work ? 0 : idle + 1;
		if (idle)
			thread_idle(idle);
	}
	if (ring_pending(ring))
		rx_publish(worker, flush);
	/* After the last PUBLISH. Partner: the acquire load in gdrcap_poll(). */
	atomic_store_explicit(&ring->ended, 1, memory_order_release);
	while (ring->reclaimed != ring->burst &&
	       atomic_load_explicit(&worker->phase, memory_order_relaxed) != RX_ABANDON)
		if (rx_reclaim(worker, accounted) == 0)
			thread_idle(IDLE_YIELDS + 1);
}

/* Eight loops from the one above, each without the questions whose answer is known at the start. */
#define RX_LOOP(name, flush, accounted, times)                                                     \
	static void rx_loop_##name(struct rx_worker *worker)                                       \
	{                                                                                          \
		rx_loop(worker, flush, accounted, times);                                          \
	}

RX_LOOP(plain, false, false, false)
RX_LOOP(flush, true, false, false)
RX_LOOP(accounted, false, true, false)
RX_LOOP(accounted_flush, true, true, false)
RX_LOOP(times, false, false, true)
RX_LOOP(times_flush, true, false, true)
RX_LOOP(times_accounted, false, true, true)
RX_LOOP(times_accounted_flush, true, true, true)

void rx_worker_run(void *arg)
{
	static void (*const loops[2][2][2])(struct rx_worker *worker) = {
		{ { rx_loop_plain, rx_loop_flush },
		  { rx_loop_accounted, rx_loop_accounted_flush } },
		{ { rx_loop_times, rx_loop_times_flush },
		  { rx_loop_times_accounted, rx_loop_times_accounted_flush } },
	};
	struct rx_worker *worker = arg;

	loops[worker->ring.tsc != NULL][worker->config.accounted][worker->config.flush != NULL](
		worker);
}

int rx_worker_create(struct rx_worker *worker, const struct rx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error)
{
	memset(worker, 0, sizeof(*worker));
	worker->config = *config;
	worker->base = config->region->base;
	worker->slot_shift = config->region->slot_shift;
	return ring_create(&worker->ring, ring, error);
}

void rx_worker_destroy(struct rx_worker *worker)
{
	ring_destroy(&worker->ring);
}
