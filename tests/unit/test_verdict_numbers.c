/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a custom layout whose numbers are damaged, or from anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "number_set.h"
#include "verdict/verdict.h"

#define PAYLOAD 40u

struct scene {
	struct frame_layout layout;
	struct verdict verdict;
	uint64_t random;
};

/* sequence: bytes of the field, 0: none. */
static void scene_begin(struct scene *scene, uint32_t bytes, uint64_t step, uint64_t seed)
{
	const struct verdict_config config = { .layout = &scene->layout };

	memset(scene, 0, sizeof(*scene));
	scene->random = seed;
	scene->layout.format = FRAME_CUSTOM;
	scene->layout.custom.sequence.bytes = (uint8_t)bytes;
	scene->layout.custom.sequence.offset = 14;
	scene->layout.custom.sequence_step = step;
	assert_int_equal(verdict_create(&scene->verdict, 1, &config), 0);
}

static void scene_end(struct scene *scene)
{
	verdict_destroy(&scene->verdict);
}

static void raw(struct scene *scene, uint64_t sequence, uint32_t count)
{
	const struct frame_record record = {
		.sequence = sequence,
		.stream = 9,
		.count = (uint16_t)count,
		.verdict = FRAME_VALID,
		.header_ok = 1,
		.bytes = PAYLOAD * count,
		.frame_bytes = 100 * count,
	};

	verdict_add(&scene->verdict, 0, &record);
}

static void counts_are(struct scene *scene, uint64_t valid, uint64_t damaged, uint64_t lost,
		       uint64_t duplicate)
{
	struct gdrcap_counts counts;

	verdict_total(&scene->verdict, false, 0, &counts);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.damaged, damaged);
	assert_int_equal(counts.lost, lost);
	assert_int_equal(counts.duplicate, duplicate);
	assert_int_equal(counts.received, valid + damaged + duplicate);
	assert_int_equal(counts.sent, valid + damaged + lost);
	assert_int_equal(counts.bits_checked,
			 8 * PAYLOAD * (counts.received - scene->verdict.unreadable));
	verdict_stream_counts(&scene->verdict, &scene->verdict.streams[0], false, 0, &counts);
	assert_int_equal(counts.received, valid + duplicate);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.damaged, 0);
	assert_int_equal(counts.bytes, 100 * counts.received);
	assert_int_equal(counts.bits_checked, 8 * PAYLOAD * counts.received);
}

/* One damaged number must not carry the others away; many that go on from each other are right. */
static void damaged_numbers(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 4, 1, 1);
	raw(&scene, 100, 10);
	raw(&scene, 0x80000000u + 110, 1);
	counts_are(&scene, 10, 1, 0, 0);
	assert_int_equal(scene.verdict.damage_count, 0); /* in doubt */
	raw(&scene, 111, 9);
	counts_are(&scene, 19, 1, 0, 0); /* it fills the gap */
	assert_int_equal(scene.verdict.damage_count, 1);
	assert_int_equal(scene.verdict.damage[0].sequence, 0x80000000u + 110);
	assert_int_equal(scene.verdict.damage[0].header_ok, 0);
	assert_int_equal(scene.verdict.damage[0].offset, 14);
	assert_string_equal(scene.verdict.damage[0].kind, "header");
	raw(&scene, 0x40000000u, 1); /* two different ones */
	raw(&scene, 0x20000000u, 1);
	raw(&scene, 122, 1);
	counts_are(&scene, 20, 3, 0, 0);
	assert_int_equal(scene.verdict.damage_count, 3);
	raw(&scene, 123 + 50000, 1); /* in truth this many lost */
	counts_are(&scene, 20, 4, 0, 0);
	raw(&scene, 124 + 50000, 1);
	counts_are(&scene, 22, 3, 50000, 0);
	raw(&scene, 126 + 150000, 2); /* two are enough at once */
	counts_are(&scene, 24, 3, 150001, 0);
	assert_int_equal(scene.verdict.damage_count, 3);
	raw(&scene, 120, 2); /* late: the two that could not be read, as far as anybody knows */
	counts_are(&scene, 26, 3, 149999, 0);
	raw(&scene, 0x60000000, 1);
	assert_int_equal(scene.verdict.damage_count, 3);
	verdict_finish(&scene.verdict);
	assert_int_equal(scene.verdict.damage_count, 4);
	counts_are(&scene, 26, 4, 149998, 0);
	verdict_finish(&scene.verdict);
	assert_int_equal(scene.verdict.damage_count, 4);
	scene_end(&scene);
}

static void damaged_first_number(void **state)
{
	static const uint64_t first[] = { 0x50000000, 0xe0000000 };

	for (uint32_t i = 0; i < 4; i++) {
		static struct scene scene;

		scene_begin(&scene, 4, i < 2 ? 1 : 2, 1);
		raw(&scene, first[i & 1] + (i & 2 ? 1 : 0), 1);
		counts_are(&scene, 1, 0, 0, 0);
		raw(&scene, 100, 1);
		raw(&scene, i < 2 ? 101 : 102, 1);
		counts_are(&scene, 2, 1, 0, 0);
		assert_int_equal(scene.verdict.damage_count, 1);
		assert_int_equal(scene.verdict.damage[0].header_ok, 0);
		assert_int_equal(scene.verdict.queues[0].reordered, 0);
		raw(&scene, i < 2 ? 103 : 106, 5);
		counts_are(&scene, 7, 1, 0, 0);
		raw(&scene, i < 2 ? 99 : 98, 1);
		counts_are(&scene, 8, 1, 0, 0);
		scene_end(&scene);
	}
}

static void no_whole_step(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 2, 4, 1);
	raw(&scene, 0, 10);
	raw(&scene, 42, 1);
	raw(&scene, 44, 5); /* 40 is the one that cannot be read */
	counts_are(&scene, 15, 1, 0, 0);
	/* A sender that has other numbers now. */
	raw(&scene, 101, 1);
	raw(&scene, 105, 1);
	raw(&scene, 113, 1);
	counts_are(&scene, 18, 1, 1, 0);
	scene_end(&scene);
}

/* Numbers from anywhere, in fields of any width and with any step: the identities hold. */
static void hostile_numbers(void **state)
{
	static const uint64_t steps[] = {
		0,	1,     2, 3, 255, 256, 1ull << 31, 1ull << 63, UINT64_MAX, UINT64_MAX - 1,
		0x8000, 0xffff
	};

	for (uint32_t bytes = 1; bytes <= 8; bytes++)
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			static struct scene scene;
			uint64_t received = 0;

			scene_begin(&scene, bytes, steps[i], bytes);
			for (uint32_t n = 0; n < 3000; n++) {
				const uint64_t base = random_next(&scene.random);
				const uint32_t count =
					n % 3 ? 1 : 1 + (uint32_t)random_below(&scene.random, 256);
				const uint64_t ends[] = { base,	       base,	   0,
							  UINT64_MAX,  1ull << 63, UINT64_MAX - 5,
							  base & 0xff, n };
				struct gdrcap_counts counts;

				raw(&scene, ends[random_below(&scene.random, 8)], count);
				received += count;
				verdict_total(&scene.verdict, false, 0, &counts);
				assert_true(counts.received == received);
				assert_true(received ==
					    counts.valid + counts.damaged + counts.duplicate);
				assert_true(counts.sent ==
					    counts.valid + counts.damaged + counts.lost);
				verdict_stream_counts(&scene.verdict, &scene.verdict.streams[0],
						      false, 0, &counts);
				assert_true(counts.received ==
					    counts.valid + counts.damaged + counts.duplicate);
				assert_true(counts.sent ==
					    counts.valid + counts.damaged + counts.lost);
			}
			scene_end(&scene);
		}
}

/* Nothing tells the frames apart: they are counted, and nothing is called lost. */
static void neither_counter_nor_phase(void **state)
{
	static struct scene scene;

	scene_begin(&scene, 0, 0, 1);
	raw(&scene, 0, 100);
	raw(&scene, 0, 1);
	raw(&scene, 0, 30);
	counts_are(&scene, 131, 0, 0, 0);
	/* An end of a stream is our own sender's business. */
	verdict_add(&scene.verdict, 0,
		    &(struct frame_record){ .verdict = FRAME_END,
					    .header_ok = 1,
					    .count = 1,
					    .sequence = 1000,
					    .stream = 9,
					    .detail = 1 });
	assert_false(verdict_ended(&scene.verdict));
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_numbers),
		cmocka_unit_test(damaged_first_number),
		cmocka_unit_test(no_whole_step),
		cmocka_unit_test(hostile_numbers),
		cmocka_unit_test(neither_counter_nor_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
