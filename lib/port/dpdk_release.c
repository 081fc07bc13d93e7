/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's counters, which DPDK's releases keep in different places. */
#include "port/dpdk_release.h"

#include <string.h>

#include <rte_ethdev.h>

/*
 * Up to DPDK 25.07 an application gets the queues' counters with the port's. In 25.11
 * rte_eth_stats_get() keeps them to itself: among the extended statistics they are for some drivers
 * only. Each driver still tells them to who asks as it does.
 */
#ifdef GDRCAP_DPDK_QUEUE_STATS_APART
#include <ethdev_driver.h>

static int queue_errors_get(uint16_t port, const struct rte_eth_stats *stats,
			    uint64_t *queue_errors, uint32_t queues)
{
	struct rte_eth_dev *device = &rte_eth_devices[port];
	struct eth_queue_stats by_queue = { 0 };
	struct rte_eth_stats again = { 0 };
	int ret = device->dev_ops->stats_get(device, &again, &by_queue);

	for (uint32_t q = 0; ret == 0 && q < queues && q < RTE_ETHDEV_QUEUE_STAT_CNTRS; q++)
		queue_errors[q] = by_queue.q_errors[q];
	return ret;
}
#else
static int queue_errors_get(uint16_t port, const struct rte_eth_stats *stats,
			    uint64_t *queue_errors, uint32_t queues)
{
	for (uint32_t q = 0; q < queues && q < RTE_ETHDEV_QUEUE_STAT_CNTRS; q++)
		queue_errors[q] = stats->q_errors[q];
	return 0;
}
#endif

int dpdk_stats_get(uint16_t port, struct rte_eth_stats *stats, uint64_t *queue_errors,
		   uint32_t queues)
{
	int ret = rte_eth_stats_get(port, stats);

	memset(queue_errors, 0, queues * sizeof(*queue_errors));
	return ret == 0 ? queue_errors_get(port, stats, queue_errors, queues) : ret;
}
