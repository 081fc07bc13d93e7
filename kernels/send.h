/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender on a GPU: what a job of KERNEL_SEND is given for each of its rings, and the words by which
 * it and the host tell each other how far they are. A block a queue asks the writers for frames through
 * the burst ring, posts what is written to a send queue of ours (port/sq_front.h) and rings
 * (kernels/cuda/send_front.cu); a sleeping CPU thread copies its counts, and mends the queue.
 */
#ifndef GDRCAP_KERNELS_SEND_H
#define GDRCAP_KERNELS_SEND_H

#include <stdint.h>

#include "capture/burst_ring.h"
#include "port/sq_front.h"

#define KERNEL_SEND_STREAMS_MAX 64u
#define KERNEL_SEND_MARKS_MAX 512u
#define KERNEL_SEND_AHEAD 64u /* bursts that the writers are asked for ahead */

/* What the host wants. */
enum gpu_send_control {
	GPU_SEND_RUN,
	GPU_SEND_HOLD, /* post nothing: the link is down */
	GPU_SEND_STOP, /* leave at once */
};

/* In struct send_status. */
enum gpu_send_state {
	GPU_SEND_NONE, /* did not begin yet */
	GPU_SEND_RUNS,
	GPU_SEND_FAILED, /* handed over: waits until the host has mended the queue */
	GPU_SEND_ENDED,	 /* handed over, and left: all of `limit` is posted, or it was stopped */
};

/* Pinned, a line. Writer: host. */
struct send_words {
	uint32_t control; /* enum gpu_send_control; no data depends on it */
	/* RESUME: queues that were mended, stored (release) after struct send_place was. Partner: the
	 * kernel's acquire before it reads that. Without it it would go on with a queue that is in error. */
	uint32_t resumes;
	uint32_t reserved[14];
};

/* Pinned. Writer: kernel, relaxed; a look while it runs may mix two moments. */
struct send_status {
	uint64_t sent, bytes; /* frames posted, and their lengths in memory */
	uint64_t stalled;     /* rounds without a slot or a place in the queue */
	uint64_t starved,
		idle; /* rounds in which the next frames were not written; in which nothing was done */
	uint64_t reserved[2];
	/* HANDED: enum gpu_send_state, stored (release) after struct send_place, the last access to queue and
	 * ring. Partner: the host's acquire. Without it two would drive one queue. */
	uint64_t state;
	/*
	 * PROXY: where the register cannot be mapped: what it is to get, then (release) how often that was
	 * asked for. Partner: the host's acquire of `rings`, before the register. Without it the card might be
	 * rung for before the record says so.
	 */
	uint64_t bell, rings;
	uint64_t reserved_too[6];
};

struct send_stream {
	uint64_t sequence, position; /* of the next frame to be asked for */
	uint64_t sent;
};

/* Pinned: where the sender is. Handed to and fro: HANDED, RESUME. */
struct send_place {
	struct sq_front front;	 /* .mark: pinned as well */
	uint64_t taken;		 /* frames that were given a slot */
	uint64_t requested;	 /* frames */
	uint64_t burst, sending; /* bursts: the next to publish, the next to post */
	uint32_t head, tail;	 /* of the ring's descriptors */
	uint32_t slot_next;	 /* in kernel_send.slot */
	uint32_t size_at, stream_at;
	uint32_t reserved;
	struct send_stream stream[KERNEL_SEND_STREAMS_MAX];
};

/* Of the cycle of frame lengths; one more at its end, for the sums. */
struct send_size {
	uint32_t length, reserved;
	uint64_t bytes, payload; /* of all frames before it in the cycle */
};

/* All pointers are the device's; slot and size best lie in its own memory. */
struct kernel_send {
	const struct send_words *words;
	struct send_status *status;
	struct send_place *place;
	const uint32_t *slot; /* slot_count of them, in turn */
	const struct send_size *size;
	uint64_t address; /* of the region, as the card knows it */
	uint64_t limit;	  /* frames */
	uint64_t wall_ns; /* the time of day at start() */
	uint32_t slot_count, size_count;
	uint32_t stream_first, stream_step, stream_count;
	uint32_t burst_max;
	uint32_t each;	 /* the longest frame has an entry of its own, and so has every other */
	uint32_t offset; /* of a frame in its slot */
};

#ifdef __cplusplus
static_assert(sizeof(struct send_words) == 64 && sizeof(struct send_status) == 128, "lines");
#else
_Static_assert(sizeof(struct send_words) == 64 && sizeof(struct send_status) == 128, "lines");
#endif

#endif
