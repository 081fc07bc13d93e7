/* SPDX-License-Identifier: BSD-3-Clause */
/* How a test waits for another thread. */
#ifndef GDRCAP_TEST_NAP_H
#define GDRCAP_TEST_NAP_H

#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

/* A sleep, and no sched_yield(): recent kernels take a share of its time from a thread with each
 * yield, and beside threads that work one that yields again and again waits for long. Always true.
 */
static inline bool nap(void)
{
	const struct timespec pause = { .tv_nsec = 10000 };

	/* Of this thread: its sleeps are not made 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	nanosleep(&pause, NULL);
	return true;
}

#endif
