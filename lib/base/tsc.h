/* SPDX-License-Identifier: BSD-3-Clause */
/* Time by the CPU's time stamp counter. */
#ifndef GDRCAP_TSC_H
#define GDRCAP_TSC_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_cycles.h>

static inline bool tsc_older(uint64_t since, uint64_t ms)
{
	return rte_rdtsc() - since > ms * (rte_get_tsc_hz() / 1000);
}

#endif
