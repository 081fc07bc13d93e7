/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's interfaces under ports. Control code. */
#ifndef GDRCAP_INTERFACE_H
#define GDRCAP_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* The interface that a port's devargs name with iface=: false without, or with more than one. */
bool interface_of(const char *port, char name[IF_NAMESIZE]);

/* True where nobody can tell. */
bool interface_up(const char *name);
/* 0: nobody can tell. */
uint32_t interface_mtu(const char *name);

#endif
