/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message passing through a burst ring, for CPU threads and for a kernel. The producer writes a
 * payload, the descriptors and a request and publishes; the consumer checks that all belong to this
 * burst, overwrites the payload, writes records and gives the burst back; the producer checks those.
 * A store or load that passed its barrier is a value of an earlier burst.
 */
#ifndef GDRCAP_TEST_RING_LITMUS_H
#define GDRCAP_TEST_RING_LITMUS_H

#include "capture/burst_ring.h"

#define LITMUS_FRAMES 4u /* in a burst */
#define LITMUS_WORDS 16u /* of 8 bytes in a frame's slot: two cache lines */

/* One side's view; pointers valid for that side. Frames are slots of LITMUS_WORDS. */
struct litmus {
	struct frame_desc *desc;
	struct burst_ready *ready;
	struct burst_beside *beside; /* NULL: nothing is INLINE */
	struct burst_result *result;
	struct frame_record *records; /* as many as descriptors */
	struct tx_request *request;
	uint64_t *frames;
	uint32_t *stop;
	uint32_t burst_mask, burst_bits;
};

/* What the producer (side 0) and the consumer (side 1) write as word w of burst b. */
BURST_RING_HD uint64_t litmus_value(uint64_t burst, uint32_t w, uint32_t side)
{
	return (burst * 2 + side) * 0x9e3779b97f4a7c15u + w;
}

BURST_RING_HD uint64_t *litmus_frame(const struct litmus *ring, uint64_t burst, uint32_t i)
{
	const uint64_t slot = (burst & ring->burst_mask) * LITMUS_FRAMES + i;

	return ring->frames + slot * LITMUS_WORDS;
}

BURST_RING_HD uint32_t litmus_first(uint64_t burst)
{
	return (uint32_t)(burst * LITMUS_FRAMES);
}

BURST_RING_HD uint32_t litmus_desc_mask(const struct litmus *ring)
{
	return (ring->burst_mask + 1) * LITMUS_FRAMES - 1;
}

/* Producer: what is written before PUBLISH, frames aside. */
BURST_RING_HD void litmus_fill(const struct litmus *ring, uint64_t burst)
{
	struct tx_request *request = &ring->request[burst & ring->burst_mask];

	for (uint32_t i = 0; i < LITMUS_FRAMES; i++) {
		struct frame_desc *desc =
			&ring->desc[(litmus_first(burst) + i) & litmus_desc_mask(ring)];

		desc->slot = (uint32_t)litmus_value(burst, i, 0);
		desc->len = (uint16_t)(burst + i);
		desc->offset = (uint16_t)(burst >> 16);
	}
	request->sequence = litmus_value(burst, 100, 0);
	request->time_ns = litmus_value(burst, 101, 0);
}

/* Consumer: descriptor i is this burst's; 1: it is not. */
BURST_RING_HD uint32_t litmus_wrong_desc(uint64_t burst, uint32_t i, const struct frame_desc *desc)
{
	return desc->slot != (uint32_t)litmus_value(burst, i, 0) ||
	       desc->len != (uint16_t)(burst + i) || desc->offset != (uint16_t)(burst >> 16);
}

/* Consumer: descriptors and request are this burst's. Counts those that are not. */
BURST_RING_HD uint32_t litmus_wrong_words(const struct litmus *ring, uint64_t burst)
{
	const struct tx_request *request = &ring->request[burst & ring->burst_mask];
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < LITMUS_FRAMES; i++) {
		const struct frame_desc *desc =
			&ring->desc[(litmus_first(burst) + i) & litmus_desc_mask(ring)];

		wrong += litmus_wrong_desc(burst, i, desc);
	}
	return wrong + (request->sequence != litmus_value(burst, 100, 0)) +
	       (request->time_ns != litmus_value(burst, 101, 0));
}

/* Consumer: PLAIN. */
BURST_RING_HD struct burst_plain litmus_plain(uint64_t burst, uint32_t wrong)
{
	struct burst_plain plain;

	plain.sequence = litmus_value(burst, 200, 1);
	plain.bytes = wrong;
	plain.frame_bytes = (uint32_t)litmus_value(burst, 201, 1);
	plain.stream = (uint16_t)litmus_value(burst, 202, 1);
	plain.count = (uint16_t)litmus_value(burst, 203, 1);
	plain.source = (uint16_t)litmus_value(burst, 204, 1);
	return plain;
}

/* Producer: the outcome is this burst's. Adds what the consumer counted. */
static inline uint32_t litmus_wrong_plain(const struct litmus *ring, uint64_t burst)
{
	const struct burst_plain want = litmus_plain(burst, 0);
	struct burst_plain got;

	burst_plain_read(&ring->result[burst & ring->burst_mask], &got);
	return got.bytes + (got.sequence != want.sequence) + (got.frame_bytes != want.frame_bytes) +
	       (got.stream != want.stream) + (got.count != want.count) +
	       (got.source != want.source);
}

/* Consumer: what is written before DONE, frames aside. */
BURST_RING_HD void litmus_answer(const struct litmus *ring, uint64_t burst, uint32_t wrong)
{
	struct frame_record *record = &ring->records[litmus_first(burst) & litmus_desc_mask(ring)];

	record->sequence = litmus_value(burst, 200, 1);
	record->bytes = wrong;
	record->frame_bytes = (uint32_t)litmus_value(burst, 201, 1);
}

/* Producer: the answer is this burst's. Adds what the consumer counted. */
BURST_RING_HD uint32_t litmus_wrong_answer(const struct litmus *ring, uint64_t burst)
{
	const struct frame_record *record =
		&ring->records[litmus_first(burst) & litmus_desc_mask(ring)];

	return record->bytes + (record->sequence != litmus_value(burst, 200, 1)) +
	       (record->frame_bytes != (uint32_t)litmus_value(burst, 201, 1));
}

#endif
