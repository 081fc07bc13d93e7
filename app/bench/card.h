/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kernel that plays the network card for fronts on the same GPU: it writes completions into GPU memory in the
 * ring's order and honours the doorbell record. Frames lie in their slots beforehand, or are copied
 * there from a list of frames, one after the other.
 */
#ifndef BENCH_CARD_H
#define BENCH_CARD_H

#include "kernels/front.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CARD_QUEUES_MAX 16u
#define CARD_BLOCKS_MAX 8u /* a queue */

/* What the card does otherwise than it should, for tests of those who notice. */
enum card_fault {
	CARD_SOUND,
	CARD_EARLY, /* completion before payload */
	CARD_TORN,  /* a completion's last word before the others */
	CARD_BLIND, /* does not look at the record: writes on */
	CARD_ERROR, /* at frame `fault_at`: an error completion, then flushes what is posted */
	CARD_ODD_COUNTER, /* there: the counter of another work entry */
	CARD_TOO_LONG,	  /* there: a length that no slot has */
	CARD_ODD_ENTRY,	  /* there, of strides: another work entry */
	CARD_FILLER,	  /* there, of strides: that it holds no frame */
};

/* A frame of the list: where it lies, and how long it is. */
struct card_frame {
	uint32_t at; /* in units of 16 bytes */
	uint32_t len;
};

/* Addresses are the device's. */
struct card_queue {
	uint8_t *cq;
	const uint32_t *record;
	uint32_t cq_entries, slots, first_slot;
	uint32_t slot_shift;
	uint8_t *frames; /* of slot 0 of the region */
	uint32_t len;	 /* of frames that lie in their slots */
	/* Frames to be copied into slots, in turn; NULL: they lie there. One block a queue. */
	const struct card_frame *list;
	const uint8_t *bytes;
	uint32_t list_count;
	/* Copied frames: what finds no posted slot is lost; 0: the card waits. */
	uint32_t loses;
	uint32_t batch;	   /* copied frames: that come together at most, 1..1024 */
	uint32_t ragged;   /* 1: batches of 1 to `batch`, by a fixed rule */
	uint32_t pause_ns; /* after each */
	uint32_t fault;	   /* enum card_fault */
	uint32_t fault_at;
	uint32_t stride_shift; /* as of struct cq_front_queue */
	uint64_t limit;	       /* frames to come on the wire; 0: until it is told to stop */
	/* Pinned: so many batches may have come; writer: the CPU. For frames that lie, of which then 1..32 a batch
	 * come, as soon after the word was changed as can be: all else was done before. NULL: always. */
	const uint64_t *go;
};

/* Pinned. Writer: card. */
struct card_counts {
	uint64_t wire;		/* frames that came */
	uint64_t completed;	/* of these */
	uint64_t out_of_buffer; /* of these */
	uint64_t flushed;	/* error completions */
	uint64_t over;		/* 1: it has left: written last (release) */
	uint64_t reserved[11];
};

struct bench_card;

int bench_card_open(int ordinal, const struct card_queue *queues, uint32_t count, uint32_t blocks,
		    struct bench_card **card);
/* Goes on where it stopped. */
int bench_card_start(struct bench_card *card);
void bench_card_stop(struct bench_card *card);
/* It has left: as if its queues were reset, after an error. Completions go on behind those that were written,
 * work entries begin anew, and their record is 0. */
int bench_card_reset(struct bench_card *card);
/* Waits until it has left. */
int bench_card_join(struct bench_card *card, uint32_t timeout_ms);
const struct card_counts *bench_card_counts(const struct bench_card *card, uint32_t queue);
void bench_card_close(struct bench_card *card);

#ifdef __cplusplus
}
#endif
#endif
