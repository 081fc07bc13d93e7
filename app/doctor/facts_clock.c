/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of the system's clock, and who sets it. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#include "doctor/facts.h"

#define PROCESSES_MAX 100000u

/* As /proc/PID/comm has them: 15 characters at most. */
static const char *const programs[] = { FACTS_CLOCK_PROGRAMS };
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static void program_see(const char *pid, bool seen[PROGRAMS])
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	for (size_t i = 0; i < PROGRAMS; i++)
		seen[i] |= strcmp(name, programs[i]) == 0;
}

/* Of this PID namespace: a container does not see its host's. */
static void programs_find(struct tree *tree)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	bool seen[PROGRAMS] = { false };
	char text[256] = "";
	size_t used = 0;

	if (!processes)
		return;
	for (uint32_t n = 0; n < PROCESSES_MAX && (entry = readdir(processes)); n++)
		if (isdigit((unsigned char)entry->d_name[0]))
			program_see(entry->d_name, seen);
	closedir(processes);
	for (size_t i = 0; i < PROGRAMS; i++)
		if (seen[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? " " : "", programs[i]);
	tree_fact_set(tree, "clock/programs", text);
}

void facts_clock(struct tree *tree)
{
	struct timex clock = { 0 }; /* asks, and sets nothing */
	const int state = adjtimex(&clock);
	char text[32];

	programs_find(tree);
	if (state < 0)
		return;
	tree_fact_set(tree, "clock/state",
		      state == TIME_ERROR || (clock.status & STA_UNSYNC) ? "unsynchronized"
									 : "synchronized");
	snprintf(text, sizeof(text), "%ld",
		 clock.status & STA_NANO ? clock.offset : clock.offset * 1000);
	tree_fact_set(tree, "clock/offset_ns", text);
	snprintf(text, sizeof(text), "%ld", clock.maxerror);
	tree_fact_set(tree, "clock/max_error_us", text);
}
