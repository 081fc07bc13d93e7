/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of test_on_stream_cuda.cu: what streams do between a wait and its release. */
#ifndef GDRCAP_ON_STREAM_KERNELS_CUH
#define GDRCAP_ON_STREAM_KERNELS_CUH

#include "image_frames.cuh"

#define FRAME 200u /* with FCS */
#define HEADER 14u
#define PAYLOAD (HEADER + 36u)

struct tally { /* written by kernels with atomics, read by the CPU when they have ended */
	unsigned long long frames, wrong, sum, batches, over;
};

/* ---- a batch ---- */

__device__ static uint64_t big_endian(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* docs/frame-format.md; pattern counter8. */
__device__ static bool frame_is_right(const uint8_t *frame, uint32_t len, uint64_t *sequence)
{
	const uint64_t position = big_endian(frame + HEADER + 16, 8);
	bool right = len == FRAME - 4 && big_endian(frame + HEADER, 2) == 0x6743;

	*sequence = big_endian(frame + HEADER + 8, 8);
	for (uint32_t i = 0; right && i < len - PAYLOAD; i++)
		right = frame[PAYLOAD + i] == (uint8_t)(position + i);
	return right;
}

/* All blocks have the batch; none gives it back. Behind a wait there is one, or the end. */
__global__ static void batch_kernel(struct gdrcap_gpu_queue queue, uint64_t seq,
				    struct tally *tally)
{
	struct gdrcap_batch batch;
	const int got = gdrcap_gpu_try_next(queue, seq, &batch);

	if (threadIdx.x == 0 && blockIdx.x == 0) {
		if (got < 0)
			atomicAdd(&tally->over, 1ull);
		else
			atomicAdd(&tally->batches, 1ull);
		if (got == 0)
			atomicAdd(&tally->wrong, 1ull);
	}
	if (got <= 0)
		return;
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < batch.count;
	     i += gridDim.x * blockDim.x) {
		uint64_t sequence;

		if (!frame_is_right(gdrcap_gpu_frame(batch, i), gdrcap_gpu_frame_bytes(batch, i),
				    &sequence))
			atomicAdd(&tally->wrong, 1ull);
		atomicAdd(&tally->frames, 1ull);
		atomicAdd(&tally->sum, (unsigned long long)sequence);
	}
}

/* ---- an image ---- */

__global__ static void image_kernel(struct gdrcap_gpu_images images, uint64_t seq,
				    struct image_tally *tally)
{
	struct gdrcap_image image;
	const int got = gdrcap_gpu_image_try_next(images, seq, &image);

	if (threadIdx.x == 0 && (got == 0 || (got > 0 && image.seq != seq)))
		atomicAdd(&tally->wrong, 1ull);
	if (got > 0)
		image_check(image, tally);
}

/* ---- frames that are sent ---- */

__device__ static uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number * 31 % (FRAME - 4 - 60 + 1));
}

__device__ static uint8_t byte_of(uint64_t number, uint32_t i)
{
	return i < 8 ? (uint8_t)(number >> 8 * i) : (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

struct sending {				     /* one writer: the kernel of its stream */
	unsigned long long number, wrong_room, over; /* of the frame that is written next */
	unsigned long long next, wrong;		     /* of the one that comes next */
};

/* One block: of `count` slots it fills some, by which the order's others are left out. */
__global__ static void fill_kernel(struct gdrcap_gpu_tx tx, uint64_t seq, uint32_t count,
				   struct sending *sending)
{
	const int got = gdrcap_gpu_tx_reserve(tx, seq, (int)count);
	const uint64_t first = sending->number;
	const uint32_t fills = (uint32_t)(seq * 7 % (count + 1));

	__syncthreads();
	if (threadIdx.x == 0) {
		if (got < 0)
			sending->over++;
		else
			sending->number += fills;
		sending->wrong_room += got >= 0 && got != (int)count;
	}
	if (got < 0)
		return;
	for (uint32_t i = threadIdx.x / 32; i < fills; i += blockDim.x / 32) {
		uint8_t *data = gdrcap_gpu_tx_data(tx, seq + i);

		for (uint32_t k = threadIdx.x % 32; k < bytes_of(first + i); k += 32)
			data[k] = byte_of(first + i, k);
		if (threadIdx.x % 32 == 0)
			gdrcap_gpu_tx_set_bytes(tx, seq + i, bytes_of(first + i));
	}
}

/* One block: each frame is the next, and whole. */
__global__ static void compare_kernel(struct gdrcap_gpu_queue queue, uint64_t seq,
				      struct sending *sending)
{
	struct gdrcap_batch batch;
	const int got = gdrcap_gpu_try_next(queue, seq, &batch);
	const uint64_t first = sending->next;
	uint32_t wrong = got == 0;

	__syncthreads();
	if (got > 0) {
		for (uint32_t i = 0; i < batch.count; i++) {
			const uint8_t *data = gdrcap_gpu_frame(batch, i);

			wrong += gdrcap_gpu_frame_bytes(batch, i) != bytes_of(first + i);
			for (uint32_t k = threadIdx.x; k < bytes_of(first + i); k += blockDim.x)
				wrong += data[k] != byte_of(first + i, k);
		}
		if (threadIdx.x == 0)
			sending->next += batch.count;
	}
	if (wrong)
		atomicAdd(&sending->wrong, (unsigned long long)wrong);
}

#endif
