/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets. */
#include "metrics_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

static int fail(char *why, size_t bytes, int error, const char *text)
{
	snprintf(why, bytes, "%s", text);
	return -error;
}

/* Somebody may listen at a socket that is there: then it is theirs. 0: nothing is in the way any more. */
static int replace_stale(const struct sockaddr_un *address, char *why, size_t bytes)
{
	struct stat status;
	int fd, error;

	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? 0 : fail(why, bytes, errno, strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return fail(why, bytes, EEXIST, "what is there is no socket; name another path");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(why, bytes, errno, strerror(errno));
	error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	close(fd);
	if (error != ECONNREFUSED)
		return fail(why, bytes, EADDRINUSE, "a process listens there; name another path");
	return unlink(address->sun_path) ? fail(why, bytes, errno, strerror(errno)) : 0;
}

static int open_unix(struct metrics_socket *sock, const char *path, char *why, size_t bytes)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat status;
	int rc;

	if (!path[0] || strlen(path) >= sizeof(address.sun_path))
		return fail(why, bytes, EINVAL, "a socket's path has 1..107 characters");
	memcpy(address.sun_path, path, strlen(path) + 1);
	rc = replace_stale(&address, why, bytes);
	if (rc)
		return rc;
	sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock->fd < 0)
		return fail(why, bytes, errno, strerror(errno));
	/* At no moment is it open to all; then to its group too, whatever the umask. */
	if (fchmod(sock->fd, 0660) ||
	    bind(sock->fd, (const struct sockaddr *)&address, sizeof(address)))
		return fail(why, bytes, errno, strerror(errno));
	if (lstat(path, &status) || fchmodat(AT_FDCWD, path, 0660, AT_SYMLINK_NOFOLLOW))
		return fail(why, bytes, errno, strerror(errno));
	sock->path = path;
	sock->device = status.st_dev;
	sock->inode = status.st_ino;
	snprintf(sock->url, sizeof(sock->url), "unix:%s", path);
	return 0;
}

/* Splits "ADDRESS:PORT"; brackets around an IPv6 address. */
static int split(const char *where, char *host, size_t host_bytes, const char **port)
{
	const char *colon = strrchr(where, ':');
	const char *from = where;
	size_t length = colon ? (size_t)(colon - where) : 0;

	*port = colon ? colon + 1 : where;
	if (!(*port)[0] || strlen(*port) > 5 || strspn(*port, "0123456789") != strlen(*port))
		return -EINVAL;
	if (!colon) {
		snprintf(host, host_bytes, "127.0.0.1");
		return 0;
	}
	if (length >= 2 && where[0] == '[' && where[length - 1] == ']') {
		from++;
		length -= 2;
	} else if (memchr(where, ':', length)) {
		return -EINVAL;
	}
	if (!length || length >= host_bytes)
		return -EINVAL;
	memcpy(host, from, length);
	host[length] = '\0';
	return 0;
}

static void name_address(struct metrics_socket *sock)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getsockname(sock->fd, (struct sockaddr *)&address, &length) ||
	    getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	snprintf(sock->url, sizeof(sock->url),
		 address.ss_family == AF_INET6 ? "http://[%.64s]:%.8s/metrics"
					       : "http://%.64s:%.8s/metrics",
		 host, port);
}

static int open_port(struct metrics_socket *sock, const char *where, char *why, size_t bytes)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	const int on = 1;
	const char *port;
	char host[128];
	int error = 0;

	if (split(where, host, sizeof(host), &port) || strtoul(port, NULL, 10) > 65535 ||
	    getaddrinfo(host, port, &hints, &found))
		return fail(
			why, bytes, EINVAL,
			"allowed: PORT (of 127.0.0.1), ADDRESS:PORT with the address as a number, "
			"[IPV6-ADDRESS]:PORT, unix:PATH");
	sock->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A run that follows another need not wait for the old one's connections to be forgotten. */
	if (sock->fd < 0 || setsockopt(sock->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(sock->fd, found->ai_addr, found->ai_addrlen))
		error = errno;
	freeaddrinfo(found);
	if (error == EADDRINUSE)
		return fail(why, bytes, error, "another process listens there; name another port");
	if (error)
		return fail(why, bytes, error, strerror(error));
	name_address(sock);
	return 0;
}

int metrics_socket_any_port(const char *where)
{
	const char *port;
	char host[128];

	return strncmp(where, "unix:", 5) && !split(where, host, sizeof(host), &port) &&
	       strtoul(port, NULL, 10) == 0;
}

int metrics_socket_open(struct metrics_socket *sock, const char *where, char *why, size_t bytes)
{
	int rc;

	*sock = (struct metrics_socket){ .fd = -1 };
	rc = strncmp(where, "unix:", 5) ? open_port(sock, where, why, bytes)
					: open_unix(sock, where + 5, why, bytes);
	if (!rc && listen(sock->fd, BACKLOG))
		rc = fail(why, bytes, errno,
			  errno == EADDRINUSE ? "another process listens there; name another port"
					      : strerror(errno));
	if (rc)
		metrics_socket_close(sock);
	return rc;
}

void metrics_socket_remove(struct metrics_socket *sock)
{
	struct stat status;

	sock->fd = -1;
	if (sock->path && !lstat(sock->path, &status) && status.st_dev == sock->device &&
	    status.st_ino == sock->inode)
		unlink(sock->path);
	sock->path = NULL;
}

void metrics_socket_close(struct metrics_socket *sock)
{
	if (sock->fd >= 0)
		close(sock->fd);
	metrics_socket_remove(sock);
}
