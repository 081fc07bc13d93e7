/* SPDX-License-Identifier: BSD-3-Clause */
/* One of our rules as patterns of rte_flow. */
#ifndef GDRCAP_STEERING_PATTERN_H
#define GDRCAP_STEERING_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_flow.h>

#include "port/steering.h"

#define STEERING_ITEMS_MAX 6u /* eth, vlan, vlan, ip, udp, end */

/* One pattern, with all that it points to: not to be copied. */
struct steering_pattern {
	struct rte_flow_item item[STEERING_ITEMS_MAX];
	uint32_t items; /* without the end */
	uint8_t tags;	/* VLAN tags that its frames have */
	bool needed;	/* the rule means nothing without it */
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan[2], vlan_mask[2];
	struct rte_flow_item_ipv4 ip4, ip4_mask;
	struct rte_flow_item_ipv6 ip6, ip6_mask;
	struct rte_flow_item_udp udp, udp_mask;
};

/* The patterns that together mean `rule`. How many; 0: no frame can agree with it. */
uint32_t steering_patterns(const struct frame_match_rule *rule,
			   struct steering_pattern pattern[STEERING_PARTS_MAX]);

/* False: its frames are certainly not IP, so a card has nothing to spread them by. */
bool steering_may_be_ip(const struct frame_match_rule *rule);

#endif
