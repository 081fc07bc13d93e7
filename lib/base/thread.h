/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker thread that DPDK knows as an lcore, and how an idle one waits. */
#ifndef GDRCAP_THREAD_H
#define GDRCAP_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_pause.h>

#include "base/patience.h"
#include "base/wake.h"
#include "gdrcap.h"

/* ms. Not changed but by tests, before a session is. */
extern uint32_t thread_stuck_ms;

struct thread {
	pthread_t id;
	_Atomic bool running; /* started and not joined. Writer: control */
	_Atomic bool left;    /* its body has returned. Writer: the thread, as the last it does */
	void (*body)(void *arg);
	void *arg;
	char name[16];
	uint64_t log; /* whose its lines are: its creator's */
	/* For a thread that polls a port, set before its start: a number that grows with each round
	 * of its loop. NULL: it uses no port. */
	uint64_t (*rounds)(const void *arg);
	LIST_ENTRY(thread) next; /* of those with rounds, from start to join */
	uint64_t rounds_until;	 /* what threads_go_round() waits for */
	struct wake *wake;	 /* what it sleeps on; before its start; NULL: on nothing */
	struct thread_look look;
	/* Of thread_is_stuck(), so of one thread at a time. */
	struct patience patience; /* since the last round */
	uint64_t rounds_seen;
};

/* `cpus` may be NULL: the creator's. The thread gets an lcore id, so mempools give it a cache. */
int thread_start(struct thread *thread, const char *name, const cpu_set_t *cpus,
		 void (*body)(void *arg), void *arg, struct gdrcap_error *error);
void thread_join(struct thread *thread);
/* False when the thread has not ended within timeout_ms. */
bool thread_join_within(struct thread *thread, unsigned int timeout_ms);
/* To be asked again and again of a thread with rounds: true when it has made none for
 * thread_stuck_ms although it had a core, so that it hangs in a call of its port's driver. */
bool thread_is_stuck(struct thread *thread);
/* Waits for as long as it takes, and gives up only a thread that is stuck: false. */
bool thread_join_unless_stuck(struct thread *thread);
/* True on this very thread. */
bool thread_is_self(const struct thread *thread);
/* True when it does nothing any more, or is the caller. Any thread; joins nothing. */
bool thread_has_left(const struct thread *thread);
/* Waits until every thread that polls a port has ended the call of its driver that it may be in, and
 * seen what the caller wrote before. Not for such a thread itself. */
void threads_go_round(void);

#define IDLE_PAUSES 64u
#define IDLE_YIELDS 128u /* pauses before them included */

/*
 * Workers of some session have no core each: idle ones yield a few times, and then sleep for some
 * microseconds. Writer: control, before it starts threads. Readers: workers.
 *
 * A worker with a core of its own yields only. If a yield takes long, other programs use that core, and the
 * worker sleeps in its next idle rounds instead: with each yield, recent Linux kernels take the rest of its
 * time slice from a thread. Beside 40 busy threads on 2 cores, threads that only yielded were kept waiting for
 * up to 15 s (Linux 6.18), threads that slept for 5 us for 1 s.
 */
void thread_share_cores(void);
/* Lets other threads have the core: out of line, since idle workers are in no hurry. */
void thread_give_way(unsigned int idle);

/* For an idle worker that may sleep longer: up to most_us; 0: it may not. */
struct thread_naps {
	uint32_t most_us, us; /* us: the last one's */
	unsigned int idle;    /* the call of the last one */
};
/* How long it may sleep now, us: each time longer, where `idle` went on by one. */
uint32_t thread_nap_next(struct thread_naps *naps, unsigned int idle);
void thread_nap(struct thread_naps *naps, unsigned int idle);

/* Pause while work is likely at once, then let another thread have the core: sender, receiver and
 * consumer may share one. `idle` counts the calls since work was last found. */
static inline void thread_idle(unsigned int idle)
{
	if (idle < IDLE_PAUSES)
		rte_pause();
	else
		thread_give_way(idle);
}

/* True when a worker that may sleep is to. */
static inline bool thread_may_nap(const struct thread_naps *naps, unsigned int idle)
{
	return naps->most_us && idle > IDLE_PAUSES;
}

#endif
