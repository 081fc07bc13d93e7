/* SPDX-License-Identifier: BSD-3-Clause */
/* Where --metrics listens: a port, of this machine alone unless an address is given, or a socket of the file system. */
#ifndef GDRCAP_APP_METRICS_SOCKET_H
#define GDRCAP_APP_METRICS_SOCKET_H

#include <stddef.h>

#include "unix_path.h"

struct metrics_socket {
	int fd;			/* -1: none */
	struct unix_path place; /* of a unix socket */
	char url[128];		/* what is listened on, for people */
};

/* "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT" or "unix:PATH"; port 0: any that is free. 0, or a negative errno: -EINVAL
 * where the words are wrong; `why` says what helps. */
int metrics_socket_open(struct metrics_socket *sock, const char *where, char *why, size_t bytes);
/* 1: words of a port that is any which is free. */
int metrics_socket_any_port(const char *where);
/* Closes it and removes its path, if that is still the one that was made. */
void metrics_socket_close(struct metrics_socket *sock);
/* The same where somebody else has closed it. */
void metrics_socket_remove(struct metrics_socket *sock);

#endif
