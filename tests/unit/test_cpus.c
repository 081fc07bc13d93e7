/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs a session takes beside the sessions of this process and of another one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/session.h"

#define CPUS 6u

/* No CPUs of this machine: nothing runs on them here. */
static int first_cpu;

/* A session with two threads; false: it did not take these, or shares them. */
static bool takes(struct gdrcap_session *session, uint32_t one, uint32_t other, bool shared)
{
	session->sending.count = 2;
	session->workers.cpu_count = CPUS;
	for (uint32_t i = 0; i < CPUS; i++)
		session->workers.cpus[i] = first_cpu + (int)i;
	session_cpus_take(session);
	return session->workers.cpus[0] == first_cpu + (int)one &&
	       session->workers.cpus[1] == first_cpu + (int)other &&
	       session->workers.cpus_shared == shared;
}

static struct gdrcap_session *session_new(void)
{
	struct gdrcap_session *session = calloc(1, sizeof(*session));

	assert_non_null(session);
	return session;
}

/* What another process, that is created before, takes when asked for. */
struct other {
	int ask, answer;
	pid_t pid;
};

static struct other other_begin(uint32_t one, uint32_t another, bool shared)
{
	int ask[2], answer[2];
	struct other other;
	char word;

	assert_int_equal(pipe(ask) | pipe(answer), 0);
	other = (struct other){ ask[1], answer[0], fork() };
	assert_true(other.pid >= 0);
	if (other.pid == 0) {
		close(ask[1]);
		if (read(ask[0], &word, 1) == 1) {
			word = (char)takes(session_new(), one, another, shared);
			(void)!write(answer[1], &word, 1);
		}
		/* It has them until it is killed. */
		for (;;)
			pause();
	}
	close(ask[0]);
	close(answer[1]);
	return other;
}

static bool other_takes(const struct other *other)
{
	char word = 0;

	assert_int_equal(write(other->ask, "", 1), 1);
	assert_int_equal(read(other->answer, &word, 1), 1);
	return word;
}

static void other_end(const struct other *other)
{
	assert_int_equal(kill(other->pid, SIGKILL), 0);
	assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
	close(other->ask);
	close(other->answer);
}

static void processes(void **state)
{
	const struct other second = other_begin(2, 3, false), third = other_begin(4, 5, false);
	const struct other fourth = other_begin(0, 1, true);
	struct gdrcap_session *session = session_new(), *more = session_new();

	assert_true(takes(session, 0, 1, false));
	assert_true(other_takes(&second));
	assert_true(other_takes(&third));
	assert_true(other_takes(&fourth));
	/* One that has ended gives its CPUs back. */
	other_end(&second);
	assert_true(takes(more, 2, 3, false));
	session_cpus_give(more);
	session_cpus_give(session);
	assert_true(takes(session, 0, 1, false));
	session_cpus_give(session);
	other_end(&third);
	other_end(&fourth);
	free(more);
	free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(processes) };

	first_cpu = 512 + (int)(getpid() % 80) * (int)CPUS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
