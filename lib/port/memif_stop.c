/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stops a memif port where its driver hears of the other end: on EAL's interrupt thread.
 *
 * When the other end leaves, the driver takes a connection down on that thread: it closes descriptors,
 * unmaps the shared memory and frees what described it. A stop does the same, on the thread that
 * calls it, and the two know nothing of each other. Where both ends are in one process the one's stop
 * is what the other hears, so they met in every second run: the memory was freed twice ("EAL: Error:
 * Invalid memory"), and could be unmapped twice and descriptors closed twice, which may be
 * somebody else's by then. One after the other on one thread they cannot; and when a stop has
 * returned, nothing of the port's is at work there, so that it may be closed. Read in DPDK 22.11.
 */
#include "port/memif_stop.h"

#include <stdatomic.h>
#include <time.h>

#include <rte_alarm.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>

#include "base/log.h"

#define LOOK_NS 50000

struct stopping {
	uint16_t port;
	int ret;
	uint64_t log;
	_Atomic int done;
};

static void stop_here(void *arg)
{
	struct stopping *stopping = arg;
	const uint64_t before = log_of_thread();

	log_adopt(stopping->log);
	stopping->ret = rte_eth_dev_stop(stopping->port);
	log_adopt(before);
	/* Last: the struct is gone then. Partner: the acquire load in memif_stop(). */
	atomic_store_explicit(&stopping->done, 1, memory_order_release);
}

int memif_stop(uint16_t port)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct stopping stopping = { .port = port, .log = log_of_thread() };

	if (rte_thread_is_intr() || rte_eal_alarm_set(1, stop_here, &stopping) < 0)
		return rte_eth_dev_stop(port);
	while (!atomic_load_explicit(&stopping.done, memory_order_acquire))
		nanosleep(&look, NULL);
	return stopping.ret;
}
