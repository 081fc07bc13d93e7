/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sleep of a thread whose receive queue was empty for a while, where that is asked for: until
 * the kernel has a frame for its socket, where the queue has one; else for longer and longer. Never
 * longer than was asked for: slots are to be given back meanwhile, and phases seen.
 */
#ifndef GDRCAP_PORT_SLEEP_H
#define GDRCAP_PORT_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "port/port.h"

struct port_sleep {
	struct thread_naps naps; /* naps.most_us 0: it never sleeps */
	int fd;			 /* the queue's socket, which is its driver's; -1: none is known */
	unsigned int idle;	 /* the round of the last sleep */
	bool woken;		 /* the socket ended it */
};

void port_sleep_init(struct port_sleep *sleep, const struct port *port, uint16_t queue,
		     uint32_t most_us);
/* `idle`: rounds since something was found. */
void port_sleep(struct port_sleep *sleep, unsigned int idle);

#endif
