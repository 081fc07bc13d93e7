/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of CPUs as the kernel writes them. */
#ifndef GDRCAP_APP_CPU_LIST_H
#define GDRCAP_APP_CPU_LIST_H

#include <sched.h>
#include <stddef.h>

/* Adds the first `cpus` of a set, "0-3,8", to the list in `text`: whole ranges, as many as there is
 * room for. */
void cpu_list_add(char *text, size_t size, const cpu_set_t *set, int cpus);

#endif
