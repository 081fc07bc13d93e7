/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeps until a port's queue may have something. */
#include "port/port_sleep.h"

#include <poll.h>
#include <time.h>

#include "port/kernel_drops.h"

void port_sleep_init(struct port_sleep *sleep, const struct port *port, uint16_t queue,
		     uint32_t most_us)
{
	*sleep = (struct port_sleep){
		.naps.most_us = most_us,
		.fd = port->drops ? kernel_drops_socket(port->drops, queue) : -1,
	};
}

void port_sleep(struct port_sleep *sleep, unsigned int idle)
{
	const bool goes_on = idle == sleep->idle + 1;
	struct pollfd fd = { .fd = sleep->fd, .events = POLLIN };
	const struct timespec most = { .tv_sec = sleep->naps.most_us / 1000000,
				       .tv_nsec = 1000L * (sleep->naps.most_us % 1000000) };

	sleep->idle = idle;
	/* It was readable and there was nothing, or it has an error, as while its interface is down:
	 * it would be again and again. */
	if (sleep->fd < 0 || (goes_on && sleep->woken)) {
		thread_nap(&sleep->naps, idle);
		return;
	}
	sleep->woken = ppoll(&fd, 1, &most, NULL) > 0;
}
