/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending the caller's own frames: what he does wrong, and ports that take nothing. */
#include "api_send_pipe.h"

#include <stdbool.h>
#include <unistd.h>

#define ENDS 150

/* What a caller can do wrong: an error, and nothing of it is sent. */
static void test_refused(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frames[3], wrong[3];
	struct gdrcap_session *session;
	uint64_t next = 0;
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 3), 3);
	for (uint64_t i = 0; i < 3; i++) {
		frames[i].bytes = bytes_of(i);
		frame_fill(&frames[i], i);
	}
	memcpy(wrong, frames, sizeof(wrong));
	wrong[2].bytes = 59;
	refused(tx, wrong, 3, -EMSGSIZE, "frame 2: it has 59 bytes");
	wrong[2].bytes = API_FRAME - 3;
	refused(tx, wrong, 3, -EMSGSIZE, "to 196");
	wrong[2] = wrong[0];
	refused(tx, wrong, 3, -EINVAL, "frame 2: its slot is not reserved");
	wrong[2].slot = UINT32_MAX;
	refused(tx, wrong, 3, -EINVAL, "frame 2");
	wrong[2] = frames[2];
	wrong[2].data = frames[1].data;
	refused(tx, wrong, 3, -EINVAL, "frame 2");
	wrong[2] = frames[2];
	wrong[2].flags = 2;
	refused(tx, wrong, 3, -EINVAL, "flags 0x2");
	wrong[2] = frames[2];
	wrong[2].time_ns = UINT64_MAX;
	refused(tx, wrong, 3, -EINVAL, "60 s ahead");
	refused(tx, NULL, 1, -EINVAL, "give the frames");
	assert_int_equal(gdrcap_tx_submit(NULL, frames, 1, NULL), -EINVAL);
	assert_int_equal(gdrcap_tx_reserve(NULL, frames, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_reserve(tx, NULL, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_fd(NULL), -EINVAL);
	/* Before the start: it goes when there is one. */
	assert_int_equal(submit(tx, frames, 2), 0);
	refused(tx, frames, 2, -EINVAL, "submitted already");
	assert_int_equal(gdrcap_tx_cancel(tx, frames, 3), -EINVAL);
	assert_int_equal(gdrcap_tx_cancel(tx, &frames[2], 1), 0);
	assert_int_equal(gdrcap_tx_cancel(tx, &frames[2], 1), -EINVAL);
	refused(tx, &frames[2], 1, -EINVAL, "frame 0");
	api_start(session);
	while (next < 2)
		receive(gdrcap_get_queue(session, 0), &next);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 1), 1);
	api_stop(session);
	refused(tx, frames, 1, -ESHUTDOWN, "gdrcap_tx_cancel");
	assert_int_equal(gdrcap_tx_cancel(tx, frames, 1), 0);
	counts_are(session, 2, 2, 0);
	gdrcap_destroy(session);
}

/* Both ends leave at once, many times: nothing is freed twice, which DPDK would tell. */
static void test_ends_leave(void **state)
{
	const int before = dup(STDERR_FILENO);
	FILE *told = tmpfile();
	char line[512];

	assert_non_null(told);
	assert_true(before >= 0 && dup2(fileno(told), STDERR_FILENO) >= 0);
	for (int round = 0; round < ENDS; round++) {
		struct pipe pipe;

		pipe_open(&pipe);
		pipe_close(&pipe);
	}
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(told);
	while (fgets(line, sizeof(line), told))
		if (!strstr(line, "mp action callback"))
			fail_msg("%s", line);
	fclose(told);
}

static struct gdrcap_session *sender_only(const struct pipe *pipe, const char *role)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();

	pipe_config(config);
	api_unset(config, "memory");
	api_set(config, "tx_port", "net_memif%s,role=%s,%s", role[0] == 's' ? "2" : "3", role,
		pipe->socket);
	send_by_caller(config);
	api_set(config, "sender.memory", "host");
	return api_create(config);
}

static void submit_one(struct gdrcap_tx *tx, uint64_t number)
{
	struct gdrcap_tx_frame frame;

	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	frame.bytes = bytes_of(number);
	frame.flags = GDRCAP_TX_TELL;
	frame.tag = number;
	frame_fill(&frame, number);
	assert_int_equal(submit(tx, &frame, 1), 0);
}

/* A port that takes nothing, as its link is down: what waits is counted, and told at the end. */
static void test_nobody_takes(void **state)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < API_STOPS && least > API_STOP_MS; i++) {
		struct gdrcap_tx_counts counts = { 0 };
		struct gdrcap_session *session;
		struct gdrcap_tx_done done;
		struct pipe pipe;
		struct gdrcap_tx *tx;
		uint64_t since;

		pipe_folder(&pipe);
		/* A memif's server whose client never comes. */
		session = sender_only(&pipe, "server");
		tx = gdrcap_get_tx(session, 0);
		api_start(session);
		submit_one(tx, 7);
		while (counts.stalled == 0)
			assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)),
					 0);
		assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 0);
		since = api_now_ms();
		assert_int_equal(gdrcap_stop(session, NULL), 0);
		least = api_now_ms() - since < least ? api_now_ms() - since : least;
		counts_are(session, 1, 0, 1);
		assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 1);
		assert_int_equal(done.code, -ECANCELED);
		assert_int_equal(done.tag, 7);
		assert_int_equal(gdrcap_tx_poll(tx, &done, 1), -ESHUTDOWN);
		gdrcap_destroy(session);
		rmdir(pipe.folder);
	}
	assert_in_range(least, 0, API_STOP_MS);
}

/* A wire to a caller who takes nothing until the run is over: what was sent is there then. */
static void ring_stop(uint64_t *least)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_counts counts = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_tx_frame frame;
	uint64_t number = 0, next = 0, since;
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	while (gdrcap_tx_reserve(tx, &frame, 1) == 1) {
		assert_int_equal(gdrcap_tx_cancel(tx, &frame, 1), 0);
		submit_one(tx, number++);
	}
	api_start(session);
	while (counts.sent == 0)
		assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	since = api_now_ms();
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	since = api_now_ms() - since;
	*least = since < *least ? since : *least;
	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.submitted, number);
	assert_int_equal(counts.sent + counts.unsent, number);
	while (next < counts.sent)
		receive(gdrcap_get_queue(session, 0), &next);
	assert_int_equal(next, counts.sent);
	gdrcap_destroy(session);
}

static void test_ring_stop(void **state)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < API_STOPS && least > API_STOP_MS; i++)
		ring_stop(&least);
	assert_in_range(least, 0, API_STOP_MS);
}

static bool has_message(const struct gdrcap_session *session, const char *part)
{
	for (uint32_t i = 0; gdrcap_get_message(session, i); i++)
		if (strstr(gdrcap_get_message(session, i), part))
			return true;
	return false;
}

/* The other end is there and takes nothing: it was not started. A client's port takes a ring of frames,
 * which are lost, and said to be; a server's takes none, since it has no place for them. What the port
 * did not take is told. */
static void stop_full(const char *sender, uint64_t *least)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session, *peer;
	struct gdrcap_tx_counts counts = { 0 }, before;
	struct gdrcap_tx_done done;
	struct gdrcap_tx *tx;
	struct pipe pipe;
	uint64_t number = 0, since, sent = 0, unsent = 0;
	const bool serves = sender[0] == 's';
	int n;

	pipe_folder(&pipe);
	pipe_config(config);
	api_set(config, "port", "net_memif4,role=%s,%s", serves ? "client" : "server", pipe.socket);
	api_set(config, "consumer", "host");
	/* The server comes first. */
	session = serves ? sender_only(&pipe, sender) : NULL;
	peer = api_create(config);
	session = session ? session : sender_only(&pipe, sender);
	tx = gdrcap_get_tx(session, 0);
	api_start(session);
	do {
		before = counts;
		for (int i = 0; i < 64; i++) {
			struct gdrcap_tx_frame frame;

			if (gdrcap_tx_reserve(tx, &frame, 1) != 1)
				break;
			assert_int_equal(gdrcap_tx_cancel(tx, &frame, 1), 0);
			submit_one(tx, number++);
		}
		assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	} while ((counts.sent == 0 && !serves) || counts.submitted == counts.sent ||
		 counts.sent != before.sent || counts.stalled == before.stalled);
	since = api_now_ms();
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	since = api_now_ms() - since;
	*least = since < *least ? since : *least;
	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.submitted, number);
	assert_int_equal(counts.sent + counts.unsent, number);
	assert_true(counts.unsent > 0);
	while ((n = gdrcap_tx_poll(tx, &done, 1)) > 0) {
		/* In their order, and none twice. */
		assert_int_equal(done.tag, sent + unsent);
		sent += done.code == 0;
		unsent += done.code == -ECANCELED;
	}
	assert_int_equal(n, -ESHUTDOWN);
	assert_int_equal(sent, counts.sent);
	assert_int_equal(unsent, counts.unsent);
	assert_true(has_message(session, "frames submitted and not sent"));
	assert_int_equal(has_message(session, "of the last frames are lost: its other end has not"),
			 !serves);
	gdrcap_destroy(session);
	gdrcap_destroy(peer);
	rmdir(pipe.folder);
}

static void test_other_end_takes_nothing(void **state)
{
	static const char *const roles[] = { "client", "server" };

	for (int r = 0; r < 2; r++) {
		uint64_t least = UINT64_MAX;

		for (int i = 0; i < API_STOPS && least > API_STOP_MS; i++)
			stop_full(roles[r], &least);
		assert_in_range(least, 0, API_STOP_MS);
	}
}

/* What does not go together. */
static void test_config(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;

	send_config(&config);
	api_set(config, "port", "net_null0");
	api_unset(config, "tx_port");
	api_create_fails(config, -EINVAL, "needs a port to send from");
	send_config(&config);
	api_set(config, "streams", "2");
	api_create_fails(config, -EINVAL, "streams:");
	send_config(&config);
	api_set(config, "rate", "1gbit");
	api_create_fails(config, -EINVAL, "rate: is kept by the built-in sender");
	send_config(&config);
	api_set(config, "speed", "2");
	api_create_fails(config, -EINVAL, "speed: is of a file that the built-in sender plays");
	send_config(&config);
	api_set(config, "sender.memory", "host");
	api_create_fails(config, -EINVAL, "sender.memory: port ring:test");
	api_set(config, "sender", "replay");
	api_create_fails(config, -EINVAL, "sender.memory: is of the caller's");
	send_config(&config);
	api_set(config, "sender.thread", "caller");
	api_set(config, "sender", "replay");
	api_create_fails(config, -EINVAL, "sender.thread: caller is of frames that");
	api_set(config, "sender", "gpu");
	api_create_fails(config, -EINVAL, "sender.thread: caller is of frames that");
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	api_set(config, "tx_port", "net_null0");
	api_set(config, "sender", "host");
	api_set(config, "frames", "10");
	api_create_fails(config, -EINVAL, "frames:");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ends_leave),
		cmocka_unit_test(test_nobody_takes),
		cmocka_unit_test(test_ring_stop),
		cmocka_unit_test(test_other_end_takes_nothing),
		cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests_name("send_faults", tests, NULL, NULL);
}
