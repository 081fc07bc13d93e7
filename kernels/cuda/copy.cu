/* SPDX-License-Identifier: BSD-3-Clause */
/* Fill and copy beside running kernels: a stream of their own, pinned staging, no implicit wait. */
#include <string.h>

#include "device.cuh"

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

int cuda_copy_in(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	pthread_mutex_lock(&device->copy_lock);
	for (size_t at = 0; at < bytes && !error; at += STAGING_BYTES) {
		const size_t part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;

		memcpy(device->staging, (const uint8_t *)from + at, part);
		error = cudaMemcpyAsync((uint8_t *)to + at, device->staging, part,
					cudaMemcpyDefault, device->copy_stream);
		if (!error)
			error = copy_wait(device);
	}
	pthread_mutex_unlock(&device->copy_lock);
	return error ? cuda_fail(error, "copying to GPU memory") : 0;
}

int cuda_copy_out(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	pthread_mutex_lock(&device->copy_lock);
	for (size_t at = 0; at < bytes && !error; at += STAGING_BYTES) {
		const size_t part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;

		error = cudaMemcpyAsync(device->staging, (const uint8_t *)from + at, part,
					cudaMemcpyDefault, device->copy_stream);
		if (!error)
			error = copy_wait(device);
		if (!error)
			memcpy((uint8_t *)to + at, device->staging, part);
	}
	pthread_mutex_unlock(&device->copy_lock);
	return error ? cuda_fail(error, "copying from GPU memory") : 0;
}
