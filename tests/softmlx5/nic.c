/* SPDX-License-Identifier: BSD-3-Clause */
#include "nic.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "memory.h"
#include "queues.h"

#define GIVE_WAY 16u	/* sleeps of some 50 us, for who waits for the lock */
#define IDLE_SPINS 2000 /* passes without work before the thread gives up its core for a moment */
#define IDLE_SLEEP_US 20
#define CARD_NICE (-15)	 /* of its thread alone */
#define SLOW_PASSES 4096 /* passes between looks at files */
#define SLOW_NS 5000000ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int waiting; /* control calls: rw, thread: ro */
static uint64_t settled;     /* passes that found nothing to do */
static uint64_t reported;    /* passes that brought files up to date */
static pthread_t thread;
static unsigned int users; /* under start_lock */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool stopping;
static cpu_set_t cores; /* of the process, before EAL binds its threads */

void soft_log(const char *format, ...)
{
	static int verbose = -1;
	va_list args;

	if (verbose < 0)
		verbose = getenv("SOFTMLX5_VERBOSE") != NULL;
	if (!verbose)
		return;
	va_start(args, format);
	fputs("softmlx5: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

uint32_t soft_slot(void *const *table, unsigned int *end)
{
	for (uint32_t i = 1; i < SOFT_OBJECTS_MAX; i++) {
		if (table[i] != NULL)
			continue;
		if (i >= *end)
			*end = i + 1;
		return i;
	}
	return 0;
}

uint64_t nic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t nic_timestamp(bool split)
{
	uint64_t now = nic_now_ns();

	return split ? now / 1000000000 << 32 | now % 1000000000 : now;
}

void nic_lock(void)
{
	__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&lock);
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
}

void nic_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void wait_for_next(const uint64_t *passes)
{
	uint64_t before;

	/* No pass is under way while the lock is held: the next one sees all that was asked for. */
	nic_lock();
	before = *passes;
	nic_unlock();
	while (__atomic_load_n(passes, __ATOMIC_ACQUIRE) == before)
		usleep(IDLE_SLEEP_US);
}

void nic_settle(void)
{
	wait_for_next(&settled);
}

void nic_report(void)
{
	wait_for_next(&settled);
	wait_for_next(&reported);
}

/* Which send queues were told of new work. */
static void take_doorbells(struct soft_device *device)
{
	for (unsigned int i = 1; i < device->uar_end; i++) {
		struct soft_uar *uar = device->uars[i];
		uint64_t *reg, value;
		uint32_t number;
		bool known = false;

		if (uar == NULL)
			continue;
		reg = (uint64_t *)(uar->page + SOFT_UAR_SQ);
		if (__atomic_load_n(reg, __ATOMIC_RELAXED) == 0)
			continue;
		/*
		 * Acquire: pairs with the barrier between the driver's doorbell record and this
		 * register. A register that several queues share may have been overwritten before
		 * this look; each of them had brought its record up to date by then, so all are
		 * looked at.
		 */
		value = __atomic_exchange_n(reg, 0, __ATOMIC_ACQUIRE);
		number = be32toh((uint32_t)(value >> 32)) >> 8;
		for (unsigned int n = 1; n < device->sq_end; n++) {
			struct soft_sq *sq = device->sqs[n];

			if (sq == NULL || sq->uar != uar)
				continue;
			known |= sq->number == number;
		}
		for (unsigned int n = 1; known && n < device->sq_end; n++) {
			struct soft_sq *sq = device->sqs[n];

			if (sq != NULL && sq->uar == uar && sq->state == SOFT_READY)
				sq->rung = true;
		}
		if (!known) {
			device->count.bad_doorbells++;
			soft_log("%s: a doorbell of no queue: 0x%x", device->ibv.name, number);
		}
	}
}

/* A register that several queues share says that one of them was armed: their records say which. */
static void take_arms(struct soft_device *device)
{
	for (unsigned int i = 1; i < device->uar_end; i++) {
		struct soft_uar *uar = device->uars[i];
		uint64_t *reg;

		if (uar == NULL)
			continue;
		reg = (uint64_t *)(uar->page + SOFT_UAR_CQ);
		/* Acquire: pairs with the barrier between the driver's record and this register. */
		if (__atomic_load_n(reg, __ATOMIC_RELAXED) == 0 ||
		    __atomic_exchange_n(reg, 0, __ATOMIC_ACQUIRE) == 0)
			continue;
		for (unsigned int n = 1; n < device->cq_end; n++)
			if (device->cqs[n] != NULL && device->cqs[n]->uar == uar)
				cq_arm(device->cqs[n]);
	}
}

static unsigned int pass(void)
{
	unsigned int work = 0;

	for (unsigned int i = 0; i < soft_device_count; i++) {
		struct soft_device *device = &soft_devices[i];

		device_clock(device);
		work += play_run(device);
		if (device->opens == 0)
			continue;
		take_doorbells(device);
		take_arms(device);
		for (unsigned int n = 1; n < device->sq_end; n++) {
			struct soft_sq *sq = device->sqs[n];

			if (sq == NULL || sq->state != SOFT_READY ||
			    !(sq->rung || device->faults.ignore_doorbells))
				continue;
			work += sq_run(sq);
			completion_flush();
		}
	}
	return work;
}

static void slow_pass(uint64_t now_ns)
{
	soft_faults_poll();
	for (unsigned int i = 0; i < soft_device_count; i++) {
		wire_poll(&soft_devices[i], now_ns);
		device_tell_link(&soft_devices[i]);
		device_report(&soft_devices[i]);
	}
	rx_poll(now_ns);
	completion_flush();
	__atomic_store_n(&reported, reported + 1, __ATOMIC_RELEASE);
}

static void *thread_main(void *unused)
{
	unsigned int idle = 0, passes = 0;
	uint64_t slow_ns = 0, now_ns;

	/* No card waits for a core of the host's: where the user may (root), others do not keep this thread from one. */
	setpriority(PRIO_PROCESS, 0, CARD_NICE);
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		/* Sleeps: after a sched_yield() among many threads the scheduler keeps this one from its core for
		 * seconds. A few times: a thread that wants the lock may have no core for as long, and the card goes
		 * on meanwhile. */
		for (unsigned int i = 0;
		     i < GIVE_WAY && __atomic_load_n(&waiting, __ATOMIC_SEQ_CST); i++)
			usleep(1);
		pthread_mutex_lock(&lock);
		idle = pass() == 0 ? idle + 1 : 0;
		if (idle > 0 && !wire_holds())
			__atomic_store_n(&settled, settled + 1, __ATOMIC_RELEASE);
		if (++passes % SLOW_PASSES == 0 || idle > IDLE_SPINS) {
			now_ns = nic_now_ns();
			rx_poll(now_ns);
			completion_flush();
			if (now_ns - slow_ns > SLOW_NS) {
				slow_ns = now_ns;
				slow_pass(now_ns);
			}
		}
		pthread_mutex_unlock(&lock);
		if (idle > IDLE_SPINS)
			usleep(IDLE_SLEEP_US);
	}
	return NULL;
}

static void __attribute__((constructor)) remember_cores(void)
{
	sched_getaffinity(0, sizeof(cores), &cores);
}

int nic_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&start_lock);
	if (users == 0) {
		stopping = false;
		ret = pthread_create(&thread, NULL, thread_main, NULL);
		if (ret == 0) {
			pthread_setname_np(thread, "softmlx5");
			/* Not on the one core of the thread that happened to open the card. */
			pthread_setaffinity_np(thread, sizeof(cores), &cores);
		}
	}
	if (ret == 0)
		users++;
	pthread_mutex_unlock(&start_lock);
	return -ret;
}

void nic_stop(void)
{
	pthread_mutex_lock(&start_lock);
	if (users > 0 && --users == 0) {
		__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	pthread_mutex_unlock(&start_lock);
}
