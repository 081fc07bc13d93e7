/* SPDX-License-Identifier: BSD-3-Clause */
/* A burst's payloads copied into images by CPU threads: what the CUDA kernels do. */
#include <string.h>

#include "kernels/frame_records.h"
#include "kernels/host/host_copies.h"
#include "kernels/host/host_workers.h"

#define HEADERS_AHEAD 8u /* frames */

/* The image that the last frames were of, in which the worker is (ENTER) if it is open. */
struct place_run {
	const struct place_view *view; /* NULL: none */
	uint64_t stream, number;       /* as the packets say */
	/* Of the last frame that was of the image, by which the next is known: image_source(), 0: none yet; and where
	 * it lies, if it is UDP over IPv4 without tags and options. */
	uint32_t source;
	const uint8_t *plain;
	struct place_target target;
	struct place_copies *copies;
};

static void table_lock(struct place_table *table)
{
	/* LOCK */
	for (uint32_t polls = 0; !place_take(&table->lock); polls++)
		host_idle(polls);
}

static uint32_t *slot_present(const struct place_view *view, uint32_t slot)
{
	return view->present + (size_t)slot * view->present_words;
}

/* 0: the packet's image is not open. */
static int image_find(const struct place_view *view, const struct image_packet *packet,
		      struct place_target *target)
{
	target->outcome = PLACE_PLACED;
	target->slot =
		place_find(view, packet->stream, packet->number, &target->stream, &target->use);
	return target->slot != PLACE_NO_SLOT;
}

/* Of an image that was not found: begins it, unless somebody did meanwhile. */
static void image_begin(const struct place_view *view, const uint8_t *frame, uint32_t len,
			const struct image_packet *packet, struct place_target *target)
{
	table_lock(view->table);
	if (image_find(view, packet, target))
		goto out;
	place_begin(view, packet, target);
	if (target->outcome == PLACE_PLACED) {
		memset(slot_present(view, target->slot), 0,
		       place_words(view->layout.pieces) * sizeof(uint32_t));
		place_open(view, target, frame, packet, image_source(frame, len, packet->ip));
	}
out:
	place_store(&view->table->lock, 0);
}

/* ---- records ---- */

/* Of the one frame at `index` of its burst, with `len` bytes; filtered until more is known. */
static struct place_record record_of(uint32_t index, uint32_t len)
{
	return (struct place_record){
		.outcome = PLACE_FILTERED,
		.slot = PLACE_NO_SLOT,
		.stream = PLACE_NO_STREAM,
		.frame_bytes = len,
		.count = 1,
		.first = (uint16_t)index,
	};
}

/* Where it goes, or why not. */
static void record_target(struct place_record *record, const struct place_target *target,
			  const struct image_packet *packet)
{
	record->outcome = (uint8_t)place_outcome_of(target, packet);
	record->stream = (uint16_t)target->stream; /* PLACE_NO_STREAM of PLACE_NO_SLOT */
	if (target->outcome == PLACE_NO_ROOM)
		record->number = target->number;
	if (target->outcome != PLACE_PLACED)
		return;
	record->slot = target->slot;
	record->use = target->use;
}

/* The packet was refused: image_refuse(). */
static void record_refuse(struct place_record *record, uint32_t outcome,
			  const struct image_packet *packet)
{
	record->outcome = (uint8_t)outcome;
	record->expected = packet->pieces;
	record->number = packet->number;
}

/* Adds the frame behind, of which `next` is; 0: it is not of the same image and outcome. */
static int record_join(struct place_record *record, const struct place_record *next)
{
	const int refused = record->outcome == PLACE_MISFIT || record->outcome == PLACE_FILTERED;

	if (record->outcome != next->outcome || record->layout != next->layout ||
	    (refused && record->expected != next->expected))
		return 0;
	if (!refused && record->outcome != PLACE_NO_ROOM)
		record->number |= next->number; /* of one image: 0, or the same */
	record->bytes += next->bytes;
	record->pieces += next->pieces;
	record->frame_bytes += next->frame_bytes;
	record->count++;
	record->ends |= next->ends;
	if (record->expected < next->expected)
		record->expected = next->expected;
	if (record->past < next->past)
		record->past = next->past;
	return 1;
}

/* ---- pieces ---- */

/* Pieces [from, to) of the part, counted from the part's first. */
static void pieces_copy(struct place_run *run, uint8_t *image, const uint8_t *frame,
			const struct image_part *part, uint32_t from, uint32_t to,
			struct place_record *record)
{
	const struct image_layout *layout = &run->view->layout;
	const uint32_t piece = layout->piece, at = from * piece;
	const uint32_t end = to < part->pieces ? to * piece : part->bytes;
	struct place_copies *copies = run->copies;

	if (copies->count == COPIES_MAX)
		copies_flush(copies);
	copies->copy[copies->count++] =
		(struct place_copy){ image + image_in_buffer(layout, part->place + at),
				     frame + part->from + at, end - at };
	record->bytes += end - at;
	record->pieces += to - from;
}

/* Claims the part's pieces; those that nobody had will be copied: all at once if all are new. */
static void part_place(struct place_run *run, const uint8_t *frame, const struct image_part *part,
		       struct place_record *record)
{
	const uint32_t words = place_span_words(part->piece, part->pieces);
	const uint32_t slot = run->target.slot;
	uint32_t *present = slot_present(run->view, slot);
	uint8_t *image = run->view->images + (size_t)slot * run->view->stride;
	uint32_t from = 0, to = 0; /* claimed, to be copied; counted from the part's first piece */
	uint32_t base, mask;

	if (part->pieces == 1) { /* of most formats' packets */
		if (place_claim(present, part->piece, 1, 0, &base))
			pieces_copy(run, image, frame, part, 0, 1, record);
		return;
	}
	for (uint32_t w = 0; w < words; w++) {
		mask = place_claim(present, part->piece, part->pieces, w, &base);
		while (mask) {
			const uint32_t first = (uint32_t)__builtin_ctz(mask);
			const uint32_t next = ~(mask >> first);
			const uint32_t count = next ? (uint32_t)__builtin_ctz(next) : 32;

			if (base + first - part->piece != to) {
				if (to > from)
					pieces_copy(run, image, frame, part, from, to, record);
				from = base + first - part->piece;
			}
			to = base + first - part->piece + count;
			mask = first + count < 32 ? mask & (UINT32_MAX << (first + count)) : 0;
		}
	}
	if (to > from)
		pieces_copy(run, image, frame, part, from, to, record);
}

/* place_claim_short() of the part, whose last piece is copied if it is this one's. */
static int short_place(struct place_run *run, const uint8_t *frame, const struct image_part *part,
		       struct place_record *record)
{
	const uint32_t slot = run->target.slot;
	const int claimed =
		place_claim_short(&run->view->table->slot[slot], slot_present(run->view, slot),
				  part->short_at, part->bytes % run->view->layout.piece);

	if (claimed > 0)
		pieces_copy(run, run->view->images + (size_t)slot * run->view->stride, frame, part,
			    part->pieces - 1, part->pieces, record);
	return claimed;
}

/* The only part of a packet, but for a short piece at its end, of which short_place() saw. */
static void only_place(struct place_run *run, const uint8_t *frame, const struct image_part *only,
		       struct place_record *record)
{
	struct image_part whole = *only;

	if (only->short_at)
		whole.bytes = --whole.pieces * run->view->layout.piece;
	if (whole.pieces)
		part_place(run, frame, &whole, record);
	record->past = only->piece + only->pieces;
}

/* All parts of a packet; `only`: its part, if it has one. Returns how many pieces it has. */
static uint32_t parts_place(struct place_run *run, const uint8_t *frame,
			    const struct image_packet *packet, const struct image_part *only,
			    struct place_record *record)
{
	struct image_packet rest;
	struct image_part part;
	uint32_t pieces = 0;

	if (packet->parts == 1) {
		only_place(run, frame, only, record);
		return only->pieces;
	}
	if (!packet->parts)
		return 0;
	rest = *packet;
	while (image_next_part(&run->view->layout, frame, &rest, &part) > 0) {
		part_place(run, frame, &part, record);
		pieces += part.pieces;
		if (record->past < part.piece + part.pieces)
			record->past = part.piece + part.pieces;
	}
	return pieces;
}

/* ---- images ---- */

static void run_end(struct place_run *run)
{
	if (run->view && run->target.outcome == PLACE_PLACED) {
		copies_flush(run->copies);
		place_leave(&run->view->table->slot[run->target.slot]);
	}
	run->view = NULL;
}

/* Finds the packet's image, or begins it, and enters: again where it was closed since. */
static void run_begin(struct place_run *run, const struct place_view *view, const uint8_t *frame,
		      uint32_t len, const struct image_packet *packet)
{
	struct place_target *target = &run->target;

	run->view = view;
	run->copies->convert = view->layout.convert;
	run->stream = packet->stream;
	run->number = packet->number;
	run->source = 0;
	run->plain = NULL;
	image_find(view, packet, target);
	for (uint32_t tries = 0; tries < PLACE_TRIES; tries++) {
		if (target->slot == PLACE_NO_SLOT)
			image_begin(view, frame, len, packet, target);
		if (target->outcome != PLACE_PLACED ||
		    place_enter(&view->table->slot[target->slot], target->use))
			return;
		target->slot = PLACE_NO_SLOT;
	}
	target->outcome = PLACE_LATE;
}

/* ---- frames ---- */

/* Whether every part of the packet lies in frame and image; *part: the last of them. Else it is refused. */
static int parts_fit(const struct image_layout *layout, const uint8_t *frame,
		     struct image_packet *packet, struct image_part *part)
{
	const uint32_t from = packet->from;
	int fits;

	do {
		fits = image_next_part(layout, frame, packet, part);
	} while (fits > 0);
	packet->part = 0;
	packet->from = from;
	return !fits;
}

/* COMPARE, of a packet of which pieces were there: what it is then. The run ends if its image was closed meanwhile. */
static uint32_t packet_compare(struct place_run *run, const uint8_t *frame,
			       const struct image_packet *packet)
{
	const struct place_view *view = run->view;
	struct place_slot *slot = &view->table->slot[run->target.slot];
	uint32_t outcome = PLACE_DUPLICATE, polls = 0;
	int still, equal;

	copies_flush(run->copies);
	if (host_place_equal(view, run->target.slot, frame, packet))
		return PLACE_DUPLICATE;
	place_turn(slot);
	do {
		still = place_is_still(slot);
		equal = host_place_equal(view, run->target.slot, frame, packet);
		if (!equal && !still)
			host_idle(polls++);
	} while (!equal && !still);
	if (!equal)
		outcome = place_differs(view, &run->target, frame, packet);
	if (!place_turn_back(slot, run->target.use))
		run->view = NULL;
	return outcome;
}

#define PLAIN_IP 14u /* bytes in front of the IP header */

/* Source MAC address, EtherType, IPv4 addresses and UDP source port are the same, and there are no options. */
static inline __attribute__((always_inline)) int plain_is(const uint8_t *a, const uint8_t *b)
{
	uint64_t mac[2], ip[2];
	uint16_t port[2];

	memcpy(&mac[0], a + 6, 8);
	memcpy(&mac[1], b + 6, 8);
	memcpy(&ip[0], a + PLAIN_IP + 12, 8);
	memcpy(&ip[1], b + PLAIN_IP + 12, 8);
	memcpy(&port[0], a + PLAIN_IP + 20, 2);
	memcpy(&port[1], b + PLAIN_IP + 20, 2);
	return !((mac[0] ^ mac[1]) | (ip[0] ^ ip[1]) | (uint64_t)(port[0] ^ port[1]) |
		 (uint64_t)(a[PLAIN_IP] ^ b[PLAIN_IP]));
}

/* Of a frame that is not known by the one before it. */
static __attribute__((noinline)) int source_look(struct place_run *run, const uint8_t *frame,
						 uint32_t len, const struct image_packet *packet)
{
	const struct place_view *view = run->view;
	const uint32_t source = image_source(frame, len, packet->ip);

	if (source != run->source &&
	    !place_source_fits(&view->table->slot[run->target.slot], view->layout.legs, source)) {
		place_note_conflict(view, &run->target, frame, packet, 0);
		return 0;
	}
	run->source = source;
	run->plain = packet->ip == PLAIN_IP && frame[PLAIN_IP] == 0x45 ? frame : NULL;
	return 1;
}

/* Whether the packet is of the image's sender, in which the run is. */
static inline int source_fits(struct place_run *run, const uint8_t *frame, uint32_t len,
			      const struct image_packet *packet)
{
	/* a frame in which UDP was found is long enough */
	if (run->plain && plain_is(run->plain, frame))
		return 1;
	return source_look(run, frame, len, packet);
}

/* A packet of the run's image; `only`: its part, if it has one. */
static void packet_place(struct place_run *run, const uint8_t *frame, struct image_packet *packet,
			 const struct image_part *only, struct place_record *record)
{
	const struct place_target *target = &run->target;
	uint32_t outcome = PLACE_PLACED;
	int short_came = 0;

	if (target->outcome == PLACE_PLACED &&
	    !source_fits(run, frame, record->frame_bytes, packet)) {
		record_target(record, target, packet);
		record->outcome = PLACE_CONFLICT;
		return;
	}
	if (target->outcome == PLACE_PLACED && packet->parts == 1 && only->short_at)
		short_came = short_place(run, frame, only, record);
	if (short_came < 0) {
		image_refuse(packet, IMAGE_MISFIT, IMAGE_WHY_PAYLOAD, only->bytes,
			     run->view->layout.piece);
		record_refuse(record, PLACE_MISFIT, packet);
		return;
	}
	record_target(record, target, packet);
	if (target->outcome != PLACE_PLACED)
		return;
	if (packet->what == IMAGE_BEGIN)
		place_describe(run->view, target->slot, frame, packet);
	if (parts_place(run, frame, packet, only, record) > record->pieces)
		outcome = packet_compare(run, frame, packet);
	if (outcome == PLACE_CONFLICT || !record->pieces)
		record->outcome = (uint8_t)outcome;
	if (outcome == PLACE_LATE) {
		record->slot = PLACE_NO_SLOT;
		record->use = 0;
	}
	if (packet->what == IMAGE_DATA && !record->pieces) {
		record->past = 0;
		return;
	}
	record->ends = (uint8_t)packet->ends;
	record->expected = packet->pieces;
	record->number = short_came ? only->short_at : 0;
}

/* By the first layout that does not filter the frame; returns that one's view. */
static const struct place_view *packet_parse(const struct host_work *work, const uint8_t *frame,
					     uint32_t len, struct image_packet *packet)
{
	for (uint32_t v = 0; v < work->place_count; v++) {
		image_parse(&work->places[v].layout, frame, len, packet);
		if (packet->what != IMAGE_FILTERED)
			return &work->places[v];
	}
	return NULL;
}

/* What becomes of the frame at `index` of the burst; 1: it is of another image than the one before. */
static int frame_judge(const struct burst_ring_view *ring, const struct host_work *work,
		       struct frame_desc desc, uint32_t index, struct place_run *run,
		       struct place_record *record)
{
	const uint8_t *frame = frame_at(ring, desc);
	const struct place_view *view;
	struct image_packet packet;
	struct image_part part;
	int another;

	*record = record_of(index, desc.len);
	if (!frame) { /* of which layout, nobody can read */
		image_refuse(&packet, IMAGE_MISFIT, IMAGE_WHY_UNREADABLE, 0, 0);
		record_refuse(record, PLACE_MISFIT, &packet);
		return 0;
	}
	view = packet_parse(work, frame, desc.len, &packet);
	if (!view) {
		record_refuse(record, PLACE_FILTERED, &packet);
		return 0;
	}
	record->layout = (uint32_t)(view - work->places);
	if (packet.what != IMAGE_MISFIT && (desc.offset & FRAME_DESC_CUT))
		image_refuse(&packet, IMAGE_MISFIT, IMAGE_WHY_CUT, desc.len, 0);
	if (packet.what == IMAGE_MISFIT || !parts_fit(&view->layout, frame, &packet, &part)) {
		record_refuse(record, PLACE_MISFIT, &packet);
		return 0;
	}
	another = run->view != view || run->stream != packet.stream || run->number != packet.number;
	if (another) {
		run_end(run);
		run_begin(run, view, frame, desc.len, &packet);
	}
	packet_place(run, frame, &packet, &part, record);
	return another;
}

/* Asks for the headers of the frame at `index`, if there is one. */
static void headers_fetch(const struct burst_ring_view *ring, uint64_t ready, uint32_t index)
{
	const uint8_t *frame;

	if (index >= burst_frames(ready))
		return;
	frame = frame_at(ring, ring->desc[(burst_word_first(ready) + index) & ring->desc_mask]);
	if (!frame)
		return;
	__builtin_prefetch(frame);
	__builtin_prefetch(frame + AHEAD_LINE);
}

uint32_t host_burst_place(const struct burst_ring_view *ring, const struct host_work *work,
			  uint64_t burst, uint64_t ready)
{
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	struct place_copies copies;
	struct place_run run = { .copies = &copies };
	struct place_record record, next;
	uint32_t records = 0;

	copies.count = 0;
	for (uint32_t i = 0; i < HEADERS_AHEAD; i++)
		headers_fetch(ring, ready, i);
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		int another;

		headers_fetch(ring, ready, i + HEADERS_AHEAD);
		another = frame_judge(ring, work, desc, i, &run, &next);
		if (i && !another && record_join(&record, &next))
			continue;
		if (i)
			memcpy(record_at(ring, first, records++), &record, sizeof(record));
		record = next;
	}
	run_end(&run);
	if (count)
		memcpy(record_at(ring, first, records++), &record, sizeof(record));
	return records;
}
