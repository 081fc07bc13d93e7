/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrival times: ticks of a card or of the CPU turned into time. */
#include "port/rx_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/rx_clock_verbs.h"

#define NS 1000000000ull
#define DAY_NS (86400 * NS)
#define TRIES 8u /* of which the quickest counts */
#define MEASURE_MS 50u
#define STEP_NS 1000000u /* off by so much, the clock was set: not a matter of its rate */
#define SPAN_NS 4e9	 /* the rate is measured over this time: NTP changes it */
#define BENDS 2		 /* an error would be gone after this many measurements */
#define WITHIN 10000u	 /* a measurement that took longer than one in this many says nothing */
#define SLOPE_ONE 281474976710656.0 /* 2^48 */
#define SLOPE_BITS 48
#define SLOPE_MAX 16384.0 /* ns a tick */
#define ASTRAY_NS NS	  /* a card's real time that is further off is worth a word */

/* Both clocks at one moment. */
struct pair {
	uint64_t ticks, ns;
	uint64_t took; /* ns: so exact is it */
};

static uint64_t distance(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

static int ticks_read(const struct rx_clock *clock, uint64_t *ticks)
{
	int ret;

	if (clock->port == RX_CLOCK_CPU) {
		*ticks = rte_rdtsc();
		return 0;
	}
	if (clock->verbs)
		return rx_clock_verbs_read(clock->verbs, ticks);
	ret = rte_eth_read_clock(clock->port, ticks);
	/* mlx5 hands on a positive errno. */
	return ret > 0 ? -ret : ret;
}

/* Of several tries the one that was interrupted least. CLOCK_MONOTONIC has the rate of the time of
 * day, and nobody can set it. */
static int pair_read(const struct rx_clock *clock, struct pair *pair)
{
	pair->took = UINT64_MAX;
	for (unsigned int i = 0; i < TRIES; i++) {
		uint64_t before, ticks, took;
		int ret;

		before = time_ns(CLOCK_MONOTONIC);
		ret = ticks_read(clock, &ticks);
		took = time_ns(CLOCK_MONOTONIC) - before;
		if (ret < 0)
			return ret;
		if (took >= pair->took)
			continue;
		*pair = (struct pair){ ticks, clock->epoch + before + took / 2, took };
	}
	return 0;
}

static uint64_t epoch_read(void)
{
	uint64_t least = UINT64_MAX, epoch = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		const uint64_t before = time_ns(CLOCK_MONOTONIC), now = time_ns(CLOCK_REALTIME),
			       took = time_ns(CLOCK_MONOTONIC) - before;

		if (took >= least)
			continue;
		least = took;
		epoch = now - before - took / 2;
	}
	return epoch;
}

static int field_register(struct rx_clock *clock, struct gdrcap_error *error)
{
	if (rte_mbuf_dyn_rx_timestamp_register(&clock->offset, &clock->flag) == 0)
		return 0;
	return error_set(error, -rte_errno,
			 "frames have no room for an arrival time: %s; is another user of "
			 "DPDK in this process taking all of it?",
			 rte_strerror(rte_errno));
}

int rx_clock_register_file(struct rx_clock *clock, struct gdrcap_error *error)
{
	memset(clock, 0, sizeof(*clock));
	clock->port = RX_CLOCK_FILE;
	return field_register(clock, error);
}

int rx_clock_register(struct rx_clock *clock, uint16_t port, struct gdrcap_error *error)
{
	struct rte_eth_dev_info info;

	memset(clock, 0, sizeof(*clock));
	clock->port = port;
	if (rte_eth_dev_info_get(port, &info) < 0 ||
	    !(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP))
		return error_set(
			error, -ENOTSUP,
			"port %u does not tell when frames came; --clock cpu needs no card", port);
	return field_register(clock, error);
}

static int read_failed(const struct rx_clock *clock, int code, struct gdrcap_error *error)
{
	return error_set(error, code,
			 "the clock of port %u cannot be read: %s; --clock cpu needs no card",
			 clock->port, rte_strerror(-code));
}

/* `why`: of the RDMA device. */
static int refused(const struct rx_clock *clock, const char *why, struct gdrcap_error *error)
{
	return error_set(error, -ENOTSUP,
			 "frames of port %u have times, but its driver does not let us read that "
			 "clock, and its RDMA device %s; give --clock cpu, which needs no card",
			 clock->port, why);
}

static int pair_read_verbs(struct rx_clock *clock, struct pair *pair, struct gdrcap_error *error)
{
	int ret = rx_clock_verbs_open(&clock->verbs, clock->port);
	char why[128];

	if (ret < 0) {
		snprintf(why, sizeof(why), "cannot be opened: %s", rte_strerror(-ret));
		return refused(clock, ret == -ENODEV ? "was not found" : why, error);
	}
	ret = pair_read(clock, pair);
	if (ret == -ENOTSUP)
		return refused(clock, "does not either", error);
	return ret < 0 ? read_failed(clock, ret, error) : 0;
}

/* The line goes on through `ns` at `ticks`. */
static void line_through(struct rx_clock *clock, uint64_t ticks, uint64_t ns, double ns_a_tick)
{
	clock->ticks = ticks;
	clock->ns = ns;
	clock->slope = (int64_t)(ns_a_tick * SLOPE_ONE);
}

static uint64_t line_at(const struct rx_clock *clock, uint64_t ticks)
{
	const __int128 away = (int64_t)(ticks - clock->ticks);

	return clock->ns + (uint64_t)(int64_t)(away * clock->slope >> SLOPE_BITS);
}

static void real_time_open(struct rx_clock *clock, const struct pair *now)
{
	const uint64_t off = distance(now->ticks, now->ns);

	clock->real_time = true;
	if (off > ASTRAY_NS)
		log_warning("the real-time clock of port %u is %llu.%03llu s %s the system's, and "
			    "so will be the frames' times; set it (phc2sys), or give --clock cpu",
			    clock->port, (unsigned long long)(off / NS),
			    (unsigned long long)(off % NS / 1000000),
			    now->ticks > now->ns ? "ahead of" : "behind");
}

static int rate_measure(struct rx_clock *clock, const struct pair *first,
			struct gdrcap_error *error)
{
	struct timespec pause = { .tv_nsec = MEASURE_MS * 1000000 };
	struct pair now;
	int ret;

	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;
	ret = pair_read(clock, &now);
	if (ret < 0)
		return read_failed(clock, ret, error);
	clock->span = (double)(int64_t)(now.ns - first->ns);
	clock->ns_a_tick = clock->span / (double)(int64_t)(now.ticks - first->ticks);
	/* The ticks may be none, then this is no number. */
	if (!(clock->ns_a_tick > 0 && clock->ns_a_tick < SLOPE_MAX))
		return error_set(error, -EIO,
				 "the clock of port %u stands still; --clock cpu needs no card",
				 clock->port);
	clock->measured = now.ns;
	line_through(clock, now.ticks, now.ns, clock->ns_a_tick);
	return 0;
}

int rx_clock_open(struct rx_clock *clock, struct gdrcap_error *error)
{
	struct pair first;
	int ret;

	clock->real_time = clock->port == RX_CLOCK_FILE;
	clock->verbs = NULL;
	if (clock->real_time)
		return 0;
	clock->epoch = epoch_read();
	clock->renewed = rte_rdtsc();
	ret = pair_read(clock, &first);
	if (ret == -ENOTSUP)
		ret = pair_read_verbs(clock, &first, error);
	else if (ret < 0)
		ret = read_failed(clock, ret, error);
	if (ret < 0)
		goto err;
	clock->measured = first.ns;
	line_through(clock, first.ticks, first.ns, 1);
	if (clock->port != RX_CLOCK_CPU && distance(first.ticks, first.ns) < DAY_NS) {
		real_time_open(clock, &first);
		return 0;
	}
	ret = rate_measure(clock, &first, error);
	if (ret == 0)
		return 0;
err:
	rx_clock_close(clock);
	return ret;
}

void rx_clock_close(struct rx_clock *clock)
{
	if (clock->verbs)
		rx_clock_verbs_close(clock->verbs);
	clock->verbs = NULL;
}

/* Bends the line towards what was measured. */
static void learn(struct rx_clock *clock, const struct pair *now)
{
	const uint64_t expected = line_at(clock, now->ticks);
	const double ticks = (double)(int64_t)(now->ticks - clock->ticks);
	const double ns = (double)(int64_t)(now->ns - clock->measured);
	const double off = (double)(int64_t)(now->ns - expected);

	if (distance(now->ns, expected) > STEP_NS + now->took) {
		/* Not the rate: that stays. */
		clock->measured = now->ns;
		line_through(clock, now->ticks, now->ns, clock->ns_a_tick);
		return;
	}
	if (ticks <= 0 || ns <= 0 || (double)now->took * WITHIN > ns)
		return;
	clock->span = RTE_MIN(clock->span + ns, RTE_MAX(SPAN_NS, ns));
	clock->ns_a_tick += (ns / ticks - clock->ns_a_tick) * ns / clock->span;
	clock->measured = now->ns;
	line_through(clock, now->ticks, expected, clock->ns_a_tick + off / ticks / BENDS);
}

void rx_clock_renew(struct rx_clock *clock)
{
	const uint64_t now = rte_rdtsc();
	struct pair pair;

	if (clock->real_time || now - clock->renewed < rte_get_tsc_hz())
		return;
	clock->renewed = now;
	if (pair_read(clock, &pair) == 0)
		learn(clock, &pair);
}

uint64_t rx_clock_ns(const struct rx_clock *clock, uint64_t ticks)
{
	if (ticks == 0 || clock->real_time ||
	    (clock->port != RX_CLOCK_CPU && distance(ticks, clock->ns) < DAY_NS))
		return ticks;
	return line_at(clock, ticks);
}
