/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sleep of a thread whose receive queue was empty for a while, unless it is to poll: until the kernel has
 * a frame for its socket, or the card's receive interrupt, where the queue has one, or until the thread
 * that sends on the same software wire wakes it; else for longer and longer. Never longer than was asked for,
 * since slots are to be given back meanwhile; 10 ms where frames end it and nobody waits for slots. Control
 * wakes it for a phase, and for the end of the run.
 *
 * A card interrupts once for each time that it is armed, when it writes a completion that the driver
 * has not read. So the queue is looked at once more between arming and sleeping: a frame that came
 * before the card heard of it is found then, whatever the card does about it.
 */
#ifndef GDRCAP_PORT_SLEEP_H
#define GDRCAP_PORT_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rest.h"
#include "base/thread.h"
#include "port/port.h"

struct port_sleep {
	struct thread_naps naps; /* naps.most_us 0: it never sleeps */
	int fd;			 /* the queue's socket, which is its driver's; -1: none is known */
	bool interrupts;	 /* it has none, but receive interrupts, ... */
	uint16_t port, queue;	 /* ... of this queue */
	bool armed;		 /* the queue was to be looked at once more since then */
	unsigned int idle;	 /* the round of the last call */
	/* Of gathering: the longest sleep, the frames that may come in it, ticks of a us. */
	uint32_t gather_us, room;
	uint64_t us_tsc;
	uint64_t since, frames; /* how many had come then */
	unsigned int woken;	/* sleeps that were ended before their time, for nothing */
	/* On the wake of the thread, but for interrupts. rest.wake NULL: only naps.most_us, or the port, ends a sleep. */
	struct rest rest;
	bool sender_wakes; /* of a software wire in this process */
};

/* The port runs. */
void port_sleep_init(struct port_sleep *sleep, const struct port *port, uint16_t queue,
		     uint32_t most_us);
/* Before the thread starts: who wakes `wake` ends its sleep. `sender`: who sends to the port does. */
void port_sleep_wake(struct port_sleep *sleep, struct wake *wake, bool sender);
/* `idle`: rounds since something was found; `holds`: slots that may be given back soon. It may
 * return at once, for one more round. */
void port_sleep(struct port_sleep *sleep, unsigned int idle, bool holds);
/* Its queue is empty and `frames` came so far: where they come slowly it sleeps until there are more, and
 * says so. */
bool port_sleep_gather(struct port_sleep *sleep, uint64_t frames);
/* Its port was started again. */
static inline void port_sleep_anew(struct port_sleep *sleep)
{
	sleep->armed = false;
}

#endif
