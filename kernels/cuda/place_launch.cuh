/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finite kernels for bursts that were published: the engine whose kernels end, so that a caller's
 * cudaDeviceSynchronize() does. A thread looks at the rings and launches. Inside kernels/cuda only.
 */
#ifndef GDRCAP_CUDA_PLACE_LAUNCH_CUH
#define GDRCAP_CUDA_PLACE_LAUNCH_CUH

#include "kernels/cuda/device.cuh"

#define PLACE_LAUNCH_THREADS 512u
#define PLACE_CLOSE_THREADS 1024u
#define PLACE_LAUNCH_RINGS 64u /* of a job */

/* What one launch works on, by value: of ring r bursts from[r] .. from[r] + count[r] - 1. */
struct place_launch {
	uint64_t from[PLACE_LAUNCH_RINGS];
	uint32_t count[PLACE_LAUNCH_RINGS];
	uint32_t bursts; /* the counts' sum */
	uint32_t reserved;
};

/* Starts the thread of workers whose job is uploaded. Undone by launcher_stop(). */
int launcher_start(struct kernel_workers *workers, const struct kernel_job *job);
/* 0: it has left, and all its kernels ended; -ETIMEDOUT; or the device's error. */
int launcher_join(struct kernel_workers *workers, unsigned int timeout_ms);
/* 1: it runs; 0: it left; negative errno: the device failed. */
int launcher_running(struct kernel_workers *workers);

#endif
