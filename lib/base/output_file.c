/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a run writes. */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Links that lead to what this process has open, as a shell's >(command) does. */
static bool is_own_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const size_t length = strlen(folders[i]);

		if (strncmp(path, folders[i], length) == 0 && path[length] &&
		    path[length + strspn(path + length, "0123456789")] == '\0')
			return true;
	}
	return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0;
}

static int open_as(const char *path, int more, mode_t mode)
{
	/* A link in a folder that others write to may lead to any file of the user who captures. */
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more |
			  (is_own_descriptor(path) ? 0 : O_NOFOLLOW);
	const int fd = open(path, flags, mode);
	struct stat status;
	int ret;

	if (fd < 0)
		return -errno;
	/* Of what was opened, whatever takes the path from now on. */
	if (fstat(fd, &status) == 0 &&
	    (!S_ISREG(status.st_mode) || fcntl(fd, F_SETFL, more & O_APPEND) == 0))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int output_file_lock(int fd)
{
	struct stat status;

	if (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode))
		return 0;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? -EBUSY : 0;
}

int output_file_open(const char *path)
{
	const int fd = open_as(path, 0, 0600), ret = fd < 0 ? fd : output_file_lock(fd);

	if (ret == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

const char *output_file_why(int code)
{
	if (code == -ELOOP)
		return "it is a symbolic link; name the file that it leads to";
	if (code == -ENXIO)
		return "no process reads this pipe; start its reader first";
	if (code == -EBUSY)
		return "another option, session or run of gdrcap uses it; name another file";
	return NULL;
}

int output_file_close(int fd)
{
	(void)flock(fd, LOCK_UN);
	return close(fd);
}

int output_file_append(const char *path)
{
	return open_as(path, O_APPEND, 0640);
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* The folder that a path's last name is in. False: there is none. */
static bool folder_of(const char *path, struct stat *folder, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	*name = slash ? slash + 1 : path;
	if (!slash)
		return stat(".", folder) == 0;
	/* With the slash: of "/x" it is all that there is. */
	return snprintf(parent, sizeof(parent), "%.*s", (int)(*name - path), path) <
		       (int)sizeof(parent) &&
	       stat(parent, folder) == 0;
}

bool output_file_same(const char *one, const char *other)
{
	const char *name, *other_name;
	struct stat file, other_file;
	const bool there = stat(one, &file) == 0;

	if (there && S_ISCHR(file.st_mode))
		return false;
	if (strcmp(one, other) == 0)
		return true;
	if (there && stat(other, &other_file) == 0)
		return is_same(&file, &other_file);
	return folder_of(one, &file, &name) && folder_of(other, &other_file, &other_name) &&
	       is_same(&file, &other_file) && strcmp(name, other_name) == 0;
}
