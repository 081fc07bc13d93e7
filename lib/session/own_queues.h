/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiving card's queues, where they are the session's own (rx_by): their objects, and the fronts
 * that poll them. Control thread; what counters say, under session->ports.lock.
 */
#ifndef GDRCAP_OWN_QUEUES_H
#define GDRCAP_OWN_QUEUES_H

#include "capture/cq_worker.h"
#include "port/own_rx.h"

struct connectx_card;
struct port;
struct region;

/* Frames that found no slot in a queue: while it ran, and while it was in error, which is not the
 * consumer's fault. Under session->ports.lock. */
struct own_missed {
	uint64_t all;	   /* the card's counter, as last read */
	uint64_t running;  /* the same, when the queue was last seen to run */
	uint64_t in_error; /* of those, that came while it was in error, in former times */
	uint64_t reposts;  /* its front's, when it was reset */
	bool reset;	   /* and its front has not posted since */
	bool stands;	   /* takes nothing, as last seen */
};

/* Where the front on the GPU that is the next of a queue begins. */
struct own_place {
	uint64_t burst;	      /* to be published first */
	uint32_t first, next; /* frames: the completion of work entry 0; the one to look at */
	bool reset;	      /* the queue is to be started when its front has posted */
};

/* Memory of the GPU's, for queues that it polls. `context`: the session. */
struct own_gpu {
	enum gdrcap_memory kind; /* of completions: as the frames' */
	bool cpu_front;		 /* CPU threads stand for it */
	int (*fill)(void *context, void *at, int byte, size_t bytes);
	int (*read)(void *context, void *to, const void *from, size_t bytes);
	void *context;
};

struct own_queues {
	struct devx_card card;
	struct own_gpu gpu; /* kind HOST: threads poll */
	struct ibv_mr *key; /* of the region */
	uint32_t count;	    /* queues that are there */
	struct own_rx rx[GDRCAP_QUEUES_MAX];
	struct cq_worker cq[GDRCAP_QUEUES_MAX]; /* each its thread's: cq_worker.h */
	/* recover_own.c: starts since the queue's last frame, and frames that had come then. */
	uint32_t tries[GDRCAP_QUEUES_MAX];
	uint64_t frames[GDRCAP_QUEUES_MAX];
	/* Likewise: what the front had done at the last look, and looks in a row that found the queue ended
	 * and its front without anything to do. */
	uint64_t moved[GDRCAP_QUEUES_MAX], idle[GDRCAP_QUEUES_MAX];
	uint32_t ended[GDRCAP_QUEUES_MAX];
	bool dead[GDRCAP_QUEUES_MAX]; /* given up */
	struct own_missed missed[GDRCAP_QUEUES_MAX];
	struct own_place place[GDRCAP_QUEUES_MAX];
};

/* Before the port is opened: opens the card; what the driver is to be told besides `devargs` goes into
 * `opened`. On failure *own may be there: own_queues_close(). */
int own_queues_open(struct own_queues **own, const struct connectx_card *found, const char *name,
		    const char *devargs, char *opened, size_t bytes, struct gdrcap_error *error);
/* The port runs, without rules yet: makes `queues` queues of `slots` slots of the region each, of which a work
 * entry has `strides`. */
int own_queues_create(struct own_queues *own, const struct port *port, struct region *region,
		      uint32_t queues, uint32_t slots, uint32_t strides,
		      struct gdrcap_error *error);
/* `worker` is to poll queue `queue`, which takes frames from now on; NULL: a front on the GPU is. */
int own_queues_poll(struct own_queues *own, uint32_t queue, struct rx_worker *worker,
		    struct gdrcap_error *error);
/* Control, while nobody polls queue `queue`: takes the next frame, if there is one, past the ring. */
bool own_queues_take(struct own_queues *own, uint32_t queue, const struct rx_worker *worker,
		     struct frame_desc *desc);
/* Likewise: what stands in its place; CQ_NONE: nothing. */
enum cq_kind own_queues_kind(const struct own_queues *own, uint32_t queue,
			     const struct rx_worker *worker);
/* No rule leads to them and nobody polls them; the port is still open. NULL: none are there. */
void own_queues_destroy(struct own_queues *own);
/* The port is closed. */
void own_queues_close(struct own_queues **own);

/* Frames of all queues that are lost, exactly; as last known where the card does not answer. */
struct own_lost {
	uint64_t missed; /* found no slot while their queue ran */
	/* Came while it was in error; or had a slot, and what the card said of them, or of one before, was
	 * not to be believed, or was an error. */
	uint64_t error;
};
struct own_lost own_queues_lost(struct own_queues *own);
/* Tells the two apart; called from time to time. */
void own_queues_look(struct own_queues *own);
/* Work entries that came back unused or with an error. */
uint64_t own_queues_flushed(struct own_queues *own);
/* The card has ended the queue with an error. */
bool own_queues_failed(struct own_queues *own, uint32_t queue);
/* The front of queue `queue` is in RX_PAUSE, or has ended: takes everything back, and it begins anew. */
int own_queues_reset(struct own_queues *own, uint32_t queue, struct gdrcap_error *error);

/* ---- those that a front on the GPU polls: own_queues_gpu.c ---- */

/* Queue q has nothing posted: what its last front did not take is counted, and the next begins behind it. */
int own_front_discard(struct own_queues *own, uint32_t q, struct gdrcap_error *error);
/* While no front runs: the next frame of queue q, if there is one, past the ring. */
bool own_front_take(struct own_queues *own, uint32_t q, struct frame_desc *desc);
/* Likewise: what stands in its place; CQ_NONE: nothing. */
enum cq_kind own_front_look(const struct own_queues *own, uint32_t q);

#endif
