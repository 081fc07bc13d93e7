/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A custom layout's PRBS that runs on through a stream: what its frames' phases say of their order.
 *
 * Each stream holds a phase: the one that the frame after the newest should begin with. Only the
 * newest frame moves it; late and duplicate ones do not. A damaged frame in which no phase was
 * found moves it on by its payload's length.
 *
 * With a sequence field the numbers say what was lost, late or sent twice. When g frames were
 * skipped, the payload must begin g payloads after the held phase; else lock_lost counts one and
 * the new phase is held. Skipped frames are taken to be as long as the one that follows them: where
 * frames of different lengths are lost, the lock is lost too.
 *
 * Without one the phase is the number. A frame that begins with the held phase is the next. Another
 * one counts one lock_lost, and is looked for up to VERDICT_PHASE_AHEAD whole frames ahead (those
 * between are lost) and VERDICT_PHASE_BACK behind (late or duplicate), the nearest first, ahead
 * when both are as near. Frames that go on from a late or duplicate one, and the one that returns
 * to the held phase, count no other. One that is found nowhere is taken for the next: something
 * else was sent, or more was lost than can be told, and nothing is called lost. All frames between
 * are taken to have this frame's length; a record of frames of different lengths, their mean.
 */
#ifndef GDRCAP_VERDICT_PHASE_H
#define GDRCAP_VERDICT_PHASE_H

#include "verdict/verdict.h"

/* Steps of one payload that may be tried in a round; beyond it a phase that is not the held one is
 * held at once, so that a stream of arbitrary phases cannot stall the accountant. */
#define VERDICT_PHASE_BUDGET 65536u

/* 0 or -ENOMEM. */
int verdict_phases_create(struct verdict *verdict);
void verdict_phases_destroy(struct verdict *verdict);

/* Without a sequence field: the number of the record's first frame. Moves the held phase. */
uint64_t verdict_phase_number(struct verdict *verdict, struct verdict_stream *stream,
			      const struct frame_record *record);
/* With one: `number` is the first frame's. Moves the held phase. */
void verdict_phase_follow(struct verdict *verdict, struct verdict_stream *stream,
			  const struct frame_record *record, uint64_t number);
/* With one that makes no sense: true when the payload goes right on, so that the frame is known to
 * be the next. */
bool verdict_phase_is_next(const struct verdict_stream *stream, const struct frame_record *record);
/* As the next, whatever its number: moves the held phase. */
void verdict_phase_take_next(struct verdict_stream *stream, const struct frame_record *record);
/* With one that is `number`: true when the payload goes right on, and would not in that frame. */
bool verdict_phase_contradicts(struct verdict *verdict, const struct verdict_stream *stream,
			       const struct frame_record *record, uint64_t number);

#endif
