/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ConnectX ports: what they are called, and the arguments that DPDK's mlx5 driver must get so that
 * frames lie in memory that the CPU cannot read. Control code, before the port is opened.
 */
#ifndef GDRCAP_CONNECTX_H
#define GDRCAP_CONNECTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"

struct connectx_card {
	char pci[16];	    /* "0000:3b:00.0": the name by which EAL knows the port */
	char interface[32]; /* the kernel's, "enp59s0f0np0"; "": none in this network namespace */
	char rdma[32];	    /* "mlx5_0"; "": none, and then the driver cannot open it (mlx5_ib) */
	uint16_t device;    /* PCI device id */
	int numa_node;	    /* -1: unknown */
};

/*
 * What a port's name means, devargs after it aside: a PCI address with or without domain, the
 * kernel's interface, or the RDMA device. `root` stands for /sys; NULL: /sys, or what EAL takes for
 * it (environment variable SYSFS_PCI_DEVICES).
 * 0; -ENOENT: nothing here is called so; -ENODEV: it is not a ConnectX, or the kernel's driver has it
 * not; -ENOTSUP: it is a part of one that cannot be opened by that name.
 */
int connectx_find(struct connectx_card *card, const char *name, const char *root,
		  struct gdrcap_error *error);

/* How the port is going to be used. */
struct connectx_use {
	const struct connectx_card *card;
	bool cpu_reads; /* the CPU can read the frames' memory: not so with memory "device" */
	bool sends, receives;
	bool own_rx; /* it receives by queues of ours: devx.h */
	/* Frames that it receives: lengths in memory, without FCS; count 0: of any length. */
	const uint16_t *lengths;
	size_t length_count;
};

/*
 * From "NAME" or "NAME,devargs" as the user gave it to what rte_dev_probe() is to get: the PCI
 * address, what the user said, and what is missing. What the user said against that the port could
 * not work with is refused with the reason: -EINVAL; a card that cannot be used so: -ENOTSUP.
 */
int connectx_devargs(const char *port, const struct connectx_use *use, char *out, size_t bytes,
		     struct gdrcap_error *error);

/* For people: what connectx_devargs() put into `opened` beyond what the user said in `port`, with
 * the reasons: "KEY=VALUE, KEY=VALUE (why); KEY=VALUE (why)". "" for nothing. */
void connectx_reasons(const char *port, const char *opened, char *text, size_t bytes);

#endif
