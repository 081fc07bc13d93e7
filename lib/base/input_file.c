/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens files that a run reads. */
#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int input_file_open(const char *path, struct stat *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret;

	if (fd < 0)
		/* A socket, or a device without a driver. */
		return errno == ENXIO || errno == ENODEV ? -ESPIPE : -errno;
	ret = fstat(fd, status) < 0 ? -errno : S_ISREG(status->st_mode) ? 0 : -ESPIPE;
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}
