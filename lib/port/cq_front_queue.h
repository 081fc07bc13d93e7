/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an own receive queue is to its front (capture/cq_front.h), a CPU thread or a block of a kernel:
 * plain pointers, valid for whoever runs the front. This header knows neither DPDK nor CUDA; it
 * compiles as C and CUDA.
 *
 * Its work entries are written once: of a cyclic queue entry i is slot first_slot + i for ever, of a
 * striding one it is the 1 << stride_shift slots from first_slot + (i << stride_shift) on, each a stride of the
 * entry, of which a frame takes one. So giving slots back is one store to the doorbell record. Nobody tells the
 * card how far the completion queue was read (it is created to ignore its overrun), so it must have room
 * for all that can be outstanding, flushed entries included.
 */
#ifndef GDRCAP_CQ_FRONT_QUEUE_H
#define GDRCAP_CQ_FRONT_QUEUE_H

#include <stdint.h>

#define CQ_FRONT_SLOTS_MAX 32768u /* the card counts work entries in 16 bits */
/* Work entries of a striding queue: each goes back when all of its slots are free, and the card has others
 * meanwhile. */
#define CQ_FRONT_ENTRIES_MIN 4u

struct cq_front_queue {
	/* Completions, 64 bytes each, preset to opcode 15 and owner 1 (op_own 0xf1), cq_entries of
	 * them, a power of two >= 2 * slots. Writer: the card. */
	const uint8_t *cq;
	/* The receive queue's doorbell record: be32 of the number of work entries that were ever
	 * posted, of which 16 bits count. Writer: the front; 0 before it starts. */
	uint32_t *record;
	uint32_t cq_entries;
	uint32_t slots;	       /* a power of two, CQ_FRONT_SLOTS_MAX at most */
	uint32_t first_slot;   /* in the region, of work entry 0 */
	uint32_t slot_bytes;   /* room for a frame in a slot, 65535 at most */
	uint32_t stride_shift; /* log2 of the slots of a work entry; 0: the queue is cyclic */
};

/* False: no queue can be so. */
static inline int cq_front_queue_fits(const struct cq_front_queue *queue)
{
	const uint32_t slots = queue->slots, completions = queue->cq_entries;

	return slots && slots <= CQ_FRONT_SLOTS_MAX && (slots & (slots - 1)) == 0 &&
	       completions >= 2 * slots && (completions & (completions - 1)) == 0 &&
	       (queue->stride_shift == 0 ||
		(queue->stride_shift < 32 && slots >> queue->stride_shift >= CQ_FRONT_ENTRIES_MIN));
}

#endif
