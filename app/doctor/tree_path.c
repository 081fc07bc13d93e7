/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a path leads inside the root, whatever links a hostile tree has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/tree_internal.h"

#define LINKS_MAX 40 /* as the kernel's own limit */

/* Joins two pieces of a path; -ENAMETOOLONG. */
static int join(char to[PATH_MAX], const char *a, const char *b)
{
	return snprintf(to, PATH_MAX, "%s%s%s", a, a[0] && b[0] ? "/" : "", b) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

/* The next name of *rest, and the rest behind it. Its length; 0: there is none. */
static int name_next(char name[NAME_MAX + 1], char **rest)
{
	size_t length;

	*rest += strspn(*rest, "/");
	length = strcspn(*rest, "/");
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, *rest, length);
	name[length] = '\0';
	*rest += length;
	return (int)length;
}

/*
 * Where `path` leads, links followed inside the root: `real` has no links, begins with '/' and is
 * "" for the root itself; after an error, it is how far that went, and what would have been next
 * where there was nothing. Links are recorded.
 */
static int resolve(struct tree *tree, const char *path, char real[PATH_MAX])
{
	char buffers[2][PATH_MAX], name[NAME_MAX + 1], full[PATH_MAX * 2], target[PATH_MAX];
	char *rest = buffers[0];
	int links = 0, which = 0, named;

	real[0] = '\0';
	if (snprintf(rest, PATH_MAX, "%s", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	while ((named = name_next(name, &rest)) > 0) {
		const size_t length = strlen(real);
		ssize_t got;

		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			char *slash = strrchr(real, '/');

			if (slash)
				*slash = '\0';
			continue;
		}
		if (length + 1 + strlen(name) >= PATH_MAX)
			return -ENAMETOOLONG;
		snprintf(real + length, PATH_MAX - length, "/%s", name);
		snprintf(full, sizeof(full), "%s%s", tree->root, real);
		got = readlink(full, target, sizeof(target) - 1);
		if (got < 0 && errno != EINVAL) {
			const int error = errno;

			if (error == ENOENT || error == ENOTDIR)
				strncat(real, rest, PATH_MAX - 1 - strlen(real));
			return -error;
		}
		if (got < 0)
			continue;
		target[got] = '\0';
		record_link(tree->record, real, target);
		if (++links > LINKS_MAX)
			return -ELOOP;
		which = !which;
		if (join(buffers[which], target, rest + strspn(rest, "/")) < 0)
			return -ENAMETOOLONG;
		real[target[0] == '/' ? 0 : length] = '\0';
		rest = buffers[which];
	}
	return named;
}

/* What reading `real` gave where the tree was captured: 0, or a negative errno. A folder that could
 * not be entered stands for all in it. */
static int refusal(const struct tree *tree, const char *real)
{
	const char *line = tree->refused;

	while (line && *line) {
		const size_t length = strcspn(line, "\n");
		const char *path = memchr(line, ' ', length);
		const int error = atoi(line);
		size_t named;

		if (path && error > 0 && error < 4096) {
			named = length - (size_t)(++path - line);
			if (named && strncmp(real, path, named) == 0 &&
			    (real[named] == '\0' || real[named] == '/'))
				return -error;
		}
		line += length;
		line += *line == '\n';
	}
	return 0;
}

/* resolve(), and what could not be read where the tree was captured. */
static int locate(struct tree *tree, const char *path, char real[PATH_MAX])
{
	int ret = resolve(tree, path, real);

	if (tree->refused && (ret == 0 || ret == -ENOENT || ret == -ENOTDIR)) {
		const int refused = refusal(tree, real);

		ret = refused ? refused : ret;
	}
	if ((ret == -EACCES || ret == -EPERM) && real[0])
		record_refused(tree->record, real, -ret);
	return ret;
}

int tree_open_real(struct tree *tree, const char *path, int flags, char real[PATH_MAX])
{
	char full[PATH_MAX * 2];
	int ret = locate(tree, path, real), fd;

	if (ret < 0)
		return ret;
	snprintf(full, sizeof(full), "%s%s", tree->root, real[0] ? real : "/");
	/* Not to wait for the other end of a FIFO. */
	fd = open(full, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	ret = fd < 0 ? -errno : fd;
	if (ret == -EACCES || ret == -EPERM)
		record_refused(tree->record, real, -ret);
	return ret;
}

int tree_open_file(struct tree *tree, const char *path, char real[PATH_MAX])
{
	char full[PATH_MAX * 2];
	struct stat status;
	int fd = locate(tree, path, real);

	if (fd < 0)
		return fd;
	snprintf(full, sizeof(full), "%s%s", tree->root, real[0] ? real : "/");
	if (lstat(full, &status) == 0 && !S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	fd = tree_open_real(tree, path, 0, real);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int tree_locate(struct tree *tree, const char *path, char real[PATH_MAX])
{
	char full[PATH_MAX * 2];
	struct stat status;
	/* What was seen and not read is in the tree, and no refusal. */
	int ret = resolve(tree, path, real);

	if ((ret == -ENOENT || ret == -ENOTDIR) && tree->refused)
		ret = refusal(tree, real) ? -EACCES : -ENOENT;
	if (ret == -ENOTDIR)
		ret = -ENOENT;
	if (ret == -EACCES && real[0])
		record_refused(tree->record, real, EACCES);
	if (ret < 0)
		return ret;
	snprintf(full, sizeof(full), "%s%s", tree->root, real[0] ? real : "/");
	if (lstat(full, &status) < 0)
		return -errno;
	record_seen(tree->record, real, S_ISDIR(status.st_mode));
	return 0;
}
