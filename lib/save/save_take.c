/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accountant's side: which frames of finished bursts are wanted, and their way into the bounce
 * buffer. No frame is read here: gather() copies them.
 */
#include "save/save_internal.h"

#include <stdio.h>

#include "kernels/frame_records.h"

/* Held back for frames that are still to come: of a queue's slots one in this many at most. */
#define HELD_ONE_IN 4u
/* Copies for the file of damaged frames that are made even when the accountant is behind: so few
 * between two flushes cost nothing, and they are what somebody looks for. */
#define BEHIND_COPIES 64u

static uint64_t frame_number_of(const struct save_queue *queue, uint32_t index)
{
	/* Near what was shown last, on either side. */
	return queue->shown +
	       (uint64_t)(int64_t)(int32_t)(index - queue->base - (uint32_t)queue->shown);
}

/* Frames whose slots are out of the port's hands, published last to first held. */
static uint32_t queue_waiting(const struct save_queue *queue, const struct ring_producer *ring)
{
	const uint64_t last = atomic_load_explicit(&ring->published, memory_order_relaxed) - 1;
	const uint64_t word = __atomic_load_n(&ring->ready[(uint32_t)last & ring->burst_mask].word,
					      __ATOMIC_RELAXED);
	uint64_t end = queue->shown;

	/* Only a number is taken from the word, so nothing is ordered. It may not be that burst's:
	 * the counter can be seen before it. */
	if (burst_word_is(word, last, ring->burst_bits) && last + 1 > queue->seen)
		end = frame_number_of(queue, burst_word_first(word) + burst_word_count(word));
	return (uint32_t)(end - queue->kept);
}

static bool queue_is_behind(const struct save *save, uint32_t index)
{
	return !save->patient &&
	       queue_waiting(&save->queues[index], save->rings[index]) >= save->slots / 2;
}

static void file_missed(struct save *save, struct save_queue *queue, enum save_index file)
{
	queue->dropped[file]++;
	queue->missed[file]++;
	counter_add(&save->files[file].missed, 1);
}

static struct save_record *listed_at(const struct save_bounce *bounce, uint64_t at)
{
	return (struct save_record *)(void *)(bounce->base + (at & (bounce->bytes - 1)));
}

/* So many bytes from `filled` on are the accountant's. */
static bool bounce_has(struct save_bounce *bounce, uint64_t bytes)
{
	if (bounce->filled + bytes - bounce->room <= bounce->bytes)
		return true;
	/* ROOM: the writer has read what was there. */
	bounce->room = atomic_load_explicit(&bounce->tail, memory_order_acquire);
	return bounce->filled + bytes - bounce->room <= bounce->bytes;
}

/* A record of this many bytes, or NULL: there is no room. */
static struct save_record *bounce_take(struct save_bounce *bounce, uint32_t bytes)
{
	const uint64_t to_end = bounce->bytes - (bounce->filled & (bounce->bytes - 1));
	const uint64_t need = bytes <= to_end ? bytes : to_end + bytes;
	struct save_record *record;

	if (!bounce_has(bounce, need))
		return NULL;
	if (bytes > to_end) {
		record = listed_at(bounce, bounce->filled);
		record->bytes = (uint32_t)to_end;
		record->kind = SAVE_SKIP;
		bounce->filled += to_end;
	}
	record = listed_at(bounce, bounce->filled);
	record->bytes = bytes;
	record->kind = SAVE_FRAME;
	bounce->filled += bytes;
	return record;
}

/* What was listed cannot be copied: it was not taken after all. */
static void list_failed(struct save *save, int error)
{
	struct save_bounce *bounce = &save->bounce;
	const uint64_t from = atomic_load_explicit(&bounce->head, memory_order_relaxed);

	for (uint64_t at = from; at != bounce->filled;) {
		const struct save_record *record = listed_at(bounce, at);

		at += record->bytes;
		if (record->kind == SAVE_SKIP)
			continue;
		for (unsigned int f = 0; f < SAVE_FILES; f++)
			if (record->files & 1u << f)
				file_missed(save, &save->queues[record->queue], (enum save_index)f);
	}
	bounce->filled = from;
	save->broken = true;
	snprintf(save->gather_text, sizeof(save->gather_text), "%s", kernel_error());
	/* The text before the code. Partner: the acquire loads in save.c. */
	atomic_store_explicit(&save->gather_error, error, memory_order_release);
}

static void list_flush(struct save *save)
{
	struct save_bounce *bounce = &save->bounce;
	int ret = 0;

	if (save->listed)
		ret = save->ops->gather(save->device, save->copies, save->listed);
	save->listed = 0;
	if (ret < 0) {
		list_failed(save, ret);
		return;
	}
	/* HAND_OVER: records and frames before the number. Partner: save_writer_run(). */
	atomic_store_explicit(&bounce->head, bounce->filled, memory_order_release);
}

/* The files that this one can go to; the others miss it. */
static unsigned int files_open(struct save *save, struct save_queue *queue, unsigned int files,
			       bool possible)
{
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];

		if (!(files & 1u << f))
			continue;
		queue->wanted[f]++;
		if (possible && !atomic_load_explicit(&file->error, memory_order_relaxed))
			continue;
		file_missed(save, queue, (enum save_index)f);
		files &= ~(1u << f);
	}
	return files;
}

/* A frame in the ring: addresses are the device's, which the CPU must not follow. */
struct save_source {
	struct frame_pieces pieces;
	uint32_t length; /* of the frame in memory */
	bool known;	 /* it is all there, and nothing more: not of one that did not fit */
};

static void source_find(const struct ring_producer *ring, uint32_t at, struct save_source *source)
{
	const struct frame_desc desc = ring->desc[at];
	const struct frame_desc head =
		ring->head_desc ? ring->head_desc[at] : (struct frame_desc){ 0 };

	source->known = frame_pieces(&ring->view, desc, head, &source->pieces) &&
			!frame_pieces_cut(desc, head);
	source->length = frame_pieces_len(desc, head);
}

static void copy_list(struct save *save, const uint8_t *from, uint8_t *to, uint32_t bytes)
{
	if (bytes)
		save->copies[save->listed++] =
			(struct kernel_copy){ .from = from, .to = to, .bytes = bytes };
}

/* A frame's pieces, one behind the other. Room for two is always left in the list, so that what is
 * handed over is whole. */
static void source_list(struct save *save, const struct save_source *source,
			struct save_record *record)
{
	const struct frame_pieces *pieces = &source->pieces;
	const uint32_t head =
		pieces->head_len < record->captured ? pieces->head_len : record->captured;
	uint8_t *to = (uint8_t *)(record + 1);

	copy_list(save, pieces->head, to, head);
	copy_list(save, pieces->rest, to + head, record->captured - head);
	if (save->listed > KERNEL_COPIES_MAX - 2)
		list_flush(save);
}

/* Lists frame `number` of a queue for `files`. `found` is NULL for one that is not damaged. */
static void frame_take(struct save *save, uint32_t index, uint64_t number, unsigned int files,
		       int32_t distance, const struct frame_record *found)
{
	struct save_queue *queue = &save->queues[index];
	const struct ring_producer *ring = save->rings[index];
	const uint32_t at = (queue->base + (uint32_t)number) & ring->desc_mask;
	struct save_record *record = NULL;
	struct save_source source;
	bool behind = queue->behind;
	uint32_t captured;

	source_find(ring, at, &source);
	captured = source.length < save->frame_max ? source.length : save->frame_max;
	if ((files & 1u << SAVE_DAMAGED) && save->listed < BEHIND_COPIES)
		behind = false;
	/* Of a frame that did not fit its slot nobody knows the length: it is missed. */
	files = files_open(save, queue, files,
			   !save->broken && !behind && number >= queue->kept && source.known);
	if (!files)
		return;
	record = bounce_take(&save->bounce, save_record_bytes(captured));
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		if (!(files & 1u << f))
			continue;
		if (!record) {
			file_missed(save, queue, (enum save_index)f);
			continue;
		}
		record->dropped[f] = queue->dropped[f];
		queue->dropped[f] = 0;
	}
	if (!record)
		return;
	record->files = (uint16_t)files;
	record->queue = index;
	record->distance = distance;
	record->captured = captured;
	record->length = source.length;
	record->ticks = ring->tsc[at];
	if (found)
		record->found = *found;
	else
		record->found.verdict = FRAME_VALID;
	source_list(save, &source, record);
}

/* The next frame: 1 << SAVE_ALL when it is an n-th. */
static unsigned int all_next(struct save *save, struct save_queue *queue)
{
	if (--queue->until)
		return 0;
	queue->until = save->every;
	return 1u << SAVE_ALL;
}

/* `count` frames from `number` that are not damaged. */
static void take_clean(struct save *save, uint32_t index, uint64_t number, uint64_t count)
{
	struct save_queue *queue = &save->queues[index];

	for (; count; number++, count--) {
		unsigned int files;
		int32_t distance = 0;

		if (!queue->after) {
			/* Most frames are of no interest, and pass in one step. */
			const uint64_t pass = queue->until - 1 < count ? queue->until - 1 : count;

			queue->until -= pass;
			number += pass;
			count -= pass;
			if (!count)
				return;
		}
		files = all_next(save, queue);
		if (queue->after) {
			files |= 1u << SAVE_DAMAGED;
			distance = (int32_t)(save->around - queue->after + 1);
			queue->after--;
			queue->next = number + 1;
		}
		if (files)
			frame_take(save, index, number, files, distance, NULL);
	}
}

/* A damaged frame, and before it those that led to it. */
static void take_damaged(struct save *save, uint32_t index, uint64_t number,
			 const struct frame_record *found)
{
	struct save_queue *queue = &save->queues[index];
	unsigned int files = all_next(save, queue);

	if (save->files[SAVE_DAMAGED].path) {
		uint64_t n = number > save->around ? number - save->around : 0;

		for (n = n > queue->next ? n : queue->next; n < number; n++)
			frame_take(save, index, n, 1u << SAVE_DAMAGED, -(int32_t)(number - n),
				   NULL);
		queue->next = number + 1;
		queue->after = save->around;
		files |= 1u << SAVE_DAMAGED;
	}
	if (files)
		frame_take(save, index, number, files, 0, found);
}

/* Nothing of a file is waited for: its writer has failed, or it is the end and the writer is stuck. */
static bool writer_is_lost(struct save *save, const struct ring_producer *ring)
{
	const uint64_t progress = save_writer_progress(save);
	bool writes = false;

	for (unsigned int f = 0; f < SAVE_FILES; f++)
		writes |= save->files[f].path &&
			  !atomic_load_explicit(&save->files[f].error, memory_order_relaxed);
	if (!writes)
		return true;
	if (progress != save->progress ||
	    !atomic_load_explicit(&ring->ended, memory_order_relaxed)) {
		save->progress = progress;
		patience_begin(&save->patience);
	}
	return patience_ends(&save->patience, save->stall_ms, save_writer_is_starved, save);
}

bool save_has_room(struct save *save, uint32_t index)
{
	const bool room = !save->patient || save->broken ||
			  bounce_has(&save->bounce, save->burst_bytes) ||
			  writer_is_lost(save, save->rings[index]);

	if (room == save_is_full(save))
		atomic_store_explicit(&save->full, !room, memory_order_relaxed);
	return room;
}

void save_burst(struct save *save, uint32_t index, uint64_t burst)
{
	const struct ring_producer *ring = save->rings[index];
	const uint32_t slot = (uint32_t)burst & ring->burst_mask;
	const uint64_t word = ring->ready[slot].word;
	const uint32_t first = burst_word_first(word), count = burst_frames(word);
	struct save_queue *queue = &save->queues[index];
	uint32_t records = burst_records(&ring->view, burst), at = 0;
	struct frame_record plain;
	uint64_t number;

	if (!queue->started) {
		queue->started = true;
		queue->base = first;
		queue->held = burst;
	}
	number = frame_number_of(queue, first);
	if (number > queue->shown) {
		/* A queue was started again behind frames that nobody has: none of them can be taken. */
		if (queue->next < number)
			queue->next = number;
		if (queue->held == burst)
			queue->kept = number;
	}
	queue->shown = number + count;
	queue->seen = burst + 1;
	queue->behind = queue_is_behind(save, index);
	for (uint32_t r = 0; r < records && r < count; r++) {
		const struct frame_record *found =
			record_read(&ring->view, burst, first, r, &plain);
		uint32_t end;

		if (!frame_is_damaged(found->verdict) || found->first < at || found->first >= count)
			continue;
		end = found->first + found->count < count ? (uint32_t)found->first + found->count
							  : count;
		take_clean(save, index, number + at, found->first - at);
		for (at = found->first; at < end; at++)
			take_damaged(save, index, number + at, found);
	}
	take_clean(save, index, number + at, count - at);
}

/* Bursts whose frames are all below `number` may go back. */
static void queue_release(struct save_queue *queue, const struct ring_producer *ring,
			  uint64_t number)
{
	for (; queue->held != queue->seen; queue->held++) {
		const uint64_t word = ring->ready[(uint32_t)queue->held & ring->burst_mask].word;
		const uint64_t end =
			frame_number_of(queue, burst_word_first(word) + burst_frames(word));

		if (end > number)
			return;
		queue->kept = end;
	}
}

/* True when all bursts that there will ever be were shown. */
static bool queue_has_ended(const struct save_queue *queue, const struct ring_producer *ring)
{
	/* Stored after the last PUBLISH: the count is then the last. Partner: rx_loop(). */
	return atomic_load_explicit(&ring->ended, memory_order_acquire) &&
	       atomic_load_explicit(&ring->published, memory_order_relaxed) == queue->seen;
}

/* What may go back after all that is listed was copied. */
static void queue_hold(struct save *save, uint32_t index)
{
	struct save_queue *queue = &save->queues[index];
	const struct ring_producer *ring = save->rings[index];
	uint64_t needed = queue->shown > save->around ? queue->shown - save->around : 0;

	if (needed < queue->next)
		needed = queue->next;
	if (!save->files[SAVE_DAMAGED].path || save->broken || queue_is_behind(save, index) ||
	    queue_has_ended(queue, ring) ||
	    atomic_load_explicit(&ring->wants_all, memory_order_relaxed))
		needed = queue->shown;
	queue_release(queue, ring, needed);
	if (queue->shown - queue->kept > save->slots / HELD_ONE_IN)
		queue_release(queue, ring, queue->shown);
}

void save_flush(struct save *save)
{
	if (atomic_load_explicit(&save->bounce.head, memory_order_relaxed) != save->bounce.filled)
		list_flush(save);
	for (uint32_t q = 0; q < save->queue_count; q++)
		if (save->queues[q].held != save->queues[q].seen)
			queue_hold(save, q);
}

uint64_t save_hold(const struct save *save, uint32_t index, uint64_t through)
{
	const struct save_queue *queue = &save->queues[index];

	if (save->ended || !queue->started || queue->held > through)
		return through;
	return queue->held;
}

void save_end(struct save *save)
{
	save_flush(save);
	save->ended = true;
}
