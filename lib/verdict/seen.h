/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Until when all that came is in the accounts. A time-out that runs while a receiver or a worker has no
 * core, and frames wait for it, says nothing of their sender: what counts is the time until which each
 * port was polled empty and each burst accounted for. It is asked for only when something is due:
 * its words are in the receivers' own cache lines.
 */
#ifndef GDRCAP_SEEN_H
#define GDRCAP_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define SEEN_FRAMES                                                                                \
	65536u /* more than wait at any port: after so many it need not have been empty */
#define SEEN_WAIT_MS 1000u /* longer nobody is waited for */

struct rx_worker;

struct seen {
	struct rx_worker *rx;
	uint32_t rx_count;
	uint64_t until; /* ticks */
	uint64_t mark;	/* the time that is being waited for; with `step` */
	enum { SEEN_NEW, SEEN_PORTS, SEEN_BURSTS } step;
	struct {
		uint64_t empty, frames;
		uint64_t published;
	} at[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
};

/* One look. Moves `until` on when all is in the accounts that had come by a time not before the last
 * call that did. The accountant, whose cursors are read. */
void seen_look(struct seen *seen, uint64_t now);

#endif
