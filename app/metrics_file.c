/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces a file by rename(). */
#include "metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Others read it: node_exporter is a user of its own. */
static int open_new(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags, 0644);

	/* Of a process that had this number, and was killed. */
	if (fd < 0 && errno == EEXIST && unlink(path) == 0)
		fd = open(path, flags, 0644);
	return fd < 0 ? -errno : fd;
}

static int fill(int fd, const char *text, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		const ssize_t n = write(fd, text + done, bytes - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

int metrics_file_write(const char *path, const char *text, size_t bytes)
{
	char temporary[PATH_MAX];
	struct stat there;
	int fd, rc;

	/* A pipe that somebody reads, say: it would be gone. */
	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode))
		return -EEXIST;
	if (snprintf(temporary, sizeof(temporary), "%s.tmp.%ld", path, (long)getpid()) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open_new(temporary);
	if (fd < 0)
		return fd;
	rc = fill(fd, text, bytes);
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	return rc;
}
