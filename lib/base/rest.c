/* SPDX-License-Identifier: BSD-3-Clause */
/* How long an idle thread stays awake before it sleeps. */
#include "base/rest.h"

#include <time.h>

#include "base/clock.h"

#define AWAKE_FIRST_US 25u
/* Where it cannot arm, it looks again by itself. */
#define UNARMED_US 100u

/* One that took its whole time, and was not long, says nothing of what comes. */
static void rest_learn(struct rest *rest, uint64_t slept_ns, uint32_t most_us)
{
	if (slept_ns >= 1000u * REST_SHORT_US)
		rest->awake_us = rest->awake_us > AWAKE_FIRST_US ? rest->awake_us / 2 : 0;
	else if (slept_ns < UINT64_C(1000) * most_us && rest->awake_us < REST_AWAKE_MOST_US)
		rest->awake_us = 2 * rest->awake_us + AWAKE_FIRST_US;
}

bool rest_step(struct rest *rest, uint32_t idle, uint32_t most_us)
{
	uint64_t from;

	if (!rest->wake || idle < REST_POLLS)
		return false;
	if (idle != rest->idle + 1) {
		rest->armed = false;
		rest->since_ns = rest->awake_us ? now_ns() : 0;
	}
	rest->idle = idle;
	if (rest->awake_us && now_ns() - rest->since_ns < UINT64_C(1000) * rest->awake_us)
		return false;
	if (!rest->armed) {
		rest->armed = wake_arm(rest->wake, &rest->ticket);
		if (rest->armed)
			return true;
		most_us = most_us < UNARMED_US ? most_us : UNARMED_US;
	}
	rest->armed = false;
	from = now_ns();
	rest->port = wake_sleep(rest->wake, rest->ticket, most_us, rest->port_fd);
	rest_learn(rest, now_ns() - from, most_us);
	return true;
}
