/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive queue in the hands of the caller's own consumer. */
#ifndef GDRCAP_QUEUE_H
#define GDRCAP_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/ring_producer.h"
#include "config/settings.h"
#include "gdrcap.h"
#include "kernels/kernels.h"
#include "port/rx_clock.h"

struct frame_layout;
struct gdrcap_queue;
struct queue_gaps;

struct queue_batch {
	struct gdrcap_batch batch;
	uint64_t burst; /* of the ring; batches without a frame are not the caller's */
	struct gdrcap_queue *queue;
	_Atomic bool held; /* with assertions: it is the caller's */
};

struct gdrcap_queue {
	struct ring_producer *ring;
	const struct kernel_ops *ops;
	struct kernel_device *device;
	enum consumer_kind consumer;
	uint8_t *data; /* region base as the caller's consumer addresses it */
	uint32_t slot_bytes, head_slot_bytes;
	bool timed;
	struct rx_clock clock; /* of the frames' times; renewed by the caller's thread */
	struct queue_batch
		*batches; /* by burst & burst_mask; caller's thread fills, any thread releases */
	uint64_t next;	  /* burst to be polled next; caller's thread only */
	uint64_t given;	  /* batches that the caller got; the same */
	/* Of the frames: queue_frames.c. */
	const struct frame_layout *layout;
	bool readable;	/* by the CPU, whole */
	bool filters;	/* by the rules in `layout`; the card has not done it */
	bool from_zero; /* streams begin with frame 0: the sender is the session's own */
	_Atomic uint64_t filtered;
	struct queue_gaps *gaps; /* NULL: nobody has asked yet */
	bool sleeps;		 /* gdrcap_wait() at once, as idle workers do */
	uint32_t index;		 /* of the session's receive queues */
	_Atomic bool started;	 /* streams may wait: the run's end will let them go */
	_Atomic bool polled; /* with assertions: a thread is in gdrcap_poll() or gdrcap_wait() */
};

/* `clock`: whose times the ring has; copied; NULL: none. */
int queue_create(struct gdrcap_queue *queue, struct ring_producer *ring,
		 enum consumer_kind consumer, const struct kernel_ops *ops,
		 struct kernel_device *device, const struct rx_clock *clock);
void queue_destroy(struct gdrcap_queue *queue);
/* Of `count` frames from descriptor `first` on those that the rules name move to the front: how many.
 * The ring's descriptors are the poller's from the burst's TAKE to its DONE. */
uint32_t queue_filter(struct gdrcap_queue *queue, uint32_t first, uint32_t count);

#endif
