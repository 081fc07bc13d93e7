/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of the caller's frames: Ethernet, VLAN, IPv4, UDP. */
#include <errno.h>
#include <string.h>

#include "gdrcap.h"
#include "gdrcap_udp.h"

#define ETHERTYPE_MIN 0x600u
#define IP_BYTES 20u
#define UDP_BYTES 8u
#define IP_MOST 65535u

static uint8_t *put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
	return to + 2;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
	return put16(put16(to, value >> 16), value & 0xffff);
}

static void ip_write(uint8_t *to, const struct gdrcap_tx_headers *headers, uint32_t bytes)
{
	memset(to, 0, IP_BYTES);
	to[0] = 0x45;
	to[1] = headers->tos;
	put16(to + 2, IP_BYTES + UDP_BYTES + bytes);
	put16(to + 6, 0x4000); /* it is in one piece: do not fragment */
	to[8] = headers->ttl ? headers->ttl : 64;
	to[9] = 17;
	put32(to + 12, headers->src_ip);
	put32(to + 16, headers->dst_ip);
	put16(to + 10, ~gdrcap_udp_fold(gdrcap_udp_words(to, IP_BYTES)));
}

static void udp_write(uint8_t *to, const struct gdrcap_tx_headers *headers, uint32_t bytes)
{
	put16(to, headers->src_port);
	put16(to + 2, headers->dst_port);
	put16(to + 4, UDP_BYTES + bytes);
	put16(to + 6, 0);
}

/* Of a frame whose headers were written just now. */
static void checksum_write(uint8_t *frame, uint32_t head, const uint8_t *data, uint32_t bytes)
{
	struct gdrcap_udp udp;

	if (gdrcap_udp_find(frame, head, head + bytes, &udp))
		gdrcap_udp_put(frame, &udp,
			       udp.sum + gdrcap_udp_share(frame, head, data, &udp, 0, 1));
}

int gdrcap_tx_write_headers(uint8_t *to, const struct gdrcap_tx_headers *headers, const void *data,
			    uint32_t bytes)
{
	const uint32_t ethertype = headers && headers->ethertype ? headers->ethertype : 0x800;
	uint8_t *at = to;

	if (!to || !headers || ethertype < ETHERTYPE_MIN ||
	    (!headers->ethertype && bytes > IP_MOST - IP_BYTES - UDP_BYTES))
		return -EINVAL;
	memcpy(at, headers->dst_mac, sizeof(headers->dst_mac));
	memcpy(at + 6, headers->src_mac, sizeof(headers->src_mac));
	at += 12;
	if (headers->tagged)
		at = put16(put16(at, 0x8100), headers->vlan);
	at = put16(at, ethertype);
	if (!headers->ethertype) {
		ip_write(at, headers, bytes);
		udp_write(at + IP_BYTES, headers, bytes);
		at += IP_BYTES + UDP_BYTES;
		if (data)
			checksum_write(to, (uint32_t)(at - to), data, bytes);
	}
	return (int)(at - to);
}
