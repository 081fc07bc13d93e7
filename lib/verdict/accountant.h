/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accountant: one thread that takes finished bursts of all queues in order, adds their records to
 * the verdict, and lets the rx workers have the slots back. One owner, so sequence numbers that
 * are spread over queues need no atomics and duplicates across queues are seen.
 *
 * Two cursors of a queue, in its ring: `accounted` bursts are in the verdict; `collected` ones are
 * released too. They are the same but where frames are saved: those that a damaged frame still to
 * come would want are held back (save_hold()) until more has come, or until the end.
 *
 * Where frames are put together to images the records are the assemblers', by description, and the
 * verdict gets none.
 */
#ifndef GDRCAP_ACCOUNTANT_H
#define GDRCAP_ACCOUNTANT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/rest.h"
#include "base/thread.h"
#include "capture/ring_producer.h"
#include "capture/source_clock.h"
#include "image/images.h"
#include "save/save.h"
#include "verdict/front_follow.h"
#include "verdict/seen.h"
#include "verdict/verdict.h"

struct accountant {
	struct verdict verdict;	      /* under `lock` */
	struct ring_producer **rings; /* by queue */
	uint32_t ring_count;
	struct save
		*save; /* frames that go to files pass here before their slots go back; or NULL */
	struct gdrcap_images *images; /* by description; before the start; NULL: none */
	uint32_t image_count;
	struct front_follow *
		fronts; /* by queue, of fronts on the GPU; before the start; NULL: threads publish */
	bool follows; /* the consumer is the caller's, and only the fronts need us: before the start */
	_Atomic bool images_end; /* no frames will come: when all are accounted, images end */
	bool images_ended;
	uint64_t now;	  /* of this round */
	struct seen seen; /* with images; before the start: rx and rx_count, which may be 0 */
	uint64_t stuck;	  /* ticks: since when a file waits for an image buffer; 0: it does not */
	/* It waited for so long that images were closed to go on. Writer: the accountant. */
	_Atomic bool waited_out;
	struct source_clock
		*clock;	      /* of images, in a run of files; before the start; NULL: the CPU's */
	pthread_mutex_t lock; /* held by the thread, and lent while `wanted` is not 0 */
	_Atomic unsigned int wanted; /* readers who wait for the lock or have it */
	_Atomic unsigned int lent;   /* times that a reader got it */
	_Atomic int stop;
	/* Of the idle thread; before its start. */
	struct thread_naps naps; /* where nobody wakes it */
	bool sleeps;		 /* consumers wake it; it sleeps for sleep_us at most */
	uint32_t sleep_us;
	struct wake wake;
	struct rest rest;
	uint64_t bursts, looked, looked_ns; /* taken; at the last look at how fast they come */
	struct thread thread;
};

/* `rings` and `save` are kept, not copied. */
int accountant_create(struct accountant *accountant, struct ring_producer **rings, uint32_t count,
		      const struct verdict_config *config, struct save *save);
void accountant_destroy(struct accountant *accountant);
int accountant_start(struct accountant *accountant, const cpu_set_t *cpus,
		     struct gdrcap_error *error);
/* `images_end` or `stop` was set. */
void accountant_wake(struct accountant *accountant);
/* Takes what is finished, releases everything and ends the thread. */
void accountant_stop(struct accountant *accountant);

/* The verdict between these two calls stands still; any thread. */
const struct verdict *accountant_borrow(struct accountant *accountant);
void accountant_return(struct accountant *accountant);

#endif
