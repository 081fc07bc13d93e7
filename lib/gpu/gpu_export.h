/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a card's driver needs to know of GPU memory and rte_gpudev does not tell. `gpu`: the gpudev
 * id of one of our two drivers' devices; -ENODEV: it is not.
 */
#ifndef GDRCAP_GPU_EXPORT_H
#define GDRCAP_GPU_EXPORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * A dma-buf of exactly these bytes: whole pages of the host, inside one allocation. Returns a file
 * descriptor for the caller to close; -ENOTSUP: the driver, its kernel modules or the GPU do not
 * make dma-bufs; another negative errno: this memory is none for it. gpu_host gives a file that
 * stands for one, of a whole allocation only.
 */
int gpu_export(int16_t gpu, void *base, size_t bytes);

/* 1: both ends lie in memory of this GPU itself; 0: the CPU's, managed, or another GPU's. gpu_host
 * has all memory of this machine. */
int gpu_owns(int16_t gpu, const void *base, size_t bytes);

/* What memory is to a GPU. */
enum gpu_memory_kind {
	GPU_MEMORY_OWN,
	GPU_MEMORY_PINNED, /* the CPU's, at one address for both */
	GPU_MEMORY_CPU,	   /* the CPU's, which the GPU does not reach */
	GPU_MEMORY_MANAGED,
	GPU_MEMORY_OTHER, /* another GPU's */
};
/* Of the byte at `at`; -ENODEV, or another negative errno. *ordinal: whose, of another GPU's. */
int gpu_memory_kind(int16_t gpu, const void *at, int *ordinal);

/* The first of them for a CUDA device. `context`: the CUcontext that has the memory
 * (rte_gpu_info.context). Defined only with CUDA. */
int gpu_cuda_export(void *context, void *base, size_t bytes);

#endif
