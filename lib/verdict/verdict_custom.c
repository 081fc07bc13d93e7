/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a custom layout: from what is on the wire to frame numbers. */
#include "verdict/verdict_internal.h"
#include "verdict/verdict_phase.h"

/* A number of the sequence field's width, as the nearest to 0 that it can mean. */
static int64_t field_signed(const struct frame_field *field, uint64_t value)
{
	const uint32_t unused = field->bytes < 8 ? 64u - 8u * field->bytes : 0;

	return (int64_t)(value << unused) >> unused;
}

/* Frames from one raw number to another; false: no whole number of steps. */
static bool frames_between(const struct frame_custom *custom, uint64_t from, uint64_t to,
			   int64_t *frames)
{
	const int64_t way = field_signed(&custom->sequence, to - from);
	int64_t step = field_signed(&custom->sequence, custom->sequence_step);

	if (step == 0)
		step = 1;
	if (step == -1) {
		*frames = (int64_t)(0 - (uint64_t)way);
		return way != INT64_MIN;
	}
	*frames = way / step;
	return way % step == 0;
}

static uint64_t number_moved(uint64_t number, int64_t by)
{
	const uint64_t size = by < 0 ? -(uint64_t)by : (uint64_t)by;

	if (by < 0)
		return size < number ? number - size : 0;
	return size < UINT64_MAX - number ? number + size : UINT64_MAX;
}

/* Adds a record whose number is believed. */
static void take(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		 const struct frame_record *record, uint64_t number)
{
	const uint64_t before = record->count ? record->count - 1u : 0;

	/* The largest number is none (sequence.h). */
	if ((!stream->numbered || number + before > stream->number) &&
	    before < UINT64_MAX - number) {
		stream->number = number + before;
		stream->raw =
			record->sequence + before * verdict->config.layout->custom.sequence_step;
		stream->numbered = true;
	}
	if (record->verdict != FRAME_VALID)
		verdict_keep_damage(verdict, queue, record, record->sequence, true);
	if (verdict->phases)
		verdict_phase_follow(verdict, stream, record, number);
	verdict_add_readable(verdict, queue, stream, record, number);
}

/* Adds a record that is far from the newest, or not where its phase says, and yet to be believed. */
static void take_far(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		     const struct frame_record *record, bool contradicts)
{
	const int64_t window = SEQUENCE_WINDOW;
	uint64_t number = VERDICT_FIRST_NUMBER;
	int64_t by;
	bool whole;

	whole = frames_between(&verdict->config.layout->custom, stream->raw, record->sequence, &by);
	if (stream->alone && (contradicts || !whole || by > window || by <= -window))
		verdict_first_undo(verdict, stream);
	else /* other numbers: nobody knows what was lost between */
		number = number_moved(stream->number, whole ? by : 1);
	stream->alone = false;
	take(verdict, queue, stream, record, number);
}

/* The record goes on from the frame in doubt, which was right then. */
static void doubt_confirm(struct verdict *verdict, struct verdict_stream *stream, bool contradicts)
{
	const uint32_t queue = stream->doubt_queue;
	const struct frame_record record = verdict_doubt_end(verdict, stream);

	take_far(verdict, queue, stream, &record, contradicts);
}

/* `near`: as the very next. */
static bool goes_on(const struct frame_custom *custom, const struct verdict_stream *stream,
		    const struct frame_record *record, bool near)
{
	int64_t by;

	if (!stream->doubted ||
	    !frames_between(custom, stream->doubt.sequence, record->sequence, &by))
		return false;
	if (near)
		return by == 1;
	return by != 0 && by <= (int64_t)VERDICT_JUMP && by >= -(int64_t)VERDICT_JUMP;
}

static void add_numbered(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			 const struct frame_record *record)
{
	const struct frame_custom *custom = &verdict->config.layout->custom;
	bool contradicts = false, near;
	uint64_t number;
	int64_t by;

	if (!stream->numbered) {
		stream->alone = record->count == 1;
		stream->first = *record;
		stream->first_queue = queue;
		take(verdict, queue, stream, record, VERDICT_FIRST_NUMBER);
		return;
	}
	near = frames_between(custom, stream->raw, record->sequence, &by) &&
	       by <= (int64_t)VERDICT_JUMP && by > -(int64_t)SEQUENCE_WINDOW;
	if (near) {
		number = number_moved(stream->number, by);
		contradicts = verdict->phases &&
			      verdict_phase_contradicts(verdict, stream, record, number);
	}
	if (near && !contradicts) {
		verdict_doubt_settle(verdict, stream);
		stream->alone = false;
		take(verdict, queue, stream, record, number);
		return;
	}
	if (goes_on(custom, stream, record, contradicts)) {
		doubt_confirm(verdict, stream, contradicts);
		take_far(verdict, queue, stream, record, false);
	} else if (record->count > 1) {
		verdict_doubt_settle(verdict, stream);
		take_far(verdict, queue, stream, record, false);
	} else {
		if (verdict->phases && verdict_phase_is_next(stream, record))
			verdict_phase_take_next(stream, record);
		verdict_doubt_settle(verdict, stream);
		verdict_doubt_begin(verdict, queue, stream, record);
	}
}

void verdict_add_custom(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			const struct frame_record *record)
{
	uint64_t number;

	if (verdict->config.layout->custom.sequence.bytes) {
		add_numbered(verdict, queue, stream, record);
		return;
	}
	if (record->verdict != FRAME_VALID)
		verdict_keep_damage(verdict, queue, record, record->sequence, true);
	if (verdict->phases)
		number = verdict_phase_number(verdict, stream, record);
	else /* nothing tells one frame from the other */
		number = stream->sequence.started ? stream->sequence.next : VERDICT_FIRST_NUMBER;
	verdict_add_readable(verdict, queue, stream, record, number);
}
