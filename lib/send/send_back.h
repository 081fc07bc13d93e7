/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port has given back, and whose slots those are: for who collects. */
#ifndef GDRCAP_SEND_BACK_H
#define GDRCAP_SEND_BACK_H

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "memory/region.h"
#include "send/send_queue.h"

/* Up to `most` of the *at_port mbufs that the port has are back in their pool, and taken from it. Returns how many.
 * One thread at a time. */
static inline uint32_t send_back_take(struct rte_mempool *pool, _Atomic uint64_t *at_port,
				      struct rte_mbuf **mbufs, uint32_t most)
{
	const uint64_t there = atomic_load_explicit(at_port, memory_order_relaxed);
	uint32_t n = 0;

	if (there)
		n = RTE_MIN(rte_mempool_avail_count(pool), most);
	n = (uint32_t)RTE_MIN(there, n);
	if (n == 0 || rte_mempool_get_bulk(pool, (void **)mbufs, n) < 0)
		return 0;
	atomic_store_explicit(at_port, there - n, memory_order_relaxed);
	return n;
}

/* Where the queue's slots lie: kept in registers over a burst. */
struct send_slots {
	const uint8_t *first;
	uint32_t shift;
};

static inline struct send_slots send_slots_of(const struct gdrcap_tx *tx)
{
	return (struct send_slots){
		.first = tx->config.region->base + ((size_t)tx->slot_first << tx->slot_shift),
		.shift = tx->slot_shift,
	};
}

/* Which of them is the first piece's. */
static inline uint32_t send_slot_of(struct send_slots slots, const struct rte_mbuf *m)
{
	return (uint32_t)((size_t)((const uint8_t *)m->buf_addr - slots.first) >> slots.shift);
}

#endif
