/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine's files, read below a root that may be a capture of another machine. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/tree_internal.h"

#define FOLDER_ENTRIES_MAX 65536u
#define REFUSED_BYTES_MAX ((size_t)256 << 10)

static ssize_t file_read(struct tree *tree, const char *path, char *to, size_t bytes);

/* What could not be read where the tree was captured. */
static void refused_load(struct tree *tree)
{
	char *text = malloc(REFUSED_BYTES_MAX + 1);
	const ssize_t got = text ? file_read(tree, RECORD_REFUSED, text, REFUSED_BYTES_MAX) : -1;

	if (got <= 0) {
		free(text);
		return;
	}
	text[got] = '\0';
	tree->refused = text;
}

struct tree *tree_open(const char *root)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct stat status;
	int error;

	if (!tree)
		return NULL;
	tree->live = !root;
	if (root && (stat(root, &status) < 0 || !realpath(root, tree->root))) {
		error = errno;
		goto err;
	}
	if (root && !S_ISDIR(status.st_mode)) {
		error = ENOTDIR;
		goto err;
	}
	if (strcmp(tree->root, "/") == 0)
		tree->root[0] = '\0';
	tree->record = record_create();
	if (tree->record) {
		if (!tree->live)
			refused_load(tree);
		return tree;
	}
	error = ENOMEM;
err:
	free(tree);
	errno = error;
	return NULL;
}

void tree_close(struct tree *tree)
{
	if (!tree)
		return;
	record_destroy(tree->record);
	free(tree->refused);
	free(tree);
}

bool tree_live(const struct tree *tree)
{
	return tree->live;
}

/* Up to `bytes` from the start of a regular file: their number. */
static ssize_t file_read(struct tree *tree, const char *path, char *to, size_t bytes)
{
	char real[PATH_MAX];
	size_t have = 0;
	ssize_t got = 0;
	int fd = tree_open_file(tree, path, real);

	if (fd < 0)
		return fd;
	while (have < bytes && (got = read(fd, to + have, bytes - have)) > 0)
		have += (size_t)got;
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0 && have == 0) {
		if (got == -EACCES || got == -EPERM)
			record_refused(tree->record, real, (int)-got);
		return got;
	}
	record_file(tree->record, real, to, have);
	return (ssize_t)have;
}

/* The path of a function's last arguments: 0 or -ENAMETOOLONG in `ret`. */
#define PATH_FORMAT(ret, path, format)                                                             \
	do {                                                                                       \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		ret = vsnprintf(path, PATH_MAX, format, args) < PATH_MAX ? 0 : -ENAMETOOLONG;      \
		va_end(args);                                                                      \
	} while (0)

void tree_clean(char *text, size_t length)
{
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (text[i] != '\n' && text[i] != '\t' &&
		    ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f))
			text[i] = '?';
}

static int text_read(struct tree *tree, char text[TREE_TEXT_MAX], const char *path)
{
	const ssize_t got = file_read(tree, path, text, TREE_TEXT_MAX);

	text[0] = got > 0 ? text[0] : '\0';
	if (got < 0)
		return (int)got;
	if (got == TREE_TEXT_MAX) {
		text[0] = '\0';
		return -EFBIG;
	}
	tree_clean(text, (size_t)got);
	return 0;
}

int tree_text(struct tree *tree, char text[TREE_TEXT_MAX], const char *format, ...)
{
	char path[PATH_MAX];
	int ret;

	PATH_FORMAT(ret, path, format);
	text[0] = '\0';
	return ret < 0 ? ret : text_read(tree, text, path);
}

int tree_number(struct tree *tree, uint64_t *number, int base, const char *format, ...)
{
	char path[PATH_MAX], text[TREE_TEXT_MAX], *end;
	int ret;

	PATH_FORMAT(ret, path, format);
	if (ret == 0)
		ret = text_read(tree, text, path);
	if (ret < 0)
		return ret;
	if (!isxdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, base);
	return errno || *end ? -EINVAL : 0;
}

ssize_t tree_bytes(struct tree *tree, void *to, size_t bytes, const char *format, ...)
{
	char path[PATH_MAX];
	int ret;

	PATH_FORMAT(ret, path, format);
	return ret < 0 ? ret : file_read(tree, path, to, bytes);
}

/* ---- names ---- */

int tree_find(struct tree *tree, const char *format, ...)
{
	char path[PATH_MAX], real[PATH_MAX];
	int ret;

	PATH_FORMAT(ret, path, format);
	return ret < 0 ? ret : tree_locate(tree, path, real);
}

int tree_link(struct tree *tree, char *target, size_t bytes, const char *format, ...)
{
	char path[PATH_MAX], real[PATH_MAX];
	int ret;

	PATH_FORMAT(ret, path, format);
	target[0] = '\0';
	if (ret == 0)
		ret = tree_locate(tree, path, real);
	if (ret < 0)
		return ret;
	return (size_t)snprintf(target, bytes, "%s", real[0] ? real : "/") < bytes ? 0
										   : -ENAMETOOLONG;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Records a name that was seen in a folder, as what it is. */
static void seen_in(struct tree *tree, const char *real, const char *name, int folder)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct stat status;
	ssize_t got;

	if (snprintf(path, sizeof(path), "%s/%s", real, name) >= (int)sizeof(path) ||
	    fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!S_ISLNK(status.st_mode)) {
		record_seen(tree->record, path, S_ISDIR(status.st_mode));
		return;
	}
	got = readlinkat(folder, name, target, sizeof(target) - 1);
	if (got < 0)
		return;
	target[got] = '\0';
	record_link(tree->record, path, target);
}

int tree_list(struct tree *tree, char (**names)[64], const char *format, ...)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct dirent *entry;
	uint32_t seen = 0;
	int count = 0, fd, ret;
	DIR *dir;

	*names = NULL;
	PATH_FORMAT(ret, path, format);
	if (ret < 0)
		return ret;
	fd = tree_open_real(tree, path, O_DIRECTORY, real);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	*names = dir ? calloc(TREE_NAMES_MAX, sizeof(**names)) : NULL;
	if (!*names) {
		if (dir)
			closedir(dir);
		else
			close(fd);
		return -ENOMEM;
	}
	record_seen(tree->record, real, true);
	while (count < (int)TREE_NAMES_MAX && seen++ < FOLDER_ENTRIES_MAX &&
	       (entry = readdir(dir)) != NULL) {
		/* No name that the kernel gives to a device is so long. */
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(**names))
			continue;
		snprintf((*names)[count++], sizeof(**names), "%s", entry->d_name);
		seen_in(tree, real, entry->d_name, dirfd(dir));
	}
	closedir(dir);
	qsort(*names, (size_t)count, sizeof(**names), by_name);
	return count;
}

void tree_fact_set(struct tree *tree, const char *name, const char *value)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", RECORD_FACTS, name);
	record_file(tree->record, path, value, strlen(value));
}

int tree_fact(struct tree *tree, char text[TREE_TEXT_MAX], const char *format, ...)
{
	char name[PATH_MAX];
	const char *value;
	size_t bytes;
	int ret;

	PATH_FORMAT(ret, name, format);
	text[0] = '\0';
	if (ret < 0)
		return ret;
	if (!tree->live)
		return tree_text(tree, text, "%s/%s", RECORD_FACTS, name);
	value = record_fact(tree->record, name, &bytes);
	if (!value)
		return -ENOENT;
	if (bytes >= TREE_TEXT_MAX)
		return -EFBIG;
	memcpy(text, value, bytes);
	tree_clean(text, bytes);
	return 0;
}

int tree_capture(struct tree *tree, const char *path)
{
	return record_write(tree->record, path);
}
