/* SPDX-License-Identifier: BSD-3-Clause */
/* From what is seen of a port's queues to what is to be done: no port is asked here. */
#include "session/recover.h"

#include <string.h>

static void port_quiet_begins(struct recover *recover, const struct recover_sample *sample)
{
	recover->quiet_ms = sample->ms;
	recover->quiet_hits = sample->hits;
	recover->quiet_missed = sample->missed;
}

/* Frames that the rules put into the queues, less those that came out and those that had found no buffer when the
 * port fell silent. What finds none after that may be what a queue swallows. Too few where the hits are read late. */
static int64_t frames_left(const struct recover *recover, const struct recover_sample *sample)
{
	uint64_t out = recover->quiet_missed;

	for (uint32_t q = 0; q < sample->queues; q++)
		out += sample->frames[q];
	return (int64_t)(sample->hits - out);
}

/* The rules put frames into the queues, and for long none came out of any. */
static bool port_swallows(struct recover *recover, const struct recover_sample *sample)
{
	/* Hits are read late: what is counted until then may have come before. */
	if (!sample->hits_known || !recover->last.hits_known ||
	    sample->ms - recover->quiet_ms < RECOVER_HITS_MS) {
		recover->quiet_hits = sample->hits;
		return false;
	}
	return sample->hits > recover->quiet_hits && frames_left(recover, sample) > recover->base;
}

static bool queue_is_in_error(const struct recover_queue *queue,
			      const struct recover_sample *sample)
{
	if (sample->stays)
		return queue->error;
	/* The driver starts it again; more errors and no frame say that it was in vain. */
	return queue->error && queue->quiet_errors > 1 &&
	       sample->ms - queue->quiet_ms >= RECOVER_QUIET_MS;
}

static void queue_look(struct recover *recover, uint32_t q, const struct recover_sample *sample,
		       struct recover_found *found)
{
	const struct recover_sample *last = &recover->last;
	struct recover_queue *queue = &recover->queue[q];
	const bool came = sample->frames[q] != last->frames[q];
	/* Both: rx_nombuf is in the queue's. */
	const bool erred =
		sample->errors > last->errors && sample->queue_errors[q] > last->queue_errors[q];

	if (came)
		queue->tries = 0;
	/* A poll that meets errors takes the driver long, and its frames are counted behind it. */
	if (came && queue->error && !erred && !queue->erred) {
		queue->error = false;
		found->healed |= 1u << q;
	}
	if (erred) {
		queue->error = true;
		queue->error_frames = sample->frames[q];
	}
	queue->erred = erred;
	if (came || !sample->room) {
		queue->quiet_ms = sample->ms;
		queue->quiet_errors = 0;
	} else {
		queue->quiet_errors += erred;
	}
	if (queue_is_in_error(queue, sample))
		found->error |= 1u << q;
}

static void give_up(struct recover *recover, struct recover_found *found)
{
	for (uint32_t q = 0; q < recover->last.queues; q++) {
		struct recover_queue *queue = &recover->queue[q];

		if (!((found->error | found->silent) >> q & 1) || queue->tries < RECOVER_TRIES)
			continue;
		queue->dead = true;
		found->dead |= 1u << q;
	}
	found->error &= ~found->dead;
	found->silent &= ~found->dead;
}

struct recover_found recover_look(struct recover *recover, const struct recover_sample *sample)
{
	struct recover_found found = { 0 };
	bool came = false, dead = false;
	uint32_t alive = 0;

	if (!recover->begun) {
		recover_restarted(recover, 0, sample);
		recover->base = 0; /* frames may have come since the rules were made */
		return found;
	}
	for (uint32_t q = 0; q < sample->queues; q++) {
		came |= sample->frames[q] != recover->last.frames[q];
		dead |= recover->queue[q].dead;
		if (recover->queue[q].dead)
			continue;
		alive |= 1u << q;
		queue_look(recover, q, sample, &found);
	}
	if (came || !sample->room)
		port_quiet_begins(recover, sample);
	else if (port_swallows(recover, sample) && !found.error && !dead)
		found.silent = alive;
	recover->last = *sample;
	give_up(recover, &found);
	return found;
}

uint32_t recover_left(const struct recover *recover, uint32_t *healed)
{
	uint32_t left = 0;

	*healed = 0;
	for (uint32_t q = 0; q < recover->last.queues; q++) {
		const struct recover_queue *queue = &recover->queue[q];

		if (!queue->error || queue->dead)
			continue;
		if (recover->last.frames[q] != queue->error_frames)
			*healed |= 1u << q;
		else
			left |= 1u << q;
	}
	return left;
}

void recover_restarted(struct recover *recover, uint32_t queues,
		       const struct recover_sample *sample)
{
	recover->begun = true;
	recover->last = *sample;
	port_quiet_begins(recover, sample);
	recover->base = frames_left(recover, sample);
	for (uint32_t q = 0; q < sample->queues; q++) {
		struct recover_queue *queue = &recover->queue[q];

		queue->quiet_ms = sample->ms;
		queue->quiet_errors = 0;
		queue->error = false;
		queue->erred = false;
		queue->tries += queues >> q & 1;
	}
}

enum recover_move recover_sender_look(struct recover_sender *sender, uint64_t ms, uint64_t sent,
				      uint64_t stalled, bool excused)
{
	const bool moved = sent != sender->sent, waits = stalled != sender->stalled;
	enum recover_move move = RECOVER_AS_BEFORE;

	sender->sent = sent;
	sender->stalled = stalled;
	if (moved && sender->stuck) {
		sender->stuck = false;
		move = RECOVER_MOVES;
	}
	if (moved || !waits || excused || sender->since_ms == 0) {
		sender->since_ms = ms;
	} else if (!sender->stuck && ms - sender->since_ms >= RECOVER_STUCK_MS) {
		sender->stuck = true;
		move = RECOVER_STUCK;
	}
	return move;
}
