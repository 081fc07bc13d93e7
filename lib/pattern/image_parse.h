/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one frame says of an image: one definition of the arithmetic, for the CPU backend and the CUDA
 * kernels. Frames are hostile: nothing outside of frame[0 .. len) is read, and what comes out points
 * nowhere outside of the frame or the image. Compiles as C (gnu17) and as CUDA C++17.
 *
 * image_parse() says what the frame is; image_next_part() gives its payload's parts, one after the other: one
 * in every format but RFC 4175, where a packet has one for each line header.
 */
#ifndef GDRCAP_IMAGE_PARSE_H
#define GDRCAP_IMAGE_PARSE_H

#include "pattern/image_bytes.h"
#include "pattern/image_layout.h"

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
	uint32_t pieces;  /* that the image has, by this packet; 0: it does not say */
	uint32_t base; /* where fields count from, bytes from the frame's first; GVSP: as in a short
			   * header, so with long ids 12 bytes behind UDP's */
	uint32_t end;  /* the first byte that is no longer of the datagram, or of the frame */
	/* for image_next_part() */
	uint32_t parts, part;		  /* how many there are; the next */
	uint32_t header;		  /* RFC 4175: where the next part's line header is */
	uint32_t from;			  /* where the next part's bytes are */
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
	uint64_t raw;

	if (field->item ? !image_spead_item(packet, frame, field->at, &raw)
			: !image_field_raw(field, frame, packet->base, packet->end, &raw))
		return 0;
	return image_field_scale(field, raw, value);
}

/* ---- where fields count from ---- */

/* First byte after the UDP header, and the datagram's end. 0: no UDP datagram, or a fragment that has
 * no UDP header. */
GDRCAP_HD int image_find_udp(image_frame frame, uint32_t len, struct image_packet *packet)
{
	uint32_t at = 12, type, udp, bytes;

	if (len < 14)
		return 0;
	type = image_be16(frame, at);
	for (uint32_t tags = 0; tags < 2 && (type == 0x8100 || type == 0x88a8); tags++) {
		at += 4;
		if (len < at + 2)
			return 0;
		type = image_be16(frame, at);
	}
	at += 2;
	if (type == 0x0800 && len >= at + 20 && image_u8(frame, at) >= 0x45 &&
	    image_u8(frame, at) <= 0x4f) {
		if (image_u8(frame, at + 9) != 17 || (image_be16(frame, at + 6) & 0x1fff))
			return 0;
		udp = at + 4u * (image_u8(frame, at) & 15);
	} else if (type == 0x86dd && len >= at + 40 && image_u8(frame, at) >> 4 == 6 &&
		   image_u8(frame, at + 6) == 17) {
		udp = at + 40;
	} else {
		return 0;
	}
	if (len < udp + 8)
		return 0;
	bytes = image_be16(frame, udp + 4);
	packet->base = udp + 8;
	/* past the frame: it was cut, or is a fragment. Then no byte counts as the datagram's. */
	packet->end = bytes >= 8 && udp + bytes <= len ? udp + bytes : packet->base;
	return 1;
}

/* ---- GVSP: GigE Vision's stream ---- */

#define IMAGE_GVSP_EXTENDED 0x80u /* of the format byte: 64-bit block and 32-bit packet ids */
#define IMAGE_GVCP_PORT 3956u /* from which a camera answers who controls it, and never streams */

GDRCAP_HD void image_parse_gvsp(const struct image_layout *layout, image_frame frame,
				struct image_packet *packet)
{
	const uint32_t gvsp = packet->base, bytes = packet->end - packet->base;
	uint32_t id, extended, format;

	packet->what = IMAGE_FILTERED;
	if (layout->base == IMAGE_BASE_UDP && image_be16(frame, gvsp - 8) == IMAGE_GVCP_PORT)
		return;
	packet->what = IMAGE_MISFIT;
	if (bytes < 8)
		return;
	extended = image_u8(frame, gvsp + 4) & IMAGE_GVSP_EXTENDED;
	format = image_u8(frame, gvsp + 4) & 0x7fu;
	/* the camera has an error to tell, such as a packet that it can send no more */
	if (image_be16(frame, gvsp) & 0x8000u || (extended && bytes < 20))
		return;
	packet->number = extended ? image_be64(frame, gvsp + 8) : image_be16(frame, gvsp + 2);
	packet->modulus = extended ? 0 : 65535;
	id = extended ? image_be32(frame, gvsp + 16) : image_be32(frame, gvsp + 4) & 0xffffffu;
	packet->from = packet->base + (extended ? 20 : 8);
	packet->header = id;
	/* fields mean what they do behind the short header: the long one has 12 bytes more */
	packet->base += extended ? 12 : 0;
	if (!packet->number)
		return;
	if (format == 1) {
		packet->what = IMAGE_BEGIN;
	} else if (format == 2 && id) {
		packet->what = IMAGE_END;
		packet->ends = 1;
		packet->pieces = id - 1;
	} else if (format == 3 && id) {
		packet->what = IMAGE_DATA;
		packet->parts = 1;
	} else if (format != 2 && format != 3) {
		packet->what = IMAGE_FILTERED; /* other payload types */
	}
}

/* ---- RFC 4175: uncompressed video over RTP ---- */

/* The first line header's place, and the first line's bytes'; 0: the packet is not whole. */
GDRCAP_HD int image_rtp_lines(image_frame frame, struct image_packet *packet)
{
	const uint32_t first = image_u8(frame, packet->base);
	uint32_t at = packet->base + 12 + 4u * (first & 15), lines = 0, more = 1;

	if (first & 0x10) { /* a header extension */
		if (at + 4 > packet->end)
			return 0;
		at += 4 + 4 * image_be16(frame, at + 2);
	}
	if (first & 0x20) { /* padding, its length in the last byte */
		const uint32_t padding = image_u8(frame, packet->end - 1);

		if (!padding || packet->end - packet->base < 12 + padding)
			return 0;
		packet->end -= padding;
	}
	at += 2; /* the sequence number's upper half, which some senders leave 0 */
	packet->header = at;
	for (; more; lines++, at += 6) {
		if (at + 6 > packet->end)
			return 0;
		more = image_u8(frame, at + 4) & 0x80;
	}
	packet->parts = lines;
	packet->from = at;
	return 1;
}

GDRCAP_HD void image_parse_rtp(image_frame frame, struct image_packet *packet)
{
	const uint32_t rtp = packet->base;

	packet->what = IMAGE_MISFIT;
	if (packet->end - packet->base < 20 || image_u8(frame, rtp) >> 6 != 2 ||
	    !image_rtp_lines(frame, packet))
		return;
	packet->number = image_be32(frame, rtp + 4);
	packet->modulus = (uint64_t)1 << 32;
	packet->ends = image_u8(frame, rtp + 1) >> 7;
	packet->what = IMAGE_DATA;
}

/* ---- SPEAD-64-48 ---- */

#define IMAGE_SPEAD_HEAP_BYTES 2u
#define IMAGE_SPEAD_OFFSET 3u
#define IMAGE_SPEAD_PAYLOAD 4u
#define IMAGE_SPEAD_CONTROL 6u

/* Whether an item lies in the heap's bytes. A heap without any has one byte for the null item, 0. */
GDRCAP_HD int image_spead_points(const struct image_packet *packet, image_frame frame)
{
	const uint32_t items = image_be16(frame, packet->base + 6);

	for (uint32_t i = 0; i < items; i++) {
		const uint32_t id = image_be16(frame, packet->base + 8 + 8 * i);

		if (id && id < 0x8000u)
			return 1;
	}
	return 0;
}

/* The packet's shape; its fields are items. */
GDRCAP_HD void image_parse_spead(image_frame frame, struct image_packet *packet)
{
	const uint32_t spead = packet->base, bytes = packet->end - packet->base;
	uint64_t payload;

	packet->what = IMAGE_MISFIT;
	if (bytes < 8 || image_be32(frame, spead) != 0x53040206u ||
	    bytes < 8 + 8 * image_be16(frame, spead + 6))
		return;
	packet->from = packet->base + 8 + 8 * image_be16(frame, spead + 6);
	if (image_spead_item(packet, frame, IMAGE_SPEAD_CONTROL, &payload) &&
	    !image_spead_points(packet, frame)) {
		packet->what = IMAGE_FILTERED; /* the stream begins, or ends, and that is all */
		return;
	}
	if (!image_spead_item(packet, frame, IMAGE_SPEAD_OFFSET, &packet->heap_offset) ||
	    !image_spead_item(packet, frame, IMAGE_SPEAD_PAYLOAD, &payload) ||
	    payload > packet->end - packet->from)
		return;
	if (!image_spead_item(packet, frame, IMAGE_SPEAD_HEAP_BYTES, &packet->heap_bytes))
		packet->heap_bytes = 0;
	packet->end = packet->from + (uint32_t)payload;
	packet->parts = 1;
	packet->what = payload ? IMAGE_DATA : IMAGE_FILTERED;
}

/* ---- all ---- */

/* By members: an empty initializer is not the same in C and CUDA C++. */
GDRCAP_HD void image_packet_clear(struct image_packet *packet)
{
	packet->stream = 0;
	packet->number = 0;
	packet->modulus = 0;
	packet->what = IMAGE_FILTERED;
	packet->ends = 0;
	packet->pieces = 0;
	packet->base = 0;
	packet->end = 0;
	packet->parts = 0;
	packet->part = 0;
	packet->header = 0;
	packet->from = 0;
	packet->heap_offset = 0;
	packet->heap_bytes = 0;
}

/* What the fields of a layout say that no parser said already. */
GDRCAP_HD void image_parse_fields(const struct image_layout *layout, image_frame frame,
				  struct image_packet *packet)
{
	uint64_t value = layout->kind_data, more = 0;

	packet->what = IMAGE_MISFIT;
	if (layout->kind.bytes && !image_field_value(&layout->kind, packet, frame, &value))
		return;
	if (value == layout->kind_data)
		packet->what = IMAGE_DATA;
	else if (value == layout->kind_begin)
		packet->what = IMAGE_BEGIN;
	else if (value == layout->kind_end)
		packet->what = IMAGE_END;
	else
		packet->what = IMAGE_FILTERED;
	if (packet->what != IMAGE_DATA)
		return;
	if ((layout->payload_more.bytes &&
	     !image_field_value(&layout->payload_more, packet, frame, &more)) ||
	    more > packet->end || packet->base + layout->payload + more > packet->end) {
		packet->what = IMAGE_MISFIT;
		return;
	}
	packet->from = packet->base + layout->payload + (uint32_t)more;
	if (layout->length.bytes) {
		if (!image_field_value(&layout->length, packet, frame, &value) ||
		    value > packet->end - packet->from) {
			packet->what = IMAGE_MISFIT;
			return;
		}
		packet->end = packet->from + (uint32_t)value;
	}
	packet->parts = 1;
}

/* Stream, number and end, where the layout has fields for them. 0: one is not what it can be. */
GDRCAP_HD int image_parse_names(const struct image_layout *layout, image_frame frame,
				struct image_packet *packet)
{
	uint64_t value = 0;

	if (layout->stream.bytes &&
	    !image_field_value(&layout->stream, packet, frame, &packet->stream))
		return 0;
	if (layout->number.bytes) {
		packet->modulus = layout->number_modulus;
		if (!image_field_value(&layout->number, packet, frame, &packet->number))
			return 0;
		if (packet->modulus && packet->number - layout->number_first >= packet->modulus)
			return 0;
	}
	if (layout->end_mark.bytes && packet->what == IMAGE_DATA) {
		if (!image_field_value(&layout->end_mark, packet, frame, &value))
			return 0;
		packet->ends = value != 0;
	}
	packet->ends |= packet->what == IMAGE_END;
	if (packet->ends && layout->end_pieces.bytes) {
		if (!image_field_value(&layout->end_pieces, packet, frame, &value))
			return 0;
		packet->pieces = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	}
	if (packet->pieces <= layout->pieces)
		return 1;
	/* to end it as if all were there would hide what has no room */
	packet->pieces = 0;
	return 0;
}

/* Says what `frame` is. */
GDRCAP_HD void image_parse(const struct image_layout *layout, image_frame frame, uint32_t len,
			   struct image_packet *packet)
{
	image_packet_clear(packet);
	packet->end = len;
	if (!image_matches(layout, frame, len) ||
	    (layout->base == IMAGE_BASE_UDP && !image_find_udp(frame, len, packet)))
		return;
	if (layout->parser == IMAGE_PARSER_GVSP)
		image_parse_gvsp(layout, frame, packet);
	else if (layout->parser == IMAGE_PARSER_RTP_RAW)
		image_parse_rtp(frame, packet);
	else if (layout->parser == IMAGE_PARSER_SPEAD)
		image_parse_spead(frame, packet);
	else
		image_parse_fields(layout, frame, packet);
	if (packet->what != IMAGE_FILTERED && packet->what != IMAGE_MISFIT &&
	    !image_parse_names(layout, frame, packet))
		packet->what = IMAGE_MISFIT;
	/* a heap that is an image says how long it is */
	if (packet->what == IMAGE_DATA && layout->parser == IMAGE_PARSER_SPEAD && !layout->known)
		packet->pieces = packet->heap_bytes > layout->bytes
					 ? 0
					 : (uint32_t)((packet->heap_bytes + layout->piece - 1) /
						      layout->piece);
}

/* Whether `bytes` bytes at `place` are pieces of an image; fills in part->piece and ->pieces. */
GDRCAP_HD int image_part_fits(const struct image_layout *layout, struct image_part *part)
{
	const uint32_t place = (uint32_t)part->place; /* once it is known to be in the image */
	uint32_t row = 0, at, first, count;

	if (!part->bytes || part->place >= layout->bytes ||
	    part->bytes > layout->bytes - part->place ||
	    (layout->convert && part->bytes % layout->convert_from))
		return 0;
	/* divisions of 32 bits, and none where the answer is known: they are what a GPU waits for */
	if (place >= layout->pitch)
		row = place / (uint32_t)layout->pitch;
	at = place - row * (uint32_t)layout->pitch;
	first = at / layout->piece;
	count = part->bytes <= layout->piece ? 1
					     : (part->bytes + layout->piece - 1) / layout->piece;
	if ((uint64_t)at + part->bytes > layout->row_bytes || at != first * layout->piece)
		return 0;
	part->piece = row * layout->row_pieces + first;
	part->pieces = count;
	part->short_at = 0;
	if (part->bytes != count * layout->piece &&
	    (uint64_t)at + part->bytes != layout->row_bytes &&
	    part->place + part->bytes != layout->bytes) {
		if (!layout->partial)
			return 0;
		part->short_at = part->piece + count;
	}
	return 1;
}

/* Line header packet->part of an RFC 4175 packet. */
GDRCAP_HD int image_rtp_part(const struct image_layout *layout, image_frame frame,
			     struct image_packet *packet, struct image_part *part)
{
	const uint32_t header = packet->header + 6 * packet->part;
	const uint32_t line =
		image_be16(frame, header + 2) & 0x7fffu; /* bit 15: the second field */
	const uint32_t pixel = image_be16(frame, header + 4) & 0x7fffu;

	part->bytes = image_be16(frame, header);
	part->from = packet->from;
	part->place = line * layout->pitch +
		      (uint64_t)(pixel / layout->group_pixels) * layout->group_bytes;
	if (line >= layout->height || pixel >= layout->width || pixel % layout->group_pixels ||
	    part->bytes > packet->end - packet->from)
		return 0;
	packet->from += part->bytes;
	return 1;
}

/*
 * The next of the packet's parts: 1; 0: there is no more; -1: it does not fit, so that the whole frame is
 * a misfit: ask for all before the first is placed, with a copy of `packet`.
 */
GDRCAP_HD int image_next_part(const struct image_layout *layout, image_frame frame,
			      struct image_packet *packet, struct image_part *part)
{
	uint64_t value;

	if (packet->part >= packet->parts)
		return 0;
	if (layout->parser == IMAGE_PARSER_RTP_RAW) {
		if (!image_rtp_part(layout, frame, packet, part))
			return -1;
	} else {
		part->from = packet->from;
		part->bytes = packet->end - packet->from;
		part->place = 0;
		if (layout->parser == IMAGE_PARSER_GVSP) {
			/* its place is counted in packets: each is a piece */
			if (part->bytes > layout->piece)
				return -1;
			part->place = (uint64_t)(packet->header - 1) * layout->piece;
		}
		for (uint32_t i = 0; i < layout->place_terms; i++) {
			if (!image_field_value(&layout->place[i], packet, frame, &value))
				return -1;
			part->place += value;
		}
	}
	packet->part++;
	return image_part_fits(layout, part) ? 1 : -1;
}

#endif
