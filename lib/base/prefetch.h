/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the cache that are going to be written. */
#ifndef GDRCAP_PREFETCH_H
#define GDRCAP_PREFETCH_H

/* Not __builtin_prefetch(): for this baseline of x86 it asks for a line to read, which has to be asked
 * for once more. A CPU that does not know the instruction skips it. */
static inline __attribute__((always_inline)) void prefetch_for_write(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" ::"m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1, 3);
#endif
}

#endif
