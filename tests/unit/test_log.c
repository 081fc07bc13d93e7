/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to the log that they belong to, DPDK's among them, and error texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "base/log.h"
#include "base/log_dpdk.h"
#include "base/thread.h"

static struct gdrcap_error error;

/* A sink that keeps its last line. */
struct place {
	struct log log;
	int lines, level;
	char line[1200];
};

static void keep(void *context, enum gdrcap_log_level level, const char *line)
{
	struct place *place = context;

	place->lines++;
	place->level = (int)level;
	snprintf(place->line, sizeof(place->line), "%s", line);
}

static void place_open(struct place *place)
{
	*place = (struct place){ .log = { .line = keep, .context = place } };
	log_open(&place->log);
}

static void lines_are_clean(void **state)
{
	char text[2000];
	struct place to;

	place_open(&to);
	LOG_SCOPE(&to.log);
	log_debug("a %d\nb\033[31m\n", 5);
	assert_string_equal(to.line, "a 5 b [31m");
	assert_int_equal(to.level, GDRCAP_LOG_DEBUG);
	/* C1: U+009B is ESC [, as UTF-8 and as a byte of its own, also where it is written too long. What
	 * only has such a byte in it is shown. */
	log_debug("\xc2\x9b"
		  "31m|\x9b|\xe0\x82\x9b|\xc2\x80\xc2\x9f|\xc2\xa0\xc3\x9b\xe1\xbe\x9b"
		  "\xf0\x9f\x98\x80|\xf8\x88\x82|\xc2");
	assert_string_equal(to.line, "  31m| |\xe0  |    |\xc2\xa0\xc3\x9b\xe1\xbe\x9b"
				     "\xf0\x9f\x98\x80|\xf8  |\xc2");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
	assert_int_equal(strlen(to.line), 1023);
	log_close(&to.log);
}

static void errors_are_cut(void **state)
{
	char text[2000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(error_set(&error, -EINVAL, "a\xc2\x9b%s", "\033]0;"), -EINVAL);
	assert_string_equal(error.text, "a   ]0;");
	assert_int_equal(-EIO, error_set(NULL, -EIO, "x"));
	assert_int_equal(-EIO, error_set(&error, -EIO, "cause %s", text));
	assert_int_equal(error.code, -EIO);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	error_set(&error, -EIO, "cause");
	error_set(&error, -EIO, "where: %s", error.text); /* prefixing what is there */
	assert_string_equal(error.text, "where: cause");
}

static void log_as(const struct log *log, const char *line)
{
	LOG_SCOPE(log);
	log_info("%s", line);
}

static void scopes_choose_the_log(void **state)
{
	struct log never = { 0 };
	struct place a, b;

	place_open(&a);
	place_open(&b);
	/* Of nobody: the oldest's. */
	log_info("nobody's");
	assert_string_equal(a.line, "nobody's");
	assert_int_equal(b.lines, 0);
	{
		LOG_SCOPE(&b.log);
		log_info("b's");
		log_as(&a.log, "a's");
		log_info("b's again");
	}
	assert_int_equal(a.lines, 2);
	assert_string_equal(a.line, "a's");
	assert_int_equal(b.lines, 2);
	assert_string_equal(b.line, "b's again");
	/* They end in any order; a line for one that is closed is nobody else's. */
	{
		LOG_SCOPE(&a.log);
		log_close(&a.log);
		log_info("too late");
	}
	assert_int_equal(a.lines, 2);
	assert_int_equal(b.lines, 2);
	log_info("b is the oldest now");
	assert_int_equal(b.lines, 3);
	log_close(&a.log);
	log_close(&never);
	log_close(&b.log);
	log_info("not shown");
	assert_int_equal(b.lines, 3);
}

static void thread_logs(void *arg)
{
	log_info("%s", (const char *)arg);
}

static void threads_inherit(void **state)
{
	struct thread thread = { 0 };
	struct place a, b;

	place_open(&a);
	place_open(&b);
	{
		LOG_SCOPE(&b.log);
		assert_int_equal(
			thread_start(&thread, "test", NULL, thread_logs, (void *)"by b's", &error),
			0);
	}
	thread_join(&thread);
	/* A warning for want of an lcore may come before. */
	assert_string_equal(b.line, "by b's");
	assert_int_equal(a.lines, 0);
	log_close(&b.log);
	log_close(&a.log);
}

static void lines_wait_for_locks(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct place a, b;

	place_open(&a);
	place_open(&b);
	log_lock(&lock);
	log_as(&b.log, "one");
	log_as(&a.log, "two");
	assert_int_equal(a.lines + b.lines, 0);
	log_close(&a.log);
	log_unlock(&lock);
	assert_string_equal(b.line, "one");
	assert_int_equal(b.lines, 1);
	assert_int_equal(a.lines, 0);
	log_close(&b.log);
}

static void dpdk_logs(void *arg)
{
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "%s\n", (const char *)arg);
}

/* DPDK calls with locks of its own: its lines are told later. */
static void drivers_words_come_along(void **state)
{
	struct place a, b;

	assert_int_equal(log_dpdk_take(), 0);
	place_open(&a);
	place_open(&b);
	{
		LOG_SCOPE(&b.log);
		dpdk_logs((void *)"net_x: no such \033 thing");
		assert_int_equal(b.lines, 0);
		error_set(&error, -EIO, "it fails");
		assert_int_equal(error_add_words(&error, -EIO), -EIO);
		assert_string_equal(error.text, "it fails; DPDK says: net_x: no such   thing");
		assert_int_equal(error_add_words(NULL, -EIO), -EIO);
		dpdk_logs((void *)"Port 0: -5");
		error_set(&error, -EIO, "it fails");
		error_add_words(&error, -EIO);
		assert_string_equal(error.text, "it fails; DPDK says: net_x: no such   thing; "
						"Port 0: -5");
		log_info("mine");
		assert_int_equal(b.lines, 3);
		assert_string_equal(b.line, "mine");
		/* In pieces, and not at an end. */
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "first ");
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "line\nsecond line\n");
	}
	assert_int_equal(b.lines, 5);
	assert_string_equal(b.line, "DPDK: second line");
	assert_int_equal(b.level, GDRCAP_LOG_WARNING);
	{
		char text[sizeof(error.text)];

		LOG_SCOPE(&b.log);
		/* What was said in another call is no answer to this one. */
		error_set(&error, -EIO, "it fails");
		error_add_words(&error, -EIO);
		assert_string_equal(error.text, "it fails");
		dpdk_logs((void *)"stale");
		log_words_forget();
		error_add_words(&error, -EIO);
		assert_string_equal(error.text, "it fails");
		dpdk_logs((void *)"cut to fit");
		memset(text, 'x', sizeof(text));
		text[sizeof(text) - 15] = '\0';
		error_set(&error, -EIO, "%s", text);
		error_add_words(&error, -EIO);
		assert_string_equal(error.text + strlen(text), "; DPDK says: c");
	}
	assert_int_equal(a.lines, 0);
	log_close(&b.log);
	log_close(&a.log);
}

static void *nobodys_run(void *arg)
{
	dpdk_logs((void *)"of nobody's");
	return arg;
}

/* Those of a session's worker, and of EAL's own threads, are told by a thread that has time. */
static void threads_leave_drivers_lines(void **state)
{
	struct thread thread = { 0 };
	pthread_t nobodys;
	struct place a, b;

	place_open(&a);
	place_open(&b);
	{
		LOG_SCOPE(&b.log);
		assert_int_equal(
			thread_start(&thread, "test", NULL, dpdk_logs, (void *)"of b's", &error),
			0);
		thread_join(&thread);
	}
	assert_string_equal(b.line, "DPDK: of b's");
	assert_int_equal(a.lines, 0);
	assert_int_equal(pthread_create(&nobodys, NULL, nobodys_run, NULL), 0);
	pthread_join(nobodys, NULL);
	{
		LOG_SCOPE(&b.log);
	}
	assert_string_equal(b.line, "DPDK: of b's");
	{
		LOG_SCOPE(&a.log);
	}
	assert_string_equal(a.line, "DPDK: of nobody's");
	log_close(&b.log);
	log_close(&a.log);
}

static struct {
	_Atomic int inside, closing, closed, used_after;
} meeting;

static void meet(void *context, enum gdrcap_log_level level, const char *line)
{
	atomic_store(&meeting.inside, 1);
	while (!atomic_load(&meeting.closing))
		sched_yield();
	/* Whoever waits for us cannot say so; who does not would be through in this time. */
	for (int i = 0; i < 10000; i++) {
		sched_yield();
		atomic_fetch_or(&meeting.used_after, atomic_load(&meeting.closed));
	}
}

static void *meeting_run(void *arg)
{
	LOG_SCOPE((const struct log *)arg);
	log_info("come in");
	return NULL;
}

/* Who closes a log waits till nobody is in its sink. */
static void close_waits(void **state)
{
	struct log log = { .line = meet };
	pthread_t thread;

	log_open(&log);
	assert_int_equal(pthread_create(&thread, NULL, meeting_run, &log), 0);
	while (!atomic_load(&meeting.inside))
		sched_yield();
	assert_false(log_is_idle());
	atomic_store(&meeting.closing, 1);
	log_close(&log);
	atomic_store(&meeting.closed, 1);
	pthread_join(thread, NULL);
	assert_int_equal(meeting.used_after, 0);
	assert_true(log_is_idle());
}

#define LIVES 300

struct owned {
	const char *name;
	_Atomic int closed, wrong, lines;
};

static void own_only(void *context, enum gdrcap_log_level level, const char *line)
{
	struct owned *owned = context;

	if (atomic_load(&owned->closed) || !strstr(line, owned->name))
		atomic_store(&owned->wrong, 1);
	atomic_fetch_add(&owned->lines, 1);
}

/* A log that comes and goes, and whose context goes with it. */
static void *lives_run(void *arg)
{
	const char *name = arg;
	uintptr_t wrong = 0;

	for (int i = 0; i < LIVES; i++) {
		struct owned *owned = calloc(1, sizeof(*owned));
		struct log log = { .line = own_only, .context = owned };

		owned->name = name;
		log_open(&log);
		{
			LOG_SCOPE(&log);
			log_info("ours: %s", name);
			rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "driver's: %s\n", name);
			log_info("%s", name);
		}
		log_close(&log);
		atomic_store(&owned->closed, 1);
		wrong |= (uintptr_t)(owned->wrong || owned->lines != 3);
		free(owned);
	}
	return (void *)wrong;
}

static void logs_come_and_go(void **state)
{
	const char *const names[] = { "anna", "bert", "carl" };
	pthread_t thread[3];

	assert_int_equal(log_dpdk_take(), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, lives_run, (void *)(uintptr_t)names[i]),
			0);
	for (int i = 0; i < 3; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_clean),
		cmocka_unit_test(errors_are_cut),
		cmocka_unit_test(scopes_choose_the_log),
		cmocka_unit_test(threads_inherit),
		cmocka_unit_test(lines_wait_for_locks),
		cmocka_unit_test(drivers_words_come_along),
		cmocka_unit_test(threads_leave_drivers_lines),
		cmocka_unit_test(close_waits),
		cmocka_unit_test(logs_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
