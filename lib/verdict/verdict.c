/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

int verdict_create(struct verdict *verdict, uint32_t queues, uint32_t own_streams)
{
	memset(verdict, 0, sizeof(*verdict));
	verdict->queue_count = queues;
	verdict->own_streams = own_streams;
	verdict->streams = calloc(GDRCAP_STREAMS_MAX, sizeof(*verdict->streams));
	verdict->stream_index = calloc(VERDICT_STREAM_IDS, sizeof(*verdict->stream_index));
	if (!verdict->streams || !verdict->stream_index)
		goto err;
	for (uint32_t q = 0; q < queues; q++) {
		verdict->queues[q].next = calloc(GDRCAP_STREAMS_MAX, sizeof(uint64_t));
		if (!verdict->queues[q].next)
			goto err;
	}
	return 0;
err:
	verdict_destroy(verdict);
	return -ENOMEM;
}

void verdict_destroy(struct verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->stream_count; i++)
		sequence_free(&verdict->streams[i].sequence);
	for (uint32_t q = 0; q < verdict->queue_count; q++)
		free(verdict->queues[q].next);
	free(verdict->streams);
	free(verdict->stream_index);
	memset(verdict, 0, sizeof(*verdict));
}

/* NULL: somebody else's, GDRCAP_STREAMS_MAX others are there, or no memory for one more. */
static struct verdict_stream *stream_of(struct verdict *verdict, uint16_t id)
{
	struct verdict_stream *stream;

	if (verdict->stream_index[id])
		return &verdict->streams[verdict->stream_index[id] - 1];
	if (verdict->stream_count == GDRCAP_STREAMS_MAX ||
	    (verdict->own_streams && id >= verdict->own_streams))
		return NULL;
	stream = &verdict->streams[verdict->stream_count];
	if (sequence_init(&stream->sequence, verdict->own_streams != 0) < 0)
		return NULL;
	stream->id = id;
	verdict->stream_count++;
	verdict->stream_index[id] = (uint16_t)verdict->stream_count;
	return stream;
}

static const char *damage_kind(uint8_t verdict)
{
	switch (verdict) {
	case FRAME_DAMAGED_HEADER:
		return "header";
	case FRAME_DAMAGED_LENGTH:
		return "length";
	default:
		return "payload";
	}
}

static void damage_keep(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	if (verdict->damage_count == GDRCAP_DAMAGE_MAX)
		return;
	verdict->damage[verdict->damage_count++] = (struct gdrcap_damage){
		.sequence = run->sequence,
		.stream = run->stream,
		.queue = queue,
		.wrong_bits = run->wrong_bits,
		.offset = run->offset,
		.expected = run->expected,
		.got = run->got,
		.header_ok = run->header_ok,
		.kind = damage_kind(run->verdict),
	};
}

/* Frames of this run that arrived after one with a higher number, on the same queue. */
static uint32_t late_count(uint64_t *next, const struct frame_run *run)
{
	/* As in sequence.c, the largest number is none. */
	const uint64_t end = run->count < UINT64_MAX - run->sequence ? run->sequence + run->count :
								       UINT64_MAX;
	uint32_t late = 0;

	if (run->sequence < *next)
		late = (uint32_t)(end < *next ? run->count : *next - run->sequence);
	if (end > *next)
		*next = end;
	return late;
}

static void add_filtered(struct verdict_queue *q, const struct frame_run *run)
{
	q->filtered += run->count;
}

static void add_readable(struct verdict *verdict, struct verdict_queue *q,
			 struct verdict_stream *stream, const struct frame_run *run)
{
	const uint32_t late = late_count(&q->next[stream - verdict->streams], run);
	/* What was seen before is a duplicate, not late. */
	const uint32_t reordered = sequence_mark(&stream->sequence, run->sequence, late);
	const uint32_t fresh = reordered + sequence_mark(&stream->sequence, run->sequence + late,
							 run->count - late);
	const uint32_t duplicate = run->count - fresh;

	stream->received += run->count;
	stream->bytes += run->wire_bytes;
	stream->duplicate += duplicate;
	stream->reordered += reordered;
	q->duplicate += duplicate;
	q->reordered += reordered;
	if (run->verdict == FRAME_VALID) {
		stream->valid += fresh;
		q->valid += fresh;
	} else {
		stream->damaged += fresh;
		q->damaged += fresh;
	}
	stream->bits_checked += 8ull * run->bytes;
	stream->bits_wrong += run->wrong_bits;
	q->bits_checked += 8ull * run->bytes;
	q->bits_wrong += run->wrong_bits;
}

void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	struct verdict_queue *q = &verdict->queues[queue];
	struct verdict_stream *stream;

	q->received += run->count;
	q->bytes += run->wire_bytes;
	if (run->verdict == FRAME_FILTERED) {
		add_filtered(q, run);
		return;
	}
	if (!run->header_ok) {
		q->damaged += run->count;
		verdict->unreadable += run->count;
		damage_keep(verdict, queue, run);
		return;
	}
	stream = stream_of(verdict, run->stream);
	if (!stream) {
		verdict->strangers += run->count;
		add_filtered(q, run);
		return;
	}
	if (run->verdict != FRAME_VALID)
		damage_keep(verdict, queue, run);
	add_readable(verdict, q, stream, run);
}

void verdict_queue_counts(const struct verdict *verdict, uint32_t queue,
			  struct gdrcap_counts *counts)
{
	const struct verdict_queue *q = &verdict->queues[queue];

	*counts = (struct gdrcap_counts){
		.received = q->received,
		.valid = q->valid,
		.damaged = q->damaged,
		.duplicate = q->duplicate,
		.reordered = q->reordered,
		.filtered = q->filtered,
		.bits_checked = q->bits_checked,
		.bits_wrong = q->bits_wrong,
		.bytes = q->bytes,
	};
}

void verdict_stream_counts(const struct verdict *verdict, uint32_t index, bool sent_known,
			   uint64_t sent, struct gdrcap_counts *counts)
{
	const struct verdict_stream *stream = &verdict->streams[index];

	*counts = (struct gdrcap_counts){
		.sent = sent_known ? sent : sequence_expected(&stream->sequence),
		.received = stream->received,
		.valid = stream->valid,
		.damaged = stream->damaged,
		.duplicate = stream->duplicate,
		.reordered = stream->reordered,
		.bits_checked = stream->bits_checked,
		.bits_wrong = stream->bits_wrong,
		.bytes = stream->bytes,
	};
	/* The sender counts after it has handed over, so a frame may be seen before it counts. */
	if (counts->sent < stream->sequence.unique)
		counts->sent = stream->sequence.unique;
	counts->lost = counts->sent - stream->sequence.unique;
}

uint64_t verdict_unique(const struct verdict *verdict)
{
	uint64_t unique = 0;

	for (uint32_t i = 0; i < verdict->stream_count; i++)
		unique += verdict->streams[i].sequence.unique;
	return unique;
}

void verdict_total(const struct verdict *verdict, bool sent_known, uint64_t sent,
		   struct gdrcap_counts *total)
{
	const uint64_t unique = verdict_unique(verdict);
	uint64_t expected = 0, gaps, filled;

	memset(total, 0, sizeof(*total));
	for (uint32_t q = 0; q < verdict->queue_count; q++) {
		struct gdrcap_counts counts;

		verdict_queue_counts(verdict, q, &counts);
		total->received += counts.received;
		total->valid += counts.valid;
		total->damaged += counts.damaged;
		total->duplicate += counts.duplicate;
		total->reordered += counts.reordered;
		total->filtered += counts.filtered;
		total->bits_checked += counts.bits_checked;
		total->bits_wrong += counts.bits_wrong;
		total->bytes += counts.bytes;
	}
	for (uint32_t i = 0; i < verdict->stream_count; i++)
		/* Sequence numbers are anybody's; the sum must not come round to a small one. */
		if (__builtin_add_overflow(
			    expected, sequence_expected(&verdict->streams[i].sequence), &expected))
			expected = UINT64_MAX;
	if (!sent_known)
		sent = expected;
	if (sent < unique)
		sent = unique;
	gaps = sent - unique;
	filled = verdict->unreadable < gaps ? verdict->unreadable : gaps;
	if (sent_known) {
		total->duplicate += verdict->unreadable - filled;
		total->damaged -= verdict->unreadable - filled;
	} else {
		sent += verdict->unreadable - filled;
	}
	total->sent = sent;
	total->lost = gaps - filled;
}
