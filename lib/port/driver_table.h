/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts about ethdev drivers, in one table: what memory they can write, which of their counters
 * are exact, their largest frame. rte_dev_dma_map() returns 0 on a vdev and does nothing, so it
 * cannot be asked.
 */
#ifndef GDRCAP_DRIVER_TABLE_H
#define GDRCAP_DRIVER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum driver_writes {
	DRIVER_WRITES_DMA, /* any memory that it was allowed to register */
	DRIVER_PASSES_ON,  /* hands mbufs over untouched: any memory */
	DRIVER_COPIES,	   /* with the CPU: memory that the CPU can address */
};

struct driver_facts {
	const char *prefix; /* of the vdev's name; ConnectX: of the driver's */
	enum driver_writes writes;
	bool umem;	   /* the mempool's objects must lie in the region (AF_XDP) */
	bool missed_exact; /* imissed counts every frame lost for want of buffers */
	bool error_exact;
	bool tx_error_counted; /* oerrors counts what it took and could not send */
	bool system_calls;     /* its bursts enter the kernel */
	bool needs_root;
	bool reads_first; /* takes a frame from its source before it has a slot for it, and loses it */
	bool no_vlan;	  /* does not deliver 802.1Q tags into slots like ours */
	bool joins;	  /* as a client it starts only when its server is there */
	bool both_ways; /* insists on as many receive as send queues */
	bool interface; /* it is an interface of the kernel's, which its devarg iface names */
	bool sleeps; /* idle threads sleep unless they are told to poll: no card, whose frames cannot wait */
	bool shared_mbufs;  /* its frames lie in the memory of whoever plays into it, not in ours:
			    * refused */
	uint16_t frame_max; /* bytes with FCS that it carries in one segment; 0: no own limit */
	uint16_t room_min;  /* bytes after the headroom that it insists on in a slot */
	bool room_fcs;	    /* ... and for the FCS of the largest frame, which it takes off */
	const char *what;   /* for people */
};

/* Facts by the port's string in the configuration or by a driver's name; an unknown driver is
 * treated as one that copies and whose counters are not exact. Never NULL. */
const struct driver_facts *driver_facts_find(const char *name);

/* True for "ring:NAME"; true for a PCI address such as 0000:3b:00.0 (devargs may follow). */
bool port_name_is_wire(const char *name);
bool port_name_is_pci(const char *name);
/* True for net_pcap with rx_pcap=FILE. */
bool port_name_has_files(const char *name);
/* True for such a port that only receives: its files are read by us (replay/file_source.h). */
bool port_name_is_file(const char *name);
/* True for "net_..." and "eth_...": a DPDK vdev, of whichever driver. */
bool port_name_is_vdev(const char *name);
/* True for all others: PCI address, kernel interface or RDMA device of a ConnectX, if there is one
 * of that name: connectx_find() knows. */
bool port_name_is_connectx(const char *name);
/* True for a port that its peer in the same process connects to, so it must be opened first. */
bool port_name_listens(const char *name);
/* True for a port that needs its peer, in another process, to be there when it starts. */
bool port_name_joins(const char *name);

#endif
