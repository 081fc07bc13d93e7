/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images that are placed from resident frames, again and again, and assembled: what the images' stages have
 * in common. Frame n of the ring lies in slot n modulo their number and brings piece n % pieces of image
 * n / pieces; numbers come round with the slots. The thread that publishes accounts for what was placed and
 * takes the images.
 */
#ifndef GDRCAP_BENCH_PLACING_H
#define GDRCAP_BENCH_PLACING_H

#include "bench/resident.h"
#include "image/images.h"

#define PLACING_FRAME_AT 128u /* of a frame in its slot, as a port's headroom */

struct placing_config {
	uint32_t frame_bytes; /* with FCS */
	uint32_t payload;     /* byte of the frame at which its piece begins; to the end */
	uint32_t
		pieces; /* of an image: a power of two that the burst divides, or a divisor of it */
	uint32_t burst, blocks;
	uint32_t under_way; /* bursts at most */
	bool persistent;    /* of a GPU: a kernel that runs on; else finite ones */
	bool holes; /* of each image the last piece is missing: the one before it comes twice */
	const char *convert; /* how, as in a layout; NULL or "": not, and images can be compared */
	size_t bytes;	     /* as struct resident_config's */
	uint32_t descs;	     /* likewise */
};

struct placing {
	struct resident *resident; /* NULL: none yet */
	struct resident_place place;
	struct gdrcap_images *images;
	/* Told of each image, before it goes back. May be NULL. */
	void (*taken)(void *context, const struct gdrcap_image *image);
	void *context;
	uint32_t piece, payload, pieces;
	uint32_t numbers; /* of images, until they come round */
	bool holes, converts;
	uint64_t wrong; /* images that ended otherwise than they should */
};

/* Of a slot that such a frame lies in, behind its headroom. */
uint32_t placing_slot_bytes(uint32_t frame_bytes);
/* A layout for such frames, as option `image` has it, and what `more` has besides. */
void placing_layout(char *text, size_t bytes, uint32_t piece, uint32_t payload, uint32_t pieces,
		    const char *more);
/* A frame of `bytes` without FCS: its payload is a function of number and piece alone. */
void placing_frame(uint8_t *frame, uint32_t bytes, uint32_t payload, uint64_t number,
		   uint32_t piece);

/* All but frames and workers. */
int placing_create(struct placing *placing, const struct bench *bench,
		   const struct placing_config *config, struct gdrcap_error *error);
/* Frames into the slots. */
int placing_fill(struct placing *placing, struct gdrcap_error *error);
int placing_start(struct placing *placing, uint32_t blocks, struct gdrcap_error *error);
/* Also what was never made. */
void placing_close(struct placing *placing);

/* Closes what is due, and takes the images that are there. */
void placing_round(struct placing *placing, uint64_t now_ns);
/* Compares the images that lie in some buffers, complete, with what was sent. Nothing is under way.
 * *damaged: pieces that differ. */
int placing_compare(struct placing *placing, uint64_t *damaged, struct gdrcap_error *error);

#endif
