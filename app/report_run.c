/* SPDX-License-Identifier: BSD-3-Clause */
/* Which run this is. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

void report_run_now(struct report_run *run)
{
	struct timespec now;

	memset(run, 0, sizeof(*run));
	/* A name that does not fit may not be ended. */
	if (gethostname(run->host, sizeof(run->host) - 1))
		run->host[0] = '\0';
	run->pid = (uint32_t)getpid();
	clock_gettime(CLOCK_REALTIME, &now);
	run->started_ns = 1000000000ull * (uint64_t)now.tv_sec + (uint64_t)now.tv_nsec;
}
