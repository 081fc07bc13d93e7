/* SPDX-License-Identifier: BSD-3-Clause */
/* What time it is, and to let some pass. */
#ifndef GDRCAP_BASE_CLOCK_H
#define GDRCAP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ns; 0: there is no such clock (any more). */
static inline uint64_t time_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return time_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static inline void sleep_ms(uint32_t ms)
{
	const struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&pause, NULL);
}

#endif
