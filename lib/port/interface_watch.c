/* SPDX-License-Identifier: BSD-3-Clause */
#include "interface_watch.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "log.h"
#include "port.h"

void interface_watch(struct interface *interface, const struct port *port)
{
	struct rte_eth_dev_info info;

	memset(interface, 0, sizeof(*interface));
	/* A card says so by an event; a caller's own port may be of another network namespace. */
	if (!port->open || port->facts->writes != DRIVER_COPIES || port->device[0] == '\0' ||
	    rte_eth_dev_info_get(port->id, &info) != 0 || info.if_index == 0)
		return;
	interface->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (interface->socket < 0) {
		log_warning("port %s: nobody will notice when its interface is deleted: %s",
			    port->name, strerror(errno));
		return;
	}
	interface->index = info.if_index;
}

bool interface_is_gone(const struct interface *interface)
{
	struct ifreq request = { .ifr_ifindex = (int)interface->index };

	return interface->index && ioctl(interface->socket, SIOCGIFNAME, &request) < 0 &&
	       errno == ENODEV;
}

void interface_forget(struct interface *interface)
{
	if (interface->index)
		close(interface->socket);
	interface->index = 0;
}
