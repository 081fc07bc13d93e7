/* SPDX-License-Identifier: BSD-3-Clause */
/* Live test of queues of our own: GPU memory for their rings, and a doorbell that the GPU rings. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#ifdef GDRCAP_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "doctor/live_gpu.h"
#include "gpu/gpu_export.h"

#define PAGE 4096u

static int by_address(struct ibv_context *context, void *memory)
{
	struct mlx5dv_devx_umem *umem;

	errno = 0;
	umem = mlx5dv_devx_umem_reg(context, memory, LIVE_REGISTER_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!umem)
		return errno ? errno : EIO;
	mlx5dv_devx_umem_dereg(umem);
	return 0;
}

static int as_dmabuf(struct ibv_context *context, int fd)
{
#ifdef GDRCAP_UMEM_EX
	struct mlx5dv_devx_umem_in in = {
		.size = LIVE_REGISTER_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = ~(uint64_t)(PAGE - 1), /* any page size from the host's on */
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
		.dmabuf_fd = fd,
	};
	struct mlx5dv_devx_umem *umem;

	errno = 0;
	umem = mlx5dv_devx_umem_reg_ex(context, &in);
	if (!umem)
		return errno ? errno : EIO;
	mlx5dv_devx_umem_dereg(umem);
	return 0;
#else
	return ENOSYS; /* built with rdma-core before 43 */
#endif
}

static void memory_try(const struct live_gpu *gpu, struct ibv_context *context, void *memory,
		       struct live_umem *result)
{
	int fd;

	result->by_address = by_address(context, memory);
	fd = gpu_export(gpu->gpu, memory, LIVE_REGISTER_BYTES);
	result->export = fd < 0 ? -fd : 0;
	if (fd < 0)
		return;
	result->as_dmabuf = as_dmabuf(context, fd);
	close(fd);
}

/* The card's page in the GPU: what a kernel that rings the doorbell needs. */
static int doorbell_map(const struct live_gpu *gpu, struct mlx5dv_devx_uar *uar)
{
#ifdef GDRCAP_WITH_CUDA
	void *page = (void *)((uintptr_t)uar->reg_addr & ~(uintptr_t)(PAGE - 1));
	cudaError_t error;

	if (gpu->ordinal < 0)
		return LIVE_NOT_TRIED;
	error = cudaSetDevice(gpu->ordinal);
	if (error == cudaSuccess)
		error = cudaHostRegister(page, PAGE,
					 cudaHostRegisterPortable | cudaHostRegisterMapped |
						 cudaHostRegisterIoMemory);
	if (error == cudaSuccess) {
		(void)cudaHostUnregister(page);
		return 0;
	}
	(void)cudaGetLastError(); /* it is told, and not anybody else's */
	return error == cudaErrorNotPermitted	? EPERM
	       : error == cudaErrorNotSupported ? EOPNOTSUPP
						: EINVAL;
#else
	return LIVE_NOT_TRIED;
#endif
}

static void doorbell_try(const struct live_gpu *gpu, struct ibv_context *context,
			 struct live_umem *result)
{
	struct mlx5dv_devx_uar *uar;

	errno = 0;
	uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!uar)
		uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_BF);
	result->doorbell = uar ? 0 : errno ? errno : EIO;
	if (!uar)
		return;
	result->mapping = doorbell_map(gpu, uar);
	mlx5dv_devx_free_uar(uar);
}

void live_umem(const struct live_gpu *gpu, const char *rdma, struct live_umem *result)
{
	struct ibv_context *context;
	void *memory;

	memset(result, 0, sizeof(*result));
	context = live_rdma_open(rdma, true, &result->open);
	if (!context)
		return;
	memory = rte_gpu_mem_alloc(gpu->gpu, LIVE_REGISTER_BYTES, LIVE_REGISTER_BYTES);
	if (memory) {
		memory_try(gpu, context, memory, result);
		rte_gpu_mem_free(gpu->gpu, memory);
	} else {
		result->allocate = rte_errno ? rte_errno : ENOMEM;
	}
	doorbell_try(gpu, context, result);
	ibv_close_device(context);
}
