/* SPDX-License-Identifier: BSD-3-Clause */
/* What the assembler counts: frames, images, pieces, and the numbers that were skipped. */
#include <errno.h>
#include <string.h>

#include "image/assembler_internal.h"

uint32_t assembler_expected(const struct assembler *assembler, const struct assembler_slot *entry)
{
	const struct image_layout *layout = &assembler->config.view->layout;

	if (entry->said)
		return entry->said > entry->past ? entry->said : entry->past;
	return layout->known ? layout->pieces : 0;
}

static void count_refused(struct assembler *assembler, const struct place_record *record)
{
	const uint32_t why = record->expected < IMAGE_WHYS ? record->expected : IMAGE_WHY_NONE;
	const bool misfit = record->outcome == PLACE_MISFIT;

	if (!assembler->refused[misfit][why].frames)
		assembler->refused[misfit][why].values = record->number;
	assembler->refused[misfit][why].frames += record->count;
}

int assembler_refused(const struct assembler *assembler, uint32_t *at,
		      struct gdrcap_refused *refused)
{
	for (; *at < 2 * IMAGE_WHYS; ++*at) {
		const uint32_t misfit = *at < IMAGE_WHYS, why = *at % IMAGE_WHYS;

		if (!assembler->refused[misfit][why].frames)
			continue;
		refused->reason = image_why_name(why);
		refused->misfit = (int)misfit;
		refused->frames = assembler->refused[misfit][why].frames;
		image_why_text(why, assembler->refused[misfit][why].values, refused->text,
			       sizeof(refused->text));
		++*at;
		return 0;
	}
	return -ENOENT;
}

void assembler_count_frames(struct assembler *assembler, const struct place_record *record,
			    uint32_t outcome)
{
	struct gdrcap_image_counts *counts = &assembler->frames;

	if (record->stream < PLACE_STREAMS_MAX) {
		counts = &assembler->stream[record->stream].counts;
		if (record->stream >= assembler->streams)
			assembler->streams = record->stream + 1u;
	}
	counts->frames += record->count;
	switch (outcome) {
	case PLACE_PLACED:
		counts->placed += record->count;
		break;
	case PLACE_DUPLICATE:
		*(assembler->config.view->layout.legs == 2 ? &counts->second_leg
							   : &counts->duplicate) += record->count;
		break;
	case PLACE_CONFLICT:
		counts->conflict += record->count;
		break;
	case PLACE_LATE:
		counts->late += record->count;
		break;
	case PLACE_NO_ROOM:
		counts->no_room += record->count;
		break;
	case PLACE_MISFIT:
		counts->misfit += record->count;
		count_refused(assembler, record);
		break;
	default:
		counts->filtered += record->count;
		count_refused(assembler, record);
	}
}

/* ---- numbers ---- */

static void run_remove(struct assembler_stream *stream, struct assembler_run *run)
{
	const struct assembler_run *end = &stream->run[stream->runs--];

	memmove(run, run + 1, (size_t)(end - run - 1) * sizeof(*run));
}

/* The newest number without a buffer since the stream was silent last, or `newest`. */
static uint64_t runs_newest(const struct assembler_stream *stream, uint64_t newest)
{
	for (uint32_t r = 0; r < stream->runs; r++)
		if (stream->run[r].silences == stream->silences && stream->run[r].last > newest)
			newest = stream->run[r].last;
	return newest;
}

/* A sender that begins anew while it finds no buffer: the same numbers are other images. */
static void runs_restart(struct assembler_stream *stream, uint64_t number, uint64_t late)
{
	const uint64_t newest = runs_newest(stream, number);

	if (newest - number <= late)
		return;
	stream->runs = 0;
	stream->has_last = false;
	stream->counts.restarts++;
}

/* Images that found no buffer come one after the other, their frames mixed and by several queues. */
static bool runs_add(struct assembler_stream *stream, uint64_t number)
{
	struct assembler_run *below = NULL, *above = NULL;

	for (uint32_t r = 0; r < stream->runs; r++) {
		struct assembler_run *run = &stream->run[r];

		if (run->silences != stream->silences)
			continue;
		if (number >= run->first && number <= run->last)
			return false;
		if (number == run->last + 1)
			below = run;
		if (number + 1 == run->first)
			above = run;
	}
	if (below)
		below->last = above ? above->last : number;
	else if (above)
		above->first = number;
	if (below && above)
		run_remove(stream, above);
	if (below || above)
		return true;
	if (stream->runs == ASSEMBLER_RUNS)
		run_remove(stream, &stream->run[0]);
	stream->run[stream->runs++] = (struct assembler_run){ number, number, stream->silences };
	return true;
}

/* How many of the numbers between these two they have. */
static uint64_t runs_between(const struct assembler_stream *stream, uint64_t last, uint64_t number)
{
	uint64_t count = 0;

	for (uint32_t r = 0; r < stream->runs; r++) {
		const struct assembler_run *run = &stream->run[r];
		const uint64_t from = run->first > last ? run->first : last + 1;
		const uint64_t to = run->last < number ? run->last : number - 1;

		if (from <= to)
			count += to - from + 1;
	}
	return count;
}

void assembler_count_no_room(struct assembler *assembler, const struct place_record *record)
{
	struct assembler_stream *stream;

	/* The record of a stream beyond the first 64 has no stream id, so its images cannot be counted. */
	if (record->stream >= PLACE_STREAMS_MAX)
		return;
	stream = &assembler->stream[record->stream];
	runs_restart(stream, record->number, assembler->config.view->layout.late);
	if (!runs_add(stream, record->number))
		return;
	stream->counts.begun++;
	stream->counts.dropped++;
}

static void count_number(struct assembler *assembler, struct assembler_stream *stream,
			 const struct assembler_slot *entry)
{
	const uint64_t number = entry->number;
	const bool counts = assembler->config.view->layout.counts;
	const uint64_t before = stream->last;
	uint64_t missing, no_room;

	if (stream->has_last && number <= before) {
		stream->counts.restarts++;
	} else if (stream->has_last && counts) {
		missing = number - before - 1;
		if (missing > ASSEMBLER_JUMP) {
			stream->counts.restarts++;
		} else if (missing && !entry->behind) {
			no_room = runs_between(stream, before, number);
			missing -= no_room < missing ? no_room : missing;
			stream->counts.skipped += missing;
			stream->skipped += missing;
		}
	}
	stream->last = number;
	stream->has_last = true;
	stream->anew = false;
}

/* Behind the last that was handed out others may have come, and found no buffer: what is missing between them
 * no later image tells. */
void assembler_count_rest(struct assembler *assembler)
{
	for (uint32_t s = 0; s < assembler->streams; s++) {
		struct assembler_stream *stream = &assembler->stream[s];
		const uint64_t newest = runs_newest(stream, stream->last);
		const uint64_t missing = newest - stream->last;
		uint64_t no_room;

		if (!stream->has_last || stream->anew || missing > ASSEMBLER_JUMP ||
		    !assembler->config.view->layout.counts)
			continue;
		no_room = runs_between(stream, stream->last, newest + 1);
		stream->counts.skipped += missing - (no_room < missing ? no_room : missing);
	}
}

/* ---- images ---- */

static void count_end(struct gdrcap_image_counts *counts, uint32_t end, uint64_t by)
{
	if (end == GDRCAP_IMAGE_COMPLETE) {
		counts->complete += by;
		return;
	}
	counts->incomplete += by;
	*(end == GDRCAP_IMAGE_NEWER	? &counts->newer
	  : end == GDRCAP_IMAGE_TIMEOUT ? &counts->timeout
					: &counts->stopped) += by;
}

/* GVSP: each packet of data is a piece, so a frame more is the leader, unless it is the trailer. */
static bool leader_came(const struct assembler *assembler, const struct assembler_slot *entry)
{
	return assembler->config.view->layout.parser == IMAGE_PARSER_GVSP &&
	       entry->frames > entry->pieces + entry->ends;
}

/* Whether the sender went on to newer images of the stream: one came whole since, or began since. A sender that mixes
 * several images brings pieces of this one behind the first of the others. */
static bool sender_went_on(const struct assembler *assembler, const struct assembler_slot *entry)
{
	for (uint32_t slot = entry->newer; slot != ASSEMBLER_NONE;
	     slot = assembler->slot[slot].newer) {
		const struct assembler_slot *newer = &assembler->slot[slot];

		if (entry->last_record < (newer->end == GDRCAP_IMAGE_COMPLETE
						  ? newer->last_record
						  : newer->first_record))
			return true;
	}
	return false;
}

/*
 * A run begins and ends in the middle of images. By the start: a stream's first image, of which all but the first
 * pieces came, soon after the first poll. By the stop: frames still came, all up to the last that came is there, and
 * the sender had not gone on to another; and every image that is closed after the run has as many whole ones as it
 * is to have: how much of these is seen is by chance.
 */
static enum image_cut image_cut(const struct assembler *assembler,
				const struct assembler_slot *entry)
{
	const struct assembler_config *config = &assembler->config;
	const struct place_view *view = config->view;
	const uint32_t *present =
		view->present_host + (size_t)(entry - assembler->slot) * view->present_words;
	const uint32_t expected = assembler_expected(assembler, entry);

	if (!config->began || !config->came_on)
		return IMAGE_NOT_CUT;
	if (entry->behind)
		return IMAGE_CUT_BY_STOP;
	if (entry->leads && expected && !leader_came(assembler, entry) &&
	    entry->pieces == expected - image_bits_first(present, expected) &&
	    (int64_t)(entry->first - config->began(config->context)) <= (int64_t)config->timeout)
		return IMAGE_CUT_BY_START;
	if (entry->end == GDRCAP_IMAGE_STOPPED && !entry->ends &&
	    entry->pieces == image_bits_past(present, view->layout.pieces) &&
	    !sender_went_on(assembler, entry) && config->came_on(config->context))
		return IMAGE_CUT_BY_STOP;
	return IMAGE_NOT_CUT;
}

static void count_cut(struct gdrcap_image_counts *counts, const struct assembler_slot *entry,
		      uint64_t by)
{
	if (entry->cut == IMAGE_CUT_BY_START)
		counts->cut_by_start += by;
	else if (entry->cut == IMAGE_CUT_BY_STOP)
		counts->cut_by_stop += by;
}

/* One of the first. */
static void note_incomplete(struct assembler *assembler, const struct assembler_slot *entry)
{
	const struct place_view *view = assembler->config.view;
	const uint32_t expected = assembler_expected(assembler, entry);
	struct gdrcap_incomplete *note = &assembler->incomplete[assembler->incomplete_count];

	if (assembler->incomplete_count == GDRCAP_INCOMPLETE_MAX)
		return;
	assembler->incomplete_count++;
	note->number = entry->number;
	note->stream_id = assembler->stream[entry->stream].id;
	note->stream = entry->stream;
	note->end = entry->end;
	note->pieces = expected;
	note->received = entry->pieces;
	note->ranges = image_bits_missing(
		&view->layout,
		view->present_host + (size_t)(entry - assembler->slot) * view->present_words,
		expected ? expected : view->layout.pieces, note->missing, GDRCAP_RANGES_MAX);
}

bool assembler_count_image(struct assembler *assembler, struct assembler_slot *entry)
{
	struct assembler_stream *stream = &assembler->stream[entry->stream];
	struct gdrcap_image_counts *counts = &stream->counts;
	const uint32_t expected = assembler_expected(assembler, entry);

	if (entry->lost) {
		counts->dropped++;
		return true;
	}
	count_number(assembler, stream, entry);
	counts->bytes += entry->bytes;
	if (expected) {
		counts->pieces_expected += expected;
		counts->pieces_placed += entry->pieces;
		counts->pieces_lost += expected - entry->pieces;
	}
	if (entry->end != GDRCAP_IMAGE_COMPLETE) {
		entry->cut = (uint8_t)image_cut(assembler, entry);
		count_cut(counts, entry, 1);
		note_incomplete(assembler, entry);
		if (assembler->config.drop_incomplete) {
			counts->dropped++;
			return true;
		}
	}
	count_end(counts, entry->end, 1);
	return false;
}

void assembler_count_taken_back(struct assembler *assembler, const struct assembler_slot *entry)
{
	struct assembler_stream *stream = &assembler->stream[entry->stream];

	count_end(&stream->counts, entry->image.end, (uint64_t)-1);
	count_cut(&stream->counts, entry, (uint64_t)-1);
	stream->counts.dropped++;
	/* whoever comes next tells of what was not even begun before it */
	stream->skipped += entry->image.skipped;
}

/* ---- results ---- */

static void counts_add(struct gdrcap_image_counts *to, const struct gdrcap_image_counts *from)
{
	to->frames += from->frames;
	to->placed += from->placed;
	to->duplicate += from->duplicate;
	to->late += from->late;
	to->no_room += from->no_room;
	to->misfit += from->misfit;
	to->filtered += from->filtered;
	to->begun += from->begun;
	to->complete += from->complete;
	to->incomplete += from->incomplete;
	to->newer += from->newer;
	to->timeout += from->timeout;
	to->stopped += from->stopped;
	to->cut_by_start += from->cut_by_start;
	to->cut_by_stop += from->cut_by_stop;
	to->dropped += from->dropped;
	to->open += from->open;
	to->skipped += from->skipped;
	to->restarts += from->restarts;
	to->pieces_expected += from->pieces_expected;
	to->pieces_placed += from->pieces_placed;
	to->pieces_lost += from->pieces_lost;
	to->bytes += from->bytes;
	to->second_leg += from->second_leg;
	to->conflict += from->conflict;
}

int assembler_stream_counts(const struct assembler *assembler, uint32_t stream, uint64_t *id,
			    struct gdrcap_image_counts *counts)
{
	if (stream >= assembler->streams)
		return -ENOENT;
	*id = assembler->stream[stream].id;
	*counts = assembler->stream[stream].counts;
	counts->open = assembler->stream[stream].listed;
	counts->has_skipped = assembler->config.view->layout.counts != 0;
	counts->legs = assembler->config.view->layout.legs;
	return 0;
}

void assembler_counts(const struct assembler *assembler, struct gdrcap_image_counts *counts)
{
	struct gdrcap_image_counts of;
	uint64_t id;

	*counts = assembler->frames;
	counts->has_skipped = assembler->config.view->layout.counts != 0;
	counts->legs = assembler->config.view->layout.legs;
	for (uint32_t s = 0; assembler_stream_counts(assembler, s, &id, &of) == 0; s++)
		counts_add(counts, &of);
}
