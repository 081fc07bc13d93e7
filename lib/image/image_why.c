/* SPDX-License-Identifier: BSD-3-Clause */
/* Why frames brought nothing to an image, in words. */
#include <stdio.h>

#include "image/assembler.h"

/* A text has up to two %u (or %x): what the frame has, and what the layout has or what is handled. */
/* clang-format off */
static const struct {
	const char *name, *text;
} whys[IMAGE_WHYS] = {
	[IMAGE_WHY_NONE] = { "other",
		"of another kind" },
	[IMAGE_WHY_RULE] = { "no_rule",
		"that no rule of match names" },
	[IMAGE_WHY_NOT_UDP] = { "not_udp",
		"that are not UDP over IPv4 or IPv6 (EtherType 0x%04x)" },
	[IMAGE_WHY_IPV6_HEADER] = { "ipv6_header",
		"of IPv6 with next header %u, which is not UDP (17); extension headers are not followed" },
	[IMAGE_WHY_TAG] = { "tag",
		"with EtherType 0x%04x behind %u VLAN tags; up to two tags of 0x8100 or 0x88a8 are read" },
	[IMAGE_WHY_FRAGMENT] = { "fragment",
		"that are IP fragments, which are not put together; let the sender send datagrams that fit the MTU" },
	[IMAGE_WHY_GVCP] = { "gvcp",
		"that are a camera's answers from its control port, %u" },
	[IMAGE_WHY_GVSP_FORMAT] = { "gvsp_format",
		"of GVSP packet format %u; leader (1), trailer (2) and payload (3) are handled; all-in (4), H.264 (5), multi-zone "
		"(6), multi-part (7) and GenDC (8) are not" },
	[IMAGE_WHY_SPEAD_CONTROL] = { "spead_control",
		"that are SPEAD stream control, or bring no payload" },
	[IMAGE_WHY_KIND] = { "kind",
		"of kind %u, which is none of the layout's" },
	[IMAGE_WHY_CUT] = { "cut",
		"of which only the first %u bytes came" },
	[IMAGE_WHY_UNREADABLE] = { "unreadable",
		"whose descriptor points out of the memory" },
	[IMAGE_WHY_SHORT] = { "short",
		"that end before the layout's fields or payload, at byte %u" },
	[IMAGE_WHY_UDP_LENGTH] = { "udp_length",
		"whose UDP header says %u bytes, and %u are there" },
	[IMAGE_WHY_GVSP_STATUS] = { "gvsp_status",
		"with GVSP status 0x%04x: the camera has an error to tell" },
	[IMAGE_WHY_NUMBER] = { "number",
		"with a number, stream or mark that cannot be" },
	[IMAGE_WHY_RTP] = { "rtp",
		"that are not RTP version 2 with RFC 4175 line headers (first byte 0x%02x)" },
	[IMAGE_WHY_RTP_FIELD] = { "rtp_field",
		"of the second field of interlaced video; stream.at=16,stream.bit=0,stream.bits=1 makes each field a stream of "
		"images" },
	[IMAGE_WHY_SPEAD] = { "spead",
		"that are not SPEAD version 4 (first bytes 0x%04x)" },
	[IMAGE_WHY_SPEAD_FLAVOUR] = { "spead_flavour",
		"of SPEAD-%u-%u; only SPEAD-64-48 is handled" },
	[IMAGE_WHY_SPEAD_ITEM] = { "spead_item",
		"that lack SPEAD item %u (3: offset, 4: payload length) as an immediate value, or say more payload than they have" },
	[IMAGE_WHY_SPEAD_HEAP] = { "spead_heap",
		"up to byte %u of a heap that has %u by its item 2" },
	[IMAGE_WHY_PIECES] = { "pieces",
		"whose image has %u pieces; the layout has room for %u: give as piece what a packet brings, or a larger bytes" },
	[IMAGE_WHY_PAYLOAD] = { "payload",
		"with payloads of %u bytes; the layout's piece is %u" },
	[IMAGE_WHY_PLACE] = { "place",
		"up to byte %u of their image; the layout's images end at byte %u" },
	[IMAGE_WHY_START] = { "start",
		"for byte %u of their image, which is no multiple of the layout's piece, %u" },
	[IMAGE_WHY_GROUP] = { "group",
		"with payloads of %u bytes, which are no whole groups of %u bytes to convert" },
};
/* clang-format on */

static uint32_t known(uint32_t why)
{
	return why < IMAGE_WHYS ? why : IMAGE_WHY_NONE;
}

const char *image_why_name(uint32_t why)
{
	return whys[known(why)].name;
}

void image_why_text(uint32_t why, uint64_t values, char *to, size_t bytes)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	snprintf(to, bytes, whys[known(why)].text, (unsigned int)(values >> 32),
		 (unsigned int)(uint32_t)values);
#pragma GCC diagnostic pop
}
