/* SPDX-License-Identifier: BSD-3-Clause */
/* From a front's words to a receiver's counters. */
#include "verdict/front_follow.h"

#include <string.h>

#define FOLLOW_BURSTS 256u /* at one look */

static uint64_t status_read(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void count_set(_Atomic uint64_t *count, uint64_t value)
{
	/* What is told late, or is just being carried over to the next front, never goes back. */
	if (value > atomic_load_explicit(count, memory_order_relaxed))
		atomic_store_explicit(count, value, memory_order_release);
}

/* Of all fronts of the queue. Sums of before are read first: they grow after a status is cleared. */
static uint64_t sum_of(const _Atomic uint64_t *before, const uint64_t *now)
{
	return atomic_load_explicit(before, memory_order_acquire) + status_read(now);
}

void front_follow_init(struct front_follow *follow, struct rx_worker *worker,
		       struct front_words *words, struct front_status *status, bool leased)
{
	memset(follow, 0, sizeof(*follow));
	follow->worker = worker;
	follow->words = words;
	follow->status = status;
	follow->leased = leased;
	words->lease = leased ? 0 : UINT64_MAX;
	worker->fronted = true;
}

/* ---- accountant ---- */

/* Frames `first` on, that came at `now`, which is when they were seen. */
static void times_keep(struct ring_producer *ring, uint32_t first, uint32_t frames, uint64_t now)
{
	for (uint32_t i = 0; i < frames; i++)
		ring->tsc[(first + i) & ring->desc_mask] = now;
}

/* The next burst, if it is published. Returns its frames. */
static uint32_t burst_see(struct ring_producer *ring, uint64_t now)
{
	const uint32_t slot = (uint32_t)ring->burst & ring->burst_mask;
	/* Acquire: descriptors, where the CPU may read them. Partner: the front's store of `head`. */
	const uint64_t word = __atomic_load_n(&ring->echo[slot], __ATOMIC_ACQUIRE);
	const uint32_t first = burst_word_first(word), frames = burst_word_count(word);

	if (!burst_word_is(word, ring->burst, ring->burst_bits))
		return 0;
	if (ring->came)
		ring->came[slot] = now;
	if (ring->tsc)
		times_keep(ring, first, frames, now);
	ring->head = ring->first = first + frames;
	ring->end[slot] = ring->head;
	ring->burst++;
	if (ring->told)
		stream_count_add(ring->told, 1);
	return frames;
}

static void frames_came(struct rx_worker *worker, uint32_t bursts, uint64_t frames, uint64_t now)
{
	if (atomic_load_explicit(&worker->first_tsc, memory_order_relaxed) == 0)
		atomic_store_explicit(&worker->first_tsc, now, memory_order_relaxed);
	atomic_store_explicit(&worker->last_tsc, now, memory_order_relaxed);
	counter_add(&worker->frames, frames);
	counter_add(&worker->bursts, bursts);
	atomic_store_explicit(&worker->ring.published, worker->ring.burst, memory_order_relaxed);
}

static void looks_count(struct front_follow *follow)
{
	const struct front_status *status = follow->status;
	struct rx_worker *worker = follow->worker;

	count_set(&worker->bytes, sum_of(&follow->bytes, &status->bytes));
	count_set(&worker->idle, sum_of(&follow->passes, &status->passes));
	count_set(&worker->empty, sum_of(&follow->empty, &status->empty));
}

/* The run is over for it, and all that it published was seen. */
static void end_look(struct front_follow *follow)
{
	struct ring_producer *ring = &follow->worker->ring;
	const int phase = atomic_load_explicit(&follow->worker->phase, memory_order_relaxed);

	/* Asked once more: between two fronts the phase may have become that of the next. */
	if (phase < RX_DRAIN || !front_follow_has_ended(follow) ||
	    atomic_load_explicit(&ring->ended, memory_order_relaxed))
		return;
	looks_count(follow);
	ring_end(ring);
}

uint64_t front_follow_look(struct front_follow *follow, uint64_t now)
{
	struct ring_producer *ring = &follow->worker->ring;
	/* First: what was published before it ended is seen below. */
	const bool ended = front_follow_has_ended(follow);
	uint64_t frames = 0;
	uint32_t bursts = 0, n = 0;

	/* Its looks before its bursts are: those that found nothing were later. */
	looks_count(follow);
	for (; bursts < FOLLOW_BURSTS; bursts++) {
		n = burst_see(ring, now);
		if (n == 0)
			break;
		frames += n;
	}
	if (bursts)
		frames_came(follow->worker, bursts, frames, now);
	else if (ended)
		end_look(follow);
	return ring->burst;
}

void front_follow_release(struct front_follow *follow, uint64_t through)
{
	struct ring_producer *ring = &follow->worker->ring;
	uint64_t frames = 0;

	for (; ring->reclaimed != through; ring->reclaimed++)
		frames += burst_word_count(ring_word(ring, ring->reclaimed));
	if (frames)
		counter_add(&follow->worker->back, frames);
	ring->tail = through ? ring->end[(uint32_t)(through - 1) & ring->burst_mask] : ring->tail;
	/* LEASE, after the last reads of frames; ROOM, after those of results and of the words above. Partner:
	 * the acquire loads of the front. */
	if (follow->leased)
		__atomic_store_n(&follow->words->lease, through, __ATOMIC_RELEASE);
	__atomic_store_n(&follow->words->collected, through, __ATOMIC_RELEASE);
}

/* ---- control ---- */

void front_follow_phase(struct front_follow *follow, enum rx_phase phase)
{
	/* PHASE: no data depends on it. */
	__atomic_store_n(&follow->words->phase,
			 (uint64_t)(phase == RX_RUN	  ? FRONT_RUN
				    : phase == RX_ABANDON ? FRONT_LEAVE
							  : FRONT_DRAIN),
			 __ATOMIC_RELAXED);
}

bool front_follow_has_ended(const struct front_follow *follow)
{
	/* Partner: the front's release store, its last. */
	const uint64_t state = __atomic_load_n(&follow->status->state, __ATOMIC_ACQUIRE);

	return state == FRONT_ENDED;
}

bool front_follow_is_through(const struct front_follow *follow)
{
	const struct ring_producer *ring = &follow->worker->ring;

	return atomic_load_explicit(&ring->ended, memory_order_acquire) &&
	       atomic_load_explicit(&ring->collected, memory_order_acquire) ==
		       atomic_load_explicit(&ring->published, memory_order_relaxed);
}

static void carry(_Atomic uint64_t *sum, uint64_t last)
{
	/* Release: after the status was cleared. Partner: sum_of(). */
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + last,
			      memory_order_release);
}

void front_follow_begin(struct front_follow *follow)
{
	const struct front_status last = *follow->status;
	struct front_status *status = follow->status;

	__atomic_store_n(&status->bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&status->passes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&status->empty, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&status->state, FRONT_NONE, __ATOMIC_RELAXED);
	carry(&follow->bytes, last.bytes);
	carry(&follow->passes, last.passes);
	carry(&follow->empty, last.empty);
	memset(&status->fault, 0, sizeof(status->fault));
	front_follow_phase(follow, RX_RUN);
}
