/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sent a frame: by this two senders that use the same ids are told apart. Compiles as C (gnu17) and as CUDA
 * C++17.
 */
#ifndef GDRCAP_IMAGE_SOURCE_H
#define GDRCAP_IMAGE_SOURCE_H

#include "pattern/image_bytes.h"

/* A sender's addresses, as far as its frames have them. 28 bytes. */
struct image_sender {
	uint8_t mac[6];
	uint16_t port;	  /* UDP, with an IP address */
	uint8_t ip[16];	  /* IPv4: the first four */
	uint16_t vlan;	  /* the outer tag's, with `tagged` */
	uint8_t ip_bytes; /* 4, 16; 0: no IP packet */
	uint8_t tagged;
};

/* Eight bytes. */
GDRCAP_HD uint64_t image_be64_fast(image_frame frame, uint32_t at, uint32_t end)
{
	return image_has_eight(frame, at, end) ? image_eight(frame, at, 0) : image_be64(frame, at);
}

GDRCAP_HD int image_is_tag(uint32_t type)
{
	return type == 0x8100 || type == 0x88a8;
}

GDRCAP_HD int image_is_tagged(image_frame frame, uint32_t end)
{
	return image_is_tag(image_be16(frame, 12)) && end >= 16;
}

/*
 * A sender in a word, never 0. `ip`: where the frame's IP header with UDP behind it begins; 0: it is not looked at. Two
 * that differ in 32 bits of one address have different words; of others one of 2^32 pairs has the same.
 */
GDRCAP_HD uint32_t image_source(image_frame frame, uint32_t len, uint32_t ip)
{
	uint32_t word, v4, at;
	uint64_t mac; /* and behind it the type */

	if (len < 14)
		return 1;
	mac = image_be64_fast(frame, 6, len);
	word = (uint32_t)(mac >> 32) * 0x9e3779b1u + ((uint32_t)mac >> 16) * 0x85ebca77u;
	if (image_is_tag((uint32_t)mac & 0xffffu) && len >= 16)
		word += (image_be16(frame, 14) & 0xfffu) * 0xc2b2ae3du;
	if (ip) {
		v4 = image_u8(frame, ip) >> 4 == 4;
		at = ip + (v4 ? 12 : 8);
		for (uint32_t end = at + (v4 ? 4 : 16); at < end; at += 4)
			word = word * 0x27d4eb2fu +
			       (uint32_t)(image_be64_fast(frame, at, len) >> 32) * 0x165667b1u;
		at = ip + (v4 ? 4 * (image_u8(frame, ip) & 15) : 40);
		word += image_be16(frame, at) * 0xcc9e2d51u;
	}
	return word ? word : 1;
}

/* A frame's sender in full, of its bytes in front of `end`. */
GDRCAP_HD void image_sender_read(image_frame frame, uint32_t end, struct image_sender *sender)
{
	uint32_t at = 12, type, ip = 0, udp = 0;

	memset(sender, 0, sizeof(*sender));
	if (end < 14)
		return;
	for (uint32_t b = 0; b < 6; b++)
		sender->mac[b] = (uint8_t)image_u8(frame, 6 + b);
	sender->tagged = (uint8_t)image_is_tagged(frame, end);
	if (sender->tagged)
		sender->vlan = (uint16_t)(image_be16(frame, 14) & 0xfffu);
	for (uint32_t tags = 0; tags < 2 && image_is_tag(image_be16(frame, at)) && end >= at + 6;
	     tags++)
		at += 4;
	type = image_be16(frame, at);
	at += 2;
	if (type == 0x0800 && end >= at + 20) {
		sender->ip_bytes = 4;
		ip = at + 12;
		udp = image_u8(frame, at + 9) == 17 ? at + 4 * (image_u8(frame, at) & 15) : 0;
	} else if (type == 0x86dd && end >= at + 40) {
		sender->ip_bytes = 16;
		ip = at + 8;
		udp = image_u8(frame, at + 6) == 17 ? at + 40 : 0;
	}
	for (uint32_t b = 0; b < sender->ip_bytes; b++)
		sender->ip[b] = (uint8_t)image_u8(frame, ip + b);
	if (udp && end >= udp + 2)
		sender->port = (uint16_t)image_be16(frame, udp);
}

#endif
