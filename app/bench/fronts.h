/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues of our own whose card is a kernel on the same GPU (card.h), whose front and checkers are the
 * product's kernels, and whose accountant is the calling thread.
 */
#ifndef BENCH_FRONTS_H
#define BENCH_FRONTS_H

#include "bench/bench.h"
#include "bench/card.h"

#define FRONTS_MAX CARD_QUEUES_MAX

struct resident;
struct front_queue; /* fronts.c */

struct fronts_config {
	uint32_t queues, slots, burst, warps, checkers; /* checkers: blocks a queue */
	uint32_t card_blocks;
	uint32_t frame_bytes; /* with FCS; the longest */
	uint32_t burst_us;
	uint32_t stride_shift; /* as of struct cq_front_queue */
	bool leased;	       /* nothing goes back to the card until fronts_words() say so */
	const char *pattern;
	/* What the card does (its addresses are filled in, but for `go`); NULL: frames that lie in their slots, as
	 * fast as it goes. */
	const struct card_queue *card;
	bool on_word; /* batches come as fronts_go() says */
	/* Frames that the card copies; frame i of the list has sequence number i. NULL: they lie. */
	const struct card_frame *list;
	const uint8_t *list_bytes;
	uint32_t list_count;
	size_t list_size; /* bytes, a multiple of 16 */
};

struct fronts_counts {
	uint64_t frames, validated, damaged, bursts;
	uint64_t out_of_order; /* that lie in their slots, and are other ones than expected */
	uint64_t wrong_bits;   /* of frames that are damaged */
	uint64_t gaps;	       /* of the list: frames that did not come before one that did */
	double seconds;
};

struct fronts;

int fronts_open(const struct bench *bench, const struct fronts_config *config,
		struct fronts **opened, struct gdrcap_error *error);
/* The card sends for `ms`, or up to its limit with 0; all that it completed is collected. */
int fronts_play(struct fronts *fronts, uint32_t ms, struct fronts_counts *counts,
		struct gdrcap_error *error);
/* One look at all queues. True: something came. */
bool fronts_collect(struct fronts *fronts, struct fronts_counts *counts);
/* As fronts_play() begins. */
int fronts_begin(struct fronts *fronts, struct gdrcap_error *error);
/* Waits until the card has left. */
int fronts_card_stop(struct fronts *fronts);
/* True when the card has left and all that it completed is collected. */
bool fronts_are_through(const struct fronts *fronts);
/* card_queue.go, and frames of a batch. */
uint64_t *fronts_go(const struct fronts *fronts);
uint32_t fronts_batch(const struct fronts *fronts);
struct front_words *fronts_words(const struct fronts *fronts, uint32_t queue);
/* Tells fronts, and waits until they have ended. */
int fronts_end(struct fronts *fronts, enum front_phase phase, uint32_t timeout_ms);
/* After an error: the card's queues are reset, and fronts go on with what follows. They have ended, and all that
 * they published is collected. */
int fronts_restart(struct fronts *fronts, struct gdrcap_error *error);
/* The slots of queue 0, in GPU memory, and their distance. */
const uint8_t *fronts_slots(const struct fronts *fronts, uint32_t *slot_shift);
const struct front_status *fronts_status(const struct fronts *fronts, uint32_t queue);
const struct card_counts *fronts_card(const struct fronts *fronts, uint32_t queue);
void fronts_close(struct fronts *fronts);

#endif
