/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sequence numbers of a stream came: a window of bits. */
#include "verdict/sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/ranges.h"

#define WORD_BITS 64u
/*
 * The window is a ring of blocks. A jump over thousands of numbers forgets whole blocks by their
 * age, in a few stores, and not by clearing 128 KiB: somebody who sends nothing but jumps would hold
 * up the accounting of all others. A block is cleared when it is next used.
 */
#define BLOCK_BITS 4096u
#define BLOCK_WORDS (BLOCK_BITS / WORD_BITS)
#define BLOCKS (SEQUENCE_WINDOW / BLOCK_BITS)
#define AGE_NEVER UINT64_MAX /* no window gets so old */

struct sequence_window {
	struct ranges *ranges;		    /* of the numbers that were in it; NULL: not kept */
	uint64_t age;			    /* grows when all that was seen is forgotten */
	uint64_t block_age[BLOCKS];	    /* other than `age`: nothing of the block was seen */
	uint64_t seen[BLOCKS][BLOCK_WORDS]; /* bit s % SEQUENCE_WINDOW */
};

void sequence_init(struct sequence *sequence, bool from_zero)
{
	*sequence = (struct sequence){ .started = from_zero };
}

void sequence_free(struct sequence *sequence)
{
	free(sequence->window);
	memset(sequence, 0, sizeof(*sequence));
}

void sequence_restart(struct sequence *sequence, bool from_zero)
{
	struct sequence_window *window = sequence->window;

	if (window)
		window->age++;
	if (window && window->ranges)
		ranges_restart(window->ranges);
	*sequence = (struct sequence){ .started = from_zero, .window = window };
}

static uint64_t bit_of(uint64_t s)
{
	return 1ull << (s % WORD_BITS);
}

/* The word of number s, of a block that is in use from now on. */
static uint64_t *word_of(struct sequence_window *window, uint64_t s)
{
	const uint32_t at = (uint32_t)(s % SEQUENCE_WINDOW), block = at / BLOCK_BITS;

	if (__builtin_expect(window->block_age[block] != window->age, 0)) {
		memset(window->seen[block], 0, sizeof(window->seen[block]));
		window->block_age[block] = window->age;
	}
	return &window->seen[block][at % BLOCK_BITS / WORD_BITS];
}

/* Sets or clears the bits of s .. s + count - 1, count <= SEQUENCE_WINDOW. */
static void range_write(struct sequence_window *window, uint64_t s, uint64_t count, bool set)
{
	while (count) {
		const uint32_t bit = (uint32_t)(s % WORD_BITS);
		const uint64_t n = count < WORD_BITS - bit ? count : WORD_BITS - bit;
		const uint64_t mask = (n == WORD_BITS ? ~0ull : (1ull << n) - 1) << bit;
		uint64_t *word = word_of(window, s);

		*word = set ? *word | mask : *word & ~mask;
		s += n;
		count -= n;
	}
}

/* The window moves on over s .. s + count - 1, which were not seen. */
static void range_forget(struct sequence_window *window, uint64_t s, uint64_t count)
{
	const uint64_t begun = -s % BLOCK_BITS; /* of the block that s lies in */
	const uint64_t head = begun < count ? begun : count;

	if (count >= SEQUENCE_WINDOW) {
		window->age++;
		return;
	}
	range_write(window, s, head, false);
	for (s += head, count -= head; count >= BLOCK_BITS; s += BLOCK_BITS, count -= BLOCK_BITS)
		window->block_age[s % SEQUENCE_WINDOW / BLOCK_BITS] = AGE_NEVER;
	range_write(window, s, count, false);
}

/* The numbers of a word of the window, from s on. */
static void word_keep(struct ranges *ranges, uint64_t s, uint64_t word)
{
	while (word) {
		const uint32_t skip = (uint32_t)__builtin_ctzll(word);
		uint32_t run;

		word >>= skip;
		run = ~word ? (uint32_t)__builtin_ctzll(~word) : WORD_BITS;
		s += skip;
		ranges_add(ranges, s, run);
		s += run;
		word = run < WORD_BITS ? word >> run : 0;
	}
}

/* s .. end - 1, of one block. */
static void block_keep(const struct sequence_window *window, uint64_t s, uint64_t end)
{
	const uint64_t *block = window->seen[s % SEQUENCE_WINDOW / BLOCK_BITS];

	while (s < end) {
		const uint32_t bit = (uint32_t)(s % WORD_BITS);
		const uint64_t n = end - s < WORD_BITS - bit ? end - s : WORD_BITS - bit;
		uint64_t word = block[s % BLOCK_BITS / WORD_BITS] >> bit;

		if (n < WORD_BITS)
			word &= (1ull << n) - 1;
		word_keep(window->ranges, s, word);
		s += n;
	}
}

/* s .. end - 1 leave the window, or the run is over: what of them was seen is not going to change. */
static void range_keep(const struct sequence_window *window, uint64_t s, uint64_t end)
{
	if (window->ranges->given_up)
		return;
	while (s < end) {
		const uint64_t n = BLOCK_BITS - s % BLOCK_BITS, part = n < end - s ? n : end - s;

		if (window->block_age[s % SEQUENCE_WINDOW / BLOCK_BITS] == window->age)
			block_keep(window, s, s + part);
		s += part;
	}
}

static uint64_t window_begin(uint64_t next)
{
	return next > SEQUENCE_WINDOW ? next - SEQUENCE_WINDOW : 0;
}

void sequence_keep(struct sequence *sequence, struct ranges *ranges)
{
	sequence->window->ranges = ranges;
}

struct ranges *sequence_ranges(const struct sequence *sequence)
{
	return sequence->window ? sequence->window->ranges : NULL;
}

void sequence_finish(struct sequence *sequence)
{
	struct sequence_window *window = sequence->window;

	if (!window || !window->ranges)
		return;
	range_keep(window, window_begin(sequence->next), sequence->next);
	ranges_finish(window->ranges, sequence->unique);
}

int sequence_open(struct sequence *sequence)
{
	if (sequence->window)
		return 0;
	/* Zero pages, which take memory when they are written. */
	sequence->window = calloc(1, sizeof(*sequence->window));
	if (!sequence->window)
		return -ENOMEM;
	if (sequence->unique)
		range_write(sequence->window, sequence->next - 1, 1, true);
	return 0;
}

/* To where `next` is the first number that was not seen: what was seen before it and is too old then. */
static void window_move(const struct sequence *sequence, uint64_t next)
{
	const uint64_t begin = window_begin(next);

	range_keep(sequence->window, window_begin(sequence->next),
		   begin < sequence->next ? begin : sequence->next);
}

/* Behind the newest: new, or seen before. */
static uint32_t mark_late(struct sequence *sequence, uint64_t s)
{
	uint64_t *word;

	if (sequence->next - s > SEQUENCE_WINDOW)
		return 0;
	word = word_of(sequence->window, s);
	if (*word & bit_of(s))
		return 0;
	*word |= bit_of(s);
	if (s < sequence->first)
		sequence->first = s;
	return 1;
}

bool sequence_seen(const struct sequence *sequence, uint64_t s)
{
	const struct sequence_window *window = sequence->window;
	const uint32_t at = (uint32_t)(s % SEQUENCE_WINDOW), block = at / BLOCK_BITS;

	if (!window)
		return sequence->unique && s == sequence->next - 1;
	return window->block_age[block] == window->age &&
	       (window->seen[block][at % BLOCK_BITS / WORD_BITS] & bit_of(s));
}

uint32_t sequence_mark(struct sequence *sequence, uint64_t s, uint32_t count)
{
	uint32_t fresh = 0;

	/* 2^64 - 1 would have no `next`. No sender gets there; one that claims to is not believed.
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
		if (sequence->window) {
			if (__builtin_expect(sequence->window->ranges != NULL, 0))
				window_move(sequence, s + count);
			range_forget(sequence->window, sequence->next, s - sequence->next);
			range_write(sequence->window, s, count, true);
		}
		sequence->next = s + count;
		fresh += count;
	}
	sequence->unique += fresh;
	return fresh;
}
