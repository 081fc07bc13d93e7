/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping until another thread brings work: futex, eventfd, membarrier. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/wake.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool wake_by_membarrier;

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

static void prepare(void)
{
	wake_by_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
			     membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void wake_init(struct wake *wake)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	/* Whoever has a wake has gone through here: all see the same. */
	pthread_once(&once, prepare);
	atomic_store_explicit(&wake->word, 0, memory_order_relaxed);
	wake->fd = -1;
}

int wake_use_fd(struct wake *wake)
{
	const int fd = wake->fd < 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : wake->fd;

	if (fd < 0)
		return -errno;
	wake->fd = fd;
	return 0;
}

void wake_close(struct wake *wake)
{
	if (wake->fd >= 0)
		close(wake->fd);
	wake->fd = -1;
}

bool wake_arm(struct wake *wake, uint32_t *ticket)
{
	*ticket = atomic_fetch_or_explicit(&wake->word, 1, memory_order_relaxed) | 1;
	/* ARM. Partner: WAKE in wake_fence(). */
	if (wake_by_membarrier)
		return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

static bool sleep_on_fds(struct wake *wake, const struct timespec *most, int port_fd)
{
	struct pollfd fds[] = { { .fd = wake->fd, .events = POLLIN },
				{ .fd = port_fd, .events = POLLIN } };
	eventfd_t value;

	if (ppoll(fds, 2, most, NULL) <= 0)
		return false;
	if (fds[0].revents)
		(void)eventfd_read(wake->fd, &value);
	return fds[1].revents != 0;
}

bool wake_sleep(struct wake *wake, uint32_t ticket, uint32_t us, int port_fd)
{
	const struct timespec most = { .tv_sec = us / 1000000, .tv_nsec = 1000L * (us % 1000000) };

	if (wake->fd >= 0)
		return sleep_on_fds(wake, &most, port_fd);
	(void)syscall(SYS_futex, &wake->word, FUTEX_WAIT_PRIVATE, ticket, &most, NULL, 0);
	return false;
}

void wake_up(struct wake *wake)
{
	uint32_t word = atomic_load_explicit(&wake->word, memory_order_relaxed);

	/* One of those who see it armed makes the call. Odd: the sum counts, and clears bit 0. */
	while (word & 1)
		if (atomic_compare_exchange_weak_explicit(&wake->word, &word, word + 1,
							  memory_order_relaxed,
							  memory_order_relaxed)) {
			if (wake->fd >= 0)
				(void)eventfd_write(wake->fd, 1);
			else
				(void)syscall(SYS_futex, &wake->word, FUTEX_WAKE_PRIVATE, INT_MAX,
					      NULL, NULL, 0);
			return;
		}
}
