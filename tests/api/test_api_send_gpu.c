/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from a running kernel: all that was submitted arrives, and the ends of runs. */
#include "api_send_gpu.h"

/* Many times the slots, by two kernels one after the other: each frame comes once, whole, in order. */
static void play_all(const char *guard)
{
	const uint64_t all = 400000, first = 150000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_session *session;
	struct gdrcap_tx_counts counts;
	struct gdrcap_queue *queue;
	struct kernel kernel;
	uint64_t next = 0;

	gpu_config(&config);
	api_set(config, "guard", "%s", guard);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	/* It may run, and submit, before the start. */
	kernel_start(&kernel, session, first);
	api_start(session);
	while (next < first)
		assert_true(receive(queue, &next, false) >= 0);
	kernel_join(&kernel);
	kernel_start(&kernel, session, all - first);
	while (next < all)
		assert_true(receive(queue, &next, false) >= 0);
	kernel_join(&kernel);
	assert_int_equal(kernel.returned, all - first);
	assert_true(kernel.tx.count > 1000 && kernel.tx.count < first);
	api_stop(session);
	assert_int_equal(gdrcap_gpu_tx_reserve(kernel.tx, all, 1), -1);
	assert_int_equal(receive(queue, &next, false), -ESHUTDOWN);
	counts = counts_of(session);
	assert_int_equal(counts.submitted, all);
	assert_int_equal(counts.sent, all);
	assert_int_equal(counts.unsent + counts.refused + counts.failed, 0);
	gdrcap_destroy(session);
}

static void all_arrive(void **state)
{
	play_all("false");
}

/* The session's own threads cannot touch the frames' memory. */
static void no_payload_is_read(void **state)
{
	play_all("true");
}

/* Each has a kernel of its own. */
static void two_queues(void **state)
{
	const uint64_t all = 100000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_counts counts;
	struct gdrcap_session *session;
	uint64_t next[2] = { 0, 0 };
	struct kernel kernel[2];

	gpu_config(&config);
	api_set(config, "queues", "2");
	session = api_create(config);
	api_start(session);
	for (uint32_t q = 0; q < 2; q++) {
		kernel[q] = (struct kernel){ .tx = view_at(session, q), .count = all };
		assert_int_equal(pthread_create(&kernel[q].thread, NULL, kernel_run, &kernel[q]),
				 0);
	}
	while (next[0] < all || next[1] < all)
		for (uint32_t q = 0; q < 2; q++)
			assert_true(receive(gdrcap_get_queue(session, q), &next[q], false) >= 0);
	for (uint32_t q = 0; q < 2; q++) {
		kernel_join(&kernel[q]);
		assert_int_equal(gdrcap_get_tx_counts(session, q, &counts, sizeof(counts)), 0);
		assert_int_equal(counts.sent, all);
		assert_int_equal(counts.submitted, all);
	}
	api_stop(session);
	gdrcap_destroy(session);
}

/* A port that copies: more frames than slots go into a file. */
static void to_a_file(void **state)
{
	const uint64_t all = 50000;
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	char path[] = "/tmp/gdrcap-send-XXXXXX";
	const int fd = mkstemp(path);
	struct gdrcap_session *session;
	struct kernel kernel;
	uint8_t record[16 + FRAME_MOST];
	FILE *file;

	assert_true(fd >= 0);
	close(fd);
	api_set(config, "tx_port", "net_pcap0,tx_pcap=%s", path);
	api_set(config, "gpu", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
	api_set(config, "sender", "gpu");
	session = api_create(config);
	api_start(session);
	kernel_start(&kernel, session, all);
	kernel_join(&kernel);
	assert_true(kernel.tx.count < all);
	while (counts_of(session).sent < all)
		sched_yield();
	api_stop(session);
	gdrcap_destroy(session);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(record, 24, 1, file), 1);
	for (uint64_t number = 0; number < all; number++) {
		const uint32_t bytes = bytes_of(number);
		uint64_t read;

		assert_int_equal(fread(record, 16 + bytes, 1, file), 1);
		memcpy(&read, record + 16, sizeof(read));
		assert_int_equal(read, number);
		for (uint32_t i = sizeof(read); i < bytes; i++)
			assert_int_equal(record[16 + i], byte_of(number, i));
	}
	assert_int_equal(fread(record, 1, 1, file), 0);
	fclose(file);
	unlink(path);
}

/* Nobody receives: there is no room, which a number says; then there is. */
static void back_pressure(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_session *session;
	struct gdrcap_gpu_tx tx;
	uint64_t seq = 0, next = 0;
	int n;

	gpu_config(&config);
	session = api_create(config);
	tx = view_of(session);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, INT32_MAX), (int)tx.count);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, 0), 0);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, -1), 0);
	/* not the queue's number */
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, tx.count + 1, 1), 0);
	api_start(session);
	while ((n = gdrcap_gpu_tx_reserve(tx, seq, 50)) > 0) {
		for (int i = 0; i < n; i++)
			gdrcap_gpu_tx_set_bytes(
				tx, seq + (uint64_t)i,
				fill(gdrcap_gpu_tx_data(tx, seq + (uint64_t)i), seq + (uint64_t)i));
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
	}
	assert_int_equal(n, 0);
	assert_int_equal(seq, tx.count);
	while (next < seq)
		assert_true(receive(gdrcap_get_queue(session, 0), &next, false) >= 0);
	while (gdrcap_gpu_tx_reserve(tx, seq, 1) == 0)
		sched_yield();
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, seq, 1), 1);
	api_stop(session);
	gdrcap_destroy(session);
}

/* A stop, or the run's own end, at any moment: what left was received, and the rest is accounted for. */
static void stop_in_mid_stream(void **state)
{
	for (uint32_t round = 0; round < 20; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_error error = { 0 };
		struct gdrcap_session *session;
		struct gdrcap_tx_counts counts;
		struct gdrcap_queue *queue;
		struct kernel kernel;
		uint64_t next = 0;

		gpu_config(&config);
		if (round % 4 == 3)
			api_set(config, "seconds", "0.05");
		session = api_create(config);
		queue = gdrcap_get_queue(session, 0);
		api_start(session);
		kernel_start(&kernel, session, UINT64_MAX);
		while (round % 4 != 3 && next < round * 1000)
			assert_true(receive(queue, &next, false) >= 0);
		if (round % 4 == 3) {
			while (receive(queue, &next, false) >= 0)
				;
			kernel_join(&kernel); /* which hears of the end before the stop */
			assert_int_equal(gdrcap_stop(session, &error), 0);
		} else {
			assert_int_equal(gdrcap_stop(session, &error), 0);
			kernel_join(&kernel);
			while (receive(queue, &next, false) >= 0)
				;
		}
		counts = counts_of(session);
		assert_int_equal(counts.sent, next);
		assert_int_equal(counts.submitted, counts.sent + counts.unsent);
		assert_true(counts.submitted <= kernel.sent);
		/* no more than what it had reserved when it was told came too late */
		assert_true(kernel.sent - counts.submitted <= kernel.tx.count);
		assert_int_equal(counts.refused, 0);
		gdrcap_destroy(session);
	}
}

/* What was submitted before the stop goes out, although nobody looked at the queue in between. */
static void all_before_the_stop(void **state)
{
	for (int round = 0; round < 10; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_session *session;
		struct kernel kernel;
		uint64_t next = 0;

		gpu_config(&config);
		session = api_create(config);
		api_start(session);
		kernel_start(&kernel, session, 500);
		kernel_join(&kernel);
		api_stop(session);
		assert_int_equal(counts_of(session).sent, 500);
		assert_int_equal(counts_of(session).unsent, 0);
		while (receive(gdrcap_get_queue(session, 0), &next, false) >= 0)
			;
		assert_int_equal(next, 500);
		gdrcap_destroy(session);
	}
}

/* A port whose other end never comes: what waits is counted. It could send frames in two pieces. */
static void nobody_takes(void **state)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	char folder[] = "/tmp/gdrcap-send-XXXXXX", path[64];
	struct gdrcap_tx_counts counts = { 0 };
	struct gdrcap_session *session;
	struct kernel kernel;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	api_set(config, "tx_port", "net_memif0,role=server,socket-abstract=no,socket=%s", path);
	api_set(config, "gpu", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
	api_set(config, "sender", "gpu");
	session = api_create(config);
	api_start(session);
	kernel_start(&kernel, session, 100);
	kernel_join(&kernel);
	while (counts.stalled == 0)
		counts = counts_of(session);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	counts = counts_of(session);
	assert_int_equal(counts.submitted, 100);
	assert_int_equal(counts.sent, 0);
	assert_int_equal(counts.unsent, 100);
	assert_non_null(
		strstr(gdrcap_get_message(session, 0), "frames submitted and not sent: 100;"));
	gdrcap_destroy(session);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrive),	       cmocka_unit_test(no_payload_is_read),
		cmocka_unit_test(two_queues),	       cmocka_unit_test(to_a_file),
		cmocka_unit_test(back_pressure),       cmocka_unit_test(stop_in_mid_stream),
		cmocka_unit_test(all_before_the_stop), cmocka_unit_test(nobody_takes),
	};

	return cmocka_run_group_tests_name("send_gpu", tests, NULL, NULL);
}
