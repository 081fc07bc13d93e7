/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tx worker: one thread a send queue. It takes empty slots from the pool, requests frames in
 * them through a burst ring (a kernel or its CPU backend writes them, no CPU on this path touches a
 * payload), and hands finished bursts to the port, each frame no earlier than it is due. What the
 * port does not take is offered again. With a send queue of ours (tx_own.h) there are no mbufs: slots
 * go round, and work entries are written from the descriptors.
 */
#ifndef GDRCAP_TX_WORKER_H
#define GDRCAP_TX_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rest.h"
#include "base/thread.h"
#include "capture/ring_producer.h"
#include "pattern/frame.h"
#include "port/tx_clock.h"
#include "replay/file_frames.h"
#include "replay/pacing.h"
#include "replay/tx_own.h"

struct rte_mempool;
struct region;
struct tx_gpu;

struct tx_config {
	uint16_t port, queue;
	struct tx_own *own; /* a send queue of ours; NULL: the port's */
	struct tx_gpu *gpu; /* which a kernel drives; NULL: this worker does */
	const struct region *region;
	struct rte_mempool *pool; /* the port's */
	const struct frame_layout *layout;
	const uint16_t *lengths; /* in memory, without FCS: the cycle of frame lengths */
	uint32_t length_count;
	uint32_t stream_first, stream_count, stream_step; /* first, first + step, ... */
	uint64_t frames;				  /* to send; UINT64_MAX: until stopped */
	struct file_frames *file;    /* frames of a file instead of the pattern's; one stream, one
				   * worker; NULL: pattern */
	struct pacing_config pacing; /* of this worker: its share of the rate */
	uint64_t start_ns; /* of the wall clock: nothing is handed over before; 0: at once */
	const struct tx_clock *clock; /* the port itself sends on time; NULL: this worker does */
	/* Must have sent a frame before this one sends its first: a card's driver registers a pool's
	 * memory when a queue first sends from it, and two queues that did so of one pool at the
	 * same time lost frames; no two do so at all. NULL: nobody. */
	const struct tx_worker *after;
	/* Not 0: after the last frame, end-of-stream frames for each stream, TX_END_TIMES times,
	 * that say this many streams. */
	uint32_t end_streams;
	uint32_t
		idle_us; /* one that has nothing to hand over sleeps for so long at most; 0: it spins */
	bool writer_wakes; /* with idle_us: CPU threads write the frames, and wake this worker */
	bool wire; /* a software wire in this process: its receiver wakes this worker when there are slots */
};

#define TX_END_TIMES 5u	    /* of each end-of-stream frame, ... */
#define TX_END_GAP_US 2000u /* ... so far apart, so that a burst of loss does not take all */

struct tx_stream {
	uint64_t sequence, position; /* of the next frame to be requested */
	_Atomic uint64_t sent;	     /* frames handed to the wire; readers: anybody */
};

/* Of a frame of the pattern. */
struct tx_size {
	uint16_t length, payload; /* bytes in memory, and of them the pattern's */
};

struct tx_worker {
	struct ring_producer ring;

	/* Worker only. */
	struct tx_config config;
	struct tx_stream *streams;
	struct tx_size *sizes; /* config.length_count of them: the cycle */
	uint32_t size_at;      /* in the cycle */
	uint32_t stream_at;    /* whose turn it is */
	uint64_t requested;    /* frames */
	uint64_t limit; /* of them: config.frames, a file's loops, or where a file broke off */
	uint64_t file_at, file_ns; /* next frame in its loop; times of all loops before */
	struct tx_clock_map clock_map;
	uint64_t sending;		      /* number of the burst that is being sent */
	uint64_t clock_tsc, clock_ns, tsc_hz; /* wall clock at clock_tsc */
	uint64_t start_tsc;	 /* when config.start_ns comes, once that is near; or 0 */
	struct thread_naps naps; /* of an idle one; most_us: config.idle_us */
	struct rest rest;  /* with config.writer_wakes: its sleep until somebody brings work */
	uint64_t late_tsc; /* how late Linux woke it lately */
	bool filling;	   /* frames are requested until the horizon is reached */
	/* Who receives on the same wire: before the start; NULL: nobody here. */
	struct wake *receiver;
	uint64_t held_tsc; /* since when nothing is handed over for want of a link; 0: it is */

	/* Writer: this worker. Readers: anybody, relaxed. */
	_Alignas(RING_LINE) _Atomic uint64_t sent; /* frames the port took */
	_Atomic uint64_t bytes;			   /* their lengths in memory */
	_Atomic uint64_t stalled; /* polls that found no free slot or a full wire */
	_Atomic uint64_t starved; /* polls that found the next frames not yet read or written */
	_Atomic uint64_t
		idle; /* rounds in which the port took nothing and nothing was requested, and
				* those of end-of-stream frames */
	_Atomic uint64_t first_tsc, last_tsc; /* of the first and last hand-over; first 0: none */
	_Atomic uint64_t last_frames, last_bytes; /* of the last hand-over: they begin at last_tsc,
						   * so a rate is what was sent before it */
	_Atomic uint64_t
		last_due; /* ticks from the first frame's time to the last one's, as asked */
	_Atomic uint64_t
		next_tsc; /* when the next frame is due, while that is further away than frames
				    * are requested ahead; or 0 */
	_Atomic uint64_t started_tsc, start_late_ns; /* of config.start_ns: when it was seen to have
						      * come, and how long ago it was then; 0: not yet */
	_Atomic int end_unsaid; /* not one end-of-stream frame of each stream could be sent */
	_Atomic int finished;	/* all of config.frames are sent, or it was stopped */

	/* Writer: control. Reader: this worker. */
	_Alignas(RING_LINE) _Atomic int stop;
	_Atomic int hold; /* the link is down: hand nothing over */

	struct wake wake; /* what it sleeps on */

	struct pacing pacing;

	struct thread thread;
};

int tx_worker_create(struct tx_worker *worker, const struct tx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error);
void tx_worker_destroy(struct tx_worker *worker);
/* Any thread. */
static inline void tx_worker_stop(struct tx_worker *worker)
{
	atomic_store_explicit(&worker->stop, 1, memory_order_relaxed);
	wake_look(&worker->wake);
}
/* The thread's body. */
void tx_worker_run(void *worker);
/* Inside of the sender: what follows the last frame (tx_end.c), and the wall clock at a tick that
 * is not before the worker's creation. */
void tx_end_streams(struct tx_worker *worker);
void tx_end_own(struct tx_worker *worker);
uint64_t tx_wall_ns(const struct tx_worker *worker, uint64_t tsc);

/* Ticks until the oldest frame that was not sent is due; negative when it already is. */
static inline int64_t tx_until_due(const struct tx_worker *worker, uint64_t now)
{
	const struct ring_producer *ring = &worker->ring;

	return (int64_t)(worker->pacing.base_tsc + ring->tsc[ring->tail & ring->desc_mask] - now);
}

/* Round `idle` found nothing to do: another look, or a sleep. tx_wait.c */
void tx_wait(struct tx_worker *worker, unsigned int idle, bool paced);

/* Before config.start_ns, to be called again and again: naps, or spins. The worker's thread. tx_start.c */
enum tx_start {
	TX_START_FAR,
	TX_START_NEAR, /* frames may be written ahead */
	TX_START_NOW,
};
enum tx_start tx_start_step(struct tx_worker *worker);
/* How long after config.start_ns tick `tsc` was; any thread. False: it has not come yet. */
bool tx_start_late(const struct tx_worker *worker, uint64_t tsc, uint64_t *late_ns);

static inline uint64_t tx_ticks(const struct tx_worker *worker, uint32_t us)
{
	return worker->tsc_hz / 1000000u * us;
}

/* After the thread and the ring's consumer have ended: slots requested and not sent go back. */
void tx_worker_reclaim(struct tx_worker *worker);

#endif
