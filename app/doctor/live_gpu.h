/* SPDX-License-Identifier: BSD-3-Clause */
/* The live tests' work, on any gpudev and back end, so that it can be tested without a GPU. */
#ifndef DOCTOR_LIVE_GPU_H
#define DOCTOR_LIVE_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"
#include "kernels/kernels.h"

struct live_gpu {
	int16_t gpu; /* gpudev id */
	const struct kernel_ops *ops;
	struct kernel_device *device;
};

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

/* Bytes a second from pinned host memory into the GPU's. */
int live_copy(const struct live_gpu *gpu, double *rate, struct gdrcap_error *error);

/* One frame in the GPU's memory, handed to a running kernel again and again: the median time from
 * hand-over to verdict, all of which must be right. */
int live_kernel(const struct live_gpu *gpu, double *round_trip_us, struct gdrcap_error *error);

#endif
