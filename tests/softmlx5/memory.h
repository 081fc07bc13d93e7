/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: what the card may reach, and how. */
#ifndef SOFT_MEMORY_H
#define SOFT_MEMORY_H

#include "soft.h"

struct soft_region {
	struct ibv_mr ibv;
	struct soft_device *device;
	uint64_t iova; /* address that the card uses for the first byte */
	uint64_t length;
	uint32_t key;
	bool revoked;
	const struct soft_dma *dma;
	uint8_t *place; /* the DMA plugin's address of the first byte */
	void *plugin;	/* its own data */
};

/*
 * A kind of memory. Transfers may be asynchronous: complete() waits for all of them. read() copies
 * to the host, write() from it; the host's side stays as it is until complete().
 */
struct soft_dma {
	const char *name;
	/* Memory of a device: a registration needs nvidia-peermem or a dma-buf. */
	bool peer;
	bool direct; /* the card's thread may touch `place` itself */
	/* 1: this plugin's memory; 0: not; or negative errno. file: of a dma-buf, or -1. */
	int (*attach)(struct soft_region *region, int file, uint64_t file_offset);
	void (*detach)(struct soft_region *region);
	void (*write)(struct soft_region *region, uint64_t offset, const void *from, size_t length);
	void (*read)(struct soft_region *region, uint64_t offset, void *to, size_t length);
	void (*complete)(void);
};

extern const struct soft_dma soft_dma_plain;
extern const struct soft_dma soft_dma_hidden; /* pages that the CPU may not touch */
extern const struct soft_dma soft_dma_cuda;

/* The region that holds [address, address + length) under that key; NULL: the card must not touch
 * it. */
struct soft_region *soft_region_find(struct soft_device *device, uint32_t key, uint64_t address,
				     uint32_t length);

static inline void soft_region_write(struct soft_region *region, uint64_t address, const void *from,
				     size_t length)
{
	region->dma->write(region, address - region->iova, from, length);
}

static inline void soft_region_read(struct soft_region *region, uint64_t address, void *to,
				    size_t length)
{
	region->dma->read(region, address - region->iova, to, length);
}

/* Revoked keys work again. */
void soft_regions_restore(void);

/* Waits until every transfer so far is done. */
void soft_dma_complete(void);

/* Rings and doorbell records of DevX queues. NULL: no such umem, or it is too short, or far. */
void *soft_umem(struct soft_device *device, uint32_t number, uint64_t offset, uint64_t length);
/* The same of what may be far: NULL with far->region set. */
void *soft_umem_far(struct soft_device *device, uint32_t number, uint64_t offset, uint64_t length,
		    struct soft_far *far);

/* Its bytes, now. */
static inline void soft_far_read(const struct soft_far *far, uint64_t at, void *to, size_t length)
{
	far->region->dma->read(far->region, far->offset + at, to, length);
	far->region->dma->complete();
}

#endif
