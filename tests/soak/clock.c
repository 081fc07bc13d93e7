/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets the clock under a program, and under no other: preloaded, it adds to CLOCK_REALTIME what the file that
 * SOAK_CLOCK names has in its first 8 bytes, ns as the machine writes them. The test writes there while the
 * program runs. Other clocks stay as they are, as they do when a machine's time is set.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ll

static const _Atomic int64_t *offset_ns; /* the test writes */

__attribute__((constructor)) static void clock_begin(void)
{
	const char *path = getenv("SOAK_CLOCK");
	const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (file < 0)
		return;
	at = mmap(NULL, sizeof(*offset_ns), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (at != MAP_FAILED)
		offset_ns = at;
}

static void move(struct timespec *time)
{
	const int64_t offset =
		offset_ns ? atomic_load_explicit(offset_ns, memory_order_relaxed) : 0;
	int64_t ns = time->tv_nsec + offset % SECOND;

	time->tv_sec += offset / SECOND + (ns < 0 ? -1 : ns >= SECOND);
	if (ns < 0)
		ns += SECOND;
	time->tv_nsec = ns % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*_Atomic next)(clockid_t, struct timespec *);
	int (*real)(clockid_t, struct timespec *) = next;
	int ret;

	if (!real) {
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
		next = real;
	}
	ret = real(clock, time);
	if (ret == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		move(time);
	return ret;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec time;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &time) != 0)
		return -1;
	now->tv_sec = time.tv_sec;
	now->tv_usec = time.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
