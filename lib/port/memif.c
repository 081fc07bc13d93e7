/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif peer that leaves.
 *
 * DPDK's driver then marks the connection as broken, and unmaps the memory that it shared with the
 * peer, from EAL's interrupt thread: also while a worker, which found the connection whole, copies
 * a burst into that memory. So the driver's call of memif_free_regions() is led through here, and
 * waits until no worker can be there.
 *
 * How it is linked: as lib/memory/dmabuf.h says of ibv_reg_mr_iova2(), with
 * -Wl,--wrap=memif_free_regions. It needs the driver as an archive; the two functions that meet are
 * in two of its files. Read in DPDK 22.11, run there.
 */
#include "thread.h"

struct rte_eth_dev;

/* The linker gives these names their meaning: --wrap. */
void __real_memif_free_regions(struct rte_eth_dev *device);
void __wrap_memif_free_regions(struct rte_eth_dev *device);

void __wrap_memif_free_regions(struct rte_eth_dev *device)
{
	threads_go_round();
	__real_memif_free_regions(device);
}
