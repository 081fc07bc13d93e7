/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing over by the caller's own thread (sender.thread: caller): no line of a frame's goes to another
 * core and back. The worker is there for what has to wait, and sleeps otherwise.
 *
 * PORT: an exchange, acquire, that makes `port_taken` 1, before the first access to the port and to what is
 * the worker's in struct gdrcap_tx. Partner: the release store of 0 after the last. Without it two threads
 * would be in one of the driver's queues, and a frame could be sent twice or be lost.
 */
#include "send/send_queue.h"

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_pause.h>

#include "base/prefetch.h"
#include "send/send_back.h"

/* Who has the port keeps it for a burst, or while it is started again: that is not waited for. */
#define PORT_TRIES 1000u

bool send_port_take(struct gdrcap_tx *tx)
{
	for (uint32_t i = 0; i < PORT_TRIES; i++) {
		if (!atomic_exchange_explicit(&tx->port_taken, 1, memory_order_acquire))
			return true;
		rte_pause();
	}
	return false;
}

void send_port_leave(struct gdrcap_tx *tx)
{
	atomic_store_explicit(&tx->port_taken, 0, memory_order_release);
}

/* The mbufs of frames that need nothing but the port; false: one needs more, or is wrong. What does not
 * change is in registers: each store to a state could be to it, for all that a compiler knows. */
static bool direct_mbufs(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			 unsigned int count, struct rte_mbuf **mbufs)
{
	const uint32_t slots = tx->slot_count, most = tx->config.bytes_max - SEND_BYTES_MIN;
	struct rte_mbuf *const *all = tx->mbufs;
	const uint32_t shift = tx->slot_shift;
	const uint8_t *data = tx->data;
	uint8_t *state = tx->state;

	for (unsigned int i = 0; i < count; i++) {
		const struct gdrcap_tx_frame *frame = &frames[i];
		const uint32_t at = frame->slot;

		/* One branch for all that is not so as a rule. */
		if (unlikely(at >= slots) ||
		    unlikely((state[at] ^ SEND_RESERVED) | frame->flags | frame->time_ns |
			     (uintptr_t)frame->payload |
			     (uintptr_t)(frame->data - (data + ((size_t)at << shift))) |
			     (frame->bytes - SEND_BYTES_MIN > most))) {
			for (unsigned int k = 0; k < i; k++)
				state[frames[k].slot] = SEND_RESERVED;
			return false;
		}
		state[at] = SEND_SUBMITTED;
		mbufs[i] = all[at];
		prefetch_for_write(mbufs[i]);
	}
	return true;
}

/* As send_mbuf(): in the stores of a driver that receives, 8 bytes each. Returns their bytes in all. */
static uint64_t direct_fill(const struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			    unsigned int count, struct rte_mbuf **mbufs)
{
	const struct direct_mbuf fresh = tx->fresh;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		const uint32_t length = frames[i].bytes;

		memcpy(&mbufs[i]->rearm_data, &fresh, sizeof(fresh));
		mbufs[i]->pkt_len = length;
		mbufs[i]->data_len = (uint16_t)length;
		bytes += length;
	}
	return bytes;
}

/* What the port does not take waits in the ring: it keeps its place. */
static uint64_t direct_rest(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			    unsigned int from, unsigned int count)
{
	uint64_t bytes = 0;

	for (unsigned int i = from; i < count; i++) {
		tx->entries[(uint32_t)(tx->next + i) & tx->mask] =
			(struct send_entry){ frames[i].slot, frames[i].bytes };
		bytes += frames[i].bytes;
	}
	return bytes;
}

static void direct_hand_over(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			     unsigned int count, struct rte_mbuf **mbufs, uint64_t bytes)
{
	const uint64_t now = rte_rdtsc();
	unsigned int taken = 0;
	uint16_t n;

	/* SUBMIT, for who counts: before `sent`. */
	atomic_store_explicit(&tx->submitted, tx->next + count, memory_order_release);
	do {
		n = send_burst(tx, &mbufs[taken],
			       (uint16_t)RTE_MIN(count - taken, tx->config.burst));
		taken += n;
	} while (n && taken != count);
	if (unlikely(taken != count))
		bytes -= direct_rest(tx, frames, taken, count);
	tx->next += count;
	tx->pending += count;
	if (likely(taken))
		send_count(tx, taken, bytes, now);
	tx->taken += taken;
}

/* Nothing is before the next frame, and the port may have it. */
static bool direct_may(const struct gdrcap_tx *tx)
{
	return tx->taken == tx->next && tx->gates_passed == tx->gate &&
	       atomic_load_explicit(&tx->submitted, memory_order_relaxed) != SEND_CLOSED &&
	       !atomic_load_explicit(&tx->hold, memory_order_relaxed);
}

bool send_direct(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count)
{
	struct rte_mbuf *mbufs[SEND_BURST_MOST];
	bool may;

	if (count > SEND_BURST_MOST || !send_port_take(tx))
		return false;
	may = direct_may(tx) && direct_mbufs(tx, frames, count, mbufs);
	if (likely(may))
		direct_hand_over(tx, frames, count, mbufs, direct_fill(tx, frames, count, mbufs));
	send_port_leave(tx);
	return may;
}

/* Those that no frame needs are free, or wait to be told; of others up to `max` are the caller's at once. */
static uint32_t direct_collect(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, uint32_t max)
{
	const struct send_slots slots = send_slots_of(tx);
	const uint32_t bytes = tx->config.bytes_max;
	struct rte_mbuf *mbufs[SEND_BURST_MOST];
	const uint32_t n = send_back_take(tx->config.pool, &tx->at_port, mbufs,
					  max ? RTE_MIN(max, SEND_BURST_MOST) : SEND_BURST_MOST);
	const struct send_parts *parts = tx->parts;
	uint8_t *data = tx->data, *state = tx->state;
	uint32_t whole = 0, given = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = send_slot_of(slots, mbufs[i]);

		if (unlikely(parts && parts[at].left) && !send_part_back(tx, at))
			continue;
		whole++;
		if (!max || unlikely(state[at] == SEND_TELL)) {
			send_slot_back(tx, at, at);
			continue;
		}
		state[at] = SEND_RESERVED;
		frames[given++] = (struct gdrcap_tx_frame){
			.data = data + ((size_t)at << slots.shift),
			.slot = at,
			.bytes = bytes,
		};
	}
	tx->pending -= whole;
	return given;
}

uint32_t send_direct_look(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, uint32_t max)
{
	uint32_t given;
	uint64_t due;

	if (!send_port_take(tx))
		return 0;
	while (tx->taken != tx->next && send_hand_over(tx, &due))
		;
	if (unlikely(tx->free_count == 0))
		send_ask(tx);
	send_collect_segments(tx);
	/* What was collected before is told before. */
	send_harvest(tx);
	given = direct_collect(tx, frames, max);
	send_port_leave(tx);
	return given;
}
