/* SPDX-License-Identifier: BSD-3-Clause */
/* A rule of ours as rte_flow items. */
#include "port/steering_pattern.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#define FIELDS_IP (FRAME_MATCH_SRC_IP | FRAME_MATCH_DST_IP)
#define FIELDS_PORT (FRAME_MATCH_SRC_PORT | FRAME_MATCH_DST_PORT)
#define FIELDS_BEHIND_TAGS (FRAME_MATCH_ETHERTYPE | FIELDS_IP | FIELDS_PORT)

/* Appends an item; NULL: nothing of that header is compared. */
static void item_add(struct steering_pattern *pattern, enum rte_flow_item_type type,
		     const void *spec, const void *mask)
{
	pattern->item[pattern->items].type = type;
	pattern->item[pattern->items].spec = spec;
	pattern->item[pattern->items].mask = mask;
	pattern->items++;
}

/* `type`: EtherType compared in this header, 0: none. */
static void eth_add(struct steering_pattern *pattern, const struct frame_match_rule *rule,
		    uint16_t type, bool untagged)
{
	struct rte_flow_item_eth *spec = &pattern->eth, *mask = &pattern->eth_mask;
	bool compared = type || untagged;

	if (rule->fields & FRAME_MATCH_DST_MAC) {
		memcpy(spec->hdr.dst_addr.addr_bytes, rule->dst_mac, RTE_ETHER_ADDR_LEN);
		memset(mask->hdr.dst_addr.addr_bytes, 0xff, RTE_ETHER_ADDR_LEN);
		compared = true;
	}
	if (rule->fields & FRAME_MATCH_SRC_MAC) {
		memcpy(spec->hdr.src_addr.addr_bytes, rule->src_mac, RTE_ETHER_ADDR_LEN);
		memset(mask->hdr.src_addr.addr_bytes, 0xff, RTE_ETHER_ADDR_LEN);
		compared = true;
	}
	if (type) {
		spec->hdr.ether_type = rte_cpu_to_be_16(type);
		mask->hdr.ether_type = RTE_BE16(0xffff);
	}
	mask->has_vlan = untagged;
	item_add(pattern, RTE_FLOW_ITEM_TYPE_ETH, compared ? spec : NULL, compared ? mask : NULL);
}

/* Tag `n` from outside. Spec and mask are given even when empty: without a mask the default one
 * would compare the id. */
static void vlan_add(struct steering_pattern *pattern, uint32_t n,
		     const struct frame_match_rule *rule, uint16_t type, bool more)
{
	struct rte_flow_item_vlan *spec = &pattern->vlan[n], *mask = &pattern->vlan_mask[n];

	if (n == 0 && (rule->fields & FRAME_MATCH_VLAN)) {
		spec->hdr.vlan_tci = rte_cpu_to_be_16(rule->vlan);
		mask->hdr.vlan_tci = RTE_BE16(0x0fff);
	}
	if (type) {
		spec->hdr.eth_proto = rte_cpu_to_be_16(type);
		mask->hdr.eth_proto = RTE_BE16(0xffff);
	}
	spec->has_more_vlan = more;
	mask->has_more_vlan = more;
	item_add(pattern, RTE_FLOW_ITEM_TYPE_VLAN, spec, mask);
}

/* First `bits` bits of both. */
static void prefix_set(void *spec, void *mask, const uint8_t *address, uint32_t bits,
		       uint32_t bytes)
{
	uint8_t *s = spec, *m = mask;

	for (uint32_t i = 0; i < bytes; i++) {
		const uint32_t left = bits > 8 * i ? bits - 8 * i : 0;

		m[i] = left >= 8 ? 0xff : (uint8_t)(0xff00u >> left);
		s[i] = address[i] & m[i];
	}
}

static void ip_add(struct steering_pattern *pattern, const struct frame_match_rule *rule,
		   uint32_t version)
{
	const bool addresses = rule->fields & FIELDS_IP;

	if (version == 4) {
		if (rule->fields & FRAME_MATCH_SRC_IP)
			prefix_set(&pattern->ip4.hdr.src_addr, &pattern->ip4_mask.hdr.src_addr,
				   rule->src_ip, rule->src_prefix, 4);
		if (rule->fields & FRAME_MATCH_DST_IP)
			prefix_set(&pattern->ip4.hdr.dst_addr, &pattern->ip4_mask.hdr.dst_addr,
				   rule->dst_ip, rule->dst_prefix, 4);
		item_add(pattern, RTE_FLOW_ITEM_TYPE_IPV4, addresses ? &pattern->ip4 : NULL,
			 addresses ? &pattern->ip4_mask : NULL);
	} else {
		if (rule->fields & FRAME_MATCH_SRC_IP)
			prefix_set(&pattern->ip6.hdr.src_addr, &pattern->ip6_mask.hdr.src_addr,
				   rule->src_ip, rule->src_prefix, 16);
		if (rule->fields & FRAME_MATCH_DST_IP)
			prefix_set(&pattern->ip6.hdr.dst_addr, &pattern->ip6_mask.hdr.dst_addr,
				   rule->dst_ip, rule->dst_prefix, 16);
		item_add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, addresses ? &pattern->ip6 : NULL,
			 addresses ? &pattern->ip6_mask : NULL);
	}
}

static void udp_add(struct steering_pattern *pattern, const struct frame_match_rule *rule)
{
	if (rule->fields & FRAME_MATCH_SRC_PORT) {
		pattern->udp.hdr.src_port = rte_cpu_to_be_16(rule->src_port);
		pattern->udp_mask.hdr.src_port = RTE_BE16(0xffff);
	}
	if (rule->fields & FRAME_MATCH_DST_PORT) {
		pattern->udp.hdr.dst_port = rte_cpu_to_be_16(rule->dst_port);
		pattern->udp_mask.hdr.dst_port = RTE_BE16(0xffff);
	}
	item_add(pattern, RTE_FLOW_ITEM_TYPE_UDP, &pattern->udp, &pattern->udp_mask);
}

/*
 * Frames of `rule` with this many tags and this IP version (0: not compared). In rte_flow a header's
 * type names what follows it, so the EtherType behind the tags belongs to the last tag. Of two tags
 * the mlx5 driver takes one item, which says that more follow; only where the EtherType behind them
 * is compared both are needed.
 */
static void pattern_make(struct steering_pattern *pattern, const struct frame_match_rule *rule,
			 uint32_t tags, uint32_t version)
{
	const bool named = rule->fields & FRAME_MATCH_VLAN;
	const uint16_t type =
		(rule->fields & FRAME_MATCH_ETHERTYPE) && !version ? rule->ethertype : 0;

	memset(pattern, 0, sizeof(*pattern));
	pattern->tags = (uint8_t)tags;
	eth_add(pattern, rule, tags ? 0 : type, !tags && named);
	if (tags)
		vlan_add(pattern, 0, rule, tags == 1 ? type : 0, tags == 2);
	if (tags == 2 && type)
		vlan_add(pattern, 1, rule, type, false);
	if (version)
		ip_add(pattern, rule, version);
	if (rule->fields & FIELDS_PORT)
		udp_add(pattern, rule);
	pattern->item[pattern->items].type = RTE_FLOW_ITEM_TYPE_END;
}

/* Bit v: IP version v may be that of its frames; bit 0: the version is not compared. 0: none can.
 */
static uint32_t rule_versions(const struct frame_match_rule *rule)
{
	uint32_t versions = 1u << 4 | 1u << 6;

	if (rule->fields & FIELDS_IP)
		versions &=
			rule->ip_version == 4 || rule->ip_version == 6 ? 1u << rule->ip_version : 0;
	if (rule->fields & FRAME_MATCH_ETHERTYPE) {
		if (rule->ethertype == RTE_ETHER_TYPE_IPV4)
			return versions & 1u << 4;
		if (rule->ethertype == RTE_ETHER_TYPE_IPV6)
			return versions & 1u << 6;
		return rule->fields & (FIELDS_IP | FIELDS_PORT) ? 0 : 1u;
	}
	return rule->fields & (FIELDS_IP | FIELDS_PORT) ? versions : 1u;
}

bool steering_may_be_ip(const struct frame_match_rule *rule)
{
	return !(rule->fields & FRAME_MATCH_ETHERTYPE) || rule->ethertype == RTE_ETHER_TYPE_IPV4 ||
	       rule->ethertype == RTE_ETHER_TYPE_IPV6;
}

uint32_t steering_patterns(const struct frame_match_rule *rule,
			   struct steering_pattern pattern[STEERING_PARTS_MAX])
{
	const bool named = rule->fields & FRAME_MATCH_VLAN;
	/* Nothing behind the tags is compared: they need not be looked for. */
	const uint32_t most = named || (rule->fields & FIELDS_BEHIND_TAGS) ? 2 : 0;
	const uint32_t least = named && rule->vlan ? 1 : 0;
	const uint32_t versions = rule_versions(rule);
	uint32_t count = 0;

	for (uint32_t tags = least; tags <= most; tags++)
		for (uint32_t version = 0; version <= 6; version++) {
			if (!(versions & 1u << version))
				continue;
			pattern_make(&pattern[count], rule, tags, version);
			pattern[count++].needed = tags == least;
		}
	return count;
}
