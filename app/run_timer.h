/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run does again and again, on the main thread. */
#ifndef GDRCAP_APP_RUN_TIMER_H
#define GDRCAP_APP_RUN_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* Of the monotonic clock. `at_ns` is set by its owner when it begins. */
struct run_timer {
	uint64_t every_ns, at_ns;
	bool steady; /* at multiples of its period, however late it was once; else so long after the last time */
};

/* True: now; and then again. */
static inline bool run_timer_due(struct run_timer *timer, uint64_t now_ns)
{
	if (now_ns < timer->at_ns)
		return false;
	timer->at_ns = (timer->steady ? timer->at_ns : now_ns) + timer->every_ns;
	return true;
}

#endif
