/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames are meant: rules on Ethernet, VLAN, IP and UDP headers. One definition: a card's
 * rte_flow rules are made from it, and on ports without such rules the checker applies it, so that
 * no CPU on the frame path reads a frame. Compiles as C and CUDA.
 */
#ifndef GDRCAP_FRAME_MATCH_H
#define GDRCAP_FRAME_MATCH_H

#include <stdbool.h>

#include "pattern/pattern.h"

#define FRAME_MATCH_RULES 8u

/* Which fields a rule compares. */
enum frame_match_field {
	FRAME_MATCH_SRC_MAC = 1u << 0,
	FRAME_MATCH_DST_MAC = 1u << 1,
	FRAME_MATCH_ETHERTYPE = 1u << 2, /* after the tags, if there are any */
	FRAME_MATCH_VLAN = 1u << 3, /* id of the outermost 802.1Q or 802.1ad tag; 0: untagged */
	FRAME_MATCH_SRC_IP = 1u << 4,
	FRAME_MATCH_DST_IP = 1u << 5,
	FRAME_MATCH_SRC_PORT = 1u << 6, /* UDP, first fragments only */
	FRAME_MATCH_DST_PORT = 1u << 7,
};

/* All named fields must agree. Numbers in host order, addresses as on the wire. */
struct frame_match_rule {
	uint32_t fields; /* enum frame_match_field; 0: every frame */
	uint16_t ethertype, vlan, src_port, dst_port;
	uint8_t src_mac[6], dst_mac[6];
	uint8_t ip_version;		/* 4 or 6, of the addresses; 0 without any */
	uint8_t src_prefix, dst_prefix; /* bits compared: 1..32 or 1..128 */
	uint8_t reserved;
	uint8_t src_ip[16], dst_ip[16]; /* IPv4: the first four bytes */
};

/* A frame is meant when a rule says so, or when there is none. */
struct frame_match {
	uint32_t count;
	struct frame_match_rule rule[FRAME_MATCH_RULES];
};

/* Headers that are read: Ethernet, two tags, IPv4 with options, UDP ports. */
#define FRAME_MATCH_BYTES (14u + 8u + 60u + 4u)

/* 1 when the frame is meant. Reads only frame[0 .. min(len, FRAME_MATCH_BYTES)). */
GDRCAP_HD int frame_matches(const struct frame_match *match, const uint8_t *frame, uint32_t len);

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads a rule: "FIELD=VALUE,...", the fields being src_mac, dst_mac, ethertype, vlan, src_ip,
 * dst_ip (IPv4 or IPv6, "/PREFIX" may follow), src_port, dst_port, each at most once; as in
 * "vlan=5,dst_ip=192.0.2.0/24,dst_port=4000". Both addresses are of one version. 0, or -EINVAL with
 * what is wrong ("is ...", no full stop) in `why`.
 */
int frame_match_parse(struct frame_match_rule *rule, const char *text, char *why, size_t why_bytes);

/* Can one frame agree with both? `a_udp`: it is a UDP datagram besides. */
bool frame_match_meets(const struct frame_match_rule *a, bool a_udp,
		       const struct frame_match_rule *b, bool b_udp);

#ifdef __cplusplus
}
#endif

#include "pattern/frame_match_check.h" /* the definition of frame_matches(), for C and CUDA */

#endif
