/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames expected from a file, against two models. Where contents cannot be taken for one another
 * within reach, the model knows each frame's true place. Where they can, it tries every place of
 * the file, from the expected one outwards, frame by frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "frame_runs.h"
#include "number_set.h"
#include "verdict.h"

#define QUEUES 2
#define FRAMES_MAX 5000u

struct scene {
	struct store_frame frames[FRAMES_MAX];
	struct frame_store_view store;
	struct frame_layout layout;
	struct verdict verdict;
	uint64_t random;
	bool search; /* the model searches places instead of knowing them */

	struct number_set seen;
	uint64_t next, next_here[QUEUES]; /* newest + 1 */
	uint64_t received, valid, damaged, duplicate, reordered, unknown;

	struct frame_run run;
	struct frame_result last;
	uint64_t run_place;
	uint32_t queue;
};

/* contents: of how many kinds the file's frames are, in turn; 0: at random. */
static void scene_begin(struct scene *scene, uint32_t frames, uint32_t contents, bool in_turn,
			uint64_t seed)
{
	uint32_t first[FRAMES_MAX];

	memset(scene, 0, sizeof(*scene));
	memset(first, 0xff, sizeof(first));
	scene->random = seed;
	scene->layout.format = FRAME_ETHERNET;
	for (uint32_t i = 0; i < frames; i++) {
		const uint32_t content = in_turn ? i % contents :
						   (uint32_t)random_below(&scene->random, contents);

		if (first[content] == UINT32_MAX)
			first[content] = i;
		scene->frames[i].class_first = first[content];
	}
	scene->store.frames = scene->frames;
	scene->store.count = frames;
	assert_int_equal(verdict_create(&scene->verdict, QUEUES,
					&(struct verdict_config){ .layout = &scene->layout,
								  .expect = &scene->store }), 0);
}

static void scene_end(struct scene *scene)
{
	verdict_destroy(&scene->verdict);
	number_set_free(&scene->seen);
}

static void model_add(struct scene *scene, uint64_t place, uint8_t verdict)
{
	const bool late = place < scene->next_here[scene->queue];

	scene->received++;
	if (!late)
		scene->next_here[scene->queue] = place + 1;
	if (place >= scene->next)
		scene->next = place + 1;
	if (!number_add(&scene->seen, place)) {
		scene->duplicate++;
		return;
	}
	scene->reordered += late;
	if (verdict == FRAME_VALID)
		scene->valid++;
	else
		scene->damaged++;
}

static uint32_t agreeing(const struct scene *scene, uint64_t place, const uint32_t *class,
			 uint32_t count)
{
	uint32_t n = 0;

	while (n < count &&
	       scene->frames[(place + n) % scene->store.count].class_first == class[n])
		n++;
	return n;
}

/* Every place within a lap either way. */
static void model_search(struct scene *scene)
{
	const struct frame_run *run = &scene->run;
	uint32_t class[256], left = run->count, *at = class;

	class[0] = (uint32_t)run->sequence;
	for (uint32_t i = 1; i < left; i++)
		class[i] = scene->frames[(class[i - 1] + 1) % scene->store.count].class_first;
	while (left) {
		uint64_t place = 0;
		uint32_t most = 0;

		for (uint32_t far = 0; far <= scene->store.count && most < left; far++) {
			uint32_t n = far < scene->store.count ?
					     agreeing(scene, scene->next + far, at, left) : 0;

			if (n > most) {
				most = n;
				place = scene->next + far;
			}
			n = far && far <= scene->next && most < left ?
				    agreeing(scene, scene->next - far, at, left) : 0;
			if (n > most) {
				most = n;
				place = scene->next - far;
			}
		}
		assert_true(most);
		for (uint32_t i = 0; i < most; i++)
			model_add(scene, place + i, run->verdict);
		left -= most;
		at += most;
	}
}

static void run_flush(struct scene *scene)
{
	if (!scene->run.count)
		return;
	if (scene->search)
		model_search(scene);
	else
		for (uint32_t i = 0; i < scene->run.count; i++)
			model_add(scene, scene->run_place + i, scene->run.verdict);
	verdict_add(&scene->verdict, scene->queue, &scene->run);
	scene->run.count = 0;
}

/* Frame `place` % count of the file arrives. */
static void arrive(struct scene *scene, uint64_t place, uint8_t verdict)
{
	const struct frame_result frame = {
		.sequence = scene->frames[place % scene->store.count].class_first,
		.header_ok = 1,
		.verdict = verdict,
		.payload_bytes = 100,
		.wrong_bits = verdict == FRAME_VALID ? 0 : 3,
	};

	if (scene->run.count && scene->run.count < 256 &&
	    run_joins(&scene->layout, &scene->store, &scene->last, &frame)) {
		scene->run.count++;
		scene->run.bytes += 100;
		scene->run.wire_bytes += 100;
	} else {
		run_flush(scene);
		run_begin(&scene->run, &frame, 0, 100);
		scene->run_place = place;
	}
	scene->last = frame;
}

static void unknown(struct scene *scene)
{
	run_flush(scene);
	verdict_add(&scene->verdict, scene->queue,
		    &(struct frame_run){ .verdict = FRAME_DAMAGED_HEADER, .count = 1,
					 .wire_bytes = 100 });
	scene->received++;
	scene->unknown++;
}

static void check(struct scene *scene)
{
	struct gdrcap_counts counts;
	uint64_t gaps, filled;

	run_flush(scene);
	verdict_total(&scene->verdict, false, 0, &counts);
	gaps = scene->next - scene->seen.used;
	filled = scene->unknown < gaps ? scene->unknown : gaps;
	assert_int_equal(counts.received, scene->received);
	assert_int_equal(counts.valid, scene->valid);
	assert_int_equal(counts.damaged, scene->damaged + scene->unknown);
	assert_int_equal(counts.duplicate, scene->duplicate);
	assert_int_equal(counts.reordered, scene->reordered);
	assert_int_equal(counts.lost, gaps - filled);
	assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
	assert_int_equal(counts.bytes, 100 * scene->received);
	assert_int_equal(counts.bits_checked, 800 * (scene->received - scene->unknown));
}

static void new_burst(struct scene *scene)
{
	run_flush(scene);
	scene->queue = (uint32_t)random_below(&scene->random, QUEUES);
}

/* `reach`: losses, late and second frames are less than so many away. */
static void random_traffic(struct scene *scene, uint64_t frames, uint32_t reach)
{
	uint64_t *r = &scene->random;

	for (uint64_t n = random_below(r, reach); n < frames; n++) {
		if (random_below(r, 40) == 0)
			new_burst(scene);
		if (random_below(r, 500) == 0)
			check(scene);
		if (random_below(r, 20)) {
			arrive(scene, n, FRAME_VALID);
			continue;
		}
		switch (random_below(r, 6)) {
		case 0:
			n += random_below(r, reach);
			arrive(scene, n, FRAME_VALID);
			break;
		case 1:
			arrive(scene, n, FRAME_VALID);
			arrive(scene, n, FRAME_VALID);
			break;
		case 2: {
			const uint64_t back = random_below(r, reach < n ? reach : n + 1);
			const uint64_t count = random_below(r, back + 1);

			arrive(scene, n, FRAME_VALID);
			for (uint64_t i = 0; i < count; i++)
				arrive(scene, n - back + i, FRAME_VALID);
			break;
		}
		case 3:
			arrive(scene, n + 1, FRAME_VALID);
			arrive(scene, n, FRAME_VALID);
			n++;
			break;
		case 4:
			arrive(scene, n, FRAME_DAMAGED_PAYLOAD);
			break;
		case 5: /* so much is wrong that the file has nothing like it */
			unknown(scene);
			break;
		}
	}
	check(scene);
}

static void a_file_of_different_frames(void **state)
{
	static const uint32_t sizes[] = { 50, 51, 1000, FRAMES_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			static struct scene scene;

			scene_begin(&scene, sizes[i], sizes[i], true, seed);
			random_traffic(&scene, 4 * sizes[i] + 100, sizes[i] / 2 - 3);
			assert_true(scene.duplicate && scene.reordered);
			scene_end(&scene);
		}
}

/* The same contents again and again, as far apart as losses never are. */
static void contents_in_turn(void **state)
{
	static const uint32_t sizes[] = { 50, 500, FRAMES_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			static struct scene scene;

			scene_begin(&scene, sizes[i], 50, true, seed);
			random_traffic(&scene, 20000, 22);
			assert_true(scene.duplicate && scene.reordered);
			scene_end(&scene);
		}
}

/* Few contents in any order. What arrives may have been another frame: the nearest one is taken. */
static void contents_at_random(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		static struct scene scene;
		const uint32_t frames = 1 + (uint32_t)(seed % 15);

		/* So few that every place is tried. */
		scene_begin(&scene, frames, 1 + (uint32_t)(seed % 4), false, seed);
		scene.search = true;
		random_traffic(&scene, 3000, 5);
		scene_end(&scene);
	}
	for (uint64_t seed = 1; seed <= 10; seed++) {
		static struct scene scene;

		scene_begin(&scene, 400, 200, false, seed);
		scene.search = true;
		random_traffic(&scene, 5000, 30);
		scene_end(&scene);
	}
}

static void run_of(struct scene *scene, uint32_t class, uint32_t count)
{
	verdict_add(&scene->verdict, 0,
		    &(struct frame_run){ .verdict = FRAME_VALID, .header_ok = 1,
					 .sequence = class, .count = (uint16_t)count,
					 .bytes = 100 * count, .wire_bytes = 100 * count });
}

static void counts_are(struct scene *scene, uint64_t valid, uint64_t lost, uint64_t duplicate,
		       uint64_t reordered)
{
	struct gdrcap_counts counts;

	verdict_total(&scene->verdict, false, 0, &counts);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.lost, lost);
	assert_int_equal(counts.duplicate, duplicate);
	assert_int_equal(counts.reordered, reordered);
	assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
}

static void head_tail_and_laps(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 100, 100, true, 1);
	run_of(&scene, 80, 5); /* before it 80, although 20 behind would be nearer */
	counts_are(&scene, 5, 80, 0, 0);
	run_of(&scene, 85, 215); /* two laps more, in one run */
	counts_are(&scene, 220, 80, 0, 0);
	run_of(&scene, 50, 1); /* half a lap either way: ahead */
	counts_are(&scene, 221, 130, 0, 0);
	run_of(&scene, 0, 1); /* 51 behind or 49 ahead */
	counts_are(&scene, 222, 179, 0, 0);
	run_of(&scene, 99, 1); /* 2 behind: it was lost */
	counts_are(&scene, 223, 178, 0, 1);
	/* The sender's end: the tail is lost. */
	verdict_add(&scene.verdict, 0,
		    &(struct frame_run){ .verdict = FRAME_END, .header_ok = 1, .count = 1,
					 .sequence = 500, .detail = 1 });
	assert_true(verdict_ended(&scene.verdict));
	counts_are(&scene, 223, 277, 0, 1);
	scene_end(&scene);
}

/* A file of one frame, and one whose frames are all alike. */
static void nothing_to_tell_them_apart(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 500 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		static struct scene scene;

		scene_begin(&scene, sizes[i], 1, true, 1);
		for (uint32_t n = 0; n < 100; n++)
			run_of(&scene, 0, 1 + n);
		counts_are(&scene, 5050, 0, 0, 0);
		scene_end(&scene);
	}
}

/* A run that the file has nowhere as a whole: A B A C is played, and C lost in each lap. */
static void run_of_two_places(void **state)
{
	static const uint32_t classes[] = { 0, 1, 0, 3 };
	static struct scene scene;

	scene_begin(&scene, 4, 4, true, 1);
	verdict_destroy(&scene.verdict);
	for (uint32_t i = 0; i < 4; i++)
		scene.frames[i].class_first = classes[i];
	assert_int_equal(verdict_create(&scene.verdict, QUEUES,
					&(struct verdict_config){ .expect = &scene.store }), 0);
	run_of(&scene, 0, 9); /* A B A B A B A B A: the second B is a lap after the first */
	counts_are(&scene, 9, 6, 0, 0); /* with each C the A after it */
	assert_int_equal(scene.verdict.streams[0].received, 9);
	assert_int_equal(scene.verdict.streams[0].bytes, 900);
	assert_int_equal(scene.verdict.streams[0].bits_checked, 7200);
	scene_end(&scene);
}

static void damage_is_told(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 60, 20, true, 1);
	for (uint32_t n = 0; n < 90; n++)
		arrive(&scene, n, n == 75 ? FRAME_DAMAGED_PAYLOAD :
				  n == 80 ? FRAME_DAMAGED_LENGTH : FRAME_VALID);
	unknown(&scene);
	check(&scene);
	assert_int_equal(scene.verdict.damage_count, 3);
	assert_string_equal(scene.verdict.damage[0].kind, "payload");
	assert_int_equal(scene.verdict.damage[0].sequence, 15); /* of the second lap */
	assert_int_equal(scene.verdict.damage[0].wrong_bits, 3);
	assert_string_equal(scene.verdict.damage[1].kind, "length");
	assert_int_equal(scene.verdict.damage[1].sequence, 20);
	assert_string_equal(scene.verdict.damage[2].kind, "unknown");
	assert_int_equal(scene.verdict.damage[2].header_ok, 0);
	scene_end(&scene);
}

/* What a device may write that is broken, and a store that is. */
static void hostile_indices(void **state)
{
	static struct scene scene;
	struct gdrcap_counts counts;
	struct verdict verdict;

	scene_begin(&scene, 60, 20, true, 1);
	run_of(&scene, 60, 5);
	run_of(&scene, 20, 1); /* no first frame of its content */
	verdict_add(&scene.verdict, 0,
		    &(struct frame_run){ .header_ok = 1, .sequence = UINT64_MAX, .count = 3 });
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.received, 9);
	assert_int_equal(counts.damaged, 9);
	run_of(&scene, 3, UINT16_MAX);
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.valid, UINT16_MAX);
	assert_int_equal(counts.received, 9 + UINT16_MAX);
	scene_end(&scene);
	scene_begin(&scene, 60, 60, true, 1);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t first[] = { 51, 60, UINT32_MAX };

		scene.frames[50].class_first = first[i];
		assert_int_equal(verdict_create(&verdict, 1, &(struct verdict_config){
								     .expect = &scene.store }),
				 -EINVAL);
	}
	scene.frames[50].class_first = 40;
	scene.frames[40].class_first = 30;
	assert_int_equal(verdict_create(&verdict, 1,
					&(struct verdict_config){ .expect = &scene.store }),
			 -EINVAL);
	scene.store.count = 0;
	assert_int_equal(verdict_create(&verdict, 1, &(struct verdict_config){
							     .expect = &scene.store }), 0);
	verdict_add(&verdict, 0, &(struct frame_run){ .header_ok = 1, .count = 3 });
	assert_int_equal(verdict.unreadable, 3);
	verdict_destroy(&verdict);
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_different_frames),
		cmocka_unit_test(contents_in_turn),
		cmocka_unit_test(contents_at_random),
		cmocka_unit_test(head_tail_and_laps),
		cmocka_unit_test(nothing_to_tell_them_apart),
		cmocka_unit_test(run_of_two_places),
		cmocka_unit_test(damage_is_told),
		cmocka_unit_test(hostile_indices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
