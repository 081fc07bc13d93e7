/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens files that a run reads. */
#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

static int open_kinds(const char *path, bool pipes, struct stat *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;

	if (fd < 0)
		/* A socket, or a device without a driver. */
		return errno == ENXIO || errno == ENODEV ? -ESPIPE : -errno;
	if (fstat(fd, status) < 0)
		ret = -errno;
	else if (!S_ISREG(status->st_mode) && !(pipes && S_ISFIFO(status->st_mode)))
		ret = -ESPIPE;
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

int input_file_open(const char *path, struct stat *status)
{
	return open_kinds(path, false, status);
}

int input_stream_open(const char *path, struct stat *status)
{
	return open_kinds(path, true, status);
}

const char *input_file_remedy(int code)
{
	if (code == -EMFILE)
		return "this process has as many files open as it may: raise ulimit -n";
	if (code == -ENFILE)
		return "all processes have as many files open as they may: raise the sysctl "
		       "fs.file-max";
	return "check the file's name and rights";
}
