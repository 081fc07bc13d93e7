/* SPDX-License-Identifier: BSD-3-Clause */
/* What looks at a card's queues make of what they see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "session/recover.h"

static struct recover recover;
static struct recover_sample now;

static int begin(void **state)
{
	memset(&recover, 0, sizeof(recover));
	now = (struct recover_sample){ .ms = 5000, .queues = 2, .room = true, .hits_known = true };
	recover_look(&recover, &now);
	return 0;
}

static struct recover_found look(void)
{
	now.ms += RECOVER_LOOK_MS;
	return recover_look(&recover, &now);
}

static void frames(uint32_t q, uint64_t count)
{
	now.frames[q] += count;
	now.hits += count;
}

static void errors(uint32_t q, uint64_t count)
{
	now.errors += count;
	now.queue_errors[q] += count;
}

static void nothing(struct recover_found found)
{
	assert_int_equal(found.healed | found.silent | found.error | found.dead, 0);
}

static void quiet_ports_are_left_alone(void **state)
{
	for (unsigned int i = 0; i < 100; i++) {
		if (i < 20)
			frames(0, 10);
		nothing(look());
	}
}

/* The vector functions: whatever the queue does, its rings may be out of step. */
static void error_that_stays_is_restarted_at_once(void **state)
{
	now.stays = true;
	frames(0, 10);
	frames(1, 10);
	nothing(look());
	errors(1, 300);
	frames(0, 10);
	frames(1, 1);
	assert_int_equal(look().error, 2);
	/* Nobody acted yet. */
	assert_int_equal(look().error, 2);
	recover_restarted(&recover, 2, &now);
	nothing(look());
}

static void counters_may_begin_anew(void **state)
{
	now.stays = true;
	errors(0, 300);
	assert_int_equal(look().error, 1);
	now.errors = 0;
	now.queue_errors[0] = 0;
	recover_restarted(&recover, 1, &now);
	errors(0, 5);
	assert_int_equal(look().error, 1);
}

static void queue_is_given_up_after_its_tries(void **state)
{
	struct recover_found found;

	now.stays = true;
	for (unsigned int i = 0; i < RECOVER_TRIES; i++) {
		errors(0, 300);
		assert_int_equal(look().error, 1);
		recover_restarted(&recover, 1, &now);
	}
	/* A frame in between, and it counts from the start. */
	frames(0, 1);
	nothing(look());
	for (unsigned int i = 0; i < RECOVER_TRIES; i++) {
		errors(0, 300);
		assert_int_equal(look().error, 1);
		recover_restarted(&recover, 1, &now);
	}
	errors(0, 300);
	found = look();
	assert_int_equal(found.dead, 1);
	assert_int_equal(found.error, 0);
	errors(0, 300);
	nothing(look());
	errors(1, 300);
	assert_int_equal(look().error, 2);
}

/* The scalar functions: the driver starts the queue again. */
static void recovery_by_the_driver_is_told_once(void **state)
{
	frames(0, 10);
	errors(0, 300);
	nothing(look());
	/* Counted behind the errors, but they came before. */
	frames(0, 10);
	nothing(look());
	frames(0, 10);
	assert_int_equal(look().healed, 1);
	frames(0, 10);
	nothing(look());
}

static void error_before_silence_is_no_alarm(void **state)
{
	uint32_t healed;

	frames(0, 10);
	errors(0, 300);
	for (unsigned int i = 0; i < 50; i++)
		nothing(look());
	assert_int_equal(recover_left(&recover, &healed), 1);
	assert_int_equal(healed, 0);
	frames(0, 1);
	assert_int_equal(look().healed, 1);
	assert_int_equal(recover_left(&recover, &healed), 0);
	assert_int_equal(healed, 0);
}

static void end_tells_what_was_not_told(void **state)
{
	uint32_t healed;

	errors(0, 300);
	errors(1, 300);
	nothing(look());
	frames(0, 10);
	nothing(look());
	assert_int_equal(recover_left(&recover, &healed), 2);
	assert_int_equal(healed, 1);
}

static void one_error_in_silence_is_no_alarm(void **state)
{
	nothing(look());
	errors(0, 300);
	for (unsigned int i = 0; i < 50; i++)
		nothing(look());
}

static void errors_without_end_are_an_alarm(void **state)
{
	for (unsigned int i = 0; i < RECOVER_QUIET_MS / RECOVER_LOOK_MS - 1; i++) {
		errors(0, 300);
		nothing(look());
	}
	errors(0, 300);
	assert_int_equal(look().error, 1);
}

static void frames_between_errors_are_no_alarm(void **state)
{
	for (unsigned int i = 0; i < 50; i++) {
		errors(0, 300);
		frames(0, 1);
		nothing(look());
	}
}

/* rx_nombuf is in the queue's errors. */
static void empty_pool_is_no_error(void **state)
{
	now.stays = true;
	for (unsigned int i = 0; i < 50; i++) {
		now.queue_errors[0] += 1000;
		nothing(look());
	}
}

static void error_is_the_queues_own(void **state)
{
	now.stays = true;
	for (unsigned int i = 0; i < 10; i++) {
		errors(1, 1);
		assert_int_equal(look().error, 2);
		recover_restarted(&recover, 0, &now);
	}
}

static void swallowed_frames_are_an_alarm(void **state)
{
	uint64_t since;

	frames(0, 10);
	nothing(look());
	since = now.ms;
	while (now.ms + RECOVER_LOOK_MS < since + RECOVER_HITS_MS) {
		now.hits += 10;
		nothing(look());
	}
	now.hits += 10;
	assert_int_equal(look().silent, 3);
	recover_restarted(&recover, 3, &now);
	nothing(look());
}

/* The driver reads the hits once a second, or later where it has no core. */
static void late_hits_are_no_alarm(void **state)
{
	for (uint64_t ms = 1500; ms <= 3 * RECOVER_HITS_MS; ms += 500) {
		now.frames[0] += 1000;
		now.missed += 10;
		nothing(look());
		for (uint64_t gone = 0; gone < ms; gone += RECOVER_LOOK_MS)
			nothing(look());
		now.hits += 1010;
		for (unsigned int i = 0; i < 50; i++)
			nothing(look());
	}
	now.hits++;
	assert_int_equal(look().silent, 3);
}

/* They may be read once it has begun. */
static void frames_before_the_run_are_no_alarm(void **state)
{
	memset(&recover, 0, sizeof(recover));
	now.missed = 50;
	for (unsigned int i = 0; i < 50; i++)
		nothing(look());
	now.hits = 50;
	nothing(look());
}

/* It takes none: whether the card calls them missed is not documented. */
static void frames_that_a_silent_port_misses_are_an_alarm(void **state)
{
	for (unsigned int i = 1; i * RECOVER_LOOK_MS < RECOVER_HITS_MS; i++) {
		nothing(look());
		now.hits += 10;
		now.missed += 10;
	}
	assert_int_equal(look().silent, 3);
}

/* What is not accounted for before a start again is not blamed on the port after it. */
static void late_hits_after_a_restart_are_no_alarm(void **state)
{
	swallowed_frames_are_an_alarm(state);
	now.hits = 0;
	recover_restarted(&recover, 3, &now);
	now.frames[0] += 1000;
	nothing(look());
	for (unsigned int i = 0; i < 50; i++)
		nothing(look());
	now.hits += 1000;
	nothing(look());
	now.hits++;
	assert_int_equal(look().silent, 3);
}

static void unknown_hits_say_nothing(void **state)
{
	now.hits_known = false;
	for (unsigned int i = 0; i < 50; i++) {
		now.hits += 10;
		nothing(look());
	}
	now.hits_known = true;
	now.hits += 10;
	nothing(look());
	now.hits_known = false;
	now.hits += 10;
	nothing(look());
}

/* Its slots are with the consumer. */
static void slow_consumer_is_no_alarm(void **state)
{
	now.room = false;
	for (unsigned int i = 0; i < 50; i++) {
		now.hits += 10;
		errors(0, 1);
		nothing(look());
	}
}

/* What the rules put there is put into a dead queue. */
static void dead_queue_is_no_reason_to_blame_others(void **state)
{
	now.stays = true;
	for (unsigned int i = 0; i < RECOVER_TRIES; i++) {
		errors(0, 300);
		look();
		recover_restarted(&recover, 1, &now);
	}
	errors(0, 300);
	assert_int_equal(look().dead, 1);
	now.ms += RECOVER_HITS_MS;
	now.hits += 10;
	nothing(look());
}

static enum recover_move sender_look(struct recover_sender *sender, uint64_t sent, uint64_t stalled,
				     bool excused)
{
	now.ms += RECOVER_LOOK_MS;
	return recover_sender_look(sender, now.ms, sent, stalled, excused);
}

static void stuck_sender_is_told_once_and_when_it_moves(void **state)
{
	struct recover_sender sender = { 0 };
	unsigned int told = 0;
	uint64_t stalled = 0;

	assert_int_equal(sender_look(&sender, 10, 0, false), RECOVER_AS_BEFORE);
	for (unsigned int i = 0; i < RECOVER_STUCK_MS / RECOVER_LOOK_MS - 1; i++)
		assert_int_equal(sender_look(&sender, 10, ++stalled, false), RECOVER_AS_BEFORE);
	for (unsigned int i = 0; i < 50; i++)
		told += sender_look(&sender, 10, ++stalled, false) == RECOVER_STUCK;
	assert_int_equal(told, 1);
	assert_int_equal(sender_look(&sender, 11, stalled, false), RECOVER_MOVES);
	assert_int_equal(sender_look(&sender, 12, stalled, false), RECOVER_AS_BEFORE);
}

static void idle_or_held_sender_is_not_stuck(void **state)
{
	struct recover_sender sender = { 0 };
	uint64_t stalled = 0;

	for (unsigned int i = 0; i < 50; i++)
		assert_int_equal(sender_look(&sender, 10, stalled, false), RECOVER_AS_BEFORE);
	for (unsigned int i = 0; i < 50; i++)
		assert_int_equal(sender_look(&sender, 10, ++stalled, true), RECOVER_AS_BEFORE);
	assert_int_equal(sender_look(&sender, 10, ++stalled, false), RECOVER_AS_BEFORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(quiet_ports_are_left_alone, begin),
		cmocka_unit_test_setup(error_that_stays_is_restarted_at_once, begin),
		cmocka_unit_test_setup(counters_may_begin_anew, begin),
		cmocka_unit_test_setup(queue_is_given_up_after_its_tries, begin),
		cmocka_unit_test_setup(recovery_by_the_driver_is_told_once, begin),
		cmocka_unit_test_setup(error_before_silence_is_no_alarm, begin),
		cmocka_unit_test_setup(end_tells_what_was_not_told, begin),
		cmocka_unit_test_setup(one_error_in_silence_is_no_alarm, begin),
		cmocka_unit_test_setup(errors_without_end_are_an_alarm, begin),
		cmocka_unit_test_setup(frames_between_errors_are_no_alarm, begin),
		cmocka_unit_test_setup(empty_pool_is_no_error, begin),
		cmocka_unit_test_setup(error_is_the_queues_own, begin),
		cmocka_unit_test_setup(swallowed_frames_are_an_alarm, begin),
		cmocka_unit_test_setup(late_hits_are_no_alarm, begin),
		cmocka_unit_test_setup(frames_before_the_run_are_no_alarm, begin),
		cmocka_unit_test_setup(frames_that_a_silent_port_misses_are_an_alarm, begin),
		cmocka_unit_test_setup(late_hits_after_a_restart_are_no_alarm, begin),
		cmocka_unit_test_setup(unknown_hits_say_nothing, begin),
		cmocka_unit_test_setup(slow_consumer_is_no_alarm, begin),
		cmocka_unit_test_setup(dead_queue_is_no_reason_to_blame_others, begin),
		cmocka_unit_test(stuck_sender_is_told_once_and_when_it_moves),
		cmocka_unit_test(idle_or_held_sender_is_not_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
