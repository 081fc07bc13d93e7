/* SPDX-License-Identifier: BSD-3-Clause */
/* A mempool of which one thread at a time gives objects back, and one takes them. */
#ifndef GDRCAP_POOL_ONE_H
#define GDRCAP_POOL_ONE_H

struct rte_mempool;

/* Of a pool that DPDK has just made, without caches: on the same ring, without a compare-and-swap a call, and
 * without a look for room with each object. DPDK's functions that make a pool of mbufs take no name of others. */
void pool_is_ones(struct rte_mempool *pool);

#endif
