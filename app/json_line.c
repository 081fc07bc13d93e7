/* SPDX-License-Identifier: BSD-3-Clause */
/* One JSON object on one line of a stream. */
#include <errno.h>

#include "json_line.h"

int json_line_print(FILE *to, json_t *object, size_t flags)
{
	int rc;

	if (!object)
		return -ENOMEM;
	errno = 0;
	/* Escapes, so that a terminal obeys no C1 control character of a file's name. */
	rc = json_dumpf(object, to, JSON_COMPACT | JSON_ENSURE_ASCII | flags);
	json_decref(object);
	if (rc || fputc('\n', to) == EOF || fflush(to) == EOF)
		return errno ? -errno : -EIO;
	return 0;
}
