/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that only the bench uses: copies, reads of host memory, empty round trips. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

/* Of the one warp of an idle block. ring.cuh counts with it what a poll reads. */
static __shared__ uint64_t reads_counted;
#define RING_READS(count)                                                                          \
	do {                                                                                       \
		if ((threadIdx.x & 31) == 0)                                                       \
			reads_counted += (count);                                                  \
	} while (0)
#include "bench/bench_kernels.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/ring.cuh"

#define READ_THREADS_MAX 1024u
#define COMPUTE_THREADS 256u
#define COMPUTE_ROUNDS 4096u
#define READS_AT_ONCE 4u

struct bench_gpu {
	int ordinal;
	uint32_t units;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	unsigned long long *sum;      /* the GPU's */
	unsigned long long *sum_seen; /* pinned */
	struct job_control *control;  /* pinned */
};

/* ---- kernels ---- */

__global__ void __launch_bounds__(READ_THREADS_MAX)
	read_kernel(const uint4 *from, uint64_t pieces, unsigned long long *sum)
{
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
	uint64_t p = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, mine = 0;

	for (; p < pieces; p += READS_AT_ONCE * step) {
		uint4 piece[READS_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < READS_AT_ONCE; k++)
			piece[k] =
				p + k * step < pieces ? from[p + k * step] : make_uint4(0, 0, 0, 0);
#pragma unroll
		for (uint32_t k = 0; k < READS_AT_ONCE; k++)
			mine += (uint64_t)piece[k].x + piece[k].y + piece[k].z + piece[k].w;
	}
#pragma unroll
	for (uint32_t lanes = 16; lanes; lanes /= 2)
		mine += __shfl_xor_sync(WARP_ALL, mine, lanes);
	if (lane_index() == 0)
		atomicAdd(sum, (unsigned long long)mine);
}

/* Four chains of dependent multiplications a thread. */
__global__ void __launch_bounds__(COMPUTE_THREADS)
	compute_kernel(uint32_t rounds, unsigned long long *sum)
{
	float a = (float)threadIdx.x, b = a + 1, c = a + 2, d = a + 3;

	for (uint32_t i = 0; i < rounds; i++) {
		a = fmaf(a, 0.999f, 0.5f);
		b = fmaf(b, 0.999f, 0.5f);
		c = fmaf(c, 0.999f, 0.5f);
		d = fmaf(d, 0.999f, 0.5f);
	}
	/* never; but the compiler does not know, so that all is calculated */
	if (a + b + c + d < 0)
		atomicAdd(sum, 1ull);
}

__global__ void echo_kernel(struct bench_echo *echo)
{
	uint64_t seen = 0, ask;

	do {
		while ((ask = load_acquire_system(&echo->ask)) == seen)
			;
		seen = ask;
		store_release_system(&echo->answer, ask);
	} while (ask != BENCH_ECHO_LEAVE);
}

/* The take warp of a block whose ring stays empty. */
__global__ void __launch_bounds__(32) idle_kernel(struct burst_ring_view ring, uint64_t *reads)
{
	static __shared__ struct ring_shared s;
	struct ring_seen seen = { 0, 0, false };
	uint32_t answer = (uint32_t)clock64();

	if (threadIdx.x == 0) {
		s.ring = ring;
		s.burst_bits = ring_burst_bits(&ring);
		reads_counted = 0;
	}
	__syncthreads();
	ring_wait(ring_taker_of(s), blockIdx.x, ring.beside != NULL, &seen, &answer);
	if (threadIdx.x == 0)
		reads[blockIdx.x] = reads_counted;
}

/* ---- life ---- */

/* A kernel that is loaded only when it is first launched waits for those that run. */
static int kernels_load(void)
{
	const void *const kernels[] = { (const void *)read_kernel, (const void *)compute_kernel,
					(const void *)echo_kernel, (const void *)idle_kernel };

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		struct cudaFuncAttributes attributes;
		const cudaError_t error = cudaFuncGetAttributes(&attributes, kernels[i]);

		if (error)
			return cuda_fail(error, "loading the bench's kernels");
	}
	return 0;
}

/* Of a priority that the workers' streams do not have: see device.cu. */
static cudaError_t stream_create(struct bench_gpu *gpu)
{
	int least = 0, greatest = 0, units = 0;
	cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);

	if (!error)
		error = cudaStreamCreateWithPriority(&gpu->stream, cudaStreamNonBlocking,
						     least - 1 > greatest ? least - 1 : greatest);
	if (!error)
		error = cudaEventCreate(&gpu->begin);
	if (!error)
		error = cudaEventCreate(&gpu->end);
	if (!error)
		error = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount,
					       gpu->ordinal);
	gpu->units = (uint32_t)units;
	return error;
}

static int gpu_set_up(struct bench_gpu *gpu)
{
	cudaError_t error = stream_create(gpu);

	if (!error)
		error = cudaMalloc((void **)&gpu->sum, sizeof(*gpu->sum));
	if (!error)
		error = cudaHostAlloc((void **)&gpu->sum_seen, sizeof(*gpu->sum_seen),
				      cudaHostAllocDefault);
	if (!error)
		error = cudaHostAlloc((void **)&gpu->control, sizeof(*gpu->control),
				      cudaHostAllocMapped);
	return error ? cuda_fail(error, "setting up the bench's GPU") : kernels_load();
}

int bench_gpu_open(int ordinal, struct bench_gpu **opened)
{
	current_device current(ordinal);
	struct bench_gpu *gpu;
	int ret;

	if (current.error)
		return cuda_fail(current.error, "opening the bench's GPU");
	gpu = (struct bench_gpu *)calloc(1, sizeof(*gpu));
	if (!gpu)
		return kernel_fail(-ENOMEM, "no memory for the bench's GPU");
	gpu->ordinal = ordinal;
	ret = gpu_set_up(gpu);
	if (ret)
		bench_gpu_close(gpu);
	else
		*opened = gpu;
	return ret;
}

void bench_gpu_close(struct bench_gpu *gpu)
{
	current_device current(gpu->ordinal);

	if (gpu->stream)
		cudaStreamDestroy(gpu->stream);
	if (gpu->begin)
		cudaEventDestroy(gpu->begin);
	if (gpu->end)
		cudaEventDestroy(gpu->end);
	cudaFree(gpu->sum);
	cudaFreeHost(gpu->sum_seen);
	cudaFreeHost(gpu->control);
	cudaGetLastError();
	free(gpu);
}

void *bench_gpu_alloc(struct bench_gpu *gpu, size_t bytes, int pinned)
{
	current_device current(gpu->ordinal);
	void *memory = NULL;
	cudaError_t error = current.error;

	if (!error && pinned) {
		error = cudaHostAlloc(&memory, bytes, cudaHostAllocMapped);
		if (!error)
			memset(memory, 0, bytes);
	} else if (!error) {
		error = cudaMalloc(&memory, bytes);
		if (!error)
			error = cudaMemsetAsync(memory, 0, bytes, gpu->stream);
		if (!error)
			error = cudaStreamSynchronize(gpu->stream);
	}
	if (!error)
		return memory;
	cuda_fail(error, pinned ? "taking pinned memory for the bench"
				: "taking GPU memory for the bench");
	if (memory)
		bench_gpu_free(gpu, memory, pinned);
	return NULL;
}

void bench_gpu_free(struct bench_gpu *gpu, void *memory, int pinned)
{
	current_device current(gpu->ordinal);

	if (pinned)
		cudaFreeHost(memory);
	else
		cudaFree(memory);
	cudaGetLastError();
}

/* ---- limits ---- */

/* Waits for the events around what was launched. */
static cudaError_t elapsed(struct bench_gpu *gpu, cudaError_t error, double *seconds)
{
	float ms = 0;

	if (!error)
		error = cudaEventRecord(gpu->end, gpu->stream);
	if (!error)
		error = cudaEventSynchronize(gpu->end);
	if (!error)
		error = cudaEventElapsedTime(&ms, gpu->begin, gpu->end);
	*seconds = ms / 1e3;
	return error;
}

int bench_gpu_copy(struct bench_gpu *gpu, void *to, const void *from, size_t bytes, uint32_t times,
		   double *seconds)
{
	current_device current(gpu->ordinal);
	cudaError_t error = current.error;

	if (!error)
		error = cudaEventRecord(gpu->begin, gpu->stream);
	for (uint32_t i = 0; i < times && !error; i++)
		error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu->stream);
	error = elapsed(gpu, error, seconds);
	return error ? cuda_fail(error, "copying for the bench") : 0;
}

int bench_gpu_read(struct bench_gpu *gpu, const void *from, size_t bytes, uint32_t blocks,
		   uint32_t threads, uint32_t times, double *seconds, uint64_t *sum)
{
	current_device current(gpu->ordinal);
	cudaError_t error = current.error;
	uint64_t pieces = bytes / sizeof(uint4);
	void *args[] = { &from, &pieces, &gpu->sum };

	if (!error)
		error = cudaMemsetAsync(gpu->sum, 0, sizeof(*gpu->sum), gpu->stream);
	if (!error)
		error = cudaEventRecord(gpu->begin, gpu->stream);
	for (uint32_t i = 0; i < times && !error; i++)
		error = cudaLaunchKernel((const void *)read_kernel, dim3(blocks), dim3(threads),
					 args, 0, gpu->stream);
	error = elapsed(gpu, error, seconds);
	if (!error)
		error = cudaMemcpyAsync(gpu->sum_seen, gpu->sum, sizeof(*gpu->sum),
					cudaMemcpyDeviceToHost, gpu->stream);
	if (!error)
		error = cudaStreamSynchronize(gpu->stream);
	*sum = *gpu->sum_seen;
	return error ? cuda_fail(error, "reading memory for the bench") : 0;
}

int bench_gpu_compute(struct bench_gpu *gpu, uint32_t blocks, uint32_t times, double *seconds)
{
	current_device current(gpu->ordinal);
	cudaError_t error = current.error;
	uint32_t rounds = COMPUTE_ROUNDS;
	void *args[] = { &rounds, &gpu->sum };

	if (!error)
		error = cudaEventRecord(gpu->begin, gpu->stream);
	for (uint32_t i = 0; i < times && !error; i++)
		error = cudaLaunchKernel((const void *)compute_kernel, dim3(blocks),
					 dim3(COMPUTE_THREADS), args, 0, gpu->stream);
	error = elapsed(gpu, error, seconds);
	return error ? cuda_fail(error, "calculating for the bench") : 0;
}

/* ---- kernels that run until they are told ---- */

int bench_gpu_echo_start(struct bench_gpu *gpu, struct bench_echo *echo)
{
	current_device current(gpu->ordinal);
	cudaError_t error = current.error;
	void *args[] = { &echo };

	memset(echo, 0, sizeof(*echo));
	if (!error)
		error = cudaLaunchKernel((const void *)echo_kernel, dim3(1), dim3(1), args, 0,
					 gpu->stream);
	return error ? cuda_fail(error, "launching the echo kernel") : 0;
}

int bench_gpu_idle_start(struct bench_gpu *gpu, const struct burst_ring_view *ring, uint32_t blocks,
			 uint64_t *reads)
{
	current_device current(gpu->ordinal);
	cudaError_t error = current.error;
	struct burst_ring_view view = *ring;
	void *args[] = { &view, &reads };

	if (!error)
		error = cudaLaunchKernel((const void *)idle_kernel, dim3(blocks), dim3(32), args, 0,
					 gpu->stream);
	return error ? cuda_fail(error, "launching the idle kernel") : 0;
}

int bench_gpu_running(struct bench_gpu *gpu)
{
	current_device current(gpu->ordinal);
	const cudaError_t error = cudaStreamQuery(gpu->stream);

	if (error == cudaErrorNotReady) {
		cudaGetLastError();
		return 1;
	}
	return error ? cuda_fail(error, "a kernel of the bench failed") : 0;
}

int bench_gpu_join(struct bench_gpu *gpu, uint32_t timeout_ms)
{
	const struct timespec tick = { 0, 1000000 };
	int ret;

	for (uint32_t ms = 0; (ret = bench_gpu_running(gpu)) > 0; ms++) {
		if (ms >= timeout_ms)
			return kernel_fail(-ETIMEDOUT,
					   "a kernel of the bench did not leave within %u ms",
					   timeout_ms);
		nanosleep(&tick, NULL);
	}
	return ret;
}
