/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of a burst ring (layout: burst_ring.h), for the rx worker and the tx worker.
 *
 * The ring cannot overflow, and that is arithmetic, not luck. Descriptors: there are at least as
 * many as mbufs in the pool. Bursts: while RING_SMALL_BURSTS are outstanding only full bursts are
 * published, so at most RING_SMALL_BURSTS + descriptors / burst_max + 2 ever are (one more a
 * generation, because a burst never wraps round the end of the descriptors); that many words are
 * allocated, and RING_AHEAD more where CUDA streams wait for bursts: so a stream that was let through by the
 * run's end, and gives back what never came, writes where no burst is outstanding.
 */
#ifndef GDRCAP_RING_PRODUCER_H
#define GDRCAP_RING_PRODUCER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stream_count.h"
#include "base/wake.h"
#include "capture/burst_ring.h"
#include "capture/ring_wake.h"
#include "gdrcap.h"

#define RING_SMALL_BURSTS 1024u
#define RING_AHEAD GDRCAP_STREAM_AHEAD
#define RING_LINE 64

struct rte_mbuf;
struct region;

struct ring_producer {
	/* Producer only. */
	struct frame_desc *desc;
	struct frame_desc *head_desc; /* where the frame of desc[i] begins; NULL: no split */
	struct burst_ready *ready;
	struct burst_beside *beside; /* NULL: nothing is INLINE */
	struct tx_request *request;  /* NULL: capture */
	struct rte_mbuf *
		*mbuf; /* of descriptor i & desc_mask; NULL: a split frame without a rest */
	struct rte_mbuf **head_mbuf; /* split: of where it begins */
	uint32_t *end;		     /* of burst b & burst_mask: descriptor index after its last */
	uint64_t *came;		     /* of burst b & burst_mask: when its last frame did, in ticks,
				      * or as a source dates it (source_clock.h). Reader: accountant, after COLLECT. NULL: nobody asks */
	uint64_t
		*tsc; /* of descriptor i & desc_mask: capture, when it came (enum rx_times); replay,
			* when it is due. NULL: nobody asks */
	uint32_t desc_mask, burst_mask, burst_bits, burst_max;
	uint32_t head;		     /* free-running index of the next descriptor to fill */
	uint32_t first;		     /* of the first descriptor not yet published */
	uint32_t tail;		     /* of the first descriptor whose slot is not back */
	uint64_t burst;		     /* number of the next burst to publish */
	uint64_t reclaimed;	     /* number of the first burst whose slots are not back */
	uint64_t *told;		     /* COUNT: bursts published, for streams; NULL: none can wait */
	struct burst_result *result; /* written by the consumer */
	/*
	 * Where a front on the GPU publishes (ring_config.front): the words of `ready` once more, for the CPU; by
	 * burst & burst_mask. Writer: the front. NULL: a thread publishes, and the members above are its. Else
	 * desc, ready and beside are the front's, as those addresses the GPU has them, and the rest is the accountant's.
	 */
	const uint64_t *echo;
	uint64_t *free_word; /* view.free_word */
	uint32_t *front_end; /* the front's own, in GPU memory */

	struct wake *
		work; /* who takes bursts, where they are CPU threads that sleep: &taker, or NULL */
	/* Capture: the producer, where somebody waits for the slots that it gives back; NULL: nobody.
	 * Before the start. Reader: who gives bursts back. */
	struct wake *giver;

	/* Writer: producer. Readers: accountant, watchdog. */
	_Alignas(RING_LINE) _Atomic uint64_t published; /* bursts */
	_Atomic int ended; /* capture: no burst will be published any more */
	/* Capture, a queue of our own: nothing comes until every slot is back, so none is held for frames to
	 * come. Writer: who resets the queue. Reader: saver, relaxed. */
	_Atomic int wants_all;
	/* Writer: accountant (capture with the built-in consumer). Reader: producer. */
	_Alignas(RING_LINE) _Atomic uint64_t collected; /* bursts whose slots may go back */
	/* Bursts that are in the verdict, `collected` or more. Readers: accountant, watchdog. */
	_Atomic uint64_t accounted;
	/* The caller's own consumer, where it sleeps: both of them. */
	_Alignas(RING_LINE) struct ring_wake wake;
	struct wake taker;

	/* Control. */
	_Alignas(RING_LINE) struct burst_ring_view view; /* for the consumer */
	uint32_t *stop;
	void *memory; /* what both sides see */
	size_t memory_bytes;
	void *gpu_memory; /* the front's part; NULL: none */
	size_t gpu_bytes;
	int16_t gpu;
	bool registered, gpu_mapped;
};

/* For a front on the GPU. */
struct ring_front {
	bool host_reads; /* somebody on the CPU reads descriptors: they and ready lie in pinned memory */
	bool cpu_workers; /* CPU threads stand for the GPU */
	int (*fill)(void *context, void *at, int byte, size_t bytes); /* of GPU memory */
	void *context;
};

struct ring_config {
	const struct region *region;
	const struct region *heads; /* header-data split; NULL: none */
	uint32_t *generation;	    /* burst_ring_view.generation */
	uint32_t stale_us;
	uint32_t frames;    /* mbufs that can be in the ring: its pool's size */
	uint32_t burst_max; /* 1..BURST_FRAMES_MAX */
	bool replay;
	bool times;   /* allocate tsc[] */
	bool came;    /* allocate came[] */
	bool inlines; /* INLINE: the consumer reads what stands beside the ready word */
	bool streams; /* CUDA streams may wait for bursts */
	bool sleeps;  /* who takes bursts sleeps until ring.work is woken */
	const struct ring_front *front; /* NULL: a thread publishes */
};

int ring_create(struct ring_producer *ring, const struct ring_config *config,
		struct gdrcap_error *error);
void ring_destroy(struct ring_producer *ring);

/* Adds to a counter that one thread writes: no locked instruction. Release, so that a thread that acquires it
 * sees what it counts. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_release);
}

static inline uint32_t ring_pending(const struct ring_producer *ring)
{
	return ring->head - ring->first;
}

/* Descriptors that may be filled before the burst is full or the end of the ring is reached. */
static inline uint32_t ring_room(const struct ring_producer *ring)
{
	const uint32_t in_burst = ring->burst_max - ring_pending(ring);
	const uint32_t to_end = ring->desc_mask + 1 - (ring->head & ring->desc_mask);

	return in_burst < to_end ? in_burst : to_end;
}

/* True when the descriptors filled so far are to be published now. */
static inline bool ring_due(const struct ring_producer *ring)
{
	return ring_pending(ring) != 0 &&
	       (ring_room(ring) == 0 || (ring->head & ring->desc_mask) == 0 ||
		ring->burst - ring->reclaimed < RING_SMALL_BURSTS);
}

/* Publishes the descriptors filled since the last call as one burst. */
static inline void ring_publish(struct ring_producer *ring)
{
	const uint32_t slot = (uint32_t)ring->burst & ring->burst_mask;

	ring->end[slot] = ring->head;
	burst_publish(&ring->ready[slot], ring->beside ? &ring->beside[slot] : NULL,
		      &ring->desc[ring->first & ring->desc_mask], ring->burst, ring->burst_bits,
		      ring_pending(ring), ring->first);
	ring->first = ring->head;
	ring->burst++;
	if (ring->told)
		stream_count_add(ring->told, 1);
	/* Only counts; whoever reads burst results synchronises on their done words. */
	atomic_store_explicit(&ring->published, ring->burst, memory_order_relaxed);
	wake_look(ring->work);
}

/* After the last PUBLISH. Partner: the acquire load in queue_poll(). */
static inline void ring_end(struct ring_producer *ring)
{
	atomic_store_explicit(&ring->ended, 1, memory_order_release);
	ring_wake_end(&ring->wake);
}

/* The ready word of a burst that is published, as the CPU may read it. */
static inline uint64_t ring_word(const struct ring_producer *ring, uint64_t b)
{
	const uint32_t slot = (uint32_t)b & ring->burst_mask;

	return ring->echo ? __atomic_load_n(&ring->echo[slot], __ATOMIC_RELAXED)
			  : ring->ready[slot].word;
}

/* STOP, and ENOUGH after it, as a kernel behind a wait looks at STOP. Any thread, also several times. */
static inline void ring_leave(const struct ring_producer *ring)
{
	/* STOP: no data depends on it. */
	__atomic_store_n(ring->stop, 1, __ATOMIC_RELAXED);
	if (ring->told)
		stream_count_end(ring->told);
	wake_look(ring->work);
}

/* True when the consumer is through with burst b. */
static inline bool ring_is_done(const struct ring_producer *ring, uint64_t b)
{
	return burst_is_done(&ring->result[(uint32_t)b & ring->burst_mask], b, ring->burst_bits);
}

#endif
