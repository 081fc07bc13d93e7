/* SPDX-License-Identifier: BSD-3-Clause */
/* Callers with an older and with a newer gdrcap.h: each struct that results are put into. In C, and in
 * C++ as test_api_sizes.cc. */
#include "api.h"

#include <gdrcap_device_tx.cuh> /* in both languages, too */

#define OLDER 16u /* bytes of a struct in a version that had less */
#define NEWER 64u /* bytes that one has in addition in a version that has more */
#define UNTOUCHED 0xa5

typedef int (*ask_t)(void *asked, void *to, size_t size);

static int ask_summary(void *session, void *to, size_t size)
{
	return gdrcap_get_summary((struct gdrcap_session *)session, (struct gdrcap_summary *)to,
				  size);
}

static int ask_queue(void *session, void *to, size_t size)
{
	return gdrcap_get_queue_counts((struct gdrcap_session *)session, 0,
				       (struct gdrcap_counts *)to, size);
}

static int ask_stream(void *session, void *to, size_t size)
{
	uint32_t stream;

	return gdrcap_get_stream_counts((struct gdrcap_session *)session, 0, &stream,
					(struct gdrcap_counts *)to, size);
}

static int ask_cause(void *session, void *to, size_t size)
{
	return gdrcap_get_cause((struct gdrcap_session *)session, 1, (struct gdrcap_cause *)to,
				size);
}

static int ask_port(void *session, void *to, size_t size)
{
	return gdrcap_get_port((struct gdrcap_session *)session, 0, (struct gdrcap_port *)to, size);
}

static int ask_rule(void *session, void *to, size_t size)
{
	return gdrcap_get_rule((struct gdrcap_session *)session, 0, (struct gdrcap_rule *)to, size);
}

static int ask_damage(void *session, void *to, size_t size)
{
	return gdrcap_get_damage((struct gdrcap_session *)session, 0, (struct gdrcap_damage *)to,
				 size);
}

static int ask_event(void *session, void *to, size_t size)
{
	return gdrcap_get_event((struct gdrcap_session *)session, (struct gdrcap_event *)to, size);
}

static int ask_gpu_queue(void *queue, void *to, size_t size)
{
	return gdrcap_get_gpu_queue((struct gdrcap_queue *)queue, (struct gdrcap_gpu_queue *)to,
				    size);
}

static int ask_image_counts(void *session, void *to, size_t size)
{
	return gdrcap_get_image_counts((struct gdrcap_session *)session, 0,
				       (struct gdrcap_image_counts *)to, size);
}

static int ask_image_stream(void *session, void *to, size_t size)
{
	uint64_t id;

	return gdrcap_get_image_stream((struct gdrcap_session *)session, 0, 0, &id,
				       (struct gdrcap_image_counts *)to, size);
}

static int ask_incomplete(void *session, void *to, size_t size)
{
	return gdrcap_get_incomplete((struct gdrcap_session *)session, 0, 0,
				     (struct gdrcap_incomplete *)to, size);
}

static void bytes_are(const uint8_t *at, uint8_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(at[i], value);
}

/* `ret`: what each call returns; below 0 none of them has an answer. */
static void sizes_are_kept(ask_t ask, void *asked, size_t bytes, int ret)
{
	uint8_t whole[4096], older[4096], newer[4096];

	assert_true(bytes + NEWER <= sizeof(whole) && OLDER < bytes);
	memset(whole, UNTOUCHED, sizeof(whole));
	memset(older, UNTOUCHED, sizeof(older));
	memset(newer, UNTOUCHED, sizeof(newer));
	assert_int_equal(ask(asked, whole, 7), -EINVAL);
	assert_int_equal(ask(NULL, whole, bytes), -EINVAL);
	assert_int_equal(ask(asked, NULL, bytes), -EINVAL);
	bytes_are(whole, UNTOUCHED, sizeof(whole));
	assert_int_equal(ask(asked, whole, bytes), ret);
	assert_int_equal(ask(asked, older, OLDER), ret);
	assert_int_equal(ask(asked, newer, bytes + NEWER), ret);
	if (ret < 0) {
		bytes_are(whole, UNTOUCHED, sizeof(whole));
		bytes_are(older, UNTOUCHED, sizeof(older));
		bytes_are(newer, UNTOUCHED, sizeof(newer));
		return;
	}
	bytes_are(whole + bytes, UNTOUCHED, sizeof(whole) - bytes);
	assert_memory_equal(older, whole, OLDER);
	bytes_are(older + OLDER, UNTOUCHED, sizeof(older) - OLDER);
	assert_memory_equal(newer, whole, bytes);
	bytes_are(newer + bytes, 0, NEWER);
	bytes_are(newer + bytes + NEWER, UNTOUCHED, sizeof(newer) - bytes - NEWER);
}

static void results(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;
	struct gdrcap_queue *queue;

	(void)state;
	api_config(&config, "validate", 1000);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	queue = gdrcap_get_queue(session, 0);
	sizes_are_kept(ask_summary, session, sizeof(struct gdrcap_summary), 0);
	sizes_are_kept(ask_queue, session, sizeof(struct gdrcap_counts), 0);
	sizes_are_kept(ask_stream, session, sizeof(struct gdrcap_counts), 0);
	sizes_are_kept(ask_cause, session, sizeof(struct gdrcap_cause), 0);
	sizes_are_kept(ask_port, session, sizeof(struct gdrcap_port), 0);
	sizes_are_kept(ask_rule, session, sizeof(struct gdrcap_rule), -ENOENT);
	sizes_are_kept(ask_damage, session, sizeof(struct gdrcap_damage), -ENOENT);
	sizes_are_kept(ask_gpu_queue, queue, sizeof(struct gdrcap_gpu_queue), -EINVAL);
	/* Each call takes one; when there is none any more, nothing is what each gets. */
	while (gdrcap_get_event(session, &event, sizeof(event)) == 1)
		;
	sizes_are_kept(ask_event, session, sizeof(struct gdrcap_event), 0);
	gdrcap_destroy(session);
}

static void queues(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	(void)state;
	api_config(&config, "gpu", 1000);
	session = api_create(config);
	sizes_are_kept(ask_gpu_queue, gdrcap_get_queue(session, 0), sizeof(struct gdrcap_gpu_queue),
		       0);
	gdrcap_destroy(session);
}

/* One frame of an image of two. */
static void images(void **state)
{
	static const char yaml[] =
		"image: {base: frame, number: {at: 22, bytes: 8, divide: 2}, index: "
		"{at: 22, bytes: 8, modulo: 2}, data: {payload: 50}, piece: 146, "
		"pieces: 2}";
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	(void)state;
	api_config(&config, "host", 1);
	assert_int_equal(gdrcap_config_parse(config, "images", yaml, sizeof(yaml) - 1, NULL), 0);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	sizes_are_kept(ask_image_counts, session, sizeof(struct gdrcap_image_counts), 0);
	sizes_are_kept(ask_image_stream, session, sizeof(struct gdrcap_image_counts), 0);
	sizes_are_kept(ask_incomplete, session, sizeof(struct gdrcap_incomplete), 0);
	gdrcap_destroy(session);
}

/* One event each: an older caller's has its kind and code. */
static void events(void **state)
{
	struct {
		struct gdrcap_event event;
		uint64_t more;
	} newer = { { 0 }, 1 };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct {
		uint32_t kind;
		int32_t code;
		uint64_t after;
	} older = { 0, 1, 1 };

	(void)state;
	api_config(&config, "validate", 1);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(gdrcap_get_event(session, &newer.event, sizeof(newer)), 1);
	assert_true(newer.event.text[0] && newer.more == 0);
	do
		assert_int_equal(gdrcap_get_event(session, (struct gdrcap_event *)&older, 8), 1);
	while (older.kind != GDRCAP_EVENT_END);
	assert_int_equal(older.code, 0);
	assert_true(older.after == 1);
	gdrcap_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(queues),
		cmocka_unit_test(images),
		cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
