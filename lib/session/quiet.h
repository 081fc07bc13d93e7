/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silence, which ends the wait for frames in flight. It is no silence when nobody listened: time
 * counts from where every receiver has polled its queue empty some times, and when the time is over
 * each has to do so once more. By one thread at a time.
 */
#ifndef GDRCAP_QUIET_H
#define GDRCAP_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/patience.h"
#include "gdrcap.h"

#define QUIET_LOOKS 16u /* polls that brought nothing */
/* A port that is never silent gives no empty poll. But its queue is one: after more frames than any
 * holds, those that waited in it at the beginning have come. */
#define QUIET_FRAMES 65536u

struct rx_worker;

/* What a receiver had done at the last beginning. */
struct quiet_mark {
	uint64_t empty, frames, rounds;
};

struct quiet {
	struct rx_worker *rx;
	uint32_t rx_count;
	enum quiet_stage {
		QUIET_BEFORE, /* not all have looked */
		QUIET_TIME,   /* all have, at `since_tsc` */
		QUIET_AFTER,  /* the time is over, and not all have looked since */
	} step;
	uint64_t since_tsc;
	struct patience room; /* of quiet_is_blocked() */
	uint64_t moved;	      /* then */
	struct quiet_mark mark[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
};

/* Silence begins now. The receivers may have started or not. */
void quiet_init(struct quiet *quiet, struct rx_worker *rx, uint32_t rx_count);
/* It begins again. */
void quiet_begin(struct quiet *quiet);
/* To be asked again and again: true when it was one for `ms`. */
bool quiet_is_over(struct quiet *quiet, uint32_t ms);
/* To be asked again and again: true when for so long a receiver that has yet to look could not, for
 * want of room in its ring: its consumer takes nothing. */
bool quiet_is_blocked(struct quiet *quiet, uint32_t ms);

#endif
