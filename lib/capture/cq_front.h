/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front's logic: from the completions of an own receive queue to the descriptors of a burst ring,
 * and from freed slots to the queue's doorbell record. A front is a CPU thread (cq_worker.c) or a
 * block of a kernel; what both compute stands here, as functions of values. This header knows neither
 * DPDK nor CUDA; it compiles as C and CUDA, for little-endian machines.
 *
 * A completion (CQE) is 64 bytes, big-endian:
 *
 *   @44 byte_cnt, 32 bits: the frame's length      @55 of an error: its syndrome
 *   @48 timestamp, 64 bits                         @60 wqe_counter, 16 bits: of its work entry
 *   @63 op_own: opcode << 4 | format << 2 | solicited << 1 | owner, written last
 *
 * and of a striding queue:
 *
 *   @2  wqe_id, 16 bits: its work entry            @60 wqe_counter: its stride in that
 *   @44 byte_cnt: filler << 31 | strides << 16 | length; a filler says that the strides hold nothing
 *
 * Completion i (free-running) stands in entry i mod cq_entries. Its owner bit is the lap's lowest bit,
 * (i / cq_entries) & 1: an entry that still has another is of the lap before. Entries that were never
 * written have opcode 15.
 *
 * Places for frames are counted from 0 since the queue was last reset, and complete in that order: place n
 * is slot first_slot + n mod slots. Of a cyclic queue it is work entry n; of a striding one it is stride
 * n mod S of entry n / S, where S is 1 << stride_shift, for a stride is as long as a slot and a frame takes
 * one. `posted` places were ever told to the card, whole work entries; the record has the lowest 16 bits of
 * the number of these. All slots are posted at first, so `posted` is `slots` plus what came back.
 *
 * Everything that the card writes is believed only after a look: a completion that is not the next
 * place's, or longer than its slot, or no received frame at all, stops the front there
 * (enum cq_kind), and the queue has to be reset. So no descriptor ever reaches out of the queue's
 * slots, and no slot is given away twice. A filler stops it, too: no card has a reason for one where every
 * frame takes a stride.
 *
 * Orderings, by name:
 *
 * ARRIVED: the front loads the word at CQ_TAIL_AT of one completion or of several, then an acquire
 * (system scope; once a pass is enough), before it reads the rest of them or publishes. Partner: the
 * card, which writes a frame's payload, then its completion, owner byte last. Without it byte_cnt may be
 * the lap before's, or the consumer sees the slot's former bytes.
 *
 * PUBLISH: burst_ring.h. The front's store-release of a burst's ready word after its descriptors.
 * Partner: the consumer's TAKE. What ARRIVED acquired comes before it, so the consumer sees the
 * payload. Without it descriptors may be those of the burst before.
 *
 * FREE: the consumer's store-release after its last access to a burst's frames (reads, and the stale
 * detector's poison): DONE or PLAIN of burst_ring.h, or the free word of a ring in GPU memory.
 * Partner: the front's load-acquire of it before REPOST. Without it the card may write into a slot
 * that is still being read.
 *
 * LEASE: the accountant's store-release of `collected` after whoever else holds frames (a saver,
 * the embedder) has done with them. Partner: the front's load-acquire before REPOST; the front
 * returns the bursts that both FREE and LEASE let go (cq_through()). Without it a frame that is being
 * saved is overwritten.
 *
 * REPOST: the front's release (system scope), then one relaxed store of cq_record() to the record.
 * Partner: the card reads the record before it writes into a slot again. Without it the card may see
 * the record before the slot's last reader was through.
 *
 * ROOM: the front publishes burst b only while cq_room() says that the verdicts of the burst that had
 * its words before were read. Partner: the accountant's advance of `collected`, after it read them.
 * Without it a verdict is overwritten before it is counted. What does not fit stays in the card's
 * queue, and beyond that is its out_of_buffer, where it is counted.
 *
 * PHASE: control's store-release of what the front is to do, and the front's store-release of
 * `paused` (or that it ended) after its last access to completions and record. Partners: their
 * load-acquires, of the front before its next access, of control before it resets the queue or frees
 * its memory. Without it the front reads a queue that is being reset, or memory that is gone.
 *
 * tests/unit/front_play.h plays them between CPU threads; tests/unit/test_front_mutants.py shows that each is
 * needed.
 */
#ifndef GDRCAP_CQ_FRONT_H
#define GDRCAP_CQ_FRONT_H

#include <stdint.h>

#include "base/device_order.h"
#include "capture/burst_ring.h"
#include "port/cq_front_queue.h"

#define CQ_FRONT_HD BURST_RING_HD

#define CQ_BYTES 64u
#define CQ_ENTRY_AT 0u	   /* the word of which wqe_id is the second half; of striding queues */
#define CQ_LENGTH_AT 44u   /* byte_cnt, a word of 32 bits */
#define CQ_TIME_AT 48u	   /* timestamp, 64 bits */
#define CQ_SYNDROME_AT 55u /* of an error; a byte */
/* The last word: wqe_counter, signature, op_own. One load of 32 bits; or the upper half of one of the
 * last 64. As a little-endian number op_own is the highest byte, wqe_counter the lowest two, swapped. */
#define CQ_TAIL_AT 60u

/* That of an entry that was never written: each of its bytes is OWN_RX_PRESET. */
#define CQ_LENGTH_PRESET 0xf1f1f1f1u

#define CQ_OP_RECEIVED 2u
#define CQ_OP_ERROR_SENDING 13u
#define CQ_OP_ERROR 14u
#define CQ_OP_INVALID 15u
#define CQ_SYNDROME_LENGTH 1u /* the frame is longer than its work entry has room */
#define CQ_SYNDROME_FLUSHED 5u

/* Of byte_cnt, in host order, of striding queues. */
#define CQ_STRIDE (1u << 16) /* one stride, and behind it the length */
#define CQ_STRIDE_FILLER (1u << 31)

/* Of a completion: opcode, format (0: not compressed, no inline data), owner; not whether it is
 * solicited, and not the signature, which nobody asked for. */
#define CQ_TAIL_MASK 0xfd00ffffu

/* What a completion is. All but the first two stop the front. */
enum cq_kind {
	CQ_NONE,    /* not there yet */
	CQ_FRAME,   /* the next place's frame */
	CQ_ERROR,   /* the card reports an error of a work entry */
	CQ_FLUSHED, /* likewise: it was given back unused, since the queue is in error */
	CQ_ORDER,   /* of another work entry than the next, or another stride */
	CQ_LENGTH,  /* longer than its slot, or of no bytes */
	CQ_ODD,	    /* of a kind that was not asked for: another opcode, compressed, inline data */
	CQ_FILLER,  /* the rest of a work entry is passed over */
	CQ_KINDS,
};

CQ_FRONT_HD uint32_t cq_swap16(uint32_t n)
{
	return (n >> 8 & 0xff) | (n & 0xff) << 8;
}

CQ_FRONT_HD uint32_t cq_swap32(uint32_t n)
{
	return n >> 24 | (n >> 8 & 0xff00) | (n & 0xff00) << 8 | n << 24;
}

CQ_FRONT_HD uint64_t cq_swap64(uint64_t n)
{
	return (uint64_t)cq_swap32((uint32_t)n) << 32 | cq_swap32((uint32_t)(n >> 32));
}

/* Where in the queue completion `index` stands, bytes. */
CQ_FRONT_HD uint64_t cq_at(uint64_t index, uint32_t cq_entries)
{
	return (index & (cq_entries - 1)) * CQ_BYTES;
}

/* Owner bit of completion `index`. */
CQ_FRONT_HD uint32_t cq_owner(uint64_t index, uint32_t cq_entries)
{
	return (index & cq_entries) != 0;
}

/* ---- the last word ---- */

CQ_FRONT_HD uint32_t cq_tail_opcode(uint32_t tail)
{
	return tail >> 28;
}

CQ_FRONT_HD uint32_t cq_tail_counter(uint32_t tail)
{
	return cq_swap16(tail);
}

/* 1: completion `index` is there. */
CQ_FRONT_HD uint32_t cq_tail_is_new(uint32_t tail, uint64_t index, uint32_t cq_entries)
{
	return (tail >> 24 & 1) == cq_owner(index, cq_entries) &&
	       cq_tail_opcode(tail) != CQ_OP_INVALID;
}

/* What wqe_counter of place `next` is. */
CQ_FRONT_HD uint32_t cq_counter(uint32_t next, uint32_t stride_shift)
{
	return next & (stride_shift ? (1u << stride_shift) - 1 : 0xffff);
}

/* What `tail & CQ_TAIL_MASK` of completion `index` is when it is a frame, and that of cq_counter() is
 * `counter`, of which 16 bits are looked at. So one comparison says that it is there and in order; of a
 * striding queue, in its work entry: cq_entry_is(). */
CQ_FRONT_HD uint32_t cq_tail_frame(uint64_t index, uint32_t cq_entries, uint32_t counter)
{
	return (CQ_OP_RECEIVED << 4 | cq_owner(index, cq_entries)) << 24 | cq_swap16(counter);
}

/* ---- the rest ---- */

/* 1: a frame of so many bytes, in host order, may be in a slot. */
CQ_FRONT_HD uint32_t cq_length_fits(uint32_t length, uint32_t slot_bytes)
{
	return length - 1 < slot_bytes;
}

/* The length that byte_cnt, in host order, says; of a striding queue's, of more strides than one, of none or of a
 * filler, one that fits no slot. */
CQ_FRONT_HD uint32_t cq_length(uint32_t byte_cnt, uint32_t stride_shift)
{
	return byte_cnt - (stride_shift ? CQ_STRIDE : 0);
}

/* Of a striding queue: 1: the word at CQ_ENTRY_AT, as it stands in memory, names the work entry of place
 * `next`: by its number or by its place in the queue of `slots` slots. */
CQ_FRONT_HD uint32_t cq_entry_is(uint32_t word, uint32_t next, uint32_t slots,
				 uint32_t stride_shift)
{
	return ((cq_swap16(word >> 16) ^ next >> stride_shift) & ((slots >> stride_shift) - 1)) ==
	       0;
}

/* Of a completion, words as they stand in memory; of the syndrome, looked at only of errors, its byte. */
struct cq_words {
	uint32_t tail, entry, byte_cnt, syndrome;
};

/* What completion `index` is, when the next is to be that of place `next`. */
CQ_FRONT_HD enum cq_kind cq_kind_of(const struct cq_front_queue *queue,
				    const struct cq_words *words, uint64_t index, uint32_t next)
{
	const uint32_t tail = words->tail, shift = queue->stride_shift;
	const uint32_t byte_cnt = cq_swap32(words->byte_cnt);

	if (!cq_tail_is_new(tail, index, queue->cq_entries))
		return CQ_NONE;
	if (cq_tail_opcode(tail) == CQ_OP_ERROR || cq_tail_opcode(tail) == CQ_OP_ERROR_SENDING)
		return words->syndrome == CQ_SYNDROME_FLUSHED  ? CQ_FLUSHED
		       : words->syndrome == CQ_SYNDROME_LENGTH ? CQ_LENGTH
							       : CQ_ERROR;
	if ((tail & CQ_TAIL_MASK) >> 25 != CQ_OP_RECEIVED << 3)
		return CQ_ODD;
	if (shift && (byte_cnt & CQ_STRIDE_FILLER))
		return words->byte_cnt == CQ_LENGTH_PRESET ? CQ_LENGTH : CQ_FILLER;
	if (cq_tail_counter(tail) != cq_counter(next, shift) ||
	    (shift && !cq_entry_is(words->entry, next, queue->slots, shift)))
		return CQ_ORDER;
	return cq_length_fits(cq_length(byte_cnt, shift), queue->slot_bytes) ? CQ_FRAME : CQ_LENGTH;
}

/* 1: a completion that is not believed, of that kind, is of a frame that had a slot. The frame of an error counts
 * with the stop that it is. */
CQ_FRONT_HD uint32_t cq_had_frame(enum cq_kind kind)
{
	return kind != CQ_FLUSHED && kind != CQ_ERROR && kind != CQ_FILLER;
}

/* How many of 32 neighbouring completions may be taken, a bit each, the first lowest: only those
 * before the first that is missing. */
CQ_FRONT_HD uint32_t cq_prefix(uint32_t mask)
{
#ifdef __CUDA_ARCH__
	return ~mask ? (uint32_t)__ffs((int)~mask) - 1 : 32;
#else
	return ~mask ? (uint32_t)__builtin_ctz(~mask) : 32;
#endif
}

/* The descriptor of the frame of place `next`, as one word of 64 bits in memory order
 * (struct frame_desc); `length` fits. */
CQ_FRONT_HD uint64_t cq_desc(uint32_t first_slot, uint32_t slots, uint32_t next, uint32_t length)
{
	return (uint64_t)length << 32 | (first_slot + (next & (slots - 1)));
}

/* ---- slots back ---- */

/* Of `back` places from place 0 on those that fill whole work entries: so many may be posted again. */
CQ_FRONT_HD uint32_t cq_whole(uint32_t back, uint32_t stride_shift)
{
	return back >> stride_shift << stride_shift;
}

/* The doorbell record of `posted` work entries. */
CQ_FRONT_HD uint32_t cq_record(uint32_t posted)
{
	return cq_swap32(posted & 0xffff);
}

/* 1: `back` places have to be posted again now, when `left` are still with the card. Seldom, since
 * each is a write over the bus; at once when the card may run out. */
CQ_FRONT_HD uint32_t cq_repost_due(uint32_t back, uint32_t left, uint32_t slots)
{
	return back && (back >= slots / 8 || left < slots / 4);
}

/* Bursts whose slots may go back to the card: FREE by the consumer, and no longer on LEASE. Counts
 * that both only grow. */
CQ_FRONT_HD uint64_t cq_through(uint64_t freed, uint64_t lease)
{
	return freed < lease ? freed : lease;
}

/* ROOM: 1: burst `burst` may be published into a ring of `bursts`. */
CQ_FRONT_HD uint32_t cq_room(uint64_t burst, uint64_t collected, uint32_t bursts)
{
	return burst - collected < bursts;
}

/* ---- what a front tells of what stopped it ---- */

enum cq_state {
	CQ_RUNS,
	CQ_STOPPED, /* struct cq_fault says why; the queue is to be reset, which ends this */
};

/* Two cache lines. Writer: the front, before it stores the state CQ_STOPPED with release. */
struct cq_fault {
	uint8_t cqe[CQ_BYTES]; /* as it was read */
	uint64_t index;	       /* of the completion */
	uint32_t next;	       /* place that was expected */
	uint32_t kind;	       /* enum cq_kind */
	uint64_t reserved[6];
};

#ifdef __cplusplus
static_assert(sizeof(struct cq_fault) == 128, "two cache lines");
#else
_Static_assert(sizeof(struct cq_fault) == 128, "two cache lines");
#endif

/* ---- host ---- */

/* 32 bits of a completion that no ordering is asked of. */
static inline uint32_t cq_load32(const uint8_t *at)
{
	return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_RELAXED);
}

/* ARRIVED, of one completion by a CPU: what is read of it, and of its frame, comes after. */
static inline uint32_t cq_tail_acquire(const uint8_t *cqe)
{
	const uint32_t tail = __atomic_load_n((const uint32_t *)(const void *)(cqe + CQ_TAIL_AT),
					      __ATOMIC_ACQUIRE);

	device_order_load();
	return tail;
}

/* REPOST, by a CPU: what came before is done when the card sees it. `posted`: work entries. */
static inline void cq_record_store(uint32_t *record, uint32_t posted)
{
	device_order_store();
	__atomic_store_n(record, cq_record(posted), __ATOMIC_RELEASE);
}

/* What completion `index` is, looked at by a CPU. */
static inline enum cq_kind cq_kind_at(const struct cq_front_queue *queue, uint64_t index,
				      uint32_t next)
{
	const uint8_t *cqe = queue->cq + cq_at(index, queue->cq_entries);
	struct cq_words words;

	words.tail = cq_tail_acquire(cqe);
	/* The rest of one that is not there may be being written. */
	if (!cq_tail_is_new(words.tail, index, queue->cq_entries))
		return CQ_NONE;
	words.entry = cq_load32(cqe + CQ_ENTRY_AT);
	words.byte_cnt = cq_load32(cqe + CQ_LENGTH_AT);
	words.syndrome = __atomic_load_n(cqe + CQ_SYNDROME_AT, __ATOMIC_RELAXED);
	return cq_kind_of(queue, &words, index, next);
}

/* Completions that are asked for ahead: the card wrote them, so each is in no core's cache. */
#define CQ_PREFETCH 16u

/*
 * By a CPU: descriptors of the frames that are there from completion `index` and place `next` on,
 * and their bytes. Returns how many, at most `most`, which does not reach past the queue's end. `strides`:
 * whether it is a striding queue, a constant.
 */
static inline __attribute__((always_inline)) uint32_t
cq_take(const struct cq_front_queue *queue, uint64_t index, uint32_t next, uint32_t most,
	struct frame_desc *desc, uint64_t *bytes, const int strides)
{
	const uint32_t first_slot = queue->first_slot, slots = queue->slots;
	const uint32_t slot_bytes = queue->slot_bytes;
	const uint32_t shift = strides ? queue->stride_shift : 0;
	const uint8_t *cqe = queue->cq + cq_at(index, queue->cq_entries);
	uint64_t sum = 0;
	uint32_t n = 0;

	for (; n < most; n++, next++, cqe += CQ_BYTES) {
		const uint32_t tail = cq_tail_acquire(cqe); /* ARRIVED */
		const uint32_t counter = strides ? cq_counter(next, shift) : next;
		uint32_t length;
		uint64_t word;

		if ((tail & CQ_TAIL_MASK) != cq_tail_frame(index, queue->cq_entries, counter))
			break;
		__builtin_prefetch(cqe + (uint64_t)CQ_PREFETCH * CQ_BYTES);
		length = cq_swap32(cq_load32(cqe + CQ_LENGTH_AT));
		if (strides) {
			if (!cq_entry_is(cq_load32(cqe + CQ_ENTRY_AT), next, slots, shift))
				break;
			length = cq_length(length, shift);
		}
		if (!cq_length_fits(length, slot_bytes))
			break;
		word = cq_desc(first_slot, slots, next, length);
		__builtin_memcpy(&desc[n], &word, sizeof(word));
		sum += length;
	}
	*bytes = sum;
	return n;
}

#endif
