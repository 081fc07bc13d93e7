/* SPDX-License-Identifier: BSD-3-Clause */
/* A consumer's wait. */
#include "capture/ring_wait.h"

#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define WAIT_SPIN_NS 50000 /* it looks again and again before it sleeps */

/* Until the descriptor is readable, or for `ns`; below 0: for ever. Where it cannot be had: not at
 * all. */
static void wait_sleep(struct ring_wake *wake, int64_t ns)
{
	const struct timespec most = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	struct pollfd fd = { .fd = ring_wake_fd(wake), .events = POLLIN };

	if (fd.fd >= 0)
		(void)ppoll(&fd, 1, ns < 0 ? NULL : &most, NULL);
}

int ring_poll_arm(const struct ring_poll *poll)
{
	int n;

	if (!ring_wake_arm(poll->wake, poll->next(poll->context)))
		return 0;
	n = poll->poll(poll->context);
	if (n)
		ring_wake_disarm(poll->wake);
	return n;
}

int ring_poll_wait(const struct ring_poll *poll, int64_t usec)
{
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
		wait_sleep(poll->wake, most < 0 ? -1 : most * 1000 - gone);
	}
	return n;
}
