/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of libbsd, with which Debian compiles DPDK, and whose headers need not be installed. */
#include <rte_string_fns.h>

/* DPDK's names for its own. */
#undef strlcpy
#undef strlcat

size_t strlcpy(char *to, const char *from, size_t size);
size_t strlcat(char *to, const char *from, size_t size);

size_t strlcpy(char *to, const char *from, size_t size)
{
	return rte_strlcpy(to, from, size);
}

size_t strlcat(char *to, const char *from, size_t size)
{
	return rte_strlcat(to, from, size);
}
