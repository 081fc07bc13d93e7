/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own frames: where a frame's number puts it.
 *
 * A number may belong to somebody else: a frame of an earlier run, or a forged one. So a lone frame
 * more than VERDICT_JUMP ahead of its stream is in doubt, counted as damaged ("stray"), until the
 * stream's next frame goes on from it, which proves that the frames between are lost. Two frames
 * that follow each other are believed at once. When the stream goes on where it was, the frame was
 * a stray. The same of a stream's first frame, when the next ones come from elsewhere.
 *
 * A sender that restarts sends frame 0 again, with another send time than the first one: a new
 * life of the stream begins, with numbers from 0, and what the life before it lacked stays lost. A
 * copy of frame 0 has its send time, and is a duplicate. Without a clock (send time 0), and where
 * frame 0 was not seen, it is a new life after the end-of-stream frame, and when it comes more than
 * VERDICT_JUMP late. A lone frame 0 is in doubt until a number follows that the life before already
 * has. Stragglers of the life before keep the doubt open: up to VERDICT_STRAGGLERS numbers behind its
 * newest, and numbers that are nearer to its newest than to 0 and that it lacks, or one copy. A new life is
 * believed, too, from two frames that follow each other SEQUENCE_WINDOW or more behind the newest: its
 * frame 0 was lost. A lone one there is a duplicate, and one more than VERDICT_JUMP before the first
 * that was seen is in doubt as those ahead are.
 *
 * Where the sender is ours (config.own_streams) it does not begin again.
 */
#include "verdict/verdict_internal.h"

/* When the sender sent this frame 0, ns since the Unix epoch; 0: it has no clock. */
static uint64_t birth_of(const struct frame_record *record)
{
	return (uint64_t)record->phase_first << 32 | record->detail;
}

/* Adds a record whose number is believed, or known to be a duplicate's. */
static void take(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		 const struct frame_record *record)
{
	const uint64_t duplicates = stream->duplicate;

	if (!verdict_stream_opens(verdict, queue, stream, record->count))
		return;
	if (record->sequence == 0 && !stream->born) {
		stream->born = true;
		stream->birth = birth_of(record);
	}
	if (record->verdict != FRAME_VALID)
		verdict_keep_damage(verdict, queue, record, record->sequence, true);
	verdict_add_readable(verdict, queue, stream, record, record->sequence);
	if (__builtin_expect(!stream->ended, 1))
		return;
	verdict->late_copies += stream->duplicate - duplicates;
	if (stream->sequence.next > stream->announced)
		verdict_end_void(verdict, stream);
}

static bool is_behind(const struct verdict_stream *stream, const struct frame_record *record)
{
	return record->sequence < stream->sequence.next;
}

/* Not too far from the newest to belong there. */
static bool is_near(const struct verdict *verdict, const struct verdict_stream *stream,
		    const struct frame_record *record)
{
	const uint64_t next = stream->sequence.next;

	if (!is_behind(stream, record))
		return record->sequence <= add_capped(next, VERDICT_JUMP);
	if (verdict->config.own_streams)
		return true;
	if (stream->alone || record->sequence < stream->sequence.first)
		return stream->sequence.first - record->sequence <= VERDICT_JUMP;
	return next - record->sequence < SEQUENCE_WINDOW;
}

/* Too far to be told from a duplicate (sequence.h). */
static bool is_old(const struct verdict_stream *stream, const struct frame_record *record)
{
	return is_behind(stream, record) &&
	       stream->sequence.next - record->sequence >= SEQUENCE_WINDOW;
}

/* The frame in doubt does not belong to what came after it. */
static void doubt_settle(struct verdict *verdict, struct verdict_stream *stream)
{
	const uint32_t queue = stream->doubt_queue;
	struct frame_record record;

	if (!stream->doubted || stream->doubt_restarts || !is_old(stream, &stream->doubt)) {
		verdict_doubt_settle(verdict, stream);
		return;
	}
	record = verdict_doubt_end(verdict, stream);
	take(verdict, queue, stream, &record);
}

/* The sender began again, if what follows says so too. */
static bool is_new_life(const struct verdict *verdict, const struct verdict_stream *stream,
			const struct frame_record *record)
{
	const bool may_be_stray = stream->alone && !stream->ended; /* what came before */

	if (verdict->config.own_streams || record->sequence != 0 || may_be_stray ||
	    stream->sequence.unique == 0)
		return false;
	if (stream->born && (stream->birth || birth_of(record)))
		return birth_of(record) != stream->birth;
	return stream->ended || (!stream->born && stream->sequence.next > VERDICT_JUMP);
}

/* Another number than the frame in doubt has, and near enough to belong to the same life. */
static bool goes_on(const struct verdict_stream *stream, const struct frame_record *record)
{
	const struct frame_record *doubt = &stream->doubt;

	if (!stream->doubted || record->sequence == doubt->sequence)
		return false;
	if (record->sequence > doubt->sequence)
		return record->sequence - doubt->sequence <= VERDICT_JUMP;
	return doubt->sequence - record->sequence <= VERDICT_JUMP;
}

static void life_begin(struct verdict *verdict, struct verdict_stream *stream, bool from_zero)
{
	stream->past_unique += stream->sequence.unique;
	stream->past_expected =
		add_capped(stream->past_expected, verdict_life_expected(verdict, stream));
	if (stream->ended)
		verdict_end_void(verdict, stream);
	sequence_restart(&stream->sequence, from_zero);
	if (verdict->ranges && stream->live)
		ranges_give_up(sequence_ranges(&stream->sequence));
	for (uint32_t q = 0; q < verdict->queue_count; q++)
		verdict->queues[q].next[stream - verdict->streams] = 0;
	stream->born = false;
	stream->alone = false;
	stream->restarts++;
	verdict->restarts++;
}

/* A record that is far from the newest, and yet to be believed. */
static void take_far(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		     const struct frame_record *record)
{
	const bool behind = is_behind(stream, record);

	if (stream->alone &&
	    (behind || record->sequence - stream->sequence.next >= SEQUENCE_WINDOW))
		verdict_first_undo(verdict, stream);
	else if (is_old(stream, record))
		life_begin(verdict, stream, false);
	stream->alone = false;
	take(verdict, queue, stream, record);
}

static void new_life(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		     const struct frame_record *record)
{
	/* After the end of the one before, nothing else is to be expected. */
	if (record->count == 1 && !stream->ended) {
		doubt_settle(verdict, stream);
		verdict_doubt_begin(verdict, queue, stream, record);
		stream->doubt_restarts = true;
		stream->doubt_copy = UINT64_MAX;
		stream->doubt_next = stream->sequence.next;
		return;
	}
	doubt_settle(verdict, stream);
	life_begin(verdict, stream, true);
	take(verdict, queue, stream, record);
}

static void doubt_confirm(struct verdict *verdict, struct verdict_stream *stream)
{
	const bool restarts = stream->doubt_restarts;
	const uint32_t queue = stream->doubt_queue;
	const struct frame_record record = verdict_doubt_end(verdict, stream);

	if (!restarts) {
		take_far(verdict, queue, stream, &record);
		return;
	}
	life_begin(verdict, stream, true);
	take(verdict, queue, stream, &record);
}

static void count_duplicate(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			    const struct frame_record *record)
{
	struct verdict_queue *q = &verdict->queues[queue];

	q->duplicate += record->count;
	stream->duplicate += record->count;
	verdict_count_record(q, stream, record);
}

/* Belongs to the life before the frame 0 in doubt, as far as numbers tell. */
static bool is_straggler(struct verdict_stream *stream, const struct frame_record *record)
{
	const uint64_t next = stream->sequence.next, number = record->sequence;

	if (number >= next)
		return number - stream->doubt_next < VERDICT_STRAGGLERS;
	if (next - number >= number || next - number > SEQUENCE_WINDOW ||
	    number < stream->sequence.first)
		return false;
	if (!sequence_seen(&stream->sequence, number))
		return true;
	if (record->count > 1 || stream->doubt_copy < number)
		return false;
	stream->doubt_copy = number;
	return true;
}

/* While a frame 0 is in doubt. False: the record is to be judged as any other. */
static bool add_in_doubt(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			 const struct frame_record *record)
{
	if (record->sequence == 0 && birth_of(record) == birth_of(&stream->doubt)) {
		if (record->count > 1)
			doubt_confirm(verdict, stream);
		else
			count_duplicate(verdict, queue, stream, record);
		return record->count == 1;
	}
	if (record->sequence == 0 ? !is_new_life(verdict, stream, record)
				  : is_straggler(stream, record)) {
		take(verdict, queue, stream, record);
		return true;
	}
	if (is_behind(stream, record) && goes_on(stream, record))
		doubt_confirm(verdict, stream);
	return false;
}

/* Neither near, nor right after the frame in doubt. */
static void add_far(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		    const struct frame_record *record)
{
	if (record->count > 1) {
		doubt_settle(verdict, stream);
		take_far(verdict, queue, stream, record);
		return;
	}
	doubt_settle(verdict, stream);
	verdict_doubt_begin(verdict, queue, stream, record);
}

/* A record up to 2^64 - 1, which is no sequence number: of its last frame, a stray, no bits count. */
static void add_to_the_last(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			    const struct frame_record *record)
{
	struct frame_record before = *record, last = *record;

	last.count = 1;
	last.sequence = UINT64_MAX;
	before.count--;
	before.bytes -= record->bytes / record->count;
	before.frame_bytes -= record->frame_bytes / record->count;
	if (before.count)
		verdict_add_own(verdict, queue, stream, &before);
	verdict_add_unreadable(verdict, queue, &last);
	verdict_keep_stray(verdict, queue, &last);
}

void verdict_add_own(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		     const struct frame_record *record)
{
	if (record->count > UINT64_MAX - record->sequence) {
		add_to_the_last(verdict, queue, stream, record);
		return;
	}
	if (!stream->sequence.started) {
		stream->alone = record->count == 1;
		stream->first = *record;
		stream->first_queue = queue;
		take(verdict, queue, stream, record);
		return;
	}
	if (stream->doubt_restarts && add_in_doubt(verdict, queue, stream, record))
		return;
	if (is_new_life(verdict, stream, record)) {
		new_life(verdict, queue, stream, record);
	} else if (is_near(verdict, stream, record)) {
		doubt_settle(verdict, stream);
		stream->alone = false;
		take(verdict, queue, stream, record);
	} else if (goes_on(stream, record)) {
		doubt_confirm(verdict, stream);
		take(verdict, queue, stream, record);
	} else {
		add_far(verdict, queue, stream, record);
	}
}

/* The last frame may stand alone after a loss: then its sender has announced it, or is ours. */
void verdict_finish_own(struct verdict *verdict, struct verdict_stream *stream)
{
	const bool announced = stream->ended && stream->doubt.sequence < stream->announced;

	if (!stream->doubted)
		return;
	if (!stream->doubt_restarts && !is_behind(stream, &stream->doubt) &&
	    (announced || verdict->config.own_streams))
		doubt_confirm(verdict, stream);
	else
		doubt_settle(verdict, stream);
}
