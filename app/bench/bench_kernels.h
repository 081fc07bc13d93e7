/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the bench measures of a GPU beside the workers of kernels.h: its physical limits, and what an
 * idle consumer costs others. One thread uses it; failures leave their text in kernel_error().
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bench_gpu; /* one GPU: a stream and events of its own, its code loaded */

int bench_gpu_open(int ordinal, struct bench_gpu **gpu);
void bench_gpu_close(struct bench_gpu *gpu);

/* Memory, zeroed. While a kernel runs that does not end, neither of the two returns. */
void *bench_gpu_alloc(struct bench_gpu *gpu, size_t bytes, int pinned);
void bench_gpu_free(struct bench_gpu *gpu, void *memory, int pinned);

/* ---- limits: `times` times behind each other; *seconds by the GPU's clock ---- */

int bench_gpu_copy(struct bench_gpu *gpu, void *to, const void *from, size_t bytes, uint32_t times,
		   double *seconds);
/* Reads a multiple of 16 bytes with so many blocks of so many threads; *sum: of all 32-bit words,
 * all times. */
int bench_gpu_read(struct bench_gpu *gpu, const void *from, size_t bytes, uint32_t blocks,
		   uint32_t threads, uint32_t times, double *seconds, uint64_t *sum);
/* `blocks` blocks of 256 threads that only calculate. */
int bench_gpu_compute(struct bench_gpu *gpu, uint32_t blocks, uint32_t times, double *seconds);

/* ---- kernels that run until they are told; one at a time ---- */

/* Pinned. Each word on lines of its own, since the other side polls it. */
struct bench_echo {
	uint64_t ask; /* writer: CPU */
	uint64_t reserved[15];
	uint64_t answer; /* writer: kernel: the last `ask` that it saw */
	uint64_t reserved_too[15];
};
#define BENCH_ECHO_LEAVE UINT64_MAX

/* Answers what is asked, until it is asked BENCH_ECHO_LEAVE. */
int bench_gpu_echo_start(struct bench_gpu *gpu, struct bench_echo *echo);

/* Waits for a burst as a consumer's blocks do, until *ring->stop is set; reads[block] (pinned): what
 * it read from the ring meanwhile. */
int bench_gpu_idle_start(struct bench_gpu *gpu, const struct burst_ring_view *ring, uint32_t blocks,
			 uint64_t *reads);

/* 1 running, 0 left, negative: it failed. */
int bench_gpu_running(struct bench_gpu *gpu);
/* Waits until it has left; -ETIMEDOUT: it has not. */
int bench_gpu_join(struct bench_gpu *gpu, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
