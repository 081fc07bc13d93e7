/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a thread that finds no work sleeps (wake.h). After a sleep that was short it stays awake for longer
 * the next time, up to REST_AWAKE_MOST_US, since what comes so soon is not worth a sleep nor the system
 * call of who ends it; after a long one for half as long, and at last for some polls only. So at full speed
 * threads are awake as if they never slept, and at a slow rate they hardly wait awake.
 */
#ifndef GDRCAP_REST_H
#define GDRCAP_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wake.h"

#define REST_POLLS 16u /* looks without work before a thread thinks of sleeping */
#define REST_AWAKE_MOST_US 200u
#define REST_SHORT_US 100u /* a sleep below that was short */
/* At most: of a thread that polls a port, whose rounds the watchdog counts and the end of a run waits for; and
 * of one that does nothing unless it is woken. */
#define REST_MOST_US 10000u
#define REST_LONG_US 100000u

struct rest {
	struct wake *wake; /* NULL: it never sleeps */
	int port_fd;	   /* what ends its sleep too; -1: nothing does */
	uint32_t awake_us; /* how long it stays awake before it sleeps */
	uint32_t ticket;
	bool armed;	   /* one more look was to be made since then */
	bool port;	   /* the port ended the last sleep */
	uint32_t idle;	   /* the round of the last call */
	uint64_t since_ns; /* when it began to look in vain */
};

static inline void rest_init(struct rest *rest, struct wake *wake)
{
	*rest = (struct rest){ .wake = wake, .port_fd = -1 };
}

/*
 * `idle`: rounds since the last work. False: the caller is to stay awake, as it does without this. True: it
 * slept, for `most_us` at most, or is to look once more at once.
 */
bool rest_step(struct rest *rest, uint32_t idle, uint32_t most_us);

#endif
