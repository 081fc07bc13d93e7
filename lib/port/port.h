/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet ports. Every source and sink of frames is a DPDK ethdev; this file opens it by name,
 * configures its queues over the session's mempools, and reads its counters.
 */
#ifndef GDRCAP_PORT_H
#define GDRCAP_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"
#include "port/driver_table.h"

struct rte_mempool;
struct rte_device;
struct rte_ring;
struct kernel_drops;
struct held_files;

struct port_queues {
	uint16_t rx_queues, tx_queues; /* 0: that direction is not used */
	uint16_t descriptors;
	uint16_t frame_bytes_max; /* with FCS */
	bool sends;		/* frames are sent; a driver may want send queues where none are */
	bool segments;		/* ask for sending of frames in pieces, where the port has it */
	bool send_on_timestamp; /* ask for it: the port has it */
	bool rx_timestamps;	/* the same of arrival times */
	bool rx_interrupts;	/* a receiver may sleep until a frame comes; taken back where the
				 * driver refuses: port_sleep.h */
	struct rte_mempool *const *rx_pool; /* one a queue */
	/* Header-data split: each frame's first `split` bytes go into mbufs of head_pool, the rest
	 * into a chained one of rx_pool. 0: whole frames. */
	uint16_t split;
	struct rte_mempool *const *head_pool;
};

struct port {
	char name[256];	 /* as the user calls it */
	char device[64]; /* EAL device to remove at close; "" when EAL had it before us */
	const struct driver_facts *facts;
	uint16_t id; /* ethdev port id */
	uint16_t rx_queues, tx_queues;
	int numa_node;	   /* -1 unknown */
	bool isolated;	   /* receives only what rules say: they are to be made after the start */
	uint32_t cut_from; /* a received frame of so many bytes in memory, or more, may have been
			      longer: only its beginning came. 0: it is whole, or a chain */
	bool open, started;
	uint16_t mtu_before; /* of the kernel's interface under a ConnectX, given back at close; 0:
				unknown */
	struct port_queues setup;   /* as configured, for a restart */
	int hears_all;		    /* a socket for which its interface is promiscuous; 0: none */
	struct kernel_drops *drops; /* what the kernel missed for it; NULL: the driver says it, or
				       nobody */
	struct held_files *held;    /* that it sends into once the run starts; NULL: none */
	/* Counters at start: ethdev statistics are since the device was opened. */
	uint64_t missed_base, error_base, tx_error_base, tx_frames_base, tx_bytes_base;
};

/* Creates or finds the ethdev that `name` means (not a wire): for a ConnectX, what
 * connectx_devargs() made of it. `named`: as the user calls it. */
int port_open(struct port *port, const char *name, const char *named, struct gdrcap_error *error);

/* Why no port could be opened: there are as many as DPDK can have, which is told as -ENOSPC. */
bool port_none_is_left(const char *name, struct gdrcap_error *error);

/* Both ends of a software wire of `queues` queues: what `sender` sends on queue q, `receiver`
 * receives on queue q; the mbufs themselves travel. */
struct port_wire {
	struct rte_ring *forth[GDRCAP_QUEUES_MAX], *back[GDRCAP_QUEUES_MAX];
	uint16_t queues;
};
int port_wire_open(struct port_wire *wire, struct port *sender, struct port *receiver,
		   const char *name, uint16_t queues, uint32_t frames, struct gdrcap_error *error);
void port_wire_close(struct port_wire *wire);

int port_configure(struct port *port, const struct port_queues *queues, struct gdrcap_error *error);
int port_start(struct port *port, struct gdrcap_error *error);
void port_stop(struct port *port);
void port_close(struct port *port);

/* driver_facts.room_min of a port, with the devargs that it is opened with. */
uint32_t port_room_min(const char *name);
struct rte_device *port_device(const struct port *port);
/* Of the interface under a port whose driver does not tell when that is gone; 0: there is none. */
unsigned int port_interface_index(const struct port *port);
bool port_link_up(const struct port *port);
/* True when the driver says that it can: before port_configure(). */
bool port_has_split(const struct port *port);
bool port_has_rx_timestamps(const struct port *port);
/* Frames in more than one piece; a wire would hand them over as they are. */
bool port_has_tx_segments(const struct port *port);
/*
 * Stops a port, if it still runs, configures it as it was and starts it again, its counters going
 * on: a receive queue in error leaves that state so. Nobody may poll it or ask for its counters
 * meanwhile; its rules are to be destroyed before and made after. Extended statistics begin anew in
 * the mlx5 driver: xstats_go_on().
 */
int port_restart(struct port *port, struct gdrcap_error *error);

/* Throws away what its receive queues have, `most` frames of each at most. Nobody polls it. */
void port_flush(const struct port *port, uint32_t most);

struct port_counters {
	/* Since port_start(); see kernel_drops.h. */
	uint64_t missed, error, tx_error, tx_frames, tx_bytes;
	uint64_t rx_nombuf; /* diagnostic: polls on mlx5 */
};
/* One thread at a time. */
void port_counters(const struct port *port, struct port_counters *counters);
/* True when `missed` is every frame that was lost for want of room. */
bool port_missed_exact(const struct port *port);

#endif
