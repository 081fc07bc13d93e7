/* SPDX-License-Identifier: BSD-3-Clause */
/* Send times that a card keeps. */
#include "port/tx_clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "base/log.h"

#define READS 5u /* of which the quickest counts */
#define MEASURE_MS 50u
#define STEP_US 1000u /* off by so much, the clock was set: not a matter of its rate */

bool tx_clock_supported(uint16_t port)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port, &info) == 0 &&
	       (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) != 0;
}

/* Reads both clocks as closely together as a few tries allow. */
static int pair_read(uint16_t port, struct tx_clock_pair *pair)
{
	uint64_t least = UINT64_MAX, before, after, clock;
	int ret;

	for (unsigned int i = 0; i < READS; i++) {
		before = rte_rdtsc_precise();
		ret = rte_eth_read_clock(port, &clock);
		after = rte_rdtsc_precise();
		/* mlx5 hands on a positive errno. */
		if (ret)
			return ret < 0 ? ret : -ret;
		if (after - before >= least)
			continue;
		least = after - before;
		pair->tsc = before + (after - before) / 2;
		pair->clock = clock;
	}
	return 0;
}

int tx_clock_open(struct tx_clock *clock, uint16_t port, uint64_t tsc_hz,
		  struct gdrcap_error *error)
{
	const struct timespec pause = { .tv_nsec = MEASURE_MS * 1000000 };
	struct tx_clock_map *map = &clock->map;
	int ret;

	memset(clock, 0, sizeof(*clock));
	clock->port = port;
	clock->tsc_hz = tsc_hz;
	if (!tx_clock_supported(port))
		return error_set(error, -ENOTSUP,
				 "port %u does not send on timestamps; the sender's CPU keeps the "
				 "rate",
				 port);
	ret = rte_mbuf_dyn_tx_timestamp_register(&clock->offset, &clock->flag);
	if (ret < 0)
		return error_set(error, -rte_errno,
				 "frames have no room for a send time: %s; is another user of DPDK "
				 "in this process taking all of it?",
				 rte_strerror(rte_errno));
	ret = pair_read(port, &map->first);
	if (ret < 0)
		return error_set(error, ret,
				 "the clock of port %u cannot be read: %s; the sender's CPU keeps "
				 "the rate",
				 port, rte_strerror(-ret));
	nanosleep(&pause, NULL);
	ret = pair_read(port, &map->now);
	if (ret < 0 || map->now.clock <= map->first.clock || map->now.tsc <= map->first.tsc)
		return error_set(error, ret < 0 ? ret : -EIO,
				 "the clock of port %u stands still; the sender's CPU keeps the "
				 "rate",
				 port);
	map->clock_per_tsc = (double)(map->now.clock - map->first.clock) /
			     (double)(map->now.tsc - map->first.tsc);
	return 0;
}

void tx_clock_close(struct tx_clock *clock)
{
	/* The field and the flag of an mbuf are registered for the process's life. */
	memset(clock, 0, sizeof(*clock));
}

void tx_clock_renew(const struct tx_clock *clock, struct tx_clock_map *map, uint64_t now_tsc)
{
	const uint64_t step =
		(uint64_t)(map->clock_per_tsc * (double)clock->tsc_hz / 1e6 * STEP_US);
	struct tx_clock_pair pair;
	uint64_t expected, off;

	if (now_tsc - map->now.tsc < clock->tsc_hz / 1000 * TX_CLOCK_READ_MS ||
	    pair_read(clock->port, &pair) < 0)
		return;
	expected = tx_clock_at(map, pair.tsc);
	off = pair.clock - expected;
	if ((int64_t)off < 0)
		off = 0 - off;
	if (off > step)
		map->first = pair; /* somebody set it: its rate stays as measured */
	else
		map->clock_per_tsc = (double)(pair.clock - map->first.clock) /
				     (double)(pair.tsc - map->first.tsc);
	map->now = pair;
}
