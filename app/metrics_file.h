/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is there whole at any moment: node_exporter's textfile collector reads it when it likes. */
#ifndef GDRCAP_APP_METRICS_FILE_H
#define GDRCAP_APP_METRICS_FILE_H

#include <stddef.h>

/* Writes PATH.tmp.PID beside it, waits until that is on the disk, and renames it. 0 or a negative errno: then the
 * file is as it was. */
int metrics_file_write(const char *path, const char *text, size_t bytes);

#endif
