/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run that sends the caller's frames: none is lost between what was sent and who receives it. */
#include "api_send.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define FRAME_BYTES 100u
#define FILE_MOST 65536u

static struct gdrcap_session *session_of(const char *port, const char *tx_port, const char *seconds)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };

	assert_non_null(config);
	if (port) {
		api_set(config, "port", "%s", port);
		api_set(config, "consumer", "host");
	}
	api_set(config, "tx_port", "%s", tx_port);
	api_set(config, "gpu", "host");
	send_by_caller(config);
	if (seconds)
		api_set(config, "seconds", "%s", seconds);
	if (gdrcap_create(config, &session, &error) < 0)
		fail_msg("%s", error.text);
	gdrcap_config_free(config);
	return session;
}

/* Submits up to `most` frames, until the run is over or the queue has no slot. */
static void send_up_to(struct gdrcap_tx *tx, uint64_t most, int waits)
{
	struct gdrcap_tx_frame frame;
	int n;

	while (most && ((n = gdrcap_tx_reserve(tx, &frame, 1)) > 0 || (n == 0 && waits))) {
		if (n == 0)
			continue;
		frame.bytes = FRAME_BYTES;
		memset(frame.data, 0x5a, FRAME_BYTES);
		if (gdrcap_tx_submit(tx, &frame, 1, NULL) < 0)
			return;
		most--;
	}
}

/* Until nothing more will come. */
static void *receive_all(void *argument)
{
	struct gdrcap_queue *queue = gdrcap_get_queue(argument, 0);
	static uint64_t frames;
	const struct gdrcap_batch *batch[8];
	int n;

	frames = 0;
	while ((n = gdrcap_wait(queue, batch, 8, 10000)) >= 0) {
		for (int b = 0; b < n; b++)
			frames += batch[b]->count;
		gdrcap_release(queue, batch, (unsigned int)n);
	}
	return &frames;
}

static uint64_t counted(struct gdrcap_session *session, struct gdrcap_tx_counts *counts)
{
	assert_int_equal(gdrcap_get_tx_counts(session, 0, counts, sizeof(*counts)), 0);
	return counts->sent;
}

/* The run ends by its time, while frames are sent as fast as they may be. */
static void test_by_time(void **state)
{
	struct gdrcap_session *session = session_of("ring:end", "ring:end", "0.2");
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error = { 0 };
	pthread_t receiver;
	void *received;

	assert_int_equal(gdrcap_start(session, &error), 0);
	assert_int_equal(pthread_create(&receiver, NULL, receive_all, session), 0);
	send_up_to(gdrcap_get_tx(session, 0), UINT64_MAX, 1);
	assert_int_equal(pthread_join(receiver, &received), 0);
	assert_int_equal(gdrcap_stop(session, &error), 0);
	assert_int_equal(counted(session, &counts), *(uint64_t *)received);
	assert_true(counts.sent > 0);
	assert_int_equal(counts.submitted, counts.sent + counts.unsent);
	gdrcap_destroy(session);
}

/* A stop right behind what was submitted, perhaps before anybody looked at the link. */
static void test_at_once(void **state)
{
	for (int round = 0; round < 10; round++) {
		struct gdrcap_session *session = session_of("ring:end", "ring:end", NULL);
		struct gdrcap_tx_counts counts;
		struct gdrcap_error error = { 0 };

		assert_int_equal(gdrcap_start(session, &error), 0);
		send_up_to(gdrcap_get_tx(session, 0), 50, 0);
		assert_int_equal(gdrcap_stop(session, &error), 0);
		assert_int_equal(counted(session, &counts), 50);
		assert_int_equal(counts.unsent, 0);
		assert_int_equal(*(uint64_t *)receive_all(session), 50);
		gdrcap_destroy(session);
	}
}

/* A port that takes whatever it is given has stalled nobody, whoever looks at its link, and when. */
static void test_takes_all(void **state)
{
	for (int round = 0; round < 30; round++) {
		struct gdrcap_session *session = session_of(NULL, "net_null0", NULL);
		struct gdrcap_tx_counts counts;
		struct gdrcap_error error = { 0 };

		send_up_to(gdrcap_get_tx(session, 0), 50, 0);
		assert_int_equal(gdrcap_start(session, &error), 0);
		assert_int_equal(gdrcap_stop(session, &error), 0);
		assert_int_equal(counted(session, &counts), 50);
		assert_int_equal(counts.stalled, 0);
		gdrcap_destroy(session);
	}
}

/* A file that cannot grow: its driver calls all frames sent. */
static void test_file_is_full(void **state)
{
	char path[] = "/tmp/gdrcap-send-XXXXXX", port[sizeof(path) + 32];
	const int fd = mkstemp(path);
	struct rlimit before, limit;
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error = { 0 };

	assert_true(fd >= 0);
	close(fd);
	snprintf(port, sizeof(port), "net_pcap0,tx_pcap=%s", path);
	session = session_of(NULL, port, NULL);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = FILE_MOST;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(gdrcap_start(session, &error), 0);
	send_up_to(gdrcap_get_tx(session, 0), 2000, 1);
	assert_int_equal(gdrcap_stop(session, &error), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(counted(session, &counts), 2000);
	/* 24 bytes of the file's header, 16 of each frame's; one of them may be cut */
	assert_true(counts.failed >= 2000 - (FILE_MOST - 24) / (FRAME_BYTES + 16) - 1);
	assert_true(counts.failed < 2000);
	assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
	assert_int_equal(summary.sending_failed, counts.failed);
	gdrcap_destroy(session);
	unlink(path);
}

/* Whoever stops the run: when that returns, it has ended. */
static void *stop_and_count(void *session)
{
	struct gdrcap_tx_counts counts = { 0 };

	gdrcap_stop(session, NULL);
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	/* Not asserted here: cmocka's jumps are of its own thread. */
	return counts.submitted && counts.submitted == counts.sent + counts.unsent ? session : NULL;
}

static void test_two_stop(void **state)
{
	for (int round = 0; round < 10; round++) {
		struct gdrcap_session *session = session_of("ring:two", "ring:two", NULL);
		struct gdrcap_error error;
		pthread_t others[3];
		void *ended;

		assert_int_equal(gdrcap_start(session, &error), 0);
		/* More than the wire has room for, as nobody receives: the stop offers them for a while. */
		send_up_to(gdrcap_get_tx(session, 0), UINT64_MAX, 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&others[i], NULL, stop_and_count, session),
					 0);
		assert_ptr_equal(stop_and_count(session), session);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(pthread_join(others[i], &ended), 0);
			assert_ptr_equal(ended, session);
		}
		gdrcap_destroy(session);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_time),	     cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_takes_all),    cmocka_unit_test(test_two_stop),
		cmocka_unit_test(test_file_is_full),
	};

	return cmocka_run_group_tests_name("send_end", tests, NULL, NULL);
}
