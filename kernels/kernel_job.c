/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_job.h"

#include <errno.h>

/* Frames are read in 16-byte pieces from the aligned address below their first byte, and run
 * records are written so: what lies at the ends must be inside the region and aligned. */
#define ACCESS_BYTES 16u
#define SLOT_SHIFT_MAX 24u

static int is_aligned(const void *address, uintptr_t bytes)
{
	return address && ((uintptr_t)address & (bytes - 1)) == 0;
}

static int is_mask(uint32_t mask)
{
	return mask != UINT32_MAX && (mask & (mask + 1)) == 0;
}

static int ring_check(const struct burst_ring_view *ring, uint32_t index, enum kernel_role role)
{
	if (!is_mask(ring->desc_mask) || !is_mask(ring->burst_mask))
		return kernel_fail(-EINVAL,
				   "ring %u: masks %#x and %#x are not a power of two less one",
				   index, ring->desc_mask, ring->burst_mask);
	if (ring->slot_shift > SLOT_SHIFT_MAX)
		return kernel_fail(-EINVAL, "ring %u: slots of 2^%u bytes; at most 2^%u", index,
				   ring->slot_shift, SLOT_SHIFT_MAX);
	if (!is_aligned(ring->desc, 8) || !is_aligned(ring->ready, 8) ||
	    !is_aligned(ring->stop, 4) || !is_aligned(ring->result, ACCESS_BYTES))
		return kernel_fail(
			-EINVAL, "ring %u: a part is missing or not aligned (result: to %u bytes)",
			index, ACCESS_BYTES);
	if (!is_aligned(ring->frames, ACCESS_BYTES) || ring->frames_bytes % ACCESS_BYTES)
		return kernel_fail(-EINVAL,
				   "ring %u: the frames' region must begin and end at %u bytes",
				   index, ACCESS_BYTES);
	if (role == KERNEL_CHECK && !is_aligned(ring->overflow, ACCESS_BYTES))
		return kernel_fail(-EINVAL, "ring %u: no aligned overflow runs to check into",
				   index);
	if (role == KERNEL_WRITE && !is_aligned(ring->order, 8))
		return kernel_fail(-EINVAL, "ring %u: no orders to write frames from", index);
	return 0;
}

int kernel_job_check(const struct kernel_job *job)
{
	int ret;

	if (job->role != KERNEL_CHECK && job->role != KERNEL_WRITE)
		return kernel_fail(-EINVAL, "unknown kernel role %d", (int)job->role);
	if (!job->ring_count || !job->rings)
		return kernel_fail(-EINVAL, "a kernel job needs at least one ring");
	if (job->ring_count > KERNEL_RINGS_MAX || job->workers_per_ring > KERNEL_WORKERS_MAX)
		return kernel_fail(-EINVAL, "%u rings with %u workers each: at most %u and %u",
				   job->ring_count, job->workers_per_ring, KERNEL_RINGS_MAX,
				   KERNEL_WORKERS_MAX);
	if (job->plan.kind >= PATTERN_KINDS)
		return kernel_fail(-EINVAL, "unknown pattern %u", job->plan.kind);
	for (uint32_t r = 0; r < job->ring_count; r++) {
		ret = ring_check(&job->rings[r], r, job->role);
		if (ret)
			return ret;
	}
	return 0;
}
