/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequence numbers of one stream: which came, which came twice, which came late. Exact while a
 * late frame is at most SEQUENCE_WINDOW behind the newest; an older one cannot be told from a
 * duplicate and is counted as one. 2^64 - 1 is no sequence number and counts as a duplicate.
 */
#ifndef GDRCAP_SEQUENCE_H
#define GDRCAP_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW (1u << 20) /* sequence numbers; 128 KiB a stream */

struct ranges;
struct sequence_window; /* which of the last SEQUENCE_WINDOW numbers were seen */

struct sequence {
	uint64_t first;			/* lowest sequence number that counts as sent */
	uint64_t next;			/* highest seen + 1; == first: nothing seen */
	uint64_t unique;		/* different ones seen */
	uint64_t started;		/* 0: the first frame decides `first` */
	struct sequence_window *window; /* NULL: one number was seen at most */
};

/* from_zero: the stream is known to begin with 0 (its sender is ours). Takes no memory. */
void sequence_init(struct sequence *sequence, bool from_zero);
void sequence_free(struct sequence *sequence);

/* Before a second number, or several at once, are marked: takes the memory for it. 0 or -ENOMEM. */
int sequence_open(struct sequence *sequence);

/* Once, when it is open: numbers go into `ranges` as they leave the window, so that no frame is the reason for
 * more work than its own numbers, and what of the window was seen. */
void sequence_keep(struct sequence *sequence, struct ranges *ranges);
/* What is in the window goes there too: no number follows. */
void sequence_finish(struct sequence *sequence);
/* NULL: they are not kept. */
struct ranges *sequence_ranges(const struct sequence *sequence);

/* As if nothing had been seen. from_zero: as in sequence_init(). */
void sequence_restart(struct sequence *sequence, bool from_zero);

/* Marks s .. s + count - 1; returns how many of them were new (the rest are duplicates). What it
 * costs does not grow with how far s lies from the newest. */
uint32_t sequence_mark(struct sequence *sequence, uint64_t s, uint32_t count);

/* Whether s was marked, which is 1 to SEQUENCE_WINDOW behind `next`. */
bool sequence_seen(const struct sequence *sequence, uint64_t s);

/* Sequence numbers that must have been sent: next - first. */
static inline uint64_t sequence_expected(const struct sequence *sequence)
{
	return sequence->next - sequence->first;
}

#endif
