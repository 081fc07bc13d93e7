/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a memif's socket cannot be had. */
#include "port/memif_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/devargs.h"
#include "port/driver_table.h"

/* 0: somebody listens there; -ECONNREFUSED: nobody does any more. */
static int listener(const struct sockaddr_un *address)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EAGAIN
		      ? -errno
		      : 0;
	close(fd);
	return ret;
}

bool memif_socket_why(const char *port, char *why, size_t bytes)
{
	const char *args = devargs_of(port);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char directory[sizeof(address.sun_path)], abstract[4] = "";
	struct stat file;
	int length;

	if (!driver_facts_find(port)->joins || !port_name_listens(port))
		return false;
	(void)devargs_value(args, "socket-abstract", 0, abstract, sizeof(abstract));
	length = devargs_value(args, "socket", 0, address.sun_path, sizeof(address.sun_path));
	if (length < 0 || strcmp(abstract, "no") != 0)
		return false;
	if (length == 0 || length >= (int)sizeof(address.sun_path)) {
		snprintf(why, bytes, "a socket's path has 1 to %zu letters, this one %d",
			 sizeof(address.sun_path) - 1, length);
		return true;
	}
	snprintf(directory, sizeof(directory), "%s", address.sun_path);
	*(strrchr(directory, '/') ? strrchr(directory, '/') + 1 : directory) = '\0';
	if (lstat(address.sun_path, &file) < 0) {
		if (access(directory[0] ? directory : ".", W_OK | X_OK) == 0)
			return false;
		snprintf(why, bytes, "no socket can be made in %s: %s",
			 directory[0] ? directory : "this directory", strerror(errno));
		return true;
	}
	if (!S_ISSOCK(file.st_mode))
		snprintf(why, bytes, "%s is there and no socket; give another path",
			 address.sun_path);
	else if (listener(&address) == -ECONNREFUSED)
		snprintf(why, bytes,
			 "%s is left over from a process that ended without removing it; rm %s",
			 address.sun_path, address.sun_path);
	else
		snprintf(why, bytes,
			 "another process has %s (ss -xlp shows it); end it, or give another path",
			 address.sun_path);
	return true;
}
