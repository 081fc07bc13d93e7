/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two gpudev drivers share: their vdev, allocations and registrations. */
#include "gpu/gpudev_common.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_kvargs.h>

#include "gpu/gpu_export.h"

static struct gpu_block *blocks_find(struct gpu_blocks *blocks, uintptr_t start)
{
	struct gpu_block *block;

	LIST_FOREACH(block, blocks, next)
	if (block->start == start)
		return block;
	return NULL;
}

/* The caller has checked that start + bytes does not wrap. */
static struct gpu_block *blocks_find_around(struct gpu_blocks *blocks, uintptr_t start,
					    size_t bytes)
{
	struct gpu_block *block;

	LIST_FOREACH(block, blocks, next)
	if (start >= block->start && start + bytes <= block->start + block->bytes)
		return block;
	return NULL;
}

static struct gpu_block *blocks_find_overlap(struct gpu_blocks *blocks, uintptr_t start,
					     size_t bytes)
{
	struct gpu_block *block;

	LIST_FOREACH(block, blocks, next)
	if (start < block->start + block->bytes && block->start < start + bytes)
		return block;
	return NULL;
}

static struct gpu_block *block_create(struct gpu_device *device, uintptr_t start, size_t bytes)
{
	struct gpu_block *block = calloc(1, sizeof(*block));

	if (!block) {
		device_log(ERR, device, "no memory for the record of %zu bytes", bytes);
		return NULL;
	}
	block->start = start;
	block->bytes = bytes;
	return block;
}

/* gpudev itself takes sizes of 0 and NULL addresses as no-ops: none of the calls below sees them.
 * It turns nearly every error into EPERM, so the log line is where the caller finds the cause. */
static int device_fail(int error)
{
	rte_errno = -error;
	return error;
}

static struct gpu_device *device_lock(struct rte_gpu *gpu)
{
	struct gpu_device *device = gpu->process_private;

	if (device)
		pthread_mutex_lock(&device->lock);
	return device;
}

static int device_unlock(struct gpu_device *device, int error)
{
	pthread_mutex_unlock(&device->lock);
	return error ? device_fail(error) : 0;
}

static int gpu_mem_alloc(struct rte_gpu *gpu, size_t size, unsigned int align, void **ptr)
{
	size_t granule = size >= GPU_LARGE_BYTES ? GPU_LARGE_BYTES : GPU_PAGE_BYTES;
	size_t bytes = RTE_ALIGN_CEIL(size, granule);
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *block;
	int ret;

	if (!device)
		return device_fail(-ENODEV);
	if (bytes < size || bytes > INTPTR_MAX) {
		device_log(ERR, device, "no %zu bytes: more than any address space has", size);
		return device_unlock(device, -E2BIG);
	}
	block = block_create(device, 0, bytes);
	if (!block)
		return device_unlock(device, -ENOMEM);
	ret = device->backend->allocate(device, block, RTE_MAX((size_t)align, granule));
	if (ret) {
		free(block);
		return device_unlock(device, ret);
	}
	LIST_INSERT_HEAD(&device->allocated, block, next);
	*ptr = (void *)block->start;
	return device_unlock(device, 0);
}

static int mapping_destroy(struct gpu_device *device, struct gpu_block *mapping)
{
	int ret = device->backend->unmap ? device->backend->unmap(device, mapping) : 0;

	if (ret)
		return ret;
	LIST_REMOVE(mapping, next);
	free(mapping);
	return 0;
}

static int registration_destroy(struct gpu_device *device, struct gpu_block *block)
{
	int ret = device->backend->unregister_host ? device->backend->unregister_host(device, block)
						   : 0;

	if (ret)
		return ret;
	LIST_REMOVE(block, next);
	free(block);
	return 0;
}

/* A mapping may not outlive its memory, so those still there go first. */
static int allocation_destroy(struct gpu_device *device, struct gpu_block *block)
{
	struct gpu_block *mapping;
	int ret;

	while ((mapping = blocks_find_overlap(&device->mapped, block->start, block->bytes))) {
		ret = mapping_destroy(device, mapping);
		if (ret)
			return ret;
	}
	ret = device->backend->release(device, block);
	if (ret)
		return ret;
	LIST_REMOVE(block, next);
	free(block);
	return 0;
}

static int gpu_mem_free(struct rte_gpu *gpu, void *ptr)
{
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *block;

	if (!device)
		return device_fail(-ENODEV);
	block = blocks_find(&device->allocated, (uintptr_t)ptr);
	if (!block) {
		device_log(ERR, device, "%p is not freed: no allocation begins there; freed twice?",
			   ptr);
		return device_unlock(device, -EINVAL);
	}
	return device_unlock(device, allocation_destroy(device, block));
}

static int gpu_mem_register(struct rte_gpu *gpu, size_t size, void *ptr)
{
	uintptr_t start = (uintptr_t)ptr;
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *block;
	int ret;

	if (!device)
		return device_fail(-ENODEV);
	if (start + size < start || blocks_find_overlap(&device->allocated, start, size)) {
		device_log(ERR, device, "%zu bytes at %p are not registered: not host memory", size,
			   ptr);
		return device_unlock(device, -EINVAL);
	}
	block = blocks_find_overlap(&device->registered, start, size);
	if (block) {
		device_log(ERR, device,
			   "%zu bytes at %p are not registered: they overlap %zu "
			   "bytes registered at %#" PRIxPTR "; unregister those first",
			   size, ptr, block->bytes, block->start);
		return device_unlock(device, -EEXIST);
	}
	block = block_create(device, start, size);
	if (!block)
		return device_unlock(device, -ENOMEM);
	ret = device->backend->register_host ? device->backend->register_host(device, block) : 0;
	if (ret) {
		free(block);
		return device_unlock(device, ret);
	}
	LIST_INSERT_HEAD(&device->registered, block, next);
	return device_unlock(device, 0);
}

static int gpu_mem_unregister(struct rte_gpu *gpu, void *ptr)
{
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *block;

	if (!device)
		return device_fail(-ENODEV);
	block = blocks_find(&device->registered, (uintptr_t)ptr);
	if (!block) {
		device_log(ERR, device, "%p is not unregistered: no registration begins there",
			   ptr);
		return device_unlock(device, -EINVAL);
	}
	return device_unlock(device, registration_destroy(device, block));
}

/* A mapping is known by its start: the same or a shorter range again is that mapping, counted. */
static int gpu_mem_cpu_map(struct rte_gpu *gpu, size_t size, void *ptr, void **cpu)
{
	uintptr_t start = (uintptr_t)ptr;
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *allocation = NULL, *mapping;
	int ret;

	if (!device)
		return device_fail(-ENODEV);
	if (start + size >= start)
		allocation = blocks_find_around(&device->allocated, start, size);
	if (!allocation) {
		device_log(ERR, device, "%zu bytes at %p are not mapped: not inside one allocation",
			   size, ptr);
		return device_unlock(device, -EINVAL);
	}
	mapping = blocks_find(&device->mapped, start);
	if (mapping && mapping->bytes < size) {
		device_log(ERR, device,
			   "%zu bytes at %p are not mapped: only %zu bytes are mapped "
			   "there; unmap those first",
			   size, ptr, mapping->bytes);
		return device_unlock(device, -EEXIST);
	}
	if (!mapping) {
		mapping = block_create(device, start, size);
		if (!mapping)
			return device_unlock(device, -ENOMEM);
		ret = device->backend->map(device, allocation, mapping);
		if (ret) {
			free(mapping);
			return device_unlock(device, ret);
		}
		LIST_INSERT_HEAD(&device->mapped, mapping, next);
	}
	mapping->references++;
	*cpu = mapping->cpu;
	return device_unlock(device, 0);
}

/* gpudev names a mapping by its device address. */
static int gpu_mem_cpu_unmap(struct rte_gpu *gpu, void *ptr)
{
	struct gpu_device *device = device_lock(gpu);
	struct gpu_block *mapping;
	int ret = 0;

	if (!device)
		return device_fail(-ENODEV);
	mapping = blocks_find(&device->mapped, (uintptr_t)ptr);
	if (!mapping) {
		device_log(ERR, device, "%p is not unmapped: no mapping begins there", ptr);
		return device_unlock(device, -EINVAL);
	}
	if (mapping->references == 1)
		ret = mapping_destroy(device, mapping);
	else
		mapping->references--;
	return device_unlock(device, ret);
}

static int gpu_wmb(struct rte_gpu *gpu)
{
	struct gpu_device *device = gpu->process_private;
	int ret = device ? device->backend->write_barrier(device) : -ENODEV;

	return ret ? device_fail(ret) : 0;
}

static int gpu_dev_info_get(struct rte_gpu *gpu, struct rte_gpu_info *info)
{
	*info = gpu->mpshared->info;
	return 0;
}

/* Locked, or NULL. */
static struct gpu_device *device_find(int16_t id)
{
	struct rte_gpu_info info;
	struct rte_gpu *gpu;

	if (rte_gpu_info_get(id, &info) < 0)
		return NULL;
	gpu = rte_gpu_get_by_name(info.name);
	return gpu && gpu->ops.mem_alloc == gpu_mem_alloc ? device_lock(gpu) : NULL;
}

int gpu_export(int16_t gpu, void *base, size_t bytes)
{
	struct gpu_device *device;
	int ret;

	if (bytes == 0 || (uintptr_t)base + bytes < bytes)
		return -EINVAL;
	device = device_find(gpu);
	if (!device)
		return -ENODEV;
	ret = device->backend->export(
		device, blocks_find_around(&device->allocated, (uintptr_t)base, bytes), base,
		bytes);
	pthread_mutex_unlock(&device->lock);
	return ret;
}

int gpu_memory_kind(int16_t gpu, const void *at, int *ordinal)
{
	struct gpu_device *device = device_find(gpu);
	int ret;

	if (!device)
		return -ENODEV;
	ret = device->backend->kind(device, at, ordinal);
	pthread_mutex_unlock(&device->lock);
	return ret;
}

int gpu_owns(int16_t gpu, const void *base, size_t bytes)
{
	int ordinal, ret = gpu_memory_kind(gpu, base, &ordinal);

	if (ret == GPU_MEMORY_OWN)
		ret = gpu_memory_kind(gpu, (const uint8_t *)base + bytes - 1, &ordinal);
	return ret < 0 ? ret : ret == GPU_MEMORY_OWN;
}

/* Takes each block once, whether or not the hardware agrees to let it go. */
static unsigned int device_drain(struct gpu_device *device, struct gpu_blocks *blocks,
				 int (*destroy)(struct gpu_device *device, struct gpu_block *block))
{
	struct gpu_block *block;
	unsigned int count = 0;

	while ((block = LIST_FIRST(blocks))) {
		if (destroy(device, block)) {
			LIST_REMOVE(block, next);
			free(block);
		}
		count++;
	}
	return count;
}

static int gpu_dev_close(struct rte_gpu *gpu)
{
	struct gpu_device *device = gpu->process_private;
	unsigned int mapped, registered, allocated;

	if (!device)
		return 0;
	gpu->process_private = NULL;
	mapped = device_drain(device, &device->mapped, mapping_destroy);
	registered = device_drain(device, &device->registered, registration_destroy);
	allocated = device_drain(device, &device->allocated, allocation_destroy);
	if (mapped + registered + allocated)
		device_log(NOTICE, device,
			   "closed with %u mappings, %u registrations and %u "
			   "allocations that were never freed",
			   mapped, registered, allocated);
	pthread_mutex_destroy(&device->lock);
	device->backend->destroy(device);
	return 0;
}

static int number_parse(const char *key, const char *text, void *value)
{
	unsigned long *number = value;
	char *end;

	if (!text || !isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

int gpu_vdev_number(struct rte_vdev_device *vdev, const char *key, unsigned long max,
		    unsigned long *value, const char *driver, int logtype)
{
	const char *const keys[] = { key, NULL };
	const char *args = rte_vdev_device_args(vdev);
	unsigned long number = *value;
	struct rte_kvargs *list = rte_kvargs_parse(args ? args : "", keys);
	int bad = !list || rte_kvargs_count(list, key) > 1 ||
		  rte_kvargs_process(list, key, number_parse, &number) || number > max;

	rte_kvargs_free(list);
	if (bad) {
		gpu_log(ERR, logtype, driver, "argument \"%s\" refused: write %s=NUMBER, 0 to %lu",
			args ? args : "", key, max);
		return device_fail(-EINVAL);
	}
	*value = number;
	return 0;
}

int gpu_device_publish(struct rte_vdev_device *vdev, struct gpu_device *device,
		       const struct rte_gpu_info *facts)
{
	const char *name = rte_vdev_device_name(vdev);
	int is_primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
	struct rte_gpu *gpu = is_primary ? rte_gpu_allocate(name) : rte_gpu_attach(name);
	int ret;

	if (!gpu)
		return -rte_errno;
	ret = pthread_mutex_init(&device->lock, NULL);
	if (ret) {
		rte_gpu_release(gpu);
		return device_fail(-ret);
	}
	LIST_INIT(&device->allocated);
	LIST_INIT(&device->registered);
	LIST_INIT(&device->mapped);
	gpu->device = &vdev->device;
	gpu->process_private = device;
	if (is_primary) {
		struct rte_gpu_info *info = &gpu->mpshared->info;

		info->context = facts->context;
		info->processor_count = facts->processor_count;
		info->total_memory = facts->total_memory;
		info->page_size = GPU_PAGE_BYTES;
		info->numa_node = facts->numa_node;
	}
	gpu->ops = (struct rte_gpu_ops){
		.dev_info_get = gpu_dev_info_get,
		.dev_close = gpu_dev_close,
		.mem_alloc = gpu_mem_alloc,
		.mem_free = gpu_mem_free,
		.mem_register = gpu_mem_register,
		.mem_unregister = gpu_mem_unregister,
		.mem_cpu_map = gpu_mem_cpu_map,
		.mem_cpu_unmap = gpu_mem_cpu_unmap,
		.wmb = gpu_wmb,
	};
	rte_gpu_complete_new(gpu);
	return 0;
}

int gpu_device_remove(struct rte_vdev_device *vdev)
{
	struct rte_gpu *gpu = rte_gpu_get_by_name(rte_vdev_device_name(vdev));
	int ret;

	/* rte_gpu_close() came first */
	if (!gpu)
		return 0;
	/* Released before closed: callbacks for the removal may still give memory back. */
	ret = rte_gpu_release(gpu);
	return ret ? ret : gpu_dev_close(gpu);
}
