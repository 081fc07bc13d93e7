/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a port whose other end may be another process, and waits for it. */
#include "port/port_join.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "base/log.h"
#include "port/memif_stop.h"

#define NOBODY_MS 5000u
#define ANSWER_MS 20000u /* the other process may hardly get a core */
#define TICK_MS 10u
#define PAUSE_MS 100u
#define DRIVER_LOG "pmd.net.memif"

enum joined {
	JOINED,
	JOIN_TURNED_AWAY,
	JOIN_UNANSWERED,
};

static void pause_ms(unsigned int ms)
{
	const struct timespec time = { .tv_nsec = 1000000L * ms };

	nanosleep(&time, NULL);
}

static unsigned int elapsed_ms(uint64_t since)
{
	return (unsigned int)((rte_rdtsc() - since) * 1000 / rte_get_tsc_hz());
}

static bool is_connection(int fd)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer), type_bytes = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 &&
	       type == SOCK_SEQPACKET && getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 &&
	       peer.ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path);
}

/* Control channels that this process has open as a client; -1: not known. Those of its servers, whose other ends
 * have no address, come and go meanwhile where two processes call each other. */
static int connections(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int count = 0;

	if (!directory)
		return -1;
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.' && is_connection(atoi(entry->d_name));
	closedir(directory);
	return count;
}

/*
 * Of a port that started with `before` channels open. A driver that was turned away, since the other
 * end is there but not started yet, closes its channel, says nothing and does not try again. One
 * whose channel is open is being answered: to stop it then leaves memif's server with descriptors
 * that are gone, which ends its process.
 */
static enum joined join_wait(const struct port *port, int before)
{
	const uint64_t since = rte_rdtsc();

	while (elapsed_ms(since) < ANSWER_MS) {
		const bool open = before < 0 || connections() > before;

		/* In this order: the link may come up, but not the channel. */
		if (port_link_up(port))
			return JOINED;
		if (!open)
			return JOIN_TURNED_AWAY;
		pause_ms(TICK_MS);
	}
	return JOIN_UNANSWERED;
}

static enum joined join_once(const struct port *port)
{
	const int before = connections();
	enum joined joined;

	if (rte_eth_dev_start(port->id) < 0)
		return JOIN_TURNED_AWAY;
	joined = join_wait(port, before);
	if (joined != JOINED)
		(void)memif_stop(port->id);
	return joined;
}

int join_start(const struct port *port, struct gdrcap_error *error)
{
	const uint64_t since = rte_rdtsc();
	enum joined joined;

	for (unsigned int tries = 0;; tries++) {
		joined = join_once(port);
		if (joined != JOIN_TURNED_AWAY || elapsed_ms(since) >= NOBODY_MS)
			break;
		if (tries == 0) {
			log_line(GDRCAP_LOG_PROGRESS, "port %s: waiting for its other end",
				 port->name);
			/* It says so each time. */
			rte_log_set_level_pattern(DRIVER_LOG, RTE_LOG_EMERG);
		}
		pause_ms(PAUSE_MS);
	}
	rte_log_set_level_pattern(DRIVER_LOG, RTE_LOG_NOTICE);
	if (joined == JOINED)
		return 0;
	if (joined == JOIN_UNANSWERED)
		return error_set(error, -ECONNREFUSED,
				 "port %s: its other end took the connection and has not answered "
				 "for %u s; is its process stopped?",
				 port->name, ANSWER_MS / 1000);
	return error_set(error, -ECONNREFUSED,
			 "port %s: no answer after %u s; its other end (role=server, the same "
			 "socket and id) must be there first, in this or another process "
			 "(--give-up is about a run that has begun)",
			 port->name, NOBODY_MS / 1000);
}
