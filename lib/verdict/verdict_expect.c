/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames expected from a file. What a record says is contents: the class of its first frame, and that
 * each next frame has the content that follows the class's first frame in the file. Here it becomes
 * frame numbers: place n is frame n % count of the file, played again and again, and place 0 the
 * first frame that counts as sent, so that loss at the head is seen.
 *
 * The place of a record is the one nearest to the expected one (the place after the newest frame seen)
 * where the file has the record's contents, ahead when both are as near. Of a file played more than
 * once a loss of more than half of it may thus look like frames sent twice. Where a content is
 * repeated in the file, PLACES_TRIED places of the record's first frame are tried; the one where most
 * of the record agrees is taken, and the rest of the record is looked for from there.
 *
 * A frame out of place must not carry the others away. A record of one frame that is ahead of the
 * expected place is in doubt, and the expected place stays, until its queue's next record shows which
 * of the two the stream goes on from; records of several frames are believed at once. Records that are
 * behind, or that go on from neither, show nothing. A frame in doubt that the stream did not go on
 * from is early: it keeps its place, and turns out a duplicate when the place's own frame comes.
 * Until then, frames that wait count as sent and received (stream->ahead), but have no number. At
 * the end, one still in doubt is believed in the loop that was being played; others, and those in
 * the next loop, are second or late copies of what lies behind. The first loop has nothing behind it;
 * there an early frame stays what it is.
 */
#include "verdict/verdict_internal.h"
#include "verdict/verdict_places.h"

/* Counts a frame that has no number (yet), or takes that back. */
static void count_alone(struct verdict *verdict, const struct waiting *frame, bool take_back)
{
	struct verdict_queue *q = &verdict->queues[frame->queue];
	struct verdict_stream *stream = frame->stream;
	const bool valid = frame->record.verdict == FRAME_VALID;
	const uint64_t by = take_back ? UINT64_MAX : 1; /* unsigned: adding it subtracts one */

	stream->received += by;
	stream->ahead += by;
	verdict->unique += by;
	*(valid ? &stream->valid : &stream->damaged) += by;
	*(valid ? &q->valid : &q->damaged) += by;
	stream->bytes += by * frame->record.frame_bytes;
	stream->bits_checked += by * 8 * frame->record.bytes;
	stream->bits_wrong += by * frame->record.wrong_bits;
	q->bits_checked += by * 8 * frame->record.bytes;
	q->bits_wrong += by * frame->record.wrong_bits;
}

/* A second copy of a frame that has no number yet. */
static void count_copy(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		       const struct frame_record *record)
{
	struct verdict_queue *q = &verdict->queues[queue];

	stream->received++;
	stream->duplicate++;
	q->duplicate++;
	stream->bytes += record->frame_bytes;
	stream->bits_checked += 8ull * record->bytes;
	stream->bits_wrong += record->wrong_bits;
	q->bits_checked += 8ull * record->bytes;
	q->bits_wrong += record->wrong_bits;
}

static struct waiting waiting_end(struct verdict *verdict, uint32_t slot)
{
	struct verdict_places *places = verdict->places;
	const struct waiting frame = places->waiting[slot];

	places->place[slot] = PLACE_NONE;
	count_alone(verdict, &frame, true);
	return frame;
}

/* Its place is right. */
static void waiting_believe(struct verdict *verdict, uint32_t slot)
{
	const uint64_t place = verdict->places->place[slot];
	const struct waiting frame = waiting_end(verdict, slot);
	uint64_t *next = &verdict->queues[frame.queue].next[frame.stream - verdict->streams];

	/* Of frames that changed places some are late. Those it overtook have been counted as in
	 * order, so it is this one. */
	if (frame.early && *next <= place)
		*next = place + 1;
	verdict_add_readable(verdict, frame.queue, frame.stream, &frame.record, place);
}

/* It is a second or late copy of what lies behind, or one too many. */
static void waiting_behind(struct verdict *verdict, uint32_t slot)
{
	const struct waiting frame = waiting_end(verdict, slot);
	uint64_t place;

	if (place_behind(verdict, frame.stream->sequence.next, (uint32_t)frame.record.sequence,
			 &place))
		verdict_add_readable(verdict, frame.queue, frame.stream, &frame.record, place);
	else
		count_copy(verdict, frame.queue, frame.stream, &frame.record);
}

/* The stream's frame that waits for the lowest place, of the first `slots`. False: none waits. */
static bool waiting_first(const struct verdict_places *places, const struct verdict_stream *stream,
			  uint32_t slots, uint32_t *slot)
{
	uint64_t lowest = PLACE_NONE;

	for (uint32_t i = 0; i < slots; i++)
		if (places->place[i] < lowest && places->waiting[i].stream == stream) {
			lowest = places->place[i];
			*slot = i;
		}
	return lowest != PLACE_NONE;
}

/* The place of an early frame is given to the one that comes in time, so it has to be past. At the
 * end it may be the next, but not the first of another loop. */
static bool place_has_come(const struct verdict *verdict, const struct verdict_stream *stream,
			   uint32_t slot, bool end)
{
	const uint64_t place = verdict->places->place[slot], next = stream->sequence.next;

	if (!verdict->places->waiting[slot].early || (end && place % verdict->config.expect->count))
		return place <= next;
	return place < next;
}

/* Believes the frames whose place has come. */
static void waiting_reached(struct verdict *verdict, const struct verdict_stream *stream, bool end)
{
	struct verdict_places *places = verdict->places;
	uint32_t slot;

	if (places->lowest > stream->sequence.next)
		return;
	while (waiting_first(places, stream, places->slots, &slot) &&
	       place_has_come(verdict, stream, slot, end))
		waiting_believe(verdict, slot);
	places->lowest = PLACE_NONE;
	for (uint32_t i = 0; i < places->slots; i++)
		if (places->place[i] < places->lowest)
			places->lowest = places->place[i];
}

/* The stream did not go on from the queue's frame in doubt. */
static void doubt_to_early(struct verdict *verdict, uint32_t queue)
{
	struct verdict_places *places = verdict->places;
	uint32_t empty = 0;

	for (uint32_t i = verdict->queue_count; i < places->slots; i++) {
		if (places->place[i] == places->place[queue] &&
		    places->waiting[i].stream == places->waiting[queue].stream) {
			const struct waiting copy = waiting_end(verdict, queue);

			count_copy(verdict, queue, copy.stream, &copy.record);
			return;
		}
		if (places->place[i] == PLACE_NONE && !empty)
			empty = i;
	}
	if (!empty) {
		waiting_behind(verdict, queue);
		return;
	}
	places->waiting[empty] = places->waiting[queue];
	places->waiting[empty].early = true;
	places->place[empty] = places->place[queue];
	places->place[queue] = PLACE_NONE;
}

static void doubt_begin(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			const struct frame_record *record, uint64_t place)
{
	struct verdict_places *places = verdict->places;

	if (places->place[queue] != PLACE_NONE)
		doubt_to_early(verdict, queue);
	places->waiting[queue] = (struct waiting){
		.stream = stream,
		.record = *record,
		.queue = queue,
	};
	places->place[queue] = place;
	if (place < places->lowest)
		places->lowest = place;
	count_alone(verdict, &places->waiting[queue], false);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* What a queue's next record says of its frame in doubt. True: it is another copy of that frame, and
 * has been counted. */
static bool doubt_look(struct verdict *verdict, uint32_t queue, const struct frame_record *record)
{
	struct verdict_stream *stream = verdict->places->waiting[queue].stream;
	const uint64_t doubt = verdict->places->place[queue], old = stream->sequence.next;
	uint32_t old_count = record->count, new_count = record->count;
	const uint64_t from_old = place_of(verdict, old, (uint32_t)record->sequence, &old_count);
	const uint64_t from_new =
		place_of(verdict, doubt + 1, (uint32_t)record->sequence, &new_count);
	bool believed = distance(from_new, doubt + 1) < distance(from_old, old);

	if (new_count != old_count)
		believed = new_count > old_count;
	else if (from_new == doubt + 1) /* and maybe from the old place too, but not a loop on */
		believed = doubt + 1 - old < verdict->config.expect->count || from_old != old;
	if (!believed) {
		if (from_old == old)
			doubt_to_early(verdict, queue);
		return false;
	}
	if (record->count == 1 && from_new == doubt) {
		count_copy(verdict, queue, stream, record);
		return true;
	}
	waiting_believe(verdict, queue);
	return false;
}

/* The record's contents become numbers. */
static void add_placed(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		       const struct frame_record *record)
{
	const struct frame_store_view *store = verdict->config.expect;
	uint32_t class = (uint32_t)record->sequence, left = record->count;
	struct frame_record part = *record;

	while (left) {
		uint32_t count = left;
		const uint64_t place = place_of(verdict, stream->sequence.next, class, &count);

		part.count = (uint16_t)count;
		if (record->verdict != FRAME_VALID)
			verdict_keep_damage(verdict, queue, record, place % store->count, true);
		if (record->count == 1 && place > stream->sequence.next) {
			doubt_begin(verdict, queue, stream, record, place);
			return;
		}
		verdict_add_readable(verdict, queue, stream, &part, place);
		/* The sums are the whole record's: they are counted once. */
		part.bytes = 0;
		part.frame_bytes = 0;
		part.wrong_bits = 0;
		left -= count;
		while (left && count--)
			class = class_after(store, class);
	}
}

/* The first record of all begins with the file's last frame, and goes on with its first ones: rather
 * than all of a loop, that one frame is out of place. */
static bool begins_early(const struct verdict *verdict, const struct verdict_stream *stream,
			 const struct frame_record *record)
{
	uint32_t count = record->count;

	return record->count > 1 && stream->sequence.next == 0 &&
	       verdict->config.expect->count > 1 &&
	       place_of(verdict, 0, (uint32_t)record->sequence, &count) + 1 ==
		       verdict->config.expect->count &&
	       count > 1;
}

static void add_early(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		      struct frame_record *record)
{
	const struct frame_store_view *store = verdict->config.expect;
	struct frame_record first = *record;

	/* The sums stay with the rest. */
	first.count = 1;
	first.bytes = 0;
	first.frame_bytes = 0;
	first.wrong_bits = 0;
	doubt_begin(verdict, queue, stream, &first, store->count - 1u);
	doubt_to_early(verdict, queue);
	record->count--;
	record->sequence = class_after(store, (uint32_t)record->sequence);
}

bool verdict_add_expected(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_record *record)
{
	const struct frame_store_view *store = verdict->config.expect;
	const struct verdict_places *places = verdict->places;
	struct frame_record rest;

	if (record->sequence >= store->count ||
	    store->frames[record->sequence].class_first != record->sequence)
		return false;
	if (places->place[queue] != PLACE_NONE && places->waiting[queue].stream == stream &&
	    record->count && doubt_look(verdict, queue, record)) {
		if (record->verdict != FRAME_VALID)
			verdict_keep_damage(verdict, queue, record, record->sequence, true);
		return true;
	}
	rest = *record;
	if (begins_early(verdict, stream, record))
		add_early(verdict, queue, stream, &rest);
	add_placed(verdict, queue, stream, &rest);
	waiting_reached(verdict, stream, false);
	return true;
}

void verdict_finish_expected(struct verdict *verdict, struct verdict_stream *stream)
{
	const uint64_t period = verdict->config.expect->count;
	struct verdict_places *places = verdict->places;
	uint32_t slot;

	while (waiting_first(places, stream, verdict->queue_count, &slot)) {
		const uint64_t next = stream->sequence.next;

		if (places->place[slot] / period == (next ? next - 1 : 0) / period)
			waiting_believe(verdict, slot);
		else
			waiting_behind(verdict, slot);
		waiting_reached(verdict, stream, true);
	}
	waiting_reached(verdict, stream, true);
	for (slot = verdict->queue_count; slot < places->slots; slot++) {
		const struct waiting *frame = &places->waiting[slot];
		uint64_t place;

		if (places->place[slot] != PLACE_NONE && frame->stream == stream &&
		    place_behind(verdict, stream->sequence.next, (uint32_t)frame->record.sequence,
				 &place))
			waiting_behind(verdict, slot);
	}
}

static void stream_whole(struct verdict *verdict, struct verdict_stream *stream)
{
	const uint64_t period = verdict->config.expect->count;
	uint32_t slot = 0;
	uint64_t over;

	verdict_finish_expected(verdict, stream);
	if (stream->sequence.unique == 0)
		return;
	/* Those of the first loop that came before their place: all places have come now. */
	while (waiting_first(verdict->places, stream, verdict->places->slots, &slot))
		waiting_believe(verdict, slot);
	verdict->whole = true;
	if (stream->ended && stream->announced >= stream->sequence.next)
		return;
	over = stream->sequence.next % period;
	verdict_end_stream(verdict, stream,
			   add_capped(stream->sequence.next, over ? period - over : 0));
}

void verdict_expect_whole(struct verdict *verdict)
{
	if (!verdict->config.expect)
		return;
	for (uint32_t i = 0; i < verdict->stream_count; i++)
		stream_whole(verdict, &verdict->streams[i]);
}
