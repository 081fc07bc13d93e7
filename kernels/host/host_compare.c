/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of which pieces were there already, compared with what is there. */
#include <string.h>

#include "kernels/host/host_workers.h"

#define COMPARE_BYTES 240u /* as sent, at once: whole groups of any conversion */

static int converted_equal(const struct image_layout *layout, const uint8_t *image,
			   const uint8_t *from, uint32_t bytes)
{
	uint8_t here[4 * COMPARE_BYTES];
	uint32_t some;

	for (uint32_t at = 0; at < bytes; at += some) {
		some = bytes - at < COMPARE_BYTES ? bytes - at : COMPARE_BYTES;
		host_convert(layout->convert, here, from + at, some);
		if (memcmp(image + image_in_buffer(layout, at), here,
			   image_in_buffer(layout, some)))
			return 0;
	}
	return 1;
}

int host_place_equal(const struct place_view *view, uint32_t slot, const uint8_t *frame,
		     const struct image_packet *packet)
{
	const struct image_layout *layout = &view->layout;
	const uint8_t *image = view->images + (size_t)slot * view->stride;
	struct image_packet rest = *packet;
	struct image_part part;

	while (image_next_part(layout, frame, &rest, &part) > 0) {
		const uint8_t *to = image + image_in_buffer(layout, part.place);
		const uint8_t *from = frame + part.from;

		if (layout->convert ? !converted_equal(layout, to, from, part.bytes)
				    : memcmp(to, from, part.bytes) != 0)
			return 0;
	}
	return 1;
}
