/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA to the memory of an NVIDIA GPU, with copies of the CUDA driver on a non-blocking stream of
 * the model's own: a persistent kernel and the default stream stay out of the way.
 *
 * The driver is taken from the process, which has loaded it if it has such memory. The few
 * functions are declared here, so that the model compiles without CUDA.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "memory.h"

#define POINTER_MEMORY_TYPE 2
#define POINTER_DEVICE_ORDINAL 9
#define MEMORY_TYPE_DEVICE 2
#define STREAM_NON_BLOCKING 1
#define GPUS_MAX 16

typedef uint64_t cu_address;
typedef int cu_result;

static struct {
	bool asked;
	bool ready;
	cu_result (*pointer_attribute)(void *data, int attribute, cu_address address);
	cu_result (*primary_retain)(void **context, int device);
	cu_result (*push)(void *context);
	cu_result (*pop)(void **context);
	cu_result (*stream_create)(void **stream, unsigned int flags);
	cu_result (*to_device)(cu_address to, const void *from, size_t length, void *stream);
	cu_result (*to_host)(void *to, cu_address from, size_t length, void *stream);
	cu_result (*synchronize)(void *stream);
} cuda;

struct gpu {
	void *context;
	void *stream;
	bool busy; /* copies are under way */
};

static struct gpu gpus[GPUS_MAX];

static bool cuda_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL || cuda.asked)
		return cuda.ready;
	cuda.asked = true;
	cuda.pointer_attribute = dlsym(library, "cuPointerGetAttribute");
	cuda.primary_retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	cuda.push = dlsym(library, "cuCtxPushCurrent_v2");
	cuda.pop = dlsym(library, "cuCtxPopCurrent_v2");
	cuda.stream_create = dlsym(library, "cuStreamCreate");
	cuda.to_device = dlsym(library, "cuMemcpyHtoDAsync_v2");
	cuda.to_host = dlsym(library, "cuMemcpyDtoHAsync_v2");
	cuda.synchronize = dlsym(library, "cuStreamSynchronize");
	cuda.ready = cuda.pointer_attribute && cuda.primary_retain && cuda.push && cuda.pop &&
		     cuda.stream_create && cuda.to_device && cuda.to_host && cuda.synchronize;
	return cuda.ready;
}

static int gpu_open(struct gpu *gpu, int ordinal)
{
	void *before;

	if (gpu->stream != NULL)
		return 0;
	if (cuda.primary_retain(&gpu->context, ordinal) != 0 || cuda.push(gpu->context) != 0)
		return -EIO;
	if (cuda.stream_create(&gpu->stream, STREAM_NON_BLOCKING) != 0)
		gpu->stream = NULL;
	cuda.pop(&before);
	return gpu->stream == NULL ? -EIO : 0;
}

static int cuda_attach(struct soft_region *region, int file, uint64_t file_offset)
{
	cu_address address = (uintptr_t)region->ibv.addr;
	int type = 0, ordinal = -1, ret;

	if (!cuda_load() || cuda.pointer_attribute(&type, POINTER_MEMORY_TYPE, address) != 0 ||
	    type != MEMORY_TYPE_DEVICE)
		return 0;
	if (cuda.pointer_attribute(&ordinal, POINTER_DEVICE_ORDINAL, address) != 0 || ordinal < 0 ||
	    ordinal >= GPUS_MAX)
		return -EFAULT;
	ret = gpu_open(&gpus[ordinal], ordinal);
	if (ret < 0)
		return ret;
	region->place = region->ibv.addr;
	region->plugin = &gpus[ordinal];
	return 1;
}

static void cuda_write(struct soft_region *region, uint64_t offset, const void *from, size_t length)
{
	struct gpu *gpu = region->plugin;
	void *before;

	cuda.push(gpu->context);
	if (cuda.to_device((uintptr_t)region->place + offset, from, length, gpu->stream) != 0)
		soft_log("a copy to the GPU failed");
	gpu->busy = true;
	cuda.pop(&before);
}

static void cuda_read(struct soft_region *region, uint64_t offset, void *to, size_t length)
{
	struct gpu *gpu = region->plugin;
	void *before;

	cuda.push(gpu->context);
	if (cuda.to_host(to, (uintptr_t)region->place + offset, length, gpu->stream) != 0)
		soft_log("a copy from the GPU failed");
	gpu->busy = true;
	cuda.pop(&before);
}

static void cuda_complete(void)
{
	void *before;

	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		if (!gpus[i].busy)
			continue;
		cuda.push(gpus[i].context);
		if (cuda.synchronize(gpus[i].stream) != 0)
			soft_log("copies of GPU %u failed", i);
		cuda.pop(&before);
		gpus[i].busy = false;
	}
}

const struct soft_dma soft_dma_cuda = {
	.name = "cuda",
	.peer = true,
	.attach = cuda_attach,
	.write = cuda_write,
	.read = cuda_read,
	.complete = cuda_complete,
};
