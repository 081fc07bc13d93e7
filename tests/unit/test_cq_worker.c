/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front's thread: what the card gives comes out in order, each frame once and whole; what is no
 * frame stops it and is counted; a reset brings it back. Usage: test_cq_worker [FRAMES [CASE]].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "front_play.h"
#include "test_long.h"

static uint64_t frames = 30000;

/* Every loop of the front, and rings in which ROOM holds it back (4 bursts); cyclic queues, and those of
 * strides. */
static void every_loop(void **state)
{
	for (uint32_t v = 0; v < 32; v++) {
		const struct front_setup setup = {
			.slots = 64u << v % 4,
			.burst = v & 1 ? 3 : 32,
			.bursts = v & 2 ? 4 : 4096,
			.cq_factor = v % 3 ? 2 : 4,
			.strides = v < 16 ? 0 : 1 + v % 4,
			.accounted = v & 1,
			.flush = v >> 1 & 1,
			.times = v >> 2 & 1,
			.card_times = v >> 3 & 1,
			.keeps = v % 4,
		};
		struct front_play *play = play_open(&setup);

		card_give_all(play, frames / 32);
		play_close(play);
	}
}

/* Work entries are counted in 16 bits. */
static void wraps(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 32, .bursts = 4096, .cq_factor = 2, .keeps = 2
	};
	struct front_play *play = play_open(&setup);

	card_give_all(play, test_cases(3, 1) * 65536 + 77);
	play_close(play);
}

/* So are they where each has several places; with two they wrap here, with 16 the places alone do, which nobody counts
 * in 16 bits. */
static void wraps_of_strides(void **state)
{
	for (uint32_t strides = 1; strides <= test_cases(4, 1); strides += 3) {
		const struct front_setup setup = { .slots = 64,
						   .burst = 32,
						   .bursts = 4096,
						   .cq_factor = 2,
						   .strides = strides,
						   .keeps = 2 };
		struct front_play *play = play_open(&setup);

		card_give_all(play, (strides == 1 ? 2 : 1) * 65536 + 777);
		play_close(play);
	}
}

/* Of strides, a work entry goes back when all of its slots are free, and not before. */
static void whole_work_entries_go_back(void **state)
{
	const struct front_setup setup = { .slots = 64,
					   .burst = 8,
					   .bursts = 4096,
					   .cq_factor = 2,
					   .strides = 4,
					   .accounted = true };
	struct front_play *play = play_open(&setup);

	for (uint64_t i = 1; i < 100; i++) {
		card_give_all(play, i * 7);
		while (atomic_load(&play->worker.back) != play->given)
			play_wait(play);
		/* All but those of the entry that is in use. */
		while (card_posted(play) != 64 - i * 7 % 16)
			play_wait(play);
	}
	play_close(play);
}

/* Slots that the consumer keeps are not posted: the card finds none when it has used the others. */
static void a_consumer_that_stands(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2, .accounted = true
	};
	struct front_play *play = play_open(&setup);

	atomic_store(&play->stand, 1);
	card_give_all(play, 64);
	while (atomic_load(&play->worker.starved) == 0)
		play_wait(play);
	assert_int_equal(card_posted(play), 0);
	assert_int_equal(atomic_load(&play->worker.frames), 64);
	atomic_store(&play->stand, 0);
	card_give_all(play, 5000);
	play_close(play);
}

/* A burst is published at once when the consumer has nothing. */
static void one_frame(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 32, .bursts = 4096, .cq_factor = 2
	};
	struct front_play *play = play_open(&setup);

	for (uint64_t i = 1; i <= 300; i++) {
		card_give_all(play, i);
		play_settle(play);
	}
	/* Counted after it was published; more than one a frame there cannot be. */
	while (atomic_load(&play->worker.bursts) < 300)
		play_wait(play);
	play_close(play);
}

/* ---- what stops it ---- */

struct wrong {
	enum cq_kind kind;
	uint32_t opcode, counter_off, length, syndrome;
};

static void stop_and_reset(const struct wrong *wrong, bool accounted, uint32_t strides)
{
	/* more slots than a stopped front throws away completions at once */
	const struct front_setup setup = { .slots = 1024,
					   .burst = 8,
					   .bursts = 4096,
					   .cq_factor = 2,
					   .accounted = accounted,
					   .strides = strides };
	struct front_play *play = play_open(&setup);
	uint64_t expected = 0;

	for (uint32_t round = 0; round < 3; round++) {
		const uint64_t before = atomic_load(&play->cq.discarded);
		const uint64_t flushed = atomic_load(&play->cq.flushed);
		uint32_t late;

		expected += 500 + round;
		card_give_all(play, expected);
		while (card_posted(play) < 3)
			play_wait(play);
		card_write(play, wrong->opcode, play->done + wrong->counter_off, wrong->length, 0,
			   wrong->syndrome);
		play->done++;
		assert_int_equal(play_stopped(play), wrong->kind);
		assert_int_equal(play->cq.fault.next, (play->done - 1));
		assert_true(play->cq.fault.index == play->index - 1);
		assert_memory_equal(play->cq.fault.cqe,
				    play->completions + (play->index - 1) % 2048 * CQ_BYTES,
				    CQ_BYTES);
		/* Frames behind it are not believed; the rest comes back unused, some of it late. */
		late = round ? card_posted(play) : 0;
		card_flush(play, card_posted(play) - late);
		play_settle(play);
		play_reset(play, late);
		while (card_posted(play) != setup.slots)
			play_wait(play);
		assert_int_equal(atomic_load(&play->cq.state), CQ_RUNS);
		assert_int_equal(atomic_load(&play->cq.stops[wrong->kind]), round + 1);
		assert_true(atomic_load(&play->cq.discarded) + atomic_load(&play->cq.flushed) ==
			    before + flushed + play->index - play->cq.fault.index -
				    (wrong->kind == CQ_ERROR || wrong->kind == CQ_FILLER));
	}
	card_give_all(play, expected + 1000);
	play_close(play);
}

static void stops(void **state)
{
	static const struct wrong wrongs[] = {
		{ CQ_ERROR, CQ_OP_ERROR, 0, 60, 4 },
		{ CQ_FLUSHED, CQ_OP_ERROR, 0, 60, CQ_SYNDROME_FLUSHED },
		{ CQ_LENGTH, CQ_OP_ERROR, 0, 60, CQ_SYNDROME_LENGTH },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, PLAY_SLOT_BYTES + 1, 0 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, 0, 0 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, 0x80000040, 0 },
		{ CQ_ORDER, CQ_OP_RECEIVED, 1, 60, 0 },
		{ CQ_ORDER, CQ_OP_RECEIVED, 0xffff, 60, 0 },
		{ CQ_ODD, 0, 0, 60, 0 },
	};

	for (uint32_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		stop_and_reset(&wrongs[i], i & 1, 0);
}

/* `counter_off` in places: another stride, another work entry. `length`: what is beside the one stride, too. */
static void stops_of_strides(void **state)
{
	static const struct wrong wrongs[] = {
		{ CQ_ERROR, CQ_OP_ERROR, 0, 60, 4 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, PLAY_SLOT_BYTES + 1, 0 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, 0, 0 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, CQ_STRIDE + 60, 0 },
		{ CQ_LENGTH, CQ_OP_RECEIVED, 0, 60 - CQ_STRIDE, 0 },
		{ CQ_FILLER, CQ_OP_RECEIVED, 0, CQ_STRIDE_FILLER, 0 },
		{ CQ_FILLER, CQ_OP_RECEIVED, 0, CQ_STRIDE_FILLER + 60, 0 },
		{ CQ_ORDER, CQ_OP_RECEIVED, 1, 60, 0 },
		{ CQ_ORDER, CQ_OP_RECEIVED, 16, 60, 0 },
		{ CQ_ORDER, CQ_OP_RECEIVED, 0u - 16, 60, 0 },
		{ CQ_ODD, 0, 0, 60, 0 },
	};

	for (uint32_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		stop_and_reset(&wrongs[i], i & 1, 4);
}

/* A completion that never comes to be the queue's, and others behind it: they are not believed, nor waited
 * behind for good. */
static void passed_over(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2
	};
	struct front_play *play = play_open(&setup);

	for (uint32_t round = 1; round <= 5; round++) {
		card_give_all(play, round * 333);
		while (card_posted(play) < 3)
			play_wait(play);
		play->index++;
		play->done++;
		card_write(play, CQ_OP_RECEIVED, play->done++, 60, 0, 0);
		assert_int_equal(play_stopped(play), CQ_ORDER);
		assert_true(play->cq.fault.index == play->index - 2);
		card_flush(play, card_posted(play));
		play_settle(play);
		play_reset(play, 0);
		while (card_posted(play) != setup.slots)
			play_wait(play);
		assert_int_equal(atomic_load(&play->cq.stops[CQ_ORDER]), round);
		/* The one that is missing had a slot, too. */
		assert_true(atomic_load(&play->cq.discarded) + atomic_load(&play->cq.flushed) >=
			    2 * (uint64_t)round);
	}
	card_give_all(play, 3000);
	play_close(play);
}

/* A card that completes what was not posted: the slots are the consumer's. Stopped, the front posts none; nor
 * while it does not have them all, after the reset, when it is not in error any more. */
static void more_than_posted(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2
	};
	struct front_play *play = play_open(&setup);

	for (uint32_t round = 0; round < 4; round++) {
		uint32_t record;

		while (card_posted(play) != setup.slots)
			play_wait(play);
		atomic_store(&play->stand, 1);
		card_give_all(play, 64 * (round + 1));
		card_write(play, CQ_OP_RECEIVED, play->done++, 60, 0, 0);
		assert_int_equal(play_stopped(play), CQ_ORDER);
		assert_int_equal(atomic_load(&play->worker.frames), 64 * (round + 1));
		record = __atomic_load_n(&play->record, __ATOMIC_RELAXED);
		if (round & 1) {
			atomic_store(&play->stand, 0);
			play_settle(play);
		}
		for (uint32_t i = 0; i < 20; i++, play_wait(play))
			assert_int_equal(__atomic_load_n(&play->record, __ATOMIC_RELAXED), record);
		play_reset(play, 0);
		for (uint32_t i = 0; i < 20 && !(round & 1); i++, play_wait(play)) {
			assert_int_equal(atomic_load(&play->cq.state), CQ_RUNS);
			assert_int_equal(__atomic_load_n(&play->record, __ATOMIC_RELAXED), 0);
		}
		atomic_store(&play->stand, 0);
	}
	card_give_all(play, 1000);
	play_close(play);
}

/* ---- phases ---- */

/* In a pause nothing is read of the queue, which is overwritten, and the record stays. Slots come back. */
static void pauses(void **state)
{
	for (uint32_t v = 0; v < 20; v++) {
		const struct front_setup setup = { .slots = 64,
						   .burst = 1 + v,
						   .bursts = 4096,
						   .cq_factor = 2,
						   .accounted = v & 1 };
		struct front_play *play = play_open(&setup);
		uint32_t record;

		card_give_all(play, 1000 + v);
		play_settle(play);
		play_phase(play, RX_PAUSE);
		record = play->record;
		memset(play->completions, 0, CQ_BYTES); /* plain: the sanitizer looks */
		memset(play->completions, 0xf1, 128 * CQ_BYTES);
		for (uint32_t i = 0; i < 20; i++)
			play_wait(play);
		assert_int_equal(play->record, record);
		play_phase(play, RX_RUN);
		card_give_all(play, 2000);
		play_close(play);
	}
}

/* A pause by itself changes nothing. A reset does without one having been asked for by a stop. */
static void reset_of_one_that_runs(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2, .accounted = true
	};
	struct front_play *play = play_open(&setup);

	for (uint32_t i = 1; i < 50; i++) {
		card_give_all(play, i * 100);
		play_phase(play, RX_PAUSE);
		play_phase(play, RX_RUN);
		card_give_all(play, i * 100 + 10);
		play_settle(play);
		play_reset(play, 0);
	}
	play_close(play);
}

/* Control takes some itself while the thread keeps away, as the self-test does before it runs: they do not
 * come out, their slots are posted again, and all others come. */
static void some_taken_past_the_ring(uint32_t strides)
{
	const struct front_setup setup = { .slots = 64,
					   .burst = 8,
					   .bursts = 4096,
					   .cq_factor = 2,
					   .strides = strides,
					   .accounted = true };
	struct front_play *play = play_open(&setup);
	struct frame_desc desc;

	for (uint64_t i = 1; i < 100; i++) {
		card_give_all(play, i * 30);
		/* Not only seen: given back. */
		while (atomic_load(&play->worker.back) != play->given)
			play_wait(play);
		play_phase(play, RX_PAUSE);
		assert_false(cq_worker_take(&play->cq, &play->worker, &desc));
		assert_true(card_give(play));
		assert_true(cq_worker_take(&play->cq, &play->worker, &desc));
		/* The next one has its number. */
		play->bytes -= play_length(--play->given);
		assert_int_equal(desc.slot, PLAY_FIRST_SLOT + (play->done - 1) % 64);
		assert_int_equal(desc.len, play_length(play->given));
		play_phase(play, RX_RUN);
	}
	play_close(play);
}

static void taken_past_the_ring(void **state)
{
	some_taken_past_the_ring(0);
	some_taken_past_the_ring(3);
}

/* The consumer is dead: it leaves at once. */
static void abandoned(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2
	};
	struct front_play *play = play_open(&setup);

	atomic_store(&play->stand, 1);
	card_give_all(play, 64);
	while (atomic_load(&play->worker.frames) != 64)
		play_wait(play);
	atomic_store(&play->worker.phase, RX_ABANDON);
	pthread_join(play->front, NULL);
	assert_int_equal(atomic_load(&play->worker.back), 0);
	/* For play_close(): another one takes the slots back. */
	atomic_store(&play->worker.ring.ended, 0);
	atomic_store(&play->worker.phase, RX_DRAIN);
	assert_int_equal(pthread_create(&play->front, NULL, front_run, play), 0);
	atomic_store(&play->stand, 0);
	play_close(play);
}

/* ---- what is refused ---- */

static void refused(void **state)
{
	const struct front_setup setup = {
		.slots = 64, .burst = 8, .bursts = 4096, .cq_factor = 2
	};
	struct front_play *play = play_open(&setup);
	const struct cq_front_queue good = play->cq.queue;
	struct cq_front_queue queue[9];
	struct gdrcap_error error;
	struct cq_worker cq;

	for (uint32_t i = 0; i < 9; i++)
		queue[i] = good;
	queue[0].slots = 63;
	queue[1].slots = 65536;
	queue[1].cq_entries = 131072;
	queue[2].cq_entries = 64;
	queue[3].cq_entries = 192;
	queue[4].slot_bytes = 257;
	queue[5].first_slot = PLAY_FIRST_SLOT + 1;
	queue[6].first_slot = UINT32_MAX;
	queue[7].slots = 128;
	queue[7].cq_entries = 256;
	queue[8].stride_shift = 5;
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(cq_worker_create(&cq, &play->worker, &queue[i], &error), -22);
	assert_ptr_equal(play->worker.cq, &play->cq);
	play_close(play);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_loop),
		cmocka_unit_test(wraps),
		cmocka_unit_test(a_consumer_that_stands),
		cmocka_unit_test(one_frame),
		cmocka_unit_test(wraps_of_strides),
		cmocka_unit_test(whole_work_entries_go_back),
		cmocka_unit_test(stops),
		cmocka_unit_test(stops_of_strides),
		cmocka_unit_test(passed_over),
		cmocka_unit_test(more_than_posted),
		cmocka_unit_test(pauses),
		cmocka_unit_test(reset_of_one_that_runs),
		cmocka_unit_test(taken_past_the_ring),
		cmocka_unit_test(abandoned),
		cmocka_unit_test(refused),
	};

	if (argc > 1)
		frames = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
