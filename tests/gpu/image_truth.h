/* SPDX-License-Identifier: BSD-3-Clause */
/* What images hold, and frames that bring it, by arithmetic of the tests' own: on a GPU and on the CPU. */
#ifndef GDRCAP_TEST_IMAGE_TRUTH_H
#define GDRCAP_TEST_IMAGE_TRUTH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRUTH_FILL 0x77u
#define TRUTH_FRAME_AT 128u /* in its slot */
#define TRUTH_HEAD 22u	    /* EtherType @12, stream u16 @14, number u32 @16, index u16 @20 */
#define TRUTH_TYPE 0x88b6u

/* Images of one kind, of up to 64 pieces. */
struct truth {
	uint8_t *frames; /* slots */
	uint32_t slot_shift, payload;
	uint32_t piece, pieces;
	uint64_t bytes, stride; /* of an image; of its buffer, behind it `guard` */
	uint32_t guard;
	uint32_t gpu;
};

/* A frame to be written into slot `slot`. */
struct truth_frame {
	uint64_t id; /* of the image: what it holds */
	uint32_t number, slot;
	uint16_t stream, index, type, piece;
};

/* An image that was handed out. */
struct truth_image {
	uint64_t id;
	uint64_t there; /* bit i: piece i was sent */
	const uint8_t *data;
	const uint32_t *present;
};

struct truth_found {
	unsigned long long images, bytes, wrong_bytes, wrong_bits, wrong_guards;
};

/* Makes ready, before any kernel runs that does not end. 0, or -1. */
int truth_open(uint32_t gpu);
void truth_close(void);
/* Both return when it is done: 0, or -1. All but `truth` can be read by the GPU. */
int truth_write(const struct truth *truth, const struct truth_frame *frames, uint32_t count);
int truth_compare(const struct truth *truth, const struct truth_image *images, uint32_t count,
		  struct truth_found *found);

#ifdef __cplusplus
}
#endif
#endif
