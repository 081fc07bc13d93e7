/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's counters with those of its queues, which DPDK's releases keep in different places. */
#ifndef GDRCAP_PORT_STATS_H
#define GDRCAP_PORT_STATS_H

#include <stdint.h>

struct rte_eth_stats;

/* As rte_eth_stats_get(); beside it the frames that each of the first `queues` receive queues lost
 * by errors, 0 where the driver does not count them. The caller keeps the port from being closed
 * meanwhile. */
int port_stats_get(uint16_t port, struct rte_eth_stats *stats, uint64_t *queue_errors,
		   uint32_t queues);

#endif
