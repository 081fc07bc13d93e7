/* SPDX-License-Identifier: BSD-3-Clause */
/* Live tests of a GPU: memory registered, exported, written and read by a kernel. */
#include "doctor/live_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/patience.h"
#include "capture/ring_producer.h"
#include "gpu/gpu_drivers.h"
#include "gpu/gpu_export.h"
#include "kernels/frame_records.h"
#include "memory/region.h"

#define COPY_BYTES ((size_t)64 << 20)
#define COPY_TIMES 8
#define COPY_PIECES KERNEL_COPIES_MAX
#define FRAME_BYTES 74u /* the proof of concept's, without FCS */
#define ROUND_TRIPS 1001u
#define ANSWER_MS 2000u
#define LEAVE_MS 2000u

/* ---- registration ---- */

struct ibv_context *live_rdma_open(const char *name, bool devx, int *error)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	*error = list ? ENODEV : errno;
	for (int i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
			errno = 0;
			context = devx ? mlx5dv_open_device(list[i], &attr)
				       : ibv_open_device(list[i]);
			*error = context ? 0 : errno ? errno : EIO;
			break;
		}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static void registrations_try(const struct live_gpu *gpu, struct ibv_pd *pd, void *memory,
			      struct live_registration *result)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, LIVE_REGISTER_BYTES, IBV_ACCESS_LOCAL_WRITE);
	int fd;

	result->by_address = mr ? 0 : errno;
	if (mr)
		ibv_dereg_mr(mr);
	fd = gpu_export(gpu->gpu, memory, LIVE_REGISTER_BYTES);
	result->export = fd < 0 ? -fd : 0;
	if (fd < 0)
		return;
	mr = ibv_reg_dmabuf_mr(pd, 0, LIVE_REGISTER_BYTES, (uintptr_t)memory, fd,
			       IBV_ACCESS_LOCAL_WRITE);
	result->as_dmabuf = mr ? 0 : errno;
	if (mr)
		ibv_dereg_mr(mr);
	close(fd);
}

void live_register(const struct live_gpu *gpu, const char *rdma, struct live_registration *result)
{
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *memory;

	memset(result, 0, sizeof(*result));
	context = live_rdma_open(rdma, false, &result->open);
	if (!context)
		return;
	pd = ibv_alloc_pd(context);
	if (!pd) {
		result->open = errno;
		ibv_close_device(context);
		return;
	}
	memory = rte_gpu_mem_alloc(gpu->gpu, LIVE_REGISTER_BYTES, LIVE_REGISTER_BYTES);
	if (memory) {
		registrations_try(gpu, pd, memory, result);
		rte_gpu_mem_free(gpu->gpu, memory);
	} else {
		result->allocate = rte_errno ? rte_errno : ENOMEM;
	}
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

const char *live_register_reason(int error, int dmabuf)
{
	switch (error) {
	case EFAULT:
		return dmabuf ? "the kernel found no such memory"
			      : "no kernel module answers for GPU memory: nvidia-peermem is not loaded";
	case EINVAL:
		return dmabuf ? "the kernel or the card's driver refused this dma-buf"
			      : "neither nvidia-peermem nor a dma-buf stands behind the memory";
	case ENOMEM:
		return "locked memory (ulimit -l) or the GPU's BAR1 is full";
	case EPROTONOSUPPORT:
	case EOPNOTSUPP:
		return dmabuf ? "kernel, rdma-core or the card's driver does not take dma-bufs"
			      : "the card's driver does not register such memory";
	case EPERM:
	case EACCES:
		return "the process may not; run as root";
	default:
		return "";
	}
}

/* ---- copies ---- */

/* The GPU reads the host's memory itself: copy_in() would go through a buffer of the CPU's. */
static int copies_time(const struct live_gpu *gpu, uint8_t *to, const uint8_t *from, double *rate)
{
	static const size_t piece = COPY_BYTES / COPY_PIECES;
	struct kernel_copy *copies = calloc(COPY_PIECES, sizeof(*copies));
	uint64_t best = UINT64_MAX;
	int ret = copies ? 0 : kernel_fail(-ENOMEM, "no memory for a list of copies");

	for (size_t i = 0; ret == 0 && i < COPY_PIECES; i++)
		copies[i] = (struct kernel_copy){ from + i * piece, to + i * piece, piece, 0 };
	/* The first ones wake the link up; what it can is the best. */
	for (int i = 0; ret == 0 && i < COPY_TIMES; i++) {
		const uint64_t begin = now_ns();
		uint64_t passed;

		ret = gpu->ops->gather(gpu->device, copies, COPY_PIECES);
		passed = now_ns() - begin;
		best = passed && passed < best ? passed : best;
	}
	*rate = (double)COPY_BYTES * 1e9 / (double)best;
	free(copies);
	return ret;
}

int live_copy(const struct live_gpu *gpu, double *rate, struct gdrcap_error *error)
{
	void *to, *from = aligned_alloc(GPU_PAGE_BYTES, COPY_BYTES);
	int ret;

	if (!from)
		return error_set(error, -ENOMEM, "no %zu MiB of host memory", COPY_BYTES >> 20);
	memset(from, 0, COPY_BYTES);
	ret = rte_gpu_mem_register(gpu->gpu, COPY_BYTES, from);
	if (ret < 0) {
		ret = error_set(error, -rte_errno, "%zu MiB of host memory cannot be pinned: %s",
				COPY_BYTES >> 20, rte_strerror(rte_errno));
		goto err;
	}
	to = rte_gpu_mem_alloc(gpu->gpu, COPY_BYTES, GPU_PAGE_BYTES);
	if (!to) {
		ret = error_set(error, -ENOMEM, "no %zu MiB of GPU memory: %s", COPY_BYTES >> 20,
				rte_strerror(rte_errno));
		goto err_pinned;
	}
	ret = copies_time(gpu, to, from, rate);
	if (ret < 0)
		error_set(error, ret, "%s", kernel_error());
	rte_gpu_mem_free(gpu->gpu, to);
err_pinned:
	rte_gpu_mem_unregister(gpu->gpu, from);
err:
	free(from);
	return ret;
}

/* ---- the kernel ---- */

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct live_worker {
	const struct live_gpu *gpu;
	struct kernel_workers *workers;
};

static bool worker_is_starved(void *arg)
{
	const struct live_worker *worker = arg;

	return worker->gpu->ops->starved(worker->workers);
}

/* One hand-over: ns until the verdict. */
static int round_trip(const struct live_gpu *gpu, struct ring_producer *ring,
		      struct kernel_workers *workers, uint64_t *ns, struct gdrcap_error *error)
{
	const uint64_t burst = ring->burst, begin = now_ns();
	const uint32_t first = ring->first;
	struct live_worker worker = { gpu, workers };
	struct patience patience;
	struct frame_record plain;

	patience_begin(&patience);
	ring->desc[ring->head & ring->desc_mask] = (struct frame_desc){ .len = FRAME_BYTES };
	ring->head++;
	ring_publish(ring);
	while (!ring_is_done(ring, burst))
		/* Time in which CPU threads in the kernel's place had no core does not count. */
		if (patience_ends(&patience, ANSWER_MS, worker_is_starved, &worker))
			return gpu->ops->running(workers) < 0
				       ? error_set(error, -EIO, "the kernel died: %s",
						   kernel_error())
				       : error_set(error, -ETIMEDOUT, "no answer within 2 s");
	*ns = now_ns() - begin;
	if (burst_records(&ring->view, burst) != 1 ||
	    record_read(&ring->view, burst, first, 0, &plain)->verdict != FRAME_VALID)
		return error_set(error, -EIO,
				 "it found the frame damaged, which was right in memory");
	return 0;
}

static int round_trips(const struct live_gpu *gpu, struct ring_producer *ring,
		       const struct kernel_job *job, double *median_us, struct gdrcap_error *error)
{
	struct kernel_workers *workers = NULL;
	uint64_t ns[ROUND_TRIPS], middle;
	uint32_t done = 0;
	int ret, join;

	ret = gpu->ops->start(gpu->device, job, &workers);
	if (ret < 0)
		return error_set(error, ret, "the kernel does not start: %s", kernel_error());
	while (ret == 0 && done < ROUND_TRIPS)
		ret = round_trip(gpu, ring, workers, &ns[done++], error);
	__atomic_store_n(ring->stop, 1, __ATOMIC_RELAXED);
	join = gpu->ops->join(workers, LEAVE_MS);
	if (join < 0)
		ret = join == -ETIMEDOUT
			      ? join
			      : error_set(error, join, "the kernel failed: %s", kernel_error());
	if (join == -ETIMEDOUT)
		error_set(error, join, "the kernel does not leave");
	if (ret < 0)
		return ret;
	qsort(ns, ROUND_TRIPS, sizeof(ns[0]), by_time);
	middle = ns[ROUND_TRIPS / 2];
	*median_us = (double)middle / 1000;
	return 0;
}

int live_kernel(const struct live_gpu *gpu, double *round_trip_us, struct gdrcap_error *error)
{
	const struct region_config memory = {
		.gpu = gpu->gpu,
		.kind = GDRCAP_MEMORY_DEVICE,
		.bytes = REGION_ALIGN,
		.slot_shift = 8,
		.cpu_workers = gpu->ops == &kernel_host_ops,
	};
	const struct pattern_config config = { .kind = PATTERN_COUNTER8,
					       .restart = 1,
					       .invert = -1 };
	const struct frame_header header = { 0 };
	struct kernel_job job = { .role = KERNEL_CHECK,
				  .ring_count = 1,
				  .workers_per_ring = 1,
				  .frame_bytes_hint = FRAME_BYTES };
	struct ring_config rings = { .frames = ROUND_TRIPS,
				     .burst_max = 1,
				     .inlines = gpu->ops->reads_inline };
	struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));
	uint8_t frame[FRAME_BYTES];
	struct region region;
	int ret;

	if (!ring)
		return error_set(error, -ENOMEM, "no memory for a ring");
	frame_layout_proof(&job.layout);
	ret = pattern_init(&job.pattern, &config);
	if (ret < 0) {
		error_set(error, ret, "no memory for a pattern");
		goto err;
	}
	frame_write(&job.layout, &job.pattern, frame, FRAME_BYTES, &header);
	ret = region_create(&region, &memory, error);
	if (ret < 0)
		goto err_plan;
	rings.region = &region;
	ret = ring_create(ring, &rings, error);
	if (ret < 0)
		goto err_region;
	job.rings = &ring->view;
	ret = gpu->ops->copy_in(gpu->device, region.device, frame, FRAME_BYTES);
	if (ret < 0)
		error_set(error, ret, "%s", kernel_error());
	else
		ret = round_trips(gpu, ring, &job, round_trip_us, error);
	/* A kernel that is still there may come back to ring and region: they stay. */
	if (ret == -ETIMEDOUT)
		return ret;
	ring_destroy(ring);
err_region:
	region_destroy(&region);
err_plan:
	pattern_free(&job.pattern);
err:
	free(ring);
	return ret;
}
