/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that the kernel dropped because a port's socket had no room for them. The af_packet driver
 * does not ask for them, and the af_xdp driver for some only. Their sockets are this process's own,
 * so they are found among its file descriptors: those that a step of the port's set-up opened.
 * Control code.
 *
 * Counted is from the socket's first moment, not from the run's: a frame is dropped only where there
 * are earlier ones in the ring, which the run receives, so those that are missing behind them are
 * missing in the run.
 */
#ifndef GDRCAP_KERNEL_DROPS_H
#define GDRCAP_KERNEL_DROPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KERNEL_SOCKETS_MAX 64u

struct kernel_socket {
	int fd;
	int family;  /* AF_PACKET, AF_XDP */
	ino_t inode; /* a descriptor's number is soon another's */
};

struct kernel_sockets {
	struct kernel_socket socket[KERNEL_SOCKETS_MAX];
	uint32_t count;
	bool known; /* false: this process cannot look at its own descriptors, or has too many */
};

struct kernel_drops;

/* All that this process has now. */
void kernel_sockets_list(struct kernel_sockets *sockets);

/*
 * Those of `queues` queues on interface `interface`, opened since `before`. NULL where they cannot
 * be told for certain, or do not count all: a card that writes into an AF_XDP port's memory itself
 * keeps its own count.
 */
struct kernel_drops *kernel_drops_open(const struct kernel_sockets *before, unsigned int interface,
				       uint32_t queues);
void kernel_drops_close(struct kernel_drops *drops);
/* The socket of queue `queue`, in the order in which the driver opened them; -1: there is none. */
int kernel_drops_socket(const struct kernel_drops *drops, uint32_t queue);
/* True: each reading, the driver's too, sets the kernel's count back to 0 (AF_PACKET). */
bool kernel_drops_clear(const struct kernel_drops *drops);
/* Frames so far. One thread at a time; at least once in 2^32 drops. */
uint64_t kernel_drops_read(struct kernel_drops *drops);

#endif
