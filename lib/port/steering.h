/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames a card puts into our queues: the rules of struct frame_match as rte_flow rules. All
 * other frames stay with the kernel. A port whose driver has no such rules says so, and the checker
 * applies the rules instead. Control code.
 *
 * Order: steering_isolate(), configure, start, steering_create(), ..., steering_destroy(), stop,
 * steering_release().
 */
#ifndef GDRCAP_STEERING_H
#define GDRCAP_STEERING_H

#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"
#include "pattern/frame_match.h"

struct rte_flow;

/* A rule of ours is several of the card's: a rule that does not name a VLAN means untagged, tagged
 * and doubly tagged frames, one that names UDP ports alone means IPv4 and IPv6. */
#define STEERING_PARTS_MAX 6u
#define STEERING_RULES_MAX FRAME_MATCH_RULES

/* The mark that frames of rule `rule` (from 0) carry: a mark of 0 looks like none. */
#define STEERING_MARK(rule) ((rule) + 1u)

struct steering_config {
	uint16_t port;	  /* ethdev port id */
	const char *name; /* of the port, for error texts */
	/* first_queue .. first_queue + queues - 1 are ours; OWN_RX_FLOW_QUEUE(0): own_rx.h */
	uint16_t first_queue, queues;
	const struct frame_match *match; /* count 0: every frame, as rule 0 */
	/* Each rule as the user wrote it, for error texts; may be NULL. */
	const char *const *text;
	/* Of the hash that spreads frames over queues; NULL: the driver's own. */
	const uint8_t *rss_key;
	uint32_t rss_key_bytes;
};

struct steering_rule {
	bool marked;  /* its frames carry STEERING_MARK() */
	bool counted; /* the card counts its frames */
	bool spread;  /* over all queues: the frames' IP addresses and UDP ports decide. A card has
		       * nothing to spread other frames by: all go to queue (rule % queues) */
	uint8_t tags_most; /* VLAN tags, up to 2, that a frame may have and still be steered */
	uint8_t parts;
	struct rte_flow *flow[STEERING_PARTS_MAX];
};

struct steering {
	uint16_t port;
	uint32_t rules; /* 0: nothing is steered */
	struct steering_rule rule[STEERING_RULES_MAX];
};

struct steering_hits {
	bool known; /* false: the card does not count, or did not answer */
	uint64_t frames;
	uint64_t bytes; /* 0 where the driver counts frames only */
};

/*
 * Before the port is configured: asks the driver for isolated mode, in which the port receives only
 * what rules say. 1: the port is isolated and wants rules; 0: its driver has no rules, nothing was
 * changed; a negative errno: it has them, and refuses (the port runs already). For ports that do
 * DMA: net_tap says yes as well, for rules that the kernel's traffic control applies, and receives
 * everything nonetheless.
 */
int steering_isolate(uint16_t port, const char *name, struct gdrcap_error *error);

/*
 * After an isolated port was started. All rules are validated before the first is made; a rule that
 * the card refuses is told with the card's own words, and none stays. Marking and counting are
 * given up where the card has them not, and matching of tagged frames where the rule does not name
 * a VLAN: see struct steering_rule.
 *
 * What a card matches otherwise than frame_matches() does: the tag of a VLAN rule is 802.1Q; UDP
 * ports of a fragmented datagram are not seen, not even in its first fragment.
 */
int steering_create(struct steering *steering, const struct steering_config *config,
		    struct gdrcap_error *error);

/* Hits since steering_create(). The mlx5 driver reads its card's counters once a second: look a
 * second after the last frame. */
void steering_query(const struct steering *steering, struct steering_hits hits[STEERING_RULES_MAX]);

/* Before the port is stopped: a stop takes the rules away by itself. */
void steering_destroy(struct steering *steering);

/* After an isolated port was stopped, where it goes on to be somebody's: undoes the isolation. */
void steering_release(uint16_t port);

#endif
