/* SPDX-License-Identifier: BSD-3-Clause */
/* Time by the CPU's time stamp counter. */
#ifndef GDRCAP_TSC_H
#define GDRCAP_TSC_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

/*
 * Ticks since `since`. A tick that another thread has just written may be later than ours: a CPU may
 * read its counter before an earlier load, and counters of two cores may differ. That is none ago.
 */
static inline uint64_t tsc_since(uint64_t since)
{
	const uint64_t now = rte_rdtsc();

	return now > since ? now - since : 0;
}

/* True from `ms` on: at once for 0, also where the counter ticks more slowly than it is read (Arm). */
static inline bool tsc_older(uint64_t since, uint64_t ms)
{
	return tsc_since(since) >= ms * (rte_get_tsc_hz() / 1000);
}

#endif
