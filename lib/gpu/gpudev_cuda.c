/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any CUDA device as a gpudev: CUDA is asked, not a table of PCI ids. Only the CUDA Runtime is
 * linked; the few driver calls come through its entry-point query, so the program starts on a
 * machine without libcuda too.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "gpu/cuda_driver.h"
#include "gpu/gpudev_cuda.h"

/* Signatures of the driver calls below are those of this version, the least that is supported. */
#define CUDA_DRIVER_ABI 11040

static int cuda_logtype;

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

int gpu_cuda_fail(cudaError_t error, const char *call)
{
	(void)cudaGetLastError();
	gpu_log(ERR, cuda_logtype, CUDA_DRIVER, "%s: %s (%s)", call, cudaGetErrorString(error),
		cudaGetErrorName(error));
	rte_errno = -cuda_errno(error);
	return cuda_errno(error);
}

/* CUresult and cudaError_t have the same numbers for what the calls here can return. */
int gpu_cuda_driver_fail(CUresult result, const char *call)
{
	return gpu_cuda_fail((cudaError_t)result, call);
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
		return gpu_cuda_fail(error, symbol);
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

/* ---- probe ---- */

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

	return error == cudaSuccess ? 0 : gpu_cuda_fail(error, name);
}

static int facts_get(struct cuda_device *cuda, struct rte_gpu_info *facts)
{
	struct cudaDeviceProp properties;
	int rdma, ordering, flush, ret;
	char pci[32];
	cudaError_t error;

	error = cudaGetDeviceProperties(&properties, cuda->ordinal);
	if (error != cudaSuccess)
		return gpu_cuda_fail(error, "cudaGetDeviceProperties");
	error = cudaDeviceGetPCIBusId(pci, sizeof(pci), cuda->ordinal);
	if (error != cudaSuccess)
		return gpu_cuda_fail(error, "cudaDeviceGetPCIBusId");
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
		return gpu_cuda_driver_fail(result, "cuDevicePrimaryCtxRetain");
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
	cuda->common.backend = &gpu_cuda_backend;
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
