/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a port lost frames, from its driver's extended statistics, which are looked up by name. What
 * a driver does not have is unknown, not 0. Control code.
 */
#ifndef GDRCAP_XSTATS_H
#define GDRCAP_XSTATS_H

#include <stdbool.h>
#include <stdint.h>

enum xstats_cause {
	/* No free slot in the queue when the frame came: the consumer is slow, or the pool small.
	 * rte_eth_stats.imissed counts the same frames. */
	XSTATS_NO_BUFFER,
	/* The card's own buffer was full: PCIe or memory is slower than the wire, or the frame
	 * found no slot for so long that it backed up. Counted at the physical port, the others in the
	 * queue. */
	XSTATS_CARD_FULL,
	/* Damaged on the wire: cable, transceiver, other side. Never reach a queue. */
	XSTATS_WIRE_CRC,
	XSTATS_WIRE_SYMBOL, /* symbol errors: not frames one by one */
	XSTATS_WIRE_LENGTH,
	/* A queue in error: its work entries ended with an error. */
	XSTATS_QUEUE_ERROR,
	/* Not lost frames, but why a sender was slow: pause frames that came, and that we sent. */
	XSTATS_PAUSE_RX,
	XSTATS_PAUSE_TX,
	/* Of sending ports. */
	XSTATS_TX_WIRE_ERROR,
	XSTATS_TX_DISCARD,
	/* All that came to the physical port, and that left it: of any process, and the kernel's too. */
	XSTATS_WIRE_FRAMES_RX,
	XSTATS_WIRE_FRAMES_TX,
	XSTATS_CAUSES
};

enum xstats_source {
	XSTATS_NOWHERE,
	XSTATS_DRIVER, /* rte_eth_xstats */
	/* ethtool -S of the interface beside it: DPDK 22.11's mlx5 driver leaves the pause counters
	 * out, and counts all others again when its port is started again */
	XSTATS_KERNEL,
};

struct xstats {
	uint16_t port;
	char interface[32];	  /* the kernel's; "": none */
	uint32_t kernel_counters; /* of the interface */
	struct {
		enum xstats_source source;
		uint64_t id; /* there */
		uint64_t base;
	} cause[XSTATS_CAUSES];
};

struct xstats_values {
	uint32_t known;		       /* bit XSTATS_...: `count` of it is true */
	uint64_t count[XSTATS_CAUSES]; /* since xstats_open(); 0 where not known */
};

/* After the port was started, before the first frame: looks the names up and reads where they
 * stand. A driver without extended statistics is no error: nothing is known then. */
void xstats_open(struct xstats *xstats, uint16_t port);

/* Asks the driver, and it the card: some milliseconds on a ConnectX. */
void xstats_read(const struct xstats *xstats, struct xstats_values *values);

/* After the port was started again, which made the driver count again: goes on where it was. */
void xstats_go_on(struct xstats *xstats, const struct xstats_values *before);

/* "out_of_buffer", ...: as in JSON. */
const char *xstats_cause_name(enum xstats_cause cause);
/* For people, with the remedy. */
const char *xstats_cause_meaning(enum xstats_cause cause);
/* True: it is counted where frames are sent. */
bool xstats_cause_is_senders(enum xstats_cause cause);

static inline bool xstats_known(const struct xstats_values *values, enum xstats_cause cause)
{
	return values->known >> cause & 1;
}

#endif
