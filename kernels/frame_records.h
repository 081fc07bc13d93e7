/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From descriptors to frames and from outcomes to records: the rules that the CPU backend and the CUDA
 * kernels share, so that both write the same bytes into a burst's result.
 */
#ifndef GDRCAP_FRAME_RECORDS_H
#define GDRCAP_FRAME_RECORDS_H

#include "capture/burst_ring.h"
#include "pattern/frame.h"
#include "pattern/frame_store.h"

/* The frame's first byte, or NULL where the descriptor reaches past the region. */
GDRCAP_HD uint8_t *frame_at(const struct burst_ring_view *ring, struct frame_desc desc)
{
	const uint64_t at = ((uint64_t)desc.slot << ring->slot_shift) +
			    (desc.offset & ~(uint32_t)FRAME_DESC_CUT);

	return at + desc.len <= ring->frames_bytes ? ring->frames + at : NULL;
}

/* A received frame, which header-data split leaves in two pieces. */
struct frame_pieces {
	const uint8_t *head; /* first piece; not of a frame that lies whole: head_len is 0 */
	uint8_t *rest;	     /* what follows it, in a slot of `frames` */
	uint32_t head_len, rest_len;
};

/* Bytes of the frame of a descriptor, and of its first piece's: all zero where there is none. */
GDRCAP_HD uint32_t frame_pieces_len(struct frame_desc desc, struct frame_desc head)
{
	return (uint32_t)head.len + desc.len;
}

/* 1: the frame did not fit. */
GDRCAP_HD uint32_t frame_pieces_cut(struct frame_desc desc, struct frame_desc head)
{
	return ((uint32_t)desc.offset | head.offset) & FRAME_DESC_CUT;
}

/* 0: a descriptor reaches past its region, or its first piece is longer than any can be. */
GDRCAP_HD int frame_pieces(const struct burst_ring_view *ring, struct frame_desc desc,
			   struct frame_desc head, struct frame_pieces *pieces)
{
	const uint64_t at = ((uint64_t)head.slot << ring->head_shift) +
			    (head.offset & ~(uint32_t)FRAME_DESC_CUT);

	pieces->rest = frame_at(ring, desc);
	pieces->rest_len = desc.len;
	/* without a split there are no heads to add to */
	pieces->head = head.len ? ring->heads + at : ring->heads;
	pieces->head_len = head.len;
	return pieces->rest && (!head.len || (head.len <= FRAME_HEAD_BYTES_MAX &&
					      at + head.len <= ring->heads_bytes));
}

/* What is said of a frame that did not fit its slot: it is damaged, if it is meant at all. */
GDRCAP_HD void frame_cut(struct frame_result *result)
{
	if (result->verdict == FRAME_FILTERED || result->verdict == FRAME_END)
		return;
	result->verdict = FRAME_DAMAGED_LENGTH;
	result->payload_bytes = 0;
	result->wrong_bits = 0;
	result->offset = 0;
	result->expected = 0;
	result->got = 0;
	result->phase_first = 0;
	result->phase_next = 0;
	result->detail = 0;
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
	result->source = 0;
	result->phase_first = 0;
	result->phase_next = 0;
	result->detail = 0;
}

/* A burst's frames as they may be indexed: the count comes from a word that others write. */
GDRCAP_HD uint32_t burst_frames(uint64_t ready)
{
	const uint32_t count = burst_word_count(ready);

	return count < BURST_FRAMES_MAX ? count : BURST_FRAMES_MAX;
}

/* 1: the valid frame of a custom layout `next` goes on where `last` of the same stream ended. */
GDRCAP_HD int record_joins_custom(const struct frame_custom *custom,
				  const struct frame_result *last, const struct frame_result *next)
{
	const uint32_t bytes = custom->sequence.bytes < 8 ? custom->sequence.bytes : 8;

	if (bytes &&
	    ((last->sequence + custom->sequence_step - next->sequence) & frame_field_mask(bytes)))
		return 0;
	/* phases are 0 where none is looked for: then frames are only counted */
	return last->phase_next == next->phase_first;
}

/*
 * 1: the frame after `last` in arrival order belongs to the same record. `store`: frames are compared
 * with these (NULL: they are not).
 *
 * Frames of a file are named by the first that has their content. What follows `last` is looked up
 * behind that first one, so that two neighbours are enough to decide. Where a file has equal frames
 * with different ones behind them, a record may end there although the order was kept; the counts are
 * the same, in more records.
 */
GDRCAP_HD int record_joins(const struct frame_layout *layout, const struct frame_store_view *store,
			   const struct frame_result *last, const struct frame_result *next)
{
	if (last->verdict != next->verdict)
		return 0;
	if (next->verdict == FRAME_FILTERED)
		return 1;
	if (next->verdict != FRAME_VALID || last->stream != next->stream ||
	    last->source != next->source)
		return 0;
	if (store)
		return store->frames[(last->sequence + 1) % store->count].class_first ==
		       next->sequence;
	if (layout->format == FRAME_CUSTOM)
		return record_joins_custom(&layout->custom, last, next);
	/* sequence 0 follows nothing, not even the largest number */
	return next->sequence && last->sequence + 1 == next->sequence;
}

/* Payload bytes that a frame adds to its record. */
GDRCAP_HD uint32_t run_bytes(const struct frame_result *result)
{
	return result->verdict == FRAME_FILTERED ? 0 : result->payload_bytes;
}

/*
 * A record of the one frame at `index` of the burst. What an outcome does not define is 0. For each
 * further frame count, bytes and frame_bytes grow, and phase_next becomes the frame's.
 */
GDRCAP_HD void record_begin(struct frame_record *record, const struct frame_result *result,
			    uint32_t index, uint32_t len)
{
	const int damaged = frame_is_damaged(result->verdict);
	const int ours = result->verdict != FRAME_FILTERED;
	const int known = ours && result->header_ok;

	record->sequence = known ? result->sequence : 0;
	record->bytes = run_bytes(result);
	record->wrong_bits = damaged ? result->wrong_bits : 0;
	record->stream = known ? (uint16_t)result->stream : 0;
	record->count = 1;
	record->offset = damaged ? result->offset : 0;
	record->expected = damaged ? result->expected : 0;
	record->got = damaged ? result->got : 0;
	record->verdict = result->verdict;
	record->header_ok = known ? 1 : 0;
	record->first = (uint16_t)index;
	record->frame_bytes = len;
	record->phase_first = ours ? result->phase_first : 0;
	record->phase_next = ours ? result->phase_next : 0;
	record->detail = ours ? result->detail : 0;
	record->source = known ? result->source : 0;
}

/* 1: the record tells no more than struct burst_plain. */
GDRCAP_HD int record_is_plain(const struct frame_record *record)
{
	return record->verdict == FRAME_VALID && record->header_ok && !record->wrong_bits &&
	       !record->first && !record->phase_first && !record->phase_next && !record->detail;
}

GDRCAP_HD void record_to_plain(const struct frame_record *record, struct burst_plain *plain)
{
	plain->sequence = record->sequence;
	plain->bytes = record->bytes;
	plain->frame_bytes = record->frame_bytes;
	plain->stream = record->stream;
	plain->count = record->count;
	plain->source = (uint16_t)record->source;
}

/* Host: back again. */
static inline void record_from_plain(const struct burst_plain *plain, struct frame_record *record)
{
	__builtin_memset(record, 0, sizeof(*record));
	record->sequence = plain->sequence;
	record->bytes = plain->bytes;
	record->stream = plain->stream;
	record->count = plain->count;
	record->verdict = FRAME_VALID;
	record->header_ok = 1;
	record->frame_bytes = plain->frame_bytes;
	record->source = plain->source;
}

/* Where record r of a burst is written, if the burst is not told by PLAIN. */
GDRCAP_HD struct frame_record *record_at(const struct burst_ring_view *ring, uint32_t first,
					 uint32_t r)
{
	return &ring->records[(first + r) & ring->desc_mask];
}

/* Host: records of a burst that is done. */
static inline uint32_t burst_records(const struct burst_ring_view *ring, uint64_t burst)
{
	return burst_word_count(ring->result[burst & ring->burst_mask].done);
}

/* Host: record r of a burst that is done; `plain` is room for one that is told by PLAIN. */
static inline const struct frame_record *record_read(const struct burst_ring_view *ring,
						     uint64_t burst, uint32_t first, uint32_t r,
						     struct frame_record *plain)
{
	const struct burst_result *result = &ring->result[burst & ring->burst_mask];
	struct burst_plain told;

	if (!(result->done & BURST_PLAIN))
		return record_at(ring, first, r);
	burst_plain_read(result, &told);
	record_from_plain(&told, plain);
	return plain;
}

/*
 * The header of frame `index` of a request; `before`: payload bytes of the burst's earlier frames.
 * End-of-stream frames are all alike.
 */
GDRCAP_HD void request_header(struct frame_header *header, const struct tx_request *request,
			      uint32_t index, uint64_t before, uint32_t payload_bytes,
			      uint32_t pattern)
{
	header->sequence = request->sequence + (request->end ? 0 : index);
	header->position = request->position + (request->end ? 0 : before);
	header->time_ns = request->time_ns;
	header->stream = (uint16_t)request->stream;
	header->payload_bytes = request->end ? 0 : (uint16_t)payload_bytes;
	header->pattern = (uint8_t)(request->end ? FRAME_PATTERN_END : pattern);
	header->version = FRAME_VERSION;
}

/*
 * Where the frame of a store lies that belongs into slot `index` of a request; NULL where the store
 * has not that many bytes there: the slot stays as it is. Not of a request with `end`: these frames are
 * made from the layout with a store too.
 */
GDRCAP_HD const uint8_t *request_stored(const struct frame_store_view *store,
					const struct tx_request *request, uint32_t index,
					uint32_t bytes)
{
	const uint64_t at = request->position + index;
	uint64_t from;

	if (at >= store->count)
		return NULL;
	from = store->frames[at].at;
	return from <= store->data_bytes && bytes <= store->data_bytes - from ? store->data + from
									      : NULL;
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
