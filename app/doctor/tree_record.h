/* SPDX-License-Identifier: BSD-3-Clause */
/* What was read of a machine, so that it can be examined elsewhere. Paths begin with '/'. */
#ifndef DOCTOR_TREE_RECORD_H
#define DOCTOR_TREE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

/* Folder of what is no file; files of it are named like the fact. */
#define RECORD_FACTS "/gdrcap/facts"
/* Lines "ERRNO PATH" of what could not be read for want of rights. */
#define RECORD_REFUSED "/gdrcap/refused"

struct tree_record;

struct tree_record *record_create(void);
void record_destroy(struct tree_record *record);

/* Later records of the same path replace earlier ones, but no file's content is replaced by the mere
 * name, or by less of it. Without memory something is missing in the capture, and
 * record_write() says so. */
void record_file(struct tree_record *record, const char *path, const char *bytes, size_t length);
/* Lines or words of a file, `between` which is one character: what is new is added as a line. */
void record_pieces(struct tree_record *record, const char *path, const char *text, char between);
void record_link(struct tree_record *record, const char *path, const char *target);
void record_seen(struct tree_record *record, const char *path, bool folder);
void record_refused(struct tree_record *record, const char *path, int error);

const char *record_fact(const struct tree_record *record, const char *name, size_t *bytes);

/* A new folder: 0 or a negative errno. */
int record_write(const struct tree_record *record, const char *path);

#endif
