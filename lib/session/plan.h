/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the settings come to on this machine, before EAL starts and before anything is opened: which
 * cards, which GPU, which memory, how large the slots and pools. Asked for the impossible, it says
 * which port cannot do it and what can.
 */
#ifndef GDRCAP_PLAN_H
#define GDRCAP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "gdrcap.h"
#include "port/connectx.h"
#include "replay/file_frames.h"

#define PLAN_OPENED_BYTES 512u

/* A port by the name that port_open() gets. */
struct plan_port {
	char opened[PLAN_OPENED_BYTES]; /* as configured; a ConnectX's PCI address and devargs */
	struct connectx_card card;	/* pci "": no ConnectX */
};

struct plan {
	uint32_t
		idle_us; /* idle workers sleep, for so long at most where nothing wakes them; 0: they poll */
	bool idle_auto; /* it was not asked for */
	bool umem;	/* a port needs its pool's objects in the region */
	bool pci;
	struct plan_port port[GDRCAP_PORTS_MAX], tx_port[GDRCAP_PORTS_MAX];
	bool cuda;		   /* false: the host "GPU" */
	int ordinal;		   /* cuda */
	enum gdrcap_memory memory; /* never AUTO */
	uint16_t frame_bytes_max;  /* with FCS */
	uint32_t slot_shift;
	uint32_t pool_slots; /* of each pool */
	uint32_t pools; /* one for each queue of a wire, and of each direction of other ports */
	size_t region_bytes;
	size_t heads_bytes; /* header-data split: of the second region, slots of REGION_HEAD_SHIFT;
			     * 0: none */
	/* The caller's send queues, where their slots are in memory of another kind: `pools` has none of
	 * theirs. 0 and AUTO: they are in the region. */
	uint32_t tx_pools;
	enum gdrcap_memory tx_memory;
	size_t tx_bytes;
	size_t eal_bytes;
	struct file_scan pcap, expect; /* frames 0: there is no such file */
	size_t file_memory;	       /* bytes that a file's frames may take */
};

int plan_create(struct plan *plan, const struct settings *settings, struct gdrcap_error *error);

const char *plan_memory_name(enum gdrcap_memory memory);

#endif
