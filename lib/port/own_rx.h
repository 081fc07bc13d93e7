/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive queue of our own on a ConnectX: its work entries are the slots of a part of the region,
 * entry i is slot first_slot + i for ever, or several slots each (cq_front_queue.h). Control code; what is done for each frame is done by
 * whoever polls the completion queue and moves the doorbell record, the front.
 *
 * Order, for a port that devx_open() was called for and that is probed:
 *   own_rx_create(), the front posts (stores its count of work entries in the record),
 *   own_rx_start(), steering_create() with OWN_RX_FLOW_QUEUE, ...,
 *   steering_destroy(), the front ends, own_rx_destroy(), the port closed, devx_close().
 *
 * A queue is reset under the run, rules and all staying as they are, in three steps:
 *   1. the front has stopped; own_rx_halt(): no work entry is taken any more, those that were
 *      posted have come back, flushed, and the record is 0;
 *   2. the front reads completions until there are none, forgets how many work entries were posted,
 *      and posts again; the completion queue's index goes on;
 *   3. own_rx_start().
 */
#ifndef GDRCAP_OWN_RX_H
#define GDRCAP_OWN_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "port/cq_front_queue.h"
#include "port/devx.h"
#include "port/own_memory.h"

#define OWN_RX_PRESET 0xf1 /* of each byte of the completion queue: an entry of no completion */

/* How a rule of the port names queue `queue` of ours: steering_config.first_queue is that of 0. */
#define OWN_RX_FLOW_QUEUE(queue) (64536u + (queue))

struct own_rx_config {
	struct devx_card *card;
	uint16_t port, queue; /* ethdev port id; which of ours at this port */
	/* The region: where the card finds its first byte, and by which key (devx_key_create()). */
	uint8_t *base;
	uint32_t key;
	uint32_t slot_shift, first_slot;
	uint32_t slots; /* a power of two, up to CQ_FRONT_SLOTS_MAX */
	/* Slots, and so frames, of a work entry: a power of two, CQ_FRONT_ENTRIES_MIN work entries at least; 0 or
	 * 1: the queue is cyclic. */
	uint32_t strides;
	bool pads; /* the card fills writes up to whole cache lines */
	/*
	 * Where the completion queue lies: HOST, for a CPU thread as the front; PINNED or DEVICE for
	 * the GPU: in the same memory as the frames, since a completion that took another path could
	 * overtake its frame. The record lies in host memory, or `record_beside` the completion queue.
	 */
	enum gdrcap_memory memory;
	bool record_beside;
	int16_t gpu;	/* gpudev id; not of HOST */
	bool cpu_front; /* a CPU thread is the front in DEVICE memory, too: gpu_host */
	/* Fills DEVICE memory where the CPU does not reach it; not called else. */
	int (*fill)(void *context, void *at, int byte, size_t bytes);
	void *fill_context;
};

struct own_rx {
	struct own_rx_config config;
	struct cq_front_queue front; /* with addresses of the front's */

	struct own_memory rings, completions;
	struct devx_object cq_object, counter, rq;
	bool mapped; /* known to the port's rules */
	uint32_t counted;
	uint64_t out_of_buffer;
};

/* Reset, nothing posted. On failure nothing is left. */
int own_rx_create(struct own_rx *rx, const struct own_rx_config *config,
		  struct gdrcap_error *error);
/* No rule leads to it, and its front has ended. All zeros: nothing. A failure is that of the card or
 * the driver, which may still write into it: its memory then stays. */
int own_rx_destroy(struct own_rx *rx, struct gdrcap_error *error);

int own_rx_start(struct own_rx *rx, struct gdrcap_error *error);
int own_rx_halt(struct own_rx *rx, struct gdrcap_error *error);

struct own_rx_counters {
	uint64_t out_of_buffer; /* frames for this queue that found no work entry posted, exactly */
	bool failed;		/* the card has stopped it with an error */
};
/* Since own_rx_create(). One thread at a time; at least once in 2^32 lost frames, and seldom: it is two
 * commands of the card's firmware. */
int own_rx_counters(struct own_rx *rx, struct own_rx_counters *counters,
		    struct gdrcap_error *error);

#endif
