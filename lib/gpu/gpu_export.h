/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory as a dma-buf, for dmabuf_add(). */
#ifndef GDRCAP_GPU_EXPORT_H
#define GDRCAP_GPU_EXPORT_H

#include <stddef.h>

/*
 * `context`: the CUcontext that has the memory (rte_gpu_info.context). `base` and `bytes`: whole
 * pages of the host, inside one allocation. Returns a file descriptor for the caller to close;
 * -ENOTSUP: the driver, its kernel modules or the GPU do not make dma-bufs; another negative errno:
 * this memory is none for it. Defined only with CUDA.
 */
int gpu_cuda_export(void *context, void *base, size_t bytes);

#endif
