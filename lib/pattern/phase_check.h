/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions of the functions of phase.h that the host and the kernels share. Included by phase.h
 * and frame_check.h; compiles as C (gnu17) and as CUDA C++17. Loads are of bytes.
 *
 * Of a PRBS of degree n with lower tap m, bit[i] = bit[i - n] ^ bit[i - m].
 */
#ifndef GDRCAP_PHASE_CHECK_H
#define GDRCAP_PHASE_CHECK_H

#include "pattern/frame_bytes.h"

/* The payload word at `at` as uninverted bits. */
GDRCAP_HD uint32_t phase_word(const struct pattern *pattern, const uint8_t *at)
{
	return frame_be32(at) ^ (0u - pattern->invert);
}

GDRCAP_HD uint32_t phase_word_at(const struct pattern *pattern, const struct frame_span *payload,
				 uint32_t at)
{
	return frame_span_be32(payload, at) ^ (0u - pattern->invert);
}

GDRCAP_HD uint32_t phase_step(const struct pattern *pattern, uint32_t phase)
{
	uint64_t window = (uint64_t)phase << 32;

	/* m more bits at a time follow from what is there */
	for (uint32_t have = 32; have < 64; have += pattern->tap) {
		const uint64_t later = UINT64_MAX >> have;

		window = (window & ~later) |
			 ((window >> pattern->degree ^ window >> pattern->tap) & later);
	}
	return (uint32_t)window;
}

GDRCAP_HD uint32_t phase_step_back(const struct pattern *pattern, uint32_t phase)
{
	const uint32_t gap = pattern->degree - pattern->tap;
	uint64_t window = phase;

	/* bit[i] = bit[i + n] ^ bit[i + n - m]: n - m at a time */
	for (uint32_t have = 32; have < 64; have += gap) {
		const uint64_t later = UINT64_MAX >> (64 - have);

		window = (window & later) | ((window << pattern->degree ^ window << gap) & ~later);
	}
	return (uint32_t)(window >> 32);
}

GDRCAP_HD uint32_t phase_skip(const struct pattern *pattern, uint32_t phase, uint32_t bits)
{
	const uint64_t window = (uint64_t)phase << 32 | phase_step(pattern, phase);

	return (uint32_t)(window >> (32 - bits));
}

/* 1: 32 bits that the sequence has somewhere: its bits from the nth on follow from those before. */
GDRCAP_HD int phase_is_one(const struct pattern *pattern, uint32_t word)
{
	const uint32_t n = pattern->degree, m = pattern->tap;

	return word && !((word ^ word >> n ^ word >> m) & (UINT32_MAX >> n));
}

/* 1: `next` is the word after `word`, which is a phase. */
GDRCAP_HD int phase_follows(const struct pattern *pattern, uint32_t word, uint32_t next)
{
	return phase_is_one(pattern, word) && phase_step(pattern, word) == next;
}

/*
 * 1: the search tries word k of a payload of `words` whole ones: the next two follow from it. A
 * word that itself follows from the one before it is of that one's phase, which was tried.
 */
GDRCAP_HD int phase_is_start(const struct pattern *pattern, const struct frame_span *payload,
			     uint32_t words, uint32_t k)
{
	uint32_t word, next;

	if (k + 2 >= words)
		return 0;
	word = phase_word_at(pattern, payload, 4 * k);
	next = phase_word_at(pattern, payload, 4 * k + 4);
	return phase_follows(pattern, word, next) &&
	       phase_follows(pattern, next, phase_word_at(pattern, payload, 4 * k + 8)) &&
	       !(k && phase_follows(pattern, phase_word_at(pattern, payload, 4 * k - 4), word));
}

/* The most wrong bits that a payload may have. */
GDRCAP_HD uint32_t phase_wrong_max(uint32_t bytes)
{
	return 8 * bytes / PHASE_WRONG_ONE_IN;
}

/* The result of a payload that no phase fits. */
GDRCAP_HD void phase_unlocked(uint32_t bytes, uint32_t payload_offset, struct frame_result *result)
{
	result->verdict = FRAME_DAMAGED_UNLOCKED;
	result->payload_bytes = 0;
	result->wrong_bits = 0;
	result->offset = (uint16_t)payload_offset;
	result->expected = 0;
	result->got = 0;
	result->phase_first = 0;
	result->phase_next = 0;
	result->detail = bytes;
}

/*
 * Counts what is wrong with a payload that begins with `phase`, and fills the result. 0, with the
 * result undefined, when that is too much.
 */
GDRCAP_HD int phase_count(const struct pattern *pattern, uint32_t phase,
			  const struct frame_span *payload, uint32_t bytes, uint32_t payload_offset,
			  struct frame_result *result)
{
	const uint32_t most = phase_wrong_max(bytes);

	result->verdict = FRAME_VALID;
	result->payload_bytes = bytes;
	result->wrong_bits = 0;
	result->offset = 0;
	result->expected = 0;
	result->got = 0;
	result->phase_first = phase;
	result->detail = 0;
	for (uint32_t at = 0; at < bytes; at += 4) {
		const uint32_t expected = phase ^ (0u - pattern->invert);
		uint32_t i;

		for (i = 0; i < 4 && at + i < bytes; i++) {
			const uint8_t want = (uint8_t)(expected >> (24 - 8 * i));
			const uint8_t got = (uint8_t)frame_span_byte(payload, at + i);

			if (want == got)
				continue;
			if (!result->wrong_bits) {
				result->verdict = FRAME_DAMAGED_PAYLOAD;
				result->offset = (uint16_t)(payload_offset + at + i);
				result->expected = want;
				result->got = got;
			}
			result->wrong_bits += frame_popcount((uint32_t)(want ^ got));
		}
		if (result->wrong_bits > most)
			return 0;
		phase = i == 4 ? phase_step(pattern, phase) : phase_skip(pattern, phase, 8 * i);
	}
	result->phase_next = phase;
	return 1;
}

GDRCAP_HD void phase_check_span(const struct pattern *pattern, const struct frame_span *payload,
				uint32_t bytes, uint32_t payload_offset,
				struct frame_result *result)
{
	uint32_t tries = 0;

	for (uint32_t k = 0; k < bytes / 4 && tries < PHASE_TRIES; k++) {
		uint32_t phase;

		if (!phase_is_start(pattern, payload, bytes / 4, k))
			continue;
		phase = phase_word_at(pattern, payload, 4 * k);
		for (uint32_t back = 0; back < k; back++)
			phase = phase_step_back(pattern, phase);
		if (phase_count(pattern, phase, payload, bytes, payload_offset, result))
			return;
		tries++;
	}
	phase_unlocked(bytes, payload_offset, result);
}

GDRCAP_HD void phase_check(const struct pattern *pattern, const uint8_t *payload, uint32_t bytes,
			   uint32_t payload_offset, struct frame_result *result)
{
	const struct frame_span span = { payload, payload, 0, 1 };

	phase_check_span(pattern, &span, bytes, payload_offset, result);
}

#endif
