/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into DPDK's own, unmodified gpudev test: our drivers are there before its main(). */
#include <stdio.h>

#include "gpu/gpu_drivers.h"

static void __attribute__((constructor)) drivers_register(void)
{
	char why[256];

	gpu_host_register();
	gpu_cuda_register();
	if (gpu_cuda_count(why, sizeof(why)) == 0)
		fprintf(stderr, "no CUDA device: %s\n", why);
}
