/* SPDX-License-Identifier: BSD-3-Clause */
/* Time in which a thread that is waited for had a core. */
#include "base/patience.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS 10000000u /* two looks at a thread are at least so far apart */
#define GAP_NS 100000000u /* who looks has had no core for what goes beyond */

void patience_begin(struct patience *patience)
{
	*patience = (struct patience){ .look_ns = now_ns() };
}

bool patience_ends(struct patience *patience, uint32_t ms, bool (*starved)(void *arg), void *arg)
{
	const uint64_t now = now_ns();
	uint64_t gone = now - patience->look_ns;

	if (gone >= LOOK_NS) {
		if (gone > GAP_NS)
			gone = GAP_NS;
		patience->look_ns = now;
		if (starved && starved(arg))
			patience->starved_ns += gone;
		else
			patience->spent_ns += gone;
	}
	return patience->spent_ns >= (uint64_t)ms * 1000000u;
}

void thread_look_begin(struct thread_look *look)
{
	atomic_store_explicit(&look->tid, (int)syscall(SYS_gettid), memory_order_relaxed);
}

/* Running, or ready to: "R" in the kernel's line of the thread. */
static bool thread_is_ready(int tid)
{
	char path[48], line[128];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0)
		return false;
	line[n] = '\0';
	/* TID (NAME) STATE ...; a name may hold what it likes. */
	name_end = strrchr(line, ')');
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

bool thread_is_starved(struct thread_look *look, pthread_t id)
{
	const int tid = atomic_load_explicit(&look->tid, memory_order_relaxed);
	clockid_t clock;
	uint64_t ran;

	if (tid == 0)
		return true;
	if (pthread_getcpuclockid(id, &clock) != 0)
		return false;
	ran = time_ns(clock);
	if (ran != look->ran_ns) {
		look->ran_ns = ran;
		return false;
	}
	return thread_is_ready(tid);
}
