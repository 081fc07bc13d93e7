/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests that allocate tens of MB in each of many cases, where the allocator costs more than the test. */
#ifndef GDRCAP_TEST_BIG_MEMORY_H
#define GDRCAP_TEST_BIG_MEMORY_H

#include <limits.h>
#include <malloc.h>

/* Little of it is touched: calloc() takes zero pages from the kernel. Left alone, it reuses freed memory and clears
 * all of it. */
static inline void big_memory_is_sparse(void)
{
	mallopt(M_PERTURB,
		0); /* Meson sets MALLOC_PERTURB_, with which calloc() clears zero pages too */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

/* All of it is written: the process keeps it. Given back to the kernel, each page would be a fault in each case. */
static inline void big_memory_is_kept(void)
{
	mallopt(M_PERTURB, 0);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

#endif
