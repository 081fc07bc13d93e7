/* SPDX-License-Identifier: BSD-3-Clause */
#include "region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "log.h"

#define UMEM_OBJECT 4096u /* the kernel's limit for an AF_XDP chunk */
#define PAGE_MAX ((size_t)1 << 30)

static size_t align_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/*
 * mlx5 sorts its list of pages once for each new page, so small pages make a large pool slow to
 * start; and a page must divide both the address and the length.
 */
static size_t largest_page(const void *base, size_t bytes)
{
	size_t both = (uintptr_t)base | bytes | PAGE_MAX;

	return both & -both;
}

static void *host_map(size_t bytes)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	const size_t align = 2u << 20;
	uint8_t *raw, *base;
	size_t before;

	/* The kernel would promise it, and end a process when the promise is called in. */
	if (pages > 0 && page > 0 && bytes / (size_t)page >= (size_t)pages) {
		errno = ENOMEM;
		return NULL;
	}
	raw = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	base = (uint8_t *)align_up((uintptr_t)raw, align);
	before = (size_t)(base - raw);
	if (before)
		munmap(raw, before);
	munmap(base + bytes, align - before);
	/* Fewer TLB misses; a kernel without transparent huge pages refuses, which costs only
	 * speed. */
	(void)madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

static int host_create(struct region *region, const struct region_config *config,
		       struct gdrcap_error *error)
{
	if (!config->addr) {
		region->base = host_map(region->bytes);
		if (!region->base)
			return error_set(
				error, -ENOMEM,
				"cannot map %zu MiB of host memory: %s; ask for less with --pool",
				region->bytes >> 20, strerror(errno));
		region->owned = true;
	}
	region->device = region->base;
	if (region->kind == GDRCAP_MEMORY_HOST)
		return 0;
	if (rte_gpu_mem_register(region->gpu, region->bytes, region->base) < 0)
		return error_set(
			error, -rte_errno,
			"the GPU refused to register %zu MiB of host memory: %s; raise the "
			"locked-memory limit (ulimit -l unlimited) or ask for less with --pool",
			region->bytes >> 20, rte_strerror(rte_errno));
	region->gpu_registered = true;
	return 0;
}

static int device_create(struct region *region, const struct region_config *config,
			 struct gdrcap_error *error)
{
	void *mapped;

	if (!config->addr) {
		region->base = rte_gpu_mem_alloc(region->gpu, region->bytes,
						 (unsigned int)(2u << 20));
		if (!region->base)
			return error_set(
				error, rte_errno ? -rte_errno : -ENOMEM,
				"the GPU has no %zu MiB to give: %s; ask for less with "
				"--pool, or free memory on it (nvidia-smi shows who holds it)",
				region->bytes >> 20, rte_strerror(rte_errno));
		region->owned = true;
	}
	/*
	 * The host "GPU" with guard=1 hands out addresses that the CPU cannot touch; its workers
	 * reach the memory through the CPU map. A CUDA kernel uses the address itself.
	 */
	region->device = region->base;
	if (region->owned && config->cpu_workers) {
		mapped = rte_gpu_mem_cpu_map(region->gpu, region->bytes, region->base);
		if (!mapped)
			return error_set(error, -rte_errno, "cannot map GPU memory for the CPU: %s",
					 rte_strerror(rte_errno));
		region->device = mapped;
	}
	return 0;
}

int region_create(struct region *region, const struct region_config *config,
		  struct gdrcap_error *error)
{
	int ret;

	memset(region, 0, sizeof(*region));
	region->gpu = config->gpu;
	region->kind = config->kind;
	region->bytes =
		align_up(config->bytes, config->bytes >= 2u << 20 ? 2u << 20 : REGION_ALIGN);
	if (config->addr)
		region->bytes = config->bytes / REGION_ALIGN * REGION_ALIGN;
	region->slot_shift = config->slot_shift;
	region->base = config->addr;
	if ((uintptr_t)config->addr % REGION_ALIGN || region->bytes == 0)
		return error_set(error, -EINVAL,
				 "the caller's memory must begin at a multiple of 64 KiB and be at "
				 "least as long");
	log_info("memory: taking %zu MiB", region->bytes >> 20);
	ret = config->kind == GDRCAP_MEMORY_DEVICE ? device_create(region, config, error) :
						     host_create(region, config, error);
	if (ret < 0)
		goto err;
	region->slots = (uint32_t)(region->bytes >> region->slot_shift);
	region->page = largest_page(region->base, region->bytes);
	if (rte_extmem_register(region->base, region->bytes, NULL, 0, region->page) < 0) {
		ret = error_set(error, -rte_errno,
				"EAL refused the region as external memory: %s; is the same memory "
				"in use by another session?",
				rte_strerror(rte_errno));
		goto err;
	}
	region->ext_registered = true;
	return 0;
err:
	region_destroy(region);
	return ret;
}

void region_destroy(struct region *region)
{
	if (!region->base)
		return;
	if (region->ext_registered && rte_extmem_unregister(region->base, region->bytes) < 0)
		log_warning("EAL kept the region registered: %s", rte_strerror(rte_errno));
	if (region->gpu_registered && rte_gpu_mem_unregister(region->gpu, region->base) < 0)
		log_warning("the GPU kept the region registered: %s", rte_strerror(rte_errno));
	if (region->owned && region->kind == GDRCAP_MEMORY_DEVICE) {
		if (region->device != region->base)
			rte_gpu_mem_cpu_unmap(region->gpu, region->base);
		if (rte_gpu_mem_free(region->gpu, region->base) < 0)
			log_warning("the GPU kept the region: %s", rte_strerror(rte_errno));
	} else if (region->owned) {
		munmap(region->base, region->bytes);
	}
	memset(region, 0, sizeof(*region));
}

int region_map_device(struct region *region, struct rte_device *device, struct gdrcap_error *error)
{
	if (rte_dev_dma_map(device, region->base, RTE_BAD_IOVA, region->bytes) < 0)
		return error_set(
			error, -rte_errno,
			"%s cannot register the region for DMA: %s; for GPU memory load the "
			"peer memory module (modprobe nvidia-peermem), for any memory raise "
			"the locked-memory limit (ulimit -l unlimited)",
			rte_dev_name(device), rte_strerror(rte_errno));
	return 0;
}

void region_unmap_device(struct region *region, struct rte_device *device)
{
	if (rte_dev_dma_unmap(device, region->base, RTE_BAD_IOVA, region->bytes) < 0)
		log_warning("%s kept the region registered: %s", rte_dev_name(device),
			    rte_strerror(rte_errno));
}

static struct rte_mempool *extbuf_pool(struct region *region, const char *name, uint32_t slots,
				       int numa_node)
{
	const uint32_t slot_bytes = 1u << region->slot_shift;
	const struct rte_pktmbuf_extmem ext = {
		.buf_ptr = region->base + ((size_t)region->slots_used << region->slot_shift),
		.buf_iova = RTE_BAD_IOVA,
		.buf_len = (size_t)slots << region->slot_shift,
		.elt_size = (uint16_t)slot_bytes,
	};

	return rte_pktmbuf_pool_create_extbuf(name, slots, REGION_POOL_CACHE, 0,
					      (uint16_t)slot_bytes, numa_node, &ext, 1);
}

_Static_assert(sizeof(struct rte_mempool_objhdr) + RTE_CACHE_LINE_SIZE + sizeof(struct rte_mbuf) <=
		       REGION_UMEM_HEAD,
	       "a slot's head");

static struct rte_mempool *umem_pool(struct region *region, const char *name, uint32_t slots,
				     int numa_node)
{
	const uint32_t header =
		RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_CACHE_LINE_SIZE);
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(UMEM_OBJECT - header - sizeof(struct rte_mbuf)),
	};
	struct rte_mempool *pool;
	int ret;

	pool = rte_mempool_create_empty(name, slots, UMEM_OBJECT - header, REGION_POOL_CACHE,
					sizeof(private), numa_node, RTE_MEMPOOL_F_NO_SPREAD);
	if (!pool)
		return NULL;
	ret = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret < 0)
		goto err;
	rte_pktmbuf_pool_init(pool, &private);
	ret = rte_mempool_populate_virt(pool,
					(char *)region->base +
						((size_t)region->slots_used << region->slot_shift),
					(size_t)slots << region->slot_shift, 0, NULL, NULL);
	if (ret < 0)
		goto err;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
err:
	rte_mempool_free(pool);
	rte_errno = -ret;
	return NULL;
}

struct rte_mempool *region_pool_create(struct region *region, const char *name, uint32_t slots,
				       bool umem, int numa_node, struct gdrcap_error *error)
{
	struct rte_mempool *pool;

	if (slots > region->slots - region->slots_used) {
		error_set(error, -ENOMEM,
			  "the region has %u slots left, %u are needed; raise --pool",
			  region->slots - region->slots_used, slots);
		return NULL;
	}
	pool = umem ? umem_pool(region, name, slots, numa_node) :
		      extbuf_pool(region, name, slots, numa_node);
	if (!pool && numa_node >= 0) {
		/* Hugepages may all lie on another node: slower is better than not at all. */
		log_warning("no memory for the frames' descriptors on NUMA node %d, the port's: "
			    "taking another's",
			    numa_node);
		pool = umem ? umem_pool(region, name, slots, SOCKET_ID_ANY) :
			      extbuf_pool(region, name, slots, SOCKET_ID_ANY);
	}
	if (!pool) {
		error_set(error, -rte_errno,
			  "cannot make a pool of %u frames: %s; ask for less with "
			  "--pool or reserve more hugepages",
			  slots, rte_strerror(rte_errno));
		return NULL;
	}
	region->slots_used += slots;
	return pool;
}

size_t region_pool_overhead(uint32_t slots)
{
	/* As rte_pktmbuf_pool_create_extbuf() makes them: the external buffer's bookkeeping lies
	 * behind the mbuf, and the mempool spreads objects over memory channels. */
	const uint32_t object = rte_mempool_calc_obj_size(
		sizeof(struct rte_mbuf) + sizeof(struct rte_mbuf_ext_shared_info), 0, NULL);

	/* The pool's ring of pointers is rounded up to a power of two. */
	return (size_t)slots * object + (size_t)rte_align32pow2(slots + 1) * sizeof(void *) +
	       (size_t)RTE_MAX_LCORE * sizeof(struct rte_mempool_cache) + (4u << 20);
}
