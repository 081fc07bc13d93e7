/* SPDX-License-Identifier: BSD-3-Clause */
/* What both back ends check and choose before they start the workers of a job. */
#include "kernels/kernel_job.h"

#include "kernels/front.h"
#include "kernels/send.h"

#include <errno.h>

/* Frames are read in 16-byte pieces from the aligned address below their first byte, and run
 * records are written so: what lies at the ends must be inside the region and aligned. */
#define ACCESS_BYTES 16u
#define SLOT_SHIFT_MAX 24u

static int is_aligned(const void *address, uintptr_t bytes)
{
	return address && ((uintptr_t)address & (bytes - 1)) == 0;
}

static int is_mask(uint32_t mask)
{
	return mask != UINT32_MAX && (mask & (mask + 1)) == 0;
}

static int ring_check(const struct burst_ring_view *ring, uint32_t index, enum kernel_role role)
{
	if (!is_mask(ring->desc_mask) || !is_mask(ring->burst_mask))
		return kernel_fail(-EINVAL,
				   "ring %u: masks %#x and %#x are not a power of two less one",
				   index, ring->desc_mask, ring->burst_mask);
	if (ring->slot_shift > SLOT_SHIFT_MAX)
		return kernel_fail(-EINVAL, "ring %u: slots of 2^%u bytes; at most 2^%u", index,
				   ring->slot_shift, SLOT_SHIFT_MAX);
	if (!is_aligned(ring->desc, 8) || !is_aligned(ring->ready, 8) ||
	    !is_aligned(ring->stop, 4) || !is_aligned(ring->result, ACCESS_BYTES))
		return kernel_fail(
			-EINVAL, "ring %u: a part is missing or not aligned (result: to %u bytes)",
			index, ACCESS_BYTES);
	if (ring->beside && !is_aligned(ring->beside, 8))
		return kernel_fail(-EINVAL,
				   "ring %u: what stands beside ready words is not aligned", index);
	if (!is_aligned(ring->frames, ACCESS_BYTES) || ring->frames_bytes % ACCESS_BYTES)
		return kernel_fail(-EINVAL,
				   "ring %u: the frames' region must begin and end at %u bytes",
				   index, ACCESS_BYTES);
	if (role != KERNEL_WRITE && role != KERNEL_SEND && !is_aligned(ring->records, ACCESS_BYTES))
		return kernel_fail(-EINVAL, "ring %u: no aligned records to write into", index);
	if (role != KERNEL_CHECK && (ring->head_desc || ring->generation))
		return kernel_fail(-EINVAL,
				   "ring %u: only who checks frames takes them in two pieces, or "
				   "poisons slots",
				   index);
	if (ring->head_desc &&
	    (!is_aligned(ring->head_desc, 8) || !is_aligned(ring->heads, ACCESS_BYTES) ||
	     ring->heads_bytes % ACCESS_BYTES || ring->head_shift > SLOT_SHIFT_MAX))
		return kernel_fail(-EINVAL,
				   "ring %u: the region of the frames' first pieces must begin and "
				   "end at %u bytes, its slots be of 2^%u bytes at most",
				   index, ACCESS_BYTES, SLOT_SHIFT_MAX);
	if (ring->generation && (!is_aligned(ring->generation, 4) || ring->slot_shift < 3))
		return kernel_fail(-EINVAL, "ring %u: generations are of aligned slots", index);
	if (role == KERNEL_WRITE && !is_aligned(ring->request, 8))
		return kernel_fail(-EINVAL, "ring %u: no requests to write frames from", index);
	return 0;
}

static int field_check(const struct frame_field *field, const char *name)
{
	if (field->bytes > 8 ||
	    (field->bytes && field->offset + (uint32_t)field->bytes > FRAME_FIELD_END_MAX))
		return kernel_fail(
			-EINVAL, "custom %s field of %u bytes at %u: at most 8, the last before %u",
			name, field->bytes, field->offset, FRAME_FIELD_END_MAX);
	return 0;
}

/* Kernels read no more of a frame than its beginning to find out where it belongs. */
static int custom_check(const struct kernel_job *job)
{
	const struct frame_custom *custom = &job->layout.custom;
	int ret;

	if (job->role == KERNEL_WRITE)
		return kernel_fail(-EINVAL,
				   "frames of a custom layout cannot be made, only compared");
	if (custom->payload > FRAME_CUSTOM_PAYLOAD_MAX)
		return kernel_fail(-EINVAL, "custom payload at %u: at most %u", custom->payload,
				   FRAME_CUSTOM_PAYLOAD_MAX);
	ret = field_check(&custom->sequence, "sequence");
	if (!ret)
		ret = field_check(&custom->stream, "stream");
	if (!ret && custom->self_phase && !pattern_is_prbs(job->pattern.kind))
		ret = kernel_fail(-EINVAL, "pattern %u has no phase to be found",
				  job->pattern.kind);
	return ret;
}

static int store_frame_check(const struct frame_store_view *store, uint32_t index)
{
	const struct store_frame *frame = &store->frames[index];
	const uint64_t bytes = (uint64_t)store_pieces(frame->len) * STORE_PIECE_BYTES;

	if (frame->len > FRAME_LEN_MAX || frame->at % STORE_PIECE_BYTES ||
	    frame->at > store->data_bytes || bytes > store->data_bytes - frame->at)
		return kernel_fail(-EINVAL,
				   "stored frame %u: %u bytes at %llu do not lie in its %llu bytes",
				   index, frame->len, (unsigned long long)frame->at,
				   (unsigned long long)store->data_bytes);
	if (frame->class_first >= store->count)
		return kernel_fail(-EINVAL, "stored frame %u: equal to frame %u of %u", index,
				   frame->class_first, store->count);
	return 0;
}

/* A table without an empty bucket would be searched for ever. */
static int buckets_check(const struct frame_store_view *store)
{
	uint64_t used = 0;

	if (!store->bucket_mask || !is_mask(store->bucket_mask) ||
	    !is_aligned(store->buckets, ACCESS_BYTES))
		return kernel_fail(-EINVAL,
				   "no aligned table of a power of two buckets to find frames in");
	for (uint64_t b = 0; b <= store->bucket_mask; b++) {
		if (store->buckets[b].frame > store->count)
			return kernel_fail(-EINVAL, "bucket %llu: frame %u of %u",
					   (unsigned long long)b, store->buckets[b].frame - 1,
					   store->count);
		used += store->buckets[b].frame != 0;
	}
	return used <= store->bucket_mask ? 0 : kernel_fail(-EINVAL, "the table of frames is full");
}

static int store_check(const struct frame_store_view *store, enum kernel_role role)
{
	int ret;

	if (!store->count || !is_aligned(store->data, ACCESS_BYTES) ||
	    !is_aligned(store->frames, ACCESS_BYTES))
		return kernel_fail(-EINVAL, "a store without frames, or not aligned to %u bytes",
				   ACCESS_BYTES);
	if (role == KERNEL_CHECK) {
		if (!store->resident)
			return kernel_fail(-EINVAL, "frames that change cannot be expected");
		ret = buckets_check(store);
		if (ret)
			return ret;
	}
	/* a streamed store's frames are not there yet */
	for (uint32_t i = 0; store->resident && i < store->count; i++) {
		ret = store_frame_check(store, i);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- images ---- */

static int image_field_check(const struct image_layout *layout, const struct image_field *field,
			     const char *name, uint32_t index)
{
	if (!field->bytes)
		return 0;
	if (field->bytes > 8 || field->shift > 63 || !field->divide ||
	    (field->item ? layout->parser != IMAGE_PARSER_SPEAD
			 : field->at + (uint32_t)field->bytes > IMAGE_FIELD_END_MAX))
		return kernel_fail(-EINVAL,
				   "images: field %s %u: %u bytes at %u, shifted by %u, divided by "
				   "%llu; at most 8, the last before %u, shifted by less than 64, "
				   "divided by 1 or more; items are SPEAD's",
				   name, index, field->bytes, field->at, field->shift,
				   (unsigned long long)field->divide, IMAGE_FIELD_END_MAX);
	return 0;
}

static int image_fields_check(const struct image_layout *layout)
{
	const struct {
		const struct image_field *field;
		uint32_t count;
		const char *name;
	} all[] = {
		{ &layout->kind, 1, "kind" },
		{ &layout->stream, 1, "stream" },
		{ &layout->number, 1, "number" },
		{ layout->place, layout->place_terms, "place" },
		{ &layout->payload_more, 1, "payload_more" },
		{ &layout->length, 1, "length" },
		{ &layout->end_mark, 1, "end_mark" },
		{ &layout->end_pieces, 1, "end_pieces" },
		{ &layout->timestamp, 1, "timestamp" },
		{ layout->fields, IMAGE_FIELDS_MAX, "fields" },
	};
	int ret = 0;

	for (uint32_t a = 0; a < sizeof(all) / sizeof(all[0]) && !ret; a++)
		for (uint32_t f = 0; f < all[a].count && !ret; f++)
			ret = image_field_check(layout, &all[a].field[f], all[a].name, f);
	return ret;
}

/* Pieces in layout->bytes; 0: none, or the layout contradicts itself. */
static uint64_t image_pieces(const struct image_layout *layout)
{
	uint64_t rest;

	if (!layout->piece || !layout->row_pieces || !layout->row_bytes ||
	    layout->row_bytes > layout->pitch || !layout->bytes ||
	    layout->bytes > IMAGE_BYTES_MAX ||
	    layout->row_pieces != (layout->row_bytes + layout->piece - 1) / layout->piece)
		return 0;
	rest = layout->bytes % layout->pitch;
	if (rest > layout->row_bytes)
		rest = layout->row_bytes;
	return layout->bytes / layout->pitch * layout->row_pieces +
	       (rest + layout->piece - 1) / layout->piece;
}

static int image_layout_check(const struct image_layout *layout)
{
	const uint64_t pieces = image_pieces(layout);

	if (layout->match.count > FRAME_MATCH_RULES || layout->base > IMAGE_BASE_UDP ||
	    layout->parser > IMAGE_PARSER_SPEAD || layout->place_terms > IMAGE_TERMS_MAX ||
	    layout->payload > UINT16_MAX)
		return kernel_fail(
			-EINVAL,
			"images: %u match rules, base %u, parser %u, %u terms, payload at "
			"%u: one is out of range",
			layout->match.count, layout->base, layout->parser, layout->place_terms,
			layout->payload);
	if (!pieces || pieces != layout->pieces || pieces > IMAGE_PIECES_MAX)
		return kernel_fail(-EINVAL,
				   "images of %llu bytes in rows of %llu, %llu apart, are not %u "
				   "pieces of %u bytes, %u a row",
				   (unsigned long long)layout->bytes,
				   (unsigned long long)layout->row_bytes,
				   (unsigned long long)layout->pitch, layout->pieces, layout->piece,
				   layout->row_pieces);
	if (layout->convert &&
	    (layout->convert >= IMAGE_CONVERTS ||
	     layout->convert_from != image_convert_from(layout->convert) ||
	     layout->convert_to != image_convert_to(layout->convert) ||
	     layout->piece % layout->convert_from || layout->row_bytes % layout->convert_from ||
	     layout->pitch % layout->convert_from || layout->bytes % layout->convert_from))
		return kernel_fail(-EINVAL,
				   "images: conversion %u of %u bytes to %u is none, or pieces, "
				   "rows or images are no whole groups of it",
				   layout->convert, layout->convert_from, layout->convert_to);
	if (layout->parser == IMAGE_PARSER_RTP_RAW &&
	    (!layout->group_pixels || !layout->group_bytes))
		return kernel_fail(-EINVAL, "images: groups of 0 pixels, or 0 bytes");
	return image_fields_check(layout);
}

static int places_check(const struct kernel_job *job)
{
	if (!job->places || !job->place_count || job->place_count > KERNEL_PLACES_MAX)
		return kernel_fail(-EINVAL, "%u kinds of images: 1 to %u", job->place_count,
				   KERNEL_PLACES_MAX);
	for (uint32_t v = 0; v < job->place_count; v++) {
		const struct place_view *view = &job->places[v];
		int ret = image_layout_check(&view->layout);

		if (ret)
			return ret;
		if (!is_aligned(view->table, 8) || !is_aligned(view->shared, 8) || !view->images ||
		    !is_aligned(view->present, 4) || !is_aligned(view->present_host, 4))
			return kernel_fail(-EINVAL, "images %u: a part is missing or not aligned",
					   v);
		if (!view->ring || view->ring > PLACE_RING_MAX ||
		    view->stride < image_in_buffer(&view->layout, view->layout.bytes) ||
		    view->present_words < place_words(view->layout.pieces))
			return kernel_fail(-EINVAL,
					   "images %u: %u buffers (1 to %u) of %llu bytes, bitmaps "
					   "of %u words: too small for %llu bytes in %u pieces",
					   v, view->ring, PLACE_RING_MAX,
					   (unsigned long long)view->stride, view->present_words,
					   (unsigned long long)image_in_buffer(&view->layout,
									       view->layout.bytes),
					   view->layout.pieces);
	}
	return 0;
}

static bool is_power(uint32_t value)
{
	return value && is_mask(value - 1);
}

static int front_sizes_check(const struct kernel_front *front, const struct burst_ring_view *ring,
			     uint32_t r)
{
	const struct cq_front_queue *queue = &front->queue;
	const uint64_t slots = (uint64_t)queue->first_slot + queue->slots;

	if (!cq_front_queue_fits(queue))
		return kernel_fail(
			-EINVAL,
			"front %u: %u slots, 2^%u a work entry, %u completions: powers of two, at "
			"most %u slots, at least %u work entries of several slots and twice as many "
			"completions as slots",
			r, queue->slots, queue->stride_shift, queue->cq_entries, CQ_FRONT_SLOTS_MAX,
			CQ_FRONT_ENTRIES_MIN);
	if (!is_power(front->burst_max) || front->burst_max > BURST_FRAMES_MAX ||
	    front->burst_max > queue->slots || ring->desc_mask + 1 < queue->slots ||
	    ring->burst_mask >= KERNEL_FRONT_BURSTS_MAX)
		return kernel_fail(
			-EINVAL,
			"front %u: bursts of %u frames (a power of two, at most %u), a ring of %u "
			"bursts (at most %u) and %u descriptors (at least one a slot)",
			r, front->burst_max, BURST_FRAMES_MAX, ring->burst_mask + 1,
			KERNEL_FRONT_BURSTS_MAX, ring->desc_mask + 1);
	if (slots << ring->slot_shift > ring->frames_bytes ||
	    queue->slot_bytes > 1u << ring->slot_shift || queue->slot_bytes > UINT16_MAX ||
	    !queue->slot_bytes)
		return kernel_fail(
			-EINVAL,
			"front %u: slots %u to %llu, frames of %u bytes at most: they are not "
			"in the region, or not in a slot",
			r, queue->first_slot, (unsigned long long)slots, queue->slot_bytes);
	return 0;
}

static int fronts_check(const struct kernel_job *job)
{
	int ret = job->fronts ? 0 : kernel_fail(-EINVAL, "no fronts");

	for (uint32_t r = 0; r < job->ring_count && !ret; r++) {
		const struct kernel_front *front = &job->fronts[r];

		if (!is_aligned(front->queue.cq, 64) || !is_aligned(front->queue.record, 4) ||
		    !is_aligned(front->words, 8) || !is_aligned(front->status, 8) ||
		    !is_aligned(front->head, 8) || !is_aligned(front->end, 4) ||
		    !is_aligned(job->rings[r].free_word, 8))
			ret = kernel_fail(-EINVAL, "front %u: a part is missing or not aligned", r);
		else if (front->warps && (front->warps < 3 || front->warps > 32 ||
					  front->warps != job->fronts[0].warps))
			ret = kernel_fail(-EINVAL, "front %u: %u warps; 3 to 32, all alike", r,
					  front->warps);
		else
			ret = front_sizes_check(front, &job->rings[r], r);
	}
	return ret;
}

static int send_check(const struct kernel_send *send, uint32_t r)
{
	const struct sq_queue *queue = &send->place->front.queue;

	if (!is_power(queue->blocks) || queue->blocks < SQ_BLOCKS_MIN ||
	    queue->blocks > SQ_BLOCKS_MAX || !is_power(queue->cqes) || queue->cqes < 2 ||
	    queue->cqes / 2 > KERNEL_SEND_MARKS_MAX)
		return kernel_fail(-EINVAL,
				   "sender %u: %u blocks, %u completions: both a power of two, at "
				   "most %u blocks and %u completions",
				   r, queue->blocks, queue->cqes, SQ_BLOCKS_MAX,
				   2 * KERNEL_SEND_MARKS_MAX);
	if (!is_aligned(queue->ring, SQ_BLOCK) || !is_aligned(queue->cq, SQ_BLOCK) ||
	    !is_aligned(queue->record, 4) || !is_aligned(send->place->front.mark, 8))
		return kernel_fail(-EINVAL, "sender %u: a part of its queue is not aligned", r);
	if (!send->slot || !send->slot_count || !send->size || !send->size_count ||
	    !send->stream_count || send->stream_count > KERNEL_SEND_STREAMS_MAX ||
	    !send->burst_max || send->burst_max > BURST_FRAMES_MAX)
		return kernel_fail(-EINVAL,
				   "sender %u: %u slots, %u sizes, %u streams (at most %u), bursts "
				   "of %u frames (at most %u)",
				   r, send->slot_count, send->size_count, send->stream_count,
				   KERNEL_SEND_STREAMS_MAX, send->burst_max, BURST_FRAMES_MAX);
	return 0;
}

static int sends_check(const struct kernel_job *job)
{
	int ret = job->sends ? 0 : kernel_fail(-EINVAL, "no senders");

	for (uint32_t r = 0; r < job->ring_count && !ret; r++) {
		const struct kernel_send *send = &job->sends[r];

		if (!is_aligned(send->words, 64) || !is_aligned(send->status, 64) ||
		    !is_aligned(send->place, 8) || !is_aligned(job->rings[r].request, 8))
			ret = kernel_fail(-EINVAL, "sender %u: a part is missing or not aligned",
					  r);
		else
			ret = send_check(send, r);
	}
	return ret;
}

int kernel_job_check(const struct kernel_job *job)
{
	int ret;

	if (job->role != KERNEL_CHECK && job->role != KERNEL_WRITE && job->role != KERNEL_PLACE &&
	    job->role != KERNEL_FRONT && job->role != KERNEL_SEND)
		return kernel_fail(-EINVAL, "unknown kernel role %d", (int)job->role);
	if (job->instead && job->role != KERNEL_FRONT)
		return kernel_fail(-EINVAL, "only a front takes the place of another");
	if (!job->ring_count || !job->rings)
		return kernel_fail(-EINVAL, "a kernel job needs at least one ring");
	if (job->ring_count > KERNEL_RINGS_MAX || job->workers_per_ring > KERNEL_WORKERS_MAX)
		return kernel_fail(-EINVAL, "%u rings with %u workers each: at most %u and %u",
				   job->ring_count, job->workers_per_ring, KERNEL_RINGS_MAX,
				   KERNEL_WORKERS_MAX);
	if (job->pattern.kind >= PATTERN_KINDS)
		return kernel_fail(-EINVAL, "unknown pattern %u", job->pattern.kind);
	if (job->layout.match.count > FRAME_MATCH_RULES)
		return kernel_fail(-EINVAL, "%u match rules; at most %u", job->layout.match.count,
				   FRAME_MATCH_RULES);
	if (job->role == KERNEL_PLACE)
		ret = places_check(job);
	else if (job->store)
		ret = store_check(job->store, job->role);
	else
		ret = job->layout.format == FRAME_CUSTOM ? custom_check(job) : 0;
	if (ret)
		return ret;
	for (uint32_t r = 0; r < job->ring_count; r++) {
		ret = ring_check(&job->rings[r], r, job->role);
		if (ret)
			return ret;
	}
	if (job->role == KERNEL_SEND)
		return sends_check(job);
	return job->role == KERNEL_FRONT ? fronts_check(job) : 0;
}
