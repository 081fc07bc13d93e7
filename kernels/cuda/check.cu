/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistent checker of patterns. For each burst:
 *   1. a group's threads bring the first pieces of every frame into shared memory, together;
 *   2. one thread a frame reads its header there and checks what is there of the payload;
 *   3. one warp a frame checks what is behind that of a PRBS, and the whole of other patterns and
 *      of what is wrong, where it lies;
 *   4. one thread a frame, together, turn outcomes into records.
 *
 * A small burst of our own frames is tried by small_burst.cuh first, which tells it if all is
 * right.
 *
 * Built several times, with constants: `any_format`, `any_pattern` and `split_or_stale`. Without the first, frames
 * are our own and no rules say which are meant; without the second, payloads are a PRBS or not checked; without
 * the third, frames lie whole and no slot is poisoned (split_or_stale.cuh): so that what other frames need
 * costs no register there. Those with `any_pattern` are in check_pattern.cu.
 */
#include "kernels/cuda/check.cuh"

template <bool any_format>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_kernel(const struct device_job *job)
{
	check_run<any_format, false, false>(job);
}

struct kernel_program check_program(void)
{
	return { "check", (const void *)check_kernel<false>, sizeof(struct check_shared<false>),
		 sizeof(struct check_group<false>) };
}

struct kernel_program check_any_format_program(void)
{
	return { "check", (const void *)check_kernel<true>, sizeof(struct check_shared<false>),
		 sizeof(struct check_group<false>) };
}
