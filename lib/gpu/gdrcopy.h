/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory in the CPU's address space by GDRCopy: its library is loaded when first needed, so
 * nothing is linked. Not thread-safe.
 */
#ifndef GDRCAP_GDRCOPY_H
#define GDRCAP_GDRCOPY_H

#include <stddef.h>
#include <stdint.h>

struct gdrcopy;

struct gdrcopy_mapping {
	void *cpu;  /* where the CPU sees the first byte asked for */
	void *base; /* where the mapping begins: whole GPU pages */
	size_t base_bytes;
	unsigned long handle; /* the library's */
};

/* -ENOTSUP where the library or its kernel module is missing; `why` gets cause and remedy. */
int gdrcopy_open(struct gdrcopy **gdrcopy, char *why, size_t why_bytes);
void gdrcopy_close(struct gdrcopy *gdrcopy);

/* Whole 64 KiB pages around the range are mapped: all of them must be of the same allocation. */
int gdrcopy_map(struct gdrcopy *gdrcopy, uintptr_t gpu, size_t bytes,
		struct gdrcopy_mapping *mapping);
int gdrcopy_unmap(struct gdrcopy *gdrcopy, const struct gdrcopy_mapping *mapping);

#endif
