/* SPDX-License-Identifier: BSD-3-Clause */
/* The af_packet driver's groups of sockets. */
#include "port/fanout.h"

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* Above the group's number lie its type and flags. */
#define NUMBER UINT32_C(0xffff)
#define FLAG(flag) ((uint32_t)(flag) << 16)

/* The linker gives these names their meaning: --wrap. */
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);

static _Thread_local bool opening;
static _Thread_local uint32_t group; /* of the port that is being opened; 0: it has none yet */

void fanout_begin(void)
{
	opening = true;
	group = 0;
}

void fanout_end(void)
{
	opening = false;
}

static int join(int fd, uint32_t to)
{
	return __real_setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &to, sizeof(to));
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	socklen_t group_bytes = sizeof(group);
	uint32_t asked;
	int ret;

	if (!opening || level != SOL_PACKET || name != PACKET_FANOUT || bytes != sizeof(asked))
		return __real_setsockopt(fd, level, name, value, bytes);
	if (group)
		return join(fd, group);
	memcpy(&asked, value, sizeof(asked));
	asked &= ~(NUMBER | FLAG(PACKET_FANOUT_FLAG_DEFRAG));
	ret = join(fd, asked | FLAG(PACKET_FANOUT_FLAG_UNIQUEID));
	return ret < 0 ? ret : getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, &group_bytes);
}
