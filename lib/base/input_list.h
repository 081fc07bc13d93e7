/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that a run reads. None of them may be an output: it would be emptied before it is read, or
 * lost with what it says. Kept by device and inode, so hard links, symbolic links and other spellings are
 * the same file.
 */
#ifndef GDRCAP_INPUT_LIST_H
#define GDRCAP_INPUT_LIST_H

#include <stddef.h>
#include <sys/stat.h>

struct input_file {
	dev_t device;
	ino_t inode;
	const char *option; /* that names it; static */
};

/* All zero: an empty one. */
struct input_list {
	struct input_file *files;
	size_t count;
};

/* Adds a file once. 0 or -ENOMEM. */
int input_list_add(struct input_list *list, const struct stat *status, const char *option);
/* Adds the file at `path`, if there is one. */
int input_list_add_path(struct input_list *list, const char *path, const char *option);
int input_list_add_all(struct input_list *list, const struct input_list *more);
/* The option that names the file at `path`; NULL: it is none of these. */
const char *input_list_find(const struct input_list *list, const char *path);
void input_list_free(struct input_list *list);

#endif
