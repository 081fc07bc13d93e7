/* SPDX-License-Identifier: BSD-3-Clause */
/* The assembler: entries of complete images, streams that were silent, images without a buffer whose packets
 * are mixed, and the times of what came by several queues. */
#include "image_scene.h"

static void scene_end(struct scene *scene)
{
	ring_wake_close(&scene->images.ring.wake);
	free(scene);
}

/* An image is handed out at once; its entry is closed `shut` after the first of those that wait. */
static void complete_images_are_closed_soon(void **state)
{
	struct scene *scene = scene_begin(8, 2);

	scene->images.assembler.config.shut = 20;
	scene_image(scene, 0, 1, 0, 0);
	scene_expect(scene, 1, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_later(scene, 10);
	scene_image(scene, 0, 2, 0, 0);
	scene_later(scene, 9);
	scene_frame(scene, 0, 1, 5);
	assert_int_equal(scene_counts(scene).duplicate, 1);
	scene_later(scene, 1);
	assert_int_equal(scene->wholes, 2);
	scene_frame(scene, 0, 1, 5);
	assert_int_equal(scene_counts(scene).duplicate, 1);
	assert_int_equal(scene_counts(scene).late, 1);
	/* one that waits for an older one is not: a second copy of it is no image */
	scene_frame(scene, 0, 3, 0);
	scene_image(scene, 0, 4, 0, 0);
	scene_later(scene, 50);
	assert_int_equal(scene->wholes, 2);
	scene_frame(scene, 0, 4, 0);
	assert_int_equal(scene_counts(scene).duplicate, 2);
	/* one that was closed with pieces missing needs nothing */
	scene_later(scene, 101);
	scene_later(scene, 20);
	assert_int_equal(scene->wholes, 3);
	scene_end(scene);
}

/* So many images are closed with others, whatever the time, though their buffers are in use again. */
static void many_are_closed_together(void **state)
{
	struct scene *scene = scene_begin(4, 2);

	scene->images.assembler.config.shut = 1000000;
	for (uint64_t number = 1; number < PLACE_WHOLE_MAX; number++) {
		scene_image(scene, 0, number, 0, 0);
		scene_expect(scene, number, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
		scene_later(scene, 0);
	}
	assert_int_equal(scene->wholes, 0);
	scene_image(scene, 0, PLACE_WHOLE_MAX, 0, 0);
	assert_int_equal(scene->wholes, PLACE_WHOLE_MAX);
	for (uint32_t s = 0; s < 4; s++)
		assert_false(scene->entry[s].open);
	/* a device that cannot is said */
	scene->broken = true;
	scene->images.assembler.config.shut = 0;
	scene_image(scene, 0, 1000, 0, 0);
	scene_later(scene, 0);
	assert_int_equal(scene->images.assembler.failure, -5);
	scene_end(scene);
}

/* A sender that begins anew a few numbers back, or where it was: late, but for a silence. */
static void silence_is_forgotten(void **state)
{
	struct scene *scene = scene_begin(8, 2);

	for (uint64_t number = 1; number <= 30; number++) {
		scene_image(scene, 0, number, 0, 0);
		scene_later(scene, 0);
		scene_expect(scene, number, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	}
	scene_later(scene, 100);
	scene_frame(scene, 0, 1, 0);
	assert_int_equal(scene_counts(scene).late, 1);
	/* frames may have waited for somebody without a core */
	scene->now += 1;
	assert_true(assembler_round(&scene->images.assembler, scene->now, scene->now - 1));
	scene_frame(scene, 0, 1, 0);
	assert_int_equal(scene_counts(scene).late, 2);
	/* late ones do not make it longer */
	assert_false(assembler_round(&scene->images.assembler, scene->now, scene->now));
	for (uint64_t number = 1; number <= 40; number++) {
		scene_image(scene, 0, number, 0, 0);
		scene_later(scene, 0);
		scene_expect(scene, number, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	}
	assert_int_equal(scene_counts(scene).late, 2);
	assert_int_equal(scene_counts(scene).restarts, 1);
	assert_int_equal(scene_counts(scene).skipped, 0);
	assert_int_equal(scene_counts(scene).dropped, 0);
	/* what time closed is remembered as long again, for what comes of it late */
	scene_frame(scene, 0, 41, 0);
	scene_later(scene, 101);
	scene_expect(scene, 41, GDRCAP_IMAGE_TIMEOUT, 1);
	scene_later(scene, 100);
	scene_frame(scene, 0, 41, 1);
	assert_int_equal(scene_counts(scene).late, 3);
	scene_later(scene, 1);
	scene_image(scene, 0, 41, 0, 0);
	scene_expect(scene, 41, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).restarts, 2);
	scene_end(scene);
}

/* What is open, or finds no buffer, is no silence. */
static void what_is_no_silence(void **state)
{
	struct scene *scene = scene_begin(2, 2);
	const struct gdrcap_image *held[2];

	scene_image(scene, 0, 1, 0, 0);
	scene_later(scene, 60);
	scene_frame(scene, 0, 3, 0);
	scene_later(scene, 60);
	scene_frame(scene, 0, 3, 1);
	scene_later(scene, 60);
	assert_int_equal(scene->shared.window[0].last, 2);
	scene_image(scene, 0, 3, 0, 0);
	scene_later(scene, 0);
	held[0] = scene_take(scene);
	held[1] = scene_take(scene);
	for (uint64_t number = 4; number < 10; number++) {
		scene_later(scene, 60);
		scene_frame(scene, 0, number, 0);
	}
	assert_int_equal(scene->shared.window[0].last, 4);
	assert_int_equal(scene->shared.window[0].forgotten, 0);
	gdrcap_image_release(&scene->images, &held[1], 1);
	scene_later(scene, 60);
	scene_frame(scene, 0, 9, 1);
	assert_int_equal(scene_counts(scene).dropped, 6);
	scene_later(scene, 101);
	assert_int_equal(scene->shared.window[0].last, 0);
	assert_int_equal(scene->shared.window[0].forgotten, 1);
	/* once */
	scene_later(scene, 1001);
	assert_int_equal(scene->shared.window[0].forgotten, 1);
	/* the same numbers are other images now */
	scene_image(scene, 0, 8, 0, 0);
	scene_frame(scene, 0, 9, 0);
	assert_int_equal(scene_counts(scene).dropped, 7);
	assert_int_equal(scene_counts(scene).complete, 3);
	gdrcap_image_release(&scene->images, &held[0], 1);
	scene_later(scene, 0);
	scene_image(scene, 0, 10, 0, 0);
	assert_int_equal(scene_counts(scene).skipped, 1); /* 2, before all that */
	scene_end(scene);
}

/* Images without a buffer whose packets are mixed are one each, and none of them is skipped. */
static void mixed_without_a_buffer(void **state)
{
	struct scene *scene = scene_begin(2, 1);
	const struct gdrcap_image *held[2];
	const uint32_t order[] = { 5, 7, 6, 9, 8, 10, 3, 4 };
	uint32_t counted = 0;

	for (uint64_t number = 1; number <= 2; number++) {
		scene_image(scene, 0, number, 0, 0);
		held[number - 1] = scene_take(scene);
	}
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 8; i++)
			scene_frame(scene, 0, order[i] + 8 * (round / 4), round % 4);
		counted += round % 4 == 0 ? 8 : 0;
		assert_int_equal(scene_counts(scene).dropped, counted);
	}
	gdrcap_image_release(&scene->images, held, 2);
	scene_later(scene, 0);
	scene_image(scene, 0, 85, 0, 0);
	assert_int_equal(scene_counts(scene).skipped, 2); /* 83, 84 */
	assert_int_equal(scene_counts(scene).begun, 83);
	scene_end(scene);
}

/* Bursts of two queues are collected in any order. */
/* A sender restarts while no buffer is free: its images are new ones, though their numbers were seen before. */
static void anew_without_a_buffer(void **state)
{
	struct scene *scene = scene_begin(2, 2);
	const struct gdrcap_image *held[2];

	for (uint64_t number = 0; number < 200; number++)
		scene_image(scene, 0, number, 0, 0);
	held[0] = scene_take(scene);
	held[1] = scene_take(scene);
	for (uint64_t number = 50; number < 200; number++)
		scene_image(scene, 0, number, 0, 0);
	assert_int_equal(scene_counts(scene).dropped, 198 + 150);
	assert_int_equal(scene_counts(scene).begun, 200 + 150);
	assert_int_equal(scene_counts(scene).restarts, 1);
	gdrcap_image_release(&scene->images, held, 2);
	scene_later(scene, 0);
	scene_image(scene, 0, 200, 0, 0);
	scene_expect(scene, 200, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).restarts, 1);
	assert_int_equal(scene_counts(scene).skipped, 0);
	scene_end(scene);
}

static void times_are_the_frames(void **state)
{
	struct scene *scene = scene_begin(4, 2);
	const struct gdrcap_image *image;

	for (uint32_t piece = 0; piece < SCENE_PIECES; piece++) {
		const struct place_record record = scene_place(scene, 0, 1, piece, 0);

		assembler_add(&scene->images.assembler, piece == 5 ? 700 : 720 + piece % 3,
			      &record);
	}
	image = scene_take(scene);
	assert_non_null(image);
	assert_int_equal(image->first_time, 700);
	assert_int_equal(image->last_time, 722);
	scene_end(scene);
}

/* What time did: images that it closed leave fewer open, streams that it forgot are counted. */
static uint64_t acts(const struct scene *scene)
{
	const struct assembler *assembler = &scene->images.assembler;
	uint64_t acts = 0;

	for (uint32_t s = 0; s < PLACE_STREAMS_MAX; s++)
		acts += assembler->stream[s].silences;
	for (uint32_t slot = 0; slot < scene->view.ring; slot++)
		acts += assembler->slot[slot].state != ASSEMBLER_OPEN;
	return acts;
}

/* Nothing is closed or forgotten before the time that assembler_over() tells, and something is then. */
static void time_is_told(void **state)
{
	uint32_t told = 0;

	srandom(7);
	for (uint32_t play = 0; play < 200; play++) {
		struct scene *scene = scene_begin(8, 3);
		struct assembler *assembler = &scene->images.assembler;

		for (uint32_t step = 0; step < 100; step++) {
			const uint32_t stream = (uint32_t)random() % 3;
			const uint64_t number = 10 + step / 10 + (uint64_t)random() % 3;
			const struct gdrcap_image *image;
			uint64_t over, before;

			if (random() % 4 == 0)
				scene_image(scene, stream, number, 0, (uint32_t)random() % 2);
			else if (random() % 4 == 0)
				scene_trailer(scene, number, 0);
			else
				scene_frame(scene, stream, number,
					    (uint32_t)random() % SCENE_PIECES);
			scene_later(scene, (uint64_t)random() % 8);
			while ((image = scene_take(scene)))
				gdrcap_image_release(&scene->images, &image, 1);
			scene_later(scene, 0);
			over = assembler_over(assembler);
			if (random() % 4 || over == UINT64_MAX)
				continue;
			assert_true(over > scene->now);
			before = acts(scene);
			scene->now = over - 1;
			scene_later(scene, 0);
			assert_int_equal(acts(scene), before);
			scene_later(scene, 1);
			assert_int_not_equal(acts(scene), before);
			told++;
		}
		scene_end(scene);
	}
	assert_true(told > 1000);
}

/* Which of its buffers are open, and which the device has still to close. */
static void room_is_told(void **state)
{
	struct scene *scene = scene_begin(2, 2);
	struct assembler *assembler = &scene->images.assembler;

	assert_int_equal(assembler_over(assembler), UINT64_MAX);
	scene_frame(scene, 0, 1, 0);
	assert_false(assembler_is_full(assembler));
	scene_frame(scene, 1, 1, 0);
	assert_true(assembler_is_full(assembler));
	scene->slow = true;
	scene_later(scene, 101);
	assert_false(assembler_is_full(assembler));
	assert_true(assembler_closes(assembler));
	scene_closings(scene);
	scene_later(scene, 0);
	assert_false(assembler_closes(assembler));
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_images_are_closed_soon),
		cmocka_unit_test(many_are_closed_together),
		cmocka_unit_test(silence_is_forgotten),
		cmocka_unit_test(what_is_no_silence),
		cmocka_unit_test(mixed_without_a_buffer),
		cmocka_unit_test(anew_without_a_buffer),
		cmocka_unit_test(times_are_the_frames),
		cmocka_unit_test(time_is_told),
		cmocka_unit_test(room_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
