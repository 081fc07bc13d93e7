/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library: started without signals, known to EAL, joined or given up. */
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_signals.h"
#include "base/tsc.h"

#define IDLE_SLEEP_NS 5000L
/* A yield that took longer: another thread had the core meanwhile. */
#define YIELD_LONG_PER_S 2000u /* 1 s / 2000 = 500 us */
/* So many idle rounds sleep after a long yield. */
#define NAPS_AFTER_LONG_YIELD 1000u
#define NAP_LEAST_US 10u
#define ROUND_LOOK_NS 20000L
#define JOIN_LOOK_NS 1000000L

uint32_t thread_stuck_ms = 10000;
static _Atomic bool cores_shared;
static _Thread_local const struct thread *self; /* NULL: not one of ours */
static _Thread_local uint32_t naps_left;

static LIST_HEAD(, thread) pollers = LIST_HEAD_INITIALIZER(pollers); /* with rounds */
static pthread_mutex_t pollers_lock = PTHREAD_MUTEX_INITIALIZER;

void thread_share_cores(void)
{
	atomic_store(&cores_shared, true);
}

void thread_give_way(unsigned int idle)
{
	const struct timespec pause = { .tv_nsec = IDLE_SLEEP_NS };
	uint64_t since;

	if (idle > IDLE_YIELDS &&
	    (naps_left || atomic_load_explicit(&cores_shared, memory_order_relaxed))) {
		naps_left -= naps_left != 0;
		nanosleep(&pause, NULL);
		return;
	}
	since = rte_rdtsc();
	sched_yield();
	if (tsc_since(since) > rte_get_tsc_hz() / YIELD_LONG_PER_S)
		naps_left = NAPS_AFTER_LONG_YIELD;
}

uint32_t thread_nap_next(struct thread_naps *naps, unsigned int idle)
{
	const bool goes_on = idle == naps->idle + 1;

	naps->us = goes_on ? RTE_MIN(2 * naps->us, naps->most_us) : NAP_LEAST_US;
	naps->idle = idle;
	return naps->us;
}

void thread_nap(struct thread_naps *naps, unsigned int idle)
{
	const uint32_t us = thread_nap_next(naps, idle);
	const struct timespec pause = { .tv_sec = us / 1000000, .tv_nsec = 1000L * (us % 1000000) };

	nanosleep(&pause, NULL);
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;

	thread_look_begin(&thread->look);
	/* ns: else a sleep of some microseconds takes 50 more. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	self = thread;
	log_adopt(thread->log);
	if (rte_thread_register() < 0)
		log_warning("thread %s has no lcore id (%s): its mempool accesses are slower",
			    thread->name, rte_strerror(rte_errno));
	thread->body(thread->arg);
	rte_thread_unregister();
	/* After its last access to anything. Partner: the acquire load in thread_has_left(). */
	atomic_store_explicit(&thread->left, true, memory_order_release);
	return NULL;
}

static void poller_add(struct thread *thread)
{
	if (!thread->rounds)
		return;
	thread->rounds_until = 0;
	pthread_mutex_lock(&pollers_lock);
	LIST_INSERT_HEAD(&pollers, thread, next);
	pthread_mutex_unlock(&pollers_lock);
}

static void poller_remove(struct thread *thread)
{
	if (!thread->rounds)
		return;
	pthread_mutex_lock(&pollers_lock);
	LIST_REMOVE(thread, next);
	pthread_mutex_unlock(&pollers_lock);
}

/* Whether all are where the last threads_go_round() wants them. */
static bool pollers_are_round(void)
{
	struct thread *thread;
	bool round = true;

	pthread_mutex_lock(&pollers_lock);
	LIST_FOREACH(thread, &pollers, next)
	{
		const bool there = atomic_load_explicit(&thread->left, memory_order_acquire) ||
				   thread->rounds(thread->arg) >= thread->rounds_until;

		if (!there)
			wake_look(thread->wake);
		round &= there;
	}
	pthread_mutex_unlock(&pollers_lock);
	return round;
}

void threads_go_round(void)
{
	const struct timespec pause = { .tv_nsec = ROUND_LOOK_NS };
	struct thread *thread;

	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&pollers_lock);
	/* Two: the loads of a round may come before the store that ends the one before it. */
	LIST_FOREACH(thread, &pollers, next)
	{
		thread->rounds_until = thread->rounds(thread->arg) + 2;
	}
	pthread_mutex_unlock(&pollers_lock);
	/* However long: a thread without a core may be anywhere. */
	while (!pollers_are_round())
		nanosleep(&pause, NULL);
}

int thread_start(struct thread *thread, const char *name, const cpu_set_t *cpus,
		 void (*body)(void *arg), void *arg, struct gdrcap_error *error)
{
	sigset_t before;
	int ret;

	thread->body = body;
	thread->arg = arg;
	thread->log = log_of_thread();
	thread->look = (struct thread_look){ 0 };
	atomic_store_explicit(&thread->left, false, memory_order_relaxed);
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	poller_add(thread);
	thread_signals_block(&before);
	ret = pthread_create(&thread->id, NULL, thread_main, thread);
	thread_signals_restore(&before);
	if (ret) {
		poller_remove(thread);
		return error_set(error, -ret,
				 "cannot start thread %s: %s; raise the limit of processes (ulimit "
				 "-u), or that of memory (ulimit -v)",
				 name, strerror(ret));
	}
	thread->running = true;
	pthread_setname_np(thread->id, thread->name);
	ret = cpus ? pthread_setaffinity_np(thread->id, sizeof(*cpus), cpus) : 0;
	if (ret)
		log_warning("thread %s stays where the kernel puts it: %s", name, strerror(ret));
	return 0;
}

static void thread_joined(struct thread *thread)
{
	poller_remove(thread);
	thread->running = false;
}

void thread_join(struct thread *thread)
{
	if (!thread->running)
		return;
	pthread_join(thread->id, NULL);
	thread_joined(thread);
}

bool thread_is_self(const struct thread *thread)
{
	return self == thread;
}

bool thread_has_left(const struct thread *thread)
{
	return !thread->running || thread_is_self(thread) ||
	       atomic_load_explicit(&thread->left, memory_order_acquire);
}

static void join_pause(void)
{
	const struct timespec pause = { .tv_nsec = JOIN_LOOK_NS };

	nanosleep(&pause, NULL);
}

bool thread_join_within(struct thread *thread, unsigned int timeout_ms)
{
	const uint64_t since = now_ms();

	while (!thread_has_left(thread)) {
		if (now_ms() - since >= timeout_ms)
			return false;
		join_pause();
	}
	thread_join(thread);
	return true;
}

static bool starved(void *arg)
{
	struct thread *thread = arg;

	return thread_is_starved(&thread->look, thread->id);
}

bool thread_is_stuck(struct thread *thread)
{
	uint64_t rounds;

	if (!thread->rounds || thread_has_left(thread))
		return false;
	rounds = thread->rounds(thread->arg);
	/* At the first question there was none before. */
	if (rounds != thread->rounds_seen || thread->patience.look_ns == 0) {
		thread->rounds_seen = rounds;
		patience_begin(&thread->patience);
	}
	return patience_ends(&thread->patience, thread_stuck_ms, starved, thread);
}

bool thread_join_unless_stuck(struct thread *thread)
{
	while (!thread_has_left(thread)) {
		if (thread_is_stuck(thread))
			return false;
		join_pause();
	}
	thread_join(thread);
	return true;
}
