/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a CUDA device: allocated, registered, mapped, exported and made visible. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_common.h>

#include "gpu/gdrcopy.h"
#include "gpu/gpu_export.h"
#include "gpu/gpudev_cuda.h"

static struct cuda_device *cuda_device_of(struct gpu_device *device)
{
	return container_of(device, struct cuda_device, common);
}

/* The device for the calls up to device_leave(). Not cudaSetDevice(): setting the caller's device
 * again afterwards would make a context on a GPU that nobody uses. */
static int device_enter(struct cuda_device *cuda)
{
	CUresult result = cuda->calls.context_push(cuda->context);

	return result == CUDA_SUCCESS ? 0 : gpu_cuda_driver_fail(result, "cuCtxPushCurrent");
}

static void device_leave(struct cuda_device *cuda)
{
	CUcontext context;
	CUresult result = cuda->calls.context_pop(&context);

	if (result != CUDA_SUCCESS)
		gpu_cuda_driver_fail(result, "cuCtxPopCurrent");
}

/* cudaMalloc() promises 256 bytes and often gives more: more is asked for only if need be. */
static int memory_get(size_t bytes, size_t align, struct gpu_block *block)
{
	cudaError_t error = cudaMalloc(&block->base, bytes);

	block->base_bytes = bytes;
	if (error == cudaSuccess && (uintptr_t)block->base % align) {
		error = cudaFree(block->base);
		if (error != cudaSuccess)
			return gpu_cuda_fail(error, "cudaFree");
		block->base_bytes = bytes + align;
		error = cudaMalloc(&block->base, block->base_bytes);
	}
	if (error != cudaSuccess)
		return gpu_cuda_fail(error, "cudaMalloc");
	block->start = RTE_ALIGN_CEIL((uintptr_t)block->base, align);
	return 0;
}

/* The caller's text has these words: it cannot know what is free. */
static void shortage_log(const struct cuda_device *cuda, size_t bytes)
{
	size_t available, total;

	if (cudaMemGetInfo(&available, &total) == cudaSuccess)
		device_log(ERR, &cuda->common, "%zu MiB are asked for, %zu of %zu MiB are free",
			   bytes >> 20, available >> 20, total >> 20);
}

static int cuda_allocate(struct gpu_device *device, struct gpu_block *block, size_t align)
{
	struct cuda_device *cuda = cuda_device_of(device);
	unsigned int on = 1;
	CUresult result;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	ret = memory_get(block->bytes, align, block);
	if (ret == -ENOMEM)
		shortage_log(cuda, block->bytes);
	if (ret)
		goto out;
	/* Without it a copy may return before it is done, and a card's DMA would read what was
	 * there before. */
	result = cuda->calls.pointer_set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
					 (CUdeviceptr)(uintptr_t)block->base);
	if (result != CUDA_SUCCESS) {
		ret = gpu_cuda_driver_fail(result, "cuPointerSetAttribute(SYNC_MEMOPS)");
		cudaFree(block->base);
	}
out:
	device_leave(cuda);
	return ret;
}

static int cuda_release(struct gpu_device *device, struct gpu_block *block)
{
	struct cuda_device *cuda = cuda_device_of(device);
	cudaError_t error;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	error = cudaFree(block->base);
	if (error != cudaSuccess)
		ret = gpu_cuda_fail(error, "cudaFree");
	device_leave(cuda);
	return ret;
}

static int cuda_register_host(struct gpu_device *device, struct gpu_block *block)
{
	struct cuda_device *cuda = cuda_device_of(device);
	void *host = (void *)block->start, *gpu = NULL;
	cudaError_t error;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	error = cudaHostRegister(host, block->bytes,
				 cudaHostRegisterPortable | cudaHostRegisterMapped);
	if (error != cudaSuccess) {
		ret = gpu_cuda_fail(error, "cudaHostRegister");
		goto out;
	}
	error = cudaHostGetDevicePointer(&gpu, host, 0);
	if (error != cudaSuccess)
		ret = gpu_cuda_fail(error, "cudaHostGetDevicePointer");
	else if (gpu != host) {
		/* gpudev has one address for both sides. */
		device_log(ERR, device,
			   "registered memory has another address on this GPU (%p, "
			   "here %p): use device memory",
			   gpu, host);
		ret = -ENOTSUP;
	}
	if (ret)
		cudaHostUnregister(host);
out:
	device_leave(cuda);
	return ret;
}

static int cuda_unregister_host(struct gpu_device *device, struct gpu_block *block)
{
	struct cuda_device *cuda = cuda_device_of(device);
	cudaError_t error;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	error = cudaHostUnregister((void *)block->start);
	if (error != cudaSuccess)
		ret = gpu_cuda_fail(error, "cudaHostUnregister");
	device_leave(cuda);
	return ret;
}

static int cuda_map(struct gpu_device *device, const struct gpu_block *allocation,
		    struct gpu_block *block)
{
	struct cuda_device *cuda = cuda_device_of(device);
	struct gdrcopy_mapping mapping;
	char why[256];
	int ret = 0;

	if (!cuda->gdrcopy)
		ret = gdrcopy_open(&cuda->gdrcopy, why, sizeof(why));
	if (ret) {
		device_log(ERR, device, "no CPU mapping of GPU memory: %s", why);
		return ret;
	}
	ret = device_enter(cuda);
	if (ret)
		return ret;
	ret = gdrcopy_map(cuda->gdrcopy, block->start, block->bytes, &mapping);
	device_leave(cuda);
	if (ret) {
		device_log(ERR, device,
			   "no CPU mapping of %zu bytes at %#" PRIxPTR ": GDRCopy "
			   "says %s; is the range larger than the GPU's BAR1 (see nvidia-smi -q)?",
			   block->bytes, block->start, strerror(-ret));
		return ret;
	}
	block->cpu = mapping.cpu;
	block->base = mapping.base;
	block->base_bytes = mapping.base_bytes;
	block->handle = mapping.handle;
	return 0;
}

static int cuda_unmap(struct gpu_device *device, struct gpu_block *block)
{
	struct cuda_device *cuda = cuda_device_of(device);
	const struct gdrcopy_mapping mapping = {
		.cpu = block->cpu,
		.base = block->base,
		.base_bytes = block->base_bytes,
		.handle = block->handle,
	};
	int ret = gdrcopy_unmap(cuda->gdrcopy, &mapping);

	if (ret)
		device_log(ERR, device, "mapping of %#" PRIxPTR " stays: GDRCopy says %s",
			   block->start, strerror(-ret));
	return ret;
}

static int cuda_export(struct gpu_device *device, const struct gpu_block *allocation, void *base,
		       size_t bytes)
{
	return gpu_cuda_export(cuda_device_of(device)->context, base, bytes);
}

static int kind_of(const struct cuda_device *cuda, const struct cudaPointerAttributes *attributes,
		   const void *at)
{
	switch (attributes->type) {
	case cudaMemoryTypeDevice:
		return attributes->device == cuda->ordinal ? GPU_MEMORY_OWN : GPU_MEMORY_OTHER;
	case cudaMemoryTypeHost:
		return attributes->devicePointer == at ? GPU_MEMORY_PINNED : GPU_MEMORY_CPU;
	case cudaMemoryTypeManaged:
		return GPU_MEMORY_MANAGED;
	default:
		return GPU_MEMORY_CPU;
	}
}

static int cuda_kind(struct gpu_device *device, const void *at, int *ordinal)
{
	struct cuda_device *cuda = cuda_device_of(device);
	struct cudaPointerAttributes attributes;
	cudaError_t error;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	error = cudaPointerGetAttributes(&attributes, at);
	*ordinal = -1;
	if (error == cudaSuccess) {
		ret = kind_of(cuda, &attributes, at);
		*ordinal = attributes.device;
	} else {
		(void)cudaGetLastError(); /* the application's own check would find it */
		ret = GPU_MEMORY_CPU;
	}
	device_leave(cuda);
	return ret;
}

/*
 * Two steps: the CPU's write-combined stores leave it; then, unless the device orders what comes
 * over PCIe before its own later reads, they are flushed. Silent, since it may be called often:
 * that a device can do neither was said at the start.
 */
static int cuda_write_barrier(struct gpu_device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);
	cudaError_t error;
	int ret;

	rte_wmb();
	if (cuda->writes_ordered)
		return 0;
	if (!cuda->can_flush)
		return -ENOTSUP;
	ret = device_enter(cuda);
	if (ret)
		return ret;
	error = cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
						   cudaFlushGPUDirectRDMAWritesToOwner);
	if (error != cudaSuccess)
		ret = gpu_cuda_fail(error, "cudaDeviceFlushGPUDirectRDMAWrites");
	device_leave(cuda);
	return ret;
}

static void cuda_destroy(struct gpu_device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);
	CUresult result;

	if (cuda->gdrcopy)
		gdrcopy_close(cuda->gdrcopy);
	result = cuda->calls.context_release(cuda->ordinal);
	if (result != CUDA_SUCCESS)
		gpu_cuda_driver_fail(result, "cuDevicePrimaryCtxRelease");
	free(cuda);
}

const struct gpu_backend gpu_cuda_backend = {
	.allocate = cuda_allocate,
	.release = cuda_release,
	.register_host = cuda_register_host,
	.unregister_host = cuda_unregister_host,
	.map = cuda_map,
	.unmap = cuda_unmap,
	.export = cuda_export,
	.kind = cuda_kind,
	.write_barrier = cuda_write_barrier,
	.destroy = cuda_destroy,
};
