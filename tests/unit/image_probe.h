/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever a layout that was accepted says of whatever frame: no part of it lies outside of the frame or of
 * the image. Frames lie at the end of memory of their own length, for ASan.
 */
#ifndef GDRCAP_TEST_IMAGE_PROBE_H
#define GDRCAP_TEST_IMAGE_PROBE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/image_parse.h"

static inline void probe_fail(const char *what)
{
	fprintf(stderr, "image_probe: %s\n", what);
	abort();
}

static inline void probe_part(const struct image_layout *layout, const struct image_part *part,
			      uint32_t len)
{
	uint64_t room = 0;

	if (!part->bytes || part->from > len || part->bytes > len - part->from)
		probe_fail("a part outside of the frame");
	if (part->place > layout->bytes || part->bytes > layout->bytes - part->place)
		probe_fail("a part outside of the image");
	if (layout->convert && part->bytes % layout->convert_from)
		probe_fail("a part that ends within a group of its conversion");
	if (!part->pieces || part->piece > layout->pieces ||
	    part->pieces > layout->pieces - part->piece)
		probe_fail("pieces outside of the bitmap");
	if (image_piece_place(layout, part->piece) != part->place)
		probe_fail("a part that begins within a piece");
	for (uint32_t i = 0; i < part->pieces; i++)
		room += image_piece_bytes(layout, part->piece + i);
	if (layout->partial ? room < part->bytes : room != part->bytes)
		probe_fail("a part that is not its pieces");
}

/* Parts that were found; fails where one is wrong. */
static inline uint32_t image_probe(const struct image_layout *layout, const uint8_t *bytes,
				   uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1);
	struct image_packet packet;
	struct image_part part;
	uint32_t parts = 0;
	uint64_t value;
	int ret;

	memcpy(frame, bytes, len);
	image_parse(layout, frame, len, &packet);
	if (packet.pieces > layout->pieces && packet.what > IMAGE_MISFIT)
		probe_fail("more pieces than there are");
	if (packet.what == IMAGE_BEGIN || packet.what == IMAGE_DATA || packet.what == IMAGE_END) {
		if (packet.modulus && packet.number - layout->number_first >= packet.modulus)
			probe_fail("a number that cannot be");
		if (layout->timestamp.bytes)
			image_field_value(&layout->timestamp, &packet, frame, &value);
		for (uint32_t i = 0; i < IMAGE_FIELDS_MAX; i++)
			if (layout->fields[i].bytes)
				image_field_value(&layout->fields[i], &packet, frame, &value);
	}
	if (packet.what == IMAGE_DATA)
		while ((ret = image_next_part(layout, frame, &packet, &part)) > 0) {
			probe_part(layout, &part, len);
			parts++;
		}
	free(frame);
	return parts;
}

#endif
