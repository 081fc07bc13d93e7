/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a run writes. */
#ifndef GDRCAP_OUTPUT_FILE_H
#define GDRCAP_OUTPUT_FILE_H

#include <stdbool.h>

/*
 * Opens or makes a file to write it, with mode 0600: it is somebody's traffic, and nobody else's to read. It is not
 * emptied. Never waits: opening a pipe would wait for its reader, perhaps for ever, and so would writing, so
 * what is not a regular file stays non-blocking. Returns the descriptor, -ELOOP for a symbolic link
 * (/dev/stdout and /dev/fd/N are none here), -ENXIO for a pipe without a reader, -EBUSY if another run or session has
 * it locked, or what open() says.
 */
int output_file_open(const char *path);
/* Cause and remedy of -ELOOP, -ENXIO and -EBUSY; NULL of others. */
const char *output_file_why(int code);
/* The lock goes too, which a child process would keep that was forked meanwhile. What close() returns. */
int output_file_close(int fd);

/*
 * A file that a run writes is locked (flock) for it alone, one that it reads is locked against writers: another run or
 * session, also of this process, is refused the file. -EBUSY: another has it. 0: locked, or the file cannot be locked, as
 * a terminal or a file of some network file systems.
 */
int output_file_lock(int fd);

/* The same of a log, which a group may read (mode 0640): all that is written goes to its end. */
int output_file_append(const char *path);

/* Writing to one spoils the other, however the two are spelled, and also if neither exists yet. Not so with a
 * terminal or /dev/null. */
bool output_file_same(const char *one, const char *other);

#endif
