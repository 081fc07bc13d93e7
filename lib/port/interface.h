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

/* True where nobody can tell. */
bool interface_up(const char *name);
/* 0: nobody can tell. */
uint32_t interface_mtu(const char *name);

#endif
