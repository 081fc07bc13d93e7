/* SPDX-License-Identifier: BSD-3-Clause */
/* A record of results added to the verdict, by what its frames are. */
#include "verdict/verdict.h"

#include <errno.h>
#include <string.h>

#include "verdict/verdict_internal.h"
#include "verdict/verdict_phase.h"

int verdict_create(struct verdict *verdict, uint32_t queues, const struct verdict_config *config)
{
	int ret;

	memset(verdict, 0, sizeof(*verdict));
	verdict->queue_count = queues;
	verdict->config = *config;
	ret = verdict_streams_create(verdict);
	if (ret < 0)
		goto err;
	ret = verdict_places_create(verdict);
	if (ret < 0)
		goto err;
	ret = verdict_phases_create(verdict);
	if (ret < 0)
		goto err;
	return 0;
err:
	verdict_destroy(verdict);
	return ret;
}

void verdict_destroy(struct verdict *verdict)
{
	verdict_streams_destroy(verdict);
	verdict_phases_destroy(verdict);
	verdict_places_destroy(verdict);
	memset(verdict, 0, sizeof(*verdict));
}

static const char *damage_kind(const struct verdict *verdict, uint8_t kind)
{
	switch (kind) {
	case FRAME_DAMAGED_HEADER:
		return verdict->config.expect ? "unknown" : "header";
	case FRAME_DAMAGED_LENGTH:
		return "length";
	case FRAME_DAMAGED_UNLOCKED:
		return "unlocked";
	case FRAME_DAMAGED_STALE:
		return "stale";
	default:
		return "payload";
	}
}

static void keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_record *record,
			const struct gdrcap_damage *what)
{
	struct gdrcap_damage *damage = &verdict->damage[verdict->damage_count];

	if (verdict->damage_count == GDRCAP_DAMAGE_MAX)
		return;
	verdict->damage_count++;
	*damage = *what;
	damage->stream = record->stream;
	damage->queue = queue;
}

void verdict_keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_record *record,
			 uint64_t sequence, bool header_ok)
{
	keep_damage(verdict, queue, record,
		    &(struct gdrcap_damage){
			    .sequence = sequence,
			    .wrong_bits = record->wrong_bits,
			    .offset = record->offset,
			    .expected = record->expected,
			    .got = record->got,
			    .header_ok = header_ok,
			    .kind = damage_kind(verdict, record->verdict),
		    });
}

void verdict_keep_stray(struct verdict *verdict, uint32_t queue, const struct frame_record *record)
{
	keep_damage(verdict, queue, record,
		    &(struct gdrcap_damage){
			    .sequence = record->sequence,
			    .header_ok = true,
			    .kind = "stray",
		    });
}

/* Of the frames `number` .. `number` + count - 1, those that arrived after one with a higher number
 * on the same queue. */
static uint32_t late_count(uint64_t *next, uint64_t number, uint32_t count)
{
	/* As in sequence.c, the largest number is none. */
	const uint64_t end = count < UINT64_MAX - number ? number + count : UINT64_MAX;
	uint32_t late = 0;

	if (number < *next)
		late = (uint32_t)(end < *next ? count : *next - number);
	if (end > *next)
		*next = end;
	return late;
}

void verdict_add_readable(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_record *record, uint64_t number)
{
	struct verdict_queue *q = &verdict->queues[queue];
	const uint32_t late =
		late_count(&q->next[stream - verdict->streams], number, record->count);
	/* What was seen before is a duplicate, not late. */
	const uint32_t reordered = sequence_mark(&stream->sequence, number, late);
	const uint32_t fresh =
		reordered + sequence_mark(&stream->sequence, number + late, record->count - late);
	const uint32_t duplicate = record->count - fresh;

	verdict->unique += fresh;
	verdict_count_record(q, stream, record);
	stream->duplicate += duplicate;
	stream->reordered += reordered;
	q->duplicate += duplicate;
	q->reordered += reordered;
	if (record->verdict == FRAME_VALID) {
		stream->valid += fresh;
		q->valid += fresh;
	} else {
		stream->damaged += fresh;
		q->damaged += fresh;
	}
}

void verdict_add_unreadable(struct verdict *verdict, uint32_t queue,
			    const struct frame_record *record)
{
	verdict->queues[queue].damaged += record->count;
	verdict->unreadable += record->count;
}

static void add_damaged_unread(struct verdict *verdict, uint32_t queue,
			       const struct frame_record *record)
{
	verdict_add_unreadable(verdict, queue, record);
	verdict_keep_damage(verdict, queue, record, record->sequence, false);
}

void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_record *record)
{
	struct verdict_queue *q = &verdict->queues[queue];
	struct verdict_stream *stream;

	q->received += record->count;
	q->bytes += record->frame_bytes;
	if (record->verdict == FRAME_DAMAGED_STALE)
		verdict->stale += record->count;
	if (record->verdict == FRAME_FILTERED) {
		q->filtered += record->count;
		return;
	}
	if (record->verdict == FRAME_END) {
		verdict_add_end(verdict, queue, record);
		return;
	}
	if (!record->header_ok) {
		add_damaged_unread(verdict, queue, record);
		return;
	}
	stream = verdict_stream_of(verdict, queue, record);
	if (!stream)
		return;
	if (verdict->config.expect) {
		if (!verdict_stream_opens(verdict, queue, stream, record->count + 1u))
			return;
		if (!verdict_add_expected(verdict, queue, stream, record))
			add_damaged_unread(verdict, queue, record);
	} else if (verdict_is_custom(verdict)) {
		if (verdict_stream_opens(verdict, queue, stream, record->count + 1u))
			verdict_add_custom(verdict, queue, stream, record);
	} else {
		verdict_add_own(verdict, queue, stream, record);
	}
}

void verdict_finish(struct verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->stream_count; i++) {
		struct verdict_stream *stream = &verdict->streams[i];

		if (verdict_is_custom(verdict) || verdict->config.expect)
			verdict_doubt_settle(verdict, stream);
		else
			verdict_finish_own(verdict, stream);
		if (verdict->places)
			verdict_finish_expected(verdict, stream);
		sequence_finish(&stream->sequence);
	}
	verdict->finished = true;
}
