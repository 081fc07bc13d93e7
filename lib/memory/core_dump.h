/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames are somebody's traffic: a core dump, which others may get to read, has none. */
#ifndef GDRCAP_CORE_DUMP_H
#define GDRCAP_CORE_DUMP_H

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

/* Leaves whole pages of our own out of core dumps, for as long as they are mapped. */
static inline void core_dump_without(void *base, size_t bytes)
{
	if (madvise(base, bytes, MADV_DONTDUMP) < 0)
		log_warning("%zu KiB of frames would be in a core dump: %s; ulimit -c 0 makes none",
			    bytes >> 10, strerror(errno));
}

#endif
