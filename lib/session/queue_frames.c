/* SPDX-License-Identifier: BSD-3-Clause */
/* What the caller's own consumer has of the built-in one's eyes: rules, and gaps in sequence numbers. */
#include <errno.h>
#include <stdlib.h>

#include "base/guest.h"
#include "pattern/frame.h"
#include "session/answer.h"
#include "session/queue.h"

/* Streams have ids of 16 bits. */
#define STREAMS 65536u

struct queue_gaps {
	uint64_t mask;	/* of frame numbers, which go on from 0 after the largest */
	bool from_zero; /* the sender is the session's own */
	struct {
		uint64_t next; /* frame number */
		bool seen;
	} stream[STREAMS];
};

static const uint8_t *frame_of(const struct gdrcap_queue *queue, const struct frame_desc *desc)
{
	return queue->data + (size_t)desc->slot * queue->slot_bytes +
	       (desc->offset & ~FRAME_DESC_CUT);
}

uint32_t queue_filter(struct gdrcap_queue *queue, uint32_t first, uint32_t count)
{
	const struct frame_match *match = &queue->layout->match;
	struct ring_producer *ring = queue->ring;
	struct frame_desc *desc = &ring->desc[first];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!frame_matches(match, frame_of(queue, &desc[i]), desc[i].len))
			continue;
		desc[kept] = desc[i];
		if (ring->tsc)
			ring->tsc[first + kept] = ring->tsc[first + i];
		kept++;
	}
	if (kept != count)
		atomic_fetch_add_explicit(&queue->filtered, count - kept, memory_order_relaxed);
	return kept;
}

/* -EINVAL where nothing says which frame of its stream a frame is. */
static int gaps_open(struct gdrcap_queue *queue)
{
	const struct frame_layout *layout = queue->layout;
	const struct frame_field *field = &layout->custom.sequence;
	uint64_t step = layout->custom.sequence_step;

	if (!queue->readable || (layout->format == FRAME_CUSTOM && !field->bytes))
		return -EINVAL;
	queue->gaps = calloc(1, sizeof(*queue->gaps));
	if (!queue->gaps)
		return -ENOMEM;
	queue->gaps->from_zero = queue->from_zero;
	queue->gaps->mask = UINT64_MAX;
	if (layout->format != FRAME_CUSTOM)
		return 0;
	queue->gaps->mask = frame_field_mask(field->bytes);
	for (; step && !(step & 1); step >>= 1)
		queue->gaps->mask >>= 1;
	return 0;
}

/* True when the frame's number is not the one after its stream's last. */
static bool gap_before(struct gdrcap_queue *queue, const struct frame_desc *desc,
		       struct gdrcap_gap *gap)
{
	struct queue_gaps *gaps = queue->gaps;
	struct frame_header header;
	uint64_t number, missing;
	int header_ok = 0;

	(void)frame_parse(queue->layout, frame_crc32c_table, frame_of(queue, desc), desc->len,
			  &header, &header_ok);
	if (!header_ok)
		return false;
	number = frame_number(queue->layout, header.sequence);
	gap->stream = header.stream;
	if (!gaps->stream[header.stream].seen) {
		gaps->stream[header.stream].seen = true;
		gaps->stream[header.stream].next = gaps->from_zero ? 0 : number;
	}
	gap->first = gaps->stream[header.stream].next;
	missing = (number - gap->first) & gaps->mask;
	if (missing > gaps->mask / 2) {
		gap->first = number;
		gap->count = 1;
		gap->late = 1;
		return true;
	}
	gap->count = missing;
	gaps->stream[header.stream].next =
		header.pattern == FRAME_PATTERN_END && queue->layout->format != FRAME_CUSTOM
			? number
			: (number + 1) & gaps->mask;
	return missing != 0;
}

int gdrcap_get_gaps(struct gdrcap_queue *queue, const struct gdrcap_batch *batch,
		    struct gdrcap_gap *gaps, uint32_t max, size_t size)
{
	int ret = answer_check(queue, "queue", gaps, size), n = 0;

	if (ret < 0)
		return ret;
	if (!queue->batches || !batch || max < batch->count)
		return -EINVAL;
	if (!queue->gaps)
		ret = gaps_open(queue);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct frame_desc *desc = (const struct frame_desc *)&batch->pkts[i];
		struct gdrcap_gap gap = { .frame = i };

		if (gap_before(queue, desc, &gap))
			answer_give((char *)gaps + size * (size_t)n++, size, &gap, sizeof(gap));
	}
	return n;
}
