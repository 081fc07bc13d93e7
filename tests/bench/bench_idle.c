/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a camera costs on the CPU: images of 1 MB, 60 a second, as frames of 1500 bytes over a veth
 * pair of its own network namespace, to a caller in gdrcap_wait() or on gdrcap_queue_fd(). Prints
 * the share of a core of each thread of the capturing process. Needs root and ip (iproute2).
 *
 * Usage: bench_idle [IDLE_SLEEP_US [SECONDS [IMAGES_A_SECOND [wait|poll|fd]]]]
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include <gdrcap.h>

#define IMAGE_BYTES 1000000u
#define FRAME_BYTES 1500u
#define THREADS_MAX 32

static void fail(const char *what)
{
	fprintf(stderr, "bench_idle: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Another process: its time is not ours. */
static pid_t camera_start(unsigned int images_a_second)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_halen = 6 };
	const pid_t pid = fork();
	uint8_t frame[FRAME_BYTES] = { 2, [12] = 0x88, [13] = 0xb5 };
	uint64_t due = now_ns();
	int fd;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	address.sll_ifindex = (int)if_nametoindex("gcbench0");
	for (;; due += 1000000000u / images_a_second) {
		const struct timespec until = { .tv_sec = (time_t)(due / 1000000000u),
						.tv_nsec = (long)(due % 1000000000u) };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		for (uint32_t sent = 0; sent < IMAGE_BYTES; sent += FRAME_BYTES)
			(void)sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&address,
				     sizeof(address));
	}
}

struct thread_time {
	long tid;
	char name[32];
	uint64_t ns; /* that it had a core */
};

static bool task_scan(const char *tid, const char *what, const char *format, void *value)
{
	char path[300];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, what);
	file = fopen(path, "r");
	found = file ? fscanf(file, format, value) : 0;
	if (file)
		fclose(file);
	return found == 1;
}

static unsigned int threads_look(struct thread_time *threads)
{
	DIR *directory = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned int n = 0;

	while (directory && n < THREADS_MAX && (entry = readdir(directory)) != NULL) {
		struct thread_time *one = &threads[n];

		if (entry->d_name[0] == '.')
			continue;
		one->tid = atol(entry->d_name);
		n += task_scan(entry->d_name, "comm", "%31[^\n]", one->name) &&
		     task_scan(entry->d_name, "schedstat", "%" SCNu64, &one->ns);
	}
	if (directory)
		closedir(directory);
	return n;
}

static void print_shares(const struct thread_time *before, unsigned int n,
			 const struct thread_time *after, unsigned int m, double seconds)
{
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int k = 0; k < n; k++)
			if (after[i].tid == before[k].tid)
				printf("  %-16s %6.2f %%\n", after[i].name,
				       100.0 * (double)(after[i].ns - before[k].ns) / 1e9 /
					       seconds);
}

/* Batches of `queue` until then, in one of three ways. Returns their frames. */
static uint64_t take(struct gdrcap_queue *queue, const char *way, uint64_t until)
{
	const struct gdrcap_batch *batch[32];
	struct pollfd fd = { .fd = way[0] == 'f' ? gdrcap_queue_fd(queue) : -1, .events = POLLIN };
	uint64_t frames = 0;

	while (now_ns() < until) {
		const int n = way[0] == 'w' ? gdrcap_wait(queue, batch, 32, 100000)
					    : gdrcap_poll(queue, batch, 32);

		if (n < 0)
			fail("the run ended");
		if (n == 0 && way[0] == 'f')
			poll(&fd, 1, 100);
		for (int i = 0; i < n; i++)
			frames += batch[i]->count;
		gdrcap_release(queue, batch, (unsigned int)n);
	}
	return frames;
}

static struct gdrcap_session *session_begin(const char *idle_sleep)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error;

	if (gdrcap_config_set(config, "port", "net_af_packet0,iface=gcbench1,framecnt=4096",
			      &error) ||
	    gdrcap_config_set(config, "consumer", "host", &error) ||
	    gdrcap_config_set(config, "gpu", "host", &error) ||
	    gdrcap_config_set(config, "idle_sleep", idle_sleep, &error) ||
	    gdrcap_create(config, &session, &error) || gdrcap_start(session, &error)) {
		fprintf(stderr, "bench_idle: %s\n", error.text);
		exit(1);
	}
	gdrcap_config_free(config);
	return session;
}

int main(int argc, char **argv)
{
	const char *idle_sleep = argc > 1 ? argv[1] : "1000", *way = argc > 4 ? argv[4] : "wait";
	const unsigned int seconds = argc > 2 ? (unsigned int)atoi(argv[2]) : 10,
			   images = argc > 3 ? (unsigned int)atoi(argv[3]) : 60;
	struct thread_time before[THREADS_MAX], after[THREADS_MAX];
	struct gdrcap_summary summary = { 0 };
	struct gdrcap_session *session;
	unsigned int n, m;
	uint64_t frames, from;
	pid_t camera;

	if (unshare(CLONE_NEWNET) != 0 ||
	    system("ip link add gcbench0 type veth peer name gcbench1 && ip link set gcbench0 up && "
		   "ip link set gcbench1 up"))
		fail("no veth pair");
	camera = images ? camera_start(images) : 0;
	session = session_begin(idle_sleep);
	/* What a start costs is not counted. */
	take(gdrcap_get_queue(session, 0), way, now_ns() + 1000000000u);
	n = threads_look(before);
	from = now_ns();
	frames = take(gdrcap_get_queue(session, 0), way, from + seconds * UINT64_C(1000000000));
	m = threads_look(after);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	printf("idle_sleep %s, %s, %u images a second: %.1f came, %llu frames were missed; of a "
	       "core:\n",
	       idle_sleep, way, images,
	       (double)frames * FRAME_BYTES / IMAGE_BYTES / ((double)(now_ns() - from) / 1e9),
	       (unsigned long long)summary.nic_missed);
	print_shares(before, n, after, m, (double)(now_ns() - from) / 1e9);
	gdrcap_destroy(session);
	if (camera > 0) {
		kill(camera, SIGKILL);
		waitpid(camera, NULL, 0);
	}
	return 0;
}
