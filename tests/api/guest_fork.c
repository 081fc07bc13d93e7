/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that forks, or is killed, while the library works. */
#include "guest_cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- fork ---- */

static void child_is_refused(struct gdrcap_session *session, struct gdrcap_queue *queue)
{
	const struct gdrcap_batch *batches[4];
	struct gdrcap_error error = { 0 };
	struct gdrcap_gpu_queue gpu_queue;
	struct gdrcap_session *second;
	struct gdrcap_summary summary;
	struct gdrcap_counts counts;
	struct gdrcap_damage damage;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_cause cause;
	struct gdrcap_port port;
	struct gdrcap_rule rule;
	uint32_t stream;

	guest_config(&config, "validate");
	CHECK(gdrcap_create(config, &second, &error) == -EPERM && !second);
	CHECK(strstr(error.text, "fork before the first session"));
	CHECK(gdrcap_start(session, &error) == -EPERM);
	CHECK(gdrcap_selftest(session, NULL, NULL, &error) == -EPERM);
	CHECK(gdrcap_wait_end(session, UINT32_MAX) == -EPERM);
	CHECK(gdrcap_get_summary(session, &summary, sizeof(summary)) == -EPERM);
	CHECK(gdrcap_get_queue_counts(session, 0, &counts, sizeof(counts)) == -EPERM);
	CHECK(gdrcap_get_stream_counts(session, 0, &stream, &counts, sizeof(counts)) == -EPERM);
	CHECK(gdrcap_get_ranges(session, 0, NULL, 0) == -EPERM);
	CHECK(gdrcap_get_cause(session, 0, &cause, sizeof(cause)) == -EPERM);
	CHECK(gdrcap_get_port(session, 0, &port, sizeof(port)) == -EPERM);
	CHECK(gdrcap_get_rule(session, 0, &rule, sizeof(rule)) == -EPERM);
	CHECK(gdrcap_get_damage(session, 0, &damage, sizeof(damage)) == -EPERM);
	CHECK(gdrcap_get_message(session, 0) == NULL);
	CHECK(gdrcap_get_queue(session, 0) == NULL);
	CHECK(gdrcap_poll(queue, batches, 4) == -EPERM);
	CHECK(gdrcap_wait(queue, batches, 4, -1) == -EPERM);
	CHECK(gdrcap_time_ns(queue, 1) == 0);
	CHECK(gdrcap_release_after(queue, batches, 1, NULL) == -EPERM);
	gdrcap_release(queue, batches, 4);
	CHECK(gdrcap_get_gpu_queue(queue, &gpu_queue, sizeof(gpu_queue)) == -EPERM);
	CHECK(gdrcap_wait_on_stream(queue, 0, NULL, &error) == -EPERM);
	CHECK(gdrcap_release_on_stream(queue, 0, NULL, &error) == -EPERM);
	memset(&error, 0, sizeof(error));
	CHECK(gdrcap_stop(session, &error) == -EPERM);
	CHECK(strstr(error.text, "child"));
	gdrcap_destroy(session);
}

/* What a process that forks often does: the child says something and exits. */
int fork_exit(void)
{
	struct gdrcap_session *session = running("validate");
	const pid_t child = fork();
	struct rusage usage;

	if (child == 0) {
		alarm(HANGS_S);
		exit(0);
	}
	child_ended(child);
	/* It waited for a thread that a child has not: 5,000 sleeps of 1 ms. */
	CHECK(getrusage(RUSAGE_CHILDREN, &usage) == 0 && usage.ru_nvcsw < 1000);
	parent_goes_on(session);
	return 0;
}

int fork_calls(void)
{
	struct gdrcap_session *session = running("validate");
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const pid_t child = fork();

	if (child == 0) {
		alarm(HANGS_S);
		child_is_refused(session, queue);
		exit(0);
	}
	child_ended(child);
	parent_goes_on(session);
	return 0;
}

/* A child's child, and one that no handler of fork() hears of. */
int fork_clone(void)
{
	struct gdrcap_session *session = running("validate");
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (child == 0) {
		const pid_t second = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		alarm(HANGS_S);
		child_is_refused(session, queue);
		if (second)
			child_ended(second);
		_exit(0);
	}
	child_ended(child);
	parent_goes_on(session);
	return 0;
}

/* A process may destroy all and fork: EAL's threads are still its own. */
int fork_after(void)
{
	struct gdrcap_session *session = running("validate");
	pid_t child;

	parent_goes_on(session);
	child = fork();
	if (child == 0) {
		struct gdrcap_error error = { 0 };
		struct gdrcap_config *config API_FREED = NULL;

		alarm(HANGS_S);
		guest_config(&config, "validate");
		CHECK(gdrcap_create(config, &session, &error) == -EPERM);
		exit(0);
	}
	child_ended(child);
	return 0;
}

/* The way to do it: both have sessions of their own. */
int fork_before(void)
{
	const pid_t child = fork();

	alarm(HANGS_S);
	parent_goes_on(running("validate"));
	if (child)
		child_ended(child);
	return 0;
}

/* ---- run-time directories ---- */

/* A new root for them; DPDK asks this variable first. */
static void runtime_root(char *root, size_t bytes)
{
	snprintf(root, bytes, "/tmp/gdrcap-guest-XXXXXX");
	CHECK(mkdtemp(root));
	CHECK(setenv("RUNTIME_DIRECTORY", root, 1) == 0);
}

/* In ROOT/dpdk; counts folders of processes. */
static unsigned int process_dirs(const char *root)
{
	char path[300];
	struct dirent *entry;
	unsigned int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/dpdk", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL)
		count += strncmp(entry->d_name, "gdrcap-", 7) == 0;
	if (dir)
		closedir(dir);
	return count;
}

static void remove_tree(const char *root)
{
	char command[400];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	CHECK(system(command) == 0);
}

/* A process with a running session, which says so. */
static pid_t spawn_running(int *said)
{
	int pipes[2];
	pid_t child;

	CHECK(pipe(pipes) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		alarm(HANGS_S);
		running("validate");
		CHECK(write(pipes[1], "r", 1) == 1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	*said = pipes[0];
	return child;
}

static void run_once(void)
{
	const pid_t child = fork();

	if (child == 0) {
		alarm(HANGS_S);
		parent_goes_on(running("validate"));
		exit(0);
	}
	child_ended(child);
}

int killed(void)
{
	char root[64];

	runtime_root(root, sizeof(root));
	for (int i = 0; i < 3; i++) {
		int said, status;
		char word;
		const pid_t child = spawn_running(&said);

		CHECK(read(said, &word, 1) == 1);
		close(said);
		CHECK(kill(child, SIGKILL) == 0);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	}
	run_once();
	CHECK(process_dirs(root) == 0);
	remove_tree(root);
	return 0;
}

/* Two that run at once have nothing of each other. */
int two_at_once(void)
{
	char root[64];
	int said, status;
	char word;
	pid_t child;

	runtime_root(root, sizeof(root));
	child = spawn_running(&said);
	CHECK(read(said, &word, 1) == 1);
	run_once();
	CHECK(waitpid(child, &status, WNOHANG) == 0);
	CHECK(process_dirs(root) == 0);
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	close(said);
	remove_tree(root);
	return 0;
}

static void old_dir(const char *root, const char *name, const char *file)
{
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/dpdk/%s", root, name);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/dpdk/%s/%s", root, name, file);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
}

static bool there(const char *root, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return access(path, F_OK) == 0;
}

/* What earlier versions left; and what looks so and is not, or is still in use. */
int old_dirs(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char root[64], path[400], link[400];
	int fd;

	runtime_root(root, sizeof(root));
	snprintf(path, sizeof(path), "%s/dpdk", root);
	CHECK(mkdir(path, 0700) == 0);
	old_dir(root, "gdrcap-11", "config");
	old_dir(root, "gdrcap-12", "config");
	old_dir(root, "gdrcap-", "config");
	old_dir(root, "gdrcap-13x", "config");
	old_dir(root, "gdrcap-14", "others");
	old_dir(root, "elsewhere", "config");
	snprintf(path, sizeof(path), "%s/dpdk/elsewhere", root);
	snprintf(link, sizeof(link), "%s/dpdk/gdrcap-15", root);
	CHECK(symlink(path, link) == 0);
	old_dir(root, "gdrcap-16", "fbarray");
	snprintf(path, sizeof(path), "%s/dpdk/elsewhere/config", root);
	snprintf(link, sizeof(link), "%s/dpdk/gdrcap-16/config", root);
	CHECK(symlink(path, link) == 0);
	/* EAL of the process that uses it holds this lock. */
	snprintf(path, sizeof(path), "%s/dpdk/gdrcap-12/config", root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
	run_once();
	CHECK(!there(root, "dpdk/gdrcap-11"));
	CHECK(there(root, "dpdk/gdrcap-12/config"));
	CHECK(there(root, "dpdk/gdrcap-/config"));
	CHECK(there(root, "dpdk/gdrcap-13x/config"));
	CHECK(there(root, "dpdk/elsewhere/config"));
	CHECK(there(root, "dpdk/gdrcap-15/config"));
	CHECK(there(root, "dpdk/gdrcap-16/fbarray"));
	close(fd);
	remove_tree(root);
	return 0;
}
