/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine consists of: found once, before the checks, which all look at it. */
#ifndef DOCTOR_MACHINE_H
#define DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/tree.h"

#define MACHINE_GPUS_MAX 32u
#define MACHINE_CARDS_MAX 64u	/* physical functions first */
#define MACHINE_BRIDGES_MAX 16u /* on the way from a device to its root complex */

enum distribution {
	DISTRIBUTION_OTHER,
	DISTRIBUTION_DEBIAN,
	DISTRIBUTION_UBUNTU,
	DISTRIBUTION_RHEL,
};

/* A PCI function and the way to it, root port first. */
struct machine_pci {
	char address[16]; /* "0000:3b:00.0" */
	char host[16];	  /* of its host bridge: "pci0000:3a" */
	char bridge[MACHINE_BRIDGES_MAX][16];
	uint32_t bridges;
	uint16_t vendor, device;
	uint32_t class;	 /* 24 bits */
	int numa_node;	 /* -1: unknown */
	char driver[32]; /* "": none */
	bool virtual_function;
};

struct machine_gpu {
	struct machine_pci pci;
	char name[64];	  /* "NVIDIA H200"; "": unknown */
	int minor;	  /* /dev/nvidiaN; -1: unknown */
	int cuda_ordinal; /* in this environment; -1: the driver did not say */
};

struct machine_card { /* Ethernet or InfiniBand function of NVIDIA (Mellanox) */
	struct machine_pci pci;
	char interface[32]; /* "": none in this network namespace */
	char rdma[32];	    /* "mlx5_0"; "": none */
	bool connectx;	    /* the mlx5 driver of DPDK knows it */
	const char *model;  /* "ConnectX-6 Dx"; of others "" */
};

struct machine {
	enum distribution distribution;
	char distribution_name[64]; /* "Debian GNU/Linux 12 (bookworm)"; "": unknown */
	char kernel[128];	    /* release: "6.1.0-18-amd64" */
	char virtual_machine[32];   /* "": bare metal, as far as can be seen */
	char container[32]; /* "docker", "kubernetes", ..., "container"; "": none, as far as can
			     * be seen */
	bool root;	    /* the examiner has CAP_SYS_ADMIN */
	struct machine_gpu gpu[MACHINE_GPUS_MAX];
	struct machine_card card[MACHINE_CARDS_MAX];
	uint32_t gpus, cards;
	uint32_t numa_nodes; /* 0: the kernel tells none */
};

/* Names of devices and interfaces are left out where they have other characters than letters,
 * digits and "._:@-": they become part of commands. On a machine of one NUMA node that is
 * everything's, also where the firmware does not say so. */
void machine_find(struct machine *machine, struct tree *tree);

/* The way between two functions, worse ones greater, as nvidia-smi topo names them. */
enum topology {
	TOPOLOGY_PIX,  /* one PCIe switch at most */
	TOPOLOGY_PXB,  /* several, not the root complex */
	TOPOLOGY_PHB,  /* through one host bridge */
	TOPOLOGY_NODE, /* through several of one NUMA node */
	TOPOLOGY_SYS,  /* between NUMA nodes */
	TOPOLOGY_UNKNOWN,
};
enum topology machine_topology(const struct machine_pci *a, const struct machine_pci *b);
const char *topology_name(enum topology topology);

/* True for "0000:3b:00.0". */
bool machine_is_pci(const char *name);
/* True for a name that may stand in a command. */
bool machine_is_name(const char *name);

#endif
