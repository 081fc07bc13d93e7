/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's life, results at any time, and what happens when it is used wrongly. */
#include "api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void result_is_clean(struct gdrcap_session *session, uint64_t frames)
{
	struct gdrcap_summary summary;
	struct gdrcap_damage damage;

	gdrcap_get_summary(session, &summary, sizeof(summary));
	if (summary.total.valid != frames)
		print_error("sent %llu, received %llu, valid %llu of %llu\n",
			    (unsigned long long)summary.total.sent,
			    (unsigned long long)summary.total.received,
			    (unsigned long long)summary.total.valid, (unsigned long long)frames);
	assert_true(summary.total.sent == frames);
	assert_true(summary.total.received == frames);
	assert_true(summary.total.valid == frames);
	assert_true(summary.total.bytes == frames * (API_FRAME - 4));
	assert_true(summary.total.bits_checked == frames * 8 * (API_FRAME - 4 - API_PAYLOAD));
	assert_int_equal(summary.total.lost + summary.total.damaged + summary.total.duplicate +
				 summary.total.reordered + summary.total.filtered +
				 summary.unexplained,
			 0);
	assert_int_equal(summary.known & (GDRCAP_HAS_VERDICT | GDRCAP_HAS_TX_STALLED),
			 GDRCAP_HAS_VERDICT | GDRCAP_HAS_TX_STALLED);
	assert_int_equal(summary.failed, 0);
	assert_int_equal(gdrcap_get_damage(session, 0, &damage, sizeof(damage)), -ENOENT);
}

static void identities(const struct gdrcap_session *session)
{
	struct gdrcap_summary summary;
	const struct gdrcap_counts *total = &summary.total;

	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_true(total->received ==
		    total->valid + total->damaged + total->duplicate + total->filtered);
	assert_true(total->sent == total->valid + total->damaged + total->lost);
}

static void life_again_and_again(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct gdrcap_summary summary, again;
		struct gdrcap_session *session;
		struct gdrcap_config *config API_FREED = NULL;

		api_config(&config, "validate", 3000);
		session = api_create(config);
		/* Nothing of it is used any more. */
		gdrcap_config_free(config);
		config = NULL;
		identities(session);
		assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
		assert_int_equal(summary.total.received, 0);
		assert_true(summary.elapsed_seconds == 0);
		api_start(session);
		api_wait_end(session);
		assert_int_equal(gdrcap_wait_end(session, 0), 1);
		api_stop(session);
		api_stop(session);
		assert_int_equal(gdrcap_wait_end(session, 0), 1);
		result_is_clean(session, 3000);
		assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
		assert_int_equal(summary.total.received, 3000);
		assert_int_equal(summary.in_flight, 0);
		/* That of the run, which does not go on. */
		assert_int_equal(gdrcap_get_summary(session, &again, sizeof(again)), 0);
		assert_true(summary.elapsed_seconds > 0);
		assert_true(summary.elapsed_seconds == again.elapsed_seconds);
		gdrcap_destroy(session);
	}
}

static void ended_early(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	gdrcap_destroy(NULL);
	api_config(&config, "validate", 0);
	/* Never started. */
	gdrcap_destroy(api_create(config));
	session = api_create(config);
	api_stop(session);
	/* A stop before the start ends nothing. */
	api_start(session);
	identities(session);
	/* While frames are in flight. */
	api_stop(session);
	identities(session);
	gdrcap_destroy(session);
	/* Without a stop. */
	session = api_create(config);
	api_start(session);
	gdrcap_destroy(session);
}

static void started_twice(void **state)
{
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "validate", 1000);
	session = api_create(config);
	api_start(session);
	api_failed(gdrcap_start(session, &error), -EALREADY, &error, "create another");
	api_wait_end(session);
	/* The run did not notice. */
	api_stop(session);
	result_is_clean(session, 1000);
	api_failed(gdrcap_start(session, &error), -EALREADY, &error, "create another");
	assert_true(gdrcap_selftest(session, NULL, NULL, &error) < 0);
	assert_true(strlen(error.text) > 0);
	gdrcap_destroy(session);
}

/* Everything that any thread may call at any time. */
struct reader {
	const struct gdrcap_session *session;
	_Atomic int over;
	pthread_t thread;
};

static void *reader_run(void *arg)
{
	struct reader *reader = arg;
	const struct gdrcap_session *session = reader->session;
	uint64_t last = 0;

	while (!atomic_load(&reader->over)) {
		struct gdrcap_summary summary;
		struct gdrcap_counts counts;
		struct gdrcap_damage damage;
		uint32_t stream;

		gdrcap_get_summary(session, &summary, sizeof(summary));
		if (summary.total.received < last || summary.total.sent < summary.total.valid)
			return (void *)1;
		last = summary.total.received;
		if (summary.in_flight > summary.slots)
			return (void *)2;
		for (uint32_t i = 0;
		     gdrcap_get_queue_counts(session, i, &counts, sizeof(counts)) == 0; i++)
			if (counts.received !=
			    counts.valid + counts.damaged + counts.duplicate + counts.filtered)
				return (void *)3;
		for (uint32_t i = 0;
		     gdrcap_get_stream_counts(session, i, &stream, &counts, sizeof(counts)) == 0;
		     i++)
			if (counts.sent != counts.valid + counts.damaged + counts.lost)
				return (void *)4;
		gdrcap_get_damage(session, 0, &damage, sizeof(damage));
		gdrcap_get_message(session, 0);
	}
	return NULL;
}

static void results_at_any_time(void **state)
{
	struct reader reader[3];
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	void *bad;

	api_config(&config, "validate", 200000);
	api_set(config, "queues", "2");
	api_set(config, "streams", "5");
	session = api_create(config);
	for (int i = 0; i < 3; i++) {
		reader[i] = (struct reader){ .session = session };
		pthread_create(&reader[i].thread, NULL, reader_run, &reader[i]);
	}
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	for (int i = 0; i < 3; i++) {
		atomic_store(&reader[i].over, 1);
		pthread_join(reader[i].thread, &bad);
		assert_null(bad);
	}
	result_is_clean(session, 200000);
	gdrcap_destroy(session);
}

static void *waiter_run(void *arg)
{
	while (!gdrcap_wait_end(arg, 0))
		;
	return NULL;
}

/* Somebody waits for the end while another makes it. */
static void stopped_while_waited_for(void **state)
{
	for (int i = 0; i < 10; i++) {
		struct gdrcap_session *session;
		struct gdrcap_config *config API_FREED = NULL;
		pthread_t waiter;

		api_config(&config, "validate", i & 1 ? 500 : 0);
		session = api_create(config);
		api_start(session);
		pthread_create(&waiter, NULL, waiter_run, session);
		usleep(1000);
		api_stop(session);
		pthread_join(waiter, NULL);
		gdrcap_destroy(session);
	}
}

static void several_ports_and_queues(void **state)
{
	struct gdrcap_counts sum = { 0 }, counts;
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_config *config API_FREED = NULL;
	uint64_t seen = 0, all = 0;
	uint32_t i, stream;
	struct gdrcap_numbers came;

	api_config(&config, "validate", 60001);
	for (int p = 0; p < 3; p++) {
		char name[16];

		snprintf(name, sizeof(name), "ring:%d", p);
		assert_int_equal(
			(p ? gdrcap_config_add : gdrcap_config_set)(config, "port", name, NULL), 0);
		assert_int_equal(
			(p ? gdrcap_config_add : gdrcap_config_set)(config, "tx_port", name, NULL),
			0);
	}
	api_set(config, "queues", "2");
	api_set(config, "streams", "13");
	api_set(config, "ranges", "true");
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	result_is_clean(session, 60001);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_int_equal(summary.ports, 3);
	assert_int_equal(summary.queues, 6);
	assert_int_equal(summary.streams, 13);
	for (i = 0; gdrcap_get_queue_counts(session, i, &counts, sizeof(counts)) == 0; i++) {
		sum.received += counts.received;
		assert_true(counts.received > 0);
	}
	assert_int_equal(i, 6);
	assert_true(sum.received == 60001);
	for (i = 0; gdrcap_get_stream_counts(session, i, &stream, &counts, sizeof(counts)) == 0;
	     i++) {
		assert_int_equal(seen >> stream & 1, 0);
		seen |= 1ull << stream;
		sum.sent += counts.sent;
		assert_true(counts.sent == counts.valid);
	}
	assert_int_equal(seen, (1 << 13) - 1);
	assert_true(sum.sent == 60001);
	assert_int_equal(gdrcap_get_ranges(session, 13, NULL, 0), -ENOENT);
	for (i = 0; i < 13; i++) {
		assert_int_equal(gdrcap_get_ranges(session, i, NULL, 0), 1);
		assert_int_equal(gdrcap_get_ranges(session, i, &came, 1), 1);
		assert_true(came.first == 0 && came.times == 1);
		all += came.length;
	}
	assert_true(all == 60001);
	gdrcap_destroy(session);
}

/* Fewer frames than senders; one frame. */
static void few_frames(void **state)
{
	for (uint64_t frames = 1; frames < 5; frames++) {
		struct gdrcap_session *session;
		struct gdrcap_config *config API_FREED = NULL;

		api_config(&config, "validate", frames);
		api_set(config, "queues", "3");
		session = api_create(config);
		api_start(session);
		api_wait_end(session);
		api_stop(session);
		result_is_clean(session, frames);
		gdrcap_destroy(session);
	}
}

/* With the least memory that is allowed nobody waits for slots that others' caches keep. */
static void least_pool_of_several_queues(void **state)
{
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_config *config API_FREED = NULL;
	unsigned long long least = 0;

	api_config(&config, "validate", 100000);
	api_set(config, "queues", "4");
	api_set(config, "descriptors", "64");
	api_set(config, "burst", "4");
	api_set(config, "pool", "%llu", (unsigned long long)(1 << 20));
	api_failed(gdrcap_create(config, &session, &error), -EINVAL, &error, "pool");
	assert_int_equal(sscanf(strrchr(error.text, ':'), ": %llu", &least), 1);
	api_set(config, "pool", "%llu", (unsigned long long)(least << 20));
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	result_is_clean(session, 100000);
	gdrcap_destroy(session);
}

static void each_memory(void **state)
{
	for (int kind = GDRCAP_MEMORY_AUTO; kind <= GDRCAP_MEMORY_HOST; kind++)
		for (uint32_t guard = 0; guard < 2; guard++) {
			struct gdrcap_session *session;
			struct gdrcap_summary summary;
			struct gdrcap_config *config API_FREED = NULL;

			api_config(&config, "validate", 5000);
			api_set(config, "memory", "%s", api_memory[kind]);
			api_set(config, "guard", "%u", guard);
			if (guard && kind > GDRCAP_MEMORY_DEVICE) {
				api_create_fails(config, -EINVAL, "guard");
				continue;
			}
			session = api_create(config);
			gdrcap_get_summary(session, &summary, sizeof(summary));
			assert_int_equal(summary.memory, kind ? kind : GDRCAP_MEMORY_DEVICE);
			api_start(session);
			api_wait_end(session);
			api_stop(session);
			result_is_clean(session, 5000);
			gdrcap_destroy(session);
		}
}

static void whole_life(uint64_t frames)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "validate", frames);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	result_is_clean(session, frames);
	gdrcap_destroy(session);
}

static void *lives_run(void *arg)
{
	for (int i = 0; i < 5; i++)
		whole_life(1000);
	return NULL;
}

static void two_at_the_same_time(void **state)
{
	struct gdrcap_session *a, *b;
	struct gdrcap_config *config API_FREED = NULL;
	pthread_t thread[2];

	api_config(&config, "validate", 20000);
	a = api_create(config);
	b = api_create(config);
	api_start(b);
	api_start(a);
	api_wait_end(a);
	api_stop(a);
	result_is_clean(a, 20000);
	gdrcap_destroy(a);
	api_wait_end(b);
	api_stop(b);
	result_is_clean(b, 20000);
	gdrcap_destroy(b);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, lives_run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static void proved_then_run(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_error error = { 0 };
	struct gdrcap_config *config API_FREED = NULL;
	int ret;

	api_config(&config, "validate", 1000);
	session = api_create(config);
	for (int i = 0; i < 2; i++) {
		ret = gdrcap_selftest(session, NULL, NULL, &error);
		if (ret)
			print_error("%s\n", error.text);
		assert_int_equal(ret, 0);
	}
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	result_is_clean(session, 1000);
	gdrcap_destroy(session);
}

static void misuse_is_told(void **state)
{
	struct gdrcap_summary summary;
	const struct gdrcap_batch *batch;
	struct gdrcap_gpu_queue gpu_queue;
	struct gdrcap_session *session;
	struct gdrcap_error error = { 0 };
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "validate", 1);
	api_failed(gdrcap_create(config, NULL, &error), -EINVAL, &error, "session");
	api_create_fails(NULL, -EINVAL, "configuration");
	api_unset(config, "tx_port");
	api_failed(gdrcap_create(config, &session, &error), -EINVAL, &error, "tx_port");
	assert_int_equal(error.kind, GDRCAP_ERROR_CONFIG);
	api_unset(config, "port");
	api_create_fails(config, -EINVAL, "ring:NAME");
	api_config(&config, "validate", 1);
	api_failed(gdrcap_config_set(config, "consumer", "nobody", &error), -EINVAL, &error,
		   "validate, host, gpu");
	assert_int_equal(error.kind, GDRCAP_ERROR_CONFIG);
	api_config(&config, "validate", 1);
	api_set(config, "gpu", "200");
	api_failed(gdrcap_create(config, &session, &error), -ENODEV, &error, "--gpu host");
	assert_int_equal(error.kind, GDRCAP_ERROR_RUN);
	api_config(&config, "validate", 1);
	api_set(config, "cores", "8191");
	api_create_fails(config, -EINVAL, "cores");
	api_config(&config, "validate", 1);
	api_set(config, "pattern.name", "file");
	api_create_fails(config, -EINVAL, "pattern.file");
	api_set(config, "pattern.file", "/nowhere/at/all");
	api_create_fails(config, -ENOENT, "/nowhere/at/all");
	api_set(config, "pattern.file", "/dev/null");
	api_create_fails(config, -EINVAL, "/dev/null");
	/* More than there is of any memory. */
	for (int kind = GDRCAP_MEMORY_DEVICE; kind <= GDRCAP_MEMORY_HOST; kind++) {
		api_config(&config, "validate", 1);
		api_set(config, "memory", "%s", api_memory[kind]);
		api_set(config, "slot_bytes", "16384");
		api_set(config, "pool", "%llu", (unsigned long long)(1ull << 40));
		api_create_fails(config, -ENOMEM, "with pool");
	}
	/* The consumer is not the caller's. */
	api_config(&config, "validate", 1);
	session = api_create(config);
	assert_null(gdrcap_get_queue(session, 1));
	assert_null(gdrcap_get_queue(session, UINT32_MAX));
	assert_int_equal(gdrcap_poll(gdrcap_get_queue(session, 0), &batch, 1), -EINVAL);
	assert_int_equal(gdrcap_wait(NULL, &batch, 1, -1), -EINVAL);
	assert_int_equal(
		gdrcap_get_gpu_queue(gdrcap_get_queue(session, 0), &gpu_queue, sizeof(gpu_queue)),
		-EINVAL);
	assert_int_equal(gdrcap_get_gpu_queue(NULL, &gpu_queue, sizeof(gpu_queue)), -EINVAL);
	assert_int_equal(gdrcap_get_summary(session, &summary, 7), -EINVAL);
	gdrcap_destroy(session);
}

/* Each wire is two ports, and DPDK has 32. */
static void no_port_is_left(void **state)
{
	struct gdrcap_session *sessions[2], *third;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_error error = { 0 };
	char name[16];

	if (api_fronted())
		skip();
	api_config(&config, "validate", 1);
	for (int p = 0; p < GDRCAP_PORTS_MAX; p++) {
		snprintf(name, sizeof(name), "ring:%d", p);
		(p ? gdrcap_config_add : gdrcap_config_set)(config, "port", name, NULL);
		(p ? gdrcap_config_add : gdrcap_config_set)(config, "tx_port", name, NULL);
	}
	for (int i = 0; i < 2; i++)
		sessions[i] = api_create(config);
	api_failed(gdrcap_create(config, &third, &error), -ENOSPC, &error, "32 ports open");
	assert_int_equal(error.kind, GDRCAP_ERROR_RUN);
	for (int i = 0; i < 2; i++)
		gdrcap_destroy(sessions[i]);
	gdrcap_destroy(api_create(config));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_again_and_again),
		cmocka_unit_test(ended_early),
		cmocka_unit_test(started_twice),
		cmocka_unit_test(results_at_any_time),
		cmocka_unit_test(stopped_while_waited_for),
		cmocka_unit_test(several_ports_and_queues),
		cmocka_unit_test(few_frames),
		cmocka_unit_test(least_pool_of_several_queues),
		cmocka_unit_test(each_memory),
		cmocka_unit_test(two_at_the_same_time),
		cmocka_unit_test(proved_then_run),
		cmocka_unit_test(misuse_is_told),
		cmocka_unit_test(no_port_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
