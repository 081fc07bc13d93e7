/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accountant: one thread that takes finished bursts of all queues in order, adds their runs to
 * the verdict, and lets the rx workers have the slots back. One owner, so sequence numbers that
 * are spread over queues need no atomics and duplicates across queues are seen.
 */
#ifndef GDRCAP_ACCOUNTANT_H
#define GDRCAP_ACCOUNTANT_H

#include <pthread.h>
#include <stdatomic.h>

#include "ring_producer.h"
#include "thread.h"
#include "verdict.h"

struct accountant {
	struct verdict verdict; /* under `lock` */
	struct ring_producer **rings; /* by queue */
	uint32_t ring_count;
	pthread_mutex_t lock; /* held by the thread, and lent while `wanted` is not 0 */
	_Atomic unsigned int wanted; /* readers who wait for the lock or have it */
	_Atomic unsigned int lent; /* times that a reader got it */
	_Atomic int stop;
	struct thread thread;
};

/* `rings` is kept, not copied. */
int accountant_create(struct accountant *accountant, struct ring_producer **rings, uint32_t count,
		      uint32_t own_streams);
void accountant_destroy(struct accountant *accountant);
int accountant_start(struct accountant *accountant, const cpu_set_t *cpus,
		     struct gdrcap_error *error);
/* Takes what is finished and ends the thread. */
void accountant_stop(struct accountant *accountant);

/* The verdict between these two calls stands still; any thread. */
const struct verdict *accountant_borrow(struct accountant *accountant);
void accountant_return(struct accountant *accountant);

#endif
