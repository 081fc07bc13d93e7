/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A "GPU" made of this machine's memory, so that the code above a gpudev is the same without one.
 * With guard=1 the address handed out is PROT_NONE for the CPU, as device memory is in effect;
 * whoever plays the GPU's part or a card's DMA takes the second mapping by rte_gpu_mem_cpu_map().
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_atomic.h>
#include <rte_common.h>
#include <rte_lcore.h>

#include "gpu/gpu_export.h"
#include "gpu/gpudev_common.h"

#define HOST_DRIVER "gpu_host"

struct host_device {
	struct gpu_device common;
	unsigned long guard;
	size_t total, used; /* bytes */
};

static int host_logtype;

static struct host_device *host_device_of(struct gpu_device *device)
{
	return container_of(device, struct host_device, common);
}

/* Maps all of `fd` at an address of that alignment, or MAP_FAILED with errno. */
static void *map_aligned(int fd, size_t bytes, size_t align, int prot)
{
	size_t span = bytes + align;
	uint8_t *space, *at;
	int error;

	space = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED)
		return MAP_FAILED;
	at = (uint8_t *)RTE_ALIGN_CEIL((uintptr_t)space, align);
	if (mmap(at, bytes, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		error = errno;
		munmap(space, span);
		errno = error;
		return MAP_FAILED;
	}
	if (at != space)
		munmap(space, at - space);
	if (at + bytes != space + span)
		munmap(at + bytes, space + span - (at + bytes));
	return at;
}

static int host_allocate(struct gpu_device *device, struct gpu_block *block, size_t align)
{
	struct host_device *host = host_device_of(device);
	void *handed, *alias;
	int fd, ret;

	/* Pages come when they are touched: more than there is would end in SIGBUS, not here. */
	if (block->bytes > host->total - host->used) {
		device_log(ERR, device, "no %zu bytes: %zu of %zu are in use", block->bytes,
			   host->used, host->total);
		return -ENOMEM;
	}
	fd = memfd_create("gdrcap " HOST_DRIVER, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)block->bytes)) {
		ret = -errno;
		goto err_file;
	}
	alias = map_aligned(fd, block->bytes, align, PROT_READ | PROT_WRITE);
	if (alias == MAP_FAILED) {
		ret = -errno;
		goto err_file;
	}
	handed = host->guard ? map_aligned(fd, block->bytes, align, PROT_NONE) : alias;
	if (handed == MAP_FAILED) {
		ret = -errno;
		goto err_alias;
	}
	/* Fewer TLB misses where the kernel's shared memory settings allow; else no loss. */
	if (block->bytes >= GPU_LARGE_BYTES)
		madvise(alias, block->bytes, MADV_HUGEPAGE);
	block->file = fd;
	block->start = (uintptr_t)handed;
	block->base = handed;
	block->base_bytes = block->bytes;
	block->cpu = alias;
	host->used += block->bytes;
	return 0;

err_alias:
	munmap(alias, block->bytes);
err_file:
	if (fd >= 0)
		close(fd);
	device_log(ERR, device, "no %zu bytes: %s; is the address space limited (ulimit -v)?",
		   block->bytes, strerror(-ret));
	return ret;
}

static int host_release(struct gpu_device *device, struct gpu_block *block)
{
	struct host_device *host = host_device_of(device);

	if (block->cpu != block->base)
		munmap(block->cpu, block->base_bytes);
	munmap(block->base, block->base_bytes);
	close(block->file);
	host->used -= block->base_bytes;
	return 0;
}

/* A real GPU would refuse addresses with no memory behind them, so this one does. */
static int host_register(struct gpu_device *device, struct gpu_block *block)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = RTE_ALIGN_FLOOR(block->start, page);

	/* MS_ASYNC writes nothing: it only walks the mappings. */
	if (msync((void *)from, block->start + block->bytes - from, MS_ASYNC)) {
		device_log(ERR, device, "%zu bytes at %p are not registered: not all are mapped",
			   block->bytes, (void *)block->start);
		return -EFAULT;
	}
	return 0;
}

static int host_map(struct gpu_device *device, const struct gpu_block *allocation,
		    struct gpu_block *mapping)
{
	mapping->cpu = (uint8_t *)allocation->cpu + (mapping->start - allocation->start);
	return 0;
}

/* No dma-buf, but a file with the same pages, as a model of a card takes it. It has no parts. */
static int host_export(struct gpu_device *device, const struct gpu_block *allocation, void *base,
		       size_t bytes)
{
	int fd;

	if (!allocation)
		return -ENOTSUP;
	if ((uintptr_t)base != allocation->start)
		return -EINVAL;
	fd = fcntl(allocation->file, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int host_kind(struct gpu_device *device, const void *at, int *ordinal)
{
	return GPU_MEMORY_OWN;
}

static int host_write_barrier(struct gpu_device *device)
{
	rte_wmb();
	return 0;
}

static void host_destroy(struct gpu_device *device)
{
	free(host_device_of(device));
}

static const struct gpu_backend host_backend = {
	.allocate = host_allocate,
	.release = host_release,
	.register_host = host_register,
	.map = host_map,
	.export = host_export,
	.kind = host_kind,
	.write_barrier = host_write_barrier,
	.destroy = host_destroy,
};

static int host_probe(struct rte_vdev_device *vdev)
{
	struct host_device *host = calloc(1, sizeof(*host));
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct rte_gpu_info facts = {
		.processor_count = processors > 0 ? (uint32_t)processors : 1,
		/* With several nodes the first touch decides where a page is. */
		.numa_node = rte_socket_count() == 1 ? (int16_t)rte_socket_id_by_idx(0) : -1,
	};
	int ret;

	if (!host)
		return -ENOMEM;
	ret = gpu_vdev_number(vdev, "guard", 1, &host->guard, HOST_DRIVER, host_logtype);
	if (ret)
		goto err_host;
	if (pages <= 0 || page <= 0) {
		gpu_log(ERR, host_logtype, HOST_DRIVER,
			"the size of memory is unknown: is /proc mounted?");
		ret = -ENOSYS;
		goto err_host;
	}
	host->total = (size_t)pages * (size_t)page;
	facts.total_memory = host->total;
	host->common.backend = &host_backend;
	host->common.driver = HOST_DRIVER;
	host->common.logtype = host_logtype;
	ret = gpu_device_publish(vdev, &host->common, &facts);
	if (ret)
		goto err_host;
	return 0;

err_host:
	free(host);
	return ret;
}

static struct rte_vdev_driver host_driver = {
	.driver = { .name = HOST_DRIVER },
	.probe = host_probe,
	.remove = gpu_device_remove,
};

static void host_register_once(void)
{
	host_logtype = rte_log_register_type_and_pick_level("pmd.gpu.host", RTE_LOG_NOTICE);
	rte_vdev_register(&host_driver);
}

void gpu_host_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, host_register_once);
}
