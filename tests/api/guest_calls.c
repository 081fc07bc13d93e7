/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that calls with nothing, calls back from its log function, or calls what it may not. */
#include "guest_cases.h"

#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- NULL ---- */

int nulls(void)
{
	struct gdrcap_session *session = running("host");
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	struct gdrcap_error error = { 0 };
	const struct gdrcap_batch *batches[4];
	struct gdrcap_gpu_queue gpu_queue;
	struct gdrcap_summary summary;
	struct gdrcap_counts counts;
	struct gdrcap_damage damage;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_cause cause;
	struct gdrcap_port port;
	struct gdrcap_rule rule;
	uint32_t stream;
	char *json;

	guest_config(&config, "validate");
	gdrcap_config_free(NULL);
	gdrcap_config_set_log(NULL, NULL, NULL);
	gdrcap_config_set_memory(NULL, NULL, 0);
	CHECK(gdrcap_config_get(NULL, "burst", 0) == NULL);
	CHECK(gdrcap_config_get(config, NULL, 0) == NULL);
	CHECK(gdrcap_config_load(NULL, "/dev/null", &error) == -EINVAL);
	CHECK(gdrcap_config_load(config, NULL, &error) == -EINVAL);
	CHECK(gdrcap_config_parse(NULL, NULL, NULL, 0, &error) == -EINVAL);
	CHECK(gdrcap_config_parse(config, NULL, NULL, 7, &error) == -EINVAL);
	CHECK(gdrcap_config_set(NULL, "burst", "1", &error) == -EINVAL);
	CHECK(gdrcap_config_set(config, NULL, NULL, NULL) == -EINVAL);
	CHECK(gdrcap_config_add(NULL, "port", "ring:a", &error) == -EINVAL);
	CHECK(gdrcap_config_add(config, "port", NULL, &error) == -EINVAL);
	CHECK(gdrcap_config_check(NULL, &error) == -EINVAL);
	CHECK(gdrcap_create(config, NULL, &error) == -EINVAL);
	CHECK(gdrcap_create(NULL, &(struct gdrcap_session *){ NULL }, &error) == -EINVAL);
	error.text[0] = '\0';
	CHECK(gdrcap_start(NULL, &error) == -EINVAL && strstr(error.text, "session"));
	error.text[0] = '\0';
	CHECK(gdrcap_stop(NULL, &error) == -EINVAL && strstr(error.text, "session"));
	CHECK(gdrcap_stop(NULL, NULL) == -EINVAL);
	CHECK(gdrcap_selftest(NULL, NULL, NULL, &error) == -EINVAL);
	CHECK(gdrcap_wait_end(NULL, 0) == -EINVAL);
	gdrcap_destroy(NULL);
	CHECK(gdrcap_get_summary(NULL, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_summary(session, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_summary(NULL, &summary, sizeof(summary)) == -EINVAL);
	CHECK(gdrcap_get_queue_counts(NULL, 0, &counts, sizeof(counts)) == -EINVAL);
	CHECK(gdrcap_get_queue_counts(session, 0, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_stream_counts(NULL, 0, &stream, &counts, sizeof(counts)) == -EINVAL);
	CHECK(gdrcap_get_stream_counts(session, 0, NULL, &counts, sizeof(counts)) == -EINVAL);
	CHECK(gdrcap_get_stream_counts(session, 0, &stream, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_ranges(NULL, 0, NULL, 0) == -EINVAL);
	CHECK(gdrcap_get_ranges(session, 0, NULL, 1) == -EINVAL);
	CHECK(gdrcap_get_cause(NULL, 0, &cause, sizeof(cause)) == -EINVAL);
	CHECK(gdrcap_get_cause(session, 0, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_port(NULL, 0, &port, sizeof(port)) == -EINVAL);
	CHECK(gdrcap_get_port(session, 0, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_rule(NULL, 0, &rule, sizeof(rule)) == -EINVAL);
	CHECK(gdrcap_get_rule(session, 0, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_damage(NULL, 0, &damage, sizeof(damage)) == -EINVAL);
	CHECK(gdrcap_get_damage(session, 0, NULL, 64) == -EINVAL);
	CHECK(gdrcap_get_message(NULL, 0) == NULL);
	CHECK(gdrcap_judge(NULL, NULL) == -EINVAL);
	CHECK(gdrcap_get_json(NULL, GDRCAP_JSON_ALL, &json) == -EINVAL);
	CHECK(gdrcap_get_json(session, GDRCAP_JSON_ALL, NULL) == -EINVAL);
	CHECK(gdrcap_config_get_json(NULL, NULL) == -EINVAL);
	CHECK(gdrcap_config_get_json(NULL, &json) == 0);
	gdrcap_free_json(json);
	gdrcap_free_json(NULL);
	CHECK(gdrcap_get_queue(NULL, 0) == NULL);
	CHECK(gdrcap_time_ns(NULL, 1) == 0);
	CHECK(gdrcap_poll(NULL, batches, 4) == -EINVAL);
	CHECK(gdrcap_poll(queue, NULL, 4) == -EINVAL);
	CHECK(gdrcap_wait(NULL, batches, 4, -1) == -EINVAL);
	CHECK(gdrcap_wait(queue, NULL, 4, -1) == -EINVAL);
	gdrcap_release(NULL, NULL, 4);
	gdrcap_release(NULL, &(const struct gdrcap_batch *){ NULL }, 1);
	gdrcap_release(queue, NULL, 4);
	gdrcap_release(queue, &(const struct gdrcap_batch *){ NULL }, 1);
	CHECK(gdrcap_release_after(NULL, batches, 1, NULL) == -EINVAL);
	CHECK(gdrcap_release_after(queue, NULL, 1, NULL) == -EINVAL);
	CHECK(gdrcap_release_after(queue, &(const struct gdrcap_batch *){ NULL }, 1, NULL) ==
	      -EINVAL);
	CHECK(gdrcap_get_gpu_queue(NULL, &gpu_queue, sizeof(gpu_queue)) == -EINVAL);
	CHECK(gdrcap_get_gpu_queue(queue, NULL, 64) == -EINVAL);
	gdrcap_destroy(session);
	return 0;
}

/* ---- signals ---- */

/* Of the thread; UINT64_MAX when it has gone. */
static uint64_t blocked_signals(const char *task)
{
	char path[300], line[256];
	uint64_t blocked = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	if (file)
		fclose(file);
	return blocked;
}

/* The program's handlers run on its own threads only, but for a thread's own fault. */
int signals(void)
{
	struct gdrcap_session *session = running("validate");
	const uint64_t usr1 = UINT64_C(1) << (SIGUSR1 - 1),
		       faults = UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1);
	DIR *dir = opendir("/proc/self/task");
	unsigned int threads = 0;
	struct dirent *entry;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		CHECK(blocked_signals(entry->d_name) & usr1);
		CHECK(!(blocked_signals(entry->d_name) & faults) ||
		      blocked_signals(entry->d_name) == UINT64_MAX);
		threads++;
	}
	closedir(dir);
	CHECK(threads >= 4);
	gdrcap_destroy(session);
	return 0;
}

/* ---- log functions ---- */

struct stopping {
	struct gdrcap_session *_Atomic session;
	const char *part; /* of the line that is answered with a stop */
	_Atomic int calls, ret;
	_Atomic unsigned int inside; /* calls of the log function at this time */
	char text[sizeof(((struct gdrcap_error *)0)->text)];
};

static void log_stop(void *context, enum gdrcap_log_level level, const char *line)
{
	struct stopping *stopping = context;
	struct gdrcap_session *session = atomic_load(&stopping->session);
	struct gdrcap_error error = { 0 };

	if (!session || !strstr(line, stopping->part) || atomic_fetch_add(&stopping->calls, 1))
		return;
	atomic_store(&stopping->ret, gdrcap_stop(session, &error));
	memcpy(stopping->text, error.text, sizeof(error.text));
	/* The results may be read as well. */
	gdrcap_get_summary(session, &(struct gdrcap_summary){ 0 }, sizeof(struct gdrcap_summary));
	gdrcap_get_message(session, 0);
	atomic_fetch_add(&stopping->calls, 1);
}

/* On the control thread, which stops nothing that waits for it: the run ends all the same. */
int callback_stop(void)
{
	static struct stopping stopping = { .part = "the link is up", .ret = 1 };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, "validate");
	gdrcap_config_set_log(config, log_stop, &stopping);
	session = guest_create(config);
	atomic_store(&stopping.session, session);
	guest_start(session);
	while (!gdrcap_wait_end(session, 1000))
		;
	CHECK(atomic_load(&stopping.calls) >= 2);
	CHECK(atomic_load(&stopping.ret) == -EDEADLK);
	CHECK(gdrcap_stop(session, NULL) == 0);
	gdrcap_destroy(session);
	return 0;
}

/* The saver's own thread says that the file has become too long. */
int callback_stop_self(void)
{
	static struct stopping stopping = { .part = "cannot write", .ret = 1 };
	const struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };
	char path[] = "/tmp/gdrcap-guest-XXXXXX";
	const int fd = mkstemp(path);
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	CHECK(fd >= 0);
	close(fd);
	guest_config(&config, "validate");
	api_set(config, "save", "%s", path);
	gdrcap_config_set_log(config, log_stop, &stopping);
	session = guest_create(config);
	atomic_store(&stopping.session, session);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	guest_start(session);
	while (!gdrcap_wait_end(session, 1000))
		;
	gdrcap_stop(session, NULL);
	CHECK(atomic_load(&stopping.calls) >= 2);
	CHECK(atomic_load(&stopping.ret) == -EDEADLK);
	CHECK(strstr(stopping.text, "another thread"));
	gdrcap_destroy(session);
	unlink(path);
	return 0;
}

static _Atomic unsigned int lines_inside, lines_most, lines_count;

static void log_count(void *context, enum gdrcap_log_level level, const char *line)
{
	const unsigned int inside = atomic_fetch_add(&lines_inside, 1) + 1;
	struct gdrcap_session **inner = context;
	struct gdrcap_config *config API_FREED = NULL;

	if (inside > atomic_load(&lines_most))
		atomic_store(&lines_most, inside);
	/* A call that logs by itself must not come back in here. */
	if (atomic_fetch_add(&lines_count, 1) == 0) {
		guest_config(&config, "validate");
		api_set(config, "port", "ring:inner");
		api_set(config, "tx_port", "ring:inner");
		gdrcap_config_set_log(config, log_count, NULL);
		CHECK(gdrcap_create(config, inner, NULL) == 0);
	}
	atomic_fetch_sub(&lines_inside, 1);
}

int callback_not_nested(void)
{
	struct gdrcap_session *session, *inner = NULL;
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, "validate");
	gdrcap_config_set_log(config, log_count, &inner);
	session = guest_create(config);
	CHECK(atomic_load(&lines_most) == 1 && atomic_load(&lines_count) > 1);
	gdrcap_destroy(inner);
	gdrcap_destroy(session);
	return 0;
}

/* ---- what callers promise ---- */

static void needs_assertions(void)
{
#ifndef GDRCAP_ASSERTIONS
	printf("built without -Dassertions=true\n");
	fflush(stdout);
	_exit(SKIPPED);
#endif
}

/* The child is to end by abort(), with these words. */
static int aborts(void (*body)(void), const char *words)
{
	char said[4096] = "";
	size_t used = 0;
	int pipes[2], status;
	ssize_t n;
	pid_t child;

	needs_assertions();
	CHECK(pipe(pipes) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		const struct rlimit none = { 0 };

		setrlimit(RLIMIT_CORE, &none);
		alarm(HANGS_S);
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		body();
		_exit(0);
	}
	close(pipes[1]);
	while (used < sizeof(said) - 1 &&
	       (n = read(pipes[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += (size_t)n;
	close(pipes[0]);
	CHECK(waitpid(child, &status, 0) == child);
	if (!strstr(said, words))
		fprintf(stderr, "status 0x%x, \"%s\"\n", (unsigned int)status, said);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(said, words));
	return 0;
}

static void release_twice(void)
{
	struct gdrcap_session *session = running("host");
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batch;

	CHECK(gdrcap_wait(queue, &batch, 1, -1) == 1);
	gdrcap_release(queue, &batch, 1);
	gdrcap_release(queue, &batch, 1);
}

int asserts_release(void)
{
	return aborts(release_twice, "batch 0 of receive queue 0 is given back twice");
}

static void release_after_twice(void)
{
	struct gdrcap_session *session = running("host");
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batch;

	CHECK(gdrcap_wait(queue, &batch, 1, -1) == 1);
	CHECK(gdrcap_release_after(queue, &batch, 1, NULL) == 1);
	gdrcap_release(queue, &batch, 1);
}

int asserts_release_after(void)
{
	return aborts(release_after_twice, "batch 0 of receive queue 0 is given back twice");
}

static void *poll_on(void *queue)
{
	const struct gdrcap_batch *batch;

	/* Nothing comes: the session does not run. */
	gdrcap_wait(queue, &batch, 1, -1);
	return NULL;
}

static void poll_twice(void)
{
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	pthread_t thread;

	guest_config(&config, "host");
	session = guest_create(config);
	CHECK(pthread_create(&thread, NULL, poll_on, gdrcap_get_queue(session, 0)) == 0);
	for (;;)
		gdrcap_poll(gdrcap_get_queue(session, 0), &batch, 1);
}

int asserts_poll(void)
{
	return aborts(poll_twice, "receive queue 0 is polled by two threads at the same time");
}

static struct gdrcap_session *_Atomic destroyed;

static void log_destroy(void *context, enum gdrcap_log_level level, const char *line)
{
	if (atomic_load(&destroyed))
		gdrcap_destroy(atomic_load(&destroyed));
}

static void destroy_in_callback(void)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	guest_config(&config, "validate");
	gdrcap_config_set_log(config, log_destroy, NULL);
	session = guest_create(config);
	atomic_store(&destroyed, session);
	guest_start(session);
	while (!gdrcap_wait_end(session, 1000))
		;
}

int asserts_destroy(void)
{
	return aborts(destroy_in_callback, "gdrcap_destroy() was called by a log function");
}
