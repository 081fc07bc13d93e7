/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From descriptors to frames and from outcomes to runs: the rules that the host twin and the CUDA
 * kernels share, so that both write the same bytes into a burst's result.
 */
#ifndef GDRCAP_FRAME_RUNS_H
#define GDRCAP_FRAME_RUNS_H

#include "burst_ring.h"
#include "frame.h"

/* The frame's first byte, or NULL where the descriptor reaches past the region. */
GDRCAP_HD uint8_t *frame_at(const struct burst_ring_view *ring, struct frame_desc desc)
{
	const uint64_t at = ((uint64_t)desc.slot << ring->slot_shift) + desc.offset;

	return at + desc.len <= ring->frames_bytes ? ring->frames + at : NULL;
}

/* What is said of a frame whose descriptor cannot be followed. */
GDRCAP_HD void frame_unreachable(struct frame_result *result)
{
	result->sequence = 0;
	result->stream = 0;
	result->payload_bytes = 0;
	result->wrong_bits = 0;
	result->offset = 0;
	result->expected = 0;
	result->got = 0;
	result->verdict = FRAME_DAMAGED_LENGTH;
	result->header_ok = 0;
}

/* A burst's frames as they may be indexed: the count comes from a word that others write. */
GDRCAP_HD uint32_t burst_frames(uint64_t ready)
{
	const uint32_t count = burst_word_count(ready);

	return count < BURST_FRAMES_MAX ? count : BURST_FRAMES_MAX;
}

/* 1: the frame after `last` in arrival order belongs to the same run. */
GDRCAP_HD int run_joins(const struct frame_result *last, const struct frame_result *next)
{
	if (last->verdict != next->verdict)
		return 0;
	if (next->verdict == FRAME_FILTERED)
		return 1;
	/* sequence 0 follows nothing, not even the largest number */
	return next->verdict == FRAME_VALID && last->stream == next->stream && next->sequence &&
	       last->sequence + 1 == next->sequence;
}

/* Payload bytes that a frame adds to its run. */
GDRCAP_HD uint32_t run_bytes(const struct frame_result *result)
{
	return result->verdict == FRAME_FILTERED ? 0 : result->payload_bytes;
}

/* A run of the one frame at `index` of the burst. What an outcome does not define is 0. */
GDRCAP_HD void run_begin(struct frame_run *run, const struct frame_result *result, uint32_t index,
			 uint32_t len)
{
	const int damaged = result->verdict != FRAME_VALID && result->verdict != FRAME_FILTERED;
	const int known = result->header_ok && result->verdict != FRAME_FILTERED;

	run->sequence = known ? result->sequence : 0;
	run->bytes = run_bytes(result);
	run->wrong_bits = damaged ? result->wrong_bits : 0;
	run->stream = known ? (uint16_t)result->stream : 0;
	run->count = 1;
	run->offset = damaged ? result->offset : 0;
	run->expected = damaged ? result->expected : 0;
	run->got = damaged ? result->got : 0;
	run->verdict = result->verdict;
	run->header_ok = known ? 1 : 0;
	run->first = (uint16_t)index;
	run->wire_bytes = len;
}

/* Where run r of a burst is written. */
GDRCAP_HD struct frame_run *run_at(const struct burst_ring_view *ring, uint64_t burst,
				   uint32_t first, uint32_t r)
{
	return r ? &ring->overflow[(first + r) & ring->desc_mask]
		 : &ring->result[burst & ring->burst_mask].run;
}

/* The header of frame `index` of an order; `before`: payload bytes of the burst's earlier frames.
 */
GDRCAP_HD void order_header(struct frame_header *header, const struct burst_order *order,
			    uint32_t index, uint64_t before, uint32_t payload_bytes,
			    uint32_t pattern)
{
	header->sequence = order->sequence + index;
	header->position = order->position + before;
	header->time_ns = order->time_ns;
	header->stream = (uint16_t)order->stream;
	header->payload_bytes = (uint16_t)payload_bytes;
	header->pattern = (uint8_t)pattern;
	header->version = FRAME_VERSION;
}

/* log2 of the number of burst words. */
GDRCAP_HD uint32_t ring_burst_bits(const struct burst_ring_view *ring)
{
	uint32_t bits = 0;

	while (ring->burst_mask >> bits)
		bits++;
	return bits;
}

#endif
