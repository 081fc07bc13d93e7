/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames expected from a file: traffic at random against the models of expect_model.h, and what is
 * to be said of frames out of place, one row each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "expect_model.h"

static void new_burst(struct scene *scene)
{
	run_flush(scene);
	scene->queue = (uint32_t)random_below(&scene->random, QUEUES);
}

/* `reach`: losses, late and second frames are less than this many away. */
static void random_traffic(struct scene *scene, uint64_t frames, uint32_t reach)
{
	uint64_t *r = &scene->random;
	uint64_t n = random_below(r, reach);

	/* Where the model knows the places, two frames follow each loss: nobody is in doubt. */
	arrive(scene, n++, FRAME_VALID);
	arrive(scene, n++, FRAME_VALID);
	for (; n < frames; n++) {
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
			if (!scene->search)
				arrive(scene, ++n, FRAME_VALID);
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
			if (scene->search)
				break;
			arrive(scene, ++n, FRAME_VALID);
			arrive(scene, ++n, FRAME_VALID);
			break;
		case 4:
			arrive(scene, n, n & 1 ? FRAME_DAMAGED_PAYLOAD : FRAME_DAMAGED_STALE);
			break;
		case 5: /* so much is wrong that the file has nothing like it */
			unknown(scene);
			break;
		}
	}
	check(scene);
	model_finish(scene);
	verdict_finish(&scene->verdict);
	check(scene);
	verdict_finish(&scene->verdict);
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

static void record_of(struct scene *scene, uint32_t class, uint32_t count)
{
	verdict_add(&scene->verdict, 0,
		    &(struct frame_record){ .verdict = FRAME_VALID,
					    .header_ok = 1,
					    .sequence = class,
					    .count = (uint16_t)count,
					    .bytes = 100 * count,
					    .frame_bytes = 100 * count });
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
	record_of(&scene, 80, 5); /* before it 80, although 20 behind would be nearer */
	counts_are(&scene, 5, 80, 0, 0);
	record_of(&scene, 85, 215); /* two loops more, in one record */
	counts_are(&scene, 220, 80, 0, 0);
	record_of(&scene, 50, 2); /* half a loop either way: ahead */
	counts_are(&scene, 222, 130, 0, 0);
	record_of(&scene, 1, 2); /* 51 behind or 49 ahead */
	counts_are(&scene, 224, 179, 0, 0);
	record_of(&scene, 99, 1); /* 4 behind: it was lost */
	counts_are(&scene, 225, 178, 0, 1);
	/* The sender's end: the tail is lost. */
	verdict_add(&scene.verdict, 0,
		    &(struct frame_record){ .verdict = FRAME_END,
					    .header_ok = 1,
					    .count = 1,
					    .sequence = 500,
					    .detail = 1 });
	assert_true(verdict_ended(&scene.verdict));
	counts_are(&scene, 225, 275, 0, 1);
	/* It said how many: that is not overruled. */
	verdict_expect_whole(&scene.verdict);
	counts_are(&scene, 225, 275, 0, 1);
	scene_end(&scene);
}

/* Frames from .. from + count - 1 of the file, played again and again. */
struct part {
	uint32_t from;
	int32_t count; /* -1: one, damaged */
};

/* Each frame in a record of its own, as at low rates, or as many as can be. */
static void parts_arrive(struct scene *scene, const struct part *part, bool each)
{
	for (; part->count; part++)
		for (int32_t i = 0; i < abs(part->count); i++) {
			arrive(scene, part->from + (uint32_t)i,
			       part->count < 0 ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID);
			if (each)
				run_flush(scene);
		}
	run_flush(scene);
}

static void a_frame_out_of_place(void **state)
{
	static const struct {
		uint32_t frames;
		struct part part[8];
		uint64_t valid, lost, duplicate, reordered; /* at the end */
		uint64_t lost_whole; /* when the file was played to its end */
	} rows[] = {
		/* A copy of a later frame, of one of the loop before, at the end, of one near. */
		{ 1000, { { 0, 100 }, { 900, 1 }, { 100, 900 } }, 1000, 0, 1, 0, 0 },
		{ 1000, { { 0, 900 }, { 100, 1 }, { 900, 100 } }, 1000, 0, 1, 0, 0 },
		{ 1000, { { 0, 1000 }, { 100, 1 } }, 1000, 0, 1, 0, 0 },
		{ 1000, { { 0, 900 }, { 0, 1 }, { 900, 100 } }, 1000, 0, 1, 0, 0 },
		{ 1000, { { 0, 500 }, { 503, 1 }, { 500, 500 } }, 1000, 0, 1, 0, 0 },
		{ 1000, { { 0, 1100 }, { 400, 1 }, { 100, 900 } }, 2000, 0, 1, 0, 0 },
		{ 1000, { { 900, 1 }, { 0, 1000 } }, 1000, 0, 1, 0, 0 },
		/* One that comes early, once. */
		{ 1000, { { 999, 1 }, { 0, 999 } }, 1000, 0, 0, 1, 0 },
		{ 1000, { { 0, 100 }, { 900, 1 }, { 100, 800 }, { 901, 99 } }, 1000, 0, 0, 1, 0 },
		{ 1000, { { 0, 1100 }, { 400, 1 }, { 100, 300 }, { 401, 599 } }, 2000, 0, 0, 1, 0 },
		/* Two that changed places, in the first loop and in another. */
		{ 1000, { { 0, 10 }, { 11, 1 }, { 10, 1 }, { 12, 988 } }, 1000, 0, 0, 1, 0 },
		{ 1000, { { 0, 1010 }, { 11, 1 }, { 10, 1 }, { 12, 988 } }, 2000, 0, 0, 1, 0 },
		/* Several: different ones, and one twice. */
		{ 1000, { { 0, 100 }, { 900, 1 }, { 400, 1 }, { 100, 900 } }, 1000, 0, 2, 0, 0 },
		{ 1000, { { 0, 100 }, { 900, 1 }, { 900, 1 }, { 100, 900 } }, 1000, 0, 2, 0, 0 },
		{ 1000,
		  { { 0, 100 }, { 900, 1 }, { 100, 9 }, { 900, 1 }, { 109, 891 } },
		  1000,
		  0,
		  2,
		  0,
		  0 },
		/* True loss. */
		{ 1000, { { 0, 100 }, { 400, 600 } }, 700, 300, 0, 0, 300 },
		{ 1000,
		  { { 0, 100 }, { 400, 1 }, { 403, 1 }, { 450, 1 }, { 500, 500 } },
		  603,
		  397,
		  0,
		  0,
		  397 },
		{ 1000, { { 0, 100 }, { 400, 1 }, { 99, 1 }, { 401, 599 } }, 700, 300, 1, 0, 300 },
		{ 1000, { { 0, 900 }, { 999, 1 } }, 901, 99, 0, 0, 99 },
		{ 1000, { { 80, 1 } }, 1, 80, 0, 0, 999 },
		{ 1000, { { 80, 920 }, { 0, 1000 } }, 1920, 80, 0, 0, 80 },
		/* The loop was not ended: how far the sender was, nobody knows. */
		{ 1000, { { 0, 100 }, { 900, 1 }, { 100, 201 } }, 302, 0, 0, 0, 698 },
		{ 1000, { { 0, 999 } }, 999, 0, 0, 0, 1 },
		{ 1000, { { 0, 1001 } }, 1001, 0, 0, 0, 999 },
		/* What is known by a part of it only. */
		{ 301, { { 0, 20 }, { 200, -1 }, { 20, 281 } }, 301, 0, 1, 0, 0 },
		{ 301, { { 0, 250 }, { 200, -1 }, { 250, 51 } }, 301, 0, 1, 0, 0 },
		{ 3, { { 0, 1 }, { 2, 1 }, { 1, 2 } }, 3, 0, 1, 0, 0 },
	};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		static struct scene scene;

		scene_begin(&scene, rows[i / 2].frames, rows[i / 2].frames, true, 1);
		scene.search = true;
		parts_arrive(&scene, rows[i / 2].part, i % 2);
		check(&scene);
		model_finish(&scene);
		verdict_finish(&scene.verdict);
		check(&scene);
		counts_are(&scene, rows[i / 2].valid, rows[i / 2].lost, rows[i / 2].duplicate,
			   rows[i / 2].reordered);
		verdict_expect_whole(&scene.verdict);
		counts_are(&scene, rows[i / 2].valid, rows[i / 2].lost_whole, rows[i / 2].duplicate,
			   scene.verdict.queues[0].reordered);
		assert_int_equal(scene.verdict.streams[0].ahead, 0);
		assert_int_equal(scene.verdict.streams[0].announced % rows[i / 2].frames, 0);
		assert_true(verdict_ended(&scene.verdict));
		scene_end(&scene);
	}
}

/* What is not in the file is no copy of what is: not during the run, and not at its end. */
static void one_too_many(void **state)
{
	static struct scene scene;
	struct gdrcap_counts total;

	scene_begin(&scene, 60, 60, true, 1);
	for (uint32_t n = 0; n < 60; n++)
		arrive(&scene, n, FRAME_VALID);
	unknown(&scene);
	for (uint32_t whole = 0; whole < 2; whole++) {
		verdict_total(&scene.verdict, false, 0, &total);
		assert_int_equal(total.received, 61);
		assert_int_equal(total.valid, 60);
		assert_int_equal(total.damaged, 1);
		assert_int_equal(total.duplicate, 0);
		assert_int_equal(total.lost, 0);
		assert_int_equal(total.sent, 61);
		verdict_expect_whole(&scene.verdict);
	}
	scene_end(&scene);
}

/* No frame seen: nothing is known of a loop. What fits nowhere may be one of the missing. */
static void the_whole_file(void **state)
{
	static struct scene scene;
	struct gdrcap_counts counts;

	scene_begin(&scene, 100, 100, true, 1);
	verdict_expect_whole(&scene.verdict);
	counts_are(&scene, 0, 0, 0, 0);
	assert_false(verdict_ended(&scene.verdict));
	record_of(&scene, 100, 1);
	verdict_expect_whole(&scene.verdict);
	counts_are(&scene, 0, 0, 0, 0);
	assert_false(verdict_ended(&scene.verdict));
	record_of(&scene, 20, 1); /* in doubt until then */
	verdict_expect_whole(&scene.verdict);
	counts_are(&scene, 1, 98, 0, 0);
	verdict_stream_counts(&scene.verdict, &scene.verdict.streams[0], false, 0, &counts);
	assert_int_equal(counts.sent, 100);
	assert_int_equal(counts.lost, 99);
	verdict_expect_whole(&scene.verdict);
	counts_are(&scene, 1, 98, 0, 0);
	scene_end(&scene);
	scene_begin(&scene, 0, 1, true, 1);
	verdict_expect_whole(&scene.verdict);
	scene_end(&scene);
}

/* Copies of any frame of the file anywhere; nothing is lost. */
static void strays_at_random(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		static struct scene scene;
		const uint32_t frames = 20 + (uint32_t)(seed * 37 % 500);
		const uint64_t sent = frames * (1 + seed % 4);
		uint64_t strays = 0;

		scene_begin(&scene, frames, frames, true, seed);
		scene.search = true;
		for (uint64_t n = 0, calm = 3; n < sent; n++) {
			arrive(&scene, n, FRAME_VALID);
			if (random_below(&scene.random, 4) == 0)
				run_flush(&scene);
			if (calm++ < 3 || random_below(&scene.random, 10))
				continue;
			run_flush(&scene);
			arrive(&scene, random_below(&scene.random, frames), FRAME_VALID);
			run_flush(&scene);
			strays += scene.last.sequence != (n + 1) % frames;
			n += scene.last.sequence == (n + 1) % frames;
			calm = 0;
		}
		check(&scene);
		model_finish(&scene);
		verdict_finish(&scene.verdict);
		check(&scene);
		assert_int_equal(scene.duplicate, strays);
		assert_int_equal(scene.valid, sent);
		assert_int_equal(scene.next, sent);
		scene_end(&scene);
	}
}

/* Frames of one stream on several queues: almost each is a record of its own and ahead of what the
 * other queue will have. */
static void spread_over_queues(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		static struct scene scene;
		static uint64_t place[QUEUES][64];
		uint64_t lost = 0, sent = 0;

		scene_begin(&scene, 1000, 1000, true, seed);
		scene.search = true;
		for (uint32_t chunk = 0; chunk < 100; chunk++) {
			uint32_t count[QUEUES] = { 0 };

			for (uint32_t i = 0; i < 64; i++, sent++) {
				const uint64_t q = random_below(&scene.random, QUEUES);

				if (chunk < 99 && random_below(&scene.random, 30) == 0)
					lost++;
				else
					place[q][count[q]++] = sent;
			}
			for (scene.queue = 0; scene.queue < QUEUES; scene.queue++) {
				for (uint32_t i = 0; i < count[scene.queue]; i++)
					arrive(&scene, place[scene.queue][i], FRAME_VALID);
				run_flush(&scene);
			}
			scene.queue = 0;
			check(&scene);
		}
		model_finish(&scene);
		verdict_finish(&scene.verdict);
		check(&scene);
		counts_are(&scene, sent - lost, lost, 0, 0);
		scene_end(&scene);
	}
}

/* More early ones than are kept. */
static void too_many_early(void **state)
{
	static struct scene scene;
	struct gdrcap_counts counts;

	scene_begin(&scene, 1000, 1000, true, 1);
	for (uint32_t n = 0; n < 100; n++) {
		record_of(&scene, n, 1);
		record_of(&scene, 900 - 5 * n, 1);
		verdict_total(&scene.verdict, false, 0, &counts);
		assert_int_equal(counts.received, 2 * n + 2);
		assert_int_equal(counts.received, counts.valid + counts.duplicate);
		assert_int_equal(counts.sent, counts.valid + counts.lost);
		assert_int_equal(counts.lost, 0);
	}
	record_of(&scene, 100, 900);
	verdict_finish(&scene.verdict);
	counts_are(&scene, 1000, 0, 100, 0);
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
			record_of(&scene, 0, 1 + n);
		counts_are(&scene, 5050, 0, 0, 0);
		scene_end(&scene);
	}
}

/* A record that the file has nowhere as a whole: A B A C is played, and C lost in each loop. */
static void run_of_two_places(void **state)
{
	static const uint32_t classes[] = { 0, 1, 0, 3 };
	static struct scene scene;

	scene_begin(&scene, 4, 4, true, 1);
	verdict_destroy(&scene.verdict);
	for (uint32_t i = 0; i < 4; i++)
		scene.frames[i].class_first = classes[i];
	assert_int_equal(verdict_create(&scene.verdict, QUEUES,
					&(struct verdict_config){ .expect = &scene.store }),
			 0);
	record_of(&scene, 0, 9); /* A B A B A B A B A: the second B is a loop after the first */
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
		arrive(&scene, n,
		       n == 75	 ? FRAME_DAMAGED_PAYLOAD
		       : n == 80 ? FRAME_DAMAGED_LENGTH
		       : n == 85 ? FRAME_DAMAGED_STALE
				 : FRAME_VALID);
	unknown(&scene);
	check(&scene);
	assert_int_equal(scene.verdict.damage_count, 4);
	assert_int_equal(scene.verdict.stale, 1);
	assert_string_equal(scene.verdict.damage[0].kind, "payload");
	assert_int_equal(scene.verdict.damage[0].sequence, 15); /* of the second loop */
	assert_int_equal(scene.verdict.damage[0].wrong_bits, 3);
	assert_string_equal(scene.verdict.damage[1].kind, "length");
	assert_int_equal(scene.verdict.damage[1].sequence, 20);
	assert_string_equal(scene.verdict.damage[2].kind, "stale");
	assert_int_equal(scene.verdict.damage[2].sequence, 25);
	assert_string_equal(scene.verdict.damage[3].kind, "unknown");
	assert_int_equal(scene.verdict.damage[3].header_ok, 0);
	scene_end(&scene);
}

/* What a device may write that is broken, and a store that is. */
static void hostile_indices(void **state)
{
	static struct scene scene;
	struct gdrcap_counts counts;
	struct verdict verdict;

	scene_begin(&scene, 60, 20, true, 1);
	record_of(&scene, 60, 5);
	record_of(&scene, 20, 1); /* no first frame of its content */
	verdict_add(&scene.verdict, 0,
		    &(struct frame_record){ .header_ok = 1, .sequence = UINT64_MAX, .count = 3 });
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.received, 9);
	assert_int_equal(counts.damaged, 9);
	record_of(&scene, 3, UINT16_MAX);
	verdict_total(&scene.verdict, false, 0, &counts);
	assert_int_equal(counts.valid, UINT16_MAX);
	assert_int_equal(counts.received, 9 + UINT16_MAX);
	scene_end(&scene);
	scene_begin(&scene, 60, 60, true, 1);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t first[] = { 51, 60, UINT32_MAX };

		scene.frames[50].class_first = first[i];
		assert_int_equal(verdict_create(&verdict, 1,
						&(struct verdict_config){ .expect = &scene.store }),
				 -EINVAL);
	}
	scene.frames[50].class_first = 40;
	scene.frames[40].class_first = 30;
	assert_int_equal(
		verdict_create(&verdict, 1, &(struct verdict_config){ .expect = &scene.store }),
		-EINVAL);
	scene.store.count = 0;
	assert_int_equal(
		verdict_create(&verdict, 1, &(struct verdict_config){ .expect = &scene.store }), 0);
	verdict_add(&verdict, 0, &(struct frame_record){ .header_ok = 1, .count = 3 });
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
		cmocka_unit_test(a_frame_out_of_place),
		cmocka_unit_test(one_too_many),
		cmocka_unit_test(the_whole_file),
		cmocka_unit_test(strays_at_random),
		cmocka_unit_test(spread_over_queues),
		cmocka_unit_test(too_many_early),
		cmocka_unit_test(nothing_to_tell_them_apart),
		cmocka_unit_test(run_of_two_places),
		cmocka_unit_test(damage_is_told),
		cmocka_unit_test(hostile_indices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
