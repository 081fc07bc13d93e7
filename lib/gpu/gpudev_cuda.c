/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any CUDA device as a gpudev: CUDA is asked, not a table of PCI ids. Only the CUDA Runtime is
 * linked; the few driver calls come through its entry-point query, so the program starts on a
 * machine without libcuda too.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <rte_atomic.h>
#include <rte_common.h>
#include <rte_errno.h>

#include "gpu/cuda_driver.h"
#include "gpu/gdrcopy.h"
#include "gpu/gpu_export.h"
#include "gpu/gpudev_common.h"

#define CUDA_DRIVER "gpu_cuda"
/* Signatures of the driver calls below are those of this version, the least that is supported. */
#define CUDA_DRIVER_ABI 11040

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

static int cuda_logtype;

static struct cuda_device *cuda_device_of(struct gpu_device *device)
{
	return container_of(device, struct cuda_device, common);
}

/* ---- errors ---- */

static int cuda_errno(cudaError_t error)
{
	switch (error) {
	case cudaErrorMemoryAllocation:
		return -ENOMEM;
	case cudaErrorInvalidValue:
		return -EINVAL;
	case cudaErrorHostMemoryAlreadyRegistered:
		return -EEXIST;
	case cudaErrorHostMemoryNotRegistered:
		return -ENOENT;
	case cudaErrorNotSupported:
		return -ENOTSUP;
	case cudaErrorNotPermitted:
		return -EPERM;
	case cudaErrorDevicesUnavailable:
		return -EBUSY;
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInitializationError:
		return -ENODEV;
	default:
		return -EIO;
	}
}

/* Also takes the error out of the thread's last-error slot, where the application's own check of a
 * kernel launch would find it. */
static int cuda_fail(cudaError_t error, const char *call)
{
	(void)cudaGetLastError();
	gpu_log(ERR, cuda_logtype, CUDA_DRIVER, "%s: %s (%s)", call, cudaGetErrorString(error),
		cudaGetErrorName(error));
	rte_errno = -cuda_errno(error);
	return cuda_errno(error);
}

/* CUresult and cudaError_t have the same numbers for what the calls here can return. */
static int driver_fail(CUresult result, const char *call)
{
	return cuda_fail((cudaError_t)result, call);
}

int gpu_cuda_count(char *why, unsigned int why_bytes)
{
	int count = 0, version = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error == cudaSuccess && count > 0)
		return count;
	(void)cudaGetLastError();
	if (!why)
		return 0;
	if (cudaDriverGetVersion(&version) != cudaSuccess)
		version = 0;
	(void)cudaGetLastError();
	if (version == 0)
		snprintf(why, why_bytes,
			 "no NVIDIA driver (libcuda.so.1) here: install it, and in "
			 "a container run with --gpus all");
	else if (error == cudaErrorInsufficientDriver)
		snprintf(why, why_bytes,
			 "the NVIDIA driver is too old: it knows CUDA %d.%d, this "
			 "program was built with %d.%d; update the driver",
			 version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
			 CUDART_VERSION % 1000 / 10);
	else if (error == cudaErrorNoDevice || error == cudaSuccess)
		snprintf(why, why_bytes,
			 "the NVIDIA driver sees no GPU: check nvidia-smi and "
			 "CUDA_VISIBLE_DEVICES");
	else
		snprintf(why, why_bytes,
			 "CUDA does not start: %s (%s); check nvidia-smi and the "
			 "kernel log",
			 cudaGetErrorString(error), cudaGetErrorName(error));
	return 0;
}

/* ---- the driver's calls and the device's context ---- */

static int driver_call_get(const char *symbol, void **call)
{
	const cudaError_t error = cuda_driver_call(symbol, CUDA_DRIVER_ABI, call);

	if (error != cudaSuccess)
		return cuda_fail(error, symbol);
	if (*call)
		return 0;
	gpu_log(ERR, cuda_logtype, CUDA_DRIVER, "the NVIDIA driver lacks %s: update it", symbol);
	rte_errno = ENOTSUP;
	return -ENOTSUP;
}

static int driver_calls_get(struct cuda_calls *calls)
{
	const struct {
		const char *symbol;
		void **call;
	} table[] = {
		{ "cuDevicePrimaryCtxRetain", (void **)&calls->context_retain },
		{ "cuDevicePrimaryCtxRelease", (void **)&calls->context_release },
		{ "cuCtxPushCurrent", (void **)&calls->context_push },
		{ "cuCtxPopCurrent", (void **)&calls->context_pop },
		{ "cuPointerSetAttribute", (void **)&calls->pointer_set },
	};
	int ret = 0;

	for (unsigned int i = 0; i < RTE_DIM(table) && !ret; i++)
		ret = driver_call_get(table[i].symbol, table[i].call);
	return ret;
}

/* The device for the calls up to device_leave(). Not cudaSetDevice(): setting the caller's device
 * again afterwards would make a context on a GPU that nobody uses. */
static int device_enter(struct cuda_device *cuda)
{
	CUresult result = cuda->calls.context_push(cuda->context);

	return result == CUDA_SUCCESS ? 0 : driver_fail(result, "cuCtxPushCurrent");
}

static void device_leave(struct cuda_device *cuda)
{
	CUcontext context;
	CUresult result = cuda->calls.context_pop(&context);

	if (result != CUDA_SUCCESS)
		driver_fail(result, "cuCtxPopCurrent");
}

/* ---- memory ---- */

/* cudaMalloc() promises 256 bytes and often gives more: more is asked for only if need be. */
static int memory_get(size_t bytes, size_t align, struct gpu_block *block)
{
	cudaError_t error = cudaMalloc(&block->base, bytes);

	block->base_bytes = bytes;
	if (error == cudaSuccess && (uintptr_t)block->base % align) {
		error = cudaFree(block->base);
		if (error != cudaSuccess)
			return cuda_fail(error, "cudaFree");
		block->base_bytes = bytes + align;
		error = cudaMalloc(&block->base, block->base_bytes);
	}
	if (error != cudaSuccess)
		return cuda_fail(error, "cudaMalloc");
	block->start = RTE_ALIGN_CEIL((uintptr_t)block->base, align);
	return 0;
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
	if (ret)
		goto out;
	/* Without it a copy may return before it is done, and a card's DMA would read what was
	 * there before. */
	result = cuda->calls.pointer_set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
					 (CUdeviceptr)(uintptr_t)block->base);
	if (result != CUDA_SUCCESS) {
		ret = driver_fail(result, "cuPointerSetAttribute(SYNC_MEMOPS)");
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
		ret = cuda_fail(error, "cudaFree");
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
		ret = cuda_fail(error, "cudaHostRegister");
		goto out;
	}
	error = cudaHostGetDevicePointer(&gpu, host, 0);
	if (error != cudaSuccess)
		ret = cuda_fail(error, "cudaHostGetDevicePointer");
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
		ret = cuda_fail(error, "cudaHostUnregister");
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

static int cuda_owns(struct gpu_device *device, const void *at)
{
	struct cuda_device *cuda = cuda_device_of(device);
	struct cudaPointerAttributes attributes;
	cudaError_t error;
	int ret = device_enter(cuda);

	if (ret)
		return ret;
	error = cudaPointerGetAttributes(&attributes, at);
	if (error == cudaSuccess)
		ret = attributes.type == cudaMemoryTypeDevice && attributes.device == cuda->ordinal;
	else
		(void)cudaGetLastError(); /* the application's own check would find it */
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
		ret = cuda_fail(error, "cudaDeviceFlushGPUDirectRDMAWrites");
	device_leave(cuda);
	return ret;
}

/* ---- probe ---- */

static void cuda_destroy(struct gpu_device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);
	CUresult result;

	if (cuda->gdrcopy)
		gdrcopy_close(cuda->gdrcopy);
	result = cuda->calls.context_release(cuda->ordinal);
	if (result != CUDA_SUCCESS)
		driver_fail(result, "cuDevicePrimaryCtxRelease");
	free(cuda);
}

static const struct gpu_backend cuda_backend = {
	.allocate = cuda_allocate,
	.release = cuda_release,
	.register_host = cuda_register_host,
	.unregister_host = cuda_unregister_host,
	.map = cuda_map,
	.unmap = cuda_unmap,
	.export = cuda_export,
	.owns = cuda_owns,
	.write_barrier = cuda_write_barrier,
	.destroy = cuda_destroy,
};

/* -1 where the system does not say. */
static int16_t numa_node_read(const char *pci_bus_id)
{
	char path[96];
	int node = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", pci_bus_id);
	for (char *c = path; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1 || node < 0 || node > INT16_MAX)
		node = -1;
	fclose(file);
	return (int16_t)node;
}

static int attribute_get(enum cudaDeviceAttr attribute, int ordinal, const char *name, int *value)
{
	cudaError_t error = cudaDeviceGetAttribute(value, attribute, ordinal);

	return error == cudaSuccess ? 0 : cuda_fail(error, name);
}

static int facts_get(struct cuda_device *cuda, struct rte_gpu_info *facts)
{
	struct cudaDeviceProp properties;
	int rdma, ordering, flush, ret;
	char pci[32];
	cudaError_t error;

	error = cudaGetDeviceProperties(&properties, cuda->ordinal);
	if (error != cudaSuccess)
		return cuda_fail(error, "cudaGetDeviceProperties");
	error = cudaDeviceGetPCIBusId(pci, sizeof(pci), cuda->ordinal);
	if (error != cudaSuccess)
		return cuda_fail(error, "cudaDeviceGetPCIBusId");
	ret = attribute_get(cudaDevAttrGPUDirectRDMASupported, cuda->ordinal,
			    "cudaDevAttrGPUDirectRDMASupported", &rdma);
	if (!ret)
		ret = attribute_get(cudaDevAttrGPUDirectRDMAWritesOrdering, cuda->ordinal,
				    "cudaDevAttrGPUDirectRDMAWritesOrdering", &ordering);
	if (!ret)
		ret = attribute_get(cudaDevAttrGPUDirectRDMAFlushWritesOptions, cuda->ordinal,
				    "cudaDevAttrGPUDirectRDMAFlushWritesOptions", &flush);
	if (ret)
		return ret;
	cuda->writes_ordered = ordering >= cudaGPUDirectRDMAWritesOrderingOwner;
	cuda->can_flush = !!(flush & cudaFlushGPUDirectRDMAWritesOptionHost);
	facts->processor_count = (uint32_t)properties.multiProcessorCount;
	facts->total_memory = properties.totalGlobalMem;
	facts->numa_node = numa_node_read(pci);
	device_log(INFO, &cuda->common,
		   "%d is %s at %s, NUMA node %d; GPUDirect RDMA %d, writes "
		   "ordering %d, flush options %d",
		   cuda->ordinal, properties.name, pci, facts->numa_node, rdma, ordering, flush);
	if (!cuda->writes_ordered && !cuda->can_flush)
		device_log(WARNING, &cuda->common,
			   "%s neither orders nor flushes writes that come "
			   "over PCIe: rte_gpu_wmb() fails; launch kernels after the data is there",
			   properties.name);
	return 0;
}

static int device_open(struct cuda_device *cuda, unsigned long ordinal, struct rte_gpu_info *facts)
{
	char why[256];
	int count = gpu_cuda_count(why, sizeof(why));
	CUresult result;
	int ret;

	if (count == 0 || ordinal >= (unsigned long)count) {
		if (count == 0)
			device_log(ERR, &cuda->common, "no CUDA device: %s", why);
		else
			device_log(ERR, &cuda->common,
				   "no CUDA device %lu: there are 0 to %d (see "
				   "nvidia-smi -L and CUDA_VISIBLE_DEVICES)",
				   ordinal, count - 1);
		rte_errno = ENODEV;
		return -ENODEV;
	}
	cuda->ordinal = (int)ordinal;
	ret = driver_calls_get(&cuda->calls);
	if (ret)
		return ret;
	result = cuda->calls.context_retain(&cuda->context, cuda->ordinal);
	if (result != CUDA_SUCCESS)
		return driver_fail(result, "cuDevicePrimaryCtxRetain");
	ret = facts_get(cuda, facts);
	if (ret)
		cuda->calls.context_release(cuda->ordinal);
	facts->context = (uint64_t)(uintptr_t)cuda->context;
	return ret;
}

static int cuda_probe(struct rte_vdev_device *vdev)
{
	struct cuda_device *cuda = calloc(1, sizeof(*cuda));
	struct rte_gpu_info facts = { 0 };
	unsigned long ordinal = 0;
	int ret;

	if (!cuda)
		return -ENOMEM;
	cuda->common.backend = &cuda_backend;
	cuda->common.driver = CUDA_DRIVER;
	cuda->common.logtype = cuda_logtype;
	ret = gpu_vdev_number(vdev, "ordinal", INT_MAX, &ordinal, CUDA_DRIVER, cuda_logtype);
	if (ret)
		goto err_cuda;
	ret = device_open(cuda, ordinal, &facts);
	if (ret)
		goto err_cuda;
	ret = gpu_device_publish(vdev, &cuda->common, &facts);
	if (ret)
		goto err_context;
	return 0;

err_context:
	cuda->calls.context_release(cuda->ordinal);
err_cuda:
	free(cuda);
	return ret;
}

static struct rte_vdev_driver cuda_driver = {
	.driver = { .name = CUDA_DRIVER },
	.probe = cuda_probe,
	.remove = gpu_device_remove,
};

static void cuda_register_once(void)
{
	cuda_logtype = rte_log_register_type_and_pick_level("pmd.gpu.cuda", RTE_LOG_NOTICE);
	rte_vdev_register(&cuda_driver);
}

void gpu_cuda_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, cuda_register_once);
}
