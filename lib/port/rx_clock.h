/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock of arrival times: the CPU's time stamp counter, read when a poll returned, or a card's
 * own, which a ConnectX reads when the frame came. Both are ticks; this turns them into time of
 * day. One user at a time may renew it: a thread that needs its own takes a copy.
 *
 * mlx5 reads no free-running clock of a port in isolated mode, and of one of real time only where
 * it may map the card's registers. Then it is read through libibverbs: rx_clock_verbs.h.
 *
 * Ticks of real time (ns since the Unix epoch: a ConnectX with REAL_TIME_CLOCK_ENABLE) are taken as
 * they are; that clock is set by whoever keeps it (ptp4l, phc2sys). mlx5 says nowhere which kind
 * the ticks are, and where it may not map the card's registers it reads another counter than the
 * one that frames get. So each time is looked at: one that is within a day of now, as ns, is one. A
 * counter that began at 0 when the card was powered is 50 years away from that.
 *
 * Other ticks are measured against the system's clock, since the start and then each second. What
 * NTP does to its rate is followed; that it is set during a run changes nothing. Ticks to time is
 * a straight line, bent at each measurement: it goes on from where it was and comes nearer to what
 * was measured, so that no time after that moment is before one from before it. A frame that came
 * `age` before a measurement and is asked for after it is off by (age x change of the slope), to
 * either side: about 1 ns per ms for a clock that drifts 1 us a second, 1 us per ms at most. Only
 * ticks that are over 1 ms off (the card was reset) are followed at once.
 *
 * The counters do not wrap: 63 bits of a ConnectX, from power on, last for centuries.
 */
#ifndef GDRCAP_RX_CLOCK_H
#define GDRCAP_RX_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

/* In place of a port. */
#define RX_CLOCK_CPU UINT16_MAX
#define RX_CLOCK_FILE (UINT16_MAX - 1) /* what a file says: ns since the Unix epoch */

struct ibv_context;

/* May be copied when it is open, and each copy renewed by a user of its own; none may be after the
 * first was closed. */
struct rx_clock {
	uint16_t port;	/* whose ticks these are; RX_CLOCK_CPU */
	bool real_time; /* the card's clock is ns since the Unix epoch */
	/* RX_CLOCK_CPU: unused. Of the time in an mbuf, and the flag of one that has it. */
	int offset;
	uint64_t flag;

	uint64_t ticks, ns; /* where the line goes through; ns since the Unix epoch */
	int64_t slope;	    /* ns a tick, in 2^-48, so that days away are as exact as now */
	uint64_t measured;  /* what the system's clock said at `ticks` */
	double ns_a_tick;   /* as measured over the last `span` ns */
	double span;
	uint64_t epoch;		   /* from CLOCK_MONOTONIC to time of day, at the start */
	uint64_t renewed;	   /* TSC */
	struct ibv_context *verbs; /* NULL: the driver reads the clock. Copies borrow it */
};

/* Before the port is configured, with RTE_ETH_RX_OFFLOAD_TIMESTAMP: registers the mbuf's field.
 * -ENOTSUP: the port has no clock. */
int rx_clock_register(struct rx_clock *clock, uint16_t port, struct gdrcap_error *error);
/* The same for the times that a file's frames have. */
int rx_clock_register_file(struct rx_clock *clock, struct gdrcap_error *error);
/* After the port was started; for the CPU's, with only clock->port = RX_CLOCK_CPU set, at any time,
 * and that never fails. Takes some 50 ms, for the clock's rate. -ENOTSUP: frames have times, but
 * nobody can tell of which day: neither the driver nor libibverbs lets us read the clock. */
int rx_clock_open(struct rx_clock *clock, struct gdrcap_error *error);
/* Also of one that is all 0, or was not opened; of the CPU's nothing is to be closed. */
void rx_clock_close(struct rx_clock *clock);
/* Measures again when the last time is over a second ago; a clock that does not answer goes on as it
 * was. */
void rx_clock_renew(struct rx_clock *clock);
/* Time of day in ns; 0 for 0. */
uint64_t rx_clock_ns(const struct rx_clock *clock, uint64_t ticks);

#endif
