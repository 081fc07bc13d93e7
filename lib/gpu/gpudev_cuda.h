/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two halves of the CUDA gpudev share: its device, and what a failed call of CUDA's becomes. */
#ifndef GPU_GPUDEV_CUDA_H
#define GPU_GPUDEV_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "gpu/gpudev_common.h"

#define CUDA_DRIVER "gpu_cuda"

struct gdrcopy;

struct cuda_calls {
	CUresult (*context_retain)(CUcontext *context, CUdevice device);
	CUresult (*context_release)(CUdevice device);
	CUresult (*context_push)(CUcontext context);
	CUresult (*context_pop)(CUcontext *context);
	CUresult (*pointer_set)(const void *value, CUpointer_attribute attribute, CUdeviceptr at);
};

struct cuda_device {
	struct gpu_device common;
	struct cuda_calls calls;
	int ordinal;	    /* also the CUdevice: CUDA numbers both alike */
	CUcontext context;  /* the primary one, which the Runtime uses */
	int writes_ordered; /* GPUDirect writes need no flush to be seen by this device */
	int can_flush;
	struct gdrcopy *gdrcopy; /* opened at the first mapping */
};

/* The memory of a device, and its end: gpudev_cuda_memory.c. */
extern const struct gpu_backend gpu_cuda_backend;

/* Log what failed, set rte_errno and return the negative errno. They also take the error out of the thread's
 * last-error slot, where the application's own check of a kernel launch would find it. */
int gpu_cuda_fail(cudaError_t error, const char *call);
int gpu_cuda_driver_fail(CUresult result, const char *call);

#endif
