/* SPDX-License-Identifier: BSD-3-Clause */
/* A path is ours while what lies there is what we made. */
#include "unix_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 16

static int open_socket(int type)
{
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Somebody may listen at a socket that is there: then it is theirs. 0: nothing is in the way any more. */
static int replace_stale(const struct sockaddr_un *address, int type)
{
	struct stat status;
	int fd, error;

	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	fd = open_socket(type);
	if (fd < 0)
		return fd;
	error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	close(fd);
	if (error != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(address->sun_path) ? -errno : 0;
}

/* At no moment has it more rights than it is to have. */
static int bind_to(int fd, const struct sockaddr_un *address, mode_t mode, struct unix_path *place)
{
	const char *path = address->sun_path;
	struct stat status;

	if (fchmod(fd, mode) || bind(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	    lstat(path, &status))
		return -errno;
	*place = (struct unix_path){ .device = status.st_dev, .inode = status.st_ino };
	memcpy(place->path, path, sizeof(place->path));
	if (fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) || listen(fd, BACKLOG))
		return -errno;
	return fd;
}

int unix_path_listen(struct unix_path *place, const char *path, int type, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, rc;

	*place = (struct unix_path){ .path = "" };
	if (!path[0] || strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	rc = replace_stale(&address, type);
	if (rc)
		return rc;
	fd = open_socket(type);
	if (fd < 0)
		return fd;
	rc = bind_to(fd, &address, mode, place);
	if (rc >= 0)
		return fd;
	unix_path_remove(place);
	close(fd);
	return rc;
}

void unix_path_remove(struct unix_path *place)
{
	struct stat status;

	if (place->path[0] && !lstat(place->path, &status) && status.st_dev == place->device &&
	    status.st_ino == place->inode)
		unlink(place->path);
	place->path[0] = '\0';
}
