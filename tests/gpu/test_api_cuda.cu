/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The public API on a real GPU, as an embedder uses it: batches whose frames are read by kernels on
 * the caller's stream and given back after them; and a caller's kernel that is already running.
 * Both read every frame's own header and every payload byte (the low byte of its position).
 *
 * Usage: test_api_cuda [FRAMES [KEY=VALUE...]]; with options only what a running kernel does, by these options besides.
 * Exit 77: no CUDA device.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include <cuda_runtime.h>

#include "gdrcap_device.cuh"
#include "api_calls.cuh"

#define OWN_HEADER 14u /* docs/frame-format.md: untagged Ethernet */
#define PAYLOAD (OWN_HEADER + 36u)
#define FRAME_BYTES 200u /* with FCS */
#define BLOCKS 4u
#define THREADS 128u
#define BATCHES 16u

struct tally { /* written by kernels with atomics, read by the CPU when they have ended */
	unsigned long long frames, wrong, sequence_sum;
};

__device__ static uint64_t big_endian(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

__device__ static void frame_tally(const uint8_t *frame, uint32_t len, struct tally *tally)
{
	const uint64_t sequence = big_endian(frame + OWN_HEADER + 8, 8);
	const uint64_t position = big_endian(frame + OWN_HEADER + 16, 8);
	const uint32_t payload = (uint32_t)big_endian(frame + OWN_HEADER + 6, 2);
	bool right = len == FRAME_BYTES - 4 && payload == len - PAYLOAD &&
		     big_endian(frame + OWN_HEADER, 2) == 0x6743;

	for (uint32_t i = 0; right && i < payload; i++)
		right = frame[PAYLOAD + i] == (uint8_t)(position + i);
	atomicAdd(&tally->frames, 1ull);
	atomicAdd(&tally->sequence_sum, (unsigned long long)sequence);
	if (!right)
		atomicAdd(&tally->wrong, 1ull);
}

/* Nothing splits frames here: they have no head of their own. */
__device__ static void batch_frame_tally(const struct gdrcap_batch &batch, uint32_t i,
					 struct tally *tally)
{
	if (gdrcap_gpu_head(batch, i) || gdrcap_gpu_head_bytes(batch, i))
		atomicAdd(&tally->wrong, 1ull);
	frame_tally(gdrcap_gpu_frame(batch, i), gdrcap_gpu_frame_bytes(batch, i), tally);
}

__global__ static void batch_kernel(struct gdrcap_batch batch, struct tally *tally)
{
	for (uint32_t i = threadIdx.x; i < batch.count; i += blockDim.x)
		batch_frame_tally(batch, i, tally);
}

__global__ static void running_kernel(struct gdrcap_gpu_queue queue, struct tally *tally)
{
	for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
		struct gdrcap_batch batch;
		int got;

		while ((got = gdrcap_gpu_try_next(queue, seq, &batch)) == 0)
			__nanosleep(200);
		if (got < 0)
			return;
		for (uint32_t i = threadIdx.x; i < batch.count; i += blockDim.x)
			batch_frame_tally(batch, i, tally);
		gdrcap_gpu_release(queue, seq);
	}
}

static char **more_options; /* KEY=VALUE; up to NULL */

static struct gdrcap_session *session_open(const char *consumer, enum gdrcap_memory memory,
					   uint64_t frames)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error;
	char size[16], count[32];
	const char *const options[][2] = {
		{ "port", "ring:test" },
		{ "tx_port", "ring:test" },
		{ "gpu", "0" },
		{ "frame.size", size },
		{ "pattern", "counter8" },
		{ "consumer", consumer },
		{ "memory", memory == GDRCAP_MEMORY_DEVICE ? "device" : "pinned" },
		{ "frames", count },
	};

	snprintf(size, sizeof(size), "%u", FRAME_BYTES);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)frames);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		api_check(gdrcap_config_set(config, options[i][0], options[i][1], &error), &error,
			  options[i][0]);
	options_set(config, more_options);
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	return session;
}

static int tally_judge(const char *what, struct gdrcap_session *session, const struct tally *device,
		       uint64_t frames)
{
	struct tally tally;
	struct gdrcap_summary summary;
	const unsigned long long sum = (unsigned long long)frames * (frames - 1) / 2;
	bool good;

	cuda_check(cudaMemcpy(&tally, device, sizeof(tally), cudaMemcpyDeviceToHost), "read tally");
	/* After a stop the capture thread may still be taking slots back. */
	for (int i = 0; i < 1000; i++) {
		gdrcap_get_summary(session, &summary, sizeof(summary));
		if (summary.in_flight == 0)
			break;
		usleep(1000);
	}
	good = tally.frames == frames && tally.wrong == 0 && tally.sequence_sum == sum &&
	       summary.total.received == frames && summary.in_flight == 0;
	printf("%s: %llu of %llu frames seen by kernels, %llu wrong, sum of sequence numbers %s, "
	       "%llu received, %llu still out: %s\n",
	       what, tally.frames, (unsigned long long)frames, tally.wrong,
	       tally.sequence_sum == sum ? "right" : "WRONG",
	       (unsigned long long)summary.total.received, (unsigned long long)summary.in_flight,
	       good ? "passed" : "FAILED");
	return good ? 0 : 1;
}

static struct tally *tally_new(void)
{
	struct tally *tally;

	cuda_check(cudaMalloc(&tally, sizeof(*tally)), "cudaMalloc");
	cuda_check(cudaMemset(tally, 0, sizeof(*tally)), "cudaMemset");
	return tally;
}

/* Each batch is read by a kernel on our stream; its slots come back when the stream is through. */
static int test_stream(const char *what, enum gdrcap_memory memory, uint64_t frames)
{
	struct gdrcap_session *session = session_open("host", memory, frames);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batches[BATCHES];
	struct tally *tally = tally_new();
	struct gdrcap_error error;
	cudaStream_t stream;
	uint64_t taken = 0;
	int failed, n;

	cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	/* Loaded before anything runs for long: lazy loading would wait for the whole device. */
	cuda_check(cudaFuncSetAttribute(batch_kernel,
					cudaFuncAttributePreferredSharedMemoryCarveout, 0),
		   "load");
	api_check(gdrcap_start(session, &error), &error, "start");
	while (taken < frames) {
		n = gdrcap_wait(queue, batches, BATCHES, 2000000);
		if (n <= 0) {
			printf("%s: no batch for 2 s (%d) after %llu frames\n", what, n,
			       (unsigned long long)taken);
			break;
		}
		for (int i = 0; i < n; i++) {
			batch_kernel<<<1, THREADS, 0, stream>>>(*batches[i], tally);
			cuda_check(cudaGetLastError(), "launch");
			taken += batches[i]->count;
		}
		if (gdrcap_release_after(queue, batches, (unsigned int)n, stream) != n) {
			printf("FAIL: release_after\n");
			return 1;
		}
	}
	cuda_check(cudaStreamSynchronize(stream), "synchronize");
	api_check(gdrcap_stop(session, &error), &error, "stop");
	failed = tally_judge(what, session, tally, frames);
	gdrcap_destroy(session);
	cuda_check(cudaStreamDestroy(stream), "stream");
	cuda_check(cudaFree(tally), "free");
	return failed;
}

/* Our kernel runs before the first frame is sent, and ends when the session stops. */
static int test_running(const char *what, enum gdrcap_memory memory, uint64_t frames)
{
	struct gdrcap_session *session = session_open("gpu", memory, frames);
	struct gdrcap_gpu_queue gpu_queue;
	struct tally *tally = tally_new();
	struct gdrcap_error error;
	cudaStream_t stream;
	int failed;

	cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	if (gdrcap_get_gpu_queue(gdrcap_get_queue(session, 0), &gpu_queue, sizeof(gpu_queue)) < 0) {
		printf("FAIL: no GPU queue\n");
		return 1;
	}
	running_kernel<<<BLOCKS, THREADS, 0, stream>>>(gpu_queue, tally);
	cuda_check(cudaGetLastError(), "launch");
	api_check(gdrcap_start(session, &error), &error, "start");
	while (!gdrcap_wait_end(session, 1000))
		;
	api_check(gdrcap_stop(session, &error), &error, "stop");
	cuda_check(cudaStreamSynchronize(stream), "synchronize");
	failed = tally_judge(what, session, tally, frames);
	gdrcap_destroy(session);
	cuda_check(cudaStreamDestroy(stream), "stream");
	cuda_check(cudaFree(tally), "free");
	return failed;
}

int main(int argc, char **argv)
{
	const uint64_t frames = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
	int devices = 0, failed = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no CUDA device here\n");
		return 77;
	}
	if (argc > 2) {
		more_options = argv + 2;
		failed = test_running("running kernel, GPU memory", GDRCAP_MEMORY_DEVICE, frames);
		printf("%s\n", failed ? "FAIL" : "PASS");
		return failed;
	}
	failed |= test_stream("stream, GPU memory", GDRCAP_MEMORY_DEVICE, frames);
	failed |= test_stream("stream, pinned memory", GDRCAP_MEMORY_PINNED, frames);
	failed |= test_running("running kernel, GPU memory", GDRCAP_MEMORY_DEVICE, frames);
	failed |= test_running("running kernel, pinned memory", GDRCAP_MEMORY_PINNED, frames);
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed;
}
