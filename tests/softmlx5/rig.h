/* SPDX-License-Identifier: BSD-3-Clause */
/* Two software cards with DPDK's driver on them: what the tests have in common. */
#ifndef SOFT_RIG_H
#define SOFT_RIG_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

#define RIG_ETHERTYPE 0x88b5
#define RIG_BUFFER 2048 /* bytes of a buffer, with its headroom */

/* Memory of a pool. The driver sees device, the test looks through host. */
struct rig_memory {
	uint8_t *device;
	uint8_t *host;
	size_t size;
	int file;
};

struct rig_port {
	uint16_t id;
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t descriptors;
	uint64_t rx_offloads;
	uint64_t tx_offloads;
	uint64_t rss; /* 0: none */
	bool isolated;
	bool interrupts;	   /* of receive queues */
	struct rte_mempool *pool;  /* of received frames */
	struct rte_mempool *pool2; /* of their payload: buffer split after split bytes */
	uint16_t split;
	uint16_t mtu; /* 0: as it is */
};

/*
 * Starts EAL with both cards. Arguments of the program: "verbs" or "devx" (by which the driver
 * makes its queues), then further devargs of both cards; or none. Exits on an error.
 */
void rig_start(int argc, char **argv);
void rig_stop(void);

/* Frames from port 0 to port 1, one burst after the other, until all are there or no more come. */
struct rig_run {
	/* In. */
	uint64_t count;
	uint32_t shortest; /* bytes; lengths go round from here... */
	uint32_t longest;  /* ...to here */
	uint16_t ether_type;
	uint16_t tx_queue;
	bool other_way; /* from port 1 to port 0 */
	bool lossy;	/* frames may be missing */
	/* Out. */
	uint64_t sent;
	uint64_t received;
	uint64_t queue[16]; /* received, by queue */
	uint64_t damaged;
	uint64_t disordered; /* number not that of the one before plus one */
	uint64_t marked[2];  /* frames with a mark, and the last one's */
	uint64_t stamped;    /* time stamps, each not before the last */
	uint64_t last_stamp;
	uint64_t lost; /* as far as noticed on the way */
};

struct rig {
	struct rig_memory memory;
	struct rte_mempool *pool;
	struct rig_port port[2];
};

/* The usual: memory that the CPU may not touch, one queue each way, isolated. For a group's setup.
 */
int rig_setup(void **state);
int rig_teardown(void **state);
/* Both ports as rig->port says. */
void rig_ports_start(struct rig *rig);
/* For a test's teardown: rules gone, ports stopped, rig->port and the faults back to the usual. */
int rig_reset(void **state);
void rig_run(struct rig *rig, struct rig_run *run);

/* Memory that the CPU may touch, or (hidden) not. */
void rig_memory(struct rig_memory *memory, size_t size, bool hidden);
/* Lets all cards reach it. 0 or negative errno. */
int rig_map(const struct rig_memory *memory);
/* A pool of buffers in it; call rig_map() before. */
struct rte_mempool *rig_pool(const char *name, const struct rig_memory *memory);
/* Where the test finds what stands at a device address; without a host side, there. */
static inline uint8_t *rig_host(const struct rig_memory *memory, void *address)
{
	return memory->host != NULL ? memory->host + ((uint8_t *)address - memory->device)
				    : address;
}

/* Configures and starts; fails the test on an error. */
void rig_port_start(const struct rig_port *port);

/* Frames with that EtherType to a queue, or (queues > 1) to several by RSS. mark 0: none. */
struct rte_flow *rig_rule(uint16_t port, uint16_t ether_type, uint16_t queue, uint32_t mark,
			  struct rte_flow_error *error);

/* Fills a frame in the pool's memory: addresses, EtherType, then a pattern of its number. */
struct rte_mbuf *rig_frame(struct rte_mempool *pool, const struct rig_memory *memory,
			   uint32_t length, uint16_t ether_type, uint64_t number);
/* Bytes that differ from what rig_frame() put in; *number is the frame's. */
unsigned int rig_check(const struct rte_mbuf *mbuf, const struct rig_memory *memory,
		       uint64_t *number);

/* An extended statistic of the port; UINT64_MAX: it has none of that name. */
uint64_t rig_xstat(uint16_t port, const char *name);

#endif
