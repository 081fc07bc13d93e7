/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placing: how workers find the image that a frame belongs to, begin one, and write into none that is no
 * longer theirs. What the CPU backend and the CUDA kernels share; each copies in its own way.
 *
 * The table of open images lies in the device's memory, and only its workers write it. It has an entry
 * for each image buffer of the ring, so it cannot run over. Buffers come from the CPU and go back to it by
 * words in pinned memory (struct place_shared), which a worker reads once an image.
 *
 * Orderings of an entry: kernels/place_slot.h. Others, by name:
 *
 * LOCK: over beginning an image; acquire and release. Nobody waits for the lock while he is inside an entry, and
 * who has it waits only for those inside: so all get on.
 * BITS: a piece belongs to who set its bit, by a relaxed fetch-or: nothing else is read by it. So a bit that is set
 * does not say that the bytes are there. Only place_claim_short() clears one: its own, of a packet that is a misfit.
 * OUT: place_shared.out, release, before an image is offered: its bytes are the caller's to change then. Who finds a
 * difference reads it behind a fence, acquire.
 */
#ifndef GDRCAP_PLACE_H
#define GDRCAP_PLACE_H

#include "kernels/place_slot.h"
#include "pattern/image_parse.h"

#define PLACE_STREAMS_MAX 64u
#define PLACE_RING_MAX 1024u /* image buffers */
#define PLACE_NO_SLOT UINT32_MAX
#define PLACE_NO_STREAM 0xffffu
#define PLACE_NO_ROOMS 16u  /* images of a stream, at most, whose packets are mixed */
#define PLACE_TRIES 8u	    /* a frame's image is looked for so often */
#define PLACE_WHOLE_MAX 64u /* in one kernel_ops.place_close_whole() */

/* What became of a frame. Leaders and trailers are placed, with 0 bytes, also those of an image that was handed out. */
enum place_outcome {
	PLACE_PLACED,
	PLACE_DUPLICATE, /* all of its pieces were there */
	PLACE_CONFLICT,	 /* it is of another sender than its image, or other bytes were there */
	PLACE_LATE,	 /* it brings data, and its image was handed out, or a newer one is */
	PLACE_NO_ROOM, /* no buffer was free when its image began, or there are too many streams */
	PLACE_MISFIT,  /* of the layout, and wrong: enum image_what */
	PLACE_FILTERED,
	PLACE_OUTCOMES
};

/*
 * Neighbouring frames of a burst with one outcome and one image: a record of the burst ring, in
 * struct frame_record's place. 48 bytes. Writer: consumer.
 */
struct place_record {
	/* Of an image: image_part.short_at of one that a frame brought. No room: the image's, extended. Misfit,
	 * filtered: two values. Else 0 */
	uint64_t number;
	uint32_t bytes;	 /* placed */
	uint32_t pieces; /* placed */
	uint32_t
		slot; /* image buffer of what is placed, duplicate or a conflict; PLACE_NO_SLOT: none */
	uint32_t use; /* which use of the buffer; 0: none */
	uint32_t
		expected; /* pieces that the image has, the most that a frame said; 0: none did. Misfit,
			    * filtered: enum image_why */
	uint32_t frame_bytes;
	uint16_t count, first; /* frames; index in the burst of the first */
	uint16_t stream;       /* index; PLACE_NO_STREAM: none */
	uint8_t outcome;       /* enum place_outcome */
	uint8_t ends;	       /* 1: one was the sender's last */
	uint32_t layout; /* index of the view; 0 of frames that are filtered, or out of reach */
	/* Placed: the last piece that one of the frames had, + 1: a sender that says fewer is wrong. */
	uint32_t past;
};

struct place_stream {
	uint64_t id;
	uint64_t newest; /* extended number of the newest that came, with a buffer or without */
	uint64_t
		most; /* the highest ever: `newest` goes back where workers are further apart than `late` */
	/* The last images that came, in turn: extended numbers of those without a buffer. */
	uint64_t no_room[PLACE_NO_ROOMS];
	uint64_t forgotten; /* the window's, of these */
	uint32_t no_rooms;  /* bit i: no_room[i] is one */
	uint32_t turn;	    /* the next in no_room[] */
	uint32_t has_newest;
	uint32_t conflict; /* 1: its first one is noted; writers: workers */
	uint32_t reserved;
};

/* In the device's memory; zeroed at start. */
struct place_table {
	uint32_t lock;	  /* LOCK */
	uint32_t streams; /* that there are; with the lock */
	uint64_t taken;	  /* buffers taken since the start; with the lock */
	struct place_stream stream[PLACE_STREAMS_MAX];
	struct place_slot slot[PLACE_RING_MAX];
};

/* What a worker says of the image that it began. Writers: workers, before OPEN and, with what a leader
 * says, before DONE. Reader: the assembler, after COLLECT. */
struct place_head {
	uint64_t number; /* extended */
	uint64_t stream_id, timestamp, fields[IMAGE_FIELDS_MAX];
	uint32_t stream; /* index */
	uint32_t use;
	struct image_sender sender; /* of its first frame */
};

/* A stream's first conflict. Writer: the worker that found it. */
struct place_conflict {
	uint64_t number;		   /* of the image, on the wire */
	struct image_sender first, second; /* the image's, the frame's */
	uint32_t bytes;			   /* 1: they differ; 0: the senders do */
	uint32_t noted;			   /* release, after the rest: 1 */
};

/* Pinned host memory. Writer of the first two: the assembler. */
struct place_shared {
	/* Buffers given, in turn: credit n is entry n % PLACE_RING_MAX, the slot, and above it
	 * n / PLACE_RING_MAX + 1, by which who takes it knows that it is there: place_give(). */
	uint64_t credit[PLACE_RING_MAX];
	uint64_t given; /* so many; the assembler's own */
	uint64_t out
		[PLACE_RING_MAX]; /* OUT: the buffer's use that was handed out last. Writer: the assembler */
	struct {
		uint64_t last;	    /* number of the newest image that was closed, + 1; 0: none */
		uint64_t forgotten; /* times that the stream was silent, and may begin anew */
	} window[PLACE_STREAMS_MAX];
	struct place_head head[PLACE_RING_MAX];
	struct place_conflict conflict[PLACE_STREAMS_MAX];
	/* Of images that were closed with pieces missing: kernel_ops.place_close(). Writer: the device. */
	struct {
		uint32_t use;	 /* release, after the rest: of which use this is */
		uint32_t pieces; /* that were there */
		uint64_t bytes;
		uint32_t last_bytes; /* of the last piece, if that one is short and there; else 0 */
		uint32_t reserved;
	} closed[PLACE_RING_MAX];
};

/* What workers place with: addresses are the device's. By value. */
struct place_view {
	struct image_layout layout;
	struct place_table *table;
	struct place_shared *shared;
	uint8_t *images;   /* buffer i begins at images + i * stride */
	uint32_t *present; /* bitmap i begins at present + i * present_words */
	uint64_t stride;
	/* Pinned host memory, laid out as `present`: bitmaps of closed images. Writer: place_close(). */
	uint32_t *present_host;
	uint32_t present_words;
	uint32_t ring; /* buffers */
};

GDRCAP_HD uint32_t place_words(uint32_t pieces)
{
	return (pieces + 31) / 32;
}

/* The open entry of an image, or PLACE_NO_SLOT. */
GDRCAP_HD uint32_t place_find(const struct place_view *view, uint64_t stream_id, uint64_t number,
			      uint32_t *stream, uint32_t *use)
{
	for (uint32_t s = 0; s < view->ring; s++)
		if (place_slot_is(&view->table->slot[s], stream_id, number, stream, use))
			return s;
	return PLACE_NO_SLOT;
}

/* The stream's index; PLACE_NO_SLOT: it has none yet. */
GDRCAP_HD uint32_t place_find_stream(const struct place_view *view, uint64_t id)
{
	const uint32_t streams = place_load(&view->table->streams);

	for (uint32_t s = 0; s < streams; s++)
		if (place_load_relaxed(&view->table->stream[s].id) == id)
			return s;
	return PLACE_NO_SLOT;
}

/* The number that `number` means, nearest to the newest of its stream. */
GDRCAP_HD uint64_t place_extend(const struct image_layout *layout,
				const struct image_packet *packet,
				const struct place_stream *stream)
{
	const uint64_t modulus = packet->modulus, k = packet->number - layout->number_first;
	uint64_t newest, at;

	if (!modulus || !stream->has_newest)
		return packet->number;
	newest = stream->newest - layout->number_first;
	at = newest - newest % modulus + k;
	if (at > newest && at - newest > modulus / 2 && at >= modulus)
		at -= modulus;
	else if (newest > at && newest - at > modulus / 2)
		at += modulus;
	return at + layout->number_first;
}

/* What `packet` says of its image, for whom it will be handed to: nothing, where leaders say it and this
 * is none. */
GDRCAP_HD void place_describe(const struct place_view *view, uint32_t slot, image_frame frame,
			      const struct image_packet *packet)
{
	const struct image_layout *layout = &view->layout;
	const int says = packet->what == IMAGE_BEGIN ||
			 (layout->parser != IMAGE_PARSER_GVSP &&
			  (!layout->kind.bytes || layout->kind_begin == UINT64_MAX));
	struct place_head *head = &view->shared->head[slot];
	uint64_t value = 0;

	if (!says || !layout->timestamp.bytes ||
	    !image_field_value(&layout->timestamp, packet, frame, &value))
		value = 0;
	head->timestamp = value;
	for (uint32_t f = 0; f < IMAGE_FIELDS_MAX; f++) {
		if (!says || !layout->fields[f].bytes ||
		    !image_field_value(&layout->fields[f], packet, frame, &value))
			value = 0;
		head->fields[f] = value;
	}
}

/* Index of the stream, which is begun if there is room; PLACE_NO_SLOT: there is none. With the lock. */
GDRCAP_HD uint32_t place_stream_of(const struct place_view *view, uint64_t id)
{
	struct place_table *table = view->table;
	uint32_t s = place_find_stream(view, id);

	if (s != PLACE_NO_SLOT || table->streams == PLACE_STREAMS_MAX)
		return s;
	s = table->streams;
	table->stream[s].id = id;
	table->stream[s].has_newest = 0;
	table->stream[s].no_rooms = 0;
	place_store(&table->streams, s + 1);
	return s;
}

/* Where a frame goes. */
struct place_target {
	uint64_t number; /* extended, of an image that was not found open */
	uint32_t stream; /* index */
	uint32_t slot, use;
	uint32_t outcome; /* PLACE_PLACED: slot and use say where */
};

/* Of a frame of this target, before its pieces are claimed. */
GDRCAP_HD uint32_t place_outcome_of(const struct place_target *target,
				    const struct image_packet *packet)
{
	if (target->outcome == PLACE_LATE && packet->what != IMAGE_DATA)
		return PLACE_PLACED;
	return target->outcome;
}

/* Whether the image is one of the last that came, and found no buffer: it stays without, so that none
 * begins in its middle. With the lock. */
GDRCAP_HD int place_had_no_room(const struct place_view *view, uint32_t s, uint64_t number)
{
	const struct place_stream *stream = &view->table->stream[s];

	if (!stream->no_rooms)
		return 0;
	for (uint32_t i = 0; i < PLACE_NO_ROOMS; i++)
		if ((stream->no_rooms >> i & 1) && stream->no_room[i] == number)
			return place_load_system(&view->shared->window[s].forgotten) ==
			       stream->forgotten;
	return 0;
}

/*
 * Without the lock, of an image that place_find() does not find: whether place_begin() would refuse it, and what
 * for. So that who has many such frames waits for the bus beside others, and not one after the other. What it
 * reads may change meanwhile; then it says what was so a moment ago, or nothing.
 */
GDRCAP_HD int place_refused(const struct place_view *view, const struct image_packet *packet,
			    struct place_target *target)
{
	const uint32_t s = place_find_stream(view, packet->stream);
	const struct place_stream *stream = &view->table->stream[s == PLACE_NO_SLOT ? 0 : s];
	const uint32_t no_rooms = place_load_relaxed32(&stream->no_rooms);
	struct place_stream seen;
	uint64_t last;

	seen.has_newest = place_load_relaxed32(&stream->has_newest);
	seen.newest = place_load_relaxed(&stream->newest);
	if (s == PLACE_NO_SLOT || !seen.has_newest)
		return 0;
	target->number = place_extend(&view->layout, packet, &seen);
	target->stream = s;
	target->slot = PLACE_NO_SLOT;
	target->outcome = PLACE_NO_ROOM;
	for (uint32_t i = 0; i < PLACE_NO_ROOMS; i++)
		if ((no_rooms >> i & 1) &&
		    place_load_relaxed(&stream->no_room[i]) == target->number)
			return place_load_system(&view->shared->window[s].forgotten) ==
			       place_load_relaxed(&stream->forgotten);
	if (target->number > seen.newest)
		return 0;
	last = place_load_system(&view->shared->window[s].last);
	target->outcome = PLACE_LATE;
	return last && target->number < last && last - 1 - target->number <= view->layout.late;
}

/* One more that came; `room`: it has a buffer. With the lock. */
GDRCAP_HD void place_came(const struct place_view *view, const struct place_target *target,
			  int room)
{
	struct place_stream *stream = &view->table->stream[target->stream];
	const uint32_t bit = 1u << stream->turn;

	if (!stream->has_newest || target->number > stream->newest ||
	    stream->newest - target->number > view->layout.late)
		stream->newest = target->number;
	if (!stream->has_newest || target->number > stream->most)
		stream->most = target->number;
	stream->has_newest = 1;
	stream->no_rooms &= ~bit;
	if (!room) {
		const uint64_t forgotten =
			place_load_system(&view->shared->window[target->stream].forgotten);

		if (stream->forgotten != forgotten)
			stream->no_rooms = 0;
		stream->forgotten = forgotten;
		stream->no_room[stream->turn] = target->number;
		stream->no_rooms |= bit;
	}
	stream->turn = (stream->turn + 1) % PLACE_NO_ROOMS;
}

/*
 * With the lock, of an image that place_find() does not find, by who has the lock already. PLACE_PLACED:
 * the entry is the caller's; he empties the bitmap and calls place_open().
 */
GDRCAP_HD void place_begin(const struct place_view *view, const struct image_packet *packet,
			   struct place_target *target)
{
	struct place_table *table = view->table;
	const struct place_stream *stream;
	struct place_slot *slot;
	uint64_t last, credit;

	target->outcome = PLACE_NO_ROOM;
	target->slot = PLACE_NO_SLOT;
	target->number = packet->number;
	target->stream = place_stream_of(view, packet->stream);
	if (target->stream == PLACE_NO_SLOT)
		return;
	stream = &table->stream[target->stream];
	target->number = place_extend(&view->layout, packet, stream);
	if (place_had_no_room(view, target->stream, target->number))
		return;
	/* what is newer than all that came is not behind what was closed; the rest is asked over the bus */
	last = stream->has_newest && target->number <= stream->most
		       ? place_load_system(&view->shared->window[target->stream].last)
		       : 0;
	if (last && target->number < last && last - 1 - target->number <= view->layout.late) {
		target->outcome = PLACE_LATE;
		return;
	}
	credit = place_load_system(&view->shared->credit[table->taken % PLACE_RING_MAX]);
	if (credit >> 32 != (uint32_t)(table->taken / PLACE_RING_MAX + 1)) {
		place_came(view, target, 0);
		return;
	}
	place_came(view, target, 1);
	table->taken++;
	target->slot = (uint32_t)credit;
	slot = &table->slot[target->slot];
	place_close(slot);
	place_store_relaxed32(&slot->stream, target->stream);
	place_store_relaxed(&slot->stream_id, packet->stream);
	place_store_relaxed(&slot->number, packet->number);
	place_store_relaxed(&slot->short_piece, 0);
	place_store_relaxed32(&slot->leg, 0);
	target->use = ++slot->uses ? slot->uses : ++slot->uses; /* never 0 */
	target->outcome = PLACE_PLACED;
}

/* OPEN, with the lock: the bitmap is empty. `frame` is the image's first, of this image_source(). */
GDRCAP_HD void place_open(const struct place_view *view, const struct place_target *target,
			  image_frame frame, const struct image_packet *packet, uint32_t source)
{
	struct place_head *head = &view->shared->head[target->slot];
	struct image_sender sender;

	head->number = target->number;
	head->stream_id = packet->stream;
	head->stream = target->stream;
	head->use = target->use;
	place_describe(view, target->slot, frame, packet);
	image_sender_read(frame, packet->end, &sender);
	head->sender = sender;
	place_store_relaxed32(&view->table->slot[target->slot].source, source);
	place_add64(&view->table->slot[target->slot].word, (uint64_t)target->use << 32);
}

/* By who is inside: notes the stream's first conflict, between the image's sender and the frame's. */
GDRCAP_HD void place_note_conflict(const struct place_view *view, const struct place_target *target,
				   image_frame frame, const struct image_packet *packet,
				   uint32_t bytes)
{
	struct place_conflict *conflict = &view->shared->conflict[target->stream];

	if (place_load_relaxed32(&view->table->stream[target->stream].conflict) ||
	    place_cas32(&view->table->stream[target->stream].conflict, 0, 1))
		return;
	conflict->number = packet->number;
	conflict->bytes = bytes;
	conflict->first = view->shared->head[target->slot].sender;
	image_sender_read(frame, packet->end, &conflict->second);
	place_store_system(&conflict->noted, 1);
}

/* What a frame is whose bytes are not those that are there: a conflict, unless the caller may have changed these. */
GDRCAP_HD uint32_t place_differs(const struct place_view *view, const struct place_target *target,
				 image_frame frame, const struct image_packet *packet)
{
	place_fence();
	if (place_load_system(&view->shared->out[target->slot]) == target->use)
		return PLACE_LATE;
	place_note_conflict(view, target, frame, packet, 1);
	return PLACE_CONFLICT;
}

/*
 * Sets the bits of pieces [first, first + count) in word `w` of those that they lie in, 0 ..
 * place_span_words(). Returns the ones that this call set, as a mask; *base: bit 0's piece.
 */
GDRCAP_HD uint32_t place_span_words(uint32_t first, uint32_t count)
{
	return (first + count - 1) / 32 - first / 32 + 1;
}

GDRCAP_HD uint32_t place_claim(uint32_t *present, uint32_t first, uint32_t count, uint32_t w,
			       uint32_t *base)
{
	const uint32_t word = first / 32 + w, end = first + count;
	uint32_t mask = UINT32_MAX;

	*base = word * 32;
	if (*base < first)
		mask &= UINT32_MAX << (first - *base);
	if (end - *base < 32)
		mask &= ~(UINT32_MAX << (end - *base));
	return mask & ~place_or(&present[word], mask);
}

/*
 * By who is inside, of a part whose last piece is short: 1: that piece is his; 0: somebody had it; -1: another one is
 * short, and nothing is claimed. Only the sender's last packet can be so: of two, the layout's `piece` is larger than
 * what packets bring, and the second is a misfit. Else an image with a hole behind each packet would pass for whole.
 */
GDRCAP_HD int place_claim_short(struct place_slot *slot, uint32_t *present, uint32_t short_at,
				uint32_t bytes)
{
	uint64_t before = 0;
	uint32_t base;

	if (!place_claim(present, short_at - 1, 1, 0, &base))
		return 0;
	if (place_cas64(&slot->short_piece, &before, place_short_word(short_at, bytes)))
		return 1;
	place_and(&present[(short_at - 1) / 32], ~((uint32_t)1 << (short_at - 1) % 32));
	return -1;
}

/* The assembler, one thread at a time: buffer `slot` may be taken. */
static inline void place_give(struct place_shared *shared, uint32_t slot)
{
	const uint64_t given = shared->given++;

	/* release: what was read of the image comes before it is another one */
	__atomic_store_n(&shared->credit[given % PLACE_RING_MAX],
			 (given / PLACE_RING_MAX + 1) << 32 | slot, __ATOMIC_RELEASE);
}

#ifdef __cplusplus
static_assert(sizeof(struct place_record) == 48, "a record of the burst ring");
#else
_Static_assert(sizeof(struct place_record) == 48, "a record of the burst ring");
#endif

#endif
