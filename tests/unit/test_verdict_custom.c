/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a custom layout: the sender knows each frame's true number, and so do the model's sets; the
 * verdict sees only what is on the wire, a counter of a few bytes or the payload's phase. Phases
 * come from a shift register that is stepped bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "big_memory.h"
#include "kernels/frame_records.h"
#include "number_set.h"
#include "verdict/verdict.h"
#include "verdict/verdict_phase.h"

#define QUEUES 2
#define FRAMES 40000u
#define PAYLOAD 40u
#define ORIGIN (1ull << 40) /* the model's number of the first frame; any will do */

struct scene {
	struct frame_layout layout;
	struct pattern pattern;
	struct verdict verdict;
	const uint8_t *prbs; /* uninverted bits, FRAMES + some payloads */
	uint64_t random;

	/* The model. */
	struct number_set seen;
	bool any, any_here[QUEUES];
	uint64_t lowest, newest, newest_here[QUEUES];
	uint64_t received, valid, damaged, duplicate, reordered, lock_lost, stale;
	uint64_t arrived_next; /* number after the last frame to arrive */

	/* The burst that is being made. */
	struct frame_record record;
	struct frame_result last;
	uint64_t run_number;
	uint32_t queue;
};

/* The bytes of one PRBS, which stay: one bit at a time they take longer than a scene. */
static const uint8_t *prbs_of(uint32_t degree, uint32_t tap, size_t bytes)
{
	static uint8_t *made[32];
	uint32_t reg = UINT32_MAX;

	if (made[degree])
		return made[degree];
	made[degree] = malloc(bytes);
	assert_non_null(made[degree]);
	for (size_t i = 0; i < bytes; i++) {
		uint32_t byte = 0;

		for (uint32_t b = 0; b < 8; b++) {
			const uint32_t bit = (reg >> (degree - 1) ^ reg >> (tap - 1)) & 1;

			byte = byte << 1 | bit;
			reg = reg << 1 | bit;
		}
		made[degree][i] = (uint8_t)byte;
	}
	return made[degree];
}

static uint32_t phase_of(const struct scene *scene, uint64_t byte)
{
	return frame_be32(scene->prbs + byte);
}

static void scene_create(struct scene *scene)
{
	const struct verdict_config config = { .layout = &scene->layout,
					       .pattern = &scene->pattern };

	assert_int_equal(verdict_create(&scene->verdict, QUEUES, &config), 0);
}

/* sequence: bytes of the field, 0: none. kind: of the PRBS, PATTERN_NONE: no phases. */
static void scene_begin(struct scene *scene, uint32_t bytes, uint64_t step, enum pattern_kind kind,
			uint64_t seed)
{
	memset(scene, 0, sizeof(*scene));
	scene->random = seed;
	scene->layout.format = FRAME_CUSTOM;
	scene->layout.custom.sequence.bytes = (uint8_t)bytes;
	scene->layout.custom.sequence.offset = 14;
	scene->layout.custom.sequence_step = step;
	scene->layout.custom.payload = 18;
	if (kind != PATTERN_NONE) {
		const struct pattern_config pattern = { .kind = kind, .invert = -1 };

		scene->layout.custom.self_phase = 1;
		assert_int_equal(pattern_init(&scene->pattern, &pattern), 0);
		scene->prbs = prbs_of(scene->pattern.degree, scene->pattern.tap,
				      (size_t)2 * FRAMES * PAYLOAD);
	}
	scene_create(scene);
}

static void scene_end(struct scene *scene)
{
	verdict_destroy(&scene->verdict);
	number_set_free(&scene->seen);
	if (scene->layout.custom.self_phase)
		pattern_free(&scene->pattern);
}

static void burst_flush(struct scene *scene)
{
	if (!scene->record.count)
		return;
	/* Without numbers: where the payload did not go on from the one before, unless it returns
	 * to where the newest ended. */
	if (scene->any && scene->run_number != scene->newest + 1 &&
	    scene->run_number != scene->arrived_next)
		scene->lock_lost++;
	for (uint32_t i = 0; i < scene->record.count; i++) {
		const uint64_t number = scene->run_number + i;
		const bool late =
			scene->any_here[scene->queue] && number <= scene->newest_here[scene->queue];

		scene->received++;
		if (!late) {
			scene->any_here[scene->queue] = true;
			scene->newest_here[scene->queue] = number;
		}
		if (!scene->any || number < scene->lowest)
			scene->lowest = number;
		if (!scene->any || number > scene->newest)
			scene->newest = number;
		scene->any = true;
		scene->arrived_next = number + 1;
		if (!number_add(&scene->seen, number)) {
			scene->duplicate++;
			continue;
		}
		scene->reordered += late;
		if (scene->record.verdict == FRAME_VALID)
			scene->valid++;
		else
			scene->damaged++;
	}
	verdict_add(&scene->verdict, scene->queue, &scene->record);
	scene->record.count = 0;
}

/* The frame of number ORIGIN + n arrives. */
static void arrive(struct scene *scene, uint64_t n, uint8_t verdict)
{
	const struct frame_custom *custom = &scene->layout.custom;
	struct frame_result frame = {
		.header_ok = 1,
		.stream = 9,
		.verdict = verdict,
		.payload_bytes = PAYLOAD,
	};

	if (custom->sequence.bytes)
		frame.sequence = custom->sequence_start + n * custom->sequence_step;
	if (custom->sequence.bytes && custom->sequence.bytes < 8)
		frame.sequence &= (1ull << 8 * custom->sequence.bytes) - 1;
	if (verdict == FRAME_DAMAGED_PAYLOAD)
		frame.wrong_bits = 1;
	scene->stale += verdict == FRAME_DAMAGED_STALE;
	if (verdict == FRAME_DAMAGED_UNLOCKED) {
		frame.payload_bytes = 0;
		frame.detail = PAYLOAD;
	} else if (custom->self_phase) {
		frame.phase_first = phase_of(scene, n * PAYLOAD);
		frame.phase_next = phase_of(scene, (n + 1) * PAYLOAD);
	}
	/* Now and then a burst ends here. */
	if (scene->record.count && random_below(&scene->random, 30) &&
	    record_joins(&scene->layout, NULL, &scene->last, &frame)) {
		scene->record.count++;
		scene->record.bytes += run_bytes(&frame);
		scene->record.frame_bytes += 100;
		scene->record.phase_next = frame.phase_next;
	} else {
		burst_flush(scene);
		record_begin(&scene->record, &frame, 0, 100);
		scene->run_number = ORIGIN + n;
	}
	scene->last = frame;
}

static void new_burst(struct scene *scene)
{
	burst_flush(scene);
	scene->queue = (uint32_t)random_below(&scene->random, QUEUES);
	verdict_round(&scene->verdict);
}

static void check(struct scene *scene)
{
	struct gdrcap_counts counts, stream;

	burst_flush(scene);
	verdict_total(&scene->verdict, false, 0, &counts);
	assert_int_equal(counts.received, scene->received);
	assert_int_equal(counts.valid, scene->valid);
	assert_int_equal(counts.damaged, scene->damaged);
	assert_int_equal(counts.duplicate, scene->duplicate);
	assert_int_equal(counts.reordered, scene->reordered);
	assert_int_equal(counts.lost, scene->newest - scene->lowest + 1 - scene->seen.used);
	assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
	assert_int_equal(counts.bytes, 100 * scene->received);
	assert_int_equal(scene->verdict.stale, scene->stale);
	assert_int_equal(scene->verdict.stream_count, 1);
	verdict_stream_counts(&scene->verdict, &scene->verdict.streams[0], false, 0, &stream);
	assert_int_equal(stream.received, counts.received);
	assert_int_equal(stream.lost, counts.lost);
	assert_int_equal(stream.valid, counts.valid);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* `ahead` and `back`: the farthest that a loss, or a late or second frame, goes. */
static void random_traffic(struct scene *scene, uint32_t ahead, uint32_t back, uint32_t one_in)
{
	uint64_t *r = &scene->random;
	uint64_t held = UINT64_MAX;

	for (uint64_t n = random_below(r, 300); n < FRAMES; n++) {
		if (random_below(r, 40) == 0)
			new_burst(scene);
		if (random_below(r, 3000) == 0)
			check(scene);
		if (held != UINT64_MAX && random_below(r, back) == 0) {
			arrive(scene, held, FRAME_VALID); /* late */
			held = UINT64_MAX;
		}
		if (held != UINT64_MAX && n - held >= back - 2) {
			arrive(scene, held, FRAME_VALID);
			held = UINT64_MAX;
		}
		if (random_below(r, one_in)) {
			arrive(scene, n, FRAME_VALID);
			continue;
		}
		switch (random_below(r, 6)) {
		case 0:
			if (held != UINT64_MAX)
				arrive(scene, held, FRAME_VALID);
			held = UINT64_MAX;
			n += random_below(r, random_below(r, 4) ? less(5, ahead) : ahead);
			arrive(scene, n, FRAME_VALID);
			break;
		case 1:
			arrive(scene, n, FRAME_VALID);
			arrive(scene, n, FRAME_VALID);
			break;
		case 2: { /* some again */
			const uint64_t from = random_below(r, less(back - 2, n + 1));

			arrive(scene, n, FRAME_VALID);
			for (uint64_t i = 0; i <= random_below(r, from + 1); i++)
				arrive(scene, n - from + i, FRAME_VALID);
			break;
		}
		case 3: /* two change places */
			arrive(scene, n + 1, FRAME_VALID);
			arrive(scene, n, FRAME_VALID);
			n++;
			break;
		case 4:
			arrive(scene, n,
			       random_below(r, 2) ? FRAME_DAMAGED_PAYLOAD : FRAME_DAMAGED_STALE);
			break;
		case 5:
			if (held == UINT64_MAX)
				held = n;
			else
				arrive(scene, n, FRAME_VALID);
			break;
		}
	}
	check(scene);
}

static void a_counter_on_the_wire(void **state)
{
	/* of the step: as a number of its width, 1 or more frames either way */
	static const struct {
		uint32_t bytes;
		uint64_t step, start;
		uint32_t ahead, back;
	} cases[] = {
		{ 1, 1, 250, 120, 60 },
		{ 1, 5, 3, 20, 12 },
		{ 1, 255, 4, 120, 60 }, /* counts down */
		{ 2, 1, 65500, 4000, 500 },
		{ 2, 7, 65530, 4000, 400 },
		{ 3, 1, 0xfffff0, 4000, 500 },
		{ 4, 1, 0xfffffff0, 4000, 500 },
		{ 4, 3, 0xfffffff0, 4000, 500 },
		{ 4, 0x1000000, 0, 100, 50 },
		{ 5, 1000000, 1, 4000, 500 },
		{ 8, 1, UINT64_MAX - 1000, 4000, 500 },
		{ 8, 1ull << 40, UINT64_MAX - 1000, 4000, 500 },
		{ 8, UINT64_MAX, 500, 4000, 500 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int phases = 0; phases < 2; phases++) {
			static struct scene scene;

			scene_begin(&scene, cases[i].bytes, cases[i].step,
				    phases ? PATTERN_PRBS31 : PATTERN_NONE, i + 1);
			scene.layout.custom.sequence_start = cases[i].start;
			random_traffic(&scene, cases[i].ahead, cases[i].back, 20);
			/* What the numbers explain is no loss of lock. */
			assert_int_equal(scene.verdict.lock_lost, 0);
			scene_end(&scene);
		}
	}
}

static void a_phase_and_no_counter(void **state)
{
	static const enum pattern_kind kinds[] = { PATTERN_PRBS31, PATTERN_PRBS23, PATTERN_PRBS20 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			static struct scene scene;

			scene_begin(&scene, 0, 0, kinds[i], seed);
			random_traffic(&scene, VERDICT_PHASE_AHEAD, VERDICT_PHASE_BACK,
				       seed == 1 ? 200 : 50);
			assert_int_equal(scene.verdict.lock_lost, scene.lock_lost);
			assert_true(scene.lock_lost > 100);
			scene_end(&scene);
		}
	}
}

static void arrive_many(struct scene *scene, uint64_t n, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		arrive(scene, n + i, FRAME_VALID);
	burst_flush(scene);
}

/* The farthest that is looked for, and one more. */
static void as_far_as_is_looked(void **state)
{
	static const struct {
		int64_t skip;
		uint64_t lost, duplicate;
	} cases[] = {
		{ VERDICT_PHASE_AHEAD, VERDICT_PHASE_AHEAD, 0 },
		{ VERDICT_PHASE_AHEAD + 1, 0, 0 },
		{ -(int64_t)VERDICT_PHASE_BACK, 0, 10 },
		{ -(int64_t)VERDICT_PHASE_BACK - 1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct scene scene;
		struct gdrcap_counts counts;

		scene_begin(&scene, 0, 0, PATTERN_PRBS31, 1);
		arrive_many(&scene, 1000, 200);
		arrive_many(&scene, (uint64_t)(1200 + cases[i].skip), 10);
		verdict_total(&scene.verdict, false, 0, &counts);
		assert_int_equal(counts.lost, cases[i].lost);
		assert_int_equal(counts.duplicate, cases[i].duplicate);
		assert_int_equal(counts.reordered, 0);
		assert_int_equal(scene.verdict.lock_lost, 1);
		/* It is held from here on: or still, where those were seen before. */
		arrive_many(&scene, cases[i].duplicate ? 1200 : (uint64_t)(1210 + cases[i].skip),
			    10);
		assert_int_equal(scene.verdict.lock_lost, 1);
		verdict_total(&scene.verdict, false, 0, &counts);
		assert_int_equal(counts.lost, cases[i].lost);
		scene_end(&scene);
	}
}

/* Arbitrary phases use up the round's work; then nothing is looked for until the next. */
static void work_is_bounded(void **state)
{
	static struct scene scene;
	struct gdrcap_counts counts;

	scene_begin(&scene, 0, 0, PATTERN_PRBS31, 1);
	arrive_many(&scene, 0, 10);
	for (uint32_t i = 0; i < 1000; i++) {
		const struct frame_record record = {
			.stream = 9,
			.count = 1,
			.verdict = FRAME_VALID,
			.header_ok = 1,
			.bytes = PAYLOAD,
			.frame_bytes = 100,
			.phase_first = (uint32_t)random_next(&scene.random) | 1,
			.phase_next = (uint32_t)random_next(&scene.random) | 1,
		};

		verdict_add(&scene.verdict, 0, &record);
	}
	assert_int_equal(scene.verdict.lock_lost, 1000);
	arrive_many(&scene, 20, 1);
	assert_int_equal(scene.verdict.lock_lost, 1001);
	arrive_many(&scene, 31, 1); /* ten later */
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.lost, 0);
	verdict_round(&scene.verdict);
	arrive_many(&scene, 42, 1);
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.lost, 10);
	assert_int_equal(counts.valid, 1013);
	assert_int_equal(scene.verdict.lock_lost, 1003);
	scene_end(&scene);
}

/* A frame that no phase fits is one frame, and the next goes on after it. */
static void unlocked_frames(void **state)
{
	for (uint32_t bytes = 0; bytes <= 4; bytes += 4) {
		static struct scene scene;

		scene_begin(&scene, bytes, 1, PATTERN_PRBS31, 1);
		arrive(&scene, 0, FRAME_DAMAGED_UNLOCKED); /* before any phase is held */
		arrive_many(&scene, 1, 20);
		arrive(&scene, 21, FRAME_DAMAGED_UNLOCKED);
		arrive_many(&scene, 22, 20);
		for (uint32_t i = 0; i < 5; i++)
			arrive(&scene, 42 + i, FRAME_DAMAGED_UNLOCKED);
		arrive_many(&scene, 47, 20);
		assert_int_equal(scene.verdict.lock_lost, 0);
		check(&scene);
		assert_int_equal(scene.damaged, 7);
		assert_string_equal(scene.verdict.damage[1].kind, "unlocked");
		assert_int_equal(scene.verdict.damage[1].sequence, bytes ? 21 : 0);
		if (bytes) { /* after a loss too */
			arrive(&scene, 80, FRAME_DAMAGED_UNLOCKED);
			arrive_many(&scene, 81, 20);
			assert_int_equal(scene.verdict.lock_lost, 0);
			check(&scene);
		}
		scene_end(&scene);
	}
}

/* With a counter: payload that does not go on as the numbers say. */
static void lock_is_lost_and_found(void **state)
{
	static uint8_t prbs[400 * PAYLOAD];
	static struct scene scene;

	scene_begin(&scene, 4, 1, PATTERN_PRBS31, 1);
	arrive_many(&scene, 0, 100);
	/* The sender's generator begins again, its counter does not. */
	memcpy(prbs, scene.prbs, 100 * PAYLOAD);
	memcpy(prbs + 100 * PAYLOAD, scene.prbs, 300 * PAYLOAD);
	scene.prbs = prbs;
	arrive_many(&scene, 100, 100);
	assert_int_equal(scene.verdict.lock_lost, 1);
	arrive_many(&scene, 50, 10); /* again: nothing moves */
	arrive_many(&scene, 210, 50);
	assert_int_equal(scene.verdict.lock_lost, 1);
	check(&scene);
	assert_int_equal(scene.valid, 250);
	scene_end(&scene);
}

/* Frames of several lengths: nothing is lost, so nothing needs to be known of them. */
static void lengths_are_mixed(void **state)
{
	for (uint32_t bytes = 0; bytes <= 4; bytes += 4) {
		static struct scene scene;
		uint64_t at = 0, random = 5;

		scene_begin(&scene, bytes, 1, PATTERN_PRBS31, 1);
		for (uint32_t n = 0; n < 2000; n++) {
			const uint32_t length = 12 + (uint32_t)random_below(&random, 60);
			const struct frame_record record = {
				.sequence = bytes ? n : 0,
				.stream = 9,
				.count = 1,
				.verdict = FRAME_VALID,
				.header_ok = 1,
				.bytes = length,
				.frame_bytes = 100,
				.phase_first = phase_of(&scene, at),
				.phase_next = phase_of(&scene, at + length),
			};

			verdict_add(&scene.verdict, 0, &record);
			at += length;
		}
		assert_int_equal(scene.verdict.lock_lost, 0);
		assert_int_equal(scene.verdict.streams[0].valid, 2000);
		scene_end(&scene);
	}
}

/* Frame n of the sender's, alone, with this number on the wire. */
static void arrive_as(struct scene *scene, uint64_t n, uint64_t raw, uint32_t bytes)
{
	const struct frame_record record = {
		.sequence = raw,
		.stream = 9,
		.count = 1,
		.verdict = FRAME_VALID,
		.header_ok = 1,
		.bytes = bytes,
		.frame_bytes = 100,
		.phase_first = phase_of(scene, n * bytes),
		.phase_next = phase_of(scene, (n + 1) * bytes),
	};

	burst_flush(scene);
	verdict_add(&scene->verdict, 0, &record);
}

static void counts_are(struct scene *scene, uint64_t valid, uint64_t damaged, uint64_t lost,
		       uint64_t duplicate, uint64_t reordered)
{
	struct gdrcap_counts counts;

	burst_flush(scene);
	verdict_finish(&scene->verdict);
	verdict_total(&scene->verdict, false, 0, &counts);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.damaged, damaged);
	assert_int_equal(counts.lost, lost);
	assert_int_equal(counts.duplicate, duplicate);
	assert_int_equal(counts.reordered, reordered);
	assert_int_equal(counts.received, valid + damaged + duplicate);
	assert_int_equal(counts.sent, valid + damaged + lost);
}

/* One number is damaged, by so much that it would be believed. The payload goes right on. */
static void damaged_numbers_near_by(void **state)
{
	for (int64_t by = -(int64_t)VERDICT_JUMP; by <= (int64_t)VERDICT_JUMP; by++) {
		static struct scene scene;

		if (by == 0 || (by > 40 && by % 100) || (by < -40 && by % 100))
			continue;
		for (uint32_t alone = 0; alone < 2; alone++) {
			scene_begin(&scene, 4, 1, PATTERN_PRBS31, 1);
			arrive_many(&scene, 4500, 500);
			arrive_as(&scene, 5000, (uint64_t)(5000 + by), PAYLOAD);
			if (alone)
				for (uint32_t n = 5001; n < 5101; n++)
					arrive_as(&scene, n, n, PAYLOAD);
			else
				arrive_many(&scene, 5001, 100);
			counts_are(&scene, 600, 1, 0, 0, 0);
			assert_int_equal(scene.verdict.lock_lost, 0);
			assert_int_equal(scene.verdict.damage_count, 1);
			assert_int_equal(scene.verdict.damage[0].sequence, 5000 + by);
			assert_int_equal(scene.verdict.damage[0].header_ok, 0);
			assert_string_equal(scene.verdict.damage[0].kind, "header");
			scene_end(&scene);
		}
	}
}

/* Several in turn, which do not go on from each other. */
static void damaged_numbers_in_turn(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 4, 1, PATTERN_PRBS31, 1);
	arrive_many(&scene, 4500, 500);
	arrive_as(&scene, 5000, 5100, PAYLOAD);
	arrive_as(&scene, 5001, 5090, PAYLOAD);
	arrive_as(&scene, 5002, 5110, PAYLOAD);
	arrive_many(&scene, 5003, 100);
	counts_are(&scene, 600, 3, 0, 0, 0);
	assert_int_equal(scene.verdict.lock_lost, 0);
	assert_int_equal(scene.verdict.damage_count, 3);
	scene_end(&scene);
}

/* The first frame's number is damaged, or the second's. */
static void damaged_numbers_at_the_start(void **state)
{
	for (uint32_t damaged = 0; damaged < 2; damaged++)
		for (uint32_t bit = 0; bit < 32; bit++) {
			static struct scene scene;

			scene_begin(&scene, 4, 1, PATTERN_PRBS31, 1);
			for (uint32_t n = 0; n < 5; n++)
				arrive_as(&scene, n, n ^ (n == damaged ? 1u << bit : 0), PAYLOAD);
			counts_are(&scene, 4, 1, 0, 0, 0);
			assert_int_equal(scene.verdict.damage_count, 1);
			assert_int_equal(scene.verdict.damage[0].header_ok, 0);
			scene_end(&scene);
		}
}

/* Numbers that are right: of frames that came twice, changed places, or followed a loss. */
static void numbers_and_phases_agree(void **state)
{
	static const uint32_t order[] = {
		0, 1, 1, 0, 1, 2, 4, 3, 5, 6, 9, 10, 8, 9, 11, 11, 12, 20, 21,
	};
	static const uint32_t lengths[] = { PAYLOAD, 127 }; /* PRBS-7 is the same in each of 127 */

	for (uint32_t i = 0; i < 2; i++) {
		static struct scene scene;

		scene_begin(&scene, 4, 1, i ? PATTERN_PRBS7 : PATTERN_PRBS31, 1);
		for (size_t n = 0; n < sizeof(order) / sizeof(order[0]); n++)
			arrive_as(&scene, order[n], order[n], lengths[i]);
		counts_are(&scene, 14, 0, 8, 5, 2);
		assert_int_equal(scene.verdict.lock_lost, 0);
		scene_end(&scene);
	}
}

/* The sender's counter jumps and its payload does not: two numbers in turn are right. */
static void counter_jumps_and_payload_does_not(void **state)
{
	static const int64_t jumps[] = { 10, 1000, -10, -1000 };

	for (size_t i = 0; i < 3 * sizeof(jumps) / sizeof(jumps[0]); i++) {
		const int64_t by = jumps[i / 3];
		static struct scene scene;

		scene_begin(&scene, 4, 1, PATTERN_PRBS31, 1);
		scene.layout.custom.sequence_start = 0;
		for (uint32_t n = 5000; n < 7000; n++)
			arrive_as(&scene, n, n, PAYLOAD);
		arrive_as(&scene, 7000, (uint64_t)(7000 + by), PAYLOAD);
		if (i % 3) {
			/* The rest in one record, or nearly. */
			struct frame_record record = {
				.sequence = (uint64_t)(7001 + by),
				.stream = 9,
				.count = 99,
				.verdict = FRAME_VALID,
				.header_ok = 1,
				.bytes = 99 * PAYLOAD,
				.frame_bytes = 9900,
				.phase_first = phase_of(&scene, 7001 * PAYLOAD),
				.phase_next = phase_of(&scene, 7100 * PAYLOAD),
			};

			if (i % 3 == 2) {
				arrive_as(&scene, 7001, (uint64_t)(7001 + by), PAYLOAD);
				record.sequence++;
				record.count--;
				record.bytes -= PAYLOAD;
				record.frame_bytes -= 100;
				record.phase_first = phase_of(&scene, 7002 * PAYLOAD);
			}
			verdict_add(&scene.verdict, 0, &record);
		} else {
			for (uint32_t n = 7001; n < 7100; n++)
				arrive_as(&scene, n, (uint64_t)(n + by), PAYLOAD);
		}
		if (by > 0)
			counts_are(&scene, 2100, 0, (uint64_t)by, 0, 0);
		else /* what was there before is a second copy */
			counts_are(&scene, by == -10 ? 2090 : 2000, 0, 0, by == -10 ? 10 : 100, 0);
		assert_true(scene.verdict.lock_lost <= 1);
		scene_end(&scene);
	}
}

/* Any numbers with any phases: the identities hold. */
static void hostile_numbers_and_phases(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		static struct scene scene;
		uint64_t received = 0, n = 5000;

		scene_begin(&scene, 1 + (uint32_t)(seed % 8), 1 + seed / 8, PATTERN_PRBS31, seed);
		for (uint32_t i = 0; i < 5000; i++) {
			const uint64_t kind = random_below(&scene.random, 12);
			struct gdrcap_counts counts;

			if (i % 8 == 0)
				verdict_round(&scene.verdict);
			n += kind == 0 ? random_below(&scene.random, 5) : 1;
			n -= kind == 1 ? random_below(&scene.random, 5) : 0;
			arrive_as(&scene, n,
				  n * (1 + seed / 8) ^
					  (kind < 4 ? 1ull << random_below(&scene.random, 64) : 0),
				  PAYLOAD);
			received++;
			verdict_total(&scene.verdict, false, 0, &counts);
			assert_int_equal(counts.received, received);
			assert_int_equal(received,
					 counts.valid + counts.damaged + counts.duplicate);
			assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
		}
		scene_end(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_on_the_wire),
		cmocka_unit_test(a_phase_and_no_counter),
		cmocka_unit_test(as_far_as_is_looked),
		cmocka_unit_test(work_is_bounded),
		cmocka_unit_test(unlocked_frames),
		cmocka_unit_test(lock_is_lost_and_found),
		cmocka_unit_test(lengths_are_mixed),
		cmocka_unit_test(damaged_numbers_near_by),
		cmocka_unit_test(damaged_numbers_in_turn),
		cmocka_unit_test(damaged_numbers_at_the_start),
		cmocka_unit_test(numbers_and_phases_agree),
		cmocka_unit_test(counter_jumps_and_payload_does_not),
		cmocka_unit_test(hostile_numbers_and_phases),
	};

	big_memory_is_sparse();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
