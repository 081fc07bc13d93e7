/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tx worker's way to a ConnectX without the driver: work entries of a send queue of ours in place
 * of mbufs. Frames go and come back in order, so slots are a ring: each of the pool's in turn. The
 * pool's mbufs wait outside of it meanwhile, so nobody else has their slots.
 *
 * A queue that the card has stopped is reset by the worker itself, and goes on with the next frame;
 * what was in it is lost, and counted.
 */
#ifndef GDRCAP_TX_OWN_H
#define GDRCAP_TX_OWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/burst_ring.h"
#include "port/own_tx.h"

struct rte_mempool;
struct region;

struct tx_own_config {
	struct devx_card *card;
	uint32_t key; /* of the region */
	const struct region *region;
	struct rte_mempool *pool;
	enum gdrcap_memory memory; /* of ring and completions: HOST, or PINNED for the GPU too */
	int16_t gpu;
};

struct tx_own {
	/* Worker only, once it runs. */
	struct sq_front front;
	uint32_t *slot; /* slot_count of them, in turn */
	uint32_t slot_count, slot_next;
	uint64_t taken;	     /* frames that were given a slot */
	const uint8_t *base; /* of the region, as the card knows it */
	uint32_t slot_shift;
	uint16_t offset;		  /* of a frame in its slot */
	uint64_t reset_frames, reset_tsc; /* front.frames and ticks at the last reset */

	/* Writer: worker. Readers: anybody. */
	/* Frames in a queue that was reset: not sent, where the card said which entry failed; else those
	 * that it had not said to be sent. */
	_Atomic uint64_t lost;
	_Atomic uint64_t resets; /* that were made; written after `why` */
	_Atomic uint64_t why;	 /* tx_own_why() of the last stop */
	_Atomic int failing;	 /* a negative errno: it cannot be reset */

	/* Control. */
	struct own_tx tx;
	struct rte_mempool *pool;
	void **objects; /* of the pool, slot_count of them */
};

int tx_own_create(struct tx_own *own, const struct tx_own_config *config,
		  struct gdrcap_error *error);
/* The worker has left. All zeros: nothing. A failure is the card's: what it may still read stays. */
int tx_own_destroy(struct tx_own *own, struct gdrcap_error *error);

/* What the last stop was, for people. */
void tx_own_explain(const struct tx_own *own, char *text, size_t bytes);

/* ---- worker ---- */

/* The queue does not run: resets it, unless that was tried just now. */
void tx_own_recover(struct tx_own *own);

/* Gives back slots of what was sent; mends the queue. */
static inline __attribute__((always_inline)) void tx_own_poll(struct tx_own *own)
{
	(void)sq_poll(&own->front);
	if (__builtin_expect(own->front.state != SQ_RUNS, 0))
		tx_own_recover(own);
}

/* Frames that may be given a slot now. */
static inline uint32_t tx_own_room(const struct tx_own *own)
{
	return own->slot_count - (uint32_t)(own->taken - own->front.sent);
}

/* The next frame's; after tx_own_room(). */
static inline struct frame_desc tx_own_desc(struct tx_own *own, uint16_t length)
{
	const struct frame_desc desc = { own->slot[own->slot_next], length, own->offset };

	own->taken++;
	if (++own->slot_next == own->slot_count)
		own->slot_next = 0;
	return desc;
}

/* The last `count` frames that were given slots are not sent. */
static inline void tx_own_drop(struct tx_own *own, uint32_t count)
{
	own->taken -= count;
	own->slot_next = own->slot_next >= count ? own->slot_next - count
						 : own->slot_next + own->slot_count - count;
}

/*
 * Posts `count` frames that are written (WRITTEN: the caller's COLLECT came before), 1 to
 * BURST_FRAMES_MAX, and rings. All or, where there is no room, 0. Reads no frame.
 */
static inline __attribute__((always_inline)) uint32_t
tx_own_send(struct tx_own *own, const struct frame_desc *desc, uint32_t count)
{
	struct sq_front *front = &own->front;
	const struct sq_queue *queue = &front->queue;
	uint32_t longest = 0, entries;
	int each, marked;

	for (uint32_t i = 0; i < count; i++)
		longest = desc[i].len > longest ? desc[i].len : longest;
	each = longest >= SQ_LARGE;
	if (!sq_fits(front, count, each))
		return 0;
	marked = sq_mark_due(front, count, each);
	for (uint32_t i = 0; i < count; i++)
		sq_write_frame(queue, front->posted, each, i,
			       (uintptr_t)own->base + ((uint64_t)desc[i].slot << own->slot_shift) +
				       desc[i].offset,
			       desc[i].len);
	entries = sq_entries(count, each);
	for (uint32_t e = 0; e < entries; e++)
		sq_write_entry(queue, front->posted + sq_entry_block(each, e),
			       sq_entry_frames(count, each, e),
			       marked && e + 1 == entries ? SQ_ALWAYS : SQ_IF_FIRST_TO_FAIL);
	sq_burst_add(front, count, each, marked);
	sq_bell(front);
	return count;
}

/* Asks for a completion of all that was posted. False: no room for that now. */
static inline bool tx_own_flush(struct tx_own *own)
{
	if (own->front.bursts_unmarked == 0)
		return true;
	if (!sq_post_nop(&own->front))
		return false;
	sq_bell(&own->front);
	return true;
}

/* The card is through with all that was posted. */
static inline bool tx_own_is_through(const struct tx_own *own)
{
	return own->front.sent == own->front.frames;
}

#endif
