/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Late data that come exactly when they are waited for, however busy the machine is: with
 * stale_us=0, when the thread called SOFTMLX5_READER asks for the time, as a reader does that has
 * seen old bytes and is about to look again, and then, to see how long that took, once more; or at
 * a flush of the memory that they go to.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic.h"

#define NAME_MAX_BYTES 16

/* A test's program calls it where its memory is flushed. */
void softmlx5_flush(void);
void softmlx5_flush(void)
{
	if (!rx_holds_back())
		return;
	nic_lock();
	rx_hand_over(false);
	nic_unlock();
}

static bool is_reader(void)
{
	const char *reader = getenv("SOFTMLX5_READER");
	char name[NAME_MAX_BYTES];

	return reader != NULL && pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
	       strcmp(name, reader) == 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*next)(clockid_t, struct timespec *);

	if (next == NULL)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (clock == CLOCK_MONOTONIC && rx_holds_back() && is_reader()) {
		nic_lock();
		rx_hand_over(true);
		nic_unlock();
	}
	return next(clock, time);
}
