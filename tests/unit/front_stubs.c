/* SPDX-License-Identifier: BSD-3-Clause */
/* What the front's thread calls of the library where it is built alone: test_front_mutants.py. */
#include <sched.h>

#include "base/log.h"
#include "capture/rx_worker_steps.h"

void thread_give_way(unsigned int idle)
{
	sched_yield();
}

bool wake_by_membarrier;

void wake_up(struct wake *wake)
{
}

void thread_nap(struct thread_naps *naps, unsigned int idle)
{
	sched_yield();
}

void rx_starved(struct rx_worker *worker, unsigned int idle)
{
	counter_add(&worker->starved, 1);
}

void rx_sleep(struct rx_worker *worker, unsigned int idle)
{
}

void ring_wake_sleeper(struct ring_wake *wake, uint64_t published)
{
}

void ring_wake_end(struct ring_wake *wake)
{
}

int error_set(struct gdrcap_error *error, int code, const char *format, ...)
{
	return code;
}
