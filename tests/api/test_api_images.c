/* SPDX-License-Identifier: BSD-3-Clause */
/* Images through the public API. */
#include "api_images.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#define WHOLE 100u
#define REST 10u /* pieces of one more */

/* Image `number` as it should be when the run is undisturbed. */
static void check_image(const struct gdrcap_image *image, uint64_t number)
{
	const uint32_t pieces = number < WHOLE ? PIECES : REST;

	assert_int_equal(image->seq, number);
	assert_int_equal(image->number, number);
	assert_int_equal(image->end, number < WHOLE ? GDRCAP_IMAGE_COMPLETE : GDRCAP_IMAGE_STOPPED);
	assert_int_equal(image->bytes, BYTES);
	assert_int_equal(image->placed, pieces * PIECE);
	assert_int_equal(image->pieces, PIECES);
	assert_int_equal(image->received, pieces);
	assert_int_equal(image->stream_id, 0);
	assert_int_equal(image->skipped, 0);
	assert_int_equal(image->timestamp, number * PIECES);
	assert_true(image->first_time <= image->last_time);
	/* of this century */
	assert_true(image->first_time > 1500000000ull * 1000000000);
	check_bytes(image);
}

static void check_end(struct gdrcap_session *session)
{
	struct gdrcap_image_counts counts, stream;
	struct gdrcap_incomplete incomplete;
	uint64_t id = 1;

	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.frames, WHOLE * PIECES + REST);
	assert_int_equal(counts.placed, counts.frames);
	assert_int_equal(counts.begun, WHOLE + 1);
	assert_int_equal(counts.complete, WHOLE);
	assert_int_equal(counts.stopped, 1);
	assert_int_equal(counts.pieces_lost, PIECES - REST);
	assert_int_equal(counts.open, 0);
	assert_int_equal(counts.bytes, counts.frames * PIECE);
	assert_int_equal(gdrcap_get_image_stream(session, 0, 0, &id, &stream, sizeof(stream)), 0);
	assert_int_equal(id, 0);
	assert_memory_equal(&stream, &counts, sizeof(counts));
	assert_int_equal(gdrcap_get_image_stream(session, 0, 1, &id, &stream, sizeof(stream)),
			 -ENOENT);
	assert_int_equal(gdrcap_get_image_counts(session, 1, &counts, sizeof(counts)), -ENOENT);
	assert_int_equal(gdrcap_get_incomplete(session, 0, 0, &incomplete, sizeof(incomplete)), 0);
	assert_int_equal(incomplete.number, WHOLE);
	assert_int_equal(incomplete.ranges, 1);
	assert_int_equal(incomplete.missing[0].from, REST * PIECE);
	assert_int_equal(incomplete.missing[0].bytes, (PIECES - REST) * PIECE);
	assert_int_equal(gdrcap_get_incomplete(session, 0, 1, &incomplete, sizeof(incomplete)),
			 -ENOENT);
}

static void every_byte(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_image *image[8];
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	uint64_t number = 0;
	int n;

	(void)state;
	images_config(&config, "host", WHOLE * PIECES + REST, WHOLE + 1);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	assert_non_null(images);
	assert_null(gdrcap_get_images(session, 1));
	assert_string_equal(gdrcap_images_name(images), "own");
	assert_int_equal(gdrcap_image_poll(images, image, 8), 0);
	api_start(session);
	/* The run ends by itself, and so do the images. */
	while ((n = gdrcap_image_wait(images, image, 1 + number % 8, -1)) > 0) {
		for (int i = 0; i < n; i++)
			check_image(image[i], number++);
		gdrcap_image_release(images, image, (unsigned int)n);
	}
	assert_int_equal(n, -ESHUTDOWN);
	assert_int_equal(number, WHOLE + 1);
	assert_int_equal(gdrcap_wait_end(session, 0), 1);
	api_stop(session);
	assert_int_equal(gdrcap_image_poll(images, image, 8), -ESHUTDOWN);
	check_end(session);
	gdrcap_destroy(session);
}

/* By the descriptor alone, and back in any order, by a stream's callback too. */
static void descriptor(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_image *image[3];
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	struct pollfd fd = { .events = POLLIN };
	uint64_t number = 0;

	(void)state;
	images_config(&config, "host", WHOLE * PIECES, WHOLE);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	fd.fd = gdrcap_image_fd(images);
	assert_true(fd.fd >= 0);
	assert_int_equal(gdrcap_image_fd(images), fd.fd);
	api_start(session);
	while (number < WHOLE) {
		int n;

		assert_int_equal(poll(&fd, 1, -1), 1);
		while ((n = gdrcap_image_poll(images, image, 3)) > 0) {
			for (int i = 0; i < n; i++)
				check_image(image[i], number++);
			while (n > 1)
				gdrcap_image_release(images, &image[--n], 1);
			assert_int_equal(gdrcap_image_release_after(images, image, 1, NULL), 1);
		}
		/* the run may have ended by itself */
		assert_true(n == 0 || (n == -ESHUTDOWN && number == WHOLE));
	}
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(poll(&fd, 1, -1), 1);
	assert_int_equal(gdrcap_image_poll(images, image, 3), -ESHUTDOWN);
	gdrcap_destroy(session);
}

/* What the caller has does not change, also after the end; it costs images, and no frame of the port. */
static void held(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_image_counts counts;
	const struct gdrcap_image *image[4], *more;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	int n = 0;

	(void)state;
	images_config(&config, "host", 1000 * PIECES, 4);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	api_start(session);
	while (n < 4)
		n += gdrcap_image_wait(images, &image[n], 4 - (unsigned int)n, -1);
	api_wait_end(session);
	for (n = 0; n < 4; n++)
		check_bytes(image[n]);
	api_stop(session);
	for (n = 0; n < 4; n++) {
		assert_int_equal(image[n]->received, PIECES);
		assert_true(n == 0 || image[n]->number > image[n - 1]->number);
		check_bytes(image[n]);
	}
	assert_int_equal(gdrcap_image_poll(images, &more, 1), -ESHUTDOWN);
	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.frames, 1000 * PIECES);
	assert_int_equal(counts.placed + counts.no_room, counts.frames);
	assert_int_equal(counts.begun, 1000);
	assert_int_equal(counts.complete, 4);
	assert_int_equal(counts.dropped, 996);
	gdrcap_image_release(images, image, 4);
	gdrcap_destroy(session);
}

/* Each given back twice, at once and one by one, is given back once: the run goes on, and ends. */
static void released_twice(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_image_counts counts;
	const struct gdrcap_image *image[4];
	struct gdrcap_session *session;
	struct gdrcap_images *images;

	(void)state;
	images_config(&config, "host", 0, 8);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	api_start(session);
	for (unsigned int i = 0; i < 200; i++) {
		int n = gdrcap_image_wait(images, image, 2, -1);

		assert_true(n > 0);
		image[2] = image[0];
		image[3] = image[n - 1];
		memmove(&image[n], &image[2], 2 * sizeof(image[0]));
		gdrcap_image_release(images, image, (unsigned int)n + 2);
		gdrcap_image_release(images, image, 1);
	}
	api_stop(session);
	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_true(counts.complete >= 200);
	gdrcap_destroy(session);
}

/* Nothing is there within a while. */
static void a_while(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_image *image;
	struct gdrcap_session *session;

	(void)state;
	images_config(&config, "host", 0, 4);
	api_set(config, "match", "ethertype=0x1234");
	session = api_create(config);
	api_start(session);
	assert_int_equal(gdrcap_image_wait(gdrcap_get_images(session, 0), &image, 1, 1000), 0);
	api_stop(session);
	gdrcap_destroy(session);
}

static void *waiter(void *arg)
{
	const struct gdrcap_image *image;
	static int ret;

	ret = gdrcap_image_wait(arg, &image, 1, -1);
	return &ret;
}

/* Nothing comes, and the end wakes who waits for ever. */
static void end_wakes(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_session *session;
	pthread_t thread;
	void *ret;

	(void)state;
	images_config(&config, "host", 1, 4);
	api_set(config, "match", "ethertype=0x1234");
	session = api_create(config);
	api_start(session);
	assert_int_equal(pthread_create(&thread, NULL, waiter, gdrcap_get_images(session, 0)), 0);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_int_equal(*(int *)ret, -ESHUTDOWN);
	gdrcap_destroy(session);
}

static void parts_and_mistakes(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_image *image;
	struct gdrcap_range range;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	uint8_t copy[2 * PIECE];

	(void)state;
	images_config(&config, "host", REST, 4);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(gdrcap_image_poll(images, &image, 0), 0);
	assert_int_equal(gdrcap_image_poll(images, NULL, 1), -EINVAL);
	assert_int_equal(gdrcap_image_poll(NULL, &image, 1), -EINVAL);
	assert_int_equal(gdrcap_image_wait(NULL, &image, 1, 0), -EINVAL);
	assert_int_equal(gdrcap_image_fd(NULL), -EINVAL);
	assert_int_equal(gdrcap_image_poll(images, &image, 1), 1);
	assert_int_equal(gdrcap_image_missing(image, NULL, 0), 1);
	assert_int_equal(gdrcap_image_missing(image, &range, 1), 1);
	assert_int_equal(range.from, REST * PIECE);
	assert_int_equal(gdrcap_image_missing(image, NULL, 1), -EINVAL);
	assert_int_equal(gdrcap_image_missing(NULL, &range, 1), -EINVAL);
	assert_int_equal(gdrcap_image_copy(image, PIECE, 2 * PIECE, copy), 0);
	assert_memory_equal(copy, image->data + PIECE, 2 * PIECE);
	assert_int_equal(gdrcap_image_copy(image, BYTES - PIECE, 2 * PIECE, copy), -EINVAL);
	assert_int_equal(gdrcap_image_copy(image, UINT64_MAX, 2, copy), -EINVAL);
	assert_int_equal(gdrcap_image_copy(NULL, 0, 1, copy), -EINVAL);
	assert_int_equal(gdrcap_image_copy(image, 0, 1, NULL), -EINVAL);
	gdrcap_image_release(NULL, &image, 1);
	gdrcap_image_release(images, NULL, 1);
	gdrcap_image_release(images, &(const struct gdrcap_image *){ NULL }, 1);
	assert_int_equal(gdrcap_image_release_after(images, NULL, 1, NULL), -EINVAL);
	assert_int_equal(
		gdrcap_image_release_after(images, &(const struct gdrcap_image *){ NULL }, 1, NULL),
		-EINVAL);
	assert_null(gdrcap_get_images(NULL, 0));
	assert_null(gdrcap_images_name(NULL));
	gdrcap_destroy(session);
	/* Nobody would take them. */
	api_set(config, "consumer", "validate");
	api_create_fails(config, -EINVAL, "consumer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
		cmocka_unit_test(descriptor),
		cmocka_unit_test(held),
		cmocka_unit_test(a_while),
		cmocka_unit_test(released_twice),
		cmocka_unit_test(end_wakes),
		cmocka_unit_test(parts_and_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
