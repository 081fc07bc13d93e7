/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory registration, umem. */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>

#include "nic.h"

#define REGIONS_MAX 65536
#define LOCAL_WRITE_FLAGS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING)

/* The card reaches it as it reaches a region, but by the umem's number, not by a key. */
struct umem {
	struct mlx5dv_devx_umem dv;
	struct soft_region region;
};

static struct soft_region *regions[REGIONS_MAX];
static unsigned int region_end = 1; /* 0 is never a key */
static uint8_t key_variant;
static struct umem *umems[SOFT_OBJECTS_MAX];
static unsigned int umem_end;
static uint32_t pd_number;
static struct soft_pd *pds;

/* The order in which they are asked. */
static const struct soft_dma *const plugins[] = {
	&soft_dma_cuda,
	&soft_dma_hidden,
	&soft_dma_plain,
};
#define PLUGINS (sizeof(plugins) / sizeof(plugins[0]))

struct soft_region *soft_region_find(struct soft_device *device, uint32_t key, uint64_t address,
				     uint32_t length)
{
	uint32_t slot = key >> 8;
	struct soft_region *region = slot < region_end ? regions[slot] : NULL;

	if (device->faults.no_key_check && region != NULL)
		return region;
	if (device->faults.no_key_check) {
		/* The planted defect: any memory, as if it were registered. */
		static struct soft_region everything = { .dma = &soft_dma_plain,
							 .length = UINT64_MAX };

		return &everything;
	}
	if (region == NULL || region->key != key || region->revoked || region->device != device ||
	    address < region->iova || address - region->iova > region->length ||
	    length > region->length - (address - region->iova)) {
		device->count.bad_keys++;
		soft_log("%s: DMA refused: key 0x%x, address 0x%lx, %u bytes", device->ibv.name,
			 key, (unsigned long)address, length);
		return NULL;
	}
	return region;
}

void soft_regions_restore(void)
{
	for (unsigned int i = 1; i < region_end; i++)
		if (regions[i] != NULL)
			regions[i]->revoked = false;
}

void soft_dma_complete(void)
{
	for (unsigned int i = 0; i < PLUGINS; i++)
		if (plugins[i]->complete != NULL)
			plugins[i]->complete();
}

/* Asks the plugins for memory at region->ibv.addr. 0 or a positive errno. */
static int attach(struct soft_region *region, int file, uint64_t file_offset)
{
	int ret;

	for (unsigned int i = 0; i < PLUGINS; i++) {
		ret = plugins[i]->attach(region, file, file_offset);
		if (ret < 0)
			return -ret;
		if (ret == 0)
			continue;
		region->dma = plugins[i];
		/* Without nvidia-peermem the kernel finds no pages behind such an address. */
		if (file < 0 && region->dma->peer &&
		    soft_fault(&region->device->faults.refuse_peer)) {
			if (region->dma->detach != NULL)
				region->dma->detach(region);
			return EFAULT;
		}
		return 0;
	}
	return EFAULT;
}

static struct ibv_mr *region_create(struct ibv_pd *pd, void *address, uint64_t length,
				    uint64_t iova, int file, uint64_t file_offset)
{
	struct soft_device *device = soft_device(pd->context);
	struct soft_region *region = calloc(1, sizeof(*region));
	unsigned int slot;
	int error = ENOMEM;

	if (region == NULL)
		goto fail;
	nic_lock();
	error = EINVAL;
	if (length == 0)
		goto fail_unlock;
	error = ENOMEM;
	if (soft_fault(&device->faults.refuse))
		goto fail_unlock;
	error = EOPNOTSUPP;
	if (file >= 0 && soft_fault(&device->faults.refuse_dmabuf))
		goto fail_unlock;
	/* A freed slot is taken again only when there is no other: stale keys are caught longer. */
	for (slot = region_end; slot < REGIONS_MAX && regions[slot] != NULL; slot++)
		;
	if (slot == REGIONS_MAX)
		for (slot = 1; slot < REGIONS_MAX && regions[slot] != NULL; slot++)
			;
	error = ENOSPC;
	if (slot == REGIONS_MAX)
		goto fail_unlock;
	region->device = device;
	region->iova = iova;
	region->length = length;
	region->key = slot << 8 | ++key_variant;
	region->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = address,
		.length = length,
		.handle = slot,
		.lkey = region->key,
		.rkey = region->key,
	};
	error = attach(region, file, file_offset);
	if (error != 0)
		goto fail_unlock;
	regions[slot] = region;
	if (slot >= region_end)
		region_end = slot + 1;
	nic_unlock();
	soft_log("%s: %lu bytes at 0x%lx registered as %s memory%s, key 0x%x", device->ibv.name,
		 (unsigned long)length, (unsigned long)iova, region->dma->name,
		 file >= 0 ? " by its dma-buf" : "", region->key);
	return &region->ibv;
fail_unlock:
	nic_unlock();
	soft_log("%s: %lu bytes at 0x%lx not registered: errno %d", device->ibv.name,
		 (unsigned long)length, (unsigned long)iova, error);
	free(region);
fail:
	errno = error;
	return NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return region_create(pd, addr, length, iova, -1, 0);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return region_create(pd, addr, length, (uintptr_t)addr, -1, 0);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return region_create(pd, addr, length, iova, -1, 0);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	if (fd < 0) {
		errno = EBADF;
		return NULL;
	}
	return region_create(pd, (void *)(uintptr_t)iova, length, iova, fd, offset);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct soft_region *region = container(mr, struct soft_region, ibv);

	nic_lock();
	regions[mr->handle] = NULL;
	if (region->dma->detach != NULL)
		region->dma->detach(region);
	nic_unlock();
	free(region);
	return 0;
}

static struct soft_pd *pd_make(struct ibv_context *context, uint32_t number)
{
	struct soft_pd *pd = calloc(1, sizeof(*pd));

	if (pd == NULL)
		return NULL;
	pd->ibv.context = context;
	pd->ibv.handle = number;
	pd->number = number;
	pd->file = soft_context(context)->file;
	return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct soft_pd *pd = pd_make(context, __atomic_add_fetch(&pd_number, 1, __ATOMIC_RELAXED));

	if (pd == NULL)
		return NULL;
	nic_lock();
	pd->next = pds;
	pds = pd;
	nic_unlock();
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct soft_pd *pd = container(ibv, struct soft_pd, ibv), **at;

	nic_lock();
	for (at = &pds; *at != NULL && *at != pd; at = &(*at)->next)
		;
	/* One that was imported is not to be given back so. */
	if (*at == NULL)
		abort();
	*at = pd->next;
	nic_unlock();
	free(pd);
	return 0;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	bool known = false;
	struct soft_pd *pd;

	nic_lock();
	for (pd = pds; pd != NULL; pd = pd->next)
		known |= pd->number == pd_handle && pd->file == soft_context(context)->file;
	nic_unlock();
	if (!known) {
		errno = EINVAL;
		return NULL;
	}
	pd = pd_make(context, pd_handle);
	return pd != NULL ? &pd->ibv : NULL;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	free(container(pd, struct soft_pd, ibv));
}

static int umem_fill(struct umem *umem, const struct mlx5dv_devx_umem_in *in, bool dmabuf)
{
	struct soft_device *device = umem->region.device;

	/* Of a dma-buf the address is an offset in it. */
	umem->region.length = in->size;
	umem->region.ibv.addr = dmabuf ? NULL : in->addr;
	if (in->size == 0)
		return EINVAL;
	if (soft_fault(&device->faults.refuse_umem))
		return ENOMEM;
	if (dmabuf && soft_fault(&device->faults.refuse_dmabuf))
		return EOPNOTSUPP;
	return attach(&umem->region, dmabuf ? in->dmabuf_fd : -1, dmabuf ? (uintptr_t)in->addr : 0);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx,
						 struct mlx5dv_devx_umem_in *umem_in)
{
	struct umem *umem = calloc(1, sizeof(*umem));
	int error = ENOSPC;
	uint32_t slot;

	if (umem == NULL)
		return NULL;
	nic_lock();
	umem->region.device = soft_device(ctx);
	slot = soft_slot((void *const *)umems, &umem_end);
	if (slot != 0)
		error = umem_fill(umem, umem_in, umem_in->comp_mask & MLX5DV_UMEM_MASK_DMABUF);
	if (error == 0) {
		umem->dv.umem_id = slot;
		umems[slot] = umem;
	}
	nic_unlock();
	if (error != 0) {
		free(umem);
		errno = error;
		return NULL;
	}
	return &umem->dv;
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *ctx, void *addr, size_t size,
					      uint32_t access)
{
	struct mlx5dv_devx_umem_in in = { .addr = addr, .size = size, .access = access };

	return mlx5dv_devx_umem_reg_ex(ctx, &in);
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *dv)
{
	struct umem *umem = container(dv, struct umem, dv);

	nic_lock();
	umems[dv->umem_id] = NULL;
	if (umem->region.dma->detach != NULL)
		umem->region.dma->detach(&umem->region);
	nic_unlock();
	free(umem);
	return 0;
}

void *soft_umem_far(struct soft_device *device, uint32_t number, uint64_t offset, uint64_t length,
		    struct soft_far *far)
{
	struct umem *umem = number < SOFT_OBJECTS_MAX ? umems[number] : NULL;

	*far = (struct soft_far){ 0 };
	if (umem == NULL || umem->region.device != device || offset > umem->region.length ||
	    length > umem->region.length - offset)
		return NULL;
	if (umem->region.dma->direct)
		return umem->region.place + offset;
	*far = (struct soft_far){ &umem->region, offset };
	return NULL;
}

void *soft_umem(struct soft_device *device, uint32_t number, uint64_t offset, uint64_t length)
{
	struct soft_far far;

	return soft_umem_far(device, number, offset, length, &far);
}
