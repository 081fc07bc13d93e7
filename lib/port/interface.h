/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's interfaces under ports. Their drivers answer -1 or -ENODEV for whatever went wrong,
 * so the causes are looked for before they are asked. Control code.
 */
#ifndef GDRCAP_INTERFACE_H
#define GDRCAP_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

/* The interface that a port's devargs name with iface=: false without, or with more than one. */
bool interface_of(const char *port, char name[IF_NAMESIZE]);

/*
 * Whether a driver of an interface could open `port`: -EINVAL: no interface is named; -ENODEV: there
 * is none of that name here; -EPERM: this process may not; -ENOTSUP: the kernel cannot;
 * -ENOMEM: it may not lock so much memory. `named`: as the user calls the port.
 */
int interface_check(const char *port, const char *named, struct gdrcap_error *error);

/* Has interface number `index` promiscuous for as long as the socket that is returned is open, whoever
 * else has it so or not. 0: it cannot be, which is said. */
int interface_hear_all(unsigned int index, const char *port);

/* Whether somebody has set it promiscuous by its flag (ip link set NAME promisc on); and that. */
bool interface_hears_all(const char *name);
void interface_set_hears_all(const char *name);

/* True where nobody can tell. */
bool interface_up(const char *name);
/* 0: nobody can tell. */
uint32_t interface_mtu(const char *name);

/*
 * The interface under a port that is open. DPDK's drivers do not notice when it is deleted: they
 * find no frame, or hand frames to a socket that leads nowhere, for ever.
 */
struct interface {
	/* A new interface may have the old one's name, but not its index. 0: there is none to be
	 * watched. */
	unsigned int index;
	int socket; /* in the network namespace where it was opened */
	uint64_t dropped_before;
};

/* Interface number `index` of the calling thread's network namespace, under `port`; 0: none. */
void interface_watch(struct interface *interface, unsigned int index, const char *port);
/* True when it was deleted, or moved to another network namespace. Asks the kernel. */
bool interface_is_gone(const struct interface *interface);
/* Frames that the kernel dropped on it, since interface_watch(), before any socket saw them; 0, too,
 * where nobody knows. `name`: the interface's, now. */
uint64_t interface_dropped(const struct interface *interface, char name[IF_NAMESIZE]);
void interface_forget(struct interface *interface);

#endif
