/* SPDX-License-Identifier: BSD-3-Clause */
/* A mempool of which one thread at a time gives objects back, and one takes them. */
#include "memory/pool_one.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_mempool.h>
#include <rte_ring.h>

/*
 * On the ring that DPDK made for the pool. Drivers give mbufs back one by one, and ring_sp_sc asks with each
 * whether there is room: there is, for all objects that the pool has. About a quarter of the instructions, of
 * some 150 that a frame of the caller's took in all.
 *
 * GIVE BACK: the release store of the producer's tail, after the entry. Partner: the acquire load of it in
 * rte_ring_sc_dequeue_bulk(), which DPDK pairs with its own producers' the same way.
 */
static int one_enqueue(struct rte_mempool *pool, void *const *objects, unsigned int count)
{
	struct rte_ring *ring = pool->pool_data;
	void **entries = (void **)&ring[1]; /* where rte_ring has them */
	const uint32_t tail = ring->prod.tail;

	for (unsigned int i = 0; i < count; i++)
		entries[(tail + i) & ring->mask] = objects[i];
	ring->prod.head = tail + count;
	__atomic_store_n(&ring->prod.tail, tail + count, __ATOMIC_RELEASE);
	return 0;
}

static int one_dequeue(struct rte_mempool *pool, void **objects, unsigned int count)
{
	return rte_ring_sc_dequeue_bulk(pool->pool_data, objects, count, NULL) ? 0 : -ENOBUFS;
}

static unsigned int one_count(const struct rte_mempool *pool)
{
	return rte_ring_count(pool->pool_data);
}

/* A pool becomes one's after it was made. */
static int one_alloc(struct rte_mempool *pool)
{
	return -ENOTSUP;
}

static void one_free(struct rte_mempool *pool)
{
	rte_ring_free(pool->pool_data);
}

static const struct rte_mempool_ops one_ops = {
	.name = "gdrcap_one",
	.alloc = one_alloc,
	.free = one_free,
	.enqueue = one_enqueue,
	.dequeue = one_dequeue,
	.get_count = one_count,
};

static int find(const char *name)
{
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++)
		if (strcmp(rte_mempool_ops_table.ops[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static void one_register(void)
{
	rte_mempool_register_ops(&one_ops);
}

void pool_is_ones(struct rte_mempool *pool)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int index;

	/* Not where a program has chosen another kind of pool for its EAL. */
	if (strcmp(rte_mempool_get_ops(pool->ops_index)->name, "ring_mp_mc") != 0)
		return;
	pthread_once(&once, one_register);
	index = find(one_ops.name);
	/* The table is full of others': slower, and as right. */
	if (index < 0)
		index = find("ring_sp_sc");
	if (index >= 0)
		pool->ops_index = index;
}
