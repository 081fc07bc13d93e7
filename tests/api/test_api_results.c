/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as a whole: the verdict, and the JSON object, at each time of a session's life. */
#include "api.h"

#include <jansson.h>

static json_t *results(const struct gdrcap_session *session, uint32_t what)
{
	json_t *object;
	char *text = NULL;

	assert_int_equal(gdrcap_get_json(session, what, &text), 0);
	assert_true(text[strlen(text) - 1] == '\n');
	object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	gdrcap_free_json(text);
	return object;
}

static const char *word(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t count(const json_t *object, const char *group, const char *key)
{
	const json_t *value = json_object_get(json_object_get(object, group), key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

/* So many errors, and the first has this in it. */
static void errors_are(const json_t *object, size_t errors, const char *part)
{
	const json_t *array = json_object_get(object, "errors");
	const char *first = json_string_value(json_array_get(array, 0));

	assert_int_equal(json_array_size(array), errors);
	if (part && !strstr(first, part))
		fail_msg("\"%s\" is not in \"%s\"", part, first);
}

/* Before the start nothing is counted; a run that goes on has no verdict; one that ended well passed. */
static void a_run_that_passes(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_error why = { 0 };
	struct gdrcap_summary summary;
	json_t *object;

	api_config(&config, "validate", 5000);
	session = api_create(config);
	assert_int_equal(gdrcap_judge(session, &why), GDRCAP_FAILED_RUN);
	assert_string_equal(why.text, "nothing ran");
	object = results(session, GDRCAP_JSON_ALL);
	assert_true(json_is_null(json_object_get(object, "frames")));
	assert_true(json_is_object(json_object_get(object, "memory")));
	json_decref(object);

	api_start(session);
	object = results(session, GDRCAP_JSON_ALL);
	if (!gdrcap_wait_end(session, 0) && strcmp(word(object, "result"), "running") != 0)
		fail_msg("result is \"%s\"", word(object, "result"));
	json_decref(object);
	api_wait_end(session);
	api_stop(session);

	why.text[0] = 'x';
	assert_int_equal(gdrcap_judge(session, &why), 0);
	assert_int_equal(gdrcap_judge(session, NULL), 0);
	assert_string_equal(why.text, "");
	gdrcap_get_summary(session, &summary, sizeof(summary));
	object = results(session, GDRCAP_JSON_ALL);
	assert_string_equal(word(object, "schema"), "gdrcap.summary/1");
	assert_string_equal(word(object, "command"), "loopback");
	assert_string_equal(word(object, "result"), "pass");
	errors_are(object, 0, NULL);
	assert_true(count(object, "frames", "valid") == 5000);
	assert_true(count(object, "bits", "checked") == summary.total.bits_checked);
	assert_int_equal(json_array_size(json_object_get(object, "queues")), 1);
	json_decref(object);
	/* Without what stays, and without parts. */
	object = results(session, 0);
	assert_null(json_object_get(object, "memory"));
	assert_null(json_object_get(object, "queues"));
	assert_true(count(object, "frames", "valid") == 5000);
	json_decref(object);
	gdrcap_destroy(session);
}

/* The verdict has each reason once, in words; its code tells lost frames from a run that broke off. */
static void a_run_that_fails(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_error why = { 0 };
	json_t *object;

	api_config(&config, "validate", 0);
	api_set(config, "tx_port", "net_null0");
	api_set(config, "frames", "100");
	api_set(config, "port", "net_null1,no-rx=1");
	api_set(config, "quiet-time", "0.05");
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(gdrcap_judge(session, &why), GDRCAP_FAILED_FRAMES);
	assert_int_equal(why.code, GDRCAP_FAILED_FRAMES);
	assert_string_equal(why.text, "100 frames lost");
	object = results(session, GDRCAP_JSON_ALL);
	assert_string_equal(word(object, "result"), "fail");
	errors_are(object, 1, "100 frames lost");
	json_decref(object);
	gdrcap_destroy(session);
}

/* The caller's consumer gets nothing of what comes. */
static void a_run_of_others_frames(void **state)
{
	const struct gdrcap_batch *batch;
	struct gdrcap_queue *queue;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_error why = { 0 };
	int n;

	api_config(&config, "host", 100);
	api_set(config, "match", "vlan=7");
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	api_start(session);
	while ((n = gdrcap_wait(queue, &batch, 1, 1000)) >= 0)
		assert_int_equal(n, 0);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(gdrcap_judge(session, &why), GDRCAP_FAILED_FRAMES);
	assert_non_null(strstr(why.text, "no frame received was ours"));
	gdrcap_destroy(session);
}

/* While a run goes on. */
static void a_run_that_goes_on(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_error why = { 0 };

	api_config(&config, "validate", 0);
	api_set(config, "seconds", "600");
	api_unset(config, "frames");
	session = api_create(config);
	api_start(session);
	assert_int_equal(gdrcap_judge(session, &why), -EAGAIN);
	gdrcap_stop(session, NULL);
	gdrcap_destroy(session);
}

/* Without a session: what was asked for. */
static void a_configuration(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	json_t *object;
	char *text;

	api_config(&config, "validate", 1);
	assert_int_equal(gdrcap_config_get_json(config, &text), 0);
	object = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(object, "ports")), 1);
	assert_true(json_is_null(json_object_get(object, "memory")));
	/* As gdrcap_judge() says it of a session that did not run. */
	assert_string_equal(json_string_value(json_object_get(object, "result")), "fail");
	assert_string_equal(json_string_value(json_array_get(json_object_get(object, "errors"), 0)),
			    "nothing ran");
	gdrcap_free_json(text);
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_passes),	  cmocka_unit_test(a_run_that_fails),
		cmocka_unit_test(a_run_of_others_frames), cmocka_unit_test(a_run_that_goes_on),
		cmocka_unit_test(a_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
