/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets. */
#include "metrics_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 16

static int fail(char *why, size_t bytes, int error, const char *text)
{
	snprintf(why, bytes, "%s", text);
	return -error;
}

static int open_unix(struct metrics_socket *sock, const char *path, char *why, size_t bytes)
{
	/* To its group too. */
	const int fd = unix_path_listen(&sock->place, path, SOCK_STREAM, 0660);

	if (fd == -ENAMETOOLONG)
		return fail(why, bytes, EINVAL, "a socket's path has 1..107 characters");
	if (fd == -EEXIST)
		return fail(why, bytes, EEXIST, "what is there is no socket; name another path");
	if (fd == -EADDRINUSE)
		return fail(why, bytes, EADDRINUSE, "a process listens there; name another path");
	if (fd < 0)
		return fail(why, bytes, -fd, strerror(-fd));
	sock->fd = fd;
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
	if (!error && listen(sock->fd, BACKLOG))
		error = errno;
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
	if (rc)
		metrics_socket_close(sock);
	return rc;
}

void metrics_socket_remove(struct metrics_socket *sock)
{
	sock->fd = -1;
	unix_path_remove(&sock->place);
}

void metrics_socket_close(struct metrics_socket *sock)
{
	if (sock->fd >= 0)
		close(sock->fd);
	metrics_socket_remove(sock);
}
