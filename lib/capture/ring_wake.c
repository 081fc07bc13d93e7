/* SPDX-License-Identifier: BSD-3-Clause */
/* A consumer's sleep, and what ends it: an eventfd. */
#include "capture/ring_wake.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cancel.h"

int ring_wake_fd(struct ring_wake *wake)
{
	if (atomic_load_explicit(&wake->asked, memory_order_relaxed))
		return wake->fd;
	wake->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake->fd < 0)
		return -errno;
	atomic_store_explicit(&wake->asked, 1, memory_order_release);
	return wake->fd;
}

void ring_wake_close(struct ring_wake *wake)
{
	if (atomic_load_explicit(&wake->asked, memory_order_relaxed))
		close(wake->fd);
	atomic_store_explicit(&wake->asked, 0, memory_order_relaxed);
}

bool ring_wake_arm(struct ring_wake *wake, uint64_t next)
{
	eventfd_t before;

	/* For this burst, or for an earlier one, and then somebody is about to wake us. */
	if (atomic_load_explicit(&wake->armed, memory_order_relaxed))
		return false;
	/* Whoever woke us has not written yet: it is readable soon. */
	if (eventfd_read(wake->fd, &before) < 0)
		return false;
	atomic_store_explicit(&wake->armed, next + 1, memory_order_relaxed);
	/* ARM. Partner: WAKE in ring_wake_sleeper() and ring_wake_end(). */
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

/* `armed`: as it was seen. One of those who see it takes it back, and writes. */
static void wake_up(struct ring_wake *wake, uint64_t armed)
{
	if (armed && atomic_compare_exchange_strong_explicit(
			     &wake->armed, &armed, 0, memory_order_relaxed, memory_order_relaxed)) {
		CANCEL_OFF;
		(void)eventfd_write(wake->fd, 1);
	}
}

void ring_wake_disarm(struct ring_wake *wake)
{
	wake_up(wake, atomic_load_explicit(&wake->armed, memory_order_relaxed));
}

void ring_wake_sleeper(struct ring_wake *wake, uint64_t published)
{
	uint64_t armed;

	/* WAKE. Partner: ARM in ring_wake_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&wake->armed, memory_order_relaxed);
	if (published >= armed)
		wake_up(wake, armed);
}

void ring_wake_end(struct ring_wake *wake)
{
	/* WAKE, for `ended`; `asked` too is the consumer's store before ARM. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&wake->asked, memory_order_acquire))
		wake_up(wake, atomic_load_explicit(&wake->armed, memory_order_relaxed));
}
