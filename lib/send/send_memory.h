/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the caller's from which frames are sent without a copy. A session has a few of them; each send
 * queue counts what it has lent from each and what came back, so that none is taken away under a port.
 *
 * LEND: a submission adds to `lent`, fences (seq_cst), and looks once more whether the memory is open.
 * Partner, CLOSE MEMORY: who unregisters it closes it, fences, and compares `lent` with `freed`. Each
 * stores before its fence what the other loads after its own, so one of them sees the other. Without one of the
 * fences both could go on, and a card would read what is no longer registered.
 */
#ifndef GDRCAP_SEND_MEMORY_H
#define GDRCAP_SEND_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "memory/region.h"

#define SEND_MEMORIES 16u

struct send_memory {
	struct region region; /* writer: control, before it opens it */
	uint32_t mapped;      /* control: bits of sending ports that it is mapped for */
	_Atomic int open;     /* release; partner: the acquire load in send_memory_find() */
};

/* Of one queue and one memory. Writer of `lent`: the caller's thread; of `freed`: who collects. */
struct send_lent {
	_Atomic uint64_t lent, freed;
};

/* Which of them has all of these bytes; SEND_MEMORIES: none. */
static inline uint32_t send_memory_find(const struct send_memory *memories, const void *at,
					uint32_t bytes)
{
	for (uint32_t i = 0; i < SEND_MEMORIES; i++) {
		const struct send_memory *memory = &memories[i];
		size_t offset;

		if (!atomic_load_explicit(&memory->open, memory_order_acquire))
			continue;
		offset = (size_t)((uintptr_t)at - (uintptr_t)memory->region.base);
		if (offset < memory->region.bytes && bytes <= memory->region.bytes - offset)
			return i;
	}
	return SEND_MEMORIES;
}

#endif
