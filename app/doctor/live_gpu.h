/* SPDX-License-Identifier: BSD-3-Clause */
/* The live tests' work, on any gpudev and back end, so that it can be tested without a GPU. */
#ifndef DOCTOR_LIVE_GPU_H
#define DOCTOR_LIVE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"
#include "kernels/kernels.h"

struct live_gpu {
	int16_t gpu; /* gpudev id */
	const struct kernel_ops *ops;
	struct kernel_device *device;
	int ordinal; /* CUDA's; -1: it is none of CUDA's */
};
struct ibv_context;

#define LIVE_REGISTER_BYTES ((size_t)64 << 10)

/* 64 KiB of the GPU's memory as a card gets it: positive errno of each step, 0: it was done. */
struct live_registration {
	int open; /* the RDMA device; then nothing else was tried */
	int allocate;
	int by_address, as_dmabuf;
	int export; /* of the dma-buf; then as_dmabuf was not tried */
};
void live_register(const struct live_gpu *gpu, const char *rdma, struct live_registration *result);
/* What an errno of ibv_reg_mr() or ibv_reg_dmabuf_mr() means for GPU memory. */
const char *live_register_reason(int error, int dmabuf);

/* An RDMA device by its name; devx: as one that takes commands of the card. NULL: *error, positive. */
struct ibv_context *live_rdma_open(const char *name, bool devx, int *error);

/* The same memory as a card gets it for rings, and a page of its doorbells, each as above. */
#define LIVE_NOT_TRIED (-1)
struct live_umem {
	int open; /* with commands of the card (DevX); then nothing else was tried */
	int allocate;
	int by_address, as_dmabuf; /* ENOSYS: not in this build */
	int export;
	int doorbell; /* a page from the card */
	int mapping;  /* of that page in the GPU; LIVE_NOT_TRIED: not CUDA's, or no page */
};
void live_umem(const struct live_gpu *gpu, const char *rdma, struct live_umem *result);

/* Bytes a second from pinned host memory into the GPU's. */
int live_copy(const struct live_gpu *gpu, double *rate, struct gdrcap_error *error);

/* One frame in the GPU's memory, handed to a running kernel again and again: the median time from
 * hand-over to verdict, all of which must be right. */
int live_kernel(const struct live_gpu *gpu, double *round_trip_us, struct gdrcap_error *error);

#endif
