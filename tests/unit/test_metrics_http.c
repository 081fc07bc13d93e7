/* SPDX-License-Identifier: BSD-3-Clause */
/* app/metrics_http.c: who is slow on purpose is not kept. */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "metrics_http.h"
#include "signals.h"

#define DRIPS 200

static void test_drips(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct metrics_http *http;
	struct pollfd client = { .events = POLLIN };
	int ended = 0;

	if (!metrics_http_possible())
		skip();
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(bind(server, (const struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(server, 4), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&address, &bytes), 0);
	http = metrics_http_start(server);
	assert_non_null(http);
	client.fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client.fd, (const struct sockaddr *)&address, bytes), 0);
	/* Now it is nobody's time yet; each byte ends a silence. */
	for (int i = 0; i < 10; i++) {
		metrics_http_set(http, strdup("x 1\n"), 4, clock_ns());
		assert_int_equal(send(client.fd, "G", 1, 0), 1);
		assert_int_equal(poll(&client, 1, 10), 0);
	}
	/* As if 11 s had gone. It may take a while until the connection is seen by the daemon. */
	for (int i = 0; i < DRIPS && !ended; i++) {
		metrics_http_set(http, strdup("x 1\n"), 4, clock_ns() + UINT64_C(11000000000));
		ended = send(client.fd, "G", 1, 0) != 1 || poll(&client, 1, 50) == 1;
	}
	assert_true(ended);
	close(client.fd);
	metrics_http_stop(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
