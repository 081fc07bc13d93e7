/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeps until a port's queue may have something. */
#include "port/port_sleep.h"

#include <poll.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "port/kernel_drops.h"

/* More of them in a row are no chance. */
#define WOKEN_FOR_NOTHING 2u

/*
 * What comes slowly is gathered: it is received together after a sleep of GATHER_LEAST_US to
 * GATHER_MOST_US, since a wake-up costs as much as 20 frames, and to wait awake between two frames of
 * an image costs a core. Slowly: in that time comes no more than the GATHER_PART-th part of what the
 * queue has room for, as seen over GATHER_LOOK_US and more.
 */
#define GATHER_MOST_US 500u
#define GATHER_LEAST_US 200u
#define GATHER_LOOK_US 50u
#define GATHER_PART 8u

/* For a socket's sleeper that holds no slot: the kernel wakes it with the first frame. */
#define HOLDS_NOTHING_US 10000u

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
	sleep->gather_us = RTE_MIN(most_us / 2, GATHER_MOST_US);
	sleep->room = port->setup.descriptors / GATHER_PART;
	sleep->us_tsc = rte_get_tsc_hz() / 1000000;
	sleep->interrupts = sleep->fd < 0 && has_interrupts(port, queue);
	if (queue == 0)
		log_info("port %s: idle receivers sleep %s, for %u us at most", port->name,
			 sleep->fd >= 0	     ? "on the driver's sockets"
			 : sleep->interrupts ? "until the port interrupts them"
					     : "for longer and longer: the driver has no receive "
					       "interrupts",
			 most_us);
}

void port_sleep_wake(struct port_sleep *sleep, struct wake *wake, bool sender)
{
	/* A card's interrupt is waited for as ever. Where there is no descriptor for the two of them to be waited for
	 * together, the socket alone is. */
	if (sleep->naps.most_us == 0 || sleep->interrupts ||
	    (sleep->fd >= 0 && wake_use_fd(wake) < 0))
		return;
	rest_init(&sleep->rest, wake);
	sleep->rest.port_fd = sleep->fd;
	sleep->sender_wakes = sender;
}

/* A started port may have others than before. */
static int sleep_fd(const struct port_sleep *sleep)
{
	return sleep->interrupts ? rte_eth_dev_rx_intr_ctl_q_get_fd(sleep->port, sleep->queue)
				 : sleep->fd;
}

bool port_sleep_gather(struct port_sleep *sleep, uint64_t frames)
{
	const uint64_t now = rte_rdtsc(), gone = now - sleep->since, us = sleep->us_tsc;
	const uint64_t came = frames - sleep->frames;
	const bool recent = gone <= 2 * GATHER_MOST_US * us;
	struct timespec pause = { 0 };
	uint64_t gather_us;

	if (gone < GATHER_LOOK_US * us)
		return false;
	gather_us = came && recent ? gone * sleep->room / (came * us) : 0;
	gather_us = RTE_MIN(gather_us, sleep->gather_us);
	/* What is known is renewed, and in any case before a sleep, whose frames count. */
	if (!recent || gather_us >= GATHER_LEAST_US || gone >= GATHER_MOST_US * us) {
		sleep->since = now;
		sleep->frames = frames;
	}
	if (gather_us < GATHER_LEAST_US)
		return false;
	pause.tv_nsec = 1000L * (long)gather_us;
	nanosleep(&pause, NULL);
	return true;
}

/* On its wake. Where nobody knows of a frame, for longer and longer. */
static void port_rest(struct port_sleep *sleep, unsigned int idle, bool holds)
{
	struct rest *rest = &sleep->rest;
	const bool naps =
		!sleep->sender_wakes && (sleep->fd < 0 || sleep->woken >= WOKEN_FOR_NOTHING);
	uint32_t most_us = holds && !sleep->sender_wakes
				   ? sleep->naps.most_us
				   : RTE_MAX(sleep->naps.most_us, HOLDS_NOTHING_US);

	if (idle != sleep->idle + 1)
		sleep->woken = 0;
	sleep->idle = idle;
	if (naps)
		most_us = thread_nap_next(&sleep->naps, idle);
	rest->port_fd = naps ? -1 : sleep->fd;
	if (!rest_step(rest, idle, most_us))
		thread_idle(idle);
	else if (!rest->armed && !naps)
		sleep->woken = rest->port ? sleep->woken + 1 : 0;
}

void port_sleep(struct port_sleep *sleep, unsigned int idle, bool holds)
{
	const uint32_t most_us = holds || sleep->fd < 0
					 ? sleep->naps.most_us
					 : RTE_MAX(sleep->naps.most_us, HOLDS_NOTHING_US);
	const struct timespec most = { .tv_sec = most_us / 1000000,
				       .tv_nsec = 1000L * (most_us % 1000000) };
	struct pollfd fd = { .events = POLLIN };

	if (sleep->rest.wake) {
		port_rest(sleep, idle, holds);
		return;
	}
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
