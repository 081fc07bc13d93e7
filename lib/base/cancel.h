/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pthread_cancel() of a caller's thread: it must not end a call in its middle, with a lock held or a port
 * half open. A call that may reach a cancellation point holds cancellation off, and lets it act where it
 * only sleeps.
 */
#ifndef GDRCAP_CANCEL_H
#define GDRCAP_CANCEL_H

#include <pthread.h>

/* Returns what cancel_as() takes. */
static inline int cancel_off(void)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_as(const int *before)
{
	(void)pthread_setcancelstate(*before, NULL);
}

/* To the end of the block. */
#define CANCEL_OFF                                                                                 \
	const int cancel_before __attribute__((cleanup(cancel_as), unused)) = cancel_off()

#endif
