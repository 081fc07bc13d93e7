/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>


bool interface_of(const char *port, char name[IF_NAMESIZE])
{
	const char *at = strstr(port, ",iface=");
	size_t bytes;

	if (!at || strstr(at + 1, ",iface="))
		return false;
	at += strlen(",iface=");
	bytes = strcspn(at, ",");
	if (bytes == 0 || bytes >= IF_NAMESIZE)
		return false;
	memcpy(name, at, bytes);
	name[bytes] = '\0';
	return true;
}

static int ask(const char *name, unsigned long question, struct ifreq *request)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	memset(request, 0, sizeof(*request));
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, question, request) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

bool interface_up(const char *name)
{
	const short up = IFF_UP | IFF_RUNNING;
	struct ifreq request;

	return ask(name, SIOCGIFFLAGS, &request) < 0 || (request.ifr_flags & up) == up;
}

uint32_t interface_mtu(const char *name)
{
	struct ifreq request;

	return ask(name, SIOCGIFMTU, &request) < 0 || request.ifr_mtu < 0
		       ? 0
		       : (uint32_t)request.ifr_mtu;
}
