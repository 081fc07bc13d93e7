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

#include "pattern/image_formats.h"

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
	packet->ip = 0;
	packet->heap_offset = 0;
	packet->heap_bytes = 0;
}

/* Where the payload is, where fields say it. 0: not in the frame. */
GDRCAP_HD int image_parse_payload(const struct image_layout *layout, image_frame frame,
				  struct image_packet *packet)
{
	uint64_t value, more = 0;

	if ((layout->payload_more.bytes &&
	     !image_field_value(&layout->payload_more, packet, frame, &more)) ||
	    more > packet->end || packet->base + layout->payload + more > packet->end)
		return 0;
	packet->from = packet->base + layout->payload + (uint32_t)more;
	if (layout->length.bytes) {
		if (!image_field_value(&layout->length, packet, frame, &value) ||
		    value > packet->end - packet->from)
			return 0;
		packet->end = packet->from + (uint32_t)value;
	}
	packet->parts = 1;
	return 1;
}

/* What the fields of a layout say that no parser said already. */
GDRCAP_HD void image_parse_fields(const struct image_layout *layout, image_frame frame,
				  struct image_packet *packet)
{
	uint64_t value = layout->kind_data;

	if (layout->kind.bytes && !image_field_value(&layout->kind, packet, frame, &value)) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
		return;
	}
	if (value == layout->kind_data)
		packet->what = IMAGE_DATA;
	else if (value == layout->kind_begin)
		packet->what = IMAGE_BEGIN;
	else if (value == layout->kind_end)
		packet->what = IMAGE_END;
	else
		image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_KIND, value, 0);
	if (packet->what == IMAGE_DATA && !image_parse_payload(layout, frame, packet))
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
}

/* Stream, number and end, where the layout has fields for them. 0: one is not what it can be, and the packet is
 * refused. */
GDRCAP_HD int image_parse_names(const struct image_layout *layout, image_frame frame,
				struct image_packet *packet)
{
	uint64_t value = 0;

	if ((layout->stream.bytes &&
	     !image_field_value(&layout->stream, packet, frame, &packet->stream)) ||
	    (layout->number.bytes &&
	     !image_field_value(&layout->number, packet, frame, &packet->number)))
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_NUMBER, 0, 0);
	if (layout->number.bytes) {
		packet->modulus = layout->number_modulus;
		if (packet->modulus && packet->number - layout->number_first >= packet->modulus)
			return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_NUMBER, 0, 0);
	}
	if (layout->end_mark.bytes && packet->what == IMAGE_DATA) {
		if (!image_field_value(&layout->end_mark, packet, frame, &value))
			return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_NUMBER, 0, 0);
		packet->ends = value != 0;
	}
	packet->ends |= packet->what == IMAGE_END;
	if (packet->ends && layout->end_pieces.bytes) {
		if (!image_field_value(&layout->end_pieces, packet, frame, &value))
			return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_NUMBER, 0, 0);
		packet->pieces = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	}
	if (packet->pieces <= layout->pieces)
		return 1;
	/* to end it as if all were there would hide what has no room */
	return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_PIECES, packet->pieces, layout->pieces);
}

/* Says what `frame` is. */
GDRCAP_HD void image_parse(const struct image_layout *layout, image_frame frame, uint32_t len,
			   struct image_packet *packet)
{
	image_packet_clear(packet);
	packet->end = len;
	if (!image_matches(layout, frame, len)) {
		packet->pieces = IMAGE_WHY_RULE;
		return;
	}
	if (layout->base == IMAGE_BASE_UDP && !image_find_udp(frame, len, packet))
		return;
	if (layout->parser == IMAGE_PARSER_GVSP)
		image_parse_gvsp(layout, frame, packet);
	else if (layout->parser == IMAGE_PARSER_RTP_RAW)
		image_parse_rtp(frame, packet);
	else if (layout->parser == IMAGE_PARSER_SPEAD)
		image_parse_spead(frame, packet);
	else
		image_parse_fields(layout, frame, packet);
	if (packet->what == IMAGE_FILTERED || packet->what == IMAGE_MISFIT ||
	    !image_parse_names(layout, frame, packet))
		return;
	/* a heap that is an image says how long it is */
	if (packet->what == IMAGE_DATA && layout->parser == IMAGE_PARSER_SPEAD && !layout->known)
		packet->pieces = packet->heap_bytes > layout->bytes
					 ? 0
					 : (uint32_t)((packet->heap_bytes + layout->piece - 1) /
						      layout->piece);
}

/* Whether part->bytes bytes at part->place are pieces of an image; fills in part->piece and ->pieces. IMAGE_WHY_NONE: they
 * are. */
GDRCAP_HD enum image_why image_part_fits(const struct image_layout *layout, struct image_part *part)
{
	const uint32_t place = (uint32_t)part->place; /* once it is known to be in the image */
	uint32_t row = 0, at, first, count;

	if (!part->bytes)
		return IMAGE_WHY_SHORT;
	if (part->place >= layout->bytes || part->bytes > layout->bytes - part->place)
		return IMAGE_WHY_PLACE;
	if (layout->convert && part->bytes % layout->convert_from)
		return IMAGE_WHY_GROUP;
	/* divisions of 32 bits, and none where the answer is known: they are what a GPU waits for */
	if (place >= layout->pitch)
		row = place / (uint32_t)layout->pitch;
	at = place - row * (uint32_t)layout->pitch;
	first = at / layout->piece;
	count = part->bytes <= layout->piece ? 1
					     : (part->bytes + layout->piece - 1) / layout->piece;
	if ((uint64_t)at + part->bytes > layout->row_bytes)
		return IMAGE_WHY_PAYLOAD;
	if (at != first * layout->piece)
		return IMAGE_WHY_START;
	part->piece = row * layout->row_pieces + first;
	part->pieces = count;
	part->short_at = 0;
	if (part->bytes != count * layout->piece &&
	    (uint64_t)at + part->bytes != layout->row_bytes &&
	    part->place + part->bytes != layout->bytes) {
		if (!layout->partial)
			return IMAGE_WHY_PAYLOAD;
		part->short_at = part->piece + count;
	}
	return IMAGE_WHY_NONE;
}

/* The packet of this part is refused. Returns -1. */
GDRCAP_HD int image_part_refuse(const struct image_layout *layout, struct image_packet *packet,
				const struct image_part *part, enum image_why why)
{
	const uint64_t has = why == IMAGE_WHY_SHORT ? packet->end
			     : why == IMAGE_WHY_PAYLOAD || why == IMAGE_WHY_GROUP
				     ? part->bytes
				     : part->place + (why == IMAGE_WHY_PLACE ? part->bytes : 0);
	const uint64_t wants = why == IMAGE_WHY_PLACE	? layout->bytes
			       : why == IMAGE_WHY_GROUP ? layout->convert_from
							: layout->piece;

	image_refuse(packet, IMAGE_MISFIT, why, has, wants);
	return -1;
}

/* Whether the layout's streams tell the fields of interlaced video apart: bit 15 of the first line number. */
GDRCAP_HD int image_rtp_has_fields(const struct image_layout *layout)
{
	return layout->stream.bytes && layout->stream.at <= 16 &&
	       layout->stream.at + layout->stream.bytes > 16;
}

/* Line header packet->part of an RFC 4175 packet. */
GDRCAP_HD enum image_why image_rtp_part(const struct image_layout *layout, image_frame frame,
					struct image_packet *packet, struct image_part *part)
{
	const uint32_t header = packet->header + 6 * packet->part;
	const uint32_t line = image_be16(frame, header + 2) & 0x7fffu;
	const uint32_t pixel = image_be16(frame, header + 4) & 0x7fffu;

	part->bytes = image_be16(frame, header);
	part->from = packet->from;
	part->place = line * layout->pitch +
		      (uint64_t)(pixel / layout->group_pixels) * layout->group_bytes;
	if (image_be16(frame, header + 2) & 0x8000u && !image_rtp_has_fields(layout))
		return IMAGE_WHY_RTP_FIELD;
	if (line >= layout->height || pixel >= layout->width)
		return IMAGE_WHY_PLACE;
	if (pixel % layout->group_pixels)
		return IMAGE_WHY_START;
	if (part->bytes > packet->end - packet->from)
		return IMAGE_WHY_SHORT;
	packet->from += part->bytes;
	return IMAGE_WHY_NONE;
}

/* The only part of a packet of another format. */
GDRCAP_HD enum image_why image_only_part(const struct image_layout *layout, image_frame frame,
					 struct image_packet *packet, struct image_part *part)
{
	uint64_t value;

	part->from = packet->from;
	part->bytes = packet->end - packet->from;
	part->place = 0;
	if (layout->parser == IMAGE_PARSER_GVSP) {
		/* its place is counted in packets: each is a piece */
		if (part->bytes > layout->piece)
			return IMAGE_WHY_PAYLOAD;
		part->place = (uint64_t)(packet->header - 1) * layout->piece;
	}
	for (uint32_t i = 0; i < layout->place_terms; i++) {
		if (!image_field_value(&layout->place[i], packet, frame, &value))
			return IMAGE_WHY_SHORT;
		part->place += value;
	}
	return IMAGE_WHY_NONE;
}

/* A SPEAD heap is complete with its last piece: only the packet that ends the heap may end within a piece. */
GDRCAP_HD int image_heap_goes_on(const struct image_layout *layout,
				 const struct image_packet *packet, const struct image_part *part)
{
	return part->short_at && layout->parser == IMAGE_PARSER_SPEAD && packet->heap_bytes &&
	       packet->heap_offset + part->bytes != packet->heap_bytes;
}

/*
 * The next of the packet's parts: 1; 0: there is no more; -1: it does not fit, so that the whole frame is
 * a misfit, and the packet is refused: ask for all before the first is placed.
 */
GDRCAP_HD int image_next_part(const struct image_layout *layout, image_frame frame,
			      struct image_packet *packet, struct image_part *part)
{
	enum image_why why;

	if (packet->part >= packet->parts)
		return 0;
	why = layout->parser == IMAGE_PARSER_RTP_RAW ? image_rtp_part(layout, frame, packet, part)
						     : image_only_part(layout, frame, packet, part);
	if (why == IMAGE_WHY_NONE)
		why = image_part_fits(layout, part);
	if (why == IMAGE_WHY_NONE && image_heap_goes_on(layout, packet, part))
		why = IMAGE_WHY_PAYLOAD;
	if (why != IMAGE_WHY_NONE)
		return image_part_refuse(layout, packet, part, why);
	packet->part++;
	return 1;
}

#endif
