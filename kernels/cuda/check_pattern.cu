/* SPDX-License-Identifier: BSD-3-Clause */
/* The persistent checker of payloads of any pattern: check.cu. */
#include "kernels/cuda/check.cuh"

template <bool any_format, bool split_or_stale>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_pattern_kernel(const struct device_job *job)
{
	check_run<any_format, true, split_or_stale>(job);
}

struct kernel_program check_pattern_program(void)
{
	return { "check", (const void *)check_pattern_kernel<false, false>,
		 sizeof(struct check_shared<false>), sizeof(struct check_group<false>) };
}

struct kernel_program check_any_format_pattern_program(void)
{
	return { "check", (const void *)check_pattern_kernel<true, false>,
		 sizeof(struct check_shared<false>), sizeof(struct check_group<false>) };
}

struct kernel_program check_split_or_stale_program(void)
{
	return { "check", (const void *)check_pattern_kernel<true, true>,
		 sizeof(struct check_shared<true>) };
}
