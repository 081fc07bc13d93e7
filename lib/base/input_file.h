/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a run reads. */
#ifndef GDRCAP_INPUT_FILE_H
#define GDRCAP_INPUT_FILE_H

#include <sys/stat.h>

/*
 * Opens a regular file to read it, and says what `status` it has: of what was opened, whatever takes
 * the path afterwards. Never waits: a FIFO without a writer would hold open() for ever, and signals
 * with it. Returns the descriptor, -ESPIPE for what is not a regular file, or what open() says.
 */
int input_file_open(const char *path, struct stat *status);
/* The same of a pipe too, whose descriptor does not block. */
int input_stream_open(const char *path, struct stat *status);
/* What to do about a negative errno of theirs. */
const char *input_file_remedy(int code);

#endif
