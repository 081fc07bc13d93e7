/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's side of a send queue: reserve, submit, cancel, poll. */
#include "send/send_queue.h"

#include <errno.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "base/guest.h"
#include "base/log.h"
#include "capture/ring_producer.h"
#include "capture/ring_wait.h"

#define SEND_AHEAD 64u
#define SEND_HEAD_MIN 18u /* of two pieces: what a driver may copy into its descriptor */

/* ---- what comes back ---- */

/* Slots that the worker has given back become free, or wait to be told. */
void send_harvest(struct gdrcap_tx *tx)
{
	uint64_t returned;

	/* LEFT. Partner: the release store in send_close(). */
	if (unlikely(atomic_load_explicit(&tx->finished, memory_order_acquire))) {
		send_ask(tx);
		send_collect(tx);
	}
	/* HARVEST. Partner: BACK in send_back(). */
	returned = atomic_load_explicit(&tx->returned, memory_order_acquire);
	tx->pending -= returned - tx->harvested;
	for (; tx->harvested != returned; tx->harvested++) {
		const uint32_t entry = tx->back[tx->harvested & tx->mask];
		const uint32_t at = entry & ~SEND_UNSENT;

		/* Lines that the worker's core has: some ahead of us. */
		rte_prefetch0(&tx->back[(tx->harvested + SEND_AHEAD) & tx->mask]);
		send_slot_back(tx, at, entry);
	}
}

static bool send_is_over(const struct gdrcap_tx *tx)
{
	return atomic_load_explicit(&tx->stop, memory_order_relaxed) != 0;
}

static int send_reserve(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, unsigned int max)
{
	unsigned int n, i = 0;

	if (unlikely(send_is_over(tx)))
		return -ESHUTDOWN;
	if (tx->config.direct && max)
		i = send_direct_look(tx, frames, max);
	/* Each time, so that the last slots back are the next to go: what was never used stays out of caches. */
	send_harvest(tx);
	n = i + RTE_MIN(max - i, tx->free_count);
	for (; i < n; i++) {
		const uint32_t at = tx->free[--tx->free_count];

		tx->state[at] = SEND_RESERVED;
		frames[i] = (struct gdrcap_tx_frame){
			.data = send_data(tx, at),
			.slot = at,
			.bytes = tx->config.bytes_max,
		};
	}
	return (int)n;
}

static int send_poll(struct gdrcap_tx *tx, struct gdrcap_tx_done *done, unsigned int max)
{
	unsigned int n = 0;

	if (tx->config.direct && !atomic_load_explicit(&tx->finished, memory_order_acquire))
		send_direct_look(tx, NULL, 0);
	send_harvest(tx);
	for (; n < max && tx->told_first != tx->told_end; n++) {
		const uint32_t entry = tx->told[tx->told_first++ & tx->mask];
		const uint32_t at = entry & ~SEND_UNSENT;

		done[n] = (struct gdrcap_tx_done){
			.tag = tx->tag[at],
			.code = entry & SEND_UNSENT ? -ECANCELED : 0,
		};
		tx->state[at] = SEND_FREE;
		tx->free[tx->free_count++] = at;
	}
	if (n || max == 0)
		return (int)n;
	return atomic_load_explicit(&tx->finished, memory_order_acquire) && tx->pending == 0
		       ? -ESHUTDOWN
		       : 0;
}

/* ---- the calls, and the descriptor ---- */

struct send_taker {
	struct gdrcap_tx *tx;
	struct gdrcap_tx_frame *frames;
	struct gdrcap_tx_done *done;
	unsigned int max;
};

static int taker_poll(void *context)
{
	const struct send_taker *taker = context;

	return taker->done ? send_poll(taker->tx, taker->done, taker->max)
			   : send_reserve(taker->tx, taker->frames, taker->max);
}

static uint64_t taker_next(void *context)
{
	return ((const struct send_taker *)context)->tx->harvested;
}

/* Nothing was there: where a descriptor was asked for, it is armed, and one more look taken. */
static int send_take(struct send_taker *taker)
{
	const int ret = taker_poll(taker);

	if (ret != 0 || taker->max == 0 ||
	    !atomic_load_explicit(&taker->tx->wake.asked, memory_order_relaxed))
		return ret;
	return ring_poll_arm(&(struct ring_poll){ &taker->tx->wake, taker_poll, taker_next, taker,
						  false, NULL });
}

static int send_check(const struct gdrcap_tx *tx, const void *array)
{
	if (guest_is_child())
		return -EPERM;
	return tx && array && !tx->gpu.room ? 0 : -EINVAL;
}

int gdrcap_tx_reserve(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, unsigned int max)
{
	struct send_taker taker = { .tx = tx, .frames = frames, .max = max };
	const int ret = send_check(tx, frames);

	return ret < 0 ? ret : send_take(&taker);
}

int gdrcap_tx_poll(struct gdrcap_tx *tx, struct gdrcap_tx_done *done, unsigned int max)
{
	struct send_taker taker = { .tx = tx, .done = done, .max = max };
	const int ret = send_check(tx, done);

	return ret < 0 ? ret : send_take(&taker);
}

int gdrcap_tx_fd(struct gdrcap_tx *tx)
{
	const int ret = send_check(tx, tx);

	return ret < 0 ? ret : ring_wake_fd(&tx->wake);
}

/* ---- submitting ---- */

/* The frame's slot is the caller's to give. */
static bool send_is_reserved(const struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame)
{
	return frame->slot < tx->slot_count && tx->state[frame->slot] == SEND_RESERVED &&
	       frame->data == send_data(tx, frame->slot);
}

static void send_states(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			unsigned int count, enum send_state state)
{
	for (unsigned int i = 0; i < count; i++)
		tx->state[frames[i].slot] = (uint8_t)state;
}

/* Whose memory the payload is: kept for LEND. */
static bool send_memory_is(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame)
{
	const uint32_t memory =
		send_memory_find(tx->config.memories, frame->payload, frame->payload_bytes);

	if (!tx->parts || memory == SEND_MEMORIES)
		return false;
	tx->parts[frame->slot].memory = (uint8_t)(memory + 1);
	return true;
}

int send_frame_check(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame, unsigned int i,
		     uint64_t time_most, struct gdrcap_error *error)
{
	uint64_t bytes;

	if (unlikely(!send_is_reserved(tx, frame)))
		return error_set(error, -EINVAL,
				 "frame %u: its slot is not reserved, or it was submitted already; "
				 "take slots from gdrcap_tx_reserve(), and leave `slot` and `data` "
				 "as they are",
				 i);
	bytes = frame->payload ? (uint64_t)frame->bytes + frame->payload_bytes : frame->bytes;
	if (unlikely(bytes < SEND_BYTES_MIN || bytes > tx->config.bytes_max))
		return error_set(
			error, -EMSGSIZE,
			"frame %u: it has %llu bytes; allowed: %u (pad it) to %u, which is "
			"frame.size without FCS",
			i, (unsigned long long)bytes, SEND_BYTES_MIN, tx->config.bytes_max);
	if (frame->payload && unlikely(frame->bytes < SEND_HEAD_MIN || !frame->payload_bytes))
		return error_set(
			error, -EMSGSIZE,
			"frame %u: its pieces have %u and %u bytes; allowed: %u or more in the slot, "
			"1 or more of payload",
			i, frame->bytes, frame->payload_bytes, SEND_HEAD_MIN);
	if (frame->payload && unlikely(!send_memory_is(tx, frame)))
		return error_set(
			error, -EFAULT,
			"frame %u: its payload is not in registered memory, or reaches over its "
			"end; register it: gdrcap_tx_register()",
			i);
	if (unlikely(frame->flags & ~GDRCAP_TX_TELL))
		return error_set(error, -EINVAL, "frame %u: flags 0x%x; allowed: GDRCAP_TX_TELL", i,
				 frame->flags);
	if (unlikely(frame->time_ns > time_most))
		return error_set(error, -EINVAL,
				 "frame %u: its time is more than %llu s ahead; times count from "
				 "the Unix epoch, in ns",
				 i, (unsigned long long)(GDRCAP_TX_AHEAD_NS / 1000000000u));
	return 0;
}

/* Each slot once, so that none is given twice in one call either. */
static int send_check_all(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			  unsigned int count, uint64_t now_ns, struct gdrcap_error *error)
{
	const uint64_t most = now_ns + GDRCAP_TX_AHEAD_NS;

	for (unsigned int i = 0; i < count; i++) {
		const int ret = send_frame_check(tx, &frames[i], i, most, error);

		if (unlikely(ret < 0)) {
			send_states(tx, frames, i, SEND_RESERVED);
			return ret;
		}
		tx->state[frames[i].slot] =
			frames[i].flags & GDRCAP_TX_TELL ? SEND_TELL : SEND_SUBMITTED;
	}
	return 0;
}

static uint64_t send_due(const struct gdrcap_tx *tx, uint64_t time_ns, uint64_t now_ns,
			 uint64_t now_tsc)
{
	const uint64_t ns = time_ns > now_ns ? time_ns - now_ns : 0;

	return ns ? now_tsc + ns / 1000000000u * tx->tsc_hz +
			       ns % 1000000000u * tx->tsc_hz / 1000000000u
		  : 0;
}

static void send_gate_open(void *arg)
{
	struct send_gate *gate = arg;

	/* OPEN: what the stream wrote. Partner: the acquire load in send_limit(). */
	atomic_store_explicit(&gate->open, 1, memory_order_release);
	wake_look(gate->work);
}

/* Writes frames and gates where the worker finds them once they are published. Returns the number of the
 * gate after the last. */
static uint64_t send_fill(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			  unsigned int count, bool after, uint64_t now_ns)
{
	const uint64_t now_tsc = rte_rdtsc();
	uint64_t gate = tx->gate;

	for (unsigned int i = 0; i < count; i++) {
		const struct gdrcap_tx_frame *frame = &frames[i];
		const uint32_t at = (uint32_t)(tx->next + i) & tx->mask;
		const uint64_t due =
			frame->time_ns ? send_due(tx, frame->time_ns, now_ns, now_tsc) : 0;

		if (frame->flags & GDRCAP_TX_TELL)
			tx->tag[frame->slot] = frame->tag;
		tx->entries[at] = (struct send_entry){ frame->slot, frame->bytes };
		if (frame->payload) {
			send_segment(tx, frame);
			tx->entries[at].bytes += frame->payload_bytes | SEND_IN_TWO;
		}
		if (likely(!due && !(after && i == 0)))
			continue;
		tx->gates[gate & tx->mask].first = tx->next + i;
		tx->gates[gate & tx->mask].due = due;
		tx->gates[gate & tx->mask].work = &tx->work;
		atomic_store_explicit(&tx->gates[gate & tx->mask].open, !(after && i == 0),
				      memory_order_relaxed);
		gate++;
	}
	return gate;
}

/* False: the run is over, and the worker takes nothing more. */
static bool send_publish(struct gdrcap_tx *tx, unsigned int count, uint64_t gate)
{
	uint64_t before = tx->next;

	atomic_store_explicit(&tx->gates_set, gate, memory_order_relaxed);
	/* SUBMIT: frames, gates and what the CPU wrote into the slots. Partner: TAKE OVER in send_limit().
	 * An exchange, so that a worker that leaves at the same time has either seen it or is seen:
	 * with a store a frame could be left that nobody sends or gives back (CLOSE). */
	if (!atomic_compare_exchange_strong_explicit(&tx->submitted, &before, before + count,
						     memory_order_release, memory_order_relaxed))
		return false;
	wake_look(&tx->work);
	tx->next += count;
	tx->gate = gate;
	tx->pending += count;
	return true;
}

static int send_over(struct gdrcap_error *error)
{
	return error_set(error, -ESHUTDOWN,
			 "the run is over: nothing is sent any more; gdrcap_tx_cancel() gives the "
			 "slots back");
}

/* `now_ns`: 0 where no frame has a time. */
static uint64_t send_now_ns(const struct gdrcap_tx_frame *frames, unsigned int count)
{
	struct timespec now;
	bool timed = false;

	for (unsigned int i = 0; i < count; i++)
		timed |= frames[i].time_ns != 0;
	if (likely(!timed))
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int send_submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
		       unsigned int count, bool after, struct CUstream_st *stream,
		       struct gdrcap_error *error)
{
	int ret = guest_check(tx, "send queue", error);
	uint64_t now_ns, gate;

	if (ret < 0)
		return ret;
	if (tx->gpu.room)
		return error_set(
			error, -EINVAL,
			"the send queue is a running kernel's (sender: gpu): submit there, "
			"by gdrcap_gpu_tx_submit(), or set sender: host");
	if (count && !frames)
		return error_set(error, -EINVAL, "give the frames that are to be sent");
	if (unlikely(count > tx->slot_count))
		return error_set(error, -EINVAL, "%u frames: the queue has %u slots", count,
				 tx->slot_count);
	if (count == 0)
		return 0;
	if (unlikely(send_is_over(tx)))
		return send_over(error);
	if (tx->config.direct && !after && send_direct(tx, frames, count))
		return 0;
	now_ns = send_now_ns(frames, count);
	ret = send_check_all(tx, frames, count, now_ns, error);
	if (ret < 0)
		return ret;
	if (tx->pieces) {
		ret = send_lend(tx, frames, count, error);
		if (ret < 0) {
			send_states(tx, frames, count, SEND_RESERVED);
			return ret;
		}
	}
	gate = send_fill(tx, frames, count, after, now_ns);
	if (after) {
		/* The first of these gates is the stream's; it may open before it is published. */
		ret = tx->config.ops->after(tx->config.device, stream, send_gate_open,
					    &tx->gates[tx->gate & tx->mask]);
		if (ret < 0)
			error_set(error, ret, "the stream cannot be waited for: %s",
				  kernel_error());
	}
	if (ret == 0 && !send_publish(tx, count, gate))
		ret = send_over(error);
	if (ret < 0) {
		if (tx->pieces)
			send_lend_back(tx, frames, count);
		send_states(tx, frames, count, SEND_RESERVED);
	} else if (tx->config.direct) {
		send_direct_look(tx, NULL, 0);
	}
	return ret;
}

int gdrcap_tx_submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count,
		     struct gdrcap_error *error)
{
	return send_submit(tx, frames, count, false, NULL, error);
}

int gdrcap_tx_submit_after(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			   unsigned int count, struct CUstream_st *stream,
			   struct gdrcap_error *error)
{
	return send_submit(tx, frames, count, true, stream, error);
}

int gdrcap_tx_cancel(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count)
{
	const int ret = send_check(tx, frames);

	if (ret < 0)
		return ret;
	for (unsigned int i = 0; i < count; i++) {
		if (!send_is_reserved(tx, &frames[i])) {
			send_states(tx, frames, i, SEND_RESERVED);
			return -EINVAL;
		}
		tx->state[frames[i].slot] = SEND_FREE;
	}
	for (unsigned int i = 0; i < count; i++)
		tx->free[tx->free_count++] = frames[i].slot;
	return 0;
}
