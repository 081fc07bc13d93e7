/* SPDX-License-Identifier: BSD-3-Clause */
/* The region of frames: allocated, registered with EAL, devices and the GPU. */
#include "memory/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

#include "base/eal.h"
#include "base/log.h"
#include "gpu/gpu_export.h"
#include "memory/core_dump.h"
#include "memory/dmabuf.h"
#include "memory/pool_one.h"

#define UMEM_OBJECT 4096u /* the kernel's limit for an AF_XDP chunk */
#define PAGE_MAX ((size_t)1 << 30)

static size_t align_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/*
 * mlx5 sorts its list of pages once for each new page, so small pages make a large pool slow to
 * start; and a page must divide the address, the length, and that of each pool.
 */
static size_t largest_page(const void *base, size_t bytes, size_t pool_bytes)
{
	size_t all = (uintptr_t)base | bytes | pool_bytes | PAGE_MAX;

	return all & -all;
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

bool region_can_write(void *addr, size_t bytes)
{
	uint8_t *ends[] = { addr, (uint8_t *)addr + bytes - 1 };
	bool can = true;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return true; /* nobody knows */
	for (int i = 0; i < 2; i++)
		can = can && write(fds[1], ends[i], 1) == 1 && read(fds[0], ends[i], 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return can;
}

static const char *less_option(const struct region_config *config)
{
	return config->less ? config->less : "pool";
}

static int host_create(struct region *region, const struct region_config *config,
		       struct gdrcap_error *error)
{
	if (!config->addr) {
		region->base = host_map(region->bytes);
		if (!region->base)
			return error_set(
				error, -ENOMEM,
				"cannot map %zu MiB of host memory: %s; ask for less with %s",
				region->bytes >> 20, strerror(errno), less_option(config));
		region->owned = true;
	}
	region->device = region->base;
	if (region->kind == GDRCAP_MEMORY_HOST)
		return 0;
	if (!region->owned && !config->cpu_workers &&
	    gpu_owns(region->gpu, region->base, region->bytes) == 1)
		return error_of_config(
			error,
			error_set(error, -EINVAL,
				  "the caller's memory at %p is the GPU's own, which cannot be "
				  "pinned: ask for memory: device",
				  region->base));
	if (rte_gpu_mem_register(region->gpu, region->bytes, region->base) < 0)
		return error_set(
			error, -rte_errno,
			"the GPU refused to register %zu MiB of host memory: %s; raise the "
			"locked-memory limit (ulimit -l unlimited) or ask for less with %s",
			region->bytes >> 20, rte_strerror(rte_errno), less_option(config));
	region->gpu_registered = true;
	return 0;
}

static int device_create(struct region *region, const struct region_config *config,
			 struct gdrcap_error *error)
{
	void *mapped;

	if (!config->addr) {
		log_words_forget();
		region->base =
			rte_gpu_mem_alloc(region->gpu, region->bytes, (unsigned int)(2u << 20));
		if (!region->base)
			return error_add_words(
				error,
				error_set(
					error, rte_errno ? -rte_errno : -ENOMEM,
					"the GPU has no %zu MiB to give: %s; ask for less with "
					"%s, or free memory on it (nvidia-smi shows who holds it)",
					region->bytes >> 20, rte_strerror(rte_errno),
					less_option(config)));
		region->owned = true;
	}
	if (!region->owned && region->peer &&
	    gpu_owns(region->gpu, region->base, region->bytes) == 0)
		return error_of_config(
			error,
			error_set(
				error, -EINVAL,
				"the caller's memory at %p is not memory of this GPU's own: pass "
				"an address from cudaMalloc() on it, or ask for memory: pinned if "
				"it is the CPU's",
				region->base));
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

/* For dmabuf.c. `context`: the gpudev id. */
static int region_export(void *context, void *base, size_t bytes)
{
	return gpu_export((int16_t)(intptr_t)context, base, bytes);
}

/* Of any region, as it is also what knows why a card was refused. */
static int region_note(struct region *region, struct gdrcap_error *error)
{
	const struct dmabuf_memory memory = {
		.base = region->base,
		.bytes = region->bytes,
		.export_fd = region->kind == GDRCAP_MEMORY_DEVICE ? region_export : NULL,
		.context = (void *)(intptr_t)region->gpu,
	};
	int ret = dmabuf_add(&memory, error);

	region->noted = ret == 0;
	return ret;
}

/* Of a GPU's memory there is nothing in a dump; what stands in for it may be mapped twice. */
static void region_leave_dumps(const struct region *region, const struct region_config *config)
{
	if (region->kind == GDRCAP_MEMORY_DEVICE && !config->cpu_workers)
		return;
	core_dump_without(region->base, region->bytes);
	if (region->device != region->base)
		core_dump_without(region->device, region->bytes);
}

int region_create(struct region *region, const struct region_config *config,
		  struct gdrcap_error *error)
{
	int ret;

	memset(region, 0, sizeof(*region));
	region->gpu = config->gpu;
	region->kind = config->kind;
	region->peer = config->kind == GDRCAP_MEMORY_DEVICE && !config->cpu_workers;
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
	ret = config->kind == GDRCAP_MEMORY_DEVICE ? device_create(region, config, error)
						   : host_create(region, config, error);
	if (ret < 0)
		goto err;
	if (region->owned && !config->dump)
		region_leave_dumps(region, config);
	region->slots = (uint32_t)(region->bytes >> region->slot_shift);
	region->page = largest_page(region->base, region->bytes, config->pool_bytes);
	ret = region_note(region, error);
	if (ret < 0)
		goto err;
	if (rte_extmem_register(region->base, region->bytes, NULL, 0, region->page) < 0) {
		ret = error_set(
			error, -rte_errno,
			"EAL refused the region as external memory: %s; is the same memory "
			"in use by another session, or is no file descriptor left (ulimit -n)?",
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
	if (region->noted)
		dmabuf_remove(region->base);
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

/* What it means that a card registered the region by its address. */
static const char *address_name(const struct region *region)
{
	return region->peer ? "nvidia-peermem" : "host memory";
}

static int map_failed(const struct region *region, const struct rte_device *device,
		      struct gdrcap_error *error)
{
	struct dmabuf_state state;
	char why[400];
	int code;

	dmabuf_state(region->base, &state);
	/* The driver's own is always EINVAL. */
	code = state.address_error ? -state.address_error : -EIO;
	if (region->kind == GDRCAP_MEMORY_DEVICE) {
		dmabuf_explain(region->base, why, sizeof(why));
		return error_set(error, code, "%s cannot register the frames' memory: %s",
				 rte_dev_name(device), why);
	}
	return error_set(error, code,
			 "%s cannot register %zu MiB of host memory: %s; raise the locked-memory "
			 "limit (ulimit -l unlimited) or ask for less with pool",
			 rte_dev_name(device), region->bytes >> 20, strerror(-code));
}

int region_map_device(struct region *region, struct rte_device *device, struct gdrcap_error *error)
{
	struct dmabuf_state before, now;

	dmabuf_state(region->base, &before);
	if (rte_dev_dma_map(device, region->base, RTE_BAD_IOVA, region->bytes) < 0)
		return map_failed(region, device, error);
	region->devices++;
	/* The pools over it, which the driver registers when its port starts, go the same way. */
	dmabuf_state(region->base, &now);
	if (now.by_dmabuf != before.by_dmabuf)
		log_info("memory: %s reaches it through dma-buf (%s refused: %s)",
			 rte_dev_name(device), region->peer ? "nvidia-peermem" : "its address",
			 strerror(now.address_error));
	else if (region->peer)
		log_info("memory: %s reaches it through nvidia-peermem", rte_dev_name(device));
	return 0;
}

void region_unmap_device(struct region *region, struct rte_device *device)
{
	if (rte_dev_dma_unmap(device, region->base, RTE_BAD_IOVA, region->bytes) < 0)
		log_warning("%s kept the region registered: %s", rte_dev_name(device),
			    rte_strerror(rte_errno));
	else
		region->devices--;
}

void region_registration(const struct region *region, char *text, size_t bytes)
{
	struct dmabuf_state state;

	text[0] = '\0';
	if (region->devices == 0)
		return;
	dmabuf_state(region->base, &state);
	/* A driver that does not come by dmabuf.c knows only the address. */
	if (state.by_dmabuf == 0)
		snprintf(text, bytes, "%s", address_name(region));
	else
		snprintf(text, bytes, "%s%sdma-buf", state.by_address ? address_name(region) : "",
			 state.by_address ? " and " : "");
}

static struct rte_mempool *extbuf_pool(struct region *region, const char *name, uint32_t slots,
				       uint32_t cache, int numa_node)
{
	const uint32_t slot_bytes = 1u << region->slot_shift;
	const struct rte_pktmbuf_extmem ext = {
		.buf_ptr = region->base + ((size_t)region->slots_used << region->slot_shift),
		.buf_iova = RTE_BAD_IOVA,
		.buf_len = (size_t)slots << region->slot_shift,
		.elt_size = (uint16_t)slot_bytes,
	};

	return rte_pktmbuf_pool_create_extbuf(name, slots, cache, 0, (uint16_t)slot_bytes,
					      numa_node, &ext, 1);
}

/* Cache lines of 128 bytes, as a DPDK for any Arm has them, fill it. */
_Static_assert(RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_CACHE_LINE_SIZE) +
			       sizeof(struct rte_mbuf) <=
		       REGION_UMEM_HEAD,
	       "a slot's head");

static struct rte_mempool *umem_pool(struct region *region, const char *name, uint32_t slots,
				     uint32_t cache, int numa_node)
{
	const uint32_t header =
		RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_CACHE_LINE_SIZE);
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(UMEM_OBJECT - header - sizeof(struct rte_mbuf)),
	};
	struct rte_mempool *pool;
	int ret;

	pool = rte_mempool_create_empty(name, slots, UMEM_OBJECT - header, cache, sizeof(private),
					numa_node, RTE_MEMPOOL_F_NO_SPREAD);
	if (!pool)
		return NULL;
	ret = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret < 0)
		goto err;
	rte_pktmbuf_pool_init(pool, &private);
	ret = rte_mempool_populate_virt(
		pool, (char *)region->base + ((size_t)region->slots_used << region->slot_shift),
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

static int slots_left(const struct region *region, uint32_t slots, struct gdrcap_error *error)
{
	if (slots <= region->slots - region->slots_used)
		return 0;
	return error_set(error, -ENOMEM, "the region has %u slots left, %u are needed; raise pool",
			 region->slots - region->slots_used, slots);
}

int region_take(struct region *region, uint32_t slots, uint32_t *first, struct gdrcap_error *error)
{
	int ret = slots_left(region, slots, error);

	if (ret < 0)
		return ret;
	*first = region->slots_used;
	region->slots_used += slots;
	return 0;
}

struct rte_mempool *region_pool_create(struct region *region, const char *name, uint32_t slots,
				       bool umem, enum region_pool_use use, int numa_node,
				       struct gdrcap_error *error)
{
	const uint32_t cache = use == REGION_POOL_CACHED ? REGION_POOL_CACHE : 0;
	struct rte_mempool *pool;

	if (slots_left(region, slots, error) < 0)
		return NULL;
	pool = umem ? umem_pool(region, name, slots, cache, numa_node)
		    : extbuf_pool(region, name, slots, cache, numa_node);
	if (!pool && numa_node >= 0) {
		/* Hugepages may all lie on another node: slower is better than not at all. */
		log_warning("no memory for the frames' descriptors on NUMA node %d, the port's: "
			    "taking another's",
			    numa_node);
		pool = umem ? umem_pool(region, name, slots, cache, SOCKET_ID_ANY)
			    : extbuf_pool(region, name, slots, cache, SOCKET_ID_ANY);
	}
	if (!pool) {
		error_set(error, -rte_errno,
			  "pool: no memory for the descriptors of %u frames: %s; ask for a smaller "
			  "one; " EAL_MEMORY_REMEDY,
			  slots, rte_strerror(rte_errno));
		return NULL;
	}
	if (use == REGION_POOL_ONE)
		pool_is_ones(pool);
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
	       (size_t)RTE_MAX_LCORE * sizeof(struct rte_mempool_cache) + (1u << 20);
}
