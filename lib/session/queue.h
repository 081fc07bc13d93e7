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

struct gdrcap_queue;

struct queue_batch {
	struct gdrcap_batch batch;
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
		*batches;    /* by burst & burst_mask; caller's thread fills, any thread releases */
	uint64_t next;	     /* burst to be polled next; caller's thread only */
	uint32_t index;	     /* of the session's receive queues */
	_Atomic bool polled; /* with assertions: a thread is in gdrcap_poll() or gdrcap_wait() */
};

/* `clock`: whose times the ring has; copied; NULL: none. */
int queue_create(struct gdrcap_queue *queue, struct ring_producer *ring,
		 enum consumer_kind consumer, const struct kernel_ops *ops,
		 struct kernel_device *device, const struct rx_clock *clock);
void queue_destroy(struct gdrcap_queue *queue);

#endif
