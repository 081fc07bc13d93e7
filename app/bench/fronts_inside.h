/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of fronts.h: fronts.c makes and ends them, fronts_play.c is their accountant. */
#ifndef BENCH_FRONTS_INSIDE_H
#define BENCH_FRONTS_INSIDE_H

#include "base/log.h"
#include "bench/fronts.h"
#include "bench/resident.h"

#define FRONTS_STUCK_MS 5000u
#define FRONTS_JOIN_MS 10000u

/* A queue; what the card and the front write lies in GPU memory. */
struct front_queue {
	struct burst_ring_view view;
	struct frame_desc *desc;
	struct burst_ready *ready;
	struct burst_beside *beside;
	uint64_t *free_word;
	uint32_t *end, *record;
	uint8_t *cq;
	/* pinned */
	uint64_t *head;
	struct front_words *words;
	struct front_status *status;
	uint64_t collected, frames; /* bursts; frames */
	uint32_t first;		    /* completion of work entry 0 */
	uint64_t wire; /* of the list: number on the wire of the frame that comes next */
};

struct fronts {
	const struct bench *bench;
	struct fronts_config config;
	struct card_queue card_config; /* config.card, if there is one */
	struct resident *resident; /* frames, pinned parts of rings; its workers are the checkers */
	struct kernel_workers *front;
	struct bench_card *card;
	uint32_t cq_entries;
	uint64_t *go;  /* pinned */
	uint8_t *list; /* the card's: entries, then bytes */
	struct front_queue queue[FRONTS_MAX];
};

/* Says what a call of the kernels' answered. */
static inline int fronts_failed(struct gdrcap_error *error, int ret)
{
	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

#endif
