/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stops and closes a memif port where its driver hears of the other end: on EAL's interrupt thread.
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

#include <ethdev_driver.h>
#include <rte_alarm.h>
#include <rte_interrupts.h>

#include "base/log.h"

#define LOOK_NS 50000

struct order {
	int (*call)(uint16_t port);
	uint16_t port;
	int ret;
	uint64_t log;
	_Atomic int done;
};

static void call_here(void *arg)
{
	struct order *order = arg;
	const uint64_t before = log_of_thread();

	log_adopt(order->log);
	order->ret = order->call(order->port);
	log_adopt(before);
	/* Last: the struct is gone then. Partner: the acquire load in call_there(). */
	atomic_store_explicit(&order->done, 1, memory_order_release);
}

static int call_there(int (*call)(uint16_t port), uint16_t port)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct order order = { .call = call, .port = port, .log = log_of_thread() };

	if (rte_thread_is_intr() || rte_eal_alarm_set(1, call_here, &order) < 0)
		return call(port);
	while (!atomic_load_explicit(&order.done, memory_order_acquire))
		nanosleep(&look, NULL);
	return order.ret;
}

/*
 * To release a send queue the driver frees all but its interrupt handle, 26 KiB (so it is in DPDK 22.11 and
 * 25.11). What it has of a receive queue is the same struct, and to release that it frees the handle too.
 */
static void send_queues_release(struct rte_eth_dev *device)
{
	struct rte_eth_dev_data *data = device->data;
	void **receive_queues = data->rx_queues;

	data->rx_queues = data->tx_queues;
	for (uint16_t q = 0; q < data->nb_tx_queues; q++) {
		device->dev_ops->rx_queue_release(device, q);
		data->tx_queues[q] = NULL;
	}
	data->rx_queues = receive_queues;
}

static int close_queues_first(uint16_t port)
{
	struct rte_eth_dev *device = &rte_eth_devices[port];

	/* Else the close is refused, and the queues are in use. */
	if (!device->data->dev_started)
		send_queues_release(device);
	return rte_eth_dev_close(port);
}

int memif_stop(uint16_t port)
{
	return call_there(rte_eth_dev_stop, port);
}

int memif_close(uint16_t port)
{
	return call_there(close_queues_first, port);
}
