/* SPDX-License-Identifier: BSD-3-Clause */
/* After a sender's last frame: frames that say how many there were. */
#include "replay/tx_worker.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "capture/mbuf_desc.h"
#include "memory/region.h"

/* They are given up when nothing of them moved for this long: the receiver, and the writer, may
 * be waiting for a core. Without a link nobody does. */
#define TX_END_WAIT_MS 10000u
#define TX_END_HOLD_MS 1000u
#define TX_END_AHEAD 64u /* of them requested before they are sent */
/* A card that says nothing for so long of what it has: without a link, held by pause frames, or a
 * model of one without a core. After a stop nobody waits long. */
#define TX_END_OWN_MS 1000u
#define TX_END_OWN_STOP_MS 40u

static bool tx_end_is_stuck(const struct tx_worker *worker, struct patience *patience)
{
	const bool hold = atomic_load_explicit(&worker->hold, memory_order_relaxed);

	return patience_ends(patience, hold ? TX_END_HOLD_MS : TX_END_WAIT_MS, NULL, NULL);
}

/* Waits until the writer has finished with every burst, and gives back what was not sent. False: it
 * is not, so nothing more can be requested. */
static bool tx_drop(struct tx_worker *worker)
{
	struct ring_producer *ring = &worker->ring;
	struct patience patience;
	unsigned int idle = 0;

	patience_begin(&patience);
	for (; worker->sending != ring->burst; worker->sending++)
		while (!ring_is_done(ring, worker->sending)) {
			if (tx_end_is_stuck(worker, &patience))
				return false;
			counter_add(&worker->idle, 1);
			thread_idle(idle++);
		}
	tx_worker_reclaim(worker);
	return true;
}

/* A slot for one of them. */
static bool tx_end_slot(struct tx_worker *worker, uint32_t at, uint16_t length)
{
	const struct tx_config *config = &worker->config;
	struct ring_producer *ring = &worker->ring;
	struct rte_mbuf *m;

	if (config->own) {
		if (tx_own_room(config->own) == 0)
			return false;
		ring->desc[at] = tx_own_desc(config->own, length);
		return true;
	}
	m = rte_pktmbuf_alloc(config->pool);
	if (!m)
		return false;
	m->data_len = length;
	m->pkt_len = length;
	ring->mbuf[at] = m;
	ring->desc[at] = mbuf_desc(m, config->region->base, config->region->slot_shift);
	return true;
}

static bool tx_request_end(struct tx_worker *worker, uint32_t s)
{
	const struct tx_config *config = &worker->config;
	const uint16_t length = (uint16_t)(frame_min_bytes(config->layout) - FRAME_FCS_BYTES);
	struct ring_producer *ring = &worker->ring;
	const uint32_t at = ring->head & ring->desc_mask;

	if (ring->burst - worker->sending >= TX_END_AHEAD || !tx_end_slot(worker, at, length))
		return false;
	ring->request[(uint32_t)ring->burst & ring->burst_mask] = (struct tx_request){
		.sequence = atomic_load_explicit(&worker->streams[s].sent, memory_order_relaxed),
		.position = config->end_streams,
		.time_ns = tx_wall_ns(worker, rte_rdtsc()),
		.stream = config->stream_first + s * config->stream_step,
		.end = 1,
	};
	ring->head++;
	ring_publish(ring);
	return true;
}

/* These are no data: they count nowhere. */
static bool tx_end_send(struct tx_worker *worker)
{
	const struct tx_config *config = &worker->config;
	struct ring_producer *ring = &worker->ring;
	const uint32_t at = ring->tail & ring->desc_mask;

	if (config->own)
		tx_own_poll(config->own);
	if (worker->sending == ring->burst || !ring_is_done(ring, worker->sending) ||
	    atomic_load_explicit(&worker->hold, memory_order_relaxed))
		return false;
	if (config->own ? tx_own_send(config->own, &ring->desc[at], 1) == 0
			: rte_eth_tx_burst(config->port, config->queue, &ring->mbuf[at], 1) == 0)
		return false;
	wake_look(worker->receiver);
	ring->tail++;
	worker->sending++;
	ring->reclaimed = worker->sending;
	return true;
}

/* One frame for each stream. False: nothing of it moved any more. */
static bool tx_end_round(struct tx_worker *worker)
{
	struct patience patience;
	unsigned int idle = 0;
	uint32_t s = 0;

	patience_begin(&patience);
	while (s < worker->config.stream_count || worker->sending != worker->ring.burst) {
		const bool requested = s < worker->config.stream_count && tx_request_end(worker, s);

		counter_add(&worker->idle, 1);
		s += requested;
		if (tx_end_send(worker) || requested) {
			patience_begin(&patience);
			idle = 0;
		} else if (tx_end_is_stuck(worker, &patience)) {
			return false;
		} else {
			thread_idle(idle++);
		}
	}
	return true;
}

void tx_end_streams(struct tx_worker *worker)
{
	const uint64_t gap = tx_ticks(worker, TX_END_GAP_US);

	atomic_store_explicit(&worker->end_unsaid, 1, memory_order_relaxed);
	if (!tx_drop(worker))
		return;
	for (uint32_t i = 0; i < TX_END_TIMES; i++) {
		const uint64_t since = rte_rdtsc();

		if (!tx_end_round(worker))
			return;
		atomic_store_explicit(&worker->end_unsaid, 0, memory_order_relaxed);
		while (i + 1 < TX_END_TIMES && rte_rdtsc() - since < gap) {
			counter_add(&worker->idle, 1);
			thread_idle(IDLE_YIELDS + 1);
		}
	}
}

/* Until the card has sent what it was given: its memory is about to go. */
void tx_end_own(struct tx_worker *worker)
{
	struct tx_own *own = worker->config.own;
	struct patience patience;
	uint64_t before = own->front.sent;
	unsigned int idle = 0;

	patience_begin(&patience);
	for (;;) {
		const bool flushed = tx_own_flush(own);
		const bool stop = atomic_load_explicit(&worker->stop, memory_order_relaxed);

		tx_own_poll(own);
		if (flushed && tx_own_is_through(own))
			return;
		if (own->front.sent != before)
			patience_begin(&patience);
		else if (patience_ends(&patience, stop ? TX_END_OWN_STOP_MS : TX_END_OWN_MS, NULL,
				       NULL))
			return;
		before = own->front.sent;
		counter_add(&worker->idle, 1);
		thread_idle(idle++);
	}
}
