/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the staged first frame. In its order: prove.c (until it is sent), prove_arrival.c
 * (until its completion), prove_bytes.c (its bytes, and the consumer's word on them). */
#ifndef GDRCAP_PROVE_INTERNAL_H
#define GDRCAP_PROVE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "selftest/prove_causes.h"
#include "session/session.h"

#define PROOF_BYTES 74u /* Ethernet 14, IPv4 20, UDP 8, payload 32; without FCS */
#define PROVE_ARRIVE_MS 1000u

struct rte_mbuf;

struct prove {
	struct gdrcap_session *session;
	void (*report)(void *context, const struct gdrcap_stage *stage);
	void *context;
	struct gdrcap_error *error;
	struct frame_layout layout; /* the proof of concept's */
	struct pattern_plan pattern;
	uint8_t frame[PROOF_BYTES]; /* as it must arrive */
	bool own_rule; /* the receiving card has the first frame's rule in place of the session's */
	struct port_counters rx_before, tx_before;
	struct xstats_values wire_before; /* of the receiving port */
	struct rte_mbuf *received;
	uint32_t queue; /* where it came */
};

/* A piece of the received frame. */
struct prove_part {
	const struct region *region; /* where it must lie */
	uint8_t *at;		     /* in it */
	uint32_t len;		     /* 0: there is no such piece */
};

/* Its beginning, where frames are split, and its rest; else parts[0] is empty. */
void prove_parts(const struct prove *prove, struct prove_part parts[2]);

/* Report a stage's outcome; failed() is negative. */
int prove_passed(struct prove *prove, enum prove_stage stage, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int prove_failed(struct prove *prove, enum prove_stage stage, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The card's rules: only the first frame's while it is on its way. */
int prove_rules(struct prove *prove);
int prove_rules_end(struct prove *prove, int ret);
/* True when it has come. */
bool prove_look(struct prove *prove);
int prove_steered(struct prove *prove);
int prove_completed(struct prove *prove);
int prove_bytes(struct prove *prove);
int prove_consumer(struct prove *prove);

/* A pause; false when so much time has passed in which we could look. */
static inline bool prove_within(struct patience *patience, uint32_t ms)
{
	const struct timespec tick = { .tv_nsec = 100000 };

	nanosleep(&tick, NULL);
	return !patience_ends(patience, ms, NULL, NULL);
}

/* Where a region's byte at `at` is for the device. */
static inline uint8_t *prove_for_device(const struct region *region, const void *at)
{
	return region->device + ((const uint8_t *)at - region->base);
}

#endif
