/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rx worker in a thread of its own, between a port played by the test, which knows of every
 * frame that it gave where it lies, and a consumer played by it too: what comes out is what was
 * given, in order, each once; nothing stays behind; and the counters say so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rx_scene.h"

#define STRICT 4u /* as the vector receive functions of mlx5 */

/* Every loop of the worker, in turn. */
static struct rx_setup setup_of(uint32_t burst, uint32_t variant)
{
	return (struct rx_setup){
		.burst = burst,
		.strict = variant & 1 ? STRICT : 1,
		.accounted = variant >> 1 & 1,
		.flush = variant >> 2 & 1,
		.split = variant >> 3 & 1 ? 64 : 0,
		.times = variant >> 4 & 1,
		.clock = variant >> 5 & 1 ? RX_TIMES_CARD : RX_TIMES_TSC,
		.mark_cut = variant >> 6 & 1,
		.chains = true,
		.polls = 1 + variant % 300,
	};
}

#define VARIANTS 128u

static void every_burst(void **state)
{
	for (uint32_t burst = 1; burst <= BURST_FRAMES_MAX; burst++) {
		const struct rx_setup setup = setup_of(burst, burst * 37 % VARIANTS | 1);

		rx_run(&setup, 3 * SCENE_SLOTS + burst);
	}
}

static void every_variant(void **state)
{
	static const uint32_t bursts[] = { 1, 2, 3, 5, 32, 256 };

	for (uint32_t v = 0; v < VARIANTS; v++) {
		const struct rx_setup setup = setup_of(bursts[v % 6], v);

		rx_run(&setup, 2 * SCENE_SLOTS + v);
	}
}

/* A port that cuts frames itself says so by their length alone: each is counted, and marked where
 * that is asked for, in every loop. */
static void cut_by_the_port(void **state)
{
	for (uint32_t v = 0; v < VARIANTS; v++) {
		struct rx_setup setup = setup_of(1 + v % 64, v);

		if (setup.split)
			continue;
		setup.chains = false;
		setup.cut_from = 65; /* frames of 64 bytes and of 65 are played */
		rx_run(&setup, 500 + v);
	}
}

/* What a strict port gave beyond the room is there at the end, however it comes. */
static void the_end_loses_nothing(void **state)
{
	for (uint32_t i = 0; i < 60; i++) {
		struct rx_setup setup = setup_of(1 + i % 3, 1 | (i * 8 & 64) | (i & 2));
		struct rx_play play;

		setup.split = i & 4 ? 32 : 0;
		play_open(&play, &setup, UINT32_MAX);
		play_until(&play, 50 + i);
		play_close(&play, RX_DRAIN);
	}
}

/* The consumer is dead: the worker leaves, and what was received is counted. */
static void abandoned(void **state)
{
	struct rx_setup setup = setup_of(3, 1);
	struct rx_play play;

	play_open(&play, &setup, SCENE_SLOTS / 2);
	while (atomic_load(&play.worker->frames) < SCENE_SLOTS / 2)
		play_yield(&play);
	assert_int_equal(atomic_load(&play.worker->back), 0);
	play_close(&play, RX_ABANDON);
}

/* One that sleeps is woken for frames, for slots that are to go back, and for the end; who waits for these
 * is woken by it. */
static void sleeps(void **state)
{
	struct rx_setup setup = setup_of(3, 2);
	struct rx_play play;
	struct wake sender;
	uint32_t ticket;

	setup.sleep_us = 1000;
	wake_init(&sender);
	setup.sender = &sender;
	play_open(&play, &setup, 0);
	assert_ptr_equal(play.worker->ring.giver, &play.worker->wake);
	for (uint64_t frames = 1; frames <= 100; frames++) {
		while (!(atomic_load(&play.worker->wake.word) & 1))
			play_yield(&play);
		__atomic_store_n(&card.limit, frames, __ATOMIC_RELAXED);
		wake_look(&play.worker->wake);
		while (play.next < frames) {
			play_take(&play);
			play_yield(&play);
		}
		assert_true(wake_arm(&sender, &ticket));
		while (play.burst != play.taken)
			play_give_back(&play);
		wake_look(play.worker->ring.giver);
		while (atomic_load(&sender.word) & 1)
			play_yield(&play);
		assert_true(atomic_load(&play.worker->back) == frames);
	}
	play_close(&play, RX_DRAIN);
}

/* ---- pauses ---- */

static void pause_begin(struct rx_play *play)
{
	atomic_store_explicit(&play->worker->phase, RX_PAUSE, memory_order_release);
	while (!atomic_load_explicit(&play->worker->paused, memory_order_acquire))
		play_yield(play);
}

static void pause_end(struct rx_play *play)
{
	atomic_store_explicit(&play->worker->phase, RX_RUN, memory_order_release);
	while (atomic_load_explicit(&play->worker->paused, memory_order_acquire))
		play_yield(play);
}

static void pauses(void **state)
{
	for (uint32_t v = 0; v < 24; v++) {
		struct rx_setup setup = setup_of(1 + v % 7, v * 8 | 1);
		struct rx_play play;

		play_open(&play, &setup, UINT32_MAX);
		for (uint32_t i = 0; i < 20; i++) {
			uint64_t polls, given;

			play_until(&play, atomic_load(&play.worker->frames) + 1 + i * 7);
			pause_begin(&play);
			polls = atomic_load(&card.polls);
			given = atomic_load(&card.given);
			/* All that was received comes, and its slots go back. */
			assert_true(atomic_load(&play.worker->frames) == given);
			while (play.next != given || atomic_load(&play.worker->back) != given)
				play_consume(&play);
			assert_true(atomic_load(&card.polls) == polls);
			pause_end(&play);
		}
		pause_begin(&play);
		/* A run may end in it. */
		play_close(&play, RX_DRAIN);
	}
}

/* A consumer that stands still, and pauses one after the other: bursts that are published before
 * their time would be more than there are words for. */
static void many_pauses(void **state)
{
	struct rx_setup setup = { .burst = 64, .strict = 1, .polls = 1 };
	struct rx_play play;
	uint64_t bursts;

	play_open(&play, &setup, SCENE_SLOTS);
	while (atomic_load(&play.worker->frames) < SCENE_SLOTS) {
		const uint64_t given = atomic_load(&card.given);

		pause_begin(&play);
		bursts = atomic_load(&play.worker->bursts);
		assert_true(bursts <= RING_SMALL_BURSTS + SCENE_SLOTS / 64 + 2);
		pause_end(&play);
		while (given < SCENE_SLOTS && atomic_load(&card.given) == given)
			play_yield(&play);
	}
	play_close(&play, RX_DRAIN);
}

/* ---- ports that read first ---- */

static uint64_t play_in_flight(const struct rx_play *play)
{
	uint64_t back, given;

	/* Of one moment: both counts may rise while this thread waits for a core. */
	do {
		back = atomic_load(&play->worker->back);
		given = atomic_load(&card.given);
	} while (atomic_load(&play->worker->back) != back);
	return given - back;
}

static void slots_are_left(void **state)
{
	static const uint32_t bursts[] = { 1, 3, 4, 64 };

	for (size_t i = 0; i < 4; i++) {
		struct rx_setup setup = setup_of(bursts[i], 1);
		struct rx_play play;

		setup.in_flight_max = 200;
		play_open(&play, &setup, UINT32_MAX);
		for (int round = 0; round < 20; round++) {
			const uint32_t most = 200 + RTE_MAX(bursts[i], RX_LEAST);
			uint64_t frames;

			while (play_in_flight(&play) <= 200)
				play_yield(&play);
			for (int n = 0; n < 30 && play_yield(&play); n++)
				assert_in_range(play_in_flight(&play), 0, most);
			frames = atomic_load(&play.worker->frames);
			while (atomic_load(&play.worker->frames) < frames + 500)
				play_consume(&play);
		}
		play_close(&play, RX_DRAIN);
	}
}

/* Until every slot is in flight and stays there: nothing that was given back is still to be taken. */
static void play_hold_all(struct rx_play *play)
{
	while (play->burst != play->taken)
		play_give_back(play);
	while (atomic_load(&play->worker->back) != play->next ||
	       atomic_load(&card.given) != play->next + SCENE_SLOTS)
		play_yield(play);
}

/* ---- an empty pool ---- */

/* While the consumer has every slot; not while there are slots, however little comes. */
static void an_empty_pool_is_counted(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct rx_setup setup = setup_of(1 + 21 * i, i & 1 ? 8 : 0);
		struct rx_play play;
		uint64_t times, ticks;

		setup.chains = false;
		/* As many in flight as make it look, and slots left. */
		play_open(&play, &setup, SCENE_SLOTS / 2 + 10);
		while (atomic_load(&play.worker->frames) < SCENE_SLOTS / 2 + 10)
			play_yield(&play);
		ticks = atomic_load(&play.worker->idle);
		while (atomic_load(&play.worker->idle) < ticks + 10)
			play_yield(&play);
		assert_int_equal(atomic_load(&play.worker->starved), 0);
		play_until(&play, SCENE_SLOTS / 2 + 10);
		play_close(&play, RX_DRAIN);

		play_open(&play, &setup, UINT32_MAX);
		for (uint32_t round = 0; round < 3; round++) {
			play_hold_all(&play);
			for (uint32_t look = 0; look < 2; look++) {
				times = atomic_load(&play.worker->starved);
				ticks = atomic_load(&play.worker->starved_tsc);
				while (atomic_load(&play.worker->starved_tsc) == ticks)
					play_yield(&play);
			}
			/* It is the same time, as nothing moves. */
			assert_true(times > 0);
			assert_true(atomic_load(&play.worker->starved) == times);
			play_until(&play, play.next + SCENE_SLOTS);
		}
		play_close(&play, RX_DRAIN);
	}
}

/* ---- ports that write past what they give ---- */

/* The ring has a place for each slot and no more: while all are taken, none may be written to. */
static void a_full_ring(void **state)
{
	static const uint32_t bursts[] = { 1, 3, 4, 64, 256 };

	for (size_t i = 0; i < 10; i++) {
		struct rx_setup setup = setup_of(bursts[i % 5], 1 | (i < 5 ? 0 : 8));
		struct rx_play play;
		uint64_t polls, empty;

		setup.chains = false;
		play_open(&play, &setup, UINT32_MAX);
		for (int round = 0; round < 3; round++) {
			play_until(&play, play.next + SCENE_SLOTS / 2 + 5);
			play_hold_all(&play);
			/* It is polled, and has no slot: that is no empty queue. */
			empty = atomic_load(&play.worker->empty);
			polls = atomic_load(&card.polls);
			while (atomic_load(&card.polls) < polls + 10)
				play_yield(&play);
			assert_int_equal(atomic_load(&play.worker->empty), empty);
		}
		play_until(&play, play.next + 2 * SCENE_SLOTS);
		play_close(&play, RX_DRAIN);
	}
}

static void a_port_that_falls_silent(void **state)
{
	struct rx_setup setup = setup_of(64, 8);
	struct rx_play play;
	uint64_t polls;

	setup.chains = false;
	play_open(&play, &setup, 3 * SCENE_SLOTS);
	play_until(&play, 3 * SCENE_SLOTS);
	/* What was polled before the last frame was given back is not asked. */
	while (play_in_flight(&play))
		play_consume(&play);
	polls = atomic_load(&play.worker->empty);
	while (atomic_load(&play.worker->empty) < polls + 20)
		play_yield(&play);
	assert_true(atomic_load(&card.polls) >= 20);
	assert_int_equal(atomic_load(&play.worker->frames), 3 * SCENE_SLOTS);
	play_close(&play, RX_DRAIN);
}

/* ---- flush ---- */

static void a_flush_that_fails(void **state)
{
	struct rx_setup setup = setup_of(16, 4);
	struct rx_play play;

	setup.flush_result = -EIO;
	play_open(&play, &setup, UINT32_MAX);
	play_until(&play, 1000);
	assert_int_equal(atomic_load(&play.worker->flush_error), -EIO);
	play_close(&play, RX_DRAIN);
}

/* ---- the caller's own consumer ---- */

static void batches_show_pieces_and_times(void **state)
{
	for (uint32_t variant = 0; variant < 4; variant++) {
		const struct rx_clock clock = { .port = 1, .real_time = true };
		struct rx_setup setup = { .burst = 7, .strict = STRICT, .polls = 30 };
		const struct gdrcap_batch *batch;
		struct gdrcap_queue queue;
		struct rx_play play;

		setup.split = variant & 1 ? 32 : 0;
		setup.times = variant >> 1;
		setup.clock = RX_TIMES_CARD;
		play_open(&play, &setup, UINT32_MAX);
		assert_int_equal(queue_create(&queue, &play.worker->ring, CONSUMER_HOST, NULL, NULL,
					      setup.times ? &clock : NULL),
				 0);
		while (play.next < 5000) {
			const int n = gdrcap_poll(&queue, &batch, 1);

			assert_in_range(n, 0, 1);
			if (n == 0 && play_yield(&play))
				continue;
			assert_true((batch->heads != NULL) == (setup.split != 0));
			assert_true((batch->times != NULL) == setup.times);
			assert_int_equal(batch->head_slot_bytes, setup.split ? 256 : 0);
			assert_ptr_equal(batch->head_data, setup.split ? scene.heads.device : NULL);
			for (uint32_t i = 0; i < batch->count; i++, play.next++) {
				const struct given *given = given_at(play.next);
				const uint64_t time = batch->times ? batch->times[i] : 0;

				assert_memory_equal(&batch->pkts[i], &given->desc, 8);
				if (setup.split)
					assert_memory_equal(&batch->heads[i], &given->head, 8);
				assert_true(time == (setup.times ? given->time : 0));
				assert_true(gdrcap_time_ns(&queue, time) == time);
			}
			gdrcap_release(&queue, &batch, 1);
			play.burst = ++play.taken;
		}
		queue_destroy(&queue);
		play_close(&play, RX_DRAIN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_burst),
		cmocka_unit_test(every_variant),
		cmocka_unit_test(cut_by_the_port),
		cmocka_unit_test(the_end_loses_nothing),
		cmocka_unit_test(abandoned),
		cmocka_unit_test(sleeps),
		cmocka_unit_test(pauses),
		cmocka_unit_test(many_pauses),
		cmocka_unit_test(slots_are_left),
		cmocka_unit_test(an_empty_pool_is_counted),
		cmocka_unit_test(a_full_ring),
		cmocka_unit_test(a_port_that_falls_silent),
		cmocka_unit_test(a_flush_that_fails),
		cmocka_unit_test(batches_show_pieces_and_times),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
