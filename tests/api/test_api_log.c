/* SPDX-License-Identifier: BSD-3-Clause */
/* Log functions: each session's lines reach its own, DPDK's too, and what one may call in it works. */
#include "api.h"

#include <pthread.h>
#include <stdatomic.h>

#define LIVES 12

/* Of one session; freed when that is destroyed. */
struct place {
	const char *own, *others;
	_Atomic int lines, wrong;
};

static void log_own(void *context, enum gdrcap_log_level level, const char *line)
{
	struct place *place = context;

	(void)level;
	atomic_fetch_add(&place->lines, 1);
	if (strstr(line, place->others))
		atomic_store(&place->wrong, 1);
}

static void ports_set(struct gdrcap_config *config, const char *name)
{
	api_set(config, "port", "ring:%s", name);
	api_set(config, "tx_port", "ring:%s", name);
}

/* A port that its driver refuses. */
static void port_refused(struct gdrcap_config *config, const char *name)
{
	api_set(config, "port", "net_memif_%s,role=%s", name, name);
	api_unset(config, "tx_port");
}

/* A session that does not come to be, and one that lives. */
static int live(const char *own, const char *others)
{
	struct place *place = calloc(1, sizeof(*place));
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_config *config API_FREED = NULL;
	int bad;

	*place = (struct place){ .own = own, .others = others };
	api_config(&config, "validate", 50);
	gdrcap_config_set_log(config, log_own, place);
	port_refused(config, own);
	bad = gdrcap_create(config, &session, &error) != -ENODEV;
	/* The text has DPDK's own words, and they are of this call. */
	bad |= !strstr(error.text, "DPDK says: memif_set_role(): Unknown role: ");
	bad |= !strstr(error.text, own) || strstr(error.text, others);
	bad |= atomic_load(&place->lines) == 0;
	ports_set(config, own);
	bad |= gdrcap_create(config, &session, &error) != 0;
	bad |= gdrcap_start(session, &error) != 0;
	while (!gdrcap_wait_end(session, 1000))
		;
	bad |= gdrcap_stop(session, &error) != 0;
	if (error.text[0] && bad)
		print_error("%s: %s\n", own, error.text);
	gdrcap_destroy(session);
	bad |= atomic_load(&place->wrong);
	free(place);
	return bad;
}

static void *lives_run(void *arg)
{
	const char *const *names = arg;
	uintptr_t bad = 0;

	for (int i = 0; i < LIVES && !bad; i++)
		bad = (uintptr_t)live(names[0], names[1]);
	return (void *)bad;
}

static void lines_stay_apart(void **state)
{
	const char *const names[] = { "anna", "bert", "anna" };
	pthread_t thread[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, lives_run, (void *)(uintptr_t)&names[i]),
			0);
	for (int i = 0; i < 2; i++) {
		void *bad;

		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
}

/* What gdrcap.h says that a log function may call. */
struct calling {
	struct gdrcap_session *_Atomic session;
	struct gdrcap_session *other; /* created in the log function */
	_Atomic int done, wrong;
	int ret;
};

static int other_lives(struct gdrcap_session **other)
{
	struct gdrcap_config *config API_FREED = NULL;
	int bad;

	api_config(&config, "validate", 50);
	ports_set(config, "other");
	bad = gdrcap_create(config, other, NULL) != 0;
	bad |= gdrcap_selftest(*other, NULL, NULL, NULL) != 0;
	bad |= gdrcap_start(*other, NULL) != 0;
	while (!gdrcap_wait_end(*other, 1000))
		;
	bad |= gdrcap_stop(*other, NULL) != 0;
	return bad;
}

static void log_calls(void *context, enum gdrcap_log_level level, const char *line)
{
	struct calling *calling = context;
	struct gdrcap_session *session = atomic_load(&calling->session);
	struct gdrcap_summary summary;
	struct gdrcap_counts counts;
	struct gdrcap_cause cause;
	struct gdrcap_rule rule;
	uint32_t stream;
	int bad;

	(void)level;
	if (!session || !strstr(line, "the link is up") || atomic_exchange(&calling->done, 1))
		return;
	gdrcap_get_summary(session, &summary, sizeof(summary));
	bad = summary.ports != 1;
	bad |= gdrcap_get_queue_counts(session, 0, &counts, sizeof(counts)) != 0;
	(void)gdrcap_get_stream_counts(session, 0, &stream, &counts, sizeof(counts));
	bad |= gdrcap_get_cause(session, 0, &cause, sizeof(cause)) != 0;
	bad |= gdrcap_get_rule(session, 0, &rule, sizeof(rule)) != -ENOENT;
	(void)gdrcap_get_message(session, 0);
	bad |= gdrcap_get_queue(session, 0) == NULL || gdrcap_get_queue(session, 1) != NULL;
	/* On the session's control thread: it waits for nobody. */
	(void)gdrcap_wait_end(session, 60000);
	bad |= other_lives(&calling->other);
	calling->ret = gdrcap_stop(session, NULL);
	atomic_store(&calling->wrong, bad);
}

static void functions_may_call(void **state)
{
	static struct calling calling;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	(void)state;
	api_config(&config, "validate", 0);
	gdrcap_config_set_log(config, log_calls, &calling);
	session = api_create(config);
	atomic_store(&calling.session, session);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	assert_int_equal(atomic_load(&calling.done), 1);
	assert_int_equal(atomic_load(&calling.wrong), 0);
	assert_int_equal(calling.ret, -EDEADLK);
	gdrcap_destroy(calling.other);
	gdrcap_destroy(session);
}

/* Also when it never came to be. */
static void log_ends_with_its_session(void **state)
{
	struct place place = { .own = "anna", .others = "bert" };
	struct gdrcap_session *first, *second;
	struct gdrcap_config *config API_FREED = NULL;
	int lines;

	(void)state;
	api_config(&config, "validate", 100);
	first = api_create(config);
	gdrcap_config_set_log(config, log_own, &place);
	ports_set(config, "anna");
	second = api_create(config);
	assert_true(place.lines > 0);
	gdrcap_destroy(second);
	lines = place.lines;
	gdrcap_selftest(first, NULL, NULL, NULL);
	gdrcap_destroy(first);
	assert_int_equal(place.lines, lines);
	port_refused(config, "carl");
	api_create_fails(config, -ENODEV, "carl");
	assert_true(place.lines > lines);
	lines = place.lines;
	gdrcap_config_set_log(config, NULL, NULL);
	api_create_fails(config, -ENODEV, "carl");
	assert_int_equal(place.lines, lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_stay_apart),
		cmocka_unit_test(functions_may_call),
		cmocka_unit_test(log_ends_with_its_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
