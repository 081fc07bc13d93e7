/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where DPDK's releases differ, from 22.11 to 25.11. Meson looks at the DPDK that it finds and
 * defines GDRCAP_DPDK_*; nothing else of ours asks which release it is.
 */
#ifndef GDRCAP_DPDK_RELEASE_H
#define GDRCAP_DPDK_RELEASE_H

#include <stdint.h>

struct rte_eth_stats;

/* As rte_eth_stats_get(); beside it the frames that each of the first `queues` receive queues lost
 * by errors, 0 where the driver does not count them. The caller keeps the port from being closed
 * meanwhile. */
int dpdk_stats_get(uint16_t port, struct rte_eth_stats *stats, uint64_t *queue_errors,
		   uint32_t queues);

/* Since 25.03 the af_packet driver reads what the kernel dropped (PACKET_STATISTICS), which sets it back
 * to 0, and has it in imissed. Before, only kernel_drops.c reads it. */
#ifdef GDRCAP_DPDK_READS_PACKET_DROPS
#define DPDK_READS_PACKET_DROPS 1
#else
#define DPDK_READS_PACKET_DROPS 0
#endif

/* Since 25.07 the mlx5 driver lays all send queues of a port that it makes by DevX into one piece of
 * memory. Without any it asks for a piece of 0 bytes, gets none, and the port does not start.
 * txq_mem_algn=0 has each queue's memory apart, as before; earlier drivers do not know it. */
#ifdef GDRCAP_DPDK_SENDS_TOGETHER
#define DPDK_SENDS_TOGETHER 1
#define DPDK_SENDS_NOTHING ",txq_mem_algn=0" /* of a port that sends nothing */
#else
#define DPDK_SENDS_TOGETHER 0
#define DPDK_SENDS_NOTHING ""
#endif

#endif
