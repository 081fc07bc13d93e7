/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's MTU: inside of port.c. */
#ifndef GDRCAP_PORT_MTU_H
#define GDRCAP_PORT_MTU_H

#include "port/port.h"

struct rte_eth_dev_info;

/* The MTU that the largest frame needs, within what the driver admits. */
uint32_t port_mtu(const struct port *port, const struct rte_eth_dev_info *info,
		  uint16_t frame_bytes_max);
/* Whether the frames fit the interface under the port; -EMSGSIZE: they cannot. */
int port_mtu_fits(const struct port *port, const struct port_queues *queues,
		  uint32_t interface_index, struct gdrcap_error *error);
/* Before the driver is given `mtu`; undone by port_mtu_give_back(). */
void port_mtu_remember(struct port *port, uint32_t mtu);
void port_mtu_give_back(struct port *port);

#endif
