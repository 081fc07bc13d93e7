/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats that have a parser of their own: GVSP, RFC 4175, SPEAD. Compiles as C (gnu17) and as CUDA C++17. */
#ifndef GDRCAP_IMAGE_FORMATS_H
#define GDRCAP_IMAGE_FORMATS_H

#include "pattern/image_packet.h"

/* ---- GVSP: GigE Vision's stream ---- */

#define IMAGE_GVSP_EXTENDED 0x80u /* of the format byte: 64-bit block and 32-bit packet ids */
#define IMAGE_GVCP_PORT 3956u /* from which a camera answers who controls it, and never streams */

GDRCAP_HD void image_parse_gvsp(const struct image_layout *layout, image_frame frame,
				struct image_packet *packet)
{
	const uint32_t gvsp = packet->base, bytes = packet->end - packet->base;
	uint32_t id, extended, format;

	if (layout->base == IMAGE_BASE_UDP && image_be16(frame, gvsp - 8) == IMAGE_GVCP_PORT) {
		image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_GVCP, IMAGE_GVCP_PORT, 0);
		return;
	}
	if (bytes < 8) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
		return;
	}
	extended = image_u8(frame, gvsp + 4) & IMAGE_GVSP_EXTENDED;
	format = image_u8(frame, gvsp + 4) & 0x7fu;
	/* the camera has an error to tell, such as a packet that it can send no more */
	if (image_be16(frame, gvsp) & 0x8000u) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_GVSP_STATUS, image_be16(frame, gvsp),
			     0);
		return;
	}
	if (extended && bytes < 20) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
		return;
	}
	packet->number = extended ? image_be64(frame, gvsp + 8) : image_be16(frame, gvsp + 2);
	packet->modulus = extended ? 0 : 65535;
	id = extended ? image_be32(frame, gvsp + 16) : image_be32(frame, gvsp + 4) & 0xffffffu;
	packet->from = packet->base + (extended ? 20 : 8);
	packet->header = id;
	/* fields mean what they do behind the short header: the long one has 12 bytes more */
	packet->base += extended ? 12 : 0;
	if (!packet->number || ((format == 2 || format == 3) && !id)) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_NUMBER, 0, 0);
		return;
	}
	if (format == 1) {
		packet->what = IMAGE_BEGIN;
	} else if (format == 2) {
		packet->what = IMAGE_END;
		packet->ends = 1;
		packet->pieces = id - 1;
	} else if (format == 3) {
		packet->what = IMAGE_DATA;
		packet->parts = 1;
	} else {
		image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_GVSP_FORMAT, format, 0);
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

	if (packet->end - packet->base < 20 || image_u8(frame, rtp) >> 6 != 2 ||
	    !image_rtp_lines(frame, packet)) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_RTP,
			     packet->end > rtp ? image_u8(frame, rtp) : 0, 0);
		return;
	}
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

/* The header, up to the items. 0: it is none that is handled. */
GDRCAP_HD int image_spead_header(struct image_packet *packet, image_frame frame)
{
	const uint32_t spead = packet->base, bytes = packet->end - packet->base;

	if (bytes < 8)
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
	if (image_be16(frame, spead) != 0x5304u)
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SPEAD, image_be16(frame, spead),
				    0);
	if (image_be16(frame, spead + 2) != 0x0206u)
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SPEAD_FLAVOUR,
				    8u * (image_u8(frame, spead + 2) + image_u8(frame, spead + 3)),
				    8u * image_u8(frame, spead + 3));
	if (bytes < 8 + 8 * image_be16(frame, spead + 6))
		return image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SHORT, packet->end, 0);
	packet->from = packet->base + 8 + 8 * image_be16(frame, spead + 6);
	return 1;
}

/* The packet's shape; its fields are items. */
GDRCAP_HD void image_parse_spead(image_frame frame, struct image_packet *packet)
{
	uint64_t payload;

	if (!image_spead_header(packet, frame))
		return;
	if (image_spead_item(packet, frame, IMAGE_SPEAD_CONTROL, &payload) &&
	    !image_spead_points(packet, frame)) {
		/* the stream begins, or ends, and that is all */
		image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_SPEAD_CONTROL, 0, 0);
		return;
	}
	if (!image_spead_item(packet, frame, IMAGE_SPEAD_OFFSET, &packet->heap_offset)) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SPEAD_ITEM, IMAGE_SPEAD_OFFSET, 0);
		return;
	}
	if (!image_spead_item(packet, frame, IMAGE_SPEAD_PAYLOAD, &payload) ||
	    payload > packet->end - packet->from) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SPEAD_ITEM, IMAGE_SPEAD_PAYLOAD, 0);
		return;
	}
	if (!image_spead_item(packet, frame, IMAGE_SPEAD_HEAP_BYTES, &packet->heap_bytes))
		packet->heap_bytes = 0;
	if (packet->heap_bytes && packet->heap_offset + payload > packet->heap_bytes) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_SPEAD_HEAP,
			     packet->heap_offset + payload, packet->heap_bytes);
		return;
	}
	packet->end = packet->from + (uint32_t)payload;
	packet->parts = 1;
	packet->what = IMAGE_DATA;
	if (!payload)
		image_refuse(packet, IMAGE_FILTERED, IMAGE_WHY_SPEAD_CONTROL, 0, 0);
}

#endif
