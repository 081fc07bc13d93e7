/* SPDX-License-Identifier: BSD-3-Clause */
#include "sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64u

int sequence_init(struct sequence *sequence, int from_zero)
{
	memset(sequence, 0, sizeof(*sequence));
	sequence->started = from_zero ? 1 : 0;
	sequence->seen = calloc(SEQUENCE_WINDOW / WORD_BITS, sizeof(uint64_t));
	return sequence->seen ? 0 : -ENOMEM;
}

void sequence_free(struct sequence *sequence)
{
	free(sequence->seen);
	memset(sequence, 0, sizeof(*sequence));
}

void sequence_restart(struct sequence *sequence)
{
	uint64_t *seen = sequence->seen;

	memset(seen, 0, SEQUENCE_WINDOW / 8);
	*sequence = (struct sequence){ .seen = seen };
}

static uint64_t bit_of(uint64_t s)
{
	return 1ull << (s % WORD_BITS);
}

static uint64_t *word_of(struct sequence *sequence, uint64_t s)
{
	return &sequence->seen[s % SEQUENCE_WINDOW / WORD_BITS];
}

/* Sets or clears the bits of s .. s + count - 1, count <= SEQUENCE_WINDOW. */
static void range_write(struct sequence *sequence, uint64_t s, uint64_t count, int set)
{
	while (count) {
		const uint32_t bit = (uint32_t)(s % WORD_BITS);
		const uint64_t n = count < WORD_BITS - bit ? count : WORD_BITS - bit;
		const uint64_t mask = (n == WORD_BITS ? ~0ull : (1ull << n) - 1) << bit;
		uint64_t *word = word_of(sequence, s);

		*word = set ? *word | mask : *word & ~mask;
		s += n;
		count -= n;
	}
}

/* Behind the newest: new, or seen before. */
static uint32_t mark_late(struct sequence *sequence, uint64_t s)
{
	uint64_t *word = word_of(sequence, s);

	if (sequence->next - s > SEQUENCE_WINDOW || *word & bit_of(s))
		return 0;
	*word |= bit_of(s);
	if (s < sequence->first)
		sequence->first = s;
	return 1;
}

uint32_t sequence_mark(struct sequence *sequence, uint64_t s, uint32_t count)
{
	uint32_t fresh = 0;

	/* 2^64 - 1 would have no `next`. No sender gets there; whoever claims to is not believed.
	 */
	if (count > UINT64_MAX - s)
		count = (uint32_t)(UINT64_MAX - s);
	if (count == 0)
		return 0;
	if (!sequence->started) {
		sequence->started = 1;
		sequence->first = s;
		sequence->next = s;
	}
	for (; count && s < sequence->next; s++, count--)
		fresh += mark_late(sequence, s);
	if (count) {
		const uint64_t gap = s - sequence->next;

		/* The window moves on: what it now covers and was not received is not seen. */
		if (gap >= SEQUENCE_WINDOW)
			memset(sequence->seen, 0, SEQUENCE_WINDOW / 8);
		else
			range_write(sequence, sequence->next, gap, 0);
		range_write(sequence, s, count, 1);
		sequence->next = s + count;
		fresh += count;
	}
	sequence->unique += fresh;
	return fresh;
}
