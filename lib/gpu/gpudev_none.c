/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of gpudev_cuda.c in a build without CUDA. */
#include <stdio.h>

#include "gpu/gpu_drivers.h"

void gpu_cuda_register(void)
{
}

int gpu_cuda_count(char *why, unsigned int why_bytes)
{
	if (why)
		snprintf(why, why_bytes, "built without CUDA");
	return 0;
}
