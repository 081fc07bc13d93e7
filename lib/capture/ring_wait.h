/* SPDX-License-Identifier: BSD-3-Clause */
/* How a consumer on the CPU waits: it looks again and again for a while, and sleeps then (ring_wake.h). */
#ifndef GDRCAP_RING_WAIT_H
#define GDRCAP_RING_WAIT_H

#include <stdbool.h>

#include "capture/ring_wake.h"

struct ring_poll {
	struct ring_wake *wake;
	int (*poll)(void *context); /* takes what is there: how much; 0; none ever again: < 0 */
	uint64_t (*next)(void *context); /* number of what it waits for */
	void *context;
	bool sleeps; /* at once: it may come late, and the CPU is wanted elsewhere */
	void (*left)(
		void *context); /* the thread was cancelled in its sleep; NULL: nothing to do */
};

/* Nothing was there: from now on the descriptor says when something is. What a last look brought. */
int ring_poll_arm(const struct ring_poll *poll);
/* Polls until something is there, for `usec` microseconds; -1: for ever. */
int ring_poll_wait(struct ring_poll *poll, int64_t usec);

#endif
