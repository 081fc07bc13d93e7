/* SPDX-License-Identifier: BSD-3-Clause */
#include "save_clock.h"

#include <time.h>

#include <rte_cycles.h>

#define TRIES 8
#define NS 1000000000u
/* A ratio further than one in so many from DPDK's is a clock that was set meanwhile. */
#define BELIEVED_ONE_IN 100

/* Both clocks at one moment: of several tries the one that was interrupted least. */
static void read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		struct timespec now;
		uint64_t before, took;

		before = rte_rdtsc();
		clock_gettime(CLOCK_REALTIME, &now);
		took = rte_rdtsc() - before;
		if (took >= least)
			continue;
		least = took;
		*tsc = before + took / 2;
		*ns = (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
	}
}

static void measure(struct save_clock *clock)
{
	const double told = (double)NS / (double)rte_get_tsc_hz();
	double ratio, off;
	uint64_t tsc = 0, ns = 0;

	read_both(&tsc, &ns);
	clock->renewed = tsc;
	if (tsc == clock->tsc)
		return;
	ratio = ((double)(int64_t)(ns - clock->ns)) / (double)(tsc - clock->tsc);
	off = ratio > told ? ratio - told : told - ratio;
	if (off * BELIEVED_ONE_IN < told)
		clock->ns_a_tick = ratio;
}

void save_clock_start(struct save_clock *clock)
{
	const struct timespec while_away = { .tv_nsec = 10000000 };

	clock->ns_a_tick = (double)NS / (double)rte_get_tsc_hz();
	read_both(&clock->tsc, &clock->ns);
	nanosleep(&while_away, NULL);
	measure(clock);
}

void save_clock_renew(struct save_clock *clock)
{
	if (rte_rdtsc() - clock->renewed > rte_get_tsc_hz())
		measure(clock);
}

uint64_t save_clock_ns(const struct save_clock *clock, uint64_t tsc)
{
	const int64_t ticks = (int64_t)(tsc - clock->tsc);

	return clock->ns + (uint64_t)(int64_t)((double)ticks * clock->ns_a_tick);
}
