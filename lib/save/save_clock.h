/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From TSC ticks to the time of day. The ratio is measured against the system's clock from the
 * start until now, so that it gets better, and follows what NTP does to the clock, the longer a
 * capture runs; DPDK's TSC frequency may be a multiple of 10 MHz that is 0.1 % off. One thread.
 */
#ifndef GDRCAP_SAVE_CLOCK_H
#define GDRCAP_SAVE_CLOCK_H

#include <stdint.h>

struct save_clock {
	uint64_t tsc, ns; /* read at the same moment; ns since the Unix epoch */
	uint64_t renewed; /* TSC of the last measurement */
	double ns_a_tick;
};

/* Takes some 10 ms, for a first ratio. */
void save_clock_start(struct save_clock *clock);
/* Measures again when the last time is a second ago. */
void save_clock_renew(struct save_clock *clock);
/* Since the Unix epoch. */
uint64_t save_clock_ns(const struct save_clock *clock, uint64_t tsc);

#endif
