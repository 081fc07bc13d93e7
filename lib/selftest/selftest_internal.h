/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the self-test. In its order: selftest.c (until it is sent), selftest_arrival.c
 * (until its completion), selftest_bytes.c (its bytes, and the consumer's word on them). */
#ifndef GDRCAP_SELFTEST_INTERNAL_H
#define GDRCAP_SELFTEST_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_mbuf_core.h>

#include "selftest/selftest_causes.h"
#include "session/session.h"

#define SELFTEST_BYTES 74u /* Ethernet 14, IPv4 20, UDP 8, payload 32; without FCS */
#define SELFTEST_ARRIVE_MS 1000u

struct selftest {
	struct gdrcap_session *session;
	void (*report)(void *context, const struct gdrcap_step *step);
	void *context;
	struct gdrcap_error *error;
	struct frame_layout layout; /* the proof of concept's */
	struct pattern pattern;
	uint8_t frame[SELFTEST_BYTES]; /* as it must arrive */
	bool own_rule; /* the receiving card has the first frame's rule in place of the session's */
	struct port_counters rx_before, tx_before;
	struct xstats_values wire_before; /* of the receiving port */
	struct rte_mbuf *received;
	struct rte_mbuf stand_in; /* for a frame in a queue of our own, where there are no mbufs */
	uint32_t queue;		  /* where it came */
};

/* A piece of the received frame. */
struct selftest_part {
	const struct region *region; /* where it must lie */
	uint8_t *at;		     /* in it */
	uint32_t len;		     /* 0: there is no such piece */
};

/* Its beginning, where frames are split, and its rest; else parts[0] is empty. */
void selftest_parts(const struct selftest *selftest, struct selftest_part parts[2]);

/* Report a step's outcome; failed() is negative. */
int selftest_passed(struct selftest *selftest, enum selftest_step step, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int selftest_failed(struct selftest *selftest, enum selftest_step step, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The card's rules: only the first frame's while it is on its way. */
int selftest_rules(struct selftest *selftest);
int selftest_rules_end(struct selftest *selftest, int ret);
/* True when it has come. */
bool selftest_look(struct selftest *selftest);
int selftest_steered(struct selftest *selftest);
int selftest_completed(struct selftest *selftest);
int selftest_bytes(struct selftest *selftest);
int selftest_consumer(struct selftest *selftest);

/* A pause; false when so much time has passed in which we could look. */
static inline bool selftest_within(struct patience *patience, uint32_t ms)
{
	const struct timespec tick = { .tv_nsec = 100000 };

	nanosleep(&tick, NULL);
	return !patience_ends(patience, ms, NULL, NULL);
}

/* Where a region's byte at `at` is for the device. */
static inline uint8_t *selftest_for_device(const struct region *region, const void *at)
{
	return region->device + ((const uint8_t *)at - region->base);
}

#endif
