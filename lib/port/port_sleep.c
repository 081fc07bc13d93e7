/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeps until a port's queue may have something. */
#include "port/port_sleep.h"

#include <poll.h>
#include <time.h>

#include <rte_ethdev.h>

#include "base/log.h"
#include "port/kernel_drops.h"

/* More of them in a row are no chance. */
#define WOKEN_FOR_NOTHING 2u

/* What the driver says of itself is not known before it is asked to arm one. */
static bool has_interrupts(const struct port *port, uint16_t queue)
{
	return port->setup.rx_interrupts && rte_eth_dev_rx_intr_enable(port->id, queue) == 0 &&
	       rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, queue) >= 0;
}

void port_sleep_init(struct port_sleep *sleep, const struct port *port, uint16_t queue,
		     uint32_t most_us)
{
	*sleep = (struct port_sleep){
		.naps.most_us = most_us,
		.fd = port->drops ? kernel_drops_socket(port->drops, queue) : -1,
		.port = port->id,
		.queue = queue,
	};
	if (most_us == 0)
		return;
	sleep->interrupts = sleep->fd < 0 && has_interrupts(port, queue);
	if (queue == 0)
		log_info("port %s: idle receivers sleep %s, for %u us at most", port->name,
			 sleep->fd >= 0	     ? "on the driver's sockets"
			 : sleep->interrupts ? "until the port interrupts them"
					     : "for longer and longer: the driver has no receive "
					       "interrupts",
			 most_us);
}

/* A started port may have others than before. */
static int sleep_fd(const struct port_sleep *sleep)
{
	return sleep->interrupts ? rte_eth_dev_rx_intr_ctl_q_get_fd(sleep->port, sleep->queue)
				 : sleep->fd;
}

void port_sleep(struct port_sleep *sleep, unsigned int idle)
{
	const struct timespec most = { .tv_sec = sleep->naps.most_us / 1000000,
				       .tv_nsec = 1000L * (sleep->naps.most_us % 1000000) };
	struct pollfd fd = { .events = POLLIN };

	if (idle != sleep->idle + 1) {
		sleep->armed = false;
		sleep->woken = 0;
	}
	sleep->idle = idle;
	if (sleep->interrupts && !sleep->armed) {
		sleep->armed = true;
		sleep->interrupts = rte_eth_dev_rx_intr_enable(sleep->port, sleep->queue) == 0;
		return;
	}
	sleep->armed = false;
	fd.fd = sleep_fd(sleep);
	/* It was readable and there was nothing, again and again, or it has an error, as while its
	 * interface is down. Once is no harm: an interrupt for frames that were found awake. */
	if (fd.fd < 0 || sleep->woken >= WOKEN_FOR_NOTHING) {
		thread_nap(&sleep->naps, idle);
		return;
	}
	if (ppoll(&fd, 1, &most, NULL) <= 0) {
		sleep->woken = 0;
		return;
	}
	sleep->woken++;
	if (sleep->interrupts)
		(void)rte_eth_dev_rx_intr_disable(sleep->port, sleep->queue);
}
