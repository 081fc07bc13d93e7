/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that ends, in all ways but by a signal, while the library works. */
#include "guest_cases.h"

#include <dirent.h>

#include <gdrcap_device_tx.cuh>

/* Threads of this process whose names begin so. */
static unsigned int threads_named(const char *begin)
{
	struct dirent *entry;
	unsigned int count = 0;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (entry = readdir(dir)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file))
			count += strncmp(name, begin, strlen(begin)) == 0;
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return count;
}

static _Atomic uint64_t exit_ms; /* when the process began to end */

/* Runs before the library's handler. */
static void exit_begins(void)
{
	atomic_store(&exit_ms, now_ms());
}

/*
 * Runs after the library's handler, since it was registered before there was a session: that has
 * waited for the session's threads, or for as long as it may.
 */
static void exit_passed(void)
{
	const bool in_time = now_ms() - atomic_load(&exit_ms) < EXIT_MS / 2;

	/* One that has left may still be on its way out of the kernel; one that was not told to leave
	 * stays until the alarm. */
	while (in_time && threads_named("gdrcap-") != 0)
		sched_yield();
}

static void exit_watch(void)
{
	CHECK(atexit(exit_passed) == 0);
}

int exit_main(void)
{
	exit_watch();
	running("validate");
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

int exit_stopped(void)
{
	struct gdrcap_session *session;

	exit_watch();
	session = running("validate");
	CHECK(gdrcap_stop(session, NULL) == 0);
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

static struct gdrcap_session *late; /* what a static object of C++ would hold */

static void destructor(void)
{
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_error error = { 0 };
	struct gdrcap_config *config API_FREED = NULL;

	exit_passed();
	guest_config(&config, "validate");
	CHECK(gdrcap_create(config, &session, &error) == -ESHUTDOWN);
	if (!late)
		return;
	/* What was in flight is no loss of the wire's, and this no verdict. */
	CHECK(gdrcap_stop(late, &error) == -ESHUTDOWN && strstr(error.text, "before exit()"));
	gdrcap_get_summary(late, &summary, sizeof(summary));
	CHECK(summary.failed);
	gdrcap_destroy(late);
}

/* Its destructor runs after the library has heard of the end. */
int exit_late(void)
{
	CHECK(atexit(destructor) == 0);
	late = running("validate");
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

/* The same when all was destroyed, and EAL with it. */
int exit_unused(void)
{
	CHECK(atexit(destructor) == 0);
	gdrcap_destroy(running("validate"));
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

/* Two sessions, one of which never started. */
int exit_two(void)
{
	struct gdrcap_config *config API_FREED = NULL;

	exit_watch();
	guest_config(&config, "validate");
	api_set(config, "port", "ring:other");
	api_set(config, "tx_port", "ring:other");
	guest_create(config);
	running("validate");
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

static void *poller(void *arg)
{
	struct gdrcap_queue *queue = arg;
	const struct gdrcap_batch *batches[8];

	for (;;) {
		int n = gdrcap_wait(queue, batches, 8, 1000);

		/* It may look at what it has while the process ends. */
		for (int i = 0; i < n; i++)
			CHECK(batches[i]->pkts[0].len != 0);
		if (n > 0)
			gdrcap_release(queue, batches, (unsigned int)n);
	}
	return NULL;
}

static void *exiter(void *arg)
{
	wait_frames(arg, 5000);
	exit(0);
}

/* As a C++ program, whose other threads go on while one ends it. */
int exit_thread(void)
{
	struct gdrcap_session *session;
	pthread_t polls, waits, exits;

	exit_watch();
	session = running("host");
	CHECK(atexit(exit_begins) == 0);
	CHECK(pthread_create(&polls, NULL, poller, gdrcap_get_queue(session, 0)) == 0);
	CHECK(pthread_create(&waits, NULL, waiter, session) == 0);
	CHECK(pthread_create(&exits, NULL, exiter, session) == 0);
	for (;;) {
		struct gdrcap_summary summary;

		gdrcap_get_summary(session, &summary, sizeof(summary));
	}
}

/* Who has batches and gives none back. */
int exit_holding(void)
{
	struct gdrcap_session *session;
	const struct gdrcap_batch *batches[8];

	exit_watch();
	session = running("host");
	CHECK(gdrcap_wait(gdrcap_get_queue(session, 0), batches, 8, -1) > 0);
	CHECK(atexit(exit_begins) == 0);
	return 0;
}

/* In a kernel's place. Its name is one of those that exit_passed() waits for. */
static void *sending_kernel(void *arg)
{
	struct gdrcap_gpu_tx tx;
	uint64_t seq = 0;
	int n;

	pthread_setname_np(pthread_self(), "gdrcap-kernel");
	CHECK(gdrcap_get_gpu_tx(gdrcap_get_tx(arg, 0), &tx, sizeof(tx)) == 0);
	while ((n = gdrcap_gpu_tx_reserve(tx, seq, 32)) >= 0) {
		for (int i = 0; i < n; i++) {
			memset(gdrcap_gpu_tx_data(tx, seq + (uint64_t)i), 0, 60);
			gdrcap_gpu_tx_set_bytes(tx, seq + (uint64_t)i, 60);
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

/* A running kernel that sends is told to leave. */
int exit_sending(void)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_tx_counts counts = { 0 };
	pthread_t kernel;

	exit_watch();
	guest_config(&config, "host");
	api_unset(config, "pattern");
	api_unset(config, "frames");
	api_set(config, "sender", "gpu");
	session = guest_create(config);
	guest_start(session);
	CHECK(pthread_create(&kernel, NULL, sending_kernel, session) == 0);
	CHECK(atexit(exit_begins) == 0);
	while (counts.sent == 0)
		CHECK(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)) == 0);
	return 0;
}

struct exit_at {
	const char *part;  /* of the line */
	_Atomic int again; /* lines since */
};

static void log_exit(void *context, enum gdrcap_log_level level, const char *line)
{
	struct exit_at *at = context;

	if (atomic_load(&at->again))
		CHECK(!"called while the process ends");
	if (!strstr(line, at->part))
		return;
	atomic_store(&at->again, 1);
	exit(0);
}

/* Inside of gdrcap_create(). */
int exit_create(void)
{
	static struct exit_at at = { .part = "memory:" };
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, "validate");
	gdrcap_config_set_log(config, log_exit, &at);
	guest_create(config);
	return 1;
}

/* On the control thread. */
int exit_callback(void)
{
	static struct exit_at at = { .part = "the link is up" };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, "validate");
	gdrcap_config_set_log(config, log_exit, &at);
	session = guest_create(config);
	guest_start(session);
	while (!gdrcap_wait_end(session, 1000))
		;
	return 1;
}
