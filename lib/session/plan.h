/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the configuration to numbers, before EAL starts and before anything is opened: which GPU,
 * which memory, how large the slots and pools, what is sent. Asked for the impossible, it says
 * which port cannot do it and what can.
 */
#ifndef GDRCAP_PLAN_H
#define GDRCAP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"
#include "port/connectx.h"
#include "port/driver_table.h"
#include "replay/file_frames.h"

#define PLAN_OPENED_BYTES 512u

/* A port by the name that port_open() gets. */
struct plan_port {
	char opened[PLAN_OPENED_BYTES]; /* as configured; a ConnectX's PCI address and devargs */
	struct connectx_card card;	/* pci "": no ConnectX */
};

struct plan {
	uint32_t ports; /* pairs of a receiving and a sending port, or the one kind there is */
	bool receives, sends;	     /* port i is there, tx_port i is */
	bool wire[GDRCAP_PORTS_MAX]; /* port i and tx_port i are the ends of a software wire */
	bool umem;		     /* a port needs its pool's objects in the region */
	bool pci;
	struct plan_port port[GDRCAP_PORTS_MAX], tx_port[GDRCAP_PORTS_MAX];
	bool cuda;		   /* false: the host "GPU" */
	int ordinal;		   /* cuda */
	enum gdrcap_memory memory; /* never AUTO */
	uint32_t queues, burst, descriptors;
	uint16_t frame_bytes_max; /* with FCS */
	uint32_t slot_shift;
	uint32_t pool_slots; /* of each pool */
	uint32_t pools; /* one for each queue of a wire, and of each direction of other ports */
	size_t region_bytes;
	size_t heads_bytes; /* header-data split: of the second region, slots of REGION_HEAD_SHIFT;
			     * 0: none */
	size_t eal_bytes;
	uint32_t streams;	       /* sent */
	struct file_scan pcap, expect; /* frames 0: there is no such file */
	size_t file_memory;	       /* bytes that a file's frames may take */
	uint64_t loops;		       /* UINT64_MAX: for ever */

	uint16_t *lengths; /* frames' lengths in memory, the sender's cycle */
	size_t length_count;
};

int plan_create(struct plan *plan, const struct gdrcap_config *config, struct gdrcap_error *error);
void plan_destroy(struct plan *plan);

const char *plan_memory_name(enum gdrcap_memory memory);

#endif
