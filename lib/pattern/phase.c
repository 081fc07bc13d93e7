/* SPDX-License-Identifier: BSD-3-Clause */
/* The phase of a PRBS found from its payload. */
#include <string.h>

#include "pattern/pattern_fast.h"
#include "pattern/phase.h"

/* The phase of which only bit `b` (31 the first) of its first n bits is set. */
static uint32_t phase_of_bit(const struct pattern *pattern, uint32_t b)
{
	uint32_t phase = 1u << b;

	/* the bits after the nth follow from those before them, m at a time */
	for (uint32_t have = pattern->degree; have < 32; have += pattern->tap) {
		const uint32_t later = UINT32_MAX >> have;

		phase = (phase & ~later) |
			((phase >> pattern->degree ^ phase >> pattern->tap) & later);
	}
	return phase;
}

/* a after b. */
static void jump_compose(struct phase_jump *to, const struct phase_jump *a,
			 const struct phase_jump *b)
{
	struct phase_jump both;

	for (uint32_t i = 0; i < 32; i++)
		both.column[i] = phase_jump_apply(a, b->column[i]);
	*to = both;
}

void phase_jump_init(struct phase_jump *jump, const struct pattern *pattern, int64_t bytes)
{
	const int64_t period = (int64_t)pattern->period;
	/* the period is odd, so it is as many bytes as bits; back is on by the rest of it */
	uint64_t bits = (uint64_t)((bytes % period + period) % period) * 8 % pattern->period;
	struct phase_jump power = { { 0 } };

	memset(jump, 0, sizeof(*jump));
	/* the first n bits are all of the state: those behind them add nothing */
	for (uint32_t b = 32 - pattern->degree; b < 32; b++) {
		jump->column[b] = phase_of_bit(pattern, b);
		power.column[b] = phase_skip(pattern, jump->column[b], 1);
	}
	for (; bits; bits >>= 1) {
		if (bits & 1)
			jump_compose(jump, &power, jump);
		jump_compose(&power, &power, &power);
	}
}

uint32_t phase_jump_apply(const struct phase_jump *jump, uint32_t phase)
{
	uint32_t to = 0;

	for (uint32_t b = 0; b < 32; b++)
		to ^= jump->column[b] & (0u - (phase >> b & 1));
	return to;
}

/* True when `bytes` bytes begin with `phase` and go on as it does. */
static bool phase_is_followed(const struct pattern *pattern, uint32_t phase, const uint8_t *at,
			      uint32_t bytes, const struct pattern_ahead *ahead)
{
	return !bytes || prbs_follows(pattern, (uint64_t)phase << 32 | phase_step(pattern, phase),
				      at, bytes, fast_cpu_now(), ahead);
}

/* The result of a payload that is right and begins with `first`; `last` are its last 32 bits. */
static void phase_valid(const struct pattern *pattern, uint32_t first, uint32_t last,
			uint32_t bytes, struct frame_result *result)
{
	result->verdict = FRAME_VALID;
	result->payload_bytes = bytes;
	result->wrong_bits = 0;
	result->offset = 0;
	result->expected = 0;
	result->got = 0;
	result->phase_first = first;
	/* the last four bytes are the sequence's, so what follows them is what follows the payload
	 */
	result->phase_next = phase_step(pattern, last);
	result->detail = 0;
}

void phase_check_ahead(const struct pattern *pattern, const uint8_t *payload, uint32_t bytes,
		       uint32_t payload_offset, const struct pattern_ahead *ahead,
		       struct frame_result *result)
{
	uint32_t first;

	if (bytes < PHASE_BELIEVED_BITS / 8) {
		phase_unlocked(bytes, payload_offset, result);
		return;
	}
	first = phase_word(pattern, payload);
	if (phase_is_one(pattern, first) &&
	    phase_is_followed(pattern, first, payload, bytes, ahead))
		phase_valid(pattern, first, phase_word(pattern, payload + bytes - 4), bytes,
			    result);
	else
		phase_check(pattern, payload, bytes, payload_offset, result);
}

/* The phase `bytes` bytes behind `phase`. */
static uint32_t phase_behind(const struct pattern *pattern, uint32_t phase, uint32_t bytes)
{
	for (; bytes >= 4; bytes -= 4)
		phase = phase_step(pattern, phase);
	return phase_skip(pattern, phase, 8 * bytes);
}

void phase_check_span_fast(const struct pattern *pattern, const struct frame_span *payload,
			   uint32_t bytes, uint32_t payload_offset, struct frame_result *result)
{
	const uint32_t part = bytes < payload->first_bytes ? bytes : payload->first_bytes;
	uint32_t first;

	if (bytes < PHASE_BELIEVED_BITS / 8) {
		phase_unlocked(bytes, payload_offset, result);
		return;
	}
	first = phase_word_at(pattern, payload, 0);
	if (phase_is_one(pattern, first) &&
	    phase_is_followed(pattern, first, payload->first, part, NULL) &&
	    phase_is_followed(pattern, phase_behind(pattern, first, part), payload->rest,
			      bytes - part, NULL))
		phase_valid(pattern, first, phase_word_at(pattern, payload, bytes - 4), bytes,
			    result);
	else
		phase_check_span(pattern, payload, bytes, payload_offset, result);
}
