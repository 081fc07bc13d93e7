/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ethdev a port's name means: found, or created. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "port/devargs.h"
#include "port/fanout.h"
#include "port/held_files.h"
#include "port/interface.h"
#include "port/kernel_drops.h"
#include "port/memif_socket.h"
#include "port/port.h"

/* "net_pcap0,rx_pcap=a" is a device name and its arguments. */
static int name_split(const char *name, char *device, size_t device_bytes, const char **args)
{
	const size_t length = strcspn(name, ",");

	if (length == 0 || length >= device_bytes)
		return -EINVAL;
	memcpy(device, name, length);
	device[length] = '\0';
	*args = devargs_of(name);
	return 0;
}

/* The ethdev has the device's name; but that of a bond of a ConnectX's ports has a longer one. */
static int port_by_name(struct port *port, const char *device)
{
	uint16_t id;

	port->id = RTE_MAX_ETHPORTS;
	if (rte_eth_dev_get_port_by_name(device, &port->id) == 0)
		return 0;
	RTE_ETH_FOREACH_DEV(id)
	{
		struct rte_eth_dev_info info;

		if (rte_eth_dev_info_get(id, &info) != 0 || !info.device ||
		    strcmp(rte_dev_name(info.device), device) != 0)
			continue;
		port->id = id;
		return 0;
	}
	return -ENODEV;
}

bool port_none_is_left(const char *name, struct gdrcap_error *error)
{
	if (rte_eth_dev_count_total() < RTE_MAX_ETHPORTS)
		return false;
	error_set(error, -ENOSPC,
		  "port %s cannot be opened: this process has %u ports open, and DPDK no room for "
		  "more (each ring:NAME takes 2); destroy a session first",
		  name, RTE_MAX_ETHPORTS);
	return true;
}

/* A bare -1 is no errno: EAL has no such driver, or the driver gives no reason. */
static int open_refused(const struct port *port, const char *name, int code,
			struct gdrcap_error *error)
{
	char socket[400];
	const bool card = port->facts->writes == DRIVER_WRITES_DMA;
	const char *why =
		code == -1 ? "no driver takes it, or it gives no reason" : rte_strerror(-code);

	if (port_none_is_left(port->name, error))
		return -ENOSPC;
	code = code == -EEXIST ? -EBUSY : code == -1 ? -ENODEV : code;
	if (card)
		return error_add_words(
			error,
			error_set(error, code,
				  "port %s (%s) cannot be opened: %s; it needs the kernel's "
				  "mlx5_ib (rdma link shows its device), libmlx5 (package "
				  "ibverbs-providers), arguments that the driver knows, and "
				  "rights: be root, or have CAP_NET_RAW and ulimit -l unlimited",
				  port->name, port->device, why));
	if (memif_socket_why(name, socket, sizeof(socket)))
		return error_set(error, code, "port %s cannot be opened: %s", port->name, socket);
	return error_add_words(
		error, error_set(error, code,
				 "port %s cannot be opened: %s; check its name and arguments%s",
				 port->name, why,
				 port->facts->needs_root ? ", and that you are root (CAP_NET_RAW, "
							   "CAP_NET_ADMIN)"
							 : ""));
}

/* The mlx5 driver fails without an errno where the card refuses an object, which EAL takes for success. */
static int open_empty(const struct port *port, struct gdrcap_error *error)
{
	if (port->facts->writes != DRIVER_WRITES_DMA)
		return error_add_words(error, error_set(error, -ENODEV,
							"%s opened, but is not an Ethernet port",
							port->name));
	return error_add_words(
		error,
		error_set(
			error, -ENODEV,
			"port %s (%s): the driver found the card, and could not make what it needs "
			"there; end other programs that use the card, raise the locked-memory limit "
			"(ulimit -l unlimited), see dmesg",
			port->name, port->device));
}

/* By the arguments that it was opened with, be it by us or by an embedder before us. */
static uint32_t cut_from(const struct port *port, const char *name)
{
	const struct rte_device *device = port_device(port);
	const struct rte_devargs *devargs = device ? rte_dev_devargs(device) : NULL;
	struct af_packet_ring ring;

	if (!port_name_is_af_packet(name))
		return 0;
	af_packet_ring(&ring, devargs && devargs->args ? devargs->args : "");
	return af_packet_cut(&ring);
}

/* A driver that opens its sockets when it is created is looked at then. */
static int vdev_open(struct port *port, const char *name, const char *args, const char *named,
		     struct gdrcap_error *error)
{
	struct kernel_sockets before = { 0 };
	struct rte_eth_dev_info info;
	int ret = port->facts->interface ? interface_check(name, named, error) : 0;

	if (ret < 0)
		return ret;
	if (port->facts->interface)
		kernel_sockets_list(&before);
	ret = held_files_open(&port->held, name, &args, error);
	if (ret < 0)
		return ret;
	log_words_forget();
	fanout_begin();
	ret = rte_vdev_init(port->device, args);
	fanout_end();
	if (ret < 0) {
		held_files_close(port->held);
		port->held = NULL;
		return open_refused(port, name, ret, error);
	}
	if (port->facts->interface && port_by_name(port, port->device) == 0 &&
	    rte_eth_dev_info_get(port->id, &info) == 0)
		port->drops = kernel_drops_open(&before, info.if_index, info.max_rx_queues);
	return 0;
}

int port_open(struct port *port, const char *name, const char *named, struct gdrcap_error *error)
{
	const char *args;
	int ret;

	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", named);
	port->facts = driver_facts_find(name);
	if (name_split(name, port->device, sizeof(port->device), &args) < 0)
		return error_set(error, -EINVAL,
				 "\"%s\" is not a port; give ring:NAME, a DPDK vdev such as "
				 "net_af_packet0,iface=eth0, or a ConnectX such as 0000:3b:00.0",
				 named);
	if (port_name_is_file(name)) {
		/* Its files are read by us. It is an ethdev that does nothing, with a name of its own. */
		static _Atomic unsigned int files;

		snprintf(port->device, sizeof(port->device), "net_null_gdrcap%u", files++);
		args = "no-rx=1";
	}
	if (port_by_name(port, port->device) == 0) {
		port->device[0] = '\0'; /* opened by an embedder: it stays theirs */
		port->open = true;
	} else {
		if (!port_name_is_connectx(name)) {
			ret = vdev_open(port, name, args, named, error);
		} else {
			log_words_forget();
			ret = rte_dev_probe(name);
			ret = ret < 0 ? open_refused(port, name, ret, error) : 0;
		}
		if (ret < 0)
			return ret;
		port->open = true;
		if (port_by_name(port, port->device) < 0) {
			ret = open_empty(port, error);
			port_close(port);
			return ret;
		}
	}
	port->numa_node = rte_eth_dev_socket_id(port->id);
	port->cut_from = cut_from(port, name);
	return 0;
}
