/* SPDX-License-Identifier: BSD-3-Clause */
/* A libgdrapi.so.2 without a GPU: "device" addresses are numbers, the mapping is host memory. */
#ifndef GDRCAP_FAKE_GDRAPI_H
#define GDRCAP_FAKE_GDRAPI_H

#include <stddef.h>
#include <stdint.h>

/* What the library was asked for, and what it is to answer. */
struct fake_gdrapi {
	unsigned int open, pinned, mapped; /* now */
	unsigned long gpu;		   /* of the last pin */
	size_t bytes;
	unsigned long shift; /* in: the mapping begins so many bytes before the pinned address */
	int fail_open, fail_pin, fail_map, fail_info; /* in: errno, or 0 */
	unsigned int misuse; /* calls with a handle, address or size that it did not give */
};

#endif
