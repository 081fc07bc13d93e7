/* SPDX-License-Identifier: BSD-3-Clause */
/* What readers of the verdict are told. */
#include <string.h>

#include "verdict.h"

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

/* What must have been sent of a stream: as its end says, or as its numbers tell. */
static uint64_t stream_expected(const struct verdict_stream *stream)
{
	const struct sequence *sequence = &stream->sequence;

	if (!stream->ended)
		return sequence_expected(sequence) + stream->ahead;
	/* Its numbers begin with 0, wherever it was when it was first seen. */
	return stream->announced > sequence->next ? stream->announced : sequence->next;
}

void verdict_stream_counts(const struct verdict *verdict, uint32_t index, bool sent_known,
			   uint64_t sent, struct gdrcap_counts *counts)
{
	const struct verdict_stream *stream = &verdict->streams[index];
	const uint64_t unique = stream->sequence.unique + stream->ahead;

	*counts = (struct gdrcap_counts){
		.sent = sent_known ? sent : stream_expected(stream),
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
	if (counts->sent < unique)
		counts->sent = unique;
	counts->lost = counts->sent - unique;
}

uint64_t verdict_unique(const struct verdict *verdict)
{
	uint64_t unique = 0;

	for (uint32_t i = 0; i < verdict->stream_count; i++)
		unique += verdict->streams[i].sequence.unique + verdict->streams[i].ahead;
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
		if (__builtin_add_overflow(expected, stream_expected(&verdict->streams[i]),
					   &expected))
			expected = UINT64_MAX;
	if (!sent_known)
		sent = expected;
	/* Where all streams have ended the sender has said it. */
	sent_known |= verdict_ended(verdict);
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
