/* SPDX-License-Identifier: BSD-3-Clause */
/* The software wire: two net_ring ports whose rings are crossed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/eal.h"
#include "base/log.h"
#include "port/port.h"

static int wire_end_open(struct port *port, const char *name, unsigned int number, const char *end,
			 struct rte_ring *const rx[], struct rte_ring *const tx[], uint16_t queues,
			 struct gdrcap_error *error)
{
	char device[32];
	int id;

	snprintf(device, sizeof(device), "gdrcap%u%s", number, end);
	id = rte_eth_from_rings(device, rx, queues, tx, queues, (unsigned int)SOCKET_ID_ANY);
	if (id < 0 && port_none_is_left(name, error))
		return -ENOSPC;
	if (id < 0)
		return error_set(error, -rte_errno, "the software wire %s cannot be made: %s", name,
				 rte_strerror(rte_errno));
	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", name);
	snprintf(port->device, sizeof(port->device), "net_ring_%s", device);
	port->facts = driver_facts_find(name);
	port->id = (uint16_t)id;
	port->numa_node = -1;
	port->open = true;
	return 0;
}

int port_wire_open(struct port_wire *wire, struct port *sender, struct port *receiver,
		   const char *name, uint16_t queues, uint32_t frames, struct gdrcap_error *error)
{
	/* Rings and net_ring ports have names in EAL's own, process-wide space. */
	static _Atomic unsigned int wires;
	const unsigned int number = wires++;
	int ret;

	memset(wire, 0, sizeof(*wire));
	for (uint16_t q = 0; q < queues; q++) {
		char ring[RTE_RING_NAMESIZE];
		/* One thread sends on a queue and one receives from it. */
		const unsigned int flags = RING_F_SP_ENQ | RING_F_SC_DEQ;

		snprintf(ring, sizeof(ring), "gdrcap%u_f%u", number, q);
		wire->forth[q] = rte_ring_create(ring, frames, SOCKET_ID_ANY, flags);
		snprintf(ring, sizeof(ring), "gdrcap%u_b%u", number, q);
		wire->back[q] = rte_ring_create(ring, 64, SOCKET_ID_ANY, flags);
		wire->queues = (uint16_t)(q + 1);
		if (!wire->forth[q] || !wire->back[q]) {
			ret = error_set(
				error, -rte_errno,
				"no memory for the software wire %s: %s; " EAL_MEMORY_REMEDY, name,
				rte_strerror(rte_errno));
			goto err;
		}
	}
	ret = wire_end_open(sender, name, number, "tx", wire->back, wire->forth, queues, error);
	if (ret < 0)
		goto err;
	ret = wire_end_open(receiver, name, number, "rx", wire->forth, wire->back, queues, error);
	if (ret < 0)
		goto err_sender;
	return 0;
err_sender:
	port_close(sender);
err:
	port_wire_close(wire);
	return ret;
}

void port_wire_close(struct port_wire *wire)
{
	for (uint16_t q = 0; q < wire->queues; q++) {
		rte_ring_free(wire->forth[q]);
		rte_ring_free(wire->back[q]);
	}
	memset(wire, 0, sizeof(*wire));
}
