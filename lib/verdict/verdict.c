/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of results added to the verdict, by what its frames are. */
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

static void keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_run *run,
			const struct gdrcap_damage *what)
{
	struct gdrcap_damage *damage = &verdict->damage[verdict->damage_count];

	if (verdict->damage_count == GDRCAP_DAMAGE_MAX)
		return;
	verdict->damage_count++;
	*damage = *what;
	damage->stream = run->stream;
	damage->queue = queue;
}

void verdict_keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_run *run,
			 uint64_t sequence, bool header_ok)
{
	keep_damage(verdict, queue, run,
		    &(struct gdrcap_damage){
			    .sequence = sequence,
			    .wrong_bits = run->wrong_bits,
			    .offset = run->offset,
			    .expected = run->expected,
			    .got = run->got,
			    .header_ok = header_ok,
			    .kind = damage_kind(verdict, run->verdict),
		    });
}

void verdict_keep_stray(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	keep_damage(verdict, queue, run,
		    &(struct gdrcap_damage){
			    .sequence = run->sequence,
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
			  const struct frame_run *run, uint64_t number)
{
	struct verdict_queue *q = &verdict->queues[queue];
	const uint32_t late = late_count(&q->next[stream - verdict->streams], number, run->count);
	/* What was seen before is a duplicate, not late. */
	const uint32_t reordered = sequence_mark(&stream->sequence, number, late);
	const uint32_t fresh =
		reordered + sequence_mark(&stream->sequence, number + late, run->count - late);
	const uint32_t duplicate = run->count - fresh;

	verdict->unique += fresh;
	stream->received += run->count;
	stream->bytes += run->frame_bytes;
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

static void add_damaged_unread(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	verdict_add_unreadable(verdict, queue, run);
	verdict_keep_damage(verdict, queue, run, run->sequence, false);
}

void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	struct verdict_queue *q = &verdict->queues[queue];
	struct verdict_stream *stream;

	q->received += run->count;
	q->bytes += run->frame_bytes;
	if (run->verdict == FRAME_DAMAGED_STALE)
		verdict->stale += run->count;
	if (run->verdict == FRAME_FILTERED) {
		q->filtered += run->count;
		return;
	}
	if (run->verdict == FRAME_END) {
		verdict_add_end(verdict, queue, run);
		return;
	}
	if (!run->header_ok) {
		add_damaged_unread(verdict, queue, run);
		return;
	}
	stream = verdict_stream_of(verdict, queue, run);
	if (!stream)
		return;
	if (verdict->config.expect) {
		if (!verdict_stream_opens(verdict, queue, stream, run->count + 1u))
			return;
		if (!verdict_add_expected(verdict, queue, stream, run))
			add_damaged_unread(verdict, queue, run);
	} else if (verdict_is_foreign(verdict)) {
		if (verdict_stream_opens(verdict, queue, stream, run->count + 1u))
			verdict_add_foreign(verdict, queue, stream, run);
	} else {
		verdict_add_own(verdict, queue, stream, run);
	}
}

void verdict_finish(struct verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->stream_count; i++) {
		struct verdict_stream *stream = &verdict->streams[i];

		if (verdict_is_foreign(verdict) || verdict->config.expect)
			verdict_doubt_settle(verdict, stream);
		else
			verdict_finish_own(verdict, stream);
		if (verdict->places)
			verdict_finish_expected(verdict, stream);
	}
}
