/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of the machine that is examined: this one's, or a captured tree of another's. Every read is
 * bounded, follows symbolic links inside the root only, and is remembered, so that what was read
 * can be captured. Hostile trees (loops, folders in place of files, FIFOs, gigabytes) are answered
 * with an errno.
 */
#ifndef DOCTOR_TREE_H
#define DOCTOR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TREE_TEXT_MAX 4096u  /* of tree_text() */
#define TREE_NAMES_MAX 4096u /* of tree_list() */

struct tree;

/* root NULL: this machine's "/". NULL with errno. */
struct tree *tree_open(const char *root);
void tree_close(struct tree *tree);
/* True: this machine, so that what is no file (system calls, libraries) may be asked too. */
bool tree_live(const struct tree *tree);

/* Text of a file of up to TREE_TEXT_MAX - 1 bytes, trailing blanks and line ends cut, control and
 * non-ASCII characters replaced by '?'. Longer: -EFBIG. Other errors: -ENOENT, -EACCES, -EPERM,
 * -EISDIR, ... `format` is the path, from "/". */
int tree_text(struct tree *tree, char text[TREE_TEXT_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same as a number: decimal, 0x or bare hex with base 16. -EINVAL: it is none. */
int tree_number(struct tree *tree, uint64_t *number, int base, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Raw bytes from the file's start, as many as there are up to `bytes`: their number. */
ssize_t tree_bytes(struct tree *tree, void *to, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Lines of a file of any length that hold one of `words` (NULL-ended), joined by '\n', up to `size`;
 * nothing else of the file is kept or captured. Their number. Stops after 32 MiB. */
int tree_grep(struct tree *tree, const char *path, const char *const *words, char *text,
	      size_t size);
/* The same with words between blanks that begin with one of `starts`, joined by ' ': for
 * /proc/cmdline, of which nothing else is to be captured. */
int tree_words(struct tree *tree, const char *path, const char *const *starts, char *text,
	       size_t size);
/* 0: there is something of that name; -ENOENT: there is not; -EACCES: nobody knows. */
int tree_find(struct tree *tree, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define tree_exists(...) (tree_find(__VA_ARGS__) == 0)
/* Where a symbolic link leads in the end, from "/". */
int tree_link(struct tree *tree, char *target, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Names in a folder, sorted, without those that begin with '.' and those of 64 and more characters:
 * their number, at most TREE_NAMES_MAX. *names is the caller's to free(), also after an error. */
int tree_list(struct tree *tree, char (**names)[64], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What is no file, but is asked of this machine, and comes from the tree elsewhere; facts.h has the
 * names. Lies in the tree as /gdrcap/facts/NAME. Cleaned like tree_text(). */
void tree_fact_set(struct tree *tree, const char *name, const char *value);
int tree_fact(struct tree *tree, char text[TREE_TEXT_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes all that was read so far into a new folder. */
int tree_capture(struct tree *tree, const char *path);

#endif
