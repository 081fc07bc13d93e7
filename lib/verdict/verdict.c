/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verdict_internal.h"
#include "verdict_phase.h"

int verdict_create(struct verdict *verdict, uint32_t queues, const struct verdict_config *config)
{
	int ret = -ENOMEM;

	memset(verdict, 0, sizeof(*verdict));
	verdict->queue_count = queues;
	verdict->config = *config;
	verdict->streams = calloc(GDRCAP_STREAMS_MAX, sizeof(*verdict->streams));
	verdict->stream_index = calloc(VERDICT_STREAM_IDS, sizeof(*verdict->stream_index));
	if (!verdict->streams || !verdict->stream_index)
		goto err;
	for (uint32_t q = 0; q < queues; q++) {
		verdict->queues[q].next = calloc(GDRCAP_STREAMS_MAX, sizeof(uint64_t));
		if (!verdict->queues[q].next)
			goto err;
	}
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
	for (uint32_t i = 0; i < verdict->stream_count; i++)
		sequence_free(&verdict->streams[i].sequence);
	for (uint32_t q = 0; q < verdict->queue_count; q++)
		free(verdict->queues[q].next);
	verdict_phases_destroy(verdict);
	verdict_places_destroy(verdict);
	free(verdict->streams);
	free(verdict->stream_index);
	memset(verdict, 0, sizeof(*verdict));
}

/* NULL: somebody else's, GDRCAP_STREAMS_MAX others are there, or no memory for one more. */
static struct verdict_stream *stream_of(struct verdict *verdict, uint16_t id)
{
	const struct verdict_config *config = &verdict->config;
	struct verdict_stream *stream;

	if (verdict->stream_index[id])
		return &verdict->streams[verdict->stream_index[id] - 1];
	if (verdict->stream_count == GDRCAP_STREAMS_MAX ||
	    (config->own_streams && id >= config->own_streams))
		return NULL;
	stream = &verdict->streams[verdict->stream_count];
	/* A file is taken to be played from its first frame. */
	if (sequence_init(&stream->sequence, config->own_streams || config->expect) < 0)
		return NULL;
	stream->id = id;
	verdict->stream_count++;
	verdict->stream_index[id] = (uint16_t)verdict->stream_count;
	return stream;
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

void verdict_keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_run *run,
			 uint64_t sequence, bool header_ok)
{
	if (verdict->damage_count == GDRCAP_DAMAGE_MAX)
		return;
	verdict->damage[verdict->damage_count++] = (struct gdrcap_damage){
		.sequence = sequence,
		.stream = run->stream,
		.queue = queue,
		.wrong_bits = run->wrong_bits,
		.offset = run->offset,
		.expected = run->expected,
		.got = run->got,
		.header_ok = header_ok,
		.kind = damage_kind(verdict, run->verdict),
	};
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
			  const struct frame_run *run, uint64_t number)
{
	struct verdict_queue *q = &verdict->queues[queue];
	const uint32_t late = late_count(&q->next[stream - verdict->streams], number, run->count);
	/* What was seen before is a duplicate, not late. */
	const uint32_t reordered = sequence_mark(&stream->sequence, number, late);
	const uint32_t fresh =
		reordered + sequence_mark(&stream->sequence, number + late, run->count - late);
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

void verdict_add_unreadable(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	verdict->queues[queue].damaged += run->count;
	verdict->unreadable += run->count;
}

/* The sender says how many frames the stream had, and how many streams it has. */
static void add_end(struct verdict *verdict, const struct frame_run *run)
{
	struct verdict_stream *stream;

	if (!run->header_ok || verdict_is_foreign(verdict))
		return;
	stream = stream_of(verdict, run->stream);
	if (!stream) {
		verdict->strangers += run->count;
		return;
	}
	if (run->detail <= GDRCAP_STREAMS_MAX && run->detail > verdict->streams_announced)
		verdict->streams_announced = run->detail;
	if (!stream->ended) {
		stream->ended = true;
		stream->announced = run->sequence;
		verdict->streams_ended++;
		return;
	}
	/* Frames beyond what was announced show that it was wrong. */
	if (run->sequence >= stream->sequence.next &&
	    (run->sequence < stream->announced || stream->announced < stream->sequence.next))
		stream->announced = run->sequence;
}

static void add_damaged_unread(struct verdict *verdict, uint32_t queue,
			       const struct frame_run *run)
{
	verdict_add_unreadable(verdict, queue, run);
	verdict_keep_damage(verdict, queue, run, run->sequence, false);
}

void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	struct verdict_queue *q = &verdict->queues[queue];
	struct verdict_stream *stream;

	q->received += run->count;
	q->bytes += run->wire_bytes;
	if (run->verdict == FRAME_DAMAGED_STALE)
		verdict->stale += run->count;
	if (run->verdict == FRAME_FILTERED || run->verdict == FRAME_END) {
		q->filtered += run->count;
		if (run->verdict == FRAME_END)
			add_end(verdict, run);
		return;
	}
	if (!run->header_ok) {
		add_damaged_unread(verdict, queue, run);
		return;
	}
	stream = stream_of(verdict, run->stream);
	if (!stream) {
		verdict->strangers += run->count;
		q->filtered += run->count;
		return;
	}
	if (verdict->config.expect) {
		if (!verdict_add_expected(verdict, queue, stream, run))
			add_damaged_unread(verdict, queue, run);
		return;
	}
	if (verdict_is_foreign(verdict)) {
		verdict_add_foreign(verdict, queue, stream, run);
		return;
	}
	if (run->verdict != FRAME_VALID)
		verdict_keep_damage(verdict, queue, run, run->sequence, true);
	verdict_add_readable(verdict, queue, stream, run, run->sequence);
}

bool verdict_ended(const struct verdict *verdict)
{
	return verdict->streams_announced && verdict->streams_ended >= verdict->streams_announced;
}
