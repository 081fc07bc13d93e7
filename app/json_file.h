/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of --json-file: whole lines at its end, and never a reason for the run to end. */
#ifndef GDRCAP_APP_JSON_FILE_H
#define GDRCAP_APP_JSON_FILE_H

#include <stddef.h>
#include <stdint.h>

struct json_file {
	const char *path; /* the caller's; NULL: there is none, and nothing else is set */
	int fd;
	int cut;	 /* 1: the file ends with the beginning of a line */
	uint64_t missed; /* lines that are not in it */
	int error;	 /* why the first of them is not: a negative errno */
};

/* Opens or makes the file; where it ends within a line, the next one comes after a line feed. 0, or a negative errno: then
 * path is NULL. */
int json_file_open(struct json_file *file, const char *path);
/* Opens what is at the path now. A negative errno: the old one goes on. */
int json_file_reopen(struct json_file *file);
/* Appends the line, of which the last byte is a line feed: whole or not at all, unless neither write() nor
 * ftruncate() works. 0 or a negative errno. */
int json_file_write(struct json_file *file, const char *line, size_t bytes);
/* 0, or why what was written may not be in it. */
int json_file_close(struct json_file *file);

#endif
