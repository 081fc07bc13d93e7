/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread of a send queue of the caller's: to the port what may go, back to the caller what came back. */
#include "send/send_queue.h"

#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include "base/patience.h"
#include "base/prefetch.h"
#include "capture/ring_producer.h"
#include "send/send_back.h"

#define SEND_PREFETCH 16u /* mbufs: as many lines as a core has under way at once */
/* A time is near: nobody else gets the core. Earlier it sleeps, and wakes so long before. */
#define SEND_SPIN_US 50u
#define SEND_WAKE_US 200u
#define SEND_SLEEP_MOST_US 2000u
/* A port that takes no frame, of which nobody tells when it does. */
#define SEND_UNTOLD_US 100u
/* What was submitted before a stop is offered to the port for so long. */
#define SEND_STOP_MS 40u

static uint64_t send_ticks(const struct gdrcap_tx *tx, uint32_t us)
{
	return tx->tsc_hz / 1000000u * us;
}

/* ---- back to the caller ---- */

/* BACK: after the last access to the slot, by the port too. Partner: HARVEST in send_harvest(). */
static void send_back(struct gdrcap_tx *tx)
{
	atomic_store_explicit(&tx->returned, tx->at_back, memory_order_release);
	ring_wake_look(&tx->wake, tx->at_back);
}

uint32_t send_collect_segments(struct gdrcap_tx *tx)
{
	struct rte_mbuf *mbufs[SEND_BURST_MOST];
	const uint32_t n =
		send_back_take(tx->config.segments, &tx->segments_at_port, mbufs, SEND_BURST_MOST);

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = *(const uint32_t *)rte_mbuf_to_priv(mbufs[i]);

		if (send_part_back(tx, at))
			tx->back[tx->at_back++ & tx->mask] = at;
	}
	send_back(tx);
	return n;
}

uint32_t send_collect(struct gdrcap_tx *tx)
{
	const struct send_slots slots = send_slots_of(tx);
	const uint32_t segments = send_collect_segments(tx);
	struct rte_mbuf *mbufs[SEND_BURST_MOST];
	const uint32_t n = send_back_take(tx->config.pool, &tx->at_port, mbufs, SEND_BURST_MOST);

	if (n == 0)
		return segments;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = send_slot_of(slots, mbufs[i]);

		if (send_part_back(tx, at))
			tx->back[tx->at_back++ & tx->mask] = at;
	}
	send_back(tx);
	return segments + n;
}

/* ---- to the port ---- */

/* Frames up to this number may go. *due: when the next may, where a time is what it waits for. */
static uint64_t send_limit(struct gdrcap_tx *tx, uint64_t *due)
{
	/* TAKE OVER. Partner: SUBMIT in send_publish(). Gates first: who sees a frame sees its gate. */
	const uint64_t submitted = atomic_load_explicit(&tx->submitted, memory_order_acquire);
	const uint64_t set = atomic_load_explicit(&tx->gates_set, memory_order_relaxed);

	*due = 0;
	while (tx->gates_passed != set) {
		const struct send_gate *gate = &tx->gates[tx->gates_passed & tx->mask];

		if (gate->first >= submitted)
			break;
		/* OPEN. Partner: the release store in send_gate_open(): what the stream's work
		 * wrote. */
		if (!atomic_load_explicit(&gate->open, memory_order_acquire))
			return gate->first;
		if (gate->due > rte_rdtsc()) {
			if (gate->first == tx->taken)
				*due = gate->due;
			return gate->first;
		}
		tx->gates_passed++;
	}
	return submitted;
}

/*
 * An mbuf of the pool has one segment and one reference; what else its last user left is in its first
 * line, which over a software wire comes from the receiver's core.
 */
static void send_mbuf(const struct gdrcap_tx *tx, struct rte_mbuf *m,
		      const struct send_entry *entry)
{
	m->ol_flags &= RTE_MBUF_F_EXTERNAL;
	rte_pktmbuf_reset_headroom(m);
	m->pkt_len = entry->bytes & ~SEND_IN_TWO;
	m->data_len = (uint16_t)m->pkt_len;
	if (unlikely(entry->bytes & SEND_IN_TWO)) {
		m->next = tx->pieces[entry->slot].segment;
		m->data_len -= m->next->data_len;
		m->nb_segs = 2;
	}
}

/* The mbufs of the next `n` frames. With a backlog as long as the queue none is in a cache of this core's. */
static void send_mbufs(const struct gdrcap_tx *tx, struct rte_mbuf **mbufs, uint32_t n)
{
	/* Lines that the caller's core has: all at once, not one after the other. */
	for (uint32_t i = 0; i < n; i += SEND_LINE / sizeof(struct send_entry))
		rte_prefetch0(&tx->entries[(tx->taken + i) & tx->mask]);
	for (uint32_t i = 0; i < n; i++)
		mbufs[i] = tx->mbufs[tx->entries[(tx->taken + i) & tx->mask].slot];
	for (uint32_t i = 0; i < RTE_MIN(n, SEND_PREFETCH); i++)
		prefetch_for_write(mbufs[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (i + SEND_PREFETCH < n)
			prefetch_for_write(mbufs[i + SEND_PREFETCH]);
		send_mbuf(tx, mbufs[i], &tx->entries[(tx->taken + i) & tx->mask]);
	}
}

void send_count(struct gdrcap_tx *tx, uint32_t taken, uint64_t bytes, uint64_t now)
{
	if (unlikely(atomic_load_explicit(&tx->first_tsc, memory_order_relaxed) == 0))
		atomic_store_explicit(&tx->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&tx->last_tsc, now, memory_order_relaxed);
	counter_add(&tx->at_port, taken);
	counter_add(&tx->bytes_sent, bytes);
	counter_add(&tx->sent, taken);
	wake_look(tx->receiver);
}

static uint16_t send_ask_port(struct gdrcap_tx *tx, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t taken = rte_eth_tx_burst(tx->config.port, tx->config.queue, mbufs, n);

	if (unlikely(taken == 0))
		counter_add(&tx->stalled, 1);
	return taken;
}

uint16_t send_burst(struct gdrcap_tx *tx, struct rte_mbuf **mbufs, uint16_t n)
{
	_Atomic int *turn = tx->config.turn;
	uint16_t taken;

	if (likely(!turn || atomic_load_explicit(&tx->first_tsc, memory_order_relaxed)))
		return send_ask_port(tx, mbufs, n);
	/* The first frame; another queue's may be on its way just now. */
	if (atomic_exchange_explicit(turn, 1, memory_order_acquire))
		return 0;
	taken = send_ask_port(tx, mbufs, n);
	atomic_store_explicit(turn, 0, memory_order_release);
	return taken;
}

/* Bytes of the next `taken` frames of the ring; their second pieces are at the port. */
static uint64_t send_bytes(struct gdrcap_tx *tx, uint32_t taken)
{
	uint64_t bytes = 0, segments = 0;

	for (uint32_t i = 0; i < taken; i++) {
		const struct send_entry *entry = &tx->entries[(tx->taken + i) & tx->mask];

		bytes += entry->bytes & ~SEND_IN_TWO;
		segments += (entry->bytes & SEND_IN_TWO) != 0;
	}
	if (segments)
		counter_add(&tx->segments_at_port, segments);
	return bytes;
}

uint32_t send_hand_over(struct gdrcap_tx *tx, uint64_t *due)
{
	const uint64_t limit = send_limit(tx, due);
	struct rte_mbuf *mbufs[SEND_BURST_MOST];
	uint32_t n = (uint32_t)(limit - tx->taken);
	int hold;
	uint64_t now;
	uint16_t taken;

	if (n == 0)
		return 0;
	hold = atomic_load_explicit(&tx->hold, memory_order_relaxed);
	if (unlikely(hold != SEND_LINK_UP)) {
		if (hold == SEND_LINK_DOWN)
			counter_add(&tx->stalled, 1);
		return 0;
	}
	n = RTE_MIN(n, tx->config.burst);
	send_mbufs(tx, mbufs, n);
	now = rte_rdtsc();
	taken = send_burst(tx, mbufs, (uint16_t)n);
	if (taken == 0)
		return 0;
	send_count(tx, taken, send_bytes(tx, taken), now);
	tx->taken += taken;
	return taken;
}

/* ---- the thread ---- */

static __attribute__((noinline)) void send_sleep(uint32_t us)
{
	const struct timespec pause = { .tv_nsec = 1000L * us };

	nanosleep(&pause, NULL);
}

static void send_wait_due(const struct gdrcap_tx *tx, uint64_t due)
{
	const uint64_t now = rte_rdtsc(), until = due > now ? due - now : 0;

	if (until < send_ticks(tx, SEND_SPIN_US))
		rte_pause();
	else if (until > send_ticks(tx, SEND_WAKE_US + SEND_SLEEP_MOST_US))
		send_sleep(SEND_SLEEP_MOST_US);
	else if (until > send_ticks(tx, 2 * SEND_WAKE_US))
		send_sleep((uint32_t)(until * 1000000u / tx->tsc_hz) - SEND_WAKE_US);
	else
		send_sleep(SEND_SPIN_US / 2);
}

void send_ask(const struct gdrcap_tx *tx)
{
	if (tx->asks && atomic_load_explicit(&tx->at_port, memory_order_relaxed))
		(void)rte_eth_tx_descriptor_status(tx->config.port, tx->config.queue, 0);
}

/* Until there are frames, a gate opens, or slots come back. */
static void send_sleep_till_woken(struct gdrcap_tx *tx, unsigned int idle)
{
	const bool waits =
		atomic_load_explicit(&tx->submitted, memory_order_relaxed) != tx->taken &&
		!atomic_load_explicit(&tx->hold, memory_order_relaxed);
	uint32_t most_us = REST_MOST_US;

	if (!tx->config.wire &&
	    (waits || atomic_load_explicit(&tx->at_port, memory_order_relaxed))) {
		most_us = thread_nap_next(&tx->naps, idle);
		if (waits)
			most_us = RTE_MIN(most_us, SEND_UNTOLD_US);
	}
	if (!rest_step(&tx->rest, idle, most_us))
		thread_idle(idle);
}

static void send_rest(struct gdrcap_tx *tx, unsigned int idle, uint64_t due)
{
	if (due)
		send_wait_due(tx, due);
	else if (tx->rest.wake)
		send_sleep_till_woken(tx, idle);
	else if (thread_may_nap(&tx->naps, idle))
		thread_nap(&tx->naps, idle);
	else
		thread_idle(idle);
}

void send_wait(struct gdrcap_tx *tx, unsigned int idle, uint64_t due)
{
	counter_add(&tx->idle, 1);
	send_ask(tx);
	ring_wake_look(&tx->wake, tx->at_back);
	send_rest(tx, idle, due);
}

void send_pause(struct gdrcap_tx *tx)
{
	unsigned int idle = 0;

	/* After the last access to the port. Partner: the acquire load in session_sending_pause(). */
	atomic_store_explicit(&tx->paused, 1, memory_order_release);
	/* Partner: the release store there: the port is ours again. */
	while (atomic_load_explicit(&tx->phase, memory_order_acquire) == SEND_PAUSE) {
		counter_add(&tx->idle, 1);
		thread_idle(idle++);
	}
	atomic_store_explicit(&tx->paused, 0, memory_order_release);
}

void send_offer(struct gdrcap_tx *tx)
{
	struct patience patience;
	unsigned int idle = 0;
	uint64_t due;

	/* Time in which this thread has no core does not count: else a start under load sends nothing. */
	patience_begin(&patience);
	while (send_limit(tx, &due) != tx->taken &&
	       !patience_ends(&patience, SEND_STOP_MS, NULL, NULL)) {
		idle = send_hand_over(tx, &due) ? 0 : idle + 1;
		send_collect(tx);
		if (idle)
			thread_idle(idle);
	}
}

void send_close(struct gdrcap_tx *tx)
{
	uint64_t submitted;

	/* CLOSE: from here on nothing can be submitted. Partner: the exchange in send_publish(), of which
	 * one or the other comes first. */
	submitted = atomic_exchange_explicit(&tx->submitted, SEND_CLOSED, memory_order_acq_rel);
	atomic_store_explicit(&tx->closed_at, submitted, memory_order_relaxed);
	for (; tx->taken != submitted; tx->taken++) {
		const uint32_t at = tx->entries[tx->taken & tx->mask].slot;

		if (tx->parts && tx->parts[at].left) {
			tx->parts[at].left = 1;
			send_part_back(tx, at);
		}
		tx->back[tx->at_back++ & tx->mask] = at | SEND_UNSENT;
		counter_add(&tx->unsent, 1);
	}
	send_back(tx);
	/* LEFT: from here on the caller's thread collects. Partner: the acquire load in
	 * send_harvest(). */
	atomic_store_explicit(&tx->finished, 1, memory_order_release);
	ring_wake_end(&tx->wake);
}

/* A look while the port is this thread's: true, some of what was submitted waits. */
static bool send_direct_round(struct gdrcap_tx *tx, uint64_t *due)
{
	if (unlikely(atomic_load_explicit(&tx->phase, memory_order_acquire) == SEND_PAUSE))
		send_pause(tx);
	if (send_hand_over(tx, due) + send_collect(tx) == 0)
		send_ask(tx);
	ring_wake_look(&tx->wake, tx->at_back);
	return atomic_load_explicit(&tx->submitted, memory_order_relaxed) != tx->taken;
}

/* True when the caller's thread left something to be done: the port is not taken for nothing, since a thread
 * that has it may lose its core. */
static bool send_direct_needs(const struct gdrcap_tx *tx)
{
	return atomic_load_explicit(&tx->submitted, memory_order_relaxed) !=
		       atomic_load_explicit(&tx->sent, memory_order_relaxed) ||
	       atomic_load_explicit(&tx->wake.asked, memory_order_relaxed) ||
	       atomic_load_explicit(&tx->phase, memory_order_relaxed) == SEND_PAUSE;
}

/* `direct`: the caller's thread hands over; what it leaves behind goes from here. It rests where nothing is
 * left, also when there was work: that is the caller's, who would find the port taken. */
static void send_direct_rounds(struct gdrcap_tx *tx)
{
	unsigned int idle = 0, rests = IDLE_PAUSES;

	while (!atomic_load_explicit(&tx->stop, memory_order_relaxed)) {
		const uint64_t before = tx->taken;
		uint64_t due = 0;
		bool waits = true;

		if (!send_direct_needs(tx)) {
			waits = false;
		} else if (send_port_take(tx)) {
			waits = send_direct_round(tx, &due);
			send_port_leave(tx);
		}
		counter_add(&tx->idle, 1);
		rests = waits ? IDLE_PAUSES : rests + 1;
		idle = waits && tx->taken == before ? idle + 1 : 0;
		if (!waits)
			thread_nap(&tx->naps, rests);
		else if (due)
			send_rest(tx, idle, due);
		else if (idle)
			thread_idle(idle);
	}
	/* For good: what comes back now is collected behind LEFT. */
	for (idle = 0; !send_port_take(tx); idle++)
		thread_idle(idle);
}

void send_worker_run(void *arg)
{
	struct gdrcap_tx *tx = arg;
	unsigned int idle = 0;
	uint64_t due;

	if (tx->config.direct)
		send_direct_rounds(tx);
	while (!atomic_load_explicit(&tx->stop, memory_order_relaxed)) {
		uint32_t work;

		if (unlikely(atomic_load_explicit(&tx->phase, memory_order_acquire) == SEND_PAUSE))
			send_pause(tx);
		work = send_hand_over(tx, &due);
		work += send_collect(tx);
		idle = work ? 0 : idle + 1;
		if (idle)
			send_wait(tx, idle, due);
	}
	send_offer(tx);
	send_close(tx);
}
