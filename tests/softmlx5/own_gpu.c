/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_gpu.h"

#include <dlfcn.h>
#include <errno.h>

#include <gpudev_driver.h>
#include <rte_common.h>

#define PAGE ((size_t)64 << 10)

static struct {
	int (*init)(unsigned int flags);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*alloc)(uint64_t *address, size_t size);
	int (*fill)(uint64_t address, unsigned char value, size_t size);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*to_host)(void *to, uint64_t from, size_t size);
} cu;

void *own_gpu_memory(size_t bytes)
{
	uint64_t address;

	return cu.alloc(&address, bytes + PAGE) == 0
		       ? (void *)(uintptr_t)RTE_ALIGN(address, (uint64_t)PAGE)
		       : NULL;
}

static int memory_alloc(struct rte_gpu *dev, size_t size, unsigned int align, void **ptr)
{
	*ptr = own_gpu_memory(size);
	return *ptr ? 0 : -ENOMEM;
}

static int memory_free(struct rte_gpu *dev, void *ptr)
{
	return 0;
}

/* Of host memory: here it is the CPU that uses it. */
static int memory_register(struct rte_gpu *dev, size_t size, void *ptr)
{
	return 0;
}

bool own_gpu_start(int16_t *id)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	struct rte_gpu *gpu;

	if (!library)
		return false;
	cu.init = dlsym(library, "cuInit");
	cu.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	cu.set_current = dlsym(library, "cuCtxSetCurrent");
	cu.alloc = dlsym(library, "cuMemAlloc_v2");
	cu.fill = dlsym(library, "cuMemsetD8_v2");
	cu.to_device = dlsym(library, "cuMemcpyHtoD_v2");
	cu.to_host = dlsym(library, "cuMemcpyDtoH_v2");
	if (cu.init(0) != 0 || cu.retain(&context, 0) != 0 || cu.set_current(context) != 0)
		return false;
	gpu = rte_gpu_allocate("own_gpu");
	if (!gpu)
		return false;
	gpu->ops.mem_alloc = memory_alloc;
	gpu->ops.mem_free = memory_free;
	gpu->ops.mem_register = memory_register;
	gpu->ops.mem_unregister = memory_free;
	rte_gpu_complete_new(gpu);
	*id = gpu->mpshared->info.dev_id;
	return true;
}

int own_gpu_fill(void *context, void *at, int byte, size_t bytes)
{
	return cu.fill((uintptr_t)at, (unsigned char)byte, bytes) == 0 ? 0 : -EIO;
}

int own_gpu_write(void *at, const void *from, size_t bytes)
{
	return cu.to_device((uintptr_t)at, from, bytes) == 0 ? 0 : -EIO;
}

int own_gpu_read(const void *at, void *to, size_t bytes)
{
	return cu.to_host(to, (uintptr_t)at, bytes) == 0 ? 0 : -EIO;
}
