/* SPDX-License-Identifier: BSD-3-Clause */
/* From records to images. What is counted of them: assembler_counts.c. */
#include "image/assembler.h"

#include <errno.h>
#include <string.h>

#include "image/assembler_internal.h"

/* ---- buffers ---- */

static struct place_shared *shared_of(const struct assembler *assembler)
{
	return assembler->config.view->shared;
}

static void credits_add(struct assembler *assembler, uint32_t n)
{
	const uint32_t credits = atomic_load_explicit(&assembler->credits, memory_order_relaxed);

	/* ROOM (replay/file_room.h) */
	atomic_store_explicit(&assembler->credits, credits + n, memory_order_release);
}

/* To the workers. */
static void slot_give(struct assembler *assembler, uint32_t slot)
{
	assembler->slot[slot].state = ASSEMBLER_GIVEN;
	credits_add(assembler, 1);
	place_give(shared_of(assembler), slot);
}

bool assembler_drop_oldest(struct assembler *assembler)
{
	uint32_t slot;

	if (!image_ring_take(assembler->ring, &slot))
		return false;
	assembler_count_taken_back(assembler, &assembler->slot[slot]);
	slot_give(assembler, slot);
	return true;
}

/* From the caller. */
static void slots_take_back(struct assembler *assembler)
{
	uint32_t next;

	for (uint32_t top = image_ring_returned(assembler->ring); top; top = next) {
		next = image_ring_before(assembler->ring, top - 1);
		slot_give(assembler, top - 1);
	}
	/* Before a worker asks in vain: the latest is wanted, not the oldest. */
	while (assembler->config.drop_oldest &&
	       atomic_load_explicit(&assembler->credits, memory_order_relaxed) == 0)
		if (!assembler_drop_oldest(assembler))
			return;
}

/* ---- a stream's list ---- */

static void list_insert(struct assembler *assembler, struct assembler_stream *stream, uint32_t slot)
{
	struct assembler_slot *entry = &assembler->slot[slot];
	const uint64_t late = assembler->config.view->layout.late;
	uint32_t older = stream->newest, newer = ASSEMBLER_NONE;

	while (older != ASSEMBLER_NONE && assembler->slot[older].number > entry->number &&
	       assembler->slot[older].number - entry->number <= late) {
		newer = older;
		older = assembler->slot[older].older;
	}
	entry->older = older;
	entry->newer = newer;
	*(older == ASSEMBLER_NONE ? &stream->oldest : &assembler->slot[older].newer) = slot;
	*(newer == ASSEMBLER_NONE ? &stream->newest : &assembler->slot[newer].older) = slot;
	stream->listed++;
	assembler->listing |= (uint64_t)1 << entry->stream;
}

static struct assembler_slot *list_remove_oldest(struct assembler *assembler,
						 struct assembler_stream *stream)
{
	struct assembler_slot *entry = &assembler->slot[stream->oldest];

	stream->oldest = entry->newer;
	*(entry->newer == ASSEMBLER_NONE ? &stream->newest : &assembler->slot[entry->newer].older) =
		ASSEMBLER_NONE;
	if (--stream->listed == 0)
		assembler->listing &= ~((uint64_t)1 << entry->stream);
	return entry;
}

/* ---- entries of complete images ---- */

static void wholes_close(struct assembler *assembler)
{
	const struct assembler_config *config = &assembler->config;
	const int ret = config->close_whole(config->context, assembler->whole, assembler->wholes);

	assembler->wholes = 0;
	if (ret < 0)
		assembler->failure = ret;
}

static void wholes_add(struct assembler *assembler, uint64_t now,
		       const struct assembler_slot *entry)
{
	if (!assembler->wholes)
		assembler->whole_since = now;
	assembler->whole[assembler->wholes++] =
		(struct place_whole){ (uint32_t)(entry - assembler->slot), entry->use };
	if (assembler->wholes == PLACE_WHOLE_MAX)
		wholes_close(assembler);
}

/* ---- handing out ---- */

/* What the caller sees of it. */
static void image_fill_in(struct assembler *assembler, struct assembler_slot *entry)
{
	const struct assembler_config *config = &assembler->config;
	const struct place_view *view = config->view;
	const struct image_layout *layout = &view->layout;
	const uint32_t slot = (uint32_t)(entry - assembler->slot);
	const struct place_head *head = &view->shared->head[slot];
	const uint32_t expected = assembler_expected(assembler, entry);
	uint32_t *present = view->present_host + (size_t)slot * view->present_words;
	struct gdrcap_image *image = &entry->image;

	image->number = entry->number;
	image->stream_id = assembler->stream[entry->stream].id;
	image->stream = entry->stream;
	image->end = entry->end;
	image->data = config->data + (size_t)slot * view->stride;
	image->placed = image_in_buffer(layout, entry->bytes);
	image->pieces = expected;
	image->received = entry->pieces;
	image->present = present;
	image->bytes = layout->bytes;
	if (expected && (expected < layout->pieces || entry->last_bytes))
		image->bytes = image_piece_place(layout, expected - 1) +
			       (entry->last_bytes ? entry->last_bytes
						  : image_piece_bytes(layout, expected - 1));
	image->bytes = image_in_buffer(layout, image->bytes);
	image->first_time = entry->first;
	image->last_time = entry->last;
	if (config->time_ns) {
		image->last_time = config->time_ns(config->context, entry->last);
		image->first_time =
			image->last_time -
			(uint64_t)((double)(entry->last - entry->first) * config->ns_a_tick);
	}
	image->timestamp = __atomic_load_n(&head->timestamp, __ATOMIC_RELAXED);
	for (uint32_t f = 0; f < IMAGE_FIELDS_MAX; f++)
		image->fields[f] = __atomic_load_n(&head->fields[f], __ATOMIC_RELAXED);
	if (entry->end == GDRCAP_IMAGE_COMPLETE && entry->ones != expected) {
		image_bits_fill(present, view->present_words, expected);
		entry->ones = expected;
	}
}

/* The images that are done and that no older one holds up. */
static void stream_hand_out(struct assembler *assembler, uint64_t now,
			    struct assembler_stream *stream)
{
	while (stream->oldest != ASSEMBLER_NONE) {
		const uint32_t slot = stream->oldest;
		struct assembler_slot *entry = &assembler->slot[slot];
		bool dropped;

		if (assembler_is_closed(assembler, entry))
			assembler_note_closed(assembler, entry);
		if (entry->state != ASSEMBLER_DONE)
			return;
		list_remove_oldest(assembler, stream);
		assembler_move_window(assembler, entry);
		dropped = assembler_count_image(assembler, entry);
		if (dropped) {
			slot_give(assembler, slot);
			continue;
		}
		image_fill_in(assembler, entry);
		/* OUT */
		__atomic_store_n(&shared_of(assembler)->out[slot], entry->use, __ATOMIC_RELEASE);
		entry->image.skipped = stream->skipped;
		stream->skipped = 0;
		entry->state = ASSEMBLER_OUT;
		image_ring_offer(assembler->ring, slot);
		ring_wake_look(&assembler->ring->wake,
			       atomic_load_explicit(&assembler->ring->ready, memory_order_relaxed));
		if (entry->whole)
			wholes_add(assembler, now, entry);
	}
}

/* ---- records ---- */

/* The oldest have to go. */
static void stream_limit(struct assembler *assembler, struct assembler_stream *stream)
{
	const uint32_t open = assembler->config.open;
	uint32_t over = stream->listed > open ? stream->listed - open : 0;

	for (uint32_t slot = stream->oldest; over; slot = assembler->slot[slot].newer, over--)
		if (assembler->slot[slot].state == ASSEMBLER_OPEN)
			assembler_close(assembler, &assembler->slot[slot], GDRCAP_IMAGE_NEWER);
}

static void stream_look_by(struct assembler_stream *stream, uint64_t due)
{
	if (due < stream->due)
		stream->due = due;
}

static void image_begin(struct assembler *assembler, uint64_t came,
			const struct place_record *record)
{
	const struct place_head *head = &shared_of(assembler)->head[record->slot];
	struct assembler_slot *entry = &assembler->slot[record->slot];
	struct assembler_stream *stream = &assembler->stream[record->stream];

	*entry = (struct assembler_slot){
		.alien = assembler_is_alien(assembler, stream, head),
		.owner = entry->owner,
		.ones = entry->ones,
		.number = head->number,
		.first = came,
		.last = came,
		.first_record = assembler->records,
		.use = record->use,
		.stream = record->stream,
		.state = ASSEMBLER_OPEN,
	};
	credits_add(assembler, UINT32_MAX);
	stream->id = head->stream_id;
	entry->leads = stream->counts.begun++ == 0;
	/* A worker looked at the window before it was moved on. */
	entry->lost = stream->has_last && !stream->anew && entry->number <= stream->last &&
		      stream->last - entry->number <= assembler->config.view->layout.late;
	list_insert(assembler, stream, record->slot);
	/* in front of others it may hold up one that is complete */
	stream_look_by(stream, entry->newer == ASSEMBLER_NONE
				       ? came + assembler->config.timeout
				       : assembler_stream_due(assembler, stream));
	if (entry->lost)
		assembler_close(assembler, entry, GDRCAP_IMAGE_NEWER);
	stream_limit(assembler, stream);
}

/* It has all pieces, as far as is known. */
static void image_whole(struct assembler *assembler, uint64_t came, struct assembler_slot *entry)
{
	entry->behind = assembler_has_all(assembler);
	if (assembler_expected(assembler, entry) < assembler->config.view->layout.pieces ||
	    entry->short_at) {
		assembler_close(assembler, entry, GDRCAP_IMAGE_COMPLETE);
	} else {
		entry->end = GDRCAP_IMAGE_COMPLETE;
		entry->state = ASSEMBLER_DONE;
		entry->whole = 1;
	}
	assembler->found++;
	stream_hand_out(assembler, came, &assembler->stream[entry->stream]);
}

/* Only a sender's last piece may be short. One before others lacks its end; closing makes it a hole. */
static bool has_short_hole(const struct assembler_slot *entry)
{
	return entry->short_at && entry->past > entry->short_at;
}

static void image_add(struct assembler *assembler, uint64_t came, const struct place_record *record)
{
	struct assembler_slot *entry = &assembler->slot[record->slot];
	const bool brings = record->outcome == PLACE_PLACED || record->pieces;
	uint32_t expected;

	if (entry->state != ASSEMBLER_OPEN || entry->use != record->use)
		return;
	if (record->ends && !entry->ends) {
		entry->ends = 1;
		entry->ended = came;
		stream_look_by(&assembler->stream[entry->stream], came + assembler->config.linger);
	}
	if (record->expected > entry->said)
		entry->said = record->expected;
	if (record->past > entry->past)
		entry->past = record->past;
	if (record->outcome == PLACE_PLACED)
		entry->last_record = assembler->records;
	entry->short_at |= (uint32_t)record->number;
	/* bursts of several queues come in any order */
	if (brings && (int64_t)(came - entry->last) > 0)
		entry->last = came;
	if (brings && (int64_t)(came - entry->first) < 0)
		entry->first = came;
	entry->pieces += record->pieces;
	entry->frames += brings ? record->count : 0;
	entry->bytes += record->bytes;
	expected = assembler_expected(assembler, entry);
	if (expected && entry->pieces >= expected && !has_short_hole(entry))
		image_whole(assembler, came, entry);
}

static void stream_active(struct assembler *assembler, uint32_t s, uint64_t when)
{
	struct assembler_stream *stream = &assembler->stream[s];
	const uint64_t bit = (uint64_t)1 << s;

	if (!(assembler->active & bit) || (int64_t)(when - stream->active) > 0)
		stream->active = when;
	assembler->active |= bit;
}

/* What the frames are, of a record that is of an image or was. */
static uint32_t outcome_of(const struct assembler *assembler, uint64_t came,
			   const struct place_record *record)
{
	const struct assembler_config *config = &assembler->config;
	const struct assembler_slot *entry = &assembler->slot[record->slot];

	if (entry->use != record->use)
		return record->outcome;
	if (entry->alien && (record->outcome == PLACE_PLACED || record->outcome == PLACE_DUPLICATE))
		return PLACE_CONFLICT;
	if (config->dated && record->outcome == PLACE_DUPLICATE && entry->whole &&
	    (int64_t)(came - entry->last) > (int64_t)config->shut)
		return PLACE_LATE;
	return record->outcome;
}

void assembler_add(struct assembler *assembler, uint64_t came, const struct place_record *record)
{
	const bool image = (record->outcome == PLACE_PLACED || record->outcome == PLACE_DUPLICATE ||
			    record->outcome == PLACE_CONFLICT) &&
			   record->slot < assembler->config.view->ring &&
			   record->stream < PLACE_STREAMS_MAX;
	const struct assembler_slot *entry = &assembler->slot[image ? record->slot : 0];

	assembler->records++;
	/* of uses that are over, records may come late, by another queue */
	if (image && entry->state == ASSEMBLER_GIVEN && (int32_t)(record->use - entry->use) > 0)
		image_begin(assembler, came, record);
	assembler_count_frames(assembler, record,
			       image ? outcome_of(assembler, came, record) : record->outcome);
	if (((record->outcome == PLACE_PLACED && record->slot != PLACE_NO_SLOT) ||
	     record->outcome == PLACE_NO_ROOM) &&
	    record->stream < PLACE_STREAMS_MAX)
		stream_active(assembler, record->stream, came);
	if (record->outcome == PLACE_NO_ROOM)
		assembler_count_no_room(assembler, record);
	else if (image)
		image_add(assembler, came, record);
}

/* ---- rounds ---- */

static void stream_close_due(struct assembler *assembler, uint64_t now, uint64_t seen,
			     struct assembler_stream *stream)
{
	for (uint32_t slot = stream->oldest; slot != ASSEMBLER_NONE;
	     slot = assembler->slot[slot].newer) {
		struct assembler_slot *entry = &assembler->slot[slot];

		if (entry->state != ASSEMBLER_OPEN || !assembler_is_due(assembler, seen, entry))
			continue;
		assembler_close(assembler, entry, GDRCAP_IMAGE_TIMEOUT);
		stream_active(assembler, entry->stream, now);
	}
	stream->due = assembler_stream_due(assembler, stream);
}

/* True: an image is due by now, and not by what was seen. */
static bool stream_round(struct assembler *assembler, uint64_t now, uint64_t seen,
			 struct assembler_stream *stream)
{
	if (now > stream->due)
		stream_close_due(assembler, now, seen, stream);
	stream_hand_out(assembler, now, stream);
	return now > stream->due;
}

/* Of a stream that has no list. True: it was silent by now, and not by what was seen. */
static bool stream_forget(struct assembler *assembler, uint64_t now, uint64_t seen, uint32_t s)
{
	struct assembler_stream *stream = &assembler->stream[s];
	struct place_shared *shared = shared_of(assembler);

	if (!image_time_over(seen, stream->active, assembler->config.timeout))
		return image_time_over(now, stream->active, assembler->config.timeout);
	assembler->active &= ~((uint64_t)1 << s);
	stream->anew = true;
	stream->silences++;
	__atomic_store_n(&shared->window[s].last, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->window[s].forgotten, stream->silences, __ATOMIC_RELEASE);
	return false;
}

bool assembler_round(struct assembler *assembler, uint64_t now, uint64_t seen)
{
	bool waits = false;

	for (uint64_t left = assembler->listing; left; left &= left - 1)
		waits |= stream_round(assembler, now, seen,
				      &assembler->stream[__builtin_ctzll(left)]);
	for (uint64_t left = assembler->active & ~assembler->listing; left; left &= left - 1)
		waits |= stream_forget(assembler, now, seen, (uint32_t)__builtin_ctzll(left));
	if (assembler->wholes &&
	    (int64_t)(now - assembler->whole_since) >= (int64_t)assembler->config.shut)
		wholes_close(assembler);
	slots_take_back(assembler);
	/* who asked for the descriptor meanwhile */
	ring_wake_look(&assembler->ring->wake,
		       atomic_load_explicit(&assembler->ring->ready, memory_order_relaxed));
	return waits;
}

bool assembler_finish(struct assembler *assembler, uint64_t now)
{
	for (uint64_t left = assembler->listing; left; left &= left - 1) {
		struct assembler_stream *stream = &assembler->stream[__builtin_ctzll(left)];

		for (uint32_t slot = stream->oldest; slot != ASSEMBLER_NONE;
		     slot = assembler->slot[slot].newer)
			if (assembler->slot[slot].state == ASSEMBLER_OPEN)
				assembler_close(assembler, &assembler->slot[slot],
						GDRCAP_IMAGE_STOPPED);
	}
	(void)assembler_round(assembler, now, now);
	return assembler->listing == 0;
}

void assembler_end(struct assembler *assembler, uint64_t now)
{
	for (uint64_t left = assembler->listing; left; left &= left - 1) {
		struct assembler_stream *stream = &assembler->stream[__builtin_ctzll(left)];

		for (uint32_t slot = stream->oldest; slot != ASSEMBLER_NONE;
		     slot = assembler->slot[slot].newer) {
			struct assembler_slot *entry = &assembler->slot[slot];

			if (assembler_is_closed(assembler, entry))
				assembler_note_closed(assembler, entry);
			entry->lost |= entry->state != ASSEMBLER_DONE;
			entry->state = ASSEMBLER_DONE;
		}
	}
	(void)assembler_round(assembler, now, now);
	assembler_count_rest(assembler);
	image_ring_end(assembler->ring);
}

void assembler_init(struct assembler *assembler, const struct assembler_config *config,
		    struct image_ring *ring)
{
	memset(assembler, 0, sizeof(*assembler));
	assembler->config = *config;
	assembler->ring = ring;
	for (uint32_t s = 0; s < PLACE_STREAMS_MAX; s++) {
		assembler->stream[s].oldest = ASSEMBLER_NONE;
		assembler->stream[s].newest = ASSEMBLER_NONE;
		assembler->stream[s].due = UINT64_MAX;
	}
	for (uint32_t slot = 0; slot < config->view->ring; slot++)
		slot_give(assembler, slot);
}
