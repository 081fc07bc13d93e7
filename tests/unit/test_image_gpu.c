/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIVE, BACK and END between CPU threads: one that gives images, several that take them. Usage:
 * test_image_gpu [IMAGES]. The thread sanitizer finds a weakened barrier on any CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "image_litmus.h"
#include "image_taker_twin.h"
#include "nap.h"
#include "test_long.h"

/* In PLAY_NS; beside others' work at least LEAST. */
static uint64_t images_most = 200000;
#define LEAST 1000u
#define PLAY_NS (test_cases(10, 1) * 100000000)
#define THREADS_MAX 4u

struct taker {
	struct gdrcap_gpu_images images;
	uint64_t first, stride;
	uint64_t wrong, taken;
	pthread_t thread;
};

static void *taker_main(void *arg)
{
	struct taker *taker = arg;

	for (uint64_t seq = taker->first;; seq += taker->stride) {
		struct gdrcap_image image;
		int got;

		while ((got = twin_try_next(&taker->images, seq, &image)) == 0)
			nap();
		if (got < 0)
			return NULL;
		taker->wrong += litmus_wrong_image(seq, &image);
		for (uint32_t w = 0; w < LITMUS_WORDS + LITMUS_BITS; w++)
			taker->wrong += litmus_take(seq, &image, w);
		taker->taken++;
		twin_release(&taker->images, seq);
	}
}

static void *zeroed(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(memory);
	memset(memory, 0, bytes);
	return memory;
}

static struct image_litmus *litmus_new(uint32_t buffers)
{
	struct image_litmus *litmus = calloc(1, sizeof(*litmus));

	assert_non_null(litmus);
	litmus_init(litmus, buffers, zeroed(image_gpu_bytes(buffers)),
		    zeroed((size_t)buffers * LITMUS_WORDS * 8),
		    zeroed((size_t)buffers * LITMUS_BITS * 4));
	return litmus;
}

static void litmus_free(struct image_litmus *litmus)
{
	free(litmus->gpu.entry);
	free(litmus->bytes);
	free(litmus->present);
	free(litmus);
}

static void play(uint32_t buffers, uint32_t threads)
{
	struct image_litmus *litmus = litmus_new(buffers);
	const uint64_t until = now_ns() + PLAY_NS;
	struct taker taker[THREADS_MAX];
	uint64_t wrong = 0, taken = 0, given = 0;

	for (uint32_t t = 0; t < threads; t++) {
		taker[t] = (struct taker){ .images = image_gpu_view(&litmus->gpu),
					   .first = t,
					   .stride = threads };
		assert_int_equal(pthread_create(&taker[t].thread, NULL, taker_main, &taker[t]), 0);
	}
	while (given < images_most && (given < LEAST || now_ns() <= until))
		if (litmus_give(litmus))
			given++;
		else
			nap();
	image_gpu_end(&litmus->gpu);
	for (uint32_t t = 0; t < threads; t++) {
		pthread_join(taker[t].thread, NULL);
		wrong += taker[t].wrong;
		taken += taker[t].taken;
	}
	litmus_collect(litmus);
	assert_int_equal(wrong, 0);
	assert_int_equal(litmus->wrong, 0);
	assert_int_equal(taken, given); /* the end loses none */
	assert_int_equal(litmus->back, given);
	assert_int_equal(litmus->frees, buffers);
	litmus_free(litmus);
}

static void one_taker(void **state)
{
	(void)state;
	play(1, 1);
	play(8, 1);
}

static void several_takers(void **state)
{
	(void)state;
	play(2, 3);
	play(8, 4);
	play(64, 2);
}

static void take(const struct gdrcap_gpu_images *images, uint64_t seq, struct gdrcap_image *image)
{
	assert_int_equal(twin_try_next(images, seq, image), 1);
	assert_int_equal(litmus_wrong_image(seq, image), 0);
	for (uint32_t w = 0; w < LITMUS_WORDS + LITMUS_BITS; w++)
		assert_int_equal(litmus_take(seq, image, w), 0);
}

/* A block that keeps its image, or has not even looked at it, finds it however late it comes. */
static void one_that_is_kept(void **state)
{
	struct image_litmus *litmus = litmus_new(4);
	const struct gdrcap_gpu_images images = image_gpu_view(&litmus->gpu);
	struct gdrcap_image image, kept = { 0 };
	uint64_t seq = 0;

	(void)state;
	assert_int_equal(twin_try_next(&images, 0, &kept), 0);
	for (; litmus_give(litmus); seq++) {
		if (seq == 0)
			continue;
		take(&images, seq, &image);
		twin_release(&images, seq);
	}
	/* nobody overwrote its entry */
	assert_int_equal(seq, images.mask + 1);
	assert_int_equal(litmus->frees, 3);
	take(&images, 0, &kept);
	assert_false(litmus_give(litmus));
	twin_release(&images, 0);
	assert_true(litmus_give(litmus));
	take(&images, seq, &image);
	/* What was given before the end is still taken; then there is none. */
	image_gpu_end(&litmus->gpu);
	image_gpu_end(&litmus->gpu);
	assert_int_equal(twin_try_next(&images, seq, &image), 1);
	assert_int_equal(twin_try_next(&images, seq + 1, &image), -1);
	assert_int_equal(litmus->wrong, 0);
	litmus_free(litmus);
}

static void without_memory(void **state)
{
	struct image_gpu gpu;
	const struct gdrcap_gpu_images none = { 0 };
	struct gdrcap_gpu_images view;

	(void)state;
	image_gpu_init(&gpu, NULL, 8);
	image_gpu_end(&gpu);
	view = image_gpu_view(&gpu);
	assert_memory_equal(&view, &none, sizeof(none));
	/* the largest ring has room */
	assert_true(image_gpu_bytes(PLACE_RING_MAX) >
		    sizeof(gpu.slot) / sizeof(gpu.slot[0]) * sizeof(struct image_gpu_entry));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory),
		cmocka_unit_test(one_that_is_kept),
		cmocka_unit_test(one_taker),
		cmocka_unit_test(several_takers),
	};

	if (argc > 1)
		images_most = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
