/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to a service manager. */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A path, or @NAME in the abstract namespace, where NUL stands for the '@' and ends nothing. */
static int address_of(struct notify *notify, const char *value, char *why, size_t bytes)
{
	const size_t length = strlen(value);
	const size_t room = sizeof(notify->address.sun_path);
	const int abstract = value[0] == '@';

	if ((value[0] != '/' && !abstract) || length < 2) {
		snprintf(why, bytes,
			 "NOTIFY_SOCKET: '%.60s' is neither a path from / nor @NAME, so no service "
			 "manager is told",
			 value);
		return -EAFNOSUPPORT;
	}
	if (length + !abstract > room) {
		snprintf(why, bytes,
			 "NOTIFY_SOCKET: '%.60s...' is longer than an address of a socket, so no "
			 "service manager is told",
			 value);
		return -ENAMETOOLONG;
	}
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, value, length);
	if (abstract)
		notify->address.sun_path[0] = '\0';
	notify->address_bytes =
		(uint32_t)(offsetof(struct sockaddr_un, sun_path) + length + !abstract);
	return 0;
}

/* A decimal number from 1 to `most`, and nothing else; 0: it is none. */
static uint64_t number_of(const char *text, uint64_t most)
{
	const size_t length = strlen(text);
	uint64_t number;

	if (length == 0 || length > 20 || strspn(text, "0123456789") != length)
		return 0;
	errno = 0;
	number = strtoull(text, NULL, 10);
	return errno || number > most ? 0 : number;
}

/* What the main thread does between two lines, files on a busy disk included, must fit in a quarter of it. */
#define WATCHDOG_LEAST_US UINT64_C(1000000)

/* The watchdog may be another process's, whose environment was inherited. */
static int watchdog_of(struct notify *notify, const char *usec, const char *pid, char *why,
		       size_t bytes)
{
	const uint64_t every = number_of(usec, UINT64_MAX / 1000);
	const uint64_t whose = pid ? number_of(pid, INT32_MAX) : (uint64_t)getpid();

	if (!every || !whose) {
		snprintf(
			why, bytes,
			"%s: '%.60s' is not a number that a service manager gives, so its watchdog "
			"is told nothing",
			every ? "WATCHDOG_PID" : "WATCHDOG_USEC", every ? pid : usec);
		return -EINVAL;
	}
	if (whose != (uint64_t)getpid())
		return 0;
	notify->watchdog_ns = every * 1000;
	if (every >= WATCHDOG_LEAST_US)
		return 0;
	snprintf(why, bytes,
		 "WATCHDOG_USEC: the service manager ends this run when it hears nothing for "
		 "%" PRIu64
		 " us, which a busy machine can take; give the unit WatchdogSec=1s or more",
		 every);
	return -ERANGE;
}

int notify_open(struct notify *notify, char *why, size_t bytes)
{
	const char *where = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	int rc = 0;

	memset(notify, 0, sizeof(*notify));
	notify->fd = -1;
	if (where && where[0])
		rc = address_of(notify, where, why, bytes);
	if (where && where[0] && !rc) {
		notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (notify->fd < 0) {
			rc = -errno;
			snprintf(
				why, bytes,
				"NOTIFY_SOCKET: no socket could be made: %s; so no service manager "
				"is told",
				strerror(-rc));
		}
	}
	if (notify->fd >= 0 && usec)
		rc = watchdog_of(notify, usec, pid, why, bytes);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return rc;
}

int notify_send(const struct notify *notify, const char *lines)
{
	const size_t bytes = strlen(lines);
	const ssize_t sent =
		sendto(notify->fd, lines, bytes, MSG_NOSIGNAL,
		       (const struct sockaddr *)&notify->address, notify->address_bytes);

	return sent == (ssize_t)bytes ? 0 : sent < 0 ? -errno : -EMSGSIZE;
}

void notify_close(struct notify *notify)
{
	if (notify->fd >= 0)
		close(notify->fd);
	notify->fd = -1;
}
