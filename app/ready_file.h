/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that a receiver has written, or anybody else: it is believed only where it is what it should be. */
#ifndef GDRCAP_APP_READY_FILE_H
#define GDRCAP_APP_READY_FILE_H

#include "gdrcap.h"

#define READY_FILE_BYTES 65536u /* of its first line, at most */

struct ready_file {
	char host[256]; /* printable */
	uint32_t ports;
	int alone; /* 1: nothing follows the line */
};

/* 0; -EAGAIN: it is not there, or its line is not whole yet; else a negative errno, with the reason. */
int ready_file_read(const char *path, struct ready_file *file, struct gdrcap_error *error);
/* Returns `code`. */
int ready_error(struct gdrcap_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
