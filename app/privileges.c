/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities belong to threads, and a thread can change only its own. Those of DPDK, of CUDA and
 * of the library exist by the time that the ports are open: each is sent SIGSYS, which the
 * library's threads do not block, and does it in the handler. The kernel's own account of each
 * thread says when all have.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "privileges.h"
#include "signals.h"

#define DROP_NS UINT64_C(10000000000) /* a thread may have to wait for a core for seconds */
#define TICK_NS 1000000L

#define BIT(capability) (UINT64_C(1) << (capability))

/* Of the kernel from 5.8 on; before, CAP_SYS_ADMIN was asked for. */
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* Of a signal that a filter of system calls sends. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

/* Linux capabilities that stay. Writer: the main thread, before the first signal. */
static _Atomic uint64_t keep;

static const struct {
	const char *prefix; /* of the port */
	uint64_t needs;	    /* after it was opened */
} ports[] = {
	{ "ring:", 0 },
	{ "net_ring", 0 },
	{ "net_null", 0 },
	{ "net_pcap", 0 },
	{ "net_memif", 0 },
	{ "net_af_packet", 0 },
	/* Its program is taken off the interface, and its socket out of a map. */
	{ "net_af_xdp", BIT(CAP_NET_ADMIN) | BIT(CAP_BPF) },
	/* A ConnectX: a queue in error is made anew, its rules too (CAP_NET_RAW); its MTU is given
	 * back; memory is registered when a queue first sends from it. And what is not known. */
	{ "", BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) | BIT(CAP_IPC_LOCK) | BIT(CAP_BPF) },
};

/* True when no right but the user's own is needed to remove what lies in this folder. */
static int folder_is_ours(const char *path)
{
	struct stat status;

	return stat(path, &status) < 0 || status.st_uid == geteuid() ||
	       (status.st_mode & S_IWOTH) ||
	       (status.st_gid == getegid() && (status.st_mode & S_IWGRP));
}

/* A memif's socket is removed when its port is closed, or nobody could make it again. */
static uint64_t socket_needs(const char *port)
{
	static const char argument[] = ",socket=";
	const char *at = strstr(port, argument);
	struct stat status;
	char path[256];
	char *slash;

	if (!at)
		return 0;
	at += sizeof(argument) - 1;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, ","), at);
	if (stat(path, &status) < 0 || !S_ISSOCK(status.st_mode) || status.st_uid != geteuid())
		return 0;
	slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = '\0';
	return folder_is_ours(slash ? path : ".") ? 0 : BIT(CAP_DAC_OVERRIDE);
}

static uint64_t port_needs(const char *port)
{
	size_t i = 0;

	while (strncmp(port, ports[i].prefix, strlen(ports[i].prefix)))
		i++;
	return ports[i].needs | socket_needs(port);
}

static uint64_t config_needs(const struct gdrcap_config *config)
{
	uint64_t needs = 0;
	const char *port;

	for (uint32_t i = 0; (port = gdrcap_config_get(config, "port", i)); i++)
		needs |= port_needs(port);
	for (uint32_t i = 0; (port = gdrcap_config_get(config, "tx_port", i)); i++)
		needs |= port_needs(port);
	if ((needs & BIT(CAP_BPF)) && prctl(PR_CAPBSET_READ, CAP_BPF) < 0)
		needs |= BIT(CAP_SYS_ADMIN);
	return needs;
}

/* The calling thread's. Async-signal-safe. What is refused was not had. */
static void drop_own(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	const uint64_t stay = atomic_load(&keep);

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capget, &head, data) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		const uint32_t part = (uint32_t)(stay >> 32 * i);

		data[i].permitted &= part;
		data[i].effective &= part;
		data[i].inheritable = 0;
	}
	(void)syscall(SYS_capset, &head, data);
}

static void drop_signalled(int number, siginfo_t *info, void *context)
{
	const int error = errno;

	/* Who sent it is not told where the user's queue of signals is full (RLIMIT_SIGPENDING): then it is from nobody.
	 * Whoever else sends it does no harm. */
	if (info->si_code != SYS_SECCOMP) {
		drop_own();
		errno = error;
		return;
	}
	/* A filter of system calls means it: as if there were no handler. */
	signal(number, SIG_DFL);
	raise(number);
}

enum thread_rights { RIGHTS_LIMITED, RIGHTS_KEPT, RIGHTS_OUT_OF_REACH };

/* What thread `id` has, as the kernel says. One that has gone has nothing; none but the thread
 * itself can do anything about one that blocks the signal. */
static enum thread_rights thread_rights(const char *id)
{
	uint64_t permitted = 0, blocked = 0;
	unsigned int no_new = 1;
	char path[64], line[128];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", id);
	status = fopen(path, "re");
	if (!status)
		return RIGHTS_LIMITED;
	while (fgets(line, sizeof(line), status)) {
		(void)sscanf(line, "CapPrm: %" SCNx64, &permitted);
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
		(void)sscanf(line, "NoNewPrivs: %u", &no_new);
	}
	fclose(status);
	if (no_new && !(permitted & ~atomic_load(&keep)))
		return RIGHTS_LIMITED;
	return blocked & BIT(SIGSYS - 1) ? RIGHTS_OUT_OF_REACH : RIGHTS_KEPT;
}

/*
 * Signals the other threads that still have too much. Adds up how many have what; -1: not known. One that
 * blocks the signal is sent it too: a thread that was just made blocks all of them until it first runs, and
 * takes it then.
 */
static int others_signal(int count[RIGHTS_OUT_OF_REACH + 1])
{
	const pid_t own = (pid_t)syscall(SYS_gettid);
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;

	memset(count, 0, (RIGHTS_OUT_OF_REACH + 1) * sizeof(*count));
	if (!tasks)
		return -1;
	while ((task = readdir(tasks))) {
		const pid_t id = isdigit((unsigned char)task->d_name[0]) ? atoi(task->d_name) : own;
		enum thread_rights rights;

		if (id == own)
			continue;
		rights = thread_rights(task->d_name);
		count[rights]++;
		if (rights != RIGHTS_LIMITED)
			(void)syscall(SYS_tgkill, getpid(), id, SIGSYS);
	}
	closedir(tasks);
	return 0;
}

void privileges_drop(const struct gdrcap_config *config, privileges_teller *tell, void *context)
{
	struct sigaction action = { .sa_sigaction = drop_signalled,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	const struct timespec tick = { .tv_nsec = TICK_NS };
	const uint64_t until = clock_ns() + DROP_NS;
	char line[128];
	int count[RIGHTS_OUT_OF_REACH + 1], ret;

	atomic_store(&keep, config_needs(config));
	sigemptyset(&action.sa_mask);
	/* For good: a thread that blocks it now may take it later. */
	sigaction(SIGSYS, &action, NULL);
	drop_own();
	while ((ret = others_signal(count)) == 0 && count[RIGHTS_KEPT] && clock_ns() < until)
		nanosleep(&tick, NULL);
	if (ret < 0)
		tell(context, GDRCAP_LOG_WARNING,
		     "other threads may have kept their capabilities: /proc/self/task cannot be "
		     "read");
	if (count[RIGHTS_KEPT]) {
		snprintf(line, sizeof(line), "threads that kept their capabilities: %d",
			 count[RIGHTS_KEPT]);
		tell(context, GDRCAP_LOG_WARNING, line);
	}
	if (count[RIGHTS_OUT_OF_REACH]) {
		snprintf(line, sizeof(line), "threads of others that keep their capabilities: %d",
			 count[RIGHTS_OUT_OF_REACH]);
		tell(context, GDRCAP_LOG_INFO, line);
	}
}
