/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue's descriptor, and a caller that waits: woken up for every frame, and asleep otherwise. */
#include "api.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../unit/test_long.h"

#define FRAMES 200000u

static int readable(int fd, int timeout_ms)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, timeout_ms);
}

/* Frames until the end, polled for only when the descriptor says so; `max` batches at a time, and
 * `once`: not until there are no more. */
static uint64_t take_all(struct gdrcap_session *session, unsigned int max, int once)
{
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const int fd = gdrcap_queue_fd(queue);
	const struct gdrcap_batch *batch[8];
	uint64_t frames = 0;
	int n;

	assert_true(fd >= 0);
	assert_int_equal(gdrcap_queue_fd(queue), fd);
	for (;;) {
		assert_int_equal(readable(fd, 60000), 1);
		while ((n = gdrcap_poll(queue, batch, max)) > 0) {
			for (int i = 0; i < n; i++)
				frames += batch[i]->count;
			gdrcap_release(queue, batch, (unsigned int)n);
			if (once)
				break;
		}
		if (n == -ESHUTDOWN)
			break;
		assert_true(n >= 0);
	}
	/* And so it stays. */
	assert_int_equal(gdrcap_poll(queue, batch, max), -ESHUTDOWN);
	assert_int_equal(readable(fd, 0), 1);
	return frames;
}

static void *stop_at_the_end(void *session)
{
	api_wait_end(session);
	gdrcap_stop(session, NULL);
	return NULL;
}

static void descriptor(void **state)
{
	static const struct {
		unsigned int max;
		int once;
		const char *rate;
		uint32_t idle_sleep_us;
	} ways[] = { { 8, 0, "max", 0 },
		     { 1, 0, "max", 0 },
		     { 1, 1, "max", 1000 },
		     { 8, 0, "50kpps", 0 },
		     { 8, 0, "50kpps", 200 } };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct gdrcap_session *session;
		struct gdrcap_config *config API_FREED = NULL;
		const uint64_t frames = ways[i].rate[0] == 'm' ? FRAMES : FRAMES / 10;
		pthread_t stopper;

		api_config(&config, "host", frames);
		api_set(config, "burst", "4");
		api_set(config, "rate", "%s", ways[i].rate);
		api_set(config, "idle_sleep", "%u", ways[i].idle_sleep_us);
		session = api_create(config);
		api_start(session);
		assert_int_equal(pthread_create(&stopper, NULL, stop_at_the_end, session), 0);
		assert_true(take_all(session, ways[i].max, ways[i].once) == frames);
		pthread_join(stopper, NULL);
		/* A loaded machine may not reach the rate, which is said. */
		assert_int_equal(gdrcap_stop(session, NULL), 0);
		gdrcap_destroy(session);
	}
}

/* Asked for in mid-run, by who polled without it before. */
static void asked_late(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_batch *batch;
	uint64_t frames = 0;
	pthread_t stopper;

	api_config(&config, "host", FRAMES);
	session = api_create(config);
	api_start(session);
	assert_int_equal(pthread_create(&stopper, NULL, stop_at_the_end, session), 0);
	while (frames < FRAMES / 2) {
		if (gdrcap_poll(gdrcap_get_queue(session, 0), &batch, 1) != 1)
			continue;
		frames += batch->count;
		gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	}
	frames += take_all(session, 8, 0);
	assert_true(frames == FRAMES);
	pthread_join(stopper, NULL);
	gdrcap_destroy(session);
}

static void refused(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	assert_int_equal(gdrcap_queue_fd(NULL), -EINVAL);
	api_config(&config, "validate", 1);
	session = api_create(config);
	assert_int_equal(gdrcap_queue_fd(gdrcap_get_queue(session, 0)), -EINVAL);
	gdrcap_destroy(session);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A frame every 5 ms or so: who waits for them uses little of a core. */
static void waits_asleep(void **state)
{
	const uint64_t frames = 200;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_batch *batch;
	uint64_t taken = 0;
	int64_t cpu, wall;

	api_config(&config, "host", frames);
	api_set(config, "rate", "0.0002mpps");
	session = api_create(config);
	/* Before the start nothing comes. */
	assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, 0), 0);
	assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, 1000), 0);
	api_start(session);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	for (; taken < frames; taken += batch->count) {
		assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1), 1);
		gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	}
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	print_message("%.1f %% of a core\n", 100.0 * (double)cpu / (double)wall);
	assert_true(cpu * 10 < wall);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	gdrcap_destroy(session);
}

/* The whole session: after the last frame of a pipe whose writer stays, its threads sleep, too. */
static void all_asleep(void **state)
{
	static const uint8_t file_bytes[24 + 16 + 60] = {
		0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, [18] = 1, [20] = 1, [32] = 60, [36] = 60,
	};
	char directory[] = "/tmp/gdrcap-wait-XXXXXX", path[64];
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	const struct gdrcap_batch *batch;
	int64_t cpu, wall;
	int pipe_end;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/pipe", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	pipe_end = open(path, O_RDWR);
	assert_true(write(pipe_end, file_bytes, sizeof(file_bytes)) == sizeof(file_bytes));
	api_config(&config, "host", 0);
	api_set(config, "port", "net_pcap0,rx_pcap=%s", path);
	api_unset(config, "tx_port");
	api_unset(config, "pattern");
	api_set(config, "idle_sleep", "%u", 2000);
	session = api_create(config);
	api_start(session);
	assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1), 1);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, 1000000), 0);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	print_message("%.1f %% of a core\n", 100.0 * (double)cpu / (double)wall);
	assert_true(cpu * 10 < wall);
	gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	api_stop(session);
	gdrcap_destroy(session);
	close(pipe_end);
	unlink(path);
	rmdir(directory);
}

static void *stop_soon(void *session)
{
	struct timespec pause = { .tv_nsec = 20000000 };

	/* The other thread sleeps by then, or it does not: both are right. */
	nanosleep(&pause, NULL);
	gdrcap_stop(session, NULL);
	return NULL;
}

static void stopped_while_asleep(void **state)
{
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	pthread_t stopper;
	int n;

	api_config(&config, "host", 0);
	api_set(config, "rate", "0.00001mpps");
	session = api_create(config);
	api_start(session);
	assert_int_equal(pthread_create(&stopper, NULL, stop_soon, session), 0);
	while ((n = gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1)) == 1)
		gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	assert_int_equal(n, -ESHUTDOWN);
	pthread_join(stopper, NULL);
	gdrcap_destroy(session);
}

/* A thread that is cancelled before its call, and so at the call's first cancellation point. */
struct cancelled {
	void (*call)(struct cancelled *cancelled);
	struct gdrcap_config *config;
	struct gdrcap_session *session;
	_Atomic int go, returned;
};

static void *cancelled_run(void *arg)
{
	struct cancelled *cancelled = arg;

	while (!cancelled->go)
		;
	cancelled->call(cancelled);
	cancelled->returned = 1;
	pthread_testcancel();
	return NULL;
}

/* 1: the call returned; 0: the thread ended in it. rounds: how long after its begin; 0: before. */
static int cancelled_in(void (*call)(struct cancelled *cancelled), struct cancelled *cancelled,
			unsigned int rounds)
{
	pthread_t thread;
	void *result;

	cancelled->call = call;
	cancelled->go = cancelled->returned = 0;
	assert_int_equal(pthread_create(&thread, NULL, cancelled_run, cancelled), 0);
	cancelled->go = rounds != 0;
	for (volatile unsigned int i = 0; i < rounds; i++)
		;
	assert_int_equal(pthread_cancel(thread), 0);
	cancelled->go = 1;
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	return cancelled->returned;
}

static void create(struct cancelled *cancelled)
{
	cancelled->session = api_create(cancelled->config);
}

static void start(struct cancelled *cancelled)
{
	api_start(cancelled->session);
}

static void wait_end(struct cancelled *cancelled)
{
	gdrcap_wait_end(cancelled->session, UINT32_MAX);
}

static void wait_batch(struct cancelled *cancelled)
{
	const struct gdrcap_batch *batch;

	while (gdrcap_wait(gdrcap_get_queue(cancelled->session, 0), &batch, 1, -1) == 1)
		gdrcap_release(gdrcap_get_queue(cancelled->session, 0), &batch, 1);
}

static void stop(struct cancelled *cancelled)
{
	gdrcap_stop(cancelled->session, NULL);
}

static void destroy(struct cancelled *cancelled)
{
	gdrcap_destroy(cancelled->session);
}

/* No call leaves a lock held, or half of what it does. */
static void cancelled_anywhere(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct cancelled cancelled = { 0 };

	api_config(&config, "host", 0);
	api_set(config, "rate", "0.001mpps");
	cancelled.config = config;
	assert_int_equal(cancelled_in(create, &cancelled, 0), 1);
	assert_int_equal(cancelled_in(start, &cancelled, 0), 1);
	for (unsigned int i = 0; i < test_cases(1000, 3); i++) {
		assert_int_equal(cancelled_in(wait_batch, &cancelled, 700 * i), 0);
		assert_int_equal(cancelled_in(wait_end, &cancelled, 700 * i), 0);
	}
	assert_int_equal(cancelled_in(stop, &cancelled, 0), 1);
	assert_int_equal(gdrcap_wait_end(cancelled.session, 0), 1);
	assert_int_equal(cancelled_in(destroy, &cancelled, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor),
		cmocka_unit_test(asked_late),
		cmocka_unit_test(refused),
		cmocka_unit_test(waits_asleep),
		cmocka_unit_test(all_asleep),
		cmocka_unit_test(stopped_while_asleep),
		cmocka_unit_test(cancelled_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
