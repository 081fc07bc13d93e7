/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a CUDA device for tests of our own queues, got from the CUDA driver, or from what stands
 * in for it (fake_cuda.c), and known to DPDK as that of a gpudev. */
#ifndef SOFT_OWN_GPU_H
#define SOFT_OWN_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: there is no GPU. After EAL; *id: of the gpudev. */
bool own_gpu_start(int16_t *id);

/* At a multiple of 64 KiB; stays until the end. NULL: none. */
void *own_gpu_memory(size_t bytes);
int own_gpu_fill(void *context, void *at, int byte, size_t bytes);
int own_gpu_write(void *at, const void *from, size_t bytes);
int own_gpu_read(const void *at, void *to, size_t bytes);

#endif
