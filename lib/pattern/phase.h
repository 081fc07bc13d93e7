/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PRBS whose phase is not known: as a hardware bit error tester does, the checker finds it in the
 * data. A phase is the 32 uninverted bits from a place in the sequence, first bit in bit 31; they
 * hold the whole state (degree <= 31). Compiles as C and CUDA.
 */
#ifndef GDRCAP_PHASE_H
#define GDRCAP_PHASE_H

/* A phase whose state is all zeros is none: a payload without any signal would follow it. */

/* Bits that follow from each other before a phase is believed, the state's own bits included. */
#define PHASE_BELIEVED_BITS 96u
/* More wrong bits than one in this many: this is not the phase. */
#define PHASE_WRONG_ONE_IN 4u
/* Starts that are tried at most: a payload made of many short pieces of the sequence, each from
 * another place, must not cost one count each. */
#define PHASE_TRIES 8u

#include "pattern/frame.h" /* after the constants: it includes the definitions that use them */

/* The 32 bits after, and before, `phase`. */
GDRCAP_HD uint32_t phase_step(const struct pattern *pattern, uint32_t phase);
GDRCAP_HD uint32_t phase_step_back(const struct pattern *pattern, uint32_t phase);

/* The phase `bits` (0..31) bits after `phase`. */
GDRCAP_HD uint32_t phase_skip(const struct pattern *pattern, uint32_t phase, uint32_t bits);

/*
 * One thread's search and count, byte by byte: the reference that fast paths must equal. Looks at
 * the payload's whole 32-bit words, from its first byte. A start is a word that the sequence has
 * (phase_is_one()), whose next two words follow from it, and that does not follow from the word
 * before it; a payload of fewer than 12 bytes has none. Takes the first of the first PHASE_TRIES
 * starts from which at most one bit of the payload in PHASE_WRONG_ONE_IN is wrong.
 * Fills verdict (FRAME_VALID, FRAME_DAMAGED_PAYLOAD, FRAME_DAMAGED_UNLOCKED), payload_bytes (0 when
 * unlocked), wrong_bits, offset (unlocked: the payload's), expected, got, phase_first, phase_next,
 * detail.
 */
GDRCAP_HD void phase_check(const struct pattern *pattern, const uint8_t *payload, uint32_t bytes,
			   uint32_t payload_offset, struct frame_result *result);

/* The same of a payload that may lie in two parts. */
GDRCAP_HD void phase_check_span(const struct pattern *pattern, const struct frame_span *payload,
				uint32_t bytes, uint32_t payload_offset,
				struct frame_result *result);

/* ---- host only: lib/pattern/phase.c ---- */
#ifdef __cplusplus
extern "C" {
#endif

/* Going on by a fixed number of bytes: linear in the phase, so made once and applied often. */
struct phase_jump {
	uint32_t column[32]; /* what bit b of the phase (b = 31 the first) contributes */
};
/* `bytes` may be negative: back. */
void phase_jump_init(struct phase_jump *jump, const struct pattern *pattern, int64_t bytes);
uint32_t phase_jump_apply(const struct phase_jump *jump, uint32_t phase);

/* phase_check(), near memory speed where the payload follows from its first word throughout. Fetches
 * meanwhile what will be read next: pattern_ahead.h; NULL: nothing. */
void phase_check_ahead(const struct pattern *pattern, const uint8_t *payload, uint32_t bytes,
		       uint32_t payload_offset, const struct pattern_ahead *ahead,
		       struct frame_result *result);
void phase_check_span_fast(const struct pattern *pattern, const struct frame_span *payload,
			   uint32_t bytes, uint32_t payload_offset, struct frame_result *result);

#ifdef __cplusplus
}
#endif

#include "pattern/phase_check.h" /* definitions of the shared functions, for C and CUDA */

#endif
