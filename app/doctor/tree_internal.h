/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of tree.h: tree.c, tree_path.c, tree_pieces.c. */
#ifndef DOCTOR_TREE_INTERNAL_H
#define DOCTOR_TREE_INTERNAL_H

#include <limits.h>

#include "doctor/tree.h"
#include "doctor/tree_record.h"

struct tree {
	char root[PATH_MAX]; /* "" for this machine's */
	bool live;
	char *refused; /* of a captured tree: text of RECORD_REFUSED; NULL: there is none */
	struct tree_record *record;
};

/* Where `path` leads, which is there: `real` has no links, begins with '/' and is "" for the root.
 * -ENOENT, -EACCES (nobody knows), ... */
int tree_locate(struct tree *tree, const char *path, char real[PATH_MAX]);
/* Opens what `path` means; `real` gets where that is. */
int tree_open_real(struct tree *tree, const char *path, int flags, char real[PATH_MAX]);
/* The same of a regular file: a device might do something when it is opened or read. */
int tree_open_file(struct tree *tree, const char *path, char real[PATH_MAX]);

/* Cuts what is blank at the end, and replaces what a terminal might obey. `text` has room for one
 * byte after `length`. */
void tree_clean(char *text, size_t length);

#endif
