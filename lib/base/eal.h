/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's EAL: started once a process, or found started by the embedder. */
#ifndef GDRCAP_EAL_H
#define GDRCAP_EAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"

struct eal_needs {
	size_t memory_bytes; /* EAL's own: mempools, rings, queues; not the frames' region */
	bool pci;	     /* a port is a PCI device */
};

/* What to do where it has none left: it does not grow. */
#define EAL_MEMORY_REMEDY                                                                          \
	"EAL's memory is as large as the process's first session asked for: create the one with "  \
	"the largest pool first, or reserve hugepages"

int eal_start(const struct eal_needs *needs, struct gdrcap_error *error);

/* The CPUs this process may use, those of `numa_node` first (-1: any); or exactly those asked for, where
 * any are. Returns the count, or a negative errno. */
int eal_cpus(const int *asked, size_t asked_count, int numa_node, int *cpus, size_t max,
	     struct gdrcap_error *error);

#endif
