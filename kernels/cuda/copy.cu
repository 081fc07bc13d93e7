/* SPDX-License-Identifier: BSD-3-Clause */
/* Fill and copy beside running kernels: a stream of their own, pinned staging, no implicit wait. */
#include <errno.h>
#include <string.h>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/unaligned16.cuh"
#include "kernels/cuda/ring.cuh"

/* A gather waits for memory and PCIe, so many warps take part, with a frame each. */
#define GATHER_THREADS 256u
#define GATHER_BLOCKS_MAX 64u

/* A kernel of our own: it is loaded before workers run, and fills whatever the GPU can address. */
__global__ void fill_kernel(uint8_t *at, uint32_t word, size_t bytes)
{
	const uint64_t shift = (uintptr_t)at % 16, pieces = (shift + bytes + 15) / 16;
	uint8_t *base = at - shift;

	for (uint64_t p = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; p < pieces;
	     p += (uint64_t)gridDim.x * blockDim.x) {
		if (p * 16 >= shift && p * 16 + 16 <= shift + bytes) {
			((uint4 *)base)[p] = make_uint4(word, word, word, word);
			continue;
		}
		for (uint64_t b = p * 16; b < p * 16 + 16; b++)
			if (b >= shift && b < shift + bytes)
				base[b] = (uint8_t)word;
	}
}

/* Waits for what is in the copy stream, asleep. */
static cudaError_t copy_wait(struct kernel_device *device)
{
	cudaError_t error = cudaEventRecord(device->copied, device->copy_stream);

	return error ? error : cudaEventSynchronize(device->copied);
}

int cuda_fill(struct kernel_device *device, void *at, uint8_t byte, size_t bytes)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;
	uint32_t word = byte * 0x01010101u;
	void *args[] = { &at, &word, &bytes };

	if (!bytes)
		return 0;
	pthread_mutex_lock(&device->copy_lock);
	if (!error)
		error = cudaLaunchKernel((const void *)fill_kernel, dim3(64), dim3(256), args, 0,
					 device->copy_stream);
	if (!error)
		error = copy_wait(device);
	pthread_mutex_unlock(&device->copy_lock);
	return error ? cuda_fail(error, "filling memory") : 0;
}

/* Through the staging memory: into the GPU's, or out of it. */
static int copy_staged(struct kernel_device *device, void *to, const void *from, size_t bytes,
		       bool in)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	pthread_mutex_lock(&device->copy_lock);
	for (size_t at = 0; at < bytes && !error; at += STAGING_BYTES) {
		const size_t part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;

		const uint8_t *source = (const uint8_t *)from + at;
		uint8_t *target = (uint8_t *)to + at;

		if (in)
			memcpy(device->staging, source, part);
		error = cudaMemcpyAsync(in ? target : device->staging,
					in ? device->staging : source, part, cudaMemcpyDefault,
					device->copy_stream);
		if (!error)
			error = copy_wait(device);
		if (!error && !in)
			memcpy(target, device->staging, part);
	}
	pthread_mutex_unlock(&device->copy_lock);
	if (error)
		return cuda_fail(error, in ? "copying to GPU memory" : "copying from GPU memory");
	return 0;
}

int cuda_copy_in(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	return copy_staged(device, to, from, bytes, true);
}

int cuda_copy_out(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	return copy_staged(device, to, from, bytes, false);
}

/*
 * Warp w of W takes copies w, w + W, ... Their addresses come over PCIe, so lanes ask for 32 of
 * them at once.
 */
__global__ void gather_kernel(const struct kernel_copy *copies, uint32_t count)
{
	const uint32_t lane = lane_index(), warps = gridDim.x * (GATHER_THREADS / 32);
	const uint32_t warp = (blockIdx.x * GATHER_THREADS + threadIdx.x) / 32;

	for (uint32_t first = warp; first < count; first += 32 * warps) {
		const uint32_t mine = first + lane * warps;
		uint64_t from = 0, to = 0;
		uint32_t bytes = 0;

		if (mine < count) {
			from = (uint64_t)copies[mine].from;
			to = (uint64_t)copies[mine].to;
			bytes = copies[mine].bytes;
		}
		for (uint32_t k = 0; k < 32 && first + k * warps < count; k++)
			warp_copy((uint8_t *)__shfl_sync(WARP_ALL, to, (int)k),
				  (const uint8_t *)__shfl_sync(WARP_ALL, from, (int)k),
				  __shfl_sync(WARP_ALL, bytes, (int)k));
	}
}

/* Asks until all is copied: being woken would take 50 us, and the caller has other work to do. */
static cudaError_t gather_wait(struct kernel_device *device)
{
	cudaError_t error;

	while ((error = cudaEventQuery(device->gathered)) == cudaErrorNotReady)
		;
	return error;
}

int cuda_gather(struct kernel_device *device, const struct kernel_copy *copies, uint32_t count)
{
	current_device current(device->ordinal);
	const uint32_t blocks = (count + GATHER_THREADS / 32 - 1) / (GATHER_THREADS / 32);
	cudaError_t error = current.error;
	void *args[] = { &device->copies, &count };

	if (!count)
		return 0;
	if (count > KERNEL_COPIES_MAX)
		return kernel_fail(-EINVAL, "%u frames to be copied at once; at most %u", count,
				   KERNEL_COPIES_MAX);
	pthread_mutex_lock(&device->gather_lock);
	memcpy(device->copies, copies, count * sizeof(*copies));
	if (!error)
		error = cudaLaunchKernel(
			(const void *)gather_kernel,
			dim3(blocks < GATHER_BLOCKS_MAX ? blocks : GATHER_BLOCKS_MAX),
			dim3(GATHER_THREADS), args, 0, device->copy_stream);
	if (!error)
		error = cudaEventRecord(device->gathered, device->copy_stream);
	if (!error)
		error = gather_wait(device);
	cudaGetLastError(); /* that it was not ready at once is no error for others to find */
	pthread_mutex_unlock(&device->gather_lock);
	return error ? cuda_fail(error, "gathering frames") : 0;
}
