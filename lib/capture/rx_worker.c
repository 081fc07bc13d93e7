/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving thread of a queue: polls the port, publishes bursts, gives slots back. */
#include "capture/rx_worker.h"

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "capture/mbuf_desc.h"
#include "capture/rx_worker_steps.h"
#include "memory/region.h"

/* Frames whose mbufs are asked for ahead: over a software wire each comes from the sender's core, and
 * a core fetches so many lines at once. */
#define RX_PREFETCH 16u

/* Rounds without a frame after which those that come slowly are gathered. */
#define IDLE_GATHERS 4u

/* What drivers that copy ask their pool for at once, memif's and AF_XDP's. */
#define RX_DRIVER_BURST 32u

/*
 * A frame longer than a slot comes as a chain. Its first slot, where it is split that of its rest,
 * is kept, so that it is counted as a damaged frame of its sequence number; the others go back.
 * Returns its descriptor's mark.
 */
static __attribute__((noinline, cold)) uint16_t chain_cut(struct rx_worker *worker,
							  struct rte_mbuf *m)
{
	counter_add(&worker->cut, 1);
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	m->pkt_len = m->data_len;
	return FRAME_DESC_CUT;
}

/* True when the pool may have no slots for what a driver reads first. */
ALWAYS_INLINE bool rx_must_wait(const struct rx_worker *worker)
{
	return worker->ring.head - worker->ring.tail > worker->config.in_flight_max;
}

/* Its silence says something only where it had room for what there is. */
static __attribute__((noinline)) unsigned int source_poll(struct rx_worker *worker,
							  struct rte_mbuf **mbuf, uint32_t room)
{
	const int n = worker->config.receive(worker->config.source, mbuf, (uint16_t)room);

	if (n > 0)
		return (unsigned int)n;
	if (n != RX_SOURCE_WAITS)
		counter_add(&worker->empty, 1);
	/* After the last PUBLISH. Partner: the acquire load of who ends the run. */
	if (n == RX_SOURCE_OVER && ring_pending(&worker->ring) == 0)
		atomic_store_explicit(&worker->source_over, 1, memory_order_release);
	return 0;
}

/* A poll that brought nothing, though there were slots, says that the queue was empty then: the end
 * of a run waits for some. */
ALWAYS_INLINE unsigned int port_poll(struct rx_worker *worker, struct rte_mbuf **mbuf,
				     uint32_t room, const bool extra)
{
	unsigned int n;

	if (extra && worker->config.receive)
		return source_poll(worker, mbuf, room);
	n = rte_eth_rx_burst(worker->config.port, worker->config.queue, mbuf, (uint16_t)room);
	if (n == 0 && worker->ring.head - worker->ring.tail <= worker->config.starved_from)
		counter_add(&worker->empty, 1);
	return n;
}

/* From the pending mbufs; where there are none, some are received first. */
static __attribute__((noinline, cold)) unsigned int
pending_take(struct rx_worker *worker, struct rte_mbuf **mbuf, uint32_t room)
{
	uint32_t n;

	if (worker->pending_count == 0) {
		if (rx_must_wait(worker))
			return 0;
		worker->pending_next = 0;
		worker->pending_count = port_poll(worker, worker->pending, RX_LEAST, true);
	}
	n = RTE_MIN(room, worker->pending_count);
	for (uint32_t i = 0; i < n; i++)
		mbuf[i] = worker->pending[worker->pending_next++];
	worker->pending_count -= n;
	return n;
}

ALWAYS_INLINE unsigned int rx_poll(struct rx_worker *worker, struct rte_mbuf **mbuf,
				   const bool extra)
{
	const struct ring_producer *ring = &worker->ring;
	/*
	 * Vector receive functions write past what they return, as far as they were asked: pointers
	 * that say nothing, so they must meet no place in use. There are as many places as mbufs:
	 * what can be received always finds one.
	 */
	const uint32_t unused = ring->desc_mask + 1 - (ring->head - ring->tail);
	const uint32_t room = RTE_MIN(ring_room(ring), unused);

	if (unlikely(room < RX_LEAST || worker->pending_count))
		return pending_take(worker, mbuf, room);
	if (unlikely(rx_must_wait(worker)))
		return 0;
	return port_poll(worker, mbuf, room, extra);
}

/* Fills n descriptors. Returns the frames' bytes. */
ALWAYS_INLINE uint64_t rx_describe(struct rx_worker *worker, uint32_t at, unsigned int n)
{
	struct rte_mbuf **mbuf = &worker->ring.mbuf[at];
	struct frame_desc *desc = &worker->ring.desc[at];
	const uint8_t *base = worker->base;
	const uint32_t shift = worker->slot_shift;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < RTE_MIN(RX_PREFETCH, n); i++)
		rte_prefetch0(mbuf[i]);
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = mbuf[i];
		uint16_t mark = 0;

		if (i + RX_PREFETCH < n)
			rte_prefetch0(mbuf[i + RX_PREFETCH]);
		if (unlikely(m->nb_segs != 1))
			mark = chain_cut(worker, m);
		desc[i] = mbuf_desc(m, base, shift);
		desc[i].offset |= mark;
		bytes += m->data_len;
	}
	return bytes;
}

/* The same of split frames, each a chain of its head and, if it is longer, the rest. Chains are
 * taken apart: mbufs go back as single ones. */
static uint64_t rx_describe_split(struct rx_worker *worker, uint32_t at, unsigned int n)
{
	struct rte_mbuf **head = &worker->ring.head_mbuf[at], **rest = &worker->ring.mbuf[at];
	struct frame_desc *head_desc = &worker->ring.head_desc[at], *desc = &worker->ring.desc[at];
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = head[i];
		uint16_t mark = 0;

		if (i + 4 < n)
			rte_mbuf_prefetch_part2(head[i + 4]);
		rest[i] = m->next;
		head_desc[i] = mbuf_desc(m, worker->head_base, worker->head_shift);
		desc[i] = (struct frame_desc){ 0 };
		bytes += m->data_len;
		if (!rest[i])
			continue;
		m->next = NULL;
		m->nb_segs = 1;
		m = rest[i];
		if (unlikely(m->next))
			mark = chain_cut(worker, m);
		desc[i] = mbuf_desc(m, worker->base, worker->slot_shift);
		desc[i].offset |= mark;
		bytes += m->data_len;
	}
	return bytes;
}

/* The frames' times, where they are kept: the poll's, or the card's. */
static void rx_keep_times(struct rx_worker *worker, struct rte_mbuf *const *mbuf, uint32_t at,
			  unsigned int n, uint64_t now)
{
	const struct rx_config *config = &worker->config;
	uint64_t *tsc = worker->ring.tsc;

	if (!tsc)
		return;
	if (config->times == RX_TIMES_TSC) {
		for (unsigned int i = 0; i < n; i++)
			tsc[at + i] = now;
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		const uint64_t known = (mbuf[i]->ol_flags & config->time_flag) != 0;

		tsc[at + i] =
			-known & *RTE_MBUF_DYNFIELD(mbuf[i], config->time_offset, const uint64_t *);
	}
}

/* Of whole frames, where the port itself may have cut some: they are as long as it has room. */
static void rx_look_for_cut(struct rx_worker *worker, uint32_t at, unsigned int n)
{
	const uint16_t mark = worker->config.mark_cut ? FRAME_DESC_CUT : 0;
	struct frame_desc *desc = &worker->ring.desc[at];
	uint64_t cut = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (desc[i].len < worker->config.cut_from)
			continue;
		desc[i].offset |= mark;
		cut++;
	}
	if (cut)
		counter_add(&worker->cut, cut);
}

/* `extra`: split frames, times, a port that cuts, a source: which of them is asked once a burst. */
ALWAYS_INLINE unsigned int rx_receive(struct rx_worker *worker, const bool extra)
{
	struct ring_producer *ring = &worker->ring;
	const bool split = extra && worker->split;
	const uint32_t at = ring->head & ring->desc_mask;
	struct rte_mbuf **mbuf = split ? &ring->head_mbuf[at] : &ring->mbuf[at];
	const unsigned int n = rx_poll(worker, mbuf, extra);
	uint64_t bytes, now;

	if (n == 0)
		return 0;
	bytes = split ? rx_describe_split(worker, at, n) : rx_describe(worker, at, n);
	ring->head += n;
	now = rte_rdtsc();
	if (extra) {
		rx_keep_times(worker, mbuf, at, n, now);
		if (worker->config.cut_from)
			rx_look_for_cut(worker, at, n);
	}
	if (unlikely(atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0))
		atomic_store_explicit(&worker->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_tsc, now, memory_order_relaxed);
	counter_add(&worker->frames, n);
	counter_add(&worker->bytes, bytes);
	return n;
}

/*
 * Each mbuf is as a driver left it, or rx_describe_split(): one segment, one reference, external
 * buffer pinned to it. So it may go back raw, without the per-mbuf checks of
 * rte_pktmbuf_free_bulk(). DPDK's put is 3 KiB of code where it is inlined: that is worth it once a
 * loop, for whole frames; elsewhere it is called here.
 */
static __attribute__((noinline)) void mbufs_put(struct rte_mempool *pool, struct rte_mbuf **mbuf,
						uint32_t n)
{
	rte_mempool_put_bulk(pool, (void *const *)mbuf, n);
}

static __attribute__((noinline)) void rx_put_split(struct rx_worker *worker, uint32_t at,
						   uint32_t n)
{
	struct rte_mbuf **mbuf = &worker->ring.mbuf[at];
	uint32_t rests = 0;

	mbufs_put(worker->config.head_pool, &worker->ring.head_mbuf[at], n);
	/* Not every frame has a rest. Their places are free from now on, so they are moved up. */
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *rest = mbuf[i];

		mbuf[rests] = rest;
		rests += rest != NULL;
	}
	if (rests)
		mbufs_put(worker->config.pool, mbuf, rests);
}

/* True when a driver finds no slots for a burst: those that are left may be in another thread's
 * cache. */
static bool rx_pool_is_empty(struct rte_mempool *pool)
{
	void *mbuf[RX_DRIVER_BURST];

	if (rte_mempool_get_bulk(pool, mbuf, RX_DRIVER_BURST) < 0)
		return true;
	rte_mempool_put_bulk(pool, mbuf, RX_DRIVER_BURST);
	return false;
}

void rx_starved(struct rx_worker *worker, unsigned int idle)
{
	const bool goes_on = idle > 1 && idle == worker->starved_idle + 1;
	const uint64_t now = rte_rdtsc();

	if (goes_on)
		counter_add(&worker->starved_tsc, now - worker->starved_last);
	else
		counter_add(&worker->starved, 1);
	worker->starved_idle = idle;
	worker->starved_last = now;
	worker->starved_frames = atomic_load_explicit(&worker->frames, memory_order_relaxed);
	worker->starved_empty = atomic_load_explicit(&worker->empty, memory_order_relaxed);
}

/* A round that received nothing and gave nothing back, with most slots in flight: was it for want
 * of them? */
static __attribute__((noinline, cold)) void rx_starve(struct rx_worker *worker, unsigned int idle)
{
	if (!rx_must_wait(worker) && !rx_pool_is_empty(worker->config.pool) &&
	    (!worker->split || !rx_pool_is_empty(worker->config.head_pool)))
		return;
	rx_starved(worker, idle);
}

/* Slots of bursts that are through go back to the pool, in bulk. Returns of how many frames. */
ALWAYS_INLINE unsigned int rx_reclaim(struct rx_worker *worker, const bool accounted,
				      const bool extra)
{
	const bool split = extra && worker->split;
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
	if (split) {
		rx_put_split(worker, at, run);
		if (n != run)
			rx_put_split(worker, 0, n - run);
	} else {
		rte_mempool_put_bulk(worker->config.pool, (void *const *)&ring->mbuf[at], run);
		if (unlikely(n != run))
			mbufs_put(worker->config.pool, ring->mbuf, n - run);
	}
	ring->tail = end;
	ring->reclaimed = through;
	/* After the slots are back; pairs with the acquire load in gdrcap_get_summary(). */
	counter_add(&worker->back, n);
	wake_look(worker->sender);
	return n;
}

/* The same where nothing is received: of any loop. */
static __attribute__((noinline, cold)) unsigned int rx_reclaim_paused(struct rx_worker *worker)
{
	return rx_reclaim(worker, worker->config.accounted, true);
}

/* What the port gave goes into the ring, which has descriptors for every mbuf. */
static __attribute__((noinline, cold)) void pending_deliver(struct rx_worker *worker)
{
	while (worker->pending_count) {
		rx_receive(worker, true);
		if (ring_due(&worker->ring))
			rx_publish(worker, worker->config.flush != NULL, worker->config.accounted);
	}
}

/* While the phase is RX_PAUSE. False when it is a later one than that. */
static __attribute__((noinline, cold)) bool rx_pause(struct rx_worker *worker)
{
	int phase = atomic_load_explicit(&worker->phase, memory_order_relaxed);

	if (phase != RX_PAUSE)
		return phase == RX_RUN;
	pending_deliver(worker);
	phase = rx_hold(worker, ring_due, rx_reclaim_paused);
	port_sleep_anew(&worker->sleep);
	atomic_store_explicit(&worker->paused, 0, memory_order_release);
	return phase == RX_RUN;
}

void rx_sleep(struct rx_worker *worker, unsigned int idle)
{
	const struct rx_config *config = &worker->config;
	const struct ring_producer *ring = &worker->ring;
	const uint32_t held = ring->head - ring->tail;

	const bool gathers = idle == IDLE_GATHERS,
		   sleeps = worker->sleep.rest.wake ? idle >= REST_POLLS
						    : thread_may_nap(&worker->sleep.naps, idle);

	if (!(gathers || sleeps) || ring_pending(ring) ||
	    held > RTE_MIN(config->starved_from, config->in_flight_max) ||
	    atomic_load_explicit(&worker->awake, memory_order_relaxed))
		thread_idle(idle);
	else if (gathers)
		port_sleep_gather(&worker->sleep,
				  atomic_load_explicit(&worker->frames, memory_order_relaxed));
	else
		port_sleep(&worker->sleep, idle, held);
}

ALWAYS_INLINE void rx_loop(struct rx_worker *worker, const bool flush, const bool accounted,
			   const bool extra)
{
	struct ring_producer *ring = &worker->ring;
	unsigned int idle = 0, work;

	do {
		while (atomic_load_explicit(&worker->phase, memory_order_relaxed) == RX_RUN) {
			work = rx_receive(worker, extra);
			if (ring_due(ring))
				rx_publish(worker, flush, accounted);
			work += rx_reclaim(worker, accounted, extra);
			idle = work ? 0 : idle + 1;
			if (idle) {
				counter_add(&worker->idle, 1);
				if (unlikely(ring->head - ring->tail > worker->config.starved_from))
					rx_starve(worker, idle);
				if (!accounted)
					ring_wake_look(&ring->wake, ring->burst);
				if (unlikely(worker->sleep.naps.most_us))
					rx_sleep(worker, idle);
				else
					thread_idle(idle);
			}
		}
	} while (rx_pause(worker));
	pending_deliver(worker);
	rx_end(worker, flush, accounted);
	for (idle = 0; rx_drains(worker);) {
		idle = rx_reclaim_paused(worker) ? 0 : idle + 1;
		if (idle)
			rx_drain_idle(worker, idle);
	}
}

RX_LOOPS(rx_loop)

void rx_worker_run(void *arg)
{
	struct rx_worker *worker = arg;
	const bool extra = worker->split || worker->ring.tsc || worker->config.cut_from ||
			   worker->config.receive;

	atomic_store_explicit(&worker->began_tsc, rte_rdtsc(), memory_order_relaxed);
	rx_loops[extra][worker->config.accounted][worker->config.flush != NULL](worker);
}

/* Each round receives, gives back, or is idle. Acquire: who sees a round's end is behind its accesses (counter_add()). */
static uint64_t rx_rounds(const void *arg)
{
	const struct rx_worker *worker = arg;

	return atomic_load_explicit(&worker->frames, memory_order_acquire) +
	       atomic_load_explicit(&worker->back, memory_order_acquire) +
	       atomic_load_explicit(&worker->idle, memory_order_acquire);
}

int rx_worker_create(struct rx_worker *worker, const struct rx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error)
{
	int ret;

	memset(worker, 0, sizeof(*worker));
	worker->config = *config;
	worker->sleep = config->sleep;
	worker->thread.rounds = rx_rounds;
	wake_init(&worker->wake);
	port_sleep_wake(&worker->sleep, &worker->wake, config->wire);
	worker->thread.wake = &worker->wake;
	worker->base = config->region->base;
	worker->slot_shift = config->region->slot_shift;
	worker->split = config->heads != NULL;
	if (worker->split) {
		worker->head_base = config->heads->base;
		worker->head_shift = config->heads->slot_shift;
	}
	ret = ring_create(&worker->ring, ring, error);
	if (ret == 0 && (worker->sleep.sender_wakes || config->receive))
		worker->ring.giver = &worker->wake;
	return ret;
}

void rx_worker_destroy(struct rx_worker *worker)
{
	ring_destroy(&worker->ring);
	wake_close(&worker->wake);
}
