/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments in a port's name. */
#include "port/devargs.h"

#include <stdio.h>
#include <string.h>

#include <rte_kvargs.h>

const char *devargs_of(const char *port)
{
	const char *comma = strchr(port, ',');

	return comma ? comma + 1 : "";
}

int devargs_value(const char *args, const char *key, unsigned int n, char *value, size_t bytes)
{
	struct rte_kvargs *pairs = rte_kvargs_parse(args, NULL);
	int found = -1;

	for (unsigned int i = 0; pairs && i < pairs->count && found < 0; i++) {
		const char *text = pairs->pairs[i].value;

		if (strcmp(pairs->pairs[i].key, key) == 0 && n-- == 0)
			found = snprintf(value, bytes, "%s", text ? text : "");
	}
	rte_kvargs_free(pairs);
	return found;
}
