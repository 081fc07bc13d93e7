/* SPDX-License-Identifier: BSD-3-Clause */
/* What the scenarios of test_api_guest.c share, and their names. Each runs in a process of its own,
 * in which a CHECK that fails ends it with 1. */
#ifndef GDRCAP_TEST_GUEST_H
#define GDRCAP_TEST_GUEST_H

#include "api.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define HANGS_S 120  /* an alarm ends a child that hangs; nothing here waits for it */
#define EXIT_MS 500u /* as gdrcap.h says */

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

extern bool on_gpu;

static inline uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A loopback that goes on until it is ended. */
static inline void guest_config(struct gdrcap_config **config, const char *consumer)
{
	api_config(config, consumer, 0);
	if (!on_gpu)
		return;
	api_set(*config, "gpu", "0");
	api_set(*config, "memory", "device");
}

static inline struct gdrcap_session *guest_create(const struct gdrcap_config *config)
{
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_create(config, &session, &error);

	if (ret == -ENODEV && on_gpu) {
		printf("no CUDA device: %s\n", error.text);
		fflush(stdout);
		_exit(SKIPPED);
	}
	if (ret)
		fprintf(stderr, "create: %d, %s\n", ret, error.text);
	CHECK(ret == 0);
	return session;
}

static inline void guest_start(struct gdrcap_session *session)
{
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_start(session, &error);

	if (ret)
		fprintf(stderr, "start: %d, %s\n", ret, error.text);
	CHECK(ret == 0);
}

/* Until `frames` more than now have come. */
static inline void wait_frames(const struct gdrcap_session *session, uint64_t frames)
{
	struct gdrcap_summary summary;
	uint64_t until;

	CHECK(gdrcap_get_summary(session, &summary, sizeof(summary)) == 0);
	until = summary.total.received + frames;
	while (summary.total.received < until) {
		sched_yield();
		CHECK(gdrcap_get_summary(session, &summary, sizeof(summary)) == 0);
	}
}

static inline struct gdrcap_session *running(const char *consumer)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, consumer);
	session = guest_create(config);
	guest_start(session);
	if (!strcmp(consumer, "validate"))
		wait_frames(session, 1000);
	return session;
}

/* It came to its end in order. */
static inline void child_ended(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	if (!WIFEXITED(status))
		fprintf(stderr, "child: signal %d\n", WTERMSIG(status));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void parent_goes_on(struct gdrcap_session *session)
{
	struct gdrcap_summary summary;
	struct gdrcap_error error = { 0 };

	wait_frames(session, 1000);
	CHECK(gdrcap_stop(session, &error) == 0);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	CHECK(summary.total.damaged == 0 && summary.total.received != 0);
	gdrcap_destroy(session);
}

/* A thread that waits for ends for ever. */
static inline void *waiter(void *arg)
{
	for (;;)
		gdrcap_wait_end(arg, 10);
	return NULL;
}

/* 0, SKIPPED or 1. */
int exit_main(void);
int exit_stopped(void);
int exit_late(void);
int exit_unused(void);
int exit_two(void);
int exit_thread(void);
int exit_holding(void);
int exit_create(void);
int exit_callback(void);
int exit_sending(void);
int fork_exit(void);
int fork_calls(void);
int fork_clone(void);
int fork_after(void);
int fork_before(void);
int killed(void);
int two_at_once(void);
int old_dirs(void);
int nulls(void);
int signals(void);
int callback_stop(void);
int callback_stop_self(void);
int callback_not_nested(void);
int asserts_release(void);
int asserts_release_after(void);
int asserts_poll(void);
int asserts_destroy(void);

#endif
