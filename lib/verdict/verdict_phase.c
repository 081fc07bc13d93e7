/* SPDX-License-Identifier: BSD-3-Clause */
/* Custom layouts with a PRBS that runs on: numbers from the payload's phase. */
#include "verdict/verdict_phase.h"

#include <errno.h>
#include <stdlib.h>

#include "verdict/verdict_internal.h"

#define JUMP_BITS 8u	/* log2 of the payload lengths whose jumps are kept */
#define JUMP_COST 1024u /* steps that making one is worth */
#define PERIOD_BITS 31u

struct jump {
	uint32_t bytes; /* 0: not made */
	struct phase_jump jump;
};

struct verdict_phases {
	struct phase_jump power[PERIOD_BITS]; /* over 2^k bytes */
	struct jump jump[1u << JUMP_BITS];    /* over a payload, by a hash of its length */
	uint32_t budget;		      /* steps left in this round */
};

int verdict_phases_create(struct verdict *verdict)
{
	const struct verdict_config *config = &verdict->config;

	if (!verdict_is_custom(verdict) || !config->layout->custom.self_phase || !config->pattern ||
	    !config->pattern->degree)
		return 0;
	verdict->phases = calloc(1, sizeof(*verdict->phases));
	if (!verdict->phases)
		return -ENOMEM;
	for (uint32_t k = 0; k < PERIOD_BITS; k++)
		phase_jump_init(&verdict->phases->power[k], config->pattern, (int64_t)1 << k);
	verdict_round(verdict);
	return 0;
}

void verdict_phases_destroy(struct verdict *verdict)
{
	free(verdict->phases);
	verdict->phases = NULL;
}

void verdict_round(struct verdict *verdict)
{
	if (verdict->phases)
		verdict->phases->budget = VERDICT_PHASE_BUDGET;
}

static bool spend(struct verdict_phases *phases, uint32_t steps)
{
	if (phases->budget < steps)
		return false;
	phases->budget -= steps;
	return true;
}

/* The jump over this many bytes, not 0; NULL: no more work in this round. */
static const struct phase_jump *jump_over(struct verdict *verdict, uint32_t bytes)
{
	struct jump *jump = &verdict->phases->jump[bytes * 0x9e3779b1u >> (32 - JUMP_BITS)];

	if (jump->bytes != bytes) {
		if (!spend(verdict->phases, JUMP_COST))
			return NULL;
		phase_jump_init(&jump->jump, verdict->config.pattern, bytes);
		jump->bytes = bytes;
	}
	return &jump->jump;
}

/*
 * The phase that lies `frames` payloads of `bytes` each after `phase`, or before it. 0: no more
 * work in this round. The sequence has an odd number of bits, so it repeats after as many bytes.
 */
static uint32_t phase_at(struct verdict *verdict, uint32_t phase, int64_t frames, uint32_t bytes)
{
	const uint64_t period = verdict->config.pattern->period;
	uint64_t far = (frames < 0 ? -(uint64_t)frames : (uint64_t)frames) % period;

	far = far * bytes % period;
	if (frames < 0 && far)
		far = period - far;
	for (uint32_t k = 0; far; k++, far >>= 1) {
		if (!(far & 1))
			continue;
		if (!spend(verdict->phases, 1))
			return 0;
		phase = phase_jump_apply(&verdict->phases->power[k], phase);
	}
	return phase;
}

/* Payload bytes of a frame of the record, whether they could be compared or not. */
static uint32_t payload_of(const struct verdict *verdict, const struct frame_record *record)
{
	if (record->phase_first)
		return record->count ? record->bytes / record->count : 0;
	if (record->verdict == FRAME_DAMAGED_UNLOCKED)
		return record->detail;
	/* It ends too early: as much as it should have had. */
	return verdict->config.layout->custom.payload_bytes;
}

/* How many frames after the held phase `phase` is, negative: before; 0: it was not found. */
static int64_t phase_search(struct verdict *verdict, uint32_t held, uint32_t phase, uint32_t bytes)
{
	const struct phase_jump *jump = bytes ? jump_over(verdict, bytes) : NULL;
	uint32_t ahead = held, back = phase;

	if (!jump)
		return 0;
	for (int64_t g = 1; g <= VERDICT_PHASE_AHEAD; g++) {
		if (!spend(verdict->phases, g <= VERDICT_PHASE_BACK ? 2 : 1))
			return 0;
		ahead = phase_jump_apply(jump, ahead);
		if (ahead == phase)
			return g;
		if (g > VERDICT_PHASE_BACK)
			continue;
		/* The frame is behind where the held phase is ahead of it. */
		back = phase_jump_apply(jump, back);
		if (back == held)
			return -g;
	}
	return 0;
}

uint64_t verdict_phase_number(struct verdict *verdict, struct verdict_stream *stream,
			      const struct frame_record *record)
{
	const uint64_t next =
		stream->sequence.started ? stream->sequence.next : VERDICT_FIRST_NUMBER;
	const uint32_t bytes = payload_of(verdict, record);
	uint64_t number = next;

	if (!record->phase_first) {
		if (stream->phase)
			stream->phase = phase_at(verdict, stream->phase, record->count, bytes);
		stream->arrived = 0;
		return next;
	}
	if (stream->phase && stream->phase != record->phase_first) {
		if (stream->arrived == record->phase_first) {
			number = stream->arrived_number;
		} else {
			verdict->lock_lost++;
			number += (uint64_t)phase_search(verdict, stream->phase,
							 record->phase_first, bytes);
		}
	}
	stream->arrived = record->phase_next;
	stream->arrived_number = number + record->count;
	if (number + record->count > next)
		stream->phase = record->phase_next;
	return number;
}

/* The number after the record's last. */
static uint64_t record_end(const struct frame_record *record, uint64_t number)
{
	return record->count < UINT64_MAX - number ? number + record->count : UINT64_MAX;
}

void verdict_phase_follow(struct verdict *verdict, struct verdict_stream *stream,
			  const struct frame_record *record, uint64_t number)
{
	const uint64_t end = record_end(record, number);
	const uint32_t bytes = payload_of(verdict, record);

	if (stream->phase && end <= stream->phase_number)
		return;
	if (!record->phase_first) {
		if (stream->phase)
			stream->phase = phase_at(verdict, stream->phase,
						 (int64_t)(end - stream->phase_number), bytes);
	} else {
		if (stream->phase &&
		    phase_at(verdict, stream->phase, (int64_t)(number - stream->phase_number),
			     bytes) != record->phase_first)
			verdict->lock_lost++;
		stream->phase = record->phase_next;
	}
	stream->phase_number = end;
}

bool verdict_phase_is_next(const struct verdict_stream *stream, const struct frame_record *record)
{
	return stream->phase && stream->phase == record->phase_first;
}

void verdict_phase_take_next(struct verdict_stream *stream, const struct frame_record *record)
{
	stream->phase = record->phase_next;
	stream->phase_number = record_end(record, stream->phase_number);
}

bool verdict_phase_contradicts(struct verdict *verdict, const struct verdict_stream *stream,
			       const struct frame_record *record, uint64_t number)
{
	uint32_t phase;

	if (!verdict_phase_is_next(stream, record) || number == stream->phase_number)
		return false;
	/* A short PRBS may have come round to the same phase. */
	phase = phase_at(verdict, stream->phase, (int64_t)(number - stream->phase_number),
			 payload_of(verdict, record));
	return phase && phase != record->phase_first;
}
