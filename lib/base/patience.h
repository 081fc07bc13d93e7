/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something is waited for before it counts as stuck. On a loaded machine a thread may wait
 * for a core for longer than any limit that is fit for a fault: time in which what is waited for,
 * or who waits, had no core does not count.
 */
#ifndef GDRCAP_PATIENCE_H
#define GDRCAP_PATIENCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct patience {
	uint64_t look_ns;    /* CLOCK_MONOTONIC, of the last look */
	uint64_t spent_ns;   /* that count */
	uint64_t starved_ns; /* that do not */
};

void patience_begin(struct patience *patience);
/* To be asked again and again while one waits, by one thread. True when `ms` have been spent.
 * `starved` says whether what is waited for had no core since it was last asked, some ms ago; NULL:
 * only the caller has something to do. */
bool patience_ends(struct patience *patience, uint32_t ms, bool (*starved)(void *arg), void *arg);

/* One thread, as who waits for it sees it. Zeroed before the thread starts. */
struct thread_look {
	_Atomic int tid; /* writer: the thread, by thread_look_begin(); 0: it never had a core */
	uint64_t ran_ns; /* of CPU time at the last look */
};

/* On the thread itself, as the first it does. */
void thread_look_begin(struct thread_look *look);
/* True when the thread, which was not joined, is ready to run and has not run since the last look.
 * One that sleeps, or waits in a call of the system, is not starved. */
bool thread_is_starved(struct thread_look *look, pthread_t id);

#endif
