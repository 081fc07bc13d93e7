/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings of memif connections. The client makes them, side by side at the beginning of its memory: one
 * for each queue from client to server, then one for each of the other direction. Of the first kind
 * the client moves `head` as it fills places, and the server `tail` as it has taken them. Of the
 * second the client moves `head` as it gives empty places, and the server `tail` as it fills them: all
 * was taken when the client has given all of the ring's again, as DPDK's does at once.
 *
 * The other end may write there what it likes: nothing of it is believed but as a number that is told,
 * and nothing is read outside of the mapping.
 */
#include "port/memif_rings.h"

#include <pthread.h>
#include <string.h>

#include <ethdev_driver.h>
#include <rte_common.h>

#define COOKIE 0x3E31F20u
#define AT_HEAD 6u
#define AT_TAIL ((size_t)RTE_CACHE_LINE_SIZE)
#define AT_PLACES ((size_t)2 * RTE_CACHE_LINE_SIZE)
#define PLACE_BYTES 16u
#define PLACES_LOG2_MOST 14u

static struct mapping {
	const uint8_t *base; /* NULL: none */
	size_t bytes;
} mappings[RTE_MAX_ETHPORTS]; /* by port */

static struct memif_lost lost[RTE_MAX_ETHPORTS][2]; /* by port; of a client, of a server */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mapping *mapping_of(const struct rte_eth_dev *device)
{
	return &mappings[device - rte_eth_devices];
}

void memif_rings_mapped(const struct rte_eth_dev *device, const void *base, size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (!mapping_of(device)->base)
		*mapping_of(device) = (struct mapping){ base, bytes };
	pthread_mutex_unlock(&lock);
}

static bool is_ring(const struct mapping *mapping, size_t at)
{
	return at <= mapping->bytes && mapping->bytes - at >= AT_PLACES &&
	       __atomic_load_n((const uint32_t *)(mapping->base + at), __ATOMIC_RELAXED) == COOKIE;
}

static uint16_t word(const struct mapping *mapping, size_t at)
{
	return __atomic_load_n((const uint16_t *)(mapping->base + at), __ATOMIC_RELAXED);
}

/* Places of each ring: where there is a second one says how long the first is. 0: not known. */
static uint32_t places_of(const struct mapping *mapping)
{
	for (uint32_t log2 = 0; is_ring(mapping, 0) && log2 <= PLACES_LOG2_MOST; log2++)
		if (is_ring(mapping, AT_PLACES + ((size_t)PLACE_BYTES << log2)))
			return 1u << log2;
	return 0;
}

static uint32_t rings_of(const struct mapping *mapping, size_t step)
{
	uint32_t count = 0;

	while (count < 2 * RTE_MAX_QUEUES_PER_PORT && is_ring(mapping, count * step))
		count++;
	return count;
}

static bool rings_left(const struct mapping *mapping, bool server, uint32_t queues, uint64_t *left)
{
	const uint32_t places = places_of(mapping);
	const size_t step = AT_PLACES + (size_t)PLACE_BYTES * places;
	const uint32_t count = places ? rings_of(mapping, step) : 0;

	if (count < 2 || count < queues)
		return false;
	*left = 0;
	for (uint32_t i = 0; i < queues; i++) {
		const size_t at = (server ? count - queues + i : i) * step;
		const uint16_t filled =
			(uint16_t)(word(mapping, at + AT_HEAD) - word(mapping, at + AT_TAIL));

		if (filled > places)
			return false;
		*left += server ? places - filled : filled;
	}
	return true;
}

/* Which end it is only the port's name says, which its driver's functions do not have: both are kept. */
static void lost_add(uint16_t port, const struct mapping *mapping, uint32_t queues)
{
	for (int server = 0; server < 2; server++) {
		struct memif_lost *of = &lost[port][server];
		uint64_t left;

		if (!rings_left(mapping, server, queues, &left))
			of->unknown = true;
		else
			of->places += left;
	}
}

void memif_rings_forget(const struct rte_eth_dev *device)
{
	pthread_mutex_lock(&lock);
	if (mapping_of(device)->base)
		lost_add((uint16_t)(device - rte_eth_devices), mapping_of(device),
			 device->data ? device->data->nb_tx_queues : 1);
	*mapping_of(device) = (struct mapping){ 0 };
	pthread_mutex_unlock(&lock);
}

struct memif_lost memif_rings_lost(uint16_t port, bool server)
{
	struct memif_lost told;

	pthread_mutex_lock(&lock);
	told = lost[port][server];
	memset(lost[port], 0, sizeof(lost[port]));
	pthread_mutex_unlock(&lock);
	return told;
}

bool memif_rings_left(uint16_t port, bool server, uint32_t queues, uint64_t *left)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = mappings[port].base && rings_left(&mappings[port], server, queues, left);
	pthread_mutex_unlock(&lock);
	return known;
}
