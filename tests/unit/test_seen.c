/* SPDX-License-Identifier: BSD-3-Clause */
/* Until when all that came is in the accounts, of receivers whose counters are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "capture/rx_worker.h"
#include "verdict/seen.h"

#define RECEIVERS 2u

static struct rx_worker rx[RECEIVERS];
static struct seen seen;

/* They run, or nobody would be waited for. */
static int scene_begin(void **state)
{
	(void)state;
	memset(rx, 0, sizeof(rx));
	for (uint32_t i = 0; i < RECEIVERS; i++)
		atomic_store(&rx[i].thread.running, true);
	seen = (struct seen){ .rx = rx, .rx_count = RECEIVERS };
	return 0;
}

static void polls_and_bursts(void **state)
{
	(void)state;
	seen_look(&seen, 100);
	atomic_fetch_add(&rx[0].empty, 5);
	/* one poll of the other may have begun before */
	atomic_fetch_add(&rx[1].empty, 1);
	seen_look(&seen, 101);
	assert_int_equal(seen.until, 0);
	/* what it brought then is not accounted yet */
	atomic_store(&rx[1].ring.published, 7);
	atomic_fetch_add(&rx[1].empty, 1);
	seen_look(&seen, 102);
	assert_int_equal(seen.until, 0);
	/* what comes later is nothing to it */
	atomic_store(&rx[1].ring.published, 9);
	atomic_store(&rx[1].ring.accounted, 7);
	seen_look(&seen, 103);
	assert_int_equal(seen.until, 100);
	/* and the next time begins with the next look */
	seen_look(&seen, 104);
	atomic_store(&rx[1].ring.accounted, 9);
	atomic_fetch_add(&rx[0].empty, 2);
	atomic_fetch_add(&rx[1].empty, 2);
	seen_look(&seen, 105);
	assert_int_equal(seen.until, 104);
}

/* A port that is never empty; one that is paused; a receiver that has ended. */
static void other_ways(void **state)
{
	(void)state;
	seen_look(&seen, 100);
	atomic_fetch_add(&rx[0].frames, SEEN_FRAMES);
	atomic_store(&rx[1].phase, RX_PAUSE);
	seen_look(&seen, 101);
	assert_int_equal(seen.until, 100);
	atomic_store(&rx[1].phase, RX_RUN);
	seen_look(&seen, 102);
	atomic_store(&rx[0].ring.ended, 1);
	seen_look(&seen, 103);
	assert_int_equal(seen.until, 100);
	atomic_store(&rx[1].thread.left, true);
	seen_look(&seen, 104);
	assert_int_equal(seen.until, 102);
}

/* One that hangs holds up nobody for ever. */
static void not_for_ever(void **state)
{
	const uint64_t wait = rte_get_tsc_hz() / 1000 * SEEN_WAIT_MS;

	(void)state;
	seen_look(&seen, 100);
	seen_look(&seen, 99 + wait);
	assert_int_equal(seen.until, 0);
	seen_look(&seen, 100 + wait);
	assert_int_equal(seen.until, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(polls_and_bursts, scene_begin),
		cmocka_unit_test_setup(other_ways, scene_begin),
		cmocka_unit_test_setup(not_for_ever, scene_begin),
	};
	char *arguments[] = {
		"test_seen", "--no-huge", "-m", "64", "--no-pci", "--no-shconf", NULL
	};

	/* for the time stamp counter's rate */
	if (rte_eal_init(6, arguments) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
