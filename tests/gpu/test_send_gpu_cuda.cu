/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running kernel sends over a wire in this process, from GPU memory and from pinned memory, by the public
 * API: every frame comes once, whole and in order; a kernel that goes on after another; a stop in mid-stream.
 * 77 without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include <gdrcap_device.cuh>

#define FRAME 200u
#define FRAME_MOST (FRAME - 4u)
#define FRAMES 100000ull
#define ENDLESS (~0ull)
#define COPIES 4096u /* frames that are copied to the CPU at once */

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "FAIL: %s: %s\n", what, cudaGetErrorString(cudaGetLastError()));
	exit(1);
}
#define CHECK(condition) check(condition, #condition)
#define CUDA(call) check((call) == cudaSuccess, #call)

__host__ __device__ static inline uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number * 31 % (FRAME_MOST - 60 + 1));
}

__host__ __device__ static inline uint8_t byte_of(uint64_t number, uint32_t i)
{
	return i < 8 ? (uint8_t)(number >> 8 * i) : (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

struct said { /* by the kernel; read when it has ended */
	unsigned long long submitted, wrong;
};

/* One block: `count` frames more. */
__global__ static void send_kernel(struct gdrcap_gpu_tx tx, unsigned long long count,
				   struct said *said)
{
	const uint64_t first = gdrcap_gpu_tx_first(tx);
	unsigned long long wrong = 0;
	uint64_t seq = first;

	while (seq - first < count) {
		int n;

		while ((n = gdrcap_gpu_tx_reserve(tx, seq, 64)) == 0)
			__nanosleep(200);
		if (n < 0)
			break;
		if (count - (seq - first) < (unsigned long long)n)
			n = (int)(count - (seq - first));
		for (uint32_t i = threadIdx.x / 32; i < (uint32_t)n; i += blockDim.x / 32) {
			const uint64_t number = seq + i;
			uint8_t *data = gdrcap_gpu_tx_data(tx, number);

			for (uint32_t k = threadIdx.x % 32; k < bytes_of(number); k += 32)
				data[k] = byte_of(number, k);
			if (threadIdx.x % 32)
				continue;
			gdrcap_gpu_tx_set_bytes(tx, number, bytes_of(number));
			/* A wire gives slots back in order. */
			wrong += gdrcap_gpu_tx_back(tx, number) !=
				 (number < tx.count ? 0 : number - tx.count + 1);
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
	}
	if (wrong)
		atomicAdd(&said->wrong, wrong);
	if (threadIdx.x == 0)
		said->submitted = seq;
}

/* One run's. */
struct scene {
	struct gdrcap_session *session;
	struct gdrcap_queue *queue;
	struct gdrcap_gpu_tx tx;
	struct said *said;
	cudaStream_t sending, copying;
	uint8_t *copies; /* pinned */
	uint64_t next;
};

static void scene_open(struct scene *scene, const char *memory)
{
	struct gdrcap_config *config = gdrcap_config_new();
	const char *const options[][2] = { { "port", "ring:test" }, { "tx_port", "ring:test" },
					   { "gpu", "0" },	    { "frame.size", "200" },
					   { "consumer", "host" },  { "sender", "gpu" },
					   { "memory", memory } };
	struct gdrcap_error error = {};

	memset(scene, 0, sizeof(*scene));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		CHECK(gdrcap_config_set(config, options[i][0], options[i][1], &error) == 0);
	if (gdrcap_create(config, &scene->session, &error))
		fprintf(stderr, "%s\n", error.text);
	CHECK(scene->session != NULL);
	gdrcap_config_free(config);
	scene->queue = gdrcap_get_queue(scene->session, 0);
	CHECK(gdrcap_get_gpu_tx(gdrcap_get_tx(scene->session, 0), &scene->tx, sizeof(scene->tx)) ==
	      0);
	CUDA(cudaMalloc(&scene->said, sizeof(*scene->said)));
	CUDA(cudaMemset(scene->said, 0, sizeof(*scene->said)));
	CUDA(cudaHostAlloc(&scene->copies, (size_t)COPIES * FRAME, cudaHostAllocDefault));
	CUDA(cudaStreamCreateWithFlags(&scene->sending, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&scene->copying, cudaStreamNonBlocking));
	CUDA(cudaDeviceSynchronize());
}

static void scene_start(struct scene *scene, unsigned long long count)
{
	send_kernel<<<1, 256, 0, scene->sending>>>(scene->tx, count, scene->said);
	CUDA(cudaGetLastError());
}

static struct said scene_said(struct scene *scene)
{
	struct said said;

	CUDA(cudaStreamSynchronize(scene->sending));
	CUDA(cudaMemcpyAsync(&said, scene->said, sizeof(said), cudaMemcpyDeviceToHost,
			     scene->copying));
	CUDA(cudaStreamSynchronize(scene->copying));
	CHECK(said.wrong == 0);
	return said;
}

static void scene_close(struct scene *scene)
{
	gdrcap_destroy(scene->session);
	CUDA(cudaFree(scene->said));
	CUDA(cudaFreeHost(scene->copies));
	CUDA(cudaStreamDestroy(scene->sending));
	CUDA(cudaStreamDestroy(scene->copying));
}

/* Takes one batch, if there is one, and looks at every byte; false: there will be none. */
static bool receive(struct scene *scene)
{
	const struct gdrcap_batch *batch;
	const int n = gdrcap_wait(scene->queue, &batch, 1, 10000);

	if (n <= 0)
		return n == 0;
	CHECK(batch->count <= COPIES);
	for (uint32_t i = 0; i < batch->count; i++)
		CUDA(cudaMemcpyAsync(scene->copies + (size_t)i * FRAME, gdrcap_frame(batch, i),
				     gdrcap_frame_bytes(batch, i), cudaMemcpyDefault,
				     scene->copying));
	CUDA(cudaStreamSynchronize(scene->copying));
	for (uint32_t i = 0; i < batch->count; i++, scene->next++) {
		CHECK(gdrcap_frame_bytes(batch, i) == bytes_of(scene->next));
		for (uint32_t k = 0; k < bytes_of(scene->next); k++)
			CHECK(scene->copies[(size_t)i * FRAME + k] == byte_of(scene->next, k));
	}
	gdrcap_release(scene->queue, &batch, 1);
	return true;
}

static struct gdrcap_tx_counts counts_of(struct scene *scene)
{
	struct gdrcap_tx_counts counts;

	CHECK(gdrcap_get_tx_counts(scene->session, 0, &counts, sizeof(counts)) == 0);
	return counts;
}

static void all_arrive(const char *memory)
{
	struct gdrcap_tx_counts counts;
	struct scene scene;

	scene_open(&scene, memory);
	scene_start(&scene, FRAMES / 2);
	CHECK(gdrcap_start(scene.session, NULL) == 0);
	scene_start(&scene, FRAMES - FRAMES / 2); /* after the first one */
	while (scene.next < FRAMES)
		CHECK(receive(&scene));
	CHECK(scene_said(&scene).submitted == FRAMES);
	CHECK(gdrcap_stop(scene.session, NULL) == 0);
	CHECK(!gdrcap_get_message(scene.session, 0));
	counts = counts_of(&scene);
	CHECK(counts.submitted == FRAMES && counts.sent == FRAMES);
	CHECK(counts.unsent == 0 && counts.refused == 0 && counts.failed == 0);
	scene_close(&scene);
	printf("%s memory: %llu frames, in order and whole\n", memory, FRAMES);
}

static void stop_in_mid_stream(const char *memory)
{
	for (uint64_t round = 0; round < 10; round++) {
		struct gdrcap_tx_counts counts;
		struct said said;
		struct scene scene;

		scene_open(&scene, memory);
		CHECK(gdrcap_start(scene.session, NULL) == 0);
		scene_start(&scene, ENDLESS);
		while (scene.next < round * 500)
			CHECK(receive(&scene));
		CHECK(gdrcap_stop(scene.session, NULL) == 0);
		said = scene_said(&scene); /* it has left */
		while (receive(&scene))
			;
		counts = counts_of(&scene);
		CHECK(counts.sent == scene.next);
		CHECK(counts.submitted == counts.sent + counts.unsent);
		CHECK(counts.submitted <= said.submitted);
		CHECK(said.submitted - counts.submitted <= scene.tx.count);
		scene_close(&scene);
	}
	printf("%s memory: stopped in mid-stream\n", memory);
}

int main(void)
{
	static const char *const memory[] = { "pinned", "device" };
	int count = 0;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		printf("skipped: no CUDA device\n");
		return 77;
	}
	for (size_t i = 0; i < 2; i++) {
		all_arrive(memory[i]);
		stop_in_mid_stream(memory[i]);
	}
	printf("PASS\n");
	return 0;
}
