/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams and their senders, by id and source address.
 *
 * Of a stream's first frame only its number is kept. Memory for which of its frames came is taken
 * with the second, GDRCAP_STREAMS_MAX times at most: stray frames, each with another id, take none
 * of it. What finds no room is counted as untracked, and fails the record.
 */
#include <errno.h>
#include <stdlib.h>

#include "verdict/verdict_internal.h"

#define HASH_SLOTS (2 * VERDICT_STREAMS_SEEN)

int verdict_streams_create(struct verdict *verdict)
{
	/* Zero pages, which take memory when they are written. */
	verdict->streams = calloc(VERDICT_STREAMS_SEEN, sizeof(*verdict->streams));
	verdict->stream_hash = calloc(HASH_SLOTS, sizeof(*verdict->stream_hash));
	verdict->senders = calloc(VERDICT_SOURCES, sizeof(*verdict->senders));
	verdict->live_ids = calloc(VERDICT_STREAM_IDS / 64, sizeof(*verdict->live_ids));
	verdict->conflict_ids = calloc(VERDICT_STREAM_IDS / 64, sizeof(*verdict->conflict_ids));
	if (!verdict->streams || !verdict->stream_hash || !verdict->senders || !verdict->live_ids ||
	    !verdict->conflict_ids)
		return -ENOMEM;
	if (verdict->config.ranges) {
		verdict->ranges = ranges_pool_create();
		if (!verdict->ranges)
			return -ENOMEM;
	}
	for (uint32_t q = 0; q < verdict->queue_count; q++) {
		verdict->queues[q].next = calloc(VERDICT_STREAMS_SEEN, sizeof(uint64_t));
		if (!verdict->queues[q].next)
			return -ENOMEM;
	}
	return 0;
}

void verdict_streams_destroy(struct verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->stream_count; i++)
		sequence_free(&verdict->streams[i].sequence);
	for (uint32_t q = 0; q < verdict->queue_count; q++)
		free(verdict->queues[q].next);
	free(verdict->ranges);
	free(verdict->conflict_ids);
	free(verdict->live_ids);
	free(verdict->senders);
	free(verdict->stream_hash);
	free(verdict->streams);
}

/* Where the stream is, or would be. There is always an empty slot. */
static uint32_t *hash_slot(const struct verdict *verdict, uint32_t id, uint32_t sender)
{
	/* Fibonacci hashing: the product's high bits depend on all of the key's. */
	const uint64_t key = (uint64_t)sender << 16 | id;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) % HASH_SLOTS;

	for (;; at = (at + 1) % HASH_SLOTS) {
		uint32_t *slot = &verdict->stream_hash[at];
		const struct verdict_stream *stream;

		if (*slot == 0)
			return slot;
		stream = &verdict->streams[*slot - 1];
		if (stream->id == id && stream->sender == sender)
			return slot;
	}
}

static struct verdict_stream *stream_new(struct verdict *verdict, uint32_t id, uint32_t sender)
{
	const struct verdict_config *config = &verdict->config;
	struct verdict_stream *stream = &verdict->streams[verdict->stream_count++];

	stream->id = id;
	stream->sender = sender;
	/* A file is taken to be played from its first frame. */
	sequence_init(&stream->sequence, config->own_streams || config->expect);
	if (verdict->listed_count < GDRCAP_STREAMS_MAX) {
		verdict->listed[verdict->listed_count++] = verdict->stream_count - 1;
		stream->listed = true;
	}
	return stream;
}

static void count_untracked(struct verdict *verdict, uint32_t queue, uint32_t frames)
{
	verdict->untracked += frames;
	verdict->queues[queue].filtered += frames;
}

/* Where it is not there yet, it is from now on. NULL: others', or there is no room. */
static struct verdict_stream *stream_find(struct verdict *verdict, uint32_t id, uint32_t source)
{
	uint32_t *slot;

	if (verdict->config.own_streams && id >= verdict->config.own_streams)
		return NULL;
	slot = hash_slot(verdict, id, source);
	if (*slot == 0) {
		if (verdict->stream_count == VERDICT_STREAMS_SEEN)
			return NULL;
		stream_new(verdict, id, source);
		*slot = verdict->stream_count;
	}
	return &verdict->streams[*slot - 1];
}

/* In a run with our own sender the addresses may be changed on the way, and nobody else's streams
 * are counted. */
static uint32_t source_of(const struct verdict *verdict, const struct frame_record *record)
{
	return verdict->config.own_streams ? 0 : record->source % VERDICT_SOURCES;
}

struct verdict_stream *verdict_stream_find(struct verdict *verdict,
					   const struct frame_record *record)
{
	return stream_find(verdict, record->stream, source_of(verdict, record));
}

struct verdict_stream *verdict_stream_of(struct verdict *verdict, uint32_t queue,
					 const struct frame_record *record)
{
	struct verdict_queue *q = &verdict->queues[queue];
	const uint32_t source = source_of(verdict, record);
	struct verdict_stream *stream = q->last;

	if (stream && stream->id == record->stream && stream->sender == source)
		return stream;
	stream = stream_find(verdict, record->stream, source);
	if (stream) {
		verdict->senders_heard += !verdict->senders[source].heard;
		verdict->senders[source].heard = true;
		q->last = stream;
	} else if (verdict->config.own_streams && record->stream >= verdict->config.own_streams) {
		verdict->unmatched += record->count;
		q->filtered += record->count;
	} else {
		count_untracked(verdict, queue, record->count);
	}
	return stream;
}

/* A place among those that readers are told of, if need be instead of a stream of one frame. */
static void stream_list(struct verdict *verdict, struct verdict_stream *stream)
{
	for (uint32_t i = 0; !stream->listed && i < verdict->listed_count; i++) {
		struct verdict_stream *other = &verdict->streams[verdict->listed[i]];

		if (other->live)
			continue;
		other->listed = false;
		stream->listed = true;
		verdict->listed[i] = (uint32_t)(stream - verdict->streams);
	}
}

static void stream_lives(struct verdict *verdict, struct verdict_stream *stream)
{
	struct verdict_sender *sender = &verdict->senders[stream->sender];
	const uint64_t bit = 1ull << (stream->id % 64);
	uint64_t *ids = &verdict->live_ids[stream->id / 64];
	uint64_t *conflicts = &verdict->conflict_ids[stream->id / 64];

	stream->live = true;
	verdict->live_count++;
	if (verdict->ranges)
		sequence_keep(&stream->sequence, ranges_take(verdict->ranges));
	verdict_sender_weigh(verdict, sender, false);
	verdict->senders_live += sender->live++ == 0;
	verdict_sender_weigh(verdict, sender, true);
	if (*ids & bit && !(*conflicts & bit)) {
		*conflicts |= bit;
		if (verdict->conflicts++ == 0)
			verdict->conflict_id = stream->id;
	}
	*ids |= bit;
	stream_list(verdict, stream);
}

bool verdict_stream_opens(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  uint32_t frames)
{
	if (__builtin_expect(stream->live, 1))
		return true;
	if (frames == 1 && stream->sequence.unique == 0)
		return true;
	if (verdict->live_count == GDRCAP_STREAMS_MAX || sequence_open(&stream->sequence) < 0) {
		count_untracked(verdict, queue, frames);
		return false;
	}
	stream_lives(verdict, stream);
	return true;
}
