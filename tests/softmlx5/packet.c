/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet.h"

#include <string.h>

#define ETHER_HEADER 14
#define VLAN_HEADER 4
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define TCP_HEADER 20
#define UDP_HEADER 8
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_CVLAN 0x8100
#define ETHERTYPE_SVLAN 0x88a8
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define TCP_ACK 0x10

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t sum(const uint8_t *data, uint32_t length, uint32_t start)
{
	for (; length > 1; length -= 2, data += 2)
		start += be16(data);
	if (length == 1)
		start += (uint32_t)(data[0] << 8);
	return start;
}

static uint16_t fold(uint32_t value)
{
	while (value >> 16)
		value = (value & 0xffff) + (value >> 16);
	return (uint16_t)value;
}

/* Sum over the pseudo header and the L4 header with its payload: 0xffff where the checksum is
 * right. */
static uint16_t l4_sum(const struct packet *packet, uint8_t protocol)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint32_t length = packet->end - packet->l4;
	uint32_t start = protocol + length;

	start = packet->l3_type == L3_IPV4 ? sum(ip + 12, 8, start) : sum(ip + 8, 32, start);
	return fold(sum(packet->data + packet->l4, length, start));
}

static void parse_l4(struct packet *packet, uint8_t protocol)
{
	uint8_t *l4 = packet->data + packet->l4;
	uint32_t length = packet->end - packet->l4, header;

	if (packet->fragment)
		return;
	if (protocol == PROTOCOL_TCP && length >= TCP_HEADER) {
		header = (uint32_t)(l4[12] >> 4) * 4;
		packet->l4_type = L4_TCP;
		if (l4[13] & TCP_ACK)
			packet->l4_type = header == length ? L4_TCP_ACK_ONLY : L4_TCP_ACK;
		memcpy(packet->fields + FIELD_TCP_SPORT, l4, 4);
		packet->fields[FIELD_FLAGS] |= l4[12] & 1;
		packet->fields[FIELD_TCP_FLAGS] = l4[13];
		packet->l4_ok = header >= TCP_HEADER && header <= length;
	} else if (protocol == PROTOCOL_UDP && length >= UDP_HEADER) {
		packet->l4_type = L4_UDP;
		memcpy(packet->fields + FIELD_UDP_SPORT, l4, 4);
		packet->l4_ok = be16(l4 + 4) == length;
		if (packet->l3_type == L3_IPV4 && be16(l4 + 6) == 0)
			goto checked; /* UDP without a checksum */
	} else {
		return;
	}
	if (packet->l4_ok)
		packet->fields[FIELD_CHECKS] |= CHECKS_L4_OK;
	packet->l4_ok = packet->l4_ok && l4_sum(packet, protocol) == 0xffff;
checked:
	if (packet->l4_ok)
		packet->fields[FIELD_CHECKS] |= CHECKS_L4_OK | CHECKS_L4_SUM;
}

static void parse_ipv4(struct packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint32_t room = packet->length - packet->l3, header, total;

	if (room < IPV4_HEADER || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 0x0fu) * 4;
	total = be16(ip + 2);
	if (header < IPV4_HEADER || header > room || total < header || total > room)
		return;
	packet->l3_type = L3_IPV4;
	packet->fragment = (be16(ip + 6) & 0x3fff) != 0;
	packet->l3_ok = fold(sum(ip, header, 0)) == 0xffff;
	packet->l4 = packet->l3 + header;
	packet->end = packet->l3 + total;
	packet->fields[FIELD_IP_PROTOCOL] = ip[9];
	packet->fields[FIELD_TOS] = ip[1];
	packet->fields[FIELD_TTL] = ip[8];
	packet->fields[FIELD_FLAGS] |= 4 << FLAGS_IP_VERSION_SHIFT;
	packet->fields[FIELD_CHECKS] |= CHECKS_L3_OK | (packet->l3_ok ? CHECKS_IPV4_SUM : 0);
	memcpy(packet->fields + FIELD_SRC_IP + 12, ip + 12, 4);
	memcpy(packet->fields + FIELD_DST_IP + 12, ip + 16, 4);
	parse_l4(packet, ip[9]);
}

static void parse_ipv6(struct packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint32_t room = packet->length - packet->l3, total;

	if (room < IPV6_HEADER || ip[0] >> 4 != 6)
		return;
	total = IPV6_HEADER + be16(ip + 4);
	if (total > room)
		return;
	packet->l3_type = L3_IPV6;
	packet->l3_ok = true;
	packet->l4 = packet->l3 + IPV6_HEADER;
	packet->end = packet->l3 + total;
	packet->fields[FIELD_IP_PROTOCOL] = ip[6];
	packet->fields[FIELD_TOS] = (uint8_t)(be16(ip) >> 4);
	packet->fields[FIELD_TTL] = ip[7];
	packet->fields[FIELD_FLAGS] |= 6 << FLAGS_IP_VERSION_SHIFT;
	packet->fields[FIELD_CHECKS] |= CHECKS_L3_OK;
	memcpy(packet->fields + FIELD_SRC_IP, ip + 8, 16);
	memcpy(packet->fields + FIELD_DST_IP, ip + 24, 16);
	parse_l4(packet, ip[6]);
}

void packet_parse(struct packet *packet, uint8_t *data, uint32_t length)
{
	uint32_t at = ETHER_HEADER;
	uint16_t type;

	memset(packet, 0, sizeof(*packet));
	packet->data = data;
	packet->length = length;
	memcpy(packet->fields + FIELD_DMAC, data, 6);
	memcpy(packet->fields + FIELD_SMAC, data + 6, 6);
	type = be16(data + 12);
	packet->tagged = type == ETHERTYPE_CVLAN;
	if ((type == ETHERTYPE_CVLAN || type == ETHERTYPE_SVLAN) && length >= at + VLAN_HEADER) {
		packet->fields[FIELD_FLAGS] |= packet->tagged ? FLAGS_CVLAN : FLAGS_SVLAN;
		memcpy(packet->fields + FIELD_TCI, data + at, 2);
		packet->tci = be16(data + at);
		type = be16(data + at + 2);
		at += VLAN_HEADER;
		if (type == ETHERTYPE_CVLAN && length >= at + VLAN_HEADER) {
			type = be16(data + at + 2);
			at += VLAN_HEADER;
		}
	}
	packet->fields[FIELD_ETHERTYPE] = (uint8_t)(type >> 8);
	packet->fields[FIELD_ETHERTYPE + 1] = (uint8_t)type;
	packet->l3 = at;
	packet->end = length;
	if (type == ETHERTYPE_IPV4)
		parse_ipv4(packet);
	else if (type == ETHERTYPE_IPV6)
		parse_ipv6(packet);
	if (packet->fragment)
		packet->fields[FIELD_FLAGS] |= FLAGS_FRAGMENT;
}

void packet_strip_vlan(struct packet *packet)
{
	memmove(packet->data + VLAN_HEADER, packet->data, 12);
	packet->data += VLAN_HEADER;
	packet->length -= VLAN_HEADER;
}

void packet_fill_checksums(uint8_t *data, uint32_t length, bool l3, bool l4)
{
	struct packet packet;
	uint8_t *ip, *place;
	uint8_t protocol;
	uint16_t value;

	packet_parse(&packet, data, length);
	ip = data + packet.l3;
	if (l3 && packet.l3_type == L3_IPV4) {
		ip[10] = ip[11] = 0;
		value = (uint16_t)~fold(sum(ip, (ip[0] & 0x0fu) * 4, 0));
		ip[10] = (uint8_t)(value >> 8);
		ip[11] = (uint8_t)value;
	}
	if (!l4 || packet.l4_type == L4_NONE)
		return;
	protocol = packet.fields[FIELD_IP_PROTOCOL];
	place = data + packet.l4 + (protocol == PROTOCOL_TCP ? 16 : 6);
	place[0] = place[1] = 0;
	value = (uint16_t)~l4_sum(&packet, protocol);
	if (value == 0 && protocol == PROTOCOL_UDP)
		value = 0xffff;
	place[0] = (uint8_t)(value >> 8);
	place[1] = (uint8_t)value;
}
