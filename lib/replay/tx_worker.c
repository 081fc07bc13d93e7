/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending thread of a queue: slots, requests to the writer, pacing, hand-over to the port. */
#include "replay/tx_worker.h"

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/prefetch.h"
#include "capture/mbuf_desc.h"
#include "memory/region.h"
#include "replay/tx_worker_gpu.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Bursts requested ahead: they hide the round trip to the writer (2.9 us to an H200). */
#define TX_AHEAD 64u
/* Paced: requested this long before they are due at most, so that a header's send time is about right
 * and a stop is prompt; one burst has frames that are due within this time. */
#define TX_HORIZON_US 20000u
#define TX_SPAN_US 200u
/* Frames whose mbufs are asked for ahead: as many lines as a core fetches at once. */
#define TX_PREFETCH 16u

uint64_t tx_wall_ns(const struct tx_worker *worker, uint64_t tsc)
{
	const uint64_t ticks = tsc > worker->clock_tsc ? tsc - worker->clock_tsc : 0;

	/* Two steps, so that the product stays within 64 bits. */
	return worker->clock_ns + ticks / worker->tsc_hz * 1000000000u +
	       ticks % worker->tsc_hz * 1000000000u / worker->tsc_hz;
}

/* ---- requests ---- */

/* What is to be requested next. */
struct tx_next {
	uint32_t at;	/* first descriptor */
	uint32_t count; /* frames at most */
	uint32_t index; /* of the first in the file's frames[] */
};

ALWAYS_INLINE uint64_t tx_file_ns(const struct tx_worker *worker, uint32_t index)
{
	return worker->file_ns + worker->config.file->time_ns[index];
}

/* True when the first of them is due within the horizon. */
ALWAYS_INLINE bool tx_is_near(struct tx_worker *worker, const struct tx_next *next, const bool file)
{
	struct pacing *pacing = &worker->pacing;
	const uint64_t due = pacing_due(pacing, file ? tx_file_ns(worker, next->index) : 0);
	const uint64_t since = pacing->started ? rte_rdtsc() - pacing->base_tsc : 0;
	uint32_t ahead_us = TX_HORIZON_US;

	/* Many at once: a writer that sleeps is woken up for each time that there are some. */
	if (worker->rest.wake && !worker->filling)
		ahead_us /= 2;
	worker->filling = due <= since + tx_ticks(worker, ahead_us);
	atomic_store_explicit(&worker->next_tsc,
			      worker->filling || !pacing->started ? 0 : pacing->base_tsc + due,
			      memory_order_relaxed);
	return worker->filling;
}

/* The length in memory of the file's frame; the file then stands at the next one. */
ALWAYS_INLINE uint16_t tx_file_length(struct tx_worker *worker, uint32_t index)
{
	const struct file_frames *file = worker->config.file;

	if (unlikely(++worker->file_at == file->count)) {
		worker->file_at = 0;
		worker->file_ns += file->span_ns;
	}
	return (uint16_t)file->view.frames[index].len;
}

/*
 * An mbuf of the pool has one segment and one reference. What else its last user may have left is in
 * its first cache line; rte_pktmbuf_alloc_bulk() would write the second one too. Over a software
 * wire each line comes from the receiver's core.
 */
ALWAYS_INLINE void tx_mbuf_reset(struct rte_mbuf *m, uint16_t length)
{
	m->ol_flags &= RTE_MBUF_F_EXTERNAL;
	rte_pktmbuf_reset_headroom(m);
	m->data_len = length;
	m->pkt_len = length;
}

/*
 * Fills mbufs, descriptors and times of up to next->count frames; returns of how many, which is
 * less where the others are due much later. *payload: bytes that they will carry.
 */
ALWAYS_INLINE uint32_t tx_describe(struct tx_worker *worker, const struct tx_next *next,
				   uint64_t *payload, const bool paced, const bool file,
				   const bool own)
{
	const struct tx_config *config = &worker->config;
	const uint8_t *base = config->region->base;
	const uint32_t shift = config->region->slot_shift, count = next->count;
	const uint32_t size_count = config->length_count;
	const uint64_t span = paced ? tx_ticks(worker, TX_SPAN_US) : 0;
	const struct tx_size *sizes = worker->sizes;
	struct rte_mbuf **mbuf = &worker->ring.mbuf[next->at];
	struct frame_desc *desc = &worker->ring.desc[next->at];
	uint64_t *tsc = paced ? &worker->ring.tsc[next->at] : NULL, sum = 0;
	uint32_t i, size_at = worker->size_at;

	for (i = 0; i < count; i++) {
		const uint64_t file_ns = paced && file ? tx_file_ns(worker, next->index + i) : 0;
		uint16_t length;

		if (paced && i && pacing_due(&worker->pacing, file_ns) - tsc[0] > span)
			break;
		if (file) {
			length = tx_file_length(worker, next->index + i);
		} else {
			length = sizes[size_at].length;
			sum += sizes[size_at].payload;
			size_at = size_at + 1 == size_count ? 0 : size_at + 1;
		}
		if (paced)
			tsc[i] = pacing_next(&worker->pacing, length, file_ns);
		if (own) {
			desc[i] = tx_own_desc(config->own, length);
			continue;
		}
		if (i + TX_PREFETCH < count)
			prefetch_for_write(mbuf[i + TX_PREFETCH]);
		tx_mbuf_reset(mbuf[i], length);
		desc[i] = mbuf_desc(mbuf[i], base, shift);
	}
	worker->size_at = size_at;
	*payload = sum;
	return i;
}

/* When the burst's first frame will be sent, for the headers. */
ALWAYS_INLINE uint64_t tx_time_ns(const struct tx_worker *worker, uint32_t at, const bool paced)
{
	const struct pacing *pacing = &worker->pacing;
	/* What is written ahead of a start that was asked for is not sent before it. */
	const uint64_t now = RTE_MAX(rte_rdtsc(), worker->start_tsc);

	if (!paced)
		return tx_wall_ns(worker, now);
	return tx_wall_ns(worker,
			  (pacing->started ? pacing->base_tsc : now) + worker->ring.tsc[at]);
}

/* Frames of the file from where the worker is; 0: not read yet, or it broke off. */
ALWAYS_INLINE uint32_t tx_file_ready(struct tx_worker *worker, uint32_t *index)
{
	struct file_frames *file = worker->config.file;
	const uint32_t ready = file_frames_ready(file, worker->requested, index);

	if (likely(ready))
		return ready;
	counter_add(&worker->starved, 1);
	/* After the last look at what is filled: the reader fills before it fails. */
	if (atomic_load_explicit(&file->failed, memory_order_acquire) &&
	    file_frames_ready(file, worker->requested, index) == 0)
		worker->limit = worker->requested;
	return 0;
}

/* Slots for up to *count frames. False: there is none. */
ALWAYS_INLINE bool tx_slots_get(struct tx_worker *worker, uint32_t at, uint32_t *count,
				const bool own)
{
	struct ring_producer *ring = &worker->ring;
	const uint32_t room = own ? tx_own_room(worker->config.own) : *count;

	*count = RTE_MIN(*count, room);
	if (unlikely(own ? room == 0
			 : rte_mempool_get_bulk(worker->config.pool, (void **)&ring->mbuf[at],
						*count) < 0)) {
		counter_add(&worker->stalled, 1);
		return false;
	}
	for (uint32_t i = 0; !own && i < RTE_MIN(TX_PREFETCH, *count); i++)
		prefetch_for_write(ring->mbuf[at + i]);
	return true;
}

/* Requests one burst. Returns the frames requested; 0: nothing to request, or no slot free. */
ALWAYS_INLINE unsigned int tx_request_burst(struct tx_worker *worker, const bool paced,
					    const bool file, const bool own)
{
	const struct tx_config *config = &worker->config;
	struct ring_producer *ring = &worker->ring;
	struct tx_stream *stream = &worker->streams[worker->stream_at];
	const uint64_t left = worker->limit - worker->requested;
	const uint32_t room = ring_room(ring);
	struct tx_next next = { .at = ring->head & ring->desc_mask };
	struct tx_request *request = &ring->request[(uint32_t)ring->burst & ring->burst_mask];
	uint64_t payload;
	uint32_t n, ready;

	next.count = left < room ? (uint32_t)left : room;
	if (next.count == 0 || ring->burst - worker->sending >= TX_AHEAD) {
		worker->filling = false;
		return 0;
	}
	if (file) {
		ready = tx_file_ready(worker, &next.index);
		next.count = ready < next.count ? ready : next.count;
		if (next.count == 0)
			return 0;
	}
	if (paced && !tx_is_near(worker, &next, file))
		return 0;
	if (!tx_slots_get(worker, next.at, &next.count, own))
		return 0;
	n = tx_describe(worker, &next, &payload, paced, file, own);
	if (!own && paced && n < next.count)
		/* As they came: one segment, one reference. */
		rte_mempool_put_bulk(config->pool, (void *const *)&ring->mbuf[next.at + n],
				     next.count - n);
	*request = (struct tx_request){
		.sequence = stream->sequence,
		.position = file ? next.index : stream->position,
		.time_ns = tx_time_ns(worker, next.at, paced),
		.stream = config->stream_first + worker->stream_at * config->stream_step,
	};
	stream->position += payload;
	stream->sequence += n;
	worker->requested += n;
	if (++worker->stream_at == config->stream_count)
		worker->stream_at = 0;
	ring->head += n;
	ring_publish(ring);
	return n;
}

/* ---- sending ---- */

/* Writes send times into frames for a port that keeps to them itself. */
static void tx_mark(struct tx_worker *worker, uint32_t at, uint32_t count, uint64_t now)
{
	const struct tx_clock *clock = worker->config.clock;
	const struct ring_producer *ring = &worker->ring;

	tx_clock_renew(clock, &worker->clock_map, now);
	for (uint32_t i = 0; i < count; i++)
		tx_clock_mark(clock, ring->mbuf[at + i], &ring->mbuf[at + i]->ol_flags,
			      tx_clock_at(&worker->clock_map,
					  worker->pacing.base_tsc + ring->tsc[at + i]));
}

/* Of the oldest burst's `left` frames, those that may be handed over now. */
ALWAYS_INLINE uint32_t tx_due(struct tx_worker *worker, uint32_t at, uint32_t left, uint64_t now)
{
	struct pacing *pacing = &worker->pacing;
	const bool clock = worker->config.clock != NULL;
	uint32_t due;

	if (unlikely(!pacing->started))
		pacing_start(pacing, now);
	due = pacing_ready(pacing, &worker->ring.tsc[at], left, now,
			   clock ? tx_ticks(worker, TX_CLOCK_AHEAD_US) : 0);
	if (clock)
		tx_mark(worker, at, due, now);
	return due;
}

/* The port took `taken` frames at tick `now`. */
ALWAYS_INLINE void tx_count(struct tx_worker *worker, uint32_t slot, uint32_t at, uint32_t taken,
			    uint64_t now, const bool paced)
{
	const struct tx_config *config = &worker->config;
	struct ring_producer *ring = &worker->ring;
	const uint32_t stream =
		(ring->request[slot].stream - config->stream_first) / config->stream_step;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < taken; i++)
		bytes += ring->desc[at + i].len;
	if (unlikely(atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0))
		atomic_store_explicit(&worker->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_frames, taken, memory_order_relaxed);
	atomic_store_explicit(&worker->last_bytes, bytes, memory_order_relaxed);
	counter_add(&worker->streams[stream].sent, taken);
	counter_add(&worker->bytes, bytes);
	counter_add(&worker->sent, taken);
	if (paced)
		atomic_store_explicit(&worker->last_due, ring->tsc[at + taken - 1],
				      memory_order_relaxed);
	if (paced && config->clock)
		pacing_handed(&worker->pacing, &ring->tsc[at], taken, now);
	else if (paced)
		pacing_sent(&worker->pacing, &ring->tsc[at], taken, now);
}

/* Hands over what is written, and due, of the oldest burst. Returns the frames that the port took.
 */
ALWAYS_INLINE unsigned int tx_send(struct tx_worker *worker, const bool paced, const bool file,
				   const bool own)
{
	const struct tx_config *config = &worker->config;
	struct ring_producer *ring = &worker->ring;
	const uint32_t slot = (uint32_t)worker->sending & ring->burst_mask;
	const uint32_t at = ring->tail & ring->desc_mask;
	uint32_t left, due, taken;
	uint64_t now;

	if (own)
		tx_own_poll(config->own);
	if (worker->sending == ring->burst)
		return 0;
	now = rte_rdtsc();
	if (!ring_is_done(ring, worker->sending)) {
		if (!paced || (worker->pacing.started && tx_until_due(worker, now) <= 0))
			counter_add(&worker->starved, 1);
		return 0;
	}
	if (unlikely(atomic_load_explicit(&worker->hold, memory_order_relaxed))) {
		if (paced && !worker->held_tsc)
			worker->held_tsc = now;
		counter_add(&worker->stalled, 1);
		return 0;
	}
	if (paced && unlikely(worker->held_tsc)) {
		/* What was due while the link was down is not to come as a burst. */
		worker->pacing.base_tsc += now - worker->held_tsc;
		worker->held_tsc = 0;
	}
	left = ring->end[slot] - ring->tail;
	due = paced ? tx_due(worker, at, left, now) : left;
	if (paced && due == 0)
		return 0;
	taken = own ? tx_own_send(config->own, &ring->desc[at], due)
		    : rte_eth_tx_burst(config->port, config->queue, &ring->mbuf[at], (uint16_t)due);
	if (taken == 0) {
		/* The timeline begins when the other end is there. */
		if (paced && atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0)
			worker->pacing.started = false;
		counter_add(&worker->stalled, 1);
		return 0;
	}
	wake_look(worker->receiver);
	tx_count(worker, slot, at, taken, now, paced);
	ring->tail += taken;
	if (taken == left) {
		worker->sending++;
		ring->reclaimed = worker->sending;
		if (file)
			/* USED: the device's reads of the frames (COLLECT) before they are written
			 * over. Partner: the reader thread. Bursts are sent in order, so all that
			 * was sent is no longer needed. */
			atomic_store_explicit(
				&config->file->used,
				atomic_load_explicit(&worker->sent, memory_order_relaxed),
				memory_order_release);
	}
	return taken;
}

/* ---- the thread ---- */

/* Frames are written ahead, so that the first are there when their time comes. */
ALWAYS_INLINE void tx_wait_start(struct tx_worker *worker, const bool paced, const bool file,
				 const bool own)
{
	enum tx_start start = TX_START_FAR;

	while (!atomic_load_explicit(&worker->stop, memory_order_relaxed) &&
	       start != TX_START_NOW) {
		start = tx_start_step(worker);
		if (start == TX_START_NEAR)
			tx_request_burst(worker, paced, file, own);
	}
}

ALWAYS_INLINE void tx_loop(struct tx_worker *worker, const bool paced, const bool file,
			   const bool own)
{
	unsigned int idle = 0, work;

	if (worker->config.start_ns)
		tx_wait_start(worker, paced, file, own);
	while (!atomic_load_explicit(&worker->stop, memory_order_relaxed)) {
		work = tx_request_burst(worker, paced, file, own);
		work += tx_send(worker, paced, file, own);
		if (worker->requested == worker->limit && worker->sending == worker->ring.burst)
			break;
		idle = work ? 0 : idle + 1;
		if (idle) {
			counter_add(&worker->idle, 1);
			tx_wait(worker, idle, paced);
		}
	}
}

static void tx_wait_turn(struct tx_worker *worker)
{
	const struct tx_worker *after = worker->config.after;
	unsigned int idle = 0;

	while (after && !atomic_load_explicit(&worker->stop, memory_order_relaxed) &&
	       !atomic_load_explicit(&after->sent, memory_order_relaxed) &&
	       !atomic_load_explicit(&after->finished, memory_order_acquire)) {
		counter_add(&worker->idle, 1);
		tx_wait(worker, idle++, false);
	}
}

ALWAYS_INLINE void tx_loops(struct tx_worker *worker, const bool own)
{
	const bool paced = worker->config.pacing.kind != PACING_NONE;

	if (paced && worker->config.file)
		tx_loop(worker, true, true, own);
	else if (paced)
		tx_loop(worker, true, false, own);
	else if (worker->config.file)
		tx_loop(worker, false, true, own);
	else
		tx_loop(worker, false, false, own);
}

void tx_worker_run(void *arg)
{
	struct tx_worker *worker = arg;
	bool ours = true; /* the queue */

	tx_wait_turn(worker);
	if (worker->config.gpu)
		ours = tx_gpu_run(worker->config.gpu, worker);
	else if (worker->config.own)
		tx_loops(worker, true);
	else
		tx_loops(worker, false);
	if (ours && worker->config.end_streams)
		tx_end_streams(worker);
	if (ours && worker->config.own)
		tx_end_own(worker);
	atomic_store_explicit(&worker->finished, 1, memory_order_release);
}

void tx_worker_reclaim(struct tx_worker *worker)
{
	struct ring_producer *ring = &worker->ring;

	if (worker->config.own)
		tx_own_drop(worker->config.own, ring->head - ring->tail);
	else
		for (uint32_t at = ring->tail; at != ring->head; at++)
			rte_pktmbuf_free(ring->mbuf[at & ring->desc_mask]);
	ring->tail = ring->head;
	worker->sending = ring->burst;
	ring->reclaimed = ring->burst;
}
