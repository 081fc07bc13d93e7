/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU threads in place of a persistent kernel: started, watched, joined. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels/frame_records.h"
#include "kernels/host/host_workers.h"
#include "kernels/kernel_job.h"
#include "base/patience.h"
#include "base/rest.h"
#include "base/thread_signals.h"

/*
 * One thread a ring keeps order in the cache and leaves the other cores to the port; a thread
 * checks about as fast as one core can receive.
 */
#define DEFAULT_WORKERS 1u

/* An idle worker that nobody wakes first spins, then lets others record, naps, and at last sleeps: on a machine
 * with few cores its producer needs that core. It yields a few times only: on recent kernels who polls by
 * nothing else loses its share of time. */
#define IDLE_SPINS 256u
#define IDLE_YIELDS 320u
#define IDLE_NAPS 4096u
#define IDLE_NAP_NS 5000
#define IDLE_SLEEP_NS 50000
#define JOIN_LOOK_NS 10000000L

struct host_worker {
	struct kernel_workers *workers;
	const struct burst_ring_view *ring;
	struct kernel_wakes wakes; /* NULL: none */
	uint32_t index;		   /* takes bursts index, index + per_ring, ... */
	pthread_t thread;
	struct thread_look look;
};

struct kernel_workers {
	enum kernel_role role;
	struct frame_layout layout;
	struct pattern pattern;
	struct frame_store_view store;
	struct place_view places[KERNEL_PLACES_MAX];
	struct host_work work; /* points to the four above */
	struct burst_ring_view *rings;
	uint32_t per_ring;
	uint32_t threads;     /* entries of worker[] that were created */
	pthread_mutex_t lock; /* over what follows */
	pthread_cond_t changed;
	enum { STARTING, RUNNING, CANCELLED } state; /* writer: start */
	uint32_t
		left; /* threads that are through: release; writers: workers. Partner: workers_left() */
	struct host_worker worker[];
};

void host_idle(uint32_t polls)
{
	const struct timespec nap = { .tv_nsec = IDLE_NAP_NS },
			      sleep = { .tv_nsec = IDLE_SLEEP_NS };

	if (polls < IDLE_SPINS) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	} else if (polls < IDLE_YIELDS) {
		sched_yield();
	} else {
		nanosleep(polls < IDLE_NAPS ? &nap : &sleep, NULL);
	}
}

/* TAKE: waits for `burst`. Returns its ready word, or 0 when the ring was stopped. */
static uint64_t burst_take(const struct burst_ring_view *ring, struct rest *rest, uint64_t burst,
			   uint32_t bits)
{
	const uint64_t *ready = &ring->ready[burst & ring->burst_mask].word;

	for (uint32_t polls = 0;; polls++) {
		/* STOP: no data depends on it */
		if (__atomic_load_n(ring->stop, __ATOMIC_RELAXED))
			return 0;
		/* TAKE, partner PUBLISH: descriptors, request and frames are read only after it */
		const uint64_t word = __atomic_load_n(ready, __ATOMIC_ACQUIRE);

		if (burst_word_is(word, burst, bits))
			return word;
		if (!rest_step(rest, polls, REST_LONG_US))
			host_idle(polls);
	}
}

/* FREE, for a front that gives slots back by itself: frames were read before it. */
static void burst_free(const struct burst_ring_view *ring, uint64_t burst, uint32_t bits)
{
	if (ring->free_word)
		__atomic_store_n(&ring->free_word[burst & ring->burst_mask],
				 burst_word(burst, bits, 0, 0), __ATOMIC_RELEASE);
}

/* DONE, partner COLLECT: records and frames were written, and frames read, before it. */
static void burst_done(const struct burst_ring_view *ring, uint64_t burst, uint64_t ready,
		       uint32_t bits, enum kernel_role role, uint32_t records)
{
	struct burst_result *result = &ring->result[burst & ring->burst_mask];
	const struct frame_record *record = records == 1 && role != KERNEL_PLACE
						    ? record_at(ring, burst_word_first(ready), 0)
						    : NULL;
	struct burst_plain plain;

	if (record && record_is_plain(record)) {
		record_to_plain(record, &plain);
		burst_tell(result, &plain, burst, bits);
		return;
	}
	burst_publish_records(result, records, burst, bits);
}

/*
 * Holds a new thread back until all exist, since only the rings' stop words, which the caller owns,
 * end a running one. 0 when start gave up.
 */
static int worker_may_run(struct kernel_workers *workers)
{
	int run;

	pthread_mutex_lock(&workers->lock);
	while (workers->state == STARTING)
		pthread_cond_wait(&workers->changed, &workers->lock);
	run = workers->state == RUNNING;
	pthread_mutex_unlock(&workers->lock);
	return run;
}

static uint32_t workers_left(const struct kernel_workers *workers)
{
	return __atomic_load_n(&workers->left, __ATOMIC_ACQUIRE);
}

/*
 * Counted before the lock is waited for: who joins holds it but for some ms at a time, and on a loaded
 * machine a worker may get no core in any of them. The lock is for the wake-up only.
 */
static void worker_leave(struct kernel_workers *workers)
{
	__atomic_fetch_add(&workers->left, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&workers->lock);
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_unlock(&workers->lock);
}

static void *worker_main(void *argument)
{
	struct host_worker *worker = argument;
	struct kernel_workers *workers = worker->workers;
	const struct burst_ring_view *ring = worker->ring;
	const uint32_t bits = ring_burst_bits(ring);
	uint32_t (*check)(const struct burst_ring_view *, const struct host_work *, uint64_t,
			  uint64_t) =
		ring->head_desc || ring->generation ? host_burst_check_more : host_burst_check;
	struct rest rest;
	uint64_t ready;

	rest_init(&rest, worker->wakes.work);
	thread_look_begin(&worker->look);
	prctl(PR_SET_TIMERSLACK, 1UL); /* ns; else a nap takes 50 us more */
	if (!worker_may_run(workers)) {
		worker_leave(workers);
		return NULL;
	}
	for (uint64_t burst = worker->index; (ready = burst_take(ring, &rest, burst, bits));
	     burst += workers->per_ring) {
		uint32_t records = 0;

		if (workers->role == KERNEL_CHECK)
			records = check(ring, &workers->work, burst, ready);
		else if (workers->role == KERNEL_PLACE)
			records = host_burst_place(ring, &workers->work, burst, ready);
		else
			host_burst_write(ring, &workers->work, burst, ready);
		burst_done(ring, burst, ready, bits, workers->role, records);
		wake_look(worker->wakes.done);
		burst_free(ring, burst, bits);
	}
	worker_leave(workers);
	return NULL;
}

/* A thread that cannot have its CPU runs where the scheduler puts it. */
static void thread_pin(pthread_t thread, const struct kernel_job *job, uint32_t index)
{
	static const char *const names[] = {
		[KERNEL_CHECK] = "gdrcap-chk",
		[KERNEL_WRITE] = "gdrcap-wrt",
		[KERNEL_PLACE] = "gdrcap-plc",
	};
	cpu_set_t set;
	int cpu;

	pthread_setname_np(thread, names[job->role]);
	if (!job->cpus || !job->cpu_count)
		return;
	cpu = job->cpus[index % job->cpu_count];
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(thread, sizeof(set), &set);
}

static void workers_free(struct kernel_workers *workers)
{
	pthread_cond_destroy(&workers->changed);
	pthread_mutex_destroy(&workers->lock);
	free(workers->rings);
	free(workers);
}

static struct kernel_workers *workers_alloc(const struct kernel_job *job)
{
	const uint32_t per_ring = job->workers_per_ring ? job->workers_per_ring : DEFAULT_WORKERS;
	const size_t threads = (size_t)per_ring * job->ring_count;
	struct kernel_workers *workers;
	pthread_condattr_t attr;

	workers = calloc(1, sizeof(*workers) + threads * sizeof(workers->worker[0]));
	if (!workers)
		return NULL;
	workers->rings = calloc(job->ring_count, sizeof(*workers->rings));
	if (!workers->rings) {
		free(workers);
		return NULL;
	}
	memcpy(workers->rings, job->rings, job->ring_count * sizeof(*workers->rings));
	workers->role = job->role;
	workers->layout = job->layout;
	workers->pattern = job->pattern;
	workers->work.layout = &workers->layout;
	workers->work.pattern = &workers->pattern;
	if (job->store) {
		workers->store = *job->store;
		workers->work.store = &workers->store;
	}
	if (job->role == KERNEL_PLACE) {
		memcpy(workers->places, job->places, job->place_count * sizeof(*job->places));
		workers->work.places = workers->places;
		workers->work.place_count = job->place_count;
	}
	workers->per_ring = per_ring;
	workers->work.step = per_ring;
	pthread_mutex_init(&workers->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&workers->changed, &attr);
	pthread_condattr_destroy(&attr);
	return workers;
}

static void workers_set_state(struct kernel_workers *workers, int state)
{
	pthread_mutex_lock(&workers->lock);
	workers->state = state;
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_unlock(&workers->lock);
}

static void threads_join(struct kernel_workers *workers)
{
	for (uint32_t i = 0; i < workers->threads; i++)
		pthread_join(workers->worker[i].thread, NULL);
}

static int threads_create(struct kernel_workers *workers, const struct kernel_job *job)
{
	const uint32_t threads = workers->per_ring * job->ring_count;
	sigset_t before;
	int ret = 0;

	thread_signals_block(&before);
	while (workers->threads < threads) {
		struct host_worker *worker = &workers->worker[workers->threads];

		worker->workers = workers;
		worker->ring = &workers->rings[workers->threads / workers->per_ring];
		worker->index = workers->threads % workers->per_ring;
		if (job->wakes)
			worker->wakes = job->wakes[workers->threads / workers->per_ring];
		ret = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (ret)
			break;
		thread_pin(worker->thread, job, workers->threads++);
	}
	thread_signals_restore(&before);
	return -ret;
}

int host_workers_start(struct kernel_device *device, const struct kernel_job *job,
		       struct kernel_workers **started)
{
	struct kernel_workers *workers;
	int ret = kernel_job_check(job);

	if (ret)
		return ret;
	if (job->role == KERNEL_FRONT)
		return kernel_fail(-ENOTSUP,
				   "the CPU backend has no GPU to poll completions: let a CPU "
				   "thread do it (rx_by: cpu)");
	if (job->role == KERNEL_SEND)
		return kernel_fail(-ENOTSUP, "the CPU backend has no GPU to send: let a CPU thread "
					     "do it (sender.by: cpu)");
	workers = workers_alloc(job);
	if (!workers)
		return kernel_fail(-ENOMEM, "no memory for the workers of %u rings",
				   job->ring_count);
	ret = threads_create(workers, job);
	workers_set_state(workers, ret ? CANCELLED : RUNNING);
	if (ret) {
		kernel_fail(
			ret,
			"thread %u of %u could not be created: %s; use fewer workers or queues, or "
			"raise the limit on tasks (ulimit -u)",
			workers->threads + 1, workers->per_ring * job->ring_count, strerror(-ret));
		threads_join(workers);
		workers_free(workers);
		return ret;
	}
	*started = workers;
	return 0;
}

bool host_workers_starved(struct kernel_workers *workers)
{
	bool starved = false;

	for (uint32_t i = 0; i < workers->threads; i++)
		starved |= thread_is_starved(&workers->worker[i].look, workers->worker[i].thread);
	return starved;
}

static bool starved(void *workers)
{
	return host_workers_starved(workers);
}

/* Some ms, or until a worker leaves. */
static void leaver_wait(struct kernel_workers *workers)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += JOIN_LOOK_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_cond_timedwait(&workers->changed, &workers->lock, &until);
}

int host_workers_join(struct kernel_workers *workers, unsigned int timeout_ms)
{
	struct patience patience;
	int ret = 0;

	patience_begin(&patience);
	pthread_mutex_lock(&workers->lock);
	while (workers_left(workers) < workers->threads && !ret) {
		if (patience_ends(&patience, timeout_ms, starved, workers))
			ret = kernel_fail(
				-ETIMEDOUT,
				"%u of %u workers did not leave within %u ms: is every ring's stop "
				"word set?",
				workers->threads - workers_left(workers), workers->threads,
				timeout_ms);
		else
			leaver_wait(workers);
	}
	pthread_mutex_unlock(&workers->lock);
	if (ret)
		return ret;
	threads_join(workers);
	workers_free(workers);
	return 0;
}

int host_workers_running(struct kernel_workers *workers)
{
	return workers_left(workers) < workers->threads;
}

uint32_t host_workers_per_ring(const struct kernel_workers *workers)
{
	return workers->per_ring;
}
