/* SPDX-License-Identifier: BSD-3-Clause */
/* A consumer's wait. */
#include "capture/ring_wait.h"

#include <poll.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"

#define WAIT_SPIN_NS 50000 /* it looks again and again before it sleeps */

static void wait_left(void *context)
{
	const struct ring_poll *poll = context;

	if (poll->left)
		poll->left(poll->context);
}

/* Until the descriptor is readable, or for `ns`; below 0: for ever. Where it cannot be had: not at
 * all. The caller's thread is cancelled here or not at all; `cancel`: whether it lets that happen. */
static void wait_sleep(struct ring_poll *poll, int64_t ns, int cancel)
{
	const struct timespec most = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	struct pollfd fd = { .fd = ring_wake_fd(poll->wake), .events = POLLIN };

	if (fd.fd < 0)
		return;
	pthread_cleanup_push(wait_left, poll);
	cancel_as(&cancel);
	(void)ppoll(&fd, 1, ns < 0 ? NULL : &most, NULL);
	(void)cancel_off();
	pthread_cleanup_pop(0);
}

int ring_poll_arm(const struct ring_poll *poll)
{
	CANCEL_OFF;
	int n;

	if (!ring_wake_arm(poll->wake, poll->next(poll->context)))
		return 0;
	n = poll->poll(poll->context);
	if (n)
		ring_wake_disarm(poll->wake);
	return n;
}

/* Nothing was there at the first look. */
static int wait_long(struct ring_poll *poll, int64_t usec)
{
	CANCEL_OFF;
	const int64_t most = usec > INT64_MAX / 1000 ? -1 : usec, from = (int64_t)now_ns();
	unsigned int idle = 0;
	int n;

	while ((n = poll->poll(poll->context)) == 0) {
		int64_t gone;

		thread_idle(++idle);
		if (idle <= IDLE_PAUSES)
			continue;
		gone = (int64_t)now_ns() - from;
		if (most >= 0 && gone >= most * 1000)
			break;
		/* What comes soon is not worth a sleep, of ours nor of who wakes us. */
		if (gone < WAIT_SPIN_NS && !poll->sleeps)
			continue;
		if (ring_wake_fd(poll->wake) >= 0 && (n = ring_poll_arm(poll)) != 0)
			break;
		wait_sleep(poll, most < 0 ? -1 : most * 1000 - gone, cancel_before);
	}
	return n;
}

int ring_poll_wait(struct ring_poll *poll, int64_t usec)
{
	const int n = poll->poll(poll->context);

	return n ? n : wait_long(poll, usec);
}
