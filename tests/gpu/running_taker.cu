/* SPDX-License-Identifier: BSD-3-Clause */
/* The running kernel of test_image_latency_cuda.c: says at once that an image is there. */
#include "gdrcap_device.cuh"
#include "running_taker.h"

/* One block. `seen`: in pinned memory. Every byte of an image is its number's low byte. */
__global__ static void taker_kernel(struct gdrcap_gpu_images images, struct taker_words *words)
{
	for (uint64_t seq = 0;; seq++) {
		struct gdrcap_image image;
		uint32_t wrong = 0;
		int got;

		while ((got = gdrcap_gpu_image_try_next(images, seq, &image)) == 0)
			;
		if (got < 0)
			return;
		if (threadIdx.x == 0)
			asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&words->seen),
				     "l"(seq + 1)
				     : "memory");
		for (uint64_t at = threadIdx.x; at < image.bytes; at += blockDim.x)
			wrong += image.data[at] != (uint8_t)image.number;
		if (wrong || image.end != GDRCAP_IMAGE_COMPLETE)
			atomicAdd(&words->wrong, 1u);
		gdrcap_gpu_image_release(images, seq);
	}
}

int taker_start(const struct gdrcap_gpu_images *images, struct taker_words *words)
{
	cudaStream_t stream;
	cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

	if (!error) {
		taker_kernel<<<1, 128, 0, stream>>>(*images, words);
		error = cudaGetLastError();
	}
	return error ? -1 : 0;
}
