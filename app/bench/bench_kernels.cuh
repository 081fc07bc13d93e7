/* SPDX-License-Identifier: BSD-3-Clause */
/* What bench_kernels.cu and comm_list.cu share. */
#ifndef BENCH_KERNELS_CUH
#define BENCH_KERNELS_CUH

#include "bench/bench_kernels.h"
#include "kernels/cuda/device.cuh"

struct bench_gpu {
	int ordinal;
	uint32_t units;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	unsigned long long *sum;      /* the GPU's */
	unsigned long long *sum_seen; /* pinned */
	struct job_control *control;  /* pinned */
	void *memory;		      /* of the kernel that runs; freed when it has left */
};

/* comm_list.cu: loads its code. */
int bench_comm_load(int ordinal);

#endif
