/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA kernels and the CPU backend side by side, on the same scene. */
#ifndef GDRCAP_TEST_KERNEL_PAIR_H
#define GDRCAP_TEST_KERNEL_PAIR_H

#include <errno.h>
#include <inttypes.h>

#include <cuda_runtime_api.h>

#include "../unit/kernel_scene.h"

static struct kernel_device *host, *cuda;
static struct scene_result wanted[SCENE_BURSTS], found[SCENE_BURSTS];
static struct scene scene;
static uint64_t frames_compared, records_compared;

static void *pinned_alloc(size_t bytes)
{
	void *memory = NULL;

	if (cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) != cudaSuccess)
		return NULL;
	memset(memory, 0, bytes);
	return memory;
}

static void pinned_free(void *memory)
{
	cudaFreeHost(memory);
}

static void *plain_alloc(size_t bytes)
{
	const size_t whole = (bytes + 127) & ~(size_t)127;
	void *memory = aligned_alloc(128, whole);

	if (memory)
		memset(memory, 0, whole);
	return memory;
}

static const struct scene_memory pinned = { pinned_alloc, pinned_free };
static const struct scene_memory plain = { plain_alloc, free };

/* Says which call failed; the text is of the back end. */
static bool done(int ret, const char *what)
{
	if (ret)
		fprintf(stderr, "%s: %s\n", what, kernel_error());
	return !ret;
}

/* Opens both and takes GPU memory for frames. 0, 77 without a GPU, or 1. */
static int pair_open(uint8_t **device_frames)
{
	struct kernel_info info;
	int ret = kernel_cuda_ops.open(0, &cuda);

	if (ret) {
		printf("skipped: %s\n", kernel_error());
		return ret == -ENODEV ? 77 : 1;
	}
	kernel_host_ops.open(0, &host);
	kernel_cuda_ops.info(cuda, &info);
	printf("%s, %u multiprocessors, writes ordering %d, flush options %d\n", info.name,
	       info.units, info.writes_ordering, info.flush_options);
	cudaSetDevice(0);
	if (cudaMalloc((void **)device_frames, SCENE_BYTES) != cudaSuccess) {
		fprintf(stderr, "no GPU memory\n");
		return 1;
	}
	return 0;
}

static void pair_close(uint8_t *device_frames)
{
	cudaFree(device_frames);
	kernel_cuda_ops.close(cuda);
	kernel_host_ops.close(host);
}

static inline bool compare_written(uint8_t *device_frames, uint8_t *copy)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;

	if (!done(ops->fill(cuda, device_frames, 0xa5, SCENE_BYTES), "fill") ||
	    scene_play(&scene, &kernel_host_ops, host, &plain, scene.frames, KERNEL_WRITE,
		       wanted) ||
	    scene_play(&scene, ops, cuda, &pinned, device_frames, KERNEL_WRITE, found) ||
	    !done(ops->copy_out(cuda, copy, device_frames, SCENE_BYTES), "copy_out"))
		return false;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		frames_compared += scene.burst[b].count;
	return scene_same_frames(&scene, scene.frames, copy) &&
	       scene_same_runs(&scene, wanted, found);
}

static inline bool compare_checked(uint8_t *device_frames)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;

	if (!done(ops->copy_in(cuda, device_frames, scene.frames, SCENE_BYTES), "copy_in") ||
	    scene_play(&scene, &kernel_host_ops, host, &plain, scene.frames, KERNEL_CHECK,
		       wanted) ||
	    scene_play(&scene, ops, cuda, &pinned, device_frames, KERNEL_CHECK, found))
		return false;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		records_compared += wanted[b].records;
	return scene_same_runs(&scene, wanted, found);
}

#endif
