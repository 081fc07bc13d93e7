/* SPDX-License-Identifier: BSD-3-Clause */
/* Images to a running kernel, for which CPU threads stand. */
#include "api_images.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "../unit/image_taker_twin.h"

#define BLOCKS 3u
#define RING 4u

struct block {
	struct gdrcap_gpu_images images;
	uint64_t index, taken, complete;
	bool keeps; /* gives nothing back */
	pthread_t thread;
};

/* As a thread block: takes every BLOCKS-th image until it is told to leave and there is none. */
static void *block_run(void *arg)
{
	struct block *block = arg;
	struct gdrcap_image image;
	uint64_t number = 0;

	for (uint64_t seq = block->index;; seq += BLOCKS) {
		int got;

		while ((got = twin_try_next(&block->images, seq, &image)) == 0)
			sched_yield();
		if (got < 0)
			return NULL;
		assert_int_equal(image.seq, seq);
		assert_true(!block->taken || image.number > number);
		assert_int_equal(image.pieces, PIECES);
		number = image.number;
		check_bytes(&image);
		block->taken++;
		block->complete += image.end == GDRCAP_IMAGE_COMPLETE;
		if (!block->keeps)
			twin_release(&block->images, seq);
	}
}

static void blocks_start(struct block *block, struct gdrcap_session *session, bool keeps)
{
	struct gdrcap_images *images = gdrcap_get_images(session, 0);

	for (uint32_t i = 0; i < BLOCKS; i++) {
		block[i] = (struct block){ .index = i, .keeps = keeps };
		assert_int_equal(
			gdrcap_get_gpu_images(images, &block[i].images, sizeof(block[i].images)),
			0);
		assert_int_equal(pthread_create(&block[i].thread, NULL, block_run, &block[i]), 0);
	}
}

static struct block blocks_join(struct block *block)
{
	struct block sum = { 0 };

	for (uint32_t i = 0; i < BLOCKS; i++) {
		pthread_join(block[i].thread, NULL);
		sum.taken += block[i].taken;
		sum.complete += block[i].complete;
	}
	return sum;
}

/* All that the counts say was taken, complete or not, and each byte is right. */
static void kernel_of_the_caller(void **state)
{
	/* ended by their number; by the stop */
	static const struct {
		uint64_t frames;
		const char *engine;
	} run[] = { { 1, "auto" },
		    { 2000 * PIECES + 10, "resident" },
		    { 500 * PIECES, "launched" },
		    { 0, "auto" },
		    { 0, "auto" } };

	(void)state;
	for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
		struct gdrcap_config *config API_FREED = NULL;
		struct gdrcap_image_counts counts;
		struct gdrcap_session *session;
		struct block block[BLOCKS], sum;

		images_config_engine(&config, "gpu", run[i].frames, RING, run[i].engine);
		session = api_create(config);
		/* Before or after the start. */
		if (i & 1)
			api_start(session);
		blocks_start(block, session, false);
		if (!(i & 1))
			api_start(session);
		if (run[i].frames)
			api_wait_end(session);
		/* The stop tells the blocks to leave, and they leave nothing behind. */
		api_stop(session);
		sum = blocks_join(block);
		assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
		assert_int_equal(counts.complete, sum.complete);
		assert_int_equal(counts.complete + counts.incomplete, sum.taken);
		assert_int_equal(counts.begun, sum.taken + counts.dropped);
		assert_int_equal(counts.placed + counts.no_room, counts.frames);
		if (run[i].frames)
			assert_int_equal(counts.begun, (run[i].frames + PIECES - 1) / PIECES);
		gdrcap_destroy(session);
	}
}

/* The run's end reaches blocks before the stop, as it does threads that poll. */
static void end_before_the_stop(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_session *session;
	struct block block[BLOCKS], sum;

	(void)state;
	images_config(&config, "gpu", 3 * PIECES, RING);
	session = api_create(config);
	blocks_start(block, session, false);
	api_start(session);
	sum = blocks_join(block);
	assert_int_equal(sum.complete, 3);
	assert_int_equal(gdrcap_wait_end(session, 0), 1);
	api_stop(session);
	gdrcap_destroy(session);
}

/* They have all buffers: the rest is dropped, no frame of the port is held up, and the session ends. */
static void kernel_that_keeps_all(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_image_counts counts;
	struct gdrcap_session *session;
	struct block block[BLOCKS], sum;

	(void)state;
	images_config(&config, "gpu", 500 * PIECES, RING);
	session = api_create(config);
	blocks_start(block, session, true);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	sum = blocks_join(block);
	assert_int_equal(sum.taken, RING);
	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.frames, 500 * PIECES);
	assert_int_equal(counts.begun, 500);
	assert_int_equal(counts.complete, RING);
	assert_int_equal(counts.dropped, 500 - RING);
	gdrcap_destroy(session);
}

/* Each gives every other back at once, and holds up only those far behind. */
static void nobody_takes(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_session *session;

	(void)state;
	images_config(&config, "gpu", 10 * PIECES, RING);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
}

static void mistakes(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_gpu_images gpu_images;
	const struct gdrcap_image *image = NULL;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	uint8_t longer[sizeof(gpu_images) + 8];

	(void)state;
	images_config(&config, "gpu", 1, RING);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	/* the kernel has them */
	assert_int_equal(gdrcap_image_poll(images, &image, 1), -EINVAL);
	assert_int_equal(gdrcap_image_wait(images, &image, 1, 0), -EINVAL);
	assert_int_equal(gdrcap_image_fd(images), -EINVAL);
	gdrcap_image_release(images, &image, 1);
	assert_int_equal(gdrcap_image_release_after(images, &image, 1, NULL), -EINVAL);
	assert_int_equal(gdrcap_get_gpu_images(NULL, &gpu_images, sizeof(gpu_images)), -EINVAL);
	assert_int_equal(gdrcap_get_gpu_images(images, NULL, sizeof(gpu_images)), -EINVAL);
	assert_int_equal(gdrcap_get_gpu_images(images, &gpu_images, 7), -EINVAL);
	memset(longer, 0xff, sizeof(longer));
	assert_int_equal(gdrcap_get_gpu_images(images, (struct gdrcap_gpu_images *)(void *)longer,
					       sizeof(longer)),
			 0);
	assert_int_equal(longer[sizeof(longer) - 1], 0);
	gdrcap_destroy(session);
	/* and the caller's threads */
	api_set(config, "consumer", "host");
	session = api_create(config);
	assert_int_equal(gdrcap_get_gpu_images(gdrcap_get_images(session, 0), &gpu_images,
					       sizeof(gpu_images)),
			 -EINVAL);
	gdrcap_destroy(session);
	api_set(config, "consumer", "gpu");
	api_set(config, "image", "gvsp,bytes=4096,piece=1024,full=drop_oldest");
	api_create_fails(config, -EINVAL, "drop_oldest");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_of_the_caller),
		cmocka_unit_test(end_before_the_stop),
		cmocka_unit_test(kernel_that_keeps_all),
		cmocka_unit_test(nobody_takes),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
