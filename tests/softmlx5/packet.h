/* SPDX-License-Identifier: BSD-3-Clause */
/* What the card's parser finds in a frame. */
#ifndef SOFT_PACKET_H
#define SOFT_PACKET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where the fields of the outer headers stand, in bytes, in the 64 bytes that rules are matched
 * against: the layout of the device's flow table entries, layers 2 to 4. Multi-byte fields are
 * big-endian.
 */
#define FIELDS_SIZE 64
#define FIELD_SMAC 0
#define FIELD_ETHERTYPE 6 /* behind the VLAN tags */
#define FIELD_DMAC 8
#define FIELD_TCI 14
#define FIELD_IP_PROTOCOL 16
#define FIELD_TOS 17
#define FIELD_FLAGS 18 /* see below */
#define FIELD_TCP_FLAGS 19
#define FIELD_TCP_SPORT 20
#define FIELD_TCP_DPORT 22
#define FIELD_CHECKS 26
#define FIELD_TTL 27
#define FIELD_UDP_SPORT 28
#define FIELD_UDP_DPORT 30
#define FIELD_SRC_IP 32 /* IPv4: the last four bytes of the sixteen */
#define FIELD_DST_IP 48

#define FLAGS_CVLAN 0x80
#define FLAGS_SVLAN 0x40
#define FLAGS_FRAGMENT 0x20
#define FLAGS_IP_VERSION_SHIFT 1

#define CHECKS_L3_OK 0x08
#define CHECKS_L4_OK 0x04
#define CHECKS_IPV4_SUM 0x02
#define CHECKS_L4_SUM 0x01

enum l3_type {
	L3_NONE,
	L3_IPV6,
	L3_IPV4,
};

enum l4_type {
	L4_NONE,
	L4_TCP,
	L4_UDP,
	L4_TCP_ACK_ONLY,
	L4_TCP_ACK,
};

struct packet {
	uint8_t *data;
	uint32_t length;
	uint8_t fields[FIELDS_SIZE] __attribute__((aligned(8)));
	uint32_t l3;  /* offset of the IP header */
	uint32_t l4;  /* of the TCP or UDP header */
	uint32_t end; /* of the IP packet: padding follows */
	uint8_t l3_type;
	uint8_t l4_type;
	bool fragment;
	bool l3_ok; /* header complete, checksum right */
	bool l4_ok;
	bool tagged; /* a C-VLAN tag right behind the addresses */
	uint16_t tci;
};

void packet_parse(struct packet *packet, uint8_t *data, uint32_t length);

/* Removes the outer tag. */
void packet_strip_vlan(struct packet *packet);

/* Puts in the checksums that a send WQE asks for. */
void packet_fill_checksums(uint8_t *data, uint32_t length, bool l3, bool l4);

#endif
