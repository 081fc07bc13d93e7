/* SPDX-License-Identifier: BSD-3-Clause */
/* What libraries and the kernel are asked, and kept as files of the tree. */
#include "doctor/facts.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cpu_list.h"
#include "doctor/doctor.h"

/* Without a live test nobody waits for a driver that has to wake GPUs up first. */
#define LIMIT_MS 700u
#define LIMIT_LIVE_MS 20000u
#define MESSAGES_BYTES_MAX ((size_t)4 << 20)

/* syslog(2): glibc gives them no names. */
#define SYSLOG_READ_ALL 3
#define SYSLOG_BUFFER_SIZE 10

/* ---- this process ---- */

static void process_facts(struct tree *tree)
{
	enum { CPUS = 8192 };
	cpu_set_t *set = CPU_ALLOC(CPUS);
	const size_t bytes = CPU_ALLOC_SIZE(CPUS);
	struct rlimit limit;
	char text[1024];

	if (set && sched_getaffinity(0, bytes, set) == 0) {
		text[0] = '\0';
		cpu_list_add(text, sizeof(text), set, CPUS);
		tree_fact_set(tree, "process/cpus", text);
	}
	if (set)
		CPU_FREE(set);
	snprintf(text, sizeof(text), "%u", (unsigned int)geteuid());
	tree_fact_set(tree, "process/user", text);
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)limit.rlim_cur);
		tree_fact_set(tree, "process/memlock",
			      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : text);
	}
}

/* ---- the kernel's messages ---- */

static bool message_wanted(const char *line)
{
	static const char *const words[] = { FACTS_MESSAGES };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

/* The newest ones that fit, in the order in which they came. */
static void messages_keep(struct tree *tree, char *all)
{
	char kept[TREE_TEXT_MAX];
	size_t at = sizeof(kept) - 1, length = strlen(all);

	kept[at] = '\0';
	while (length) {
		char *line;

		all[length] = '\0';
		while (length && all[length - 1] != '\n')
			length--;
		line = all + length;
		length -= length != 0;
		/* "<6>" is the level. */
		if (line[0] == '<' && strchr(line, '>'))
			line = strchr(line, '>') + 1;
		if (!message_wanted(line))
			continue;
		if (strlen(line) + 1 > at)
			break;
		if (kept[at])
			kept[--at] = '\n';
		at -= strlen(line);
		memcpy(kept + at, line, strlen(line));
	}
	tree_fact_set(tree, "kernel/messages", kept + at);
}

static void kernel_messages(struct tree *tree)
{
	int bytes = klogctl(SYSLOG_BUFFER_SIZE, NULL, 0);
	char *all;

	if (bytes > (int)MESSAGES_BYTES_MAX)
		bytes = (int)MESSAGES_BYTES_MAX;
	all = bytes > 0 ? malloc((size_t)bytes + 1) : NULL;
	if (bytes > 0 && all)
		bytes = klogctl(SYSLOG_READ_ALL, all, bytes);
	if (bytes < 0 || !all) {
		tree_fact_set(tree, "kernel/messages_error", strerror(bytes < 0 ? errno : ENOMEM));
	} else {
		all[bytes] = '\0';
		messages_keep(tree, all);
	}
	free(all);
}

/* ---- all of them ---- */

/* The device of a library that has this PCI address. */
static int number_of(struct tree *tree, const char *library, const char *pci)
{
	char text[TREE_TEXT_MAX];
	int count;

	if (tree_fact(tree, text, "%s/count", library) < 0)
		return -1;
	count = atoi(text);
	for (int i = 0; i < count && i < (int)MACHINE_GPUS_MAX; i++)
		if (tree_fact(tree, text, "%s/%d/pci", library, i) == 0 && strcmp(text, pci) == 0)
			return i;
	return -1;
}

int facts_nvml_number(struct tree *tree, const char *pci)
{
	return number_of(tree, "nvml", pci);
}

static void gpu_facts(struct machine_gpu *gpu, struct tree *tree)
{
	char text[TREE_TEXT_MAX];
	int number;

	gpu->cuda_ordinal = number_of(tree, "cuda", gpu->pci.address);
	number = facts_nvml_number(tree, gpu->pci.address);
	if (gpu->name[0])
		return;
	if ((gpu->cuda_ordinal >= 0 &&
	     tree_fact(tree, text, "cuda/%d/name", gpu->cuda_ordinal) == 0) ||
	    (number >= 0 && tree_fact(tree, text, "nvml/%d/name", number) == 0))
		snprintf(gpu->name, sizeof(gpu->name), "%.63s", text);
}

void doctor_facts(struct doctor *doctor)
{
	struct machine *machine = &doctor->machine;
	struct facts_asked asked;

	if (tree_live(doctor->tree)) {
		facts_libraries_begin(&asked, doctor->tree);
		process_facts(doctor->tree);
		kernel_messages(doctor->tree);
		facts_clock(doctor->tree);
		for (uint32_t i = 0; i < machine->cards; i++)
			if (machine->card[i].interface[0])
				facts_ethtool(doctor->tree, machine->card[i].interface);
		facts_libraries_end(&asked, doctor->tree, doctor->live ? LIMIT_LIVE_MS : LIMIT_MS);
	}
	for (uint32_t i = 0; i < machine->gpus; i++)
		gpu_facts(&machine->gpu[i], doctor->tree);
}
