/* SPDX-License-Identifier: BSD-3-Clause */
/* What readers of the verdict are told. */
#include <errno.h>
#include <string.h>

#include "verdict/verdict_internal.h"

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

uint64_t verdict_life_expected(const struct verdict *verdict, const struct verdict_stream *stream)
{
	const struct sequence *sequence = &stream->sequence;

	if (!verdict_end_counts(verdict, stream))
		return sequence_expected(sequence) + stream->ahead;
	/* Its numbers begin with 0, wherever it was when it was first seen. */
	return stream->announced > sequence->next ? stream->announced : sequence->next;
}

/* In all lives. */
static uint64_t stream_expected(const struct verdict *verdict, const struct verdict_stream *stream)
{
	return add_capped(stream->past_expected, verdict_life_expected(verdict, stream));
}

static uint64_t stream_unique(const struct verdict_stream *stream)
{
	return stream->past_unique + stream->sequence.unique + stream->ahead;
}

void verdict_stream_counts(const struct verdict *verdict, const struct verdict_stream *stream,
			   bool sent_known, uint64_t sent, struct gdrcap_counts *counts)
{
	const uint64_t unique = stream_unique(stream);

	*counts = (struct gdrcap_counts){
		.sent = sent_known ? sent : stream_expected(verdict, stream),
		.received = stream->received,
		.valid = stream->valid,
		.damaged = stream->damaged,
		.duplicate = stream->duplicate,
		.reordered = stream->reordered,
		.bits_checked = stream->bits_checked,
		.bits_wrong = stream->bits_wrong,
		.bytes = stream->bytes,
		.restarts = stream->restarts,
	};
	/* The sender counts after it has handed over, so a frame may be seen before it counts. */
	if (counts->sent < unique)
		counts->sent = unique;
	counts->lost = counts->sent - unique;
}

int verdict_stream_ranges(const struct verdict *verdict, const struct verdict_stream *stream,
			  struct gdrcap_numbers *to, uint32_t room)
{
	const struct ranges *ranges = sequence_ranges(&stream->sequence);

	if (!verdict->ranges || stream->restarts)
		return -ENODATA;
	if (!verdict->finished)
		return -EAGAIN;
	if (!stream->live) {
		const uint32_t count = stream->sequence.unique != 0;

		if (count && room)
			*to = (struct gdrcap_numbers){ stream->sequence.next - 1, 1, 0, 1 };
		return (int)count;
	}
	if (ranges->given_up)
		return -ENODATA;
	ranges_copy(ranges, to, room);
	return (int)ranges->count;
}

void verdict_total(const struct verdict *verdict, bool sent_known, uint64_t sent,
		   struct gdrcap_counts *total)
{
	const uint64_t unique = verdict->unique;
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
		expected = add_capped(expected, stream_expected(verdict, &verdict->streams[i]));
	if (!sent_known)
		sent = expected;
	/* Where all streams have ended the sender has said it; but who played a file said nothing, and
	 * what is not in that is no second copy. */
	sent_known |= !verdict->config.expect && verdict_ended(verdict);
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
	total->restarts = verdict->restarts;
	total->sent = sent;
	total->lost = gaps - filled;
}
