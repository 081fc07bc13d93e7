/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message passing by GIVE, BACK and END (lib/image/image_gpu.h), for CPU threads and for a kernel. The
 * producer writes an image's bytes and bitmap and gives it; the consumer checks that all belong to this
 * one, overwrites both and gives it back; the producer checks that. A store or load that passed its
 * barrier is a value of an earlier image.
 */
#ifndef GDRCAP_TEST_IMAGE_LITMUS_H
#define GDRCAP_TEST_IMAGE_LITMUS_H

#include <string.h>

#include "image/image_gpu.h"

#define LITMUS_WORDS 32u /* of 8 bytes in an image */
#define LITMUS_BITS 4u	 /* words of its bitmap */

/* What the producer (side 0) and the consumer (side 1) write as word w of image seq. */
GDRCAP_HD uint64_t litmus_value(uint64_t seq, uint32_t w, uint32_t side)
{
	return (seq * 2 + side) * 0x9e3779b97f4a7c15u + w;
}

/* What of the image that was taken is another one's. */
GDRCAP_HD uint32_t litmus_wrong_image(uint64_t seq, const struct gdrcap_image *image)
{
	return (image->seq != seq) + (image->number != litmus_value(seq, 100, 0)) +
	       (image->bytes != LITMUS_WORDS * 8) +
	       (image->fields[3] != litmus_value(seq, 101, 0)) + (image->end != seq % 4);
}

/* Word w of the image, or of its bitmap behind them: as it was given? Overwrites it. */
GDRCAP_HD uint32_t litmus_take(uint64_t seq, const struct gdrcap_image *image, uint32_t w)
{
	uint64_t *word = (uint64_t *)image->data + w;
	uint32_t *bits = (uint32_t *)(uintptr_t)image->present + (w - LITMUS_WORDS);
	uint32_t wrong;

	if (w >= LITMUS_WORDS) {
		wrong = *bits != (uint32_t)litmus_value(seq, w, 0);
		*bits = (uint32_t)litmus_value(seq, w, 1);
		return wrong;
	}
	wrong = *word != litmus_value(seq, w, 0);
	*word = litmus_value(seq, w, 1);
	return wrong;
}

/* ---- the producer, of `buffers` ---- */

#define LITMUS_BUFFERS_MAX 64u

struct image_litmus {
	struct image_gpu gpu;
	uint64_t *bytes; /* LITMUS_WORDS a buffer */
	uint32_t *present;
	uint32_t buffers, free[LITMUS_BUFFERS_MAX], frees;
	uint64_t seq_of[LITMUS_BUFFERS_MAX];
	uint64_t wrong, back;
};

static inline void litmus_init(struct image_litmus *litmus, uint32_t buffers, void *memory,
			       uint64_t *bytes, uint32_t *present)
{
	image_gpu_init(&litmus->gpu, memory, buffers);
	litmus->bytes = bytes;
	litmus->present = present;
	litmus->buffers = buffers;
	litmus->frees = buffers;
	for (uint32_t b = 0; b < buffers; b++)
		litmus->free[b] = b;
	litmus->wrong = litmus->back = 0;
}

static inline void litmus_collect(struct image_litmus *litmus)
{
	uint64_t at = 0;
	uint32_t slot;

	while ((slot = image_gpu_next_back(&litmus->gpu, &at)) != IMAGE_GPU_NONE) {
		const uint64_t seq = litmus->seq_of[slot];

		for (uint32_t w = 0; w < LITMUS_WORDS; w++)
			litmus->wrong +=
				litmus->bytes[slot * LITMUS_WORDS + w] != litmus_value(seq, w, 1);
		for (uint32_t w = 0; w < LITMUS_BITS; w++)
			litmus->wrong += litmus->present[slot * LITMUS_BITS + w] !=
					 (uint32_t)litmus_value(seq, LITMUS_WORDS + w, 1);
		litmus->free[litmus->frees++] = slot;
		litmus->back++;
	}
}

/* False: no buffer, or no entry, is free. */
static inline bool litmus_give(struct image_litmus *litmus)
{
	const uint64_t seq = litmus->gpu.given;
	struct gdrcap_image image;
	uint32_t slot;

	litmus_collect(litmus);
	if (!litmus->frees || !image_gpu_room(&litmus->gpu))
		return false;
	slot = litmus->free[--litmus->frees];
	litmus->seq_of[slot] = seq;
	memset(&image, 0, sizeof(image));
	image.number = litmus_value(seq, 100, 0);
	image.end = (uint32_t)(seq % 4);
	image.bytes = LITMUS_WORDS * 8;
	image.data = (uint8_t *)(litmus->bytes + slot * LITMUS_WORDS);
	image.present = litmus->present + slot * LITMUS_BITS;
	image.fields[3] = litmus_value(seq, 101, 0);
	for (uint32_t w = 0; w < LITMUS_WORDS; w++)
		litmus->bytes[slot * LITMUS_WORDS + w] = litmus_value(seq, w, 0);
	for (uint32_t w = 0; w < LITMUS_BITS; w++)
		litmus->present[slot * LITMUS_BITS + w] =
			(uint32_t)litmus_value(seq, LITMUS_WORDS + w, 0);
	image_gpu_give(&litmus->gpu, &image, slot);
	return true;
}

#endif
