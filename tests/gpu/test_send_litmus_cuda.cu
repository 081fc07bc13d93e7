/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ROOM, SUBMIT and STOP between a CPU thread and a running kernel that sends by gdrcap_device_tx.cuh.
 * Usage: test_send_litmus_cuda [FRAMES]. 77 without a GPU.
 *
 * A copy of the header with st.relaxed in place of st.release, or ld.relaxed in place of ld.acquire, must
 * make it fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/send_litmus.h"
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

struct tally { /* of the kernel; read when it has ended */
	unsigned long long submitted, wrong;
};

__global__ static void sender_kernel(struct gdrcap_gpu_tx tx, struct tally *tally)
{
	uint64_t seq = gdrcap_gpu_tx_first(tx);
	uint32_t wrong = 0;

	for (;;) {
		int n;

		while ((n = gdrcap_gpu_tx_reserve(tx, seq, 1 + (int)(seq % 41))) == 0)
			__nanosleep(100);
		if (n < 0)
			break;
		/* Some of what it reserved. */
		n = 1 + (int)(seq * 7 % (uint64_t)n);
		for (uint32_t i = threadIdx.x; i < (uint32_t)n * LITMUS_WORDS; i += blockDim.x) {
			const uint64_t number = seq + i / LITMUS_WORDS;
			const uint32_t w = i % LITMUS_WORDS;

			wrong += litmus_wrong_word(tx, number, w);
			litmus_write_word(tx, number, w);
			if (w == 0)
				gdrcap_gpu_tx_set_bytes(tx, number, litmus_bytes(number));
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
	}
	if (wrong)
		atomicAdd(&tally->wrong, (unsigned long long)wrong);
	if (threadIdx.x == 0)
		tally->submitted = seq;
}

static void *pinned(size_t bytes)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
	memset(memory, 0, bytes);
	return memory;
}

/* Takes `count` frames at least. */
static void take_all(struct send_litmus *litmus, uint64_t count, cudaStream_t stream)
{
	time_t until = time(NULL) + HANG_SECONDS;

	while (litmus->gpu.accepted < count) {
		if (litmus_round(litmus)) {
			until = time(NULL) + HANG_SECONDS;
		} else if (time(NULL) > until) {
			fprintf(stderr, "FAIL: frame %llu never came (%s)\n",
				(unsigned long long)litmus->gpu.accepted,
				cudaGetErrorString(cudaStreamQuery(stream)));
			exit(1);
		}
	}
}

static bool play(uint32_t slots, uint32_t threads, uint64_t count)
{
	struct send_litmus *litmus = (struct send_litmus *)calloc(1, sizeof(*litmus));
	struct tally *tally, seen = {};
	cudaStream_t stream;
	bool good;

	if (litmus_init(litmus, slots, pinned(send_gpu_bytes(slots)),
			(uint64_t *)pinned((size_t)slots * LITMUS_WORDS * 8)) < 0)
		return false;
	CHECK(cudaMalloc(&tally, sizeof(*tally)));
	CHECK(cudaMemset(tally, 0, sizeof(*tally)));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	sender_kernel<<<1, threads, 0, stream>>>(send_gpu_view(&litmus->gpu, 1514), tally);
	CHECK(cudaGetLastError());
	take_all(litmus, count, stream);
	send_gpu_stop(&litmus->gpu);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&seen, tally, sizeof(seen), cudaMemcpyDeviceToHost));
	/* What it submitted before it saw STOP is there now. */
	while (litmus_round(litmus))
		;
	good = seen.wrong == 0 && litmus->wrong == 0 && seen.submitted == litmus->gpu.accepted;
	printf("%3u slots, %3u threads: %llu frames, %llu submitted, %llu wrong values\n", slots,
	       threads, (unsigned long long)litmus->gpu.accepted, seen.submitted,
	       seen.wrong + (unsigned long long)litmus->wrong);
	fflush(stdout);
	CHECK(cudaFreeHost(litmus->gpu.room));
	CHECK(cudaFreeHost(litmus->frames));
	CHECK(cudaFree(tally));
	CHECK(cudaStreamDestroy(stream));
	send_gpu_fini(&litmus->gpu);
	free(litmus);
	return good;
}

int main(int argc, char **argv)
{
	static const struct {
		uint32_t slots, threads;
	} shape[] = { { 1, 1 }, { 1, 32 }, { 2, 64 }, { 17, 128 }, { 64, 1 }, { 256, 512 } };
	const uint64_t frames = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;
	int count = 0;
	bool good = true;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		printf("skipped: no CUDA device\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
		good = play(shape[i].slots, shape[i].threads, frames) && good;
	/* the end comes at any moment */
	for (uint32_t i = 0; i < 200; i++)
		good = play(8, 32, i % 8) && good;
	printf("%s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
