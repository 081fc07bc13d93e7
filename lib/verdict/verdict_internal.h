/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the verdict share. */
#ifndef GDRCAP_VERDICT_INTERNAL_H
#define GDRCAP_VERDICT_INTERNAL_H

#include "frame.h"
#include "verdict.h"

static inline bool verdict_is_foreign(const struct verdict *verdict)
{
	return !verdict->config.expect && verdict->config.layout &&
	       verdict->config.layout->format == FRAME_FOREIGN;
}

/* A run whose frames have the numbers `number`, `number` + 1, ... in `stream`. */
void verdict_add_readable(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_run *run, uint64_t number);
/* Damaged frames that belong to no stream. Not yet kept among the first damaged ones. */
void verdict_add_unreadable(struct verdict *verdict, uint32_t queue, const struct frame_run *run);
/* Keeps one of the first damaged frames. `sequence`: what the user is told. */
void verdict_keep_damage(struct verdict *verdict, uint32_t queue, const struct frame_run *run,
			 uint64_t sequence, bool header_ok);

/* A run of ours: its header was read, and its stream is known. */
void verdict_add_foreign(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			 const struct frame_run *run);

/* 0 or -ENOMEM. */
int verdict_places_create(struct verdict *verdict);
void verdict_places_destroy(struct verdict *verdict);
/* False: no frame of the file has the run's index. */
bool verdict_add_expected(struct verdict *verdict, uint32_t queue, struct verdict_stream *stream,
			  const struct frame_run *run);
/* No run will follow: frames that wait for their place get one. */
void verdict_finish_expected(struct verdict *verdict, struct verdict_stream *stream);

#endif
