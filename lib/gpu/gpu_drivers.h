/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two gpudev drivers, DPDK vdev drivers behind the public rte_gpudev API. A static archive
 * drops constructors nobody refers to, so the library calls these before rte_eal_init().
 */
#ifndef GDRCAP_GPU_DRIVERS_H
#define GDRCAP_GPU_DRIVERS_H

#include <stddef.h>

/* GPUDirect RDMA pins GPU memory in pages of this size: no two allocations share one. */
#define GPU_PAGE_BYTES ((size_t)64 << 10)

/* vdev "gpu_host", devargs "guard=0|1": memory and CPU threads of this machine. */
void gpu_host_register(void);
/* vdev "gpu_cuda", devargs "ordinal=N": any CUDA device. Does nothing in a build without. */
void gpu_cuda_register(void);
/* CUDA devices that the driver sees; 0 without CUDA. `why` says why there is none (may be NULL). */
int gpu_cuda_count(char *why, unsigned int why_bytes);

#endif
