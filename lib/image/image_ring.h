/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images on their way to the caller and back: from the assembler, by one ring of buffers' numbers, and
 * to it, by one stack.
 *
 * OFFER: the assembler's store-release of `ready` after the image and its place in `order`. Partner:
 * the taker's acquire load. Who takes, the caller or an assembler that wants the oldest back, moves
 * `taken` on by a compare-and-swap, and so has that image alone: `order` is not written again before
 * `taken` has passed.
 * RETURN: the caller's compare-and-swap, release, of `released`, after his last access to the image.
 * Partner: the assembler's exchange, acquire, which takes all at once, so that the stack knows no ABA.
 * A buffer that came back twice would close the stack to a circle: `held` lets the first return through.
 */
#ifndef GDRCAP_IMAGE_RING_H
#define GDRCAP_IMAGE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/ring_wake.h"
#include "kernels/place.h"

struct image_ring {
	_Atomic uint64_t ready; /* images offered. Writer: assembler */
	_Atomic uint64_t taken; /* of them */
	_Atomic uint32_t order[PLACE_RING_MAX];
	_Atomic uint32_t released;	 /* the last buffer that came back, + 1; 0: none */
	uint32_t before[PLACE_RING_MAX]; /* the one released before it, + 1 */
	/* Whose the buffer is: the caller's. Writers: the taker, and then one of those who return it. */
	_Atomic bool held[PLACE_RING_MAX];
	_Atomic int ended; /* release, after the last OFFER */
	struct ring_wake wake;
};

/* ---- assembler ---- */

static inline void image_ring_offer(struct image_ring *ring, uint32_t slot)
{
	const uint64_t ready = atomic_load_explicit(&ring->ready, memory_order_relaxed);

	atomic_store_explicit(&ring->order[ready % PLACE_RING_MAX], slot, memory_order_relaxed);
	/* OFFER */
	atomic_store_explicit(&ring->ready, ready + 1, memory_order_release);
}

/* Slot + 1 of the first of those that came back; 0: none did. image_ring_before() has the others. */
static inline uint32_t image_ring_returned(struct image_ring *ring)
{
	if (!atomic_load_explicit(&ring->released, memory_order_relaxed))
		return 0;
	/* RETURN */
	return atomic_exchange_explicit(&ring->released, 0, memory_order_acquire);
}

static inline uint32_t image_ring_before(const struct image_ring *ring, uint32_t slot)
{
	return ring->before[slot];
}

static inline void image_ring_end(struct image_ring *ring)
{
	atomic_store_explicit(&ring->ended, 1, memory_order_release);
	ring_wake_end(&ring->wake);
}

/* ---- assembler and caller ---- */

/* The oldest that nobody has, into *slot. */
static inline bool image_ring_take(struct image_ring *ring, uint32_t *slot)
{
	uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);

	/* OFFER */
	while (taken != atomic_load_explicit(&ring->ready, memory_order_acquire)) {
		*slot = atomic_load_explicit(&ring->order[taken % PLACE_RING_MAX],
					     memory_order_relaxed);
		if (atomic_compare_exchange_weak_explicit(&ring->taken, &taken, taken + 1,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

/* ---- caller ---- */

/* The oldest, to be kept until it is returned. */
static inline bool image_ring_hold(struct image_ring *ring, uint32_t *slot)
{
	if (!image_ring_take(ring, slot))
		return false;
	atomic_store_explicit(&ring->held[*slot], true, memory_order_relaxed);
	return true;
}

/* Nothing for one that is not held. */
static inline void image_ring_return(struct image_ring *ring, uint32_t slot)
{
	uint32_t top = atomic_load_explicit(&ring->released, memory_order_relaxed);

	if (!atomic_exchange_explicit(&ring->held[slot], false, memory_order_relaxed))
		return;
	do
		ring->before[slot] = top;
	/* RETURN */
	while (!atomic_compare_exchange_weak_explicit(&ring->released, &top, slot + 1,
						      memory_order_release, memory_order_relaxed));
}

#endif
