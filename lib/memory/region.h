/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that frames land in: one region of equal slots a GPU, and mempools over parts of it.
 * A slot is a power of two from 256 to 16384 bytes, so none straddles a 64 KiB page.
 */
#ifndef GDRCAP_REGION_H
#define GDRCAP_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"

#define REGION_UMEM_HEAD 256u /* of a slot whose pool lies in the region: mempool header and mbuf */
#define REGION_POOL_CACHE                                                                          \
	512u /* mbufs that a thread keeps to itself: RTE_MEMPOOL_CACHE_MAX_SIZE ... */
#define REGION_POOL_CACHE_MOST 768u /* ... and half as many more before it gives some back */
#define REGION_ALIGN (64u << 10)    /* GPUDirect RDMA maps GPU memory in pages of 64 KiB */

#define REGION_IMAGE_SHIFT 16u /* images have no slots: pages */
#define REGION_HEAD_SHIFT 8u /* header-data split: slots of 256 bytes for the frames' beginnings */

struct rte_mempool;
struct rte_device;

struct region {
	uint8_t *base;	 /* what mbufs and NICs use */
	uint8_t *device; /* the same memory as the consumer's workers address it */
	size_t bytes;
	size_t page;	     /* as registered with EAL: the largest that base and bytes allow */
	uint32_t slot_shift; /* log2 of the slot size in bytes */
	uint32_t slots;
	uint32_t slots_used;	 /* handed to pools so far */
	enum gdrcap_memory kind; /* never AUTO */
	int16_t gpu;		 /* gpudev id */
	bool owned;		 /* false: the caller's memory */
	bool gpu_registered, ext_registered;
	uint32_t devices; /* that it is mapped for */
	bool noted;	  /* dmabuf_add() was called */
	bool peer;	  /* a card finds it by its address only with the peer memory module */
};

struct region_config {
	int16_t gpu;
	enum gdrcap_memory kind;
	size_t bytes; /* rounded up to 64 KiB */
	uint32_t slot_shift;
	void *addr;	   /* caller's memory, or NULL */
	size_t pool_bytes; /* of each pool; 0: one takes all. Drivers register whole pages for a pool:
			    * of theirs none belongs to two */
	bool cpu_workers; /* the consumer's workers are CPU threads: they need the CPU map */
	const char *less; /* the option that asks for less; NULL: pool */
	bool dump; /* core dumps have it; the caller's memory is always as the caller made it */
};

/* Whether the CPU can read and write there, first byte and last, asked of the kernel so that nothing faults. */
bool region_can_write(void *addr, size_t bytes);
int region_create(struct region *region, const struct region_config *config,
		  struct gdrcap_error *error);
void region_destroy(struct region *region);

/* Makes the region writable by a device that does DMA: mlx5 registers the memory, by address or as
 * a dma-buf (dmabuf.h), which is logged. */
int region_map_device(struct region *region, struct rte_device *device, struct gdrcap_error *error);
void region_unmap_device(struct region *region, struct rte_device *device);
/* How the cards that it was mapped for reach it, for people: "nvidia-peermem", "dma-buf",
 * "nvidia-peermem and dma-buf", "host memory", ...; "" where no card does. */
void region_registration(const struct region *region, char *text, size_t bytes);

/*
 * A mempool of `slots` mbufs over the region's next slots. `umem`: the mempool's objects
 * themselves lie in the region (af_xdp makes them its UMEM) instead of external buffers.
 * NULL: *error says why.
 */
enum region_pool_use {
	REGION_POOL_CACHED, /* threads keep some mbufs to themselves */
	REGION_POOL_SHARED, /* none does; first in, first out */
	REGION_POOL_ONE, /* the same, and one thread at a time gives mbufs back, one takes them */
};
struct rte_mempool *region_pool_create(struct region *region, const char *name, uint32_t slots,
				       bool umem, enum region_pool_use use, int numa_node,
				       struct gdrcap_error *error);

/* The region's next slots, for who needs no mbufs for them. 0, or -ENOMEM. */
int region_take(struct region *region, uint32_t slots, uint32_t *first, struct gdrcap_error *error);

/* EAL memory in bytes that pools of this many mbufs need: for sizing before EAL starts. */
size_t region_pool_overhead(uint32_t slots);

#endif
