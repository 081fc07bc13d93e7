/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's EAL: started once a process, ended at its end, and the CPUs that may be used. */
#include "base/eal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "base/guest.h"
#include "base/log.h"
#include "base/log_dpdk.h"
#include "base/old_dirs.h"
#include "base/parse.h"
#include "base/thread_signals.h"

/* EAL and its devices belong to the process; sessions may be created by several threads. */
static pthread_mutex_t eal_lock = PTHREAD_MUTEX_INITIALIZER;
static bool eal_is_ours, eal_failed;

#define PARK_MS 5000u
#define DESCRIPTORS_WANTED 16u /* EAL has 6 open once it is up, and some more with hugepages */

/* Free hugepages of all sizes, bytes. */
static size_t hugepages_free(void)
{
	static const char root[] = "/sys/kernel/mm/hugepages";
	struct dirent *entry;
	size_t bytes = 0;
	DIR *dir = opendir(root);

	if (!dir)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		char path[512];
		size_t kib, pages;
		FILE *file;

		if (sscanf(entry->d_name, "hugepages-%zukB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", root, entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%zu", &pages) == 1)
			bytes += pages * kib << 10;
		fclose(file);
	}
	closedir(dir);
	return bytes;
}

/*
 * That there are some does not mean that this user gets one: the kernel gives them to root and to
 * the group vm.hugetlb_shm_group. EAL cannot be started again without them after it has failed.
 */
static bool hugepage_granted(void)
{
	const int fd = memfd_create("gdrcap", MFD_CLOEXEC | MFD_HUGETLB);
	struct stat status;
	void *page = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && ftruncate(fd, status.st_blksize) == 0)
		page = mmap(NULL, (size_t)status.st_blksize, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, fd, 0);
	if (page != MAP_FAILED)
		munmap(page, (size_t)status.st_blksize);
	close(fd);
	return page != MAP_FAILED;
}

/*
 * DPDK ends the process where its thread for interrupts gets no descriptors, and where it only fails it cannot be
 * started again.
 */
static bool descriptors_there(void)
{
	int fds[DESCRIPTORS_WANTED];
	unsigned int count = 0;

	while (count < DESCRIPTORS_WANTED) {
		fds[count] = eventfd(0, EFD_CLOEXEC);
		if (fds[count] < 0)
			break;
		count++;
	}
	for (unsigned int i = 0; i < count; i++)
		close(fds[i]);
	return count == DESCRIPTORS_WANTED;
}

static void interrupts_stay(void *parked)
{
	atomic_store((_Atomic int *)parked, 1);
	for (;;)
		pause();
}

/*
 * Holds EAL's interrupt thread until the process ends. rte_eal_cleanup() unmaps the memory that its
 * list of interrupts lies in and does not stop it: when a device that was closed a moment ago, or
 * the other end of a memif, wakes it after that, it reads there. False: it does not come.
 */
static bool interrupts_park(void)
{
	static _Atomic int parked;
	const struct timespec tick = { .tv_nsec = 1000000 };
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	const int fd = eventfd(1, EFD_CLOEXEC);
	const bool asked = handle && fd >= 0 && rte_intr_fd_set(handle, fd) == 0 &&
			   rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
			   rte_intr_callback_register(handle, interrupts_stay, &parked) == 0;

	for (unsigned int ms = 0; asked && !atomic_load(&parked) && ms < PARK_MS; ms++)
		nanosleep(&tick, NULL);
	/* The thread has its own copy. */
	rte_intr_instance_free(handle);
	return atomic_load(&parked);
}

static void eal_end(void)
{
	/* Without it the end of the process gives all back just as well. */
	if (eal_is_ours && interrupts_park())
		rte_eal_cleanup();
}

/* EAL pins the calling thread to its lcore; given every CPU the thread has, it changes nothing. */
static void own_cpus_text(char *text, size_t bytes)
{
	cpu_set_t set;
	size_t used;

	used = (size_t)snprintf(text, bytes, "--lcores=0@(");
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_SET(0, &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && used < bytes - 16; cpu++)
		if (CPU_ISSET(cpu, &set))
			used += (size_t)snprintf(text + used, bytes - used, "%d,", cpu);
	snprintf(text + used - 1, bytes - used + 1, ")");
}

/* Where EAL looks for PCI devices; not there in some containers, and EAL would complain. */
static bool pci_there(void)
{
	const char *path = getenv("SYSFS_PCI_DEVICES");

	return access(path ? path : "/sys/bus/pci/devices", R_OK | X_OK) == 0;
}

/*
 * rte_eal_init(); what it says goes to the log: as errors where it fails, else at the debug level. After
 * that what DPDK logs is the sessions', but where the program gave it a stream before.
 */
static int eal_init(int argc, char **argv)
{
	FILE *before = rte_log_get_stream(), *said;
	char *text = NULL, *rest, *line;
	sigset_t signals;
	size_t bytes;
	int ret;

	said = open_memstream(&text, &bytes);
	if (said)
		rte_openlog_stream(said);
	/* EAL starts a thread for interrupts, which stays. */
	thread_signals_block(&signals);
	ret = rte_eal_init(argc, argv) >= 0 ? 0 : rte_errno ? -rte_errno : -EIO;
	thread_signals_restore(&signals);
	if (!said)
		return ret;
	rte_openlog_stream(before == stderr ? NULL : before);
	if (before == stderr)
		(void)log_dpdk_take();
	if (fclose(said) == 0)
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			log_driver_line(ret < 0 ? GDRCAP_LOG_ERROR : GDRCAP_LOG_DEBUG, line);
	free(text);
	return ret;
}

static int eal_bring_up(const struct eal_needs *needs, bool huge)
{
	char memory[32], lcores[4096];
	char *argv[16];
	int argc = 0;

	snprintf(memory, sizeof(memory), "%zu", (needs->memory_bytes >> 20) + 1);
	own_cpus_text(lcores, sizeof(lcores));
	argv[argc++] = (char *)"gdrcap";
	argv[argc++] = (char *)"--file-prefix=gdrcap";
	argv[argc++] = lcores;
	/* Its threads would read ports while they are closed: docs/design.md, "Telemetry". */
	argv[argc++] = (char *)"--no-telemetry";
	argv[argc++] = (char *)"--iova-mode=va";
	argv[argc++] = (char *)"--log-level=*:error";
	/* No file in EAL's run-time directory, which need not be there: nothing of a process that was
	 * killed stays behind, and nothing is to be shared with a secondary process. */
	argv[argc++] = (char *)"--no-shconf";
	if (huge) {
		argv[argc++] = (char *)"--in-memory";
	} else {
		argv[argc++] = (char *)"--no-huge";
		argv[argc++] = (char *)"-m";
		argv[argc++] = memory;
	}
	/* Ports are opened by name later, by this session or one to come; an allow list with the
	 * host bridge opens none by itself. */
	if (needs->pci || pci_there()) {
		argv[argc++] = (char *)"-a";
		argv[argc++] = (char *)"0000:00:00.0";
	} else {
		argv[argc++] = (char *)"--no-pci";
	}
	argv[argc] = NULL;
	return eal_init(argc, argv);
}

/* After EAL's start, so that our handler runs before those of what EAL has loaded. */
static int exit_watch(struct gdrcap_error *error)
{
	static bool watched;

	if (!watched && guest_at_exit(eal_end) < 0)
		return error_set(error, -ENOMEM, "no memory for a handler of the process's end");
	watched = true;
	return 0;
}

static int eal_start_once(const struct eal_needs *needs, struct gdrcap_error *error)
{
	const bool huge = hugepages_free() >= needs->memory_bytes && hugepage_granted();
	int ret;

	if (eal_is_ours)
		return exit_watch(error);
	/* What the first attempt left behind makes a second one fail in other ways. */
	if (eal_failed)
		return error_set(
			error, -EALREADY,
			"DPDK's EAL failed to start before in this process and cannot be started "
			"again; repair what the first error says and start a new process");
	/* It has no cores before it was started; asking it to start again would print an alert. */
	if (rte_lcore_count() > 0) {
		log_info("EAL: as started by the embedder");
		return exit_watch(error);
	}
	if (!descriptors_there())
		return error_set(
			error, -EMFILE,
			"fewer than %u file descriptors are left to this process, and DPDK's EAL "
			"needs them: close some, or raise the limit (ulimit -n)",
			DESCRIPTORS_WANTED);
	ret = eal_bring_up(needs, huge);
	eal_failed = ret < 0;
	if (ret < 0)
		return error_add_words(
			error,
			error_set(error, ret,
				  "DPDK's EAL does not start: %s; it needs %zu MiB of %s and "
				  "some file descriptors (ulimit -n)",
				  rte_strerror(-ret), needs->memory_bytes >> 20,
				  huge ? "hugepages" : "memory"));
	eal_is_ours = true;
	old_dirs_remove();
	log_info("EAL: %s, %zu MiB", huge ? "hugepages" : "no hugepages",
		 needs->memory_bytes >> 20);
	return exit_watch(error);
}

int eal_start(const struct eal_needs *needs, struct gdrcap_error *error)
{
	int ret;

	log_lock(&eal_lock);
	ret = eal_start_once(needs, error);
	log_unlock(&eal_lock);
	return ret;
}

/* Moves the CPUs of `node` to the front, order kept. */
static void node_first(int *cpus, size_t count, int node)
{
	char path[128], text[4096] = "";
	int local[CPU_SETSIZE], ordered[CPU_SETSIZE];
	size_t locals = 0, n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	file = fopen(path, "r");
	if (!file)
		return;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	if (parse_cpu_list(text, local, CPU_SETSIZE, &locals) < 0)
		return;
	for (int want = 1; want >= 0; want--)
		for (size_t i = 0; i < count; i++) {
			int is_local = 0;

			for (size_t k = 0; k < locals; k++)
				is_local |= local[k] == cpus[i];
			if (is_local == want)
				ordered[n++] = cpus[i];
		}
	memcpy(cpus, ordered, n * sizeof(*cpus));
}

/* True when this thread may run on that CPU. Isolated ones (isolcpus=) are in no process's set, and
 * may be asked for all the same. */
static bool cpu_allowed(int cpu)
{
	cpu_set_t before, one;
	bool allowed;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) != 0)
		return false;
	if (CPU_ISSET(cpu, &before))
		return true;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	allowed = sched_setaffinity(0, sizeof(one), &one) == 0;
	if (allowed)
		(void)sched_setaffinity(0, sizeof(before), &before);
	return allowed;
}

int eal_cpus(const int *asked, size_t asked_count, int numa_node, int *cpus, size_t max,
	     struct gdrcap_error *error)
{
	cpu_set_t set;
	size_t count = 0;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return error_set(error, -errno, "cannot read the allowed CPUs: %s",
				 strerror(errno));
	for (; count < asked_count && count < max; count++) {
		if (!cpu_allowed(asked[count]))
			return error_set(error, -EINVAL,
					 "cores: CPU %d is not there, or its cgroup keeps this "
					 "process from it (see /sys/fs/cgroup, cpuset.cpus)",
					 asked[count]);
		cpus[count] = asked[count];
	}
	if (count)
		return (int)count;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < max; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[count++] = cpu;
	if (numa_node >= 0)
		node_first(cpus, count, numa_node);
	return (int)count;
}
