/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a memif's other end has not taken yet. DPDK's driver tells nobody; it is in the rings of the
 * memory that both ends share, whose form memif's protocol says. Control code.
 */
#ifndef GDRCAP_MEMIF_RINGS_H
#define GDRCAP_MEMIF_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_eth_dev;

/* The first piece of memory of a connection, where rings begin. Later ones are not looked at. */
void memif_rings_mapped(const struct rte_eth_dev *device, const void *base, size_t bytes);
/* Before the memory goes: when this has returned nobody looks at it. */
void memif_rings_forget(const struct rte_eth_dev *device);

/* Of the `queues` send queues of a port that is a server, or a client: places of their rings that hold
 * what the other end has not taken. A frame has one, or more if it is longer than they are. False: it
 * is not known, as there is no connection or the other end does it in another way. */
bool memif_rings_left(uint16_t port, bool server, uint32_t queues, uint64_t *left);

/* Places that other ends had not taken when they left, of all connections that ended since this was asked last.
 * `unknown`: of one that is not known. */
struct memif_lost {
	uint64_t places;
	bool unknown;
};
struct memif_lost memif_rings_lost(uint16_t port, bool server);

#endif
