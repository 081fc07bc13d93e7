/* SPDX-License-Identifier: BSD-3-Clause */
/* An abstract socket for each CPU: it needs no folder and no rights, and ends with its process. */
#include "session/cpu_claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int cpu_claim(int cpu)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int letters =
		snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "gdrcap-cpu-%d", cpu);
	int ret;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address,
		 (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)letters) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}
