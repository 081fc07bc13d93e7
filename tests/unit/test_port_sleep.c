/* SPDX-License-Identifier: BSD-3-Clause */
/* The sleep of a thread whose queue is empty: its length, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "port/port_sleep.h"

#define FOR_EVER_US 3600000000u

static void longer_and_longer(void **state)
{
	static const uint32_t us[] = { 10, 20, 40, 80, 100, 100 };
	struct port port = { .drops = NULL };
	struct port_sleep sleep;
	unsigned int idle = 200;

	port_sleep_init(&sleep, &port, 0, 100);
	assert_int_equal(sleep.fd, -1);
	for (int again = 0; again < 2; again++, idle += 5)
		for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
			port_sleep(&sleep, ++idle, true);
			assert_int_equal(sleep.naps.us, us[i]);
		}
	/* A worker that may not, and one that was not idle for long. */
	assert_true(thread_may_nap(&sleep.naps, IDLE_PAUSES + 1));
	assert_false(thread_may_nap(&sleep.naps, IDLE_PAUSES));
	port_sleep_init(&sleep, &port, 0, 0);
	assert_false(thread_may_nap(&sleep.naps, 1000000));
}

static void *make_readable(void *fd)
{
	eventfd_write(*(const int *)fd, 1);
	return NULL;
}

/* Else this test does not end. */
static void the_socket_ends_it(void **state)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	struct port_sleep sleep = { .naps.most_us = FOR_EVER_US, .fd = fd };
	pthread_t writer;

	for (unsigned int round = 0; round < 100; round++) {
		eventfd_t value;

		assert_int_equal(pthread_create(&writer, NULL, make_readable, &sleep.fd), 0);
		port_sleep(&sleep, 200, true);
		assert_int_equal(sleep.woken, 1);
		assert_true(sleep.naps.us == 0);
		pthread_join(writer, NULL);
		assert_int_equal(eventfd_read(fd, &value), 0);
		/* A frame came, and then none did. */
		sleep.idle = 0;
	}
	close(fd);
}

/* A socket that is readable for nothing, or has an error, does not keep the thread awake. */
static void readable_for_nothing(void **state)
{
	struct port_sleep sleep = { .naps.most_us = 40 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	sleep.fd = pair[0];
	port_sleep(&sleep, 200, true);
	assert_int_equal(sleep.woken, 1);
	for (unsigned int i = 1; i < 5; i++)
		port_sleep(&sleep, 200 + i, true);
	assert_int_equal(sleep.naps.us, 40);
	close(pair[0]);
}

/* Frames that come slowly are waited for in sleep, fast ones awake. The clock hardly moves: its
 * ticks are so short. */
static void slow_frames_are_gathered(void **state)
{
	static const struct {
		uint64_t gone_us, came;
		bool gathered, renewed;
	} cases[] = {
		{ 100, 10, true, true }, /* 128 in 1280 us */
		{ 100, 60, true, true }, /* in 213 us */
		{ 100, 70, false, false }, { 600, 6000, false, true }, { 100, 0, false, false },
		{ 40, 1, false, false },   { 1100, 1, false, true },
	};
	struct port_sleep sleep = { .gather_us = 500, .room = 128, .us_tsc = UINT64_C(1) << 40 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sleep.frames = 1000;
		sleep.since = rte_rdtsc() - cases[i].gone_us * sleep.us_tsc;
		assert_int_equal(port_sleep_gather(&sleep, 1000 + cases[i].came),
				 cases[i].gathered);
		assert_int_equal(rte_rdtsc() - sleep.since < sleep.us_tsc, cases[i].renewed);
		assert_int_equal(sleep.frames, 1000 + (cases[i].renewed ? cases[i].came : 0));
	}
	/* Where a sleep may not be long, it is not worth while. */
	sleep.gather_us = 100;
	sleep.since = rte_rdtsc() - 100 * sleep.us_tsc;
	assert_false(port_sleep_gather(&sleep, sleep.frames + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_and_longer),
		cmocka_unit_test(the_socket_ends_it),
		cmocka_unit_test(readable_for_nothing),
		cmocka_unit_test(slow_frames_are_gathered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
