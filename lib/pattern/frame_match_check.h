/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definition of frame_matches(). Included by frame_match.h; compiles as C (gnu17) and as CUDA
 * C++17. Frames are hostile: a field that is not there, or not whole, is not equal to anything.
 */
#ifndef GDRCAP_FRAME_MATCH_CHECK_H
#define GDRCAP_FRAME_MATCH_CHECK_H

#include "pattern/frame_bytes.h"

/* What a frame has of the fields that rules compare. */
struct frame_match_keys {
	uint32_t fields;	 /* enum frame_match_field: those that the frame has */
	uint32_t ip_version;	 /* 4, 6; 0: neither */
	uint32_t src_ip, dst_ip; /* offsets in the frame */
	uint32_t ethertype, vlan, src_port, dst_port;
};

/* UDP ports at `at`. */
GDRCAP_HD void frame_match_ports(struct frame_match_keys *keys, const uint8_t *frame, uint32_t len,
				 uint32_t at)
{
	if (len < at + 4)
		return;
	keys->src_port = frame_be16(frame + at);
	keys->dst_port = frame_be16(frame + at + 2);
	keys->fields |= FRAME_MATCH_SRC_PORT | FRAME_MATCH_DST_PORT;
}

/* Addresses and ports of an IP header at `at`. */
GDRCAP_HD void frame_match_ip(struct frame_match_keys *keys, const uint8_t *frame, uint32_t len,
			      uint32_t at)
{
	const uint8_t *ip = frame + at;
	uint32_t header;

	if (keys->ethertype == 0x0800 && len >= at + 20 && ip[0] >= 0x45 && ip[0] <= 0x4f) {
		header = 4u * (ip[0] & 15);
		keys->ip_version = 4;
		keys->src_ip = at + 12;
		keys->dst_ip = at + 16;
		/* only a datagram's first fragment has its UDP header */
		if (ip[9] == 17 && !(frame_be16(ip + 6) & 0x1fff))
			frame_match_ports(keys, frame, len, at + header);
	} else if (keys->ethertype == 0x86dd && len >= at + 40 && ip[0] >> 4 == 6) {
		keys->ip_version = 6;
		keys->src_ip = at + 8;
		keys->dst_ip = at + 24;
		if (ip[6] == 17)
			frame_match_ports(keys, frame, len, at + 40);
	}
	if (keys->ip_version)
		keys->fields |= FRAME_MATCH_SRC_IP | FRAME_MATCH_DST_IP;
}

GDRCAP_HD void frame_match_read(struct frame_match_keys *keys, const uint8_t *frame, uint32_t len)
{
	uint32_t at = 12, type;

	keys->fields = 0;
	keys->ip_version = 0;
	keys->src_ip = 0;
	keys->dst_ip = 0;
	keys->ethertype = 0;
	keys->vlan = 0;
	keys->src_port = 0;
	keys->dst_port = 0;
	if (len < 14)
		return;
	keys->fields = FRAME_MATCH_SRC_MAC | FRAME_MATCH_DST_MAC;
	type = frame_be16(frame + 12);
	for (uint32_t tags = 0; tags < 2 && (type == 0x8100 || type == 0x88a8); tags++) {
		if (len < at + 6)
			return; /* ends inside a tag */
		if (!tags)
			keys->vlan = frame_be16(frame + at + 2) & 0x0fff;
		at += 4;
		type = frame_be16(frame + at);
	}
	keys->ethertype = type;
	keys->fields |= FRAME_MATCH_VLAN | FRAME_MATCH_ETHERTYPE;
	frame_match_ip(keys, frame, len, at + 2);
}

/* 1: the first `bits` bits are equal. */
GDRCAP_HD int frame_match_bits(const uint8_t *a, const uint8_t *b, uint32_t bits)
{
	uint32_t wrong = 0, i;

	for (i = 0; i < bits / 8; i++)
		wrong |= (uint32_t)(a[i] ^ b[i]);
	if (bits % 8)
		wrong |= (uint32_t)(a[i] ^ b[i]) >> (8 - bits % 8);
	return !wrong;
}

GDRCAP_HD int frame_match_address(const struct frame_match_keys *keys, const uint8_t *frame,
				  uint32_t at, const uint8_t *address, uint32_t prefix)
{
	const uint32_t whole = keys->ip_version == 4 ? 32 : 128;

	return frame_match_bits(frame + at, address, prefix < whole ? prefix : whole);
}

GDRCAP_HD int frame_match_rule_agrees(const struct frame_match_rule *rule,
				      const struct frame_match_keys *keys, const uint8_t *frame)
{
	const uint32_t fields = rule->fields;

	if (fields & ~keys->fields)
		return 0;
	if ((fields & FRAME_MATCH_ETHERTYPE) && rule->ethertype != keys->ethertype)
		return 0;
	if ((fields & FRAME_MATCH_VLAN) && rule->vlan != keys->vlan)
		return 0;
	if ((fields & FRAME_MATCH_SRC_PORT) && rule->src_port != keys->src_port)
		return 0;
	if ((fields & FRAME_MATCH_DST_PORT) && rule->dst_port != keys->dst_port)
		return 0;
	if ((fields & FRAME_MATCH_DST_MAC) && !frame_match_bits(frame, rule->dst_mac, 48))
		return 0;
	if ((fields & FRAME_MATCH_SRC_MAC) && !frame_match_bits(frame + 6, rule->src_mac, 48))
		return 0;
	if ((fields & (FRAME_MATCH_SRC_IP | FRAME_MATCH_DST_IP)) &&
	    rule->ip_version != keys->ip_version)
		return 0;
	if ((fields & FRAME_MATCH_SRC_IP) &&
	    !frame_match_address(keys, frame, keys->src_ip, rule->src_ip, rule->src_prefix))
		return 0;
	return !(fields & FRAME_MATCH_DST_IP) ||
	       frame_match_address(keys, frame, keys->dst_ip, rule->dst_ip, rule->dst_prefix);
}

GDRCAP_HD int frame_matches(const struct frame_match *match, const uint8_t *frame, uint32_t len)
{
	const uint32_t count = match->count < FRAME_MATCH_RULES ? match->count : FRAME_MATCH_RULES;
	struct frame_match_keys keys;

	if (!count)
		return 1;
	frame_match_read(&keys, frame, len);
	for (uint32_t r = 0; r < count; r++)
		if (frame_match_rule_agrees(&match->rule[r], &keys, frame))
			return 1;
	return 0;
}

#endif
