/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port that sends each frame at the time written into its mbuf (send on timestamp). Its clock is
 * not the CPU's: this maps ticks of the TSC to ticks of the port's clock.
 */
#ifndef GDRCAP_TX_CLOCK_H
#define GDRCAP_TX_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

struct rte_mbuf;

#define TX_CLOCK_AHEAD_US 1000u /* frames may be handed over so long before they are due */
#define TX_CLOCK_READ_MS 100u	/* the mapping is renewed no more often */

/* What both clocks said at one moment. */
struct tx_clock_pair {
	uint64_t tsc, clock;
};

/* Each user has its own and renews it, so nobody waits for anybody. */
struct tx_clock_map {
	struct tx_clock_pair first; /* the rate is measured since then */
	struct tx_clock_pair now;
	double clock_per_tsc;
};

/* After open, nothing in it changes. */
struct tx_clock {
	uint16_t port;
	int offset;    /* of the send time in an mbuf */
	uint64_t flag; /* of an mbuf that has one */
	uint64_t tsc_hz;
	struct tx_clock_map map; /* as measured by open */
};

/* True when the port sends on timestamps. Before it is configured: the offload
 * RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP is then to be asked for. */
bool tx_clock_supported(uint16_t port);

/* After the port was started. Takes 50 ms, for the rate of its clock. */
int tx_clock_open(struct tx_clock *clock, uint16_t port, uint64_t tsc_hz,
		  struct gdrcap_error *error);
void tx_clock_close(struct tx_clock *clock);

/* Renews the map when it is older than TX_CLOCK_READ_MS; a clock that does not answer leaves it. */
void tx_clock_renew(const struct tx_clock *clock, struct tx_clock_map *map, uint64_t now_tsc);

static inline uint64_t tx_clock_at(const struct tx_clock_map *map, uint64_t tsc)
{
	/* Less than some seconds apart, so a double is exact to a fraction of a tick. */
	const double ticks = (double)(int64_t)(tsc - map->now.tsc) * map->clock_per_tsc;

	return map->now.clock + (uint64_t)(int64_t)ticks;
}

/* Writes the send time, in ticks of the port's clock. */
static inline void tx_clock_mark(const struct tx_clock *clock, struct rte_mbuf *mbuf,
				 uint64_t *flags, uint64_t when)
{
	*(uint64_t *)(void *)((char *)mbuf + clock->offset) = when;
	*flags |= clock->flag;
}

#endif
