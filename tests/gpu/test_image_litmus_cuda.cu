/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIVE, BACK and END between a CPU thread and a running kernel that takes images by gdrcap_device.cuh.
 * Usage: test_image_litmus_cuda [IMAGES]. 77 without a GPU.
 *
 * A copy of the header with st.relaxed in place of st.release, or ld.relaxed in place of ld.acquire, must
 * make it fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/image_litmus.h"
#include "gdrcap_device.cuh"

#define HANG_SECONDS 60

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "FAIL: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}
#define CHECK(call) check(call, #call)

struct tally { /* atomics of the kernel; read when it has ended */
	unsigned long long taken, wrong;
};

__global__ static void taker_kernel(struct gdrcap_gpu_images images, struct tally *tally)
{
	for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
		struct gdrcap_image image;
		uint32_t wrong = 0;
		int got;

		while ((got = gdrcap_gpu_image_try_next(images, seq, &image)) == 0)
			__nanosleep(100);
		if (got < 0)
			return;
		if (threadIdx.x == 0) {
			wrong = litmus_wrong_image(seq, &image);
			atomicAdd(&tally->taken, 1ull);
		}
		/* complete: nobody asks the bitmap */
		if (threadIdx.x < LITMUS_BITS * 32)
			wrong +=
				gdrcap_gpu_piece_present(image, threadIdx.x) !=
				(seq % 4 == GDRCAP_IMAGE_COMPLETE ||
				 ((uint32_t)litmus_value(seq, LITMUS_WORDS + threadIdx.x / 32, 0) >>
					  threadIdx.x % 32 &
				  1));
		__syncthreads(); /* which is overwritten now */
		for (uint32_t w = threadIdx.x; w < LITMUS_WORDS + LITMUS_BITS; w += blockDim.x)
			wrong += litmus_take(seq, &image, w);
		if (wrong)
			atomicAdd(&tally->wrong, (unsigned long long)wrong);
		gdrcap_gpu_image_release(images, seq);
	}
}

static void *pinned(size_t bytes)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
	memset(memory, 0, bytes);
	return memory;
}

/* Gives `count` images; false: the kernel does not get on. */
static bool give_all(struct image_litmus *litmus, uint64_t count)
{
	time_t until = time(NULL) + HANG_SECONDS;
	uint64_t back = 0;

	while (litmus->gpu.given < count || litmus->back < count) {
		if (litmus->gpu.given == count || !litmus_give(litmus))
			litmus_collect(litmus);
		if (litmus->back != back)
			until = time(NULL) + HANG_SECONDS;
		else if (time(NULL) > until)
			return false;
		back = litmus->back;
	}
	return true;
}

static bool play(uint32_t buffers, uint32_t blocks, uint32_t threads, uint64_t count)
{
	struct image_litmus *litmus = (struct image_litmus *)calloc(1, sizeof(*litmus));
	struct tally *tally, seen = {};
	cudaStream_t stream;
	bool good;

	litmus_init(litmus, buffers, pinned(image_gpu_bytes(buffers)),
		    (uint64_t *)pinned((size_t)buffers * LITMUS_WORDS * 8),
		    (uint32_t *)pinned((size_t)buffers * LITMUS_BITS * 4));
	CHECK(cudaMalloc(&tally, sizeof(*tally)));
	CHECK(cudaMemset(tally, 0, sizeof(*tally)));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	taker_kernel<<<blocks, threads, 0, stream>>>(image_gpu_view(&litmus->gpu), tally);
	CHECK(cudaGetLastError());
	good = give_all(litmus, count);
	if (!good) {
		fprintf(stderr, "FAIL: image %llu never came back (%s)\n",
			(unsigned long long)litmus->gpu.back,
			cudaGetErrorString(cudaStreamQuery(stream)));
		exit(1);
	}
	/* END, right behind the last GIVE */
	while (!litmus_give(litmus))
		;
	image_gpu_end(&litmus->gpu);
	CHECK(cudaStreamSynchronize(stream));
	litmus_collect(litmus);
	CHECK(cudaMemcpy(&seen, tally, sizeof(seen), cudaMemcpyDeviceToHost));
	good = seen.wrong == 0 && litmus->wrong == 0 && seen.taken == count + 1 &&
	       litmus->back == count + 1;
	printf("ring of %2u, %2u blocks of %3u: %llu images, %llu taken, %llu back, %llu wrong values\n",
	       buffers, blocks, threads, (unsigned long long)count + 1, seen.taken,
	       (unsigned long long)litmus->back, seen.wrong + (unsigned long long)litmus->wrong);
	fflush(stdout);
	CHECK(cudaFreeHost(litmus->gpu.entry));
	CHECK(cudaFreeHost(litmus->bytes));
	CHECK(cudaFreeHost(litmus->present));
	CHECK(cudaFree(tally));
	CHECK(cudaStreamDestroy(stream));
	free(litmus);
	return good;
}

int main(int argc, char **argv)
{
	static const struct {
		uint32_t buffers, blocks, threads;
	} shape[] = { { 1, 1, 32 },  { 1, 1, 1 },   { 2, 1, 64 },   { 2, 3, 128 },
		      { 8, 4, 128 }, { 8, 8, 256 }, { 64, 16, 64 }, { 64, 32, 128 } };
	const uint64_t images = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
	int count = 0;
	bool good = true;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		printf("skipped: no CUDA device\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
		good = play(shape[i].buffers, shape[i].blocks, shape[i].threads, images) && good;
	/* the end comes at any moment */
	for (uint32_t i = 0; i < 200; i++)
		good = play(2, 2, 32, i % 8) && good;
	printf("%s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
