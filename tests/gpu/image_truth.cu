/* SPDX-License-Identifier: BSD-3-Clause */
/* image_truth.h: a warp writes a frame, a block compares an image; the CPU does the same one by one. */
#include <cuda_runtime.h>

#include "image_truth.h"

#define THREADS 128u
#define WARPS (THREADS / 32u)
#define BLOCKS 256u

static cudaStream_t stream;

/* Byte `at` of image `id`. */
__host__ __device__ static uint8_t truth_byte(uint64_t id, uint64_t at)
{
	uint32_t x = (uint32_t)(id ^ id >> 32) * 0x85ebca6bu + (uint32_t)(at >> 2) * 0xc2b2ae35u;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	x ^= x >> 12;
	return (uint8_t)(x >> 8 * (at & 3));
}

/* Byte `b` of a frame, of which the payload begins at truth.payload. */
__host__ __device__ static uint8_t frame_byte(const struct truth &truth,
					      const struct truth_frame &frame, uint32_t b)
{
	if (b >= truth.payload)
		return truth_byte(frame.id,
				  (uint64_t)frame.piece * truth.piece + (b - truth.payload));
	if (b == 12 || b == 13)
		return (uint8_t)(frame.type >> 8 * (13 - b));
	if (b == 14 || b == 15)
		return (uint8_t)(frame.stream >> 8 * (15 - b));
	if (b >= 16 && b < 20)
		return (uint8_t)(frame.number >> 8 * (19 - b));
	if (b == 20 || b == 21)
		return (uint8_t)(frame.index >> 8 * (21 - b));
	return (uint8_t)(0x10 + b);
}

__host__ __device__ static void frame_write(const struct truth &truth,
					    const struct truth_frame &frame, uint32_t first,
					    uint32_t step)
{
	uint8_t *to = truth.frames + ((uint64_t)frame.slot << truth.slot_shift) + TRUTH_FRAME_AT;

	for (uint32_t b = first; b < truth.payload + truth.piece; b += step)
		to[b] = frame_byte(truth, frame, b);
}

__global__ void write_kernel(struct truth truth, const struct truth_frame *frames, uint32_t count)
{
	for (uint32_t f = blockIdx.x * WARPS + threadIdx.x / 32; f < count; f += gridDim.x * WARPS)
		frame_write(truth, frames[f], threadIdx.x % 32, 32);
}

/* What is wrong of the image's bytes first, first + step ... */
__host__ __device__ static void image_compare(const struct truth &truth,
					      const struct truth_image &image, uint32_t first,
					      uint32_t step, struct truth_found *found)
{
	for (uint64_t at = first; at < truth.stride; at += step) {
		const uint32_t piece = (uint32_t)at / truth.piece;
		const uint8_t is = image.data[at];

		if (at >= truth.bytes)
			found->wrong_guards += is != truth.guard;
		else if (image.there >> piece & 1)
			found->wrong_bytes += is != truth_byte(image.id, at);
		else
			found->wrong_bytes += is != TRUTH_FILL;
	}
	for (uint32_t w = first; w < (truth.pieces + 31) / 32; w += step) {
		uint32_t wrong = image.present[w] ^ (uint32_t)(image.there >> 32 * w);

		for (; wrong; wrong &= wrong - 1)
			found->wrong_bits++;
	}
}

__global__ void compare_kernel(struct truth truth, const struct truth_image *images, uint32_t count,
			       struct truth_found *found)
{
	struct truth_found mine = {};

	for (uint32_t i = blockIdx.x; i < count; i += gridDim.x)
		image_compare(truth, images[i], threadIdx.x, THREADS, &mine);
	if (mine.wrong_bytes)
		atomicAdd(&found->wrong_bytes, mine.wrong_bytes);
	if (mine.wrong_bits)
		atomicAdd(&found->wrong_bits, mine.wrong_bits);
	if (mine.wrong_guards)
		atomicAdd(&found->wrong_guards, mine.wrong_guards);
}

static int ended(cudaError_t error)
{
	if (!error)
		error = cudaGetLastError();
	if (!error)
		error = cudaStreamSynchronize(stream);
	return error ? -1 : 0;
}

int truth_write(const struct truth *truth, const struct truth_frame *frames, uint32_t count)
{
	for (uint32_t f = 0; f < count && !truth->gpu; f++)
		frame_write(*truth, frames[f], 0, 1);
	if (!truth->gpu)
		return 0;
	write_kernel<<<BLOCKS, THREADS, 0, stream>>>(*truth, frames, count);
	return ended(cudaSuccess);
}

int truth_compare(const struct truth *truth, const struct truth_image *images, uint32_t count,
		  struct truth_found *found)
{
	found->images += count;
	found->bytes += count * truth->bytes;
	for (uint32_t i = 0; i < count && !truth->gpu; i++)
		image_compare(*truth, images[i], 0, 1, found);
	if (!truth->gpu)
		return 0;
	compare_kernel<<<BLOCKS, THREADS, 0, stream>>>(*truth, images, count, found);
	return ended(cudaSuccess);
}

int truth_open(uint32_t gpu)
{
	struct truth none = {};

	none.gpu = gpu;
	if (!gpu)
		return 0;
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
		return -1;
	/* loads them: while a kernel runs that does not end, that could wait for it */
	write_kernel<<<1, THREADS, 0, stream>>>(none, NULL, 0);
	compare_kernel<<<1, THREADS, 0, stream>>>(none, NULL, 0, NULL);
	return ended(cudaSuccess);
}

void truth_close(void)
{
	if (stream)
		cudaStreamDestroy(stream);
	stream = NULL;
}
