/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the verdict share. */
#ifndef GDRCAP_VERDICT_INTERNAL_H
#define GDRCAP_VERDICT_INTERNAL_H

#include "pattern/frame.h"
#include "verdict/verdict.h"

/* Numbers are anybody's: a sum must not come round to a small one. */
static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
	return b < UINT64_MAX - a ? a + b : UINT64_MAX;
}

static inline bool verdict_is_custom(const struct verdict *verdict)
{
	return !verdict->config.expect && verdict->config.layout &&
	       verdict->config.layout->format == FRAME_CUSTOM;
}

/* What a readable record adds whatever its numbers are. */
static inline void verdict_count_record(struct verdict_queue *q, struct verdict_stream *stream,
					const struct frame_record *record)
{
	stream->received += record->count;
	stream->bytes += record->frame_bytes;
	stream->bits_checked += 8ull * record->bytes;
	stream->bits_wrong += record->wrong_bits;
	q->bits_checked += 8ull * record->bytes;
	q->bits_wrong += record->wrong_bits;
}

/* A record whose frames have the numbers `number`, `number` + 1, ... in `stream`. */
void verdict_add_readable(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_record *record, uint64_t number);
/* Damaged frames that belong to no stream. Not yet kept among the first damaged ones. */
void verdict_add_unreadable(struct verdict *verdict, uint32_t queue,
			    const struct frame_record *record);
/* Keeps one of the first damaged frames. `sequence`: what the user is told. */
void verdict_keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_record *record,
			 uint64_t sequence, bool header_ok);

/* Keeps one whose header was read, and whose number does not belong into its stream. */
void verdict_keep_stray(struct verdict *verdict, uint32_t queue, const struct frame_record *record);

/* ---- verdict_streams.c ---- */

int verdict_streams_create(struct verdict *verdict);
void verdict_streams_destroy(struct verdict *verdict);
/* The record's stream; NULL: others', or there is no room for one more, and the record's frames were
 * counted so. */
struct verdict_stream *verdict_stream_of(struct verdict *verdict, uint32_t queue,
					 const struct frame_record *record);
/* The same of a frame that is none of the stream's: it is not counted. */
struct verdict_stream *verdict_stream_find(struct verdict *verdict,
					   const struct frame_record *record);
/* Before frames are marked in `sequence`. False: there is no room, and they were counted so. */
bool verdict_stream_opens(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  uint32_t frames);

/* ---- verdict_counts.c ---- */

/* What must have been sent in the stream's present life: as its end says, or as its numbers tell. */
uint64_t verdict_life_expected(const struct verdict *verdict, const struct verdict_stream *stream);

/* ---- verdict_doubt.c ---- */

/* A lone record whose number is not believed yet: counted as one that cannot be read. None is in doubt
 * already. */
void verdict_doubt_begin(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			 const struct frame_record *record);
/* It was what it seemed. */
void verdict_doubt_settle(struct verdict *verdict, struct verdict_stream *stream);
/* It is believed after all, and to be added. */
struct frame_record verdict_doubt_end(struct verdict *verdict, struct verdict_stream *stream);
/* The stream's first frame, the only one that was believed so far, is not any more. */
void verdict_first_undo(struct verdict *verdict, struct verdict_stream *stream);

/* ---- verdict_own.c ---- */

void verdict_add_own(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
		     const struct frame_record *record);
void verdict_finish_own(struct verdict *verdict, struct verdict_stream *stream);

/* ---- verdict_ends.c ---- */

void verdict_add_end(struct verdict *verdict, uint32_t queue, const struct frame_record *record);
/* The stream had this many frames. */
void verdict_end_stream(struct verdict *verdict, struct verdict_stream *stream, uint64_t frames);
/* It goes on after all. */
void verdict_end_void(struct verdict *verdict, struct verdict_stream *stream);
/* Before a sender's counts change its weight is taken off the tallies, and put on them after. */
void verdict_sender_weigh(struct verdict *verdict, const struct verdict_sender *sender, bool on);
/* Whether what the stream's end said counts. */
bool verdict_end_counts(const struct verdict *verdict, const struct verdict_stream *stream);

/* ---- frames of a custom layout, and those of a file ---- */

/* A record of ours: its header was read, and its stream is known. */
void verdict_add_custom(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			const struct frame_record *record);

/* 0 or -ENOMEM. */
int verdict_places_create(struct verdict *verdict);
void verdict_places_destroy(struct verdict *verdict);
/* False: no frame of the file has the record's index. */
bool verdict_add_expected(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_record *record);
/* No record will follow: frames that wait for their place get one. */
void verdict_finish_expected(struct verdict *verdict, struct verdict_stream *stream);

#endif
