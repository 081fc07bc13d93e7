/* SPDX-License-Identifier: BSD-3-Clause */
/* How a test waits for another thread. */
#ifndef GDRCAP_TEST_NAP_H
#define GDRCAP_TEST_NAP_H

#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

/* A virtual machine may take 100 us to sleep and wake up again. So most calls only loop, a few us: if the other thread
 * has a core, it is done by then. Every NAPS_AWAKE-th call sleeps, and not by sched_yield(): recent kernels take a share of
 * its time from a thread with each yield, and beside threads that work one that yields again and again waits for long.
 * Always true. */
#define NAPS_AWAKE 16u
#define NAP_LOOPS 1000u

static inline bool nap(void)
{
	static _Thread_local unsigned int calls;
	const struct timespec pause = { .tv_nsec = 10000 };

	if (++calls % NAPS_AWAKE) {
		for (volatile unsigned int i = 0; i < NAP_LOOPS; i++)
			;
		return true;
	}
	/* Of this thread: its sleeps are not made 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	nanosleep(&pause, NULL);
	return true;
}

#endif
