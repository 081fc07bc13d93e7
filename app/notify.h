/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to a service manager: the protocol of sd_notify(3), as systemd has documented it for other implementations.
 * Main thread only, and it never waits: what the socket has no room for is refused.
 */
#ifndef GDRCAP_APP_NOTIFY_H
#define GDRCAP_APP_NOTIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: nobody is told */
	struct sockaddr_un address;
	uint32_t address_bytes;
	uint64_t
		watchdog_ns; /* without WATCHDOG=1 for so long this process is killed; 0: no matter */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, which other programs inherit. 0; or a negative
 * errno with the reason in `why`: a value that no manager gives, which is as if it were not there; -ERANGE: the watchdog's time is
 * so short that it may end a run that goes well, and taken all the same. */
int notify_open(struct notify *notify, char *why, size_t bytes);
/* NAME=VALUE lines. 0 or a negative errno; -EAGAIN: later. */
int notify_send(const struct notify *notify, const char *lines);
void notify_close(struct notify *notify);

#endif
