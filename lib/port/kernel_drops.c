/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that the kernel dropped before a driver saw them. */
#include "port/kernel_drops.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

/* Without the counters of Linux 5.9, in whose absence the kernel counts a full ring as a drop. */
#define XDP_STATISTICS_OLD (offsetof(struct xdp_statistics, tx_invalid_descs) + sizeof(uint64_t))

struct kernel_drops {
	struct kernel_socket socket[KERNEL_SOCKETS_MAX];
	uint64_t count[KERNEL_SOCKETS_MAX]; /* so far */
	uint32_t sockets;
};

/* True for one of the kinds that are looked for. */
static bool socket_look(int fd, struct kernel_socket *found)
{
	socklen_t bytes = sizeof(found->family);
	struct stat stat;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found->family, &bytes) < 0 ||
	    (found->family != AF_PACKET && found->family != AF_XDP) || fstat(fd, &stat) < 0)
		return false;
	found->fd = fd;
	found->inode = stat.st_ino;
	return true;
}

void kernel_sockets_list(struct kernel_sockets *sockets)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;

	memset(sockets, 0, sizeof(*sockets));
	if (!directory)
		return;
	sockets->known = true;
	while ((entry = readdir(directory)) != NULL) {
		struct kernel_socket found;

		if (entry->d_name[0] == '.' || !socket_look(atoi(entry->d_name), &found))
			continue;
		if (sockets->count == KERNEL_SOCKETS_MAX) {
			sockets->known = false;
			break;
		}
		sockets->socket[sockets->count++] = found;
	}
	closedir(directory);
}

static bool listed(const struct kernel_sockets *sockets, const struct kernel_socket *one)
{
	for (uint32_t i = 0; i < sockets->count; i++)
		if (sockets->socket[i].fd == one->fd && sockets->socket[i].inode == one->inode)
			return true;
	return false;
}

/* An AF_XDP socket does not tell; but the kernel then copies into its memory, or the card writes.
 */
static bool counts_for(const struct kernel_socket *one, unsigned int interface)
{
	struct sockaddr_ll address = { 0 };
	struct xdp_options options = { 0 };
	socklen_t bytes = sizeof(address), option_bytes = sizeof(options);

	if (one->family == AF_XDP)
		return getsockopt(one->fd, SOL_XDP, XDP_OPTIONS, &options, &option_bytes) == 0 &&
		       !(options.flags & XDP_OPTIONS_ZEROCOPY);
	return getsockname(one->fd, (struct sockaddr *)&address, &bytes) == 0 &&
	       address.sll_ifindex == (int)interface;
}

struct kernel_drops *kernel_drops_open(const struct kernel_sockets *before, unsigned int interface,
				       uint32_t queues)
{
	struct kernel_drops *drops = calloc(1, sizeof(*drops));
	struct kernel_sockets *now = malloc(sizeof(*now));

	if (drops && now) {
		kernel_sockets_list(now);
		for (uint32_t i = 0; i < now->count; i++)
			if (!listed(before, &now->socket[i]) &&
			    counts_for(&now->socket[i], interface))
				drops->socket[drops->sockets++] = now->socket[i];
	}
	if (!drops || !now || !before->known || !now->known || drops->sockets != queues) {
		free(drops);
		drops = NULL;
	}
	free(now);
	return drops;
}

void kernel_drops_close(struct kernel_drops *drops)
{
	free(drops);
}

/* The kernel gives the lowest free number, and the list is in their order. */
int kernel_drops_socket(const struct kernel_drops *drops, uint32_t queue)
{
	return queue < drops->sockets ? drops->socket[queue].fd : -1;
}

static void packet_read(int fd, uint64_t *count)
{
	struct tpacket_stats stats;
	socklen_t bytes = sizeof(stats);

	/* The kernel begins anew with each answer. */
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes) == 0)
		*count += stats.tp_drops;
}

static void xdp_read(int fd, uint64_t *count)
{
	struct xdp_statistics stats = { 0 };
	socklen_t bytes = XDP_STATISTICS_OLD;

	if (getsockopt(fd, SOL_XDP, XDP_STATISTICS, &stats, &bytes) == 0)
		*count = stats.rx_dropped;
}

bool kernel_drops_clear(const struct kernel_drops *drops)
{
	return drops->sockets > 0 && drops->socket[0].family == AF_PACKET;
}

uint64_t kernel_drops_read(struct kernel_drops *drops)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < drops->sockets; i++) {
		const struct kernel_socket *socket = &drops->socket[i];
		struct kernel_socket now;

		if (socket_look(socket->fd, &now) && now.inode == socket->inode) {
			if (socket->family == AF_PACKET)
				packet_read(socket->fd, &drops->count[i]);
			else
				xdp_read(socket->fd, &drops->count[i]);
		}
		sum += drops->count[i];
	}
	return sum;
}
