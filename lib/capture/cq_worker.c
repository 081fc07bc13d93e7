/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving thread of a queue of our own: completions, descriptors, bursts, doorbell record. */
#include "capture/cq_worker.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/log.h"
#include "capture/rx_worker_steps.h"
#include "memory/region.h"

/* Completions that a stopped front looks at in one round. */
#define CQ_DISCARD 256u
/* Looks in a row that find the next completion passed over: should a bus reorder two, not so many. */
#define CQ_PASSED 100u

/* ---- slots ---- */

/* Places of work entries (cq_front.h) that completed since the last reset. */
ALWAYS_INLINE uint32_t cq_next(const struct cq_worker *cq, const struct ring_producer *ring)
{
	return ring->head - cq->base;
}

/* ... and those of which the slots are back, and all others of their work entry. */
ALWAYS_INLINE uint32_t cq_back(const struct cq_worker *cq, const struct ring_producer *ring)
{
	return cq_whole(ring->tail - cq->base, cq->queue.stride_shift);
}

/* REPOST, of every slot that is free. */
ALWAYS_INLINE void cq_post(struct cq_worker *cq, const struct ring_producer *ring)
{
	cq->posted = cq->queue.slots + cq_back(cq, ring);
	cq_record_store(cq->queue.record, cq->posted >> cq->queue.stride_shift);
	counter_add(&cq->reposts, 1);
}

ALWAYS_INLINE void cq_repost(struct cq_worker *cq, const struct ring_producer *ring)
{
	const uint32_t slots = cq->queue.slots;

	if (cq_repost_due(slots + cq_back(cq, ring) - cq->posted, cq->posted - cq_next(cq, ring),
			  slots) &&
	    !cq->stopped)
		cq_post(cq, ring);
}

/* Slots of bursts that are through are free. Returns of how many frames. */
ALWAYS_INLINE unsigned int cq_reclaim(struct rx_worker *worker, const bool accounted)
{
	struct ring_producer *ring = &worker->ring;
	uint64_t through = ring->reclaimed;
	uint32_t end, n;

	if (accounted) {
		/* LEASE, and by way of the accountant FREE. Partner: the release store in
		 * accountant_collect(). */
		through = atomic_load_explicit(&ring->collected, memory_order_acquire);
	} else {
		/* FREE */
		while (through != ring->burst && ring_is_done(ring, through))
			through++;
	}
	if (through == ring->reclaimed)
		return 0;
	end = ring->end[(uint32_t)(through - 1) & ring->burst_mask];
	n = end - ring->tail;
	ring->tail = end;
	ring->reclaimed = through;
	/* After the slots are back; pairs with the acquire load in gdrcap_get_summary(). */
	counter_add(&worker->back, n);
	return n;
}

/* ---- what stops it ---- */

ALWAYS_INLINE const uint8_t *cq_entry(const struct cq_worker *cq, uint64_t index)
{
	return cq->queue.cq + cq_at(index, cq->queue.cq_entries);
}

/* The next completion is there, and is no frame that may be believed. */
static __attribute__((noinline, cold)) void cq_stop(struct rx_worker *worker, enum cq_kind kind)
{
	struct cq_worker *cq = worker->cq;
	struct cq_fault *fault = &cq->fault;
	const uint8_t *cqe = cq_entry(cq, cq->index);

	for (uint32_t i = 0; i < CQ_BYTES; i++)
		fault->cqe[i] = __atomic_load_n(&cqe[i], __ATOMIC_RELAXED);
	fault->index = cq->index;
	fault->next = cq_next(cq, &worker->ring);
	fault->kind = kind;
	cq->passed = 0;
	cq->stopped = true;
	counter_add(&cq->stops[kind], 1);
	/* After what it says. Partner: the acquire load of control. */
	atomic_store_explicit(&cq->state, CQ_STOPPED, memory_order_release);
}

/* Nothing is in the ring, so every slot is free: all are posted, from work entry 0 on. */
static void cq_start_again(struct rx_worker *worker)
{
	struct cq_worker *cq = worker->cq;

	cq->base = worker->ring.head;
	cq->posts_anew = cq->stopped = false;
	atomic_store_explicit(&worker->ring.wants_all, 0, memory_order_relaxed);
	cq_post(cq, &worker->ring);
}

/* A later completion is there, and the next one is not, though a card writes them in their order. */
static bool cq_is_passed(const struct cq_worker *cq, const struct ring_producer *ring)
{
	const uint32_t next = cq_next(cq, ring);

	/* In this order: what comes between the two looks makes no gap. */
	return cq_kind_at(&cq->queue, cq->index + 1, next + 1) != CQ_NONE &&
	       cq_kind_at(&cq->queue, cq->index, next) == CQ_NONE;
}

/* What was passed over is of an older lap, or says so: two laps on it would be taken for new. The card has
 * gone on, and writes there no more in this one. */
static void cq_void(const struct cq_worker *cq)
{
	uint8_t *owner = (uint8_t *)(uintptr_t)(cq_entry(cq, cq->index) + CQ_BYTES - 1);

	__atomic_store_n(owner, CQ_OP_INVALID << 4, __ATOMIC_RELAXED);
}

/* A stopped one counts completions. Returns how many. */
static __attribute__((noinline, cold)) unsigned int cq_discard(struct rx_worker *worker)
{
	struct cq_worker *cq = worker->cq;
	const struct ring_producer *ring = &worker->ring;
	uint64_t frames = 0, flushed = 0;
	unsigned int n = 0;

	for (; n < CQ_DISCARD; n++, cq->index++) {
		const enum cq_kind kind = cq_kind_at(&cq->queue, cq->index, cq_next(cq, ring));

		if (kind == CQ_NONE && !cq_is_passed(cq, ring))
			break;
		if (kind == CQ_NONE)
			cq_void(cq);
		flushed += kind == CQ_FLUSHED;
		frames += cq_had_frame(kind);
	}
	counter_add(&cq->discarded, frames);
	counter_add(&cq->flushed, flushed);
	if (n)
		return n;
	/* The queue was empty: the end of a run waits for that. */
	counter_add(&worker->empty, 1);
	if (cq->posts_anew && ring->tail == ring->head)
		cq_start_again(worker);
	return 0;
}

/* ---- completions ---- */

/* Of the frames from descriptor `at` on, whose completions begin at `cqe`: the poll's, or the card's. */
static void cq_keep_times(struct rx_worker *worker, const uint8_t *cqe, uint32_t at, unsigned int n,
			  uint64_t now)
{
	uint64_t *tsc = worker->ring.tsc;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t time = now;

		if (worker->config.times == RX_TIMES_CARD) {
			memcpy(&time, cqe + i * CQ_BYTES + CQ_TIME_AT, sizeof(time));
			time = cq_swap64(time);
		}
		tsc[at + i] = time;
	}
}

/* At most as many as fit into the burst, the queue may have completed, and stand before its end. */
ALWAYS_INLINE uint32_t cq_most(const struct cq_worker *cq, const struct ring_producer *ring)
{
	const uint32_t entries = cq->queue.cq_entries;
	const uint32_t left = cq->posted - cq_next(cq, ring);
	const uint32_t to_end = entries - (uint32_t)(cq->index & (entries - 1));

	/* A burst that waits for ROOM and ends with the descriptors: it may not go on at their beginning. */
	if (unlikely((ring->head & ring->desc_mask) == 0 && ring_pending(ring)))
		return 0;
	return RTE_MIN(RTE_MIN(ring_room(ring), left), to_end);
}

/* None was a frame: nothing is there, or something else. */
static __attribute__((noinline)) void cq_look(struct rx_worker *worker)
{
	struct cq_worker *cq = worker->cq;
	const struct ring_producer *ring = &worker->ring;
	const bool posted = cq->posted != cq_next(cq, ring);
	enum cq_kind kind = cq_kind_at(&cq->queue, cq->index, cq_next(cq, ring));

	/* There is no work entry that it could be of. */
	if (kind == CQ_FRAME && !posted)
		kind = CQ_ORDER;
	if (kind == CQ_NONE) {
		cq->passed = cq_is_passed(cq, ring) ? cq->passed + 1 : 0;
		if (unlikely(cq->passed == CQ_PASSED))
			cq_stop(worker, CQ_ORDER);
		else if (posted)
			counter_add(&worker->empty, 1);
	} else if (kind != CQ_FRAME) { /* a frame came just now: with the next round */
		cq_stop(worker, kind);
	}
}

/* `extra`: times are kept. `strides`: it is a striding queue. */
ALWAYS_INLINE unsigned int cq_receive(struct rx_worker *worker, const bool extra,
				      const bool strides)
{
	struct ring_producer *ring = &worker->ring;
	struct cq_worker *cq = worker->cq;
	const uint32_t most = cq_most(cq, ring);
	uint64_t bytes, now;
	unsigned int n;

	if (unlikely(cq->stopped))
		return cq_discard(worker);
	n = cq_take(&cq->queue, cq->index, cq_next(cq, ring), most,
		    &ring->desc[ring->head & ring->desc_mask], &bytes, strides);
	if (n == 0) {
		if (ring_room(ring))
			cq_look(worker);
		return 0;
	}
	now = rte_rdtsc();
	if (extra)
		cq_keep_times(worker, cq_entry(cq, cq->index), ring->head & ring->desc_mask, n,
			      now);
	ring->head += n;
	cq->index += n;
	if (unlikely(atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0))
		atomic_store_explicit(&worker->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_tsc, now, memory_order_relaxed);
	counter_add(&worker->frames, n);
	counter_add(&worker->bytes, bytes);
	return n;
}

/*
 * True when the descriptors filled so far are to be published now: a full burst; or at once when the
 * consumer has nothing; or when no more came, so that bursts grow with the rate. Later bursts wait while the
 * ring has words for full ones only (ring_producer.h). ROOM: never more than the ring has words for.
 */
ALWAYS_INLINE bool cq_due(const struct ring_producer *ring, unsigned int came)
{
	if (ring_pending(ring) == 0 || !cq_room(ring->burst, ring->reclaimed, ring->burst_mask + 1))
		return false;
	if (ring_room(ring) == 0 || (ring->head & ring->desc_mask) == 0)
		return true;
	return ring->burst == ring->reclaimed ||
	       (came == 0 && ring->burst - ring->reclaimed < RING_SMALL_BURSTS);
}

/* ---- the thread ---- */

/* A round that found nothing. */
ALWAYS_INLINE void cq_idle(struct rx_worker *worker, unsigned int idle, const bool accounted)
{
	struct ring_producer *ring = &worker->ring;
	const struct cq_worker *cq = worker->cq;

	counter_add(&worker->idle, 1);
	if (unlikely(cq->posted == cq_next(cq, ring) && !cq->stopped))
		rx_starved(worker, idle);
	if (!accounted)
		ring_wake_look(&ring->wake, ring->burst);
	if (unlikely(worker->sleep.naps.most_us))
		rx_sleep(worker, idle);
	else
		thread_idle(idle);
}

ALWAYS_INLINE unsigned int cq_reclaim_paused(struct rx_worker *worker)
{
	return cq_reclaim(worker, worker->config.accounted);
}

ALWAYS_INLINE bool cq_due_paused(const struct ring_producer *ring)
{
	return cq_due(ring, 0);
}

/* While the phase is RX_PAUSE. False when it is a later one than that. */
static __attribute__((noinline, cold)) bool cq_pause(struct rx_worker *worker)
{
	struct cq_worker *cq = worker->cq;
	int phase = atomic_load_explicit(&worker->phase, memory_order_relaxed);

	if (phase != RX_PAUSE)
		return phase == RX_RUN;
	phase = rx_hold(worker, cq_due_paused, cq_reclaim_paused);
	if (atomic_load_explicit(&cq->reset, memory_order_relaxed)) {
		atomic_store_explicit(&cq->reset, 0, memory_order_relaxed);
		cq->stopped = cq->posts_anew = true;
		atomic_store_explicit(&worker->ring.wants_all, 1, memory_order_relaxed);
	}
	atomic_store_explicit(&worker->paused, 0, memory_order_release);
	return phase == RX_RUN;
}

ALWAYS_INLINE void cq_loop(struct rx_worker *worker, const bool flush, const bool accounted,
			   const bool extra, const bool strides)
{
	struct ring_producer *ring = &worker->ring;
	unsigned int idle = 0, came, back;

	do {
		while (atomic_load_explicit(&worker->phase, memory_order_relaxed) == RX_RUN) {
			came = cq_receive(worker, extra, strides);
			if (cq_due(ring, came))
				rx_publish(worker, flush, accounted);
			back = cq_reclaim(worker, accounted);
			cq_repost(worker->cq, ring);
			idle = came | back ? 0 : idle + 1;
			if (idle)
				cq_idle(worker, idle, accounted);
		}
	} while (cq_pause(worker));
	rx_end(worker, flush, accounted);
	for (idle = 0; rx_drains(worker);) {
		idle = cq_reclaim(worker, accounted) ? 0 : idle + 1;
		if (idle)
			rx_drain_idle(worker, idle);
	}
}

/* Of cyclic queues, and of striding ones. */
ALWAYS_INLINE void cq_cyclic_loop(struct rx_worker *worker, const bool flush, const bool accounted,
				  const bool extra)
{
	cq_loop(worker, flush, accounted, extra, false);
}

ALWAYS_INLINE void cq_striding_loop(struct rx_worker *worker, const bool flush,
				    const bool accounted, const bool extra)
{
	cq_loop(worker, flush, accounted, extra, true);
}

RX_LOOPS(cq_cyclic_loop)
RX_LOOPS(cq_striding_loop)

void cq_worker_run(void *arg)
{
	struct rx_worker *worker = arg;
	const bool extra = worker->ring.tsc != NULL, accounted = worker->config.accounted,
		   flush = worker->config.flush != NULL;

	atomic_store_explicit(&worker->began_tsc, rte_rdtsc(), memory_order_relaxed);
	if (worker->cq->queue.stride_shift)
		cq_striding_loops[extra][accounted][flush](worker);
	else
		cq_cyclic_loops[extra][accounted][flush](worker);
}

/* ---- control ---- */

void cq_worker_was_reset(struct cq_worker *cq)
{
	/* From now on: the thread may take long to have every slot, and is not to be reset again for that. */
	atomic_store_explicit(&cq->state, CQ_RUNS, memory_order_relaxed);
	atomic_store_explicit(&cq->reset, 1, memory_order_relaxed);
}

bool cq_worker_take(struct cq_worker *cq, const struct rx_worker *worker, struct frame_desc *desc)
{
	const struct ring_producer *ring = &worker->ring;
	const uint32_t next = cq_next(cq, ring);
	uint64_t bytes;

	if (cq->stopped || cq->posted == next ||
	    cq_take(&cq->queue, cq->index, next, 1, desc, &bytes, cq->queue.stride_shift != 0) == 0)
		return false;
	cq->index++;
	/* No descriptor goes with the work entry. */
	cq->base--;
	return true;
}

enum cq_kind cq_worker_look(const struct cq_worker *cq, const struct rx_worker *worker)
{
	const struct ring_producer *ring = &worker->ring;

	if (cq_is_passed(cq, ring))
		return CQ_ORDER;
	return cq_kind_at(&cq->queue, cq->index, cq_next(cq, ring));
}

const char *cq_worker_words(enum cq_kind kind)
{
	static const char *const words[CQ_KINDS] = {
		[CQ_NONE] = "there is no completion",
		[CQ_FRAME] = "it runs",
		[CQ_ERROR] = "the card reports an error",
		[CQ_FLUSHED] = "the card gave its slots back unused",
		[CQ_ORDER] = "its completions came out of order",
		[CQ_LENGTH] = "a frame was longer than its slot, or of no bytes",
		[CQ_ODD] = "a completion was of a kind that was not asked for",
		[CQ_FILLER] = "the card passed over a work entry's slots",
	};

	return words[kind];
}

const char *cq_worker_fault_words(const struct cq_fault *fault)
{
	uint32_t length;

	memcpy(&length, fault->cqe + CQ_LENGTH_AT, sizeof(length));
	if (fault->kind == CQ_LENGTH && length == CQ_LENGTH_PRESET)
		return "a completion's last bytes were there before its length, which no card should do";
	return cq_worker_words(fault->kind);
}

int cq_worker_create(struct cq_worker *cq, struct rx_worker *worker,
		     const struct cq_front_queue *queue, struct gdrcap_error *error)
{
	const struct region *region = worker->config.region;

	if (!cq_front_queue_fits(queue))
		return error_set(
			error, -EINVAL,
			"a receive queue of %u slots, 2^%u a work entry, and %u completions: "
			"powers of two, %u slots at most, %u work entries of several slots at "
			"least, twice as many completions as slots at least",
			queue->slots, queue->stride_shift, queue->cq_entries, CQ_FRONT_SLOTS_MAX,
			CQ_FRONT_ENTRIES_MIN);
	if (queue->slot_bytes > UINT16_MAX || queue->slot_bytes > 1u << region->slot_shift ||
	    (uint64_t)queue->first_slot + queue->slots > region->slots ||
	    queue->slots > worker->ring.desc_mask + 1 || worker->split)
		return error_set(error, -EINVAL,
				 "a receive queue of %u slots of %u bytes from slot %u on does not "
				 "fit a region of %u slots of %u, or frames are to be split",
				 queue->slots, queue->slot_bytes, queue->first_slot, region->slots,
				 1u << region->slot_shift);
	memset(cq, 0, sizeof(*cq));
	cq->queue = *queue;
	cq->base = worker->ring.head;
	worker->cq = cq;
	cq_post(cq, &worker->ring);
	return 0;
}
