/* SPDX-License-Identifier: BSD-3-Clause */
/* A dma-buf of CUDA memory. */
#include "gpu/gpu_export.h"

#include <errno.h>
#include <stdint.h>

#include <cuda.h>

#include "gpu/cuda_driver.h"

/* Signature and numbers below are those of CUDA 11.7, which brought the call; they are given here
 * because 11.4, the least that is supported, can compile this and its driver may be newer. */
#define EXPORT_ABI 11070
#define HANDLE_DMA_BUF 1      /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
#define ATTRIBUTE_DMA_BUF 124 /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */

struct export_calls {
	CUresult (*context_push)(CUcontext context);
	CUresult (*context_pop)(CUcontext *context);
	CUresult (*context_device)(CUdevice *device);
	CUresult (*device_attribute)(int *value, int attribute, CUdevice device);
	CUresult (*range_handle)(void *handle, CUdeviceptr at, size_t bytes, int type,
				 unsigned long long flags);
};

static int calls_get(struct export_calls *calls)
{
	const struct {
		const char *symbol;
		void **call;
	} table[] = {
		{ "cuCtxPushCurrent", (void **)&calls->context_push },
		{ "cuCtxPopCurrent", (void **)&calls->context_pop },
		{ "cuCtxGetDevice", (void **)&calls->context_device },
		{ "cuDeviceGetAttribute", (void **)&calls->device_attribute },
		{ "cuMemGetHandleForAddressRange", (void **)&calls->range_handle },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (cuda_driver_call(table[i].symbol, EXPORT_ABI, table[i].call) != cudaSuccess ||
		    !*table[i].call)
			return -ENOTSUP;
	return 0;
}

/* In the memory's context. */
static int range_export(const struct export_calls *calls, void *base, size_t bytes)
{
	CUdevice device;
	int supported = 0, fd = -1;
	CUresult result = calls->context_device(&device);

	if (result == CUDA_SUCCESS)
		result = calls->device_attribute(&supported, ATTRIBUTE_DMA_BUF, device);
	if (result != CUDA_SUCCESS || !supported)
		return -ENOTSUP;
	result = calls->range_handle(&fd, (CUdeviceptr)(uintptr_t)base, bytes, HANDLE_DMA_BUF, 0);
	switch (result) {
	case CUDA_SUCCESS:
		return fd;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -ENOTSUP;
	case CUDA_ERROR_INVALID_VALUE:
		return -EINVAL;
	default:
		return -EIO;
	}
}

int gpu_cuda_export(void *context, void *base, size_t bytes)
{
	struct export_calls calls;
	CUcontext popped;
	int ret = calls_get(&calls);

	if (ret < 0)
		return ret;
	if (calls.context_push(context) != CUDA_SUCCESS)
		return -EIO;
	ret = range_export(&calls, base, bytes);
	calls.context_pop(&popped);
	return ret;
}
