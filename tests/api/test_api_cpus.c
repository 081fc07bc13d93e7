/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs sessions of one process have: each its own, while there are enough. */
#include "api.h"

/* One thread that polls: a send queue of the caller's. */
static struct gdrcap_session *session_new(int number, int cpu)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error = { 0 };

	api_set(config, "tx_port", "net_null%d", number);
	api_set(config, "gpu", "host");
	api_set(config, "pool", "8M");
	api_set(config, "sender", "host");
	if (cpu >= 0)
		api_set(config, "cores", "%d", cpu);
	if (gdrcap_create(config, &session, &error))
		print_error("%s\n", error.text);
	assert_int_equal(error.code, 0);
	return session;
}

static int first_cpu(struct gdrcap_session *session, uint32_t *count)
{
	struct gdrcap_summary summary;

	assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
	*count = summary.core_count;
	return summary.cores[0];
}

static void test_each_its_own(void **state)
{
	struct gdrcap_session *session[3];
	uint32_t count;
	int cpu[3];

	session[0] = session_new(0, -1);
	session[1] = session_new(1, -1);
	cpu[0] = first_cpu(session[0], &count);
	cpu[1] = first_cpu(session[1], &count);
	if (count < 2) {
		gdrcap_destroy(session[0]);
		gdrcap_destroy(session[1]);
		skip(); /* one CPU is everybody's */
	}
	assert_int_not_equal(cpu[0], cpu[1]);
	/* Started or not, it keeps it; a run's end changes nothing. */
	assert_int_equal(gdrcap_start(session[1], NULL), 0);
	assert_int_equal(gdrcap_stop(session[1], NULL), 0);
	assert_int_equal(first_cpu(session[1], &count), cpu[1]);
	gdrcap_destroy(session[0]);
	session[0] = session_new(0, -1);
	/* Not always cpu[0]: another process may have taken it meanwhile. */
	assert_int_not_equal(first_cpu(session[0], &count), cpu[1]);
	/* One that is asked for is given, whoever has it, and counts as had. */
	session[2] = session_new(2, cpu[1]);
	assert_int_equal(first_cpu(session[2], &count), cpu[1]);
	gdrcap_destroy(session[0]);
	gdrcap_destroy(session[1]);
	session[1] = session_new(1, -1);
	assert_int_not_equal(first_cpu(session[1], &count), cpu[1]);
	gdrcap_destroy(session[1]);
	gdrcap_destroy(session[2]);
}

/* More sessions than CPUs run, too. */
static void test_too_many(void **state)
{
	struct gdrcap_session *session[8];

	for (int i = 0; i < 8; i++)
		session[i] = session_new(i, -1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(gdrcap_start(session[i], NULL), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(gdrcap_stop(session[i], NULL), 0);
		gdrcap_destroy(session[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_its_own),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
