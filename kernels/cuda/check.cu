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
 * Built three times: `any_format` and `split_or_stale` are constant. Without the first, frames are
 * our own and no rules say which are meant; without the second, they lie whole and no slot is
 * poisoned (split_or_stale.cuh): so that what other frames need costs no register there.
 */
#include "kernels/cuda/check.cuh"

template <bool any_format, bool split_or_stale>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct check_shared<split_or_stale> &s = *(struct check_shared<split_or_stale> *)memory;
	struct work_group group;

	if (!check_enter(s, job))
		return;
	group = work_group_of(s.ring);
	ring_run_groups(s.ring, group, [&s, group](const struct burst_in &in, uint32_t) {
		return check_burst<any_format, split_or_stale>(s, group, in);
	});
}

struct kernel_program check_program(void)
{
	return { "check", (const void *)check_kernel<false, false>,
		 sizeof(struct check_shared<false>), sizeof(struct check_group<false>) };
}

struct kernel_program check_any_format_program(void)
{
	return { "check", (const void *)check_kernel<true, false>,
		 sizeof(struct check_shared<false>), sizeof(struct check_group<false>) };
}

struct kernel_program check_split_or_stale_program(void)
{
	return { "check", (const void *)check_kernel<true, true>,
		 sizeof(struct check_shared<true>) };
}
