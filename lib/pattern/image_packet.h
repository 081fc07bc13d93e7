/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame as the image parsers see it: its fields, and where its UDP payload is. Compiles as C (gnu17) and as CUDA C++17. */
#ifndef GDRCAP_IMAGE_PACKET_H
#define GDRCAP_IMAGE_PACKET_H

#include "pattern/image_layout.h"
#include "pattern/image_source.h"
#include "pattern/image_why.h"

enum image_what {
	IMAGE_FILTERED, /* not of this layout */
	IMAGE_MISFIT, /* of this layout, and wrong: too short, a number that cannot be, a place past the
			 * image, not on a piece's first byte */
	IMAGE_BEGIN, /* leader: no data */
	IMAGE_DATA,
	IMAGE_END, /* trailer: no data */
};

/* A frame. `number` is as on the wire: first .., and after first + modulus - 1 again first. */
struct image_packet {
	uint64_t stream, number;
	uint64_t modulus; /* 0: 2^64 */
	uint32_t what;	  /* enum image_what */
	uint32_t ends;	  /* 1: nothing of the image follows, unless it was overtaken */
	uint32_t
		pieces; /* that the image has, by this packet; 0: it does not say. Of one that brings
			   * nothing: enum image_why, and `number` its two values */
	uint32_t base; /* where fields count from, bytes from the frame's first; GVSP: as in a short
			   * header, so with long ids 12 bytes behind UDP's */
	uint32_t end;  /* the first byte that is no longer of the datagram, or of the frame */
	/* for image_next_part() */
	uint32_t parts, part;		  /* how many there are; the next */
	uint32_t header;		  /* RFC 4175: where the next part's line header is */
	uint32_t from;			  /* where the next part's bytes are */
	uint32_t ip;			  /* where its IP header begins; 0: not looked for */
	uint64_t heap_offset, heap_bytes; /* SPEAD: items 3 and 4 */
};

/* Bytes that belong together in frame and image. Whole pieces, but for the last. */
struct image_part {
	uint64_t place;		/* bytes from the image's first */
	uint32_t piece, pieces; /* the first of them, how many: 1.. */
	uint32_t from, bytes;	/* in the frame; 1.., whole groups of what is converted */
	/* The last of its pieces, + 1, where that is shorter than `piece` and neither a row nor the image ends
	 * with it: only the sender's last packet can be so. Else 0. */
	uint32_t short_at;
};

/* A reason's two values in one word. */
GDRCAP_HD uint64_t image_why_values(uint64_t has, uint64_t wants)
{
	return (has < UINT32_MAX ? has : UINT32_MAX) << 32 |
	       (wants < UINT32_MAX ? wants : UINT32_MAX);
}

/* The packet brings nothing; `has`, `wants`: the reason's values. Returns 0. */
GDRCAP_HD int image_refuse(struct image_packet *packet, enum image_what what, enum image_why why,
			   uint64_t has, uint64_t wants)
{
	packet->what = what;
	packet->pieces = why;
	packet->number = image_why_values(has, wants);
	return 0;
}

/* ---- fields ---- */

/* The field's bytes; 0 where the frame ends before. */
GDRCAP_HD int image_field_raw(const struct image_field *field, image_frame frame, uint32_t base,
			      uint32_t end, uint64_t *raw)
{
	const uint32_t at = base + field->at, others = 64 - 8u * field->bytes;
	uint64_t value = 0;

	if (at + field->bytes > end)
		return 0;
	if (image_has_eight(frame, at, end)) {
		value = image_eight(frame, at, field->little);
		*raw = field->little ? value << others >> others : value >> others;
		return 1;
	}
	for (uint32_t i = 0; i < field->bytes; i++)
		value = value << 8 |
			image_u8(frame, at + (field->little ? field->bytes - 1u - i : i));
	*raw = value;
	return 1;
}

/* Of what the bytes say: 0 where that is less than it can be. */
GDRCAP_HD int image_field_scale(const struct image_field *field, uint64_t raw, uint64_t *value)
{
	uint64_t v = raw >> field->shift & field->mask;

	if (v < field->subtract)
		return 0;
	v -= field->subtract;
	if (field->divide > 1)
		v /= field->divide;
	if (field->modulo)
		v %= field->modulo;
	*value = v * field->times;
	return 1;
}

/* Value of SPEAD item `id`; 0: the packet has none with an immediate value. */
GDRCAP_HD int image_spead_item(const struct image_packet *packet, image_frame frame, uint32_t id,
			       uint64_t *value)
{
	const uint32_t items = image_be16(frame, packet->base + 6);

	for (uint32_t i = 0; i < items; i++) {
		const uint32_t at = packet->base + 8 + 8 * i;

		if (image_be16(frame, at) == (0x8000u | id)) {
			*value = image_be64(frame, at) & 0xffffffffffffu;
			return 1;
		}
	}
	return 0;
}

/* A field of the packet; 0: it is not there, or less than it can be. */
GDRCAP_HD int image_field_value(const struct image_field *field, const struct image_packet *packet,
				image_frame frame, uint64_t *value)
{
	uint64_t raw = 0;

	if (field->item ? !image_spead_item(packet, frame, field->at, &raw)
			: !image_field_raw(field, frame, packet->base, packet->end, &raw))
		return 0;
	return image_field_scale(field, raw, value);
}

/* ---- where fields count from ---- */

/* An IP packet at `at`: where its UDP header is; 0: it has none, and is refused. */
GDRCAP_HD uint32_t image_udp_at(image_frame frame, uint32_t len, uint32_t type, uint32_t at,
				struct image_packet *packet)
{
	uint32_t parts;

	if (type == 0x0800 && len >= at + 20 && image_u8(frame, at) >= 0x45 &&
	    image_u8(frame, at) <= 0x4f && image_u8(frame, at + 9) == 17) {
		parts = image_be16(frame, at + 6) & 0x3fff;
		if (!parts)
			return at + 4u * (image_u8(frame, at) & 15);
		/* the first one has the ports by which it is meant */
		return (uint32_t)image_refuse(packet,
					      parts & 0x1fff ? IMAGE_FILTERED : IMAGE_MISFIT,
					      IMAGE_WHY_FRAGMENT, 0, 0);
	}
	if (type == 0x86dd && len >= at + 40 && image_u8(frame, at) >> 4 == 6) {
		if (image_u8(frame, at + 6) == 17)
			return at + 40;
		if (image_u8(frame, at + 6) == 44)
			return (uint32_t)image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_FRAGMENT, 0,
						      0);
		return (uint32_t)image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_IPV6_HEADER,
					      image_u8(frame, at + 6), 0);
	}
	return (uint32_t)image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_NOT_UDP, type, 0);
}

/* First byte after the UDP header, and the datagram's end. 0: no UDP datagram, or one in fragments. */
GDRCAP_HD int image_find_udp(image_frame frame, uint32_t len, struct image_packet *packet)
{
	uint32_t at = 12, type, tags, udp, bytes;

	if (len < 14)
		return image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_NOT_UDP, 0, 0);
	type = image_be16(frame, at);
	for (tags = 0; tags < 2 && image_is_tag(type); tags++) {
		at += 4;
		if (len < at + 2)
			return image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_NOT_UDP, type, 0);
		type = image_be16(frame, at);
	}
	if (image_is_tag(type) || type == 0x9100)
		return image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_TAG, type, tags);
	udp = image_udp_at(frame, len, type, at + 2, packet);
	if (!udp)
		return 0;
	if (len < udp + 8)
		return image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_NOT_UDP, type, 0);
	bytes = image_be16(frame, udp + 4);
	if (bytes < 8 || udp + bytes > len)
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_UDP_LENGTH, bytes, len - udp);
	packet->base = udp + 8;
	packet->end = udp + bytes;
	packet->ip = at + 2;
	return 1;
}

#endif
