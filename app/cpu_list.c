/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of CPUs as the kernel writes them. */
#include "cpu_list.h"

#include <stdio.h>
#include <string.h>

void cpu_list_add(char *text, size_t size, const cpu_set_t *set, int cpus)
{
	const size_t bytes = CPU_ALLOC_SIZE(cpus);

	for (int first = 0; first < cpus; first++) {
		const size_t used = strlen(text);
		int last = first;
		char piece[32];

		if (!CPU_ISSET_S((size_t)first, bytes, set))
			continue;
		while (last + 1 < cpus && CPU_ISSET_S((size_t)last + 1, bytes, set))
			last++;
		snprintf(piece, sizeof(piece), first == last ? "%s%d" : "%s%d-%d", used ? "," : "",
			 first, last);
		first = last;
		if (used + strlen(piece) < size)
			snprintf(text + used, size - used, "%s", piece);
	}
}
