/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's interface under a port. DPDK's drivers do not notice when it is deleted: they find
 * no frame, or hand frames to a socket that leads nowhere, for ever.
 */
#ifndef GDRCAP_INTERFACE_WATCH_H
#define GDRCAP_INTERFACE_WATCH_H

#include <stdbool.h>

struct port;

struct interface {
	/* A new interface may have the old one's name, but not its index. 0: there is none to be
	 * watched. */
	unsigned int index;
	int socket; /* in the network namespace where it was opened */
};

/* After the port was opened, in the same thread. A port without an interface, and one whose driver
 * tells itself when it is gone, are not watched. */
void interface_watch(struct interface *interface, const struct port *port);
/* True when it was deleted, or moved to another network namespace. Asks the kernel. */
bool interface_is_gone(const struct interface *interface);
void interface_forget(struct interface *interface);

#endif
