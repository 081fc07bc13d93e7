/* SPDX-License-Identifier: BSD-3-Clause */
/* Lone frames whose numbers do not fit: in doubt until the next frame of their stream is there. */
#include "verdict/verdict_internal.h"

/* The frame's number is damaged, or somebody else's. */
static void keep_number_damage(struct verdict *verdict, uint32_t queue,
			       const struct frame_record *record)
{
	struct frame_record damaged = { .stream = record->stream, .verdict = FRAME_DAMAGED_HEADER };

	if (!verdict_is_custom(verdict)) {
		verdict_keep_stray(verdict, queue, record);
		return;
	}
	damaged.offset = verdict->config.layout->custom.sequence.offset;
	verdict_keep_damage(verdict, queue, &damaged, record->sequence, false);
}

void verdict_doubt_begin(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			 const struct frame_record *record)
{
	verdict_add_unreadable(verdict, queue, record);
	stream->doubted = true;
	stream->doubt = *record;
	stream->doubt_queue = queue;
}

void verdict_doubt_settle(struct verdict *verdict, struct verdict_stream *stream)
{
	if (!stream->doubted)
		return;
	stream->doubted = false;
	stream->doubt_restarts = false;
	keep_number_damage(verdict, stream->doubt_queue, &stream->doubt);
}

struct frame_record verdict_doubt_end(struct verdict *verdict, struct verdict_stream *stream)
{
	stream->doubted = false;
	stream->doubt_restarts = false;
	verdict->queues[stream->doubt_queue].damaged -= stream->doubt.count;
	verdict->unreadable -= stream->doubt.count;
	return stream->doubt;
}

void verdict_first_undo(struct verdict *verdict, struct verdict_stream *stream)
{
	const struct frame_record *record = &stream->first;
	struct verdict_queue *q = &verdict->queues[stream->first_queue];

	stream->alone = false;
	stream->numbered = false;
	stream->born = false;
	stream->phase = 0;
	stream->phase_number = 0;
	sequence_restart(&stream->sequence, false);
	q->next[stream - verdict->streams] = 0;
	if (record->verdict == FRAME_VALID) {
		q->valid--;
		stream->valid--;
		keep_number_damage(verdict, stream->first_queue, record);
	} else {
		q->damaged--;
		stream->damaged--;
	}
	q->bits_checked -= 8ull * record->bytes;
	q->bits_wrong -= record->wrong_bits;
	stream->bits_checked -= 8ull * record->bytes;
	stream->bits_wrong -= record->wrong_bits;
	stream->bytes -= record->frame_bytes;
	stream->received--;
	verdict->unique--;
	verdict_add_unreadable(verdict, stream->first_queue, record);
}
