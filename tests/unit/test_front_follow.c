/* SPDX-License-Identifier: BSD-3-Clause */
/* What the accountant learns of a front by its words, where the test writes them: bursts, frames, looks, ends, and what the
 * front is told in return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/front_follow.h"

#define BURSTS 8u
#define DESCS 64u

static struct rx_worker worker;
static struct front_follow follow;
static struct front_words words;
static struct front_status status;
static uint64_t echo[BURSTS], tsc[DESCS], came[BURSTS];
static uint32_t end[BURSTS];
static uint64_t published; /* by the front that the test plays */
static uint32_t frame;

static int scene_begin(void **state)
{
	memset(&worker, 0, sizeof(worker));
	memset(&words, 0, sizeof(words));
	memset(&status, 0, sizeof(status));
	memset(echo, 0, sizeof(echo));
	worker.ring.echo = echo;
	worker.ring.end = end;
	worker.ring.tsc = tsc;
	worker.ring.came = came;
	worker.ring.burst_mask = BURSTS - 1;
	worker.ring.burst_bits = 3;
	worker.ring.desc_mask = DESCS - 1;
	published = 0;
	frame = 0;
	front_follow_init(&follow, &worker, &words, &status, *state != NULL);
	return 0;
}

static void publish(uint32_t frames)
{
	echo[published % BURSTS] = burst_word(published, 3, frames, frame);
	published++;
	frame += frames;
}

static uint64_t count(const _Atomic uint64_t *at)
{
	return atomic_load(at);
}

static void bursts_and_frames(void **state)
{
	assert_true(worker.fronted);
	assert_int_equal(words.lease, UINT64_MAX);
	assert_int_equal(front_follow_look(&follow, 10), 0);
	assert_int_equal(count(&worker.first_tsc), 0);
	publish(5);
	publish(60);
	assert_int_equal(front_follow_look(&follow, 20), 2);
	assert_int_equal(count(&worker.frames), 65);
	assert_int_equal(count(&worker.bursts), 2);
	assert_int_equal(count(&worker.ring.published), 2);
	assert_int_equal(count(&worker.first_tsc), 20);
	/* times of a burst that goes round the end of the descriptors, too */
	assert_int_equal(tsc[0], 20);
	assert_int_equal(tsc[DESCS - 1], 20);
	assert_int_equal(came[1], 20);
	assert_int_equal(ring_word(&worker.ring, 1), burst_word(1, 3, 60, 5));
	front_follow_release(&follow, 1);
	assert_int_equal(count(&worker.back), 5);
	assert_int_equal(words.collected, 1);
	assert_int_equal(words.lease, UINT64_MAX);
	front_follow_release(&follow, 2);
	assert_int_equal(count(&worker.back), 65);
}

/* The words of a use before are none of this one's; and frames need not be numbered without gaps, as after a reset. */
static void many_laps(void **state)
{
	uint64_t frames = 0;

	for (uint32_t i = 0; i < 100 * BURSTS; i++) {
		if (i % 37 == 0)
			frame += 1000;
		publish(1 + i % 32);
		frames += 1 + i % 32;
		assert_int_equal(front_follow_look(&follow, 30 + i), i + 1);
		assert_int_equal(front_follow_look(&follow, 30 + i), i + 1);
		assert_int_equal(count(&worker.frames), frames);
		front_follow_release(&follow, i + 1);
		assert_int_equal(count(&worker.back), frames);
	}
}

static void leases(void **state)
{
	assert_int_equal(words.lease, 0);
	publish(3);
	front_follow_look(&follow, 1);
	front_follow_release(&follow, 1);
	assert_int_equal(words.lease, 1);
	assert_int_equal(words.collected, 1);
}

/* Each front counts from 0, and what it says may come late. */
static void sums_over_fronts(void **state)
{
	status.bytes = 700;
	status.passes = 50;
	status.empty = 40;
	front_follow_look(&follow, 1);
	assert_int_equal(count(&worker.bytes), 700);
	assert_int_equal(count(&worker.idle), 50);
	assert_int_equal(count(&worker.empty), 40);
	status.state = FRONT_ENDED;
	status.fault.kind = CQ_ERROR;
	words.phase = FRONT_DRAIN;
	front_follow_begin(&follow);
	assert_int_equal(status.state, FRONT_NONE);
	assert_int_equal(status.fault.kind, CQ_NONE);
	assert_int_equal(words.phase, FRONT_RUN);
	front_follow_look(&follow, 2);
	assert_int_equal(count(&worker.bytes), 700);
	status.bytes = 30;
	status.empty = 2;
	front_follow_look(&follow, 3);
	assert_int_equal(count(&worker.bytes), 730);
	assert_int_equal(count(&worker.empty), 42);
}

static void phases(void **state)
{
	front_follow_phase(&follow, RX_PAUSE);
	assert_int_equal(words.phase, FRONT_DRAIN);
	front_follow_phase(&follow, RX_DRAIN);
	assert_int_equal(words.phase, FRONT_DRAIN);
	front_follow_phase(&follow, RX_ABANDON);
	assert_int_equal(words.phase, FRONT_LEAVE);
	front_follow_phase(&follow, RX_RUN);
	assert_int_equal(words.phase, FRONT_RUN);
}

/* The receiver's end is the front's in a stop, after its last burst; not in a pause, after which another goes on. */
static void ends(void **state)
{
	publish(4);
	status.state = FRONT_ENDED;
	atomic_store(&worker.phase, RX_PAUSE);
	front_follow_look(&follow, 1);
	front_follow_look(&follow, 2);
	assert_true(front_follow_has_ended(&follow));
	assert_false(rx_worker_has_left(&worker));
	atomic_store(&worker.phase, RX_DRAIN);
	publish(2);
	assert_int_equal(front_follow_look(&follow, 3), 2);
	assert_false(rx_worker_has_left(&worker));
	status.bytes = 99;
	front_follow_look(&follow, 4);
	assert_true(rx_worker_has_left(&worker));
	assert_int_equal(count(&worker.bytes), 99);
	/* the consumer has not got all */
	assert_false(front_follow_is_through(&follow));
	atomic_store(&worker.ring.collected, 2);
	assert_true(front_follow_is_through(&follow));
}

int main(void)
{
	static char leased[] = "leased";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bursts_and_frames, scene_begin),
		cmocka_unit_test_setup(many_laps, scene_begin),
		cmocka_unit_test_prestate_setup_teardown(leases, scene_begin, NULL, leased),
		cmocka_unit_test_setup(sums_over_fronts, scene_begin),
		cmocka_unit_test_setup(phases, scene_begin),
		cmocka_unit_test_setup(ends, scene_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
