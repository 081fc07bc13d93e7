/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A front on a GPU: what a job of KERNEL_FRONT is given for each of its rings, and the words by which
 * it and the host tell each other how far they are. The front polls the completion queue of a receive
 * queue of our own, publishes bursts into the ring, takes freed slots back and posts them again
 * (kernels/cuda/front.cuh).
 *
 * Frames are numbered as completions are, from 0, in 32 bits that wrap: frame i's completion is entry
 * i & (cq_entries - 1), its descriptor desc[i & desc_mask]. Its slot is that of its place (cq_front.h).
 */
#ifndef GDRCAP_KERNELS_FRONT_H
#define GDRCAP_KERNELS_FRONT_H

#include <stdint.h>

#include "capture/burst_ring.h"
#include "capture/cq_front.h"

/* What the host wants of a front. */
enum front_phase {
	FRONT_RUN,
	FRONT_DRAIN, /* publish what has come, wait until it is freed, end */
	FRONT_LEAVE, /* end at once: whoever frees bursts is gone */
};

/* In struct front_status. */
enum front_state {
	FRONT_NONE, /* did not begin yet */
	FRONT_RUNS,
	FRONT_DRAINS,
	FRONT_FAILED, /* of what came before all is freed: waits for FRONT_DRAIN */
	FRONT_ENDED,
};

/*
 * In pinned memory, two lines. The front reads it over PCIe, in one go.
 *
 * PHASE: `phase`; no data depends on it. Partner: the front's last store, of `state`.
 *
 * ROOM: `collected`, the bursts that are in the verdict, after the accountant's last read of their results and
 * records. Partner: the front publishes into a burst's words, and descriptors and records, only when what had
 * them before is collected. Without it a verdict would be overwritten that nobody has read. With a consumer that is
 * the caller's, which gives bursts back by done words in pinned memory, it is FREE as well: acquired from those.
 *
 * LEASE: `lease`, the bursts whose slots nobody on the host holds: the saver, or whoever else reads frames after
 * they were checked; after its last read. UINT64_MAX: nobody ever does. Partner: the front posts a slot only
 * when its burst is freed and no longer leased. Without it a frame would be overwritten while it is saved.
 */
struct front_words {	/* writer: host */
	uint64_t phase; /* enum front_phase */
	uint64_t collected;
	uint64_t lease;
	uint64_t reserved[13];
};

/* In pinned memory. Relaxed words, each for itself; a look at them while it runs may mix two moments. After
 * FRONT_ENDED (store-release, after the front's last access to completions and record) all are final. */
struct front_status { /* writer: front */
	uint64_t frames, bytes, bursts;
	uint64_t passes,
		empty; /* looks at the completion queue; those that found nothing though slots
				* were posted. Told about once a ms while nothing comes */
	uint64_t reposts;
	uint64_t backlog; /* most frames that were published and not yet posted again */
	uint64_t state;	  /* enum front_state */
	uint64_t
		next; /* number of the frame that would come next; failed: behind what was flushed */
	uint64_t reserved[7];
	struct cq_fault fault; /* why it failed; kind CQ_NONE: it did not */
};

/* All pointers are the device's. */
struct kernel_front {
	struct cq_front_queue queue;
	const struct front_words *words;
	struct front_status *status;
	/*
	 * The words of `ready` once more, in pinned memory: so the accountant knows which frames a burst has.
	 * Each is stored after PUBLISH, and says of which use of its place it is: a reader that has the
	 * burst's outcome waits until it is there. With `host_reads`, as a release: the descriptors, which then lie
	 * in pinned memory, come before it. Partner: the acquire load of front_follow_look().
	 */
	uint64_t *head;
	uint32_t *end;	/* GPU memory: by burst, the number of the frame after its last */
	uint64_t burst; /* number of the first to publish */
	uint32_t first; /* number of the frame that is the completion of work entry 0 */
	uint32_t
		next; /* of the first to look at: `first`, or where another front of the queue ended */
	uint32_t
		host_reads; /* not 0: somebody on the CPU reads descriptors, or says that the burst is there */
	uint32_t host_frees; /* not 0: FREE is the host's `collected`; nobody writes free_word */
	uint32_t burst_max;  /* frames; a power of two, at most BURST_FRAMES_MAX */
	uint32_t
		burst_us; /* a burst that is not full waits so long at most while others are under way */
	uint32_t ticks_per_us; /* of the GPU's clock; filled in by start() */
	uint32_t warps;	       /* of the front's block, 3..32; 0: the back end's default */
	uint32_t
		eager; /* while fewer bursts are under way, none waits to be full; 0: the back end's default */
};

/* ---- sums; all numbers wrap ---- */

/* Frames from `frame` on that a burst may have: full bursts end at multiples of burst_max, so none goes round
 * the end of the descriptors, and after one that was not full the next are again where they are expected. */
CQ_FRONT_HD uint32_t front_limit(uint32_t frame, uint32_t burst_max)
{
	return burst_max - (frame & (burst_max - 1));
}

/* Where a turn begins that is `away` turns, 1 or more, from one that begins with `next`, if all of them are as
 * full as they may be. */
CQ_FRONT_HD uint32_t front_ahead(uint32_t next, uint32_t away, uint32_t burst_max)
{
	return next + away * burst_max - (next & (burst_max - 1));
}

/* 1: completions of that turn may be looked at. Beyond a lap, an entry of another lap has the owner bit of
 * this one. */
CQ_FRONT_HD uint32_t front_may_look(uint32_t away, uint32_t burst_max, uint32_t cq_entries)
{
	return away < cq_entries / burst_max;
}

/* ROOM: 1: a turn whose burst ends with frame `end` at most may be published when turns before room_turn and frames
 * before room_frame may. */
CQ_FRONT_HD uint32_t front_fits(uint32_t turn, uint32_t room_turn, uint32_t end,
				uint32_t room_frame)
{
	return (int32_t)(room_turn - turn) > 0 && (int32_t)(room_frame - end) >= 0;
}

/* FREE and LEASE: turns whose slots may go back. `leases`: 0 while none is ever held. */
CQ_FRONT_HD uint32_t front_through(uint32_t freed, uint32_t lease, uint32_t leases)
{
	return leases && (int32_t)(lease - freed) < 0 ? lease : freed;
}

/* The earlier of two turns. */
CQ_FRONT_HD uint32_t front_earlier(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0 ? a : b;
}

#endif
