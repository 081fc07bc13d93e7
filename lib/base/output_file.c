/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a run writes. */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
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

int output_file_open(const char *path)
{
	return open_as(path, 0, 0600);
}

int output_file_append(const char *path)
{
	return open_as(path, O_APPEND, 0640);
}
