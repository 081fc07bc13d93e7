/* SPDX-License-Identifier: BSD-3-Clause */
/* Images closed by the CPU: holes filled, what came told to the assembler. What the CUDA kernels do. */
#include <errno.h>
#include <string.h>

#include "kernels/frame_records.h"
#include "kernels/host/host_workers.h"

int host_place_close_whole(struct kernel_device *device, const struct place_view *view,
			   const struct place_whole *images, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		place_shut(&view->table->slot[images[i].slot], images[i].use);
	return 0;
}

/* A short piece that is not the last of `pieces` lacks its end: it is missing. Else how many bytes it has. */
static uint32_t short_look(const struct place_view *view, uint32_t slot, uint32_t pieces,
			   uint32_t *present)
{
	const uint64_t short_piece = view->table->slot[slot].short_piece;
	const uint32_t short_at = place_short_at(short_piece), missing = short_at - 1;
	bool last = pieces == short_at;

	if (!short_at)
		return 0;
	for (uint32_t i = short_at; last && i < view->layout.pieces; i++)
		last = !(present[i / 32] >> i % 32 & 1);
	if (last)
		return place_short_bytes(short_piece);
	present[missing / 32] &= ~((uint32_t)1 << missing % 32);
	return 0;
}

int host_place_close(struct kernel_device *device, const struct place_view *view, uint32_t slot,
		     uint32_t use, uint32_t pieces, int fill)
{
	const struct image_layout *layout = &view->layout;
	uint32_t *present = view->present + (size_t)slot * view->present_words;
	uint8_t *image = view->images + (size_t)slot * view->stride;
	uint32_t placed = 0, last_bytes;
	uint64_t bytes = 0;

	if (slot >= view->ring)
		return kernel_fail(-EINVAL, "image buffer %u of %u", slot, view->ring);
	place_close(&view->table->slot[slot]);
	last_bytes = short_look(view, slot, pieces, present);
	for (uint32_t i = 0; i < layout->pieces; i++) {
		if (present[i / 32] >> i % 32 & 1) {
			placed++;
			bytes += last_bytes && i + 1 == pieces ? last_bytes
							       : image_piece_bytes(layout, i);
		} else if (fill >= 0) {
			memset(image + image_in_buffer(layout, image_piece_place(layout, i)), fill,
			       image_in_buffer(layout, image_piece_bytes(layout, i)));
		}
	}
	memcpy(view->present_host + (size_t)slot * view->present_words, present,
	       place_words(layout->pieces) * sizeof(*present));
	view->shared->closed[slot].pieces = placed;
	view->shared->closed[slot].bytes = bytes;
	view->shared->closed[slot].last_bytes = last_bytes;
	/* partner: the assembler's acquire load of `use` */
	__atomic_store_n(&view->shared->closed[slot].use, use, __ATOMIC_RELEASE);
	return 0;
}
