/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port's MTU has to do with the frames on it. */
#include "port/port_mtu.h"

#include <errno.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "port/interface.h"

#define L2_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)

uint32_t port_mtu(const struct port *port, const struct rte_eth_dev_info *info,
		  uint16_t frame_bytes_max)
{
	uint32_t mtu =
		RTE_MAX((uint32_t)frame_bytes_max, (uint32_t)RTE_ETHER_MAX_LEN) - L2_OVERHEAD;

	if (info->max_mtu)
		mtu = RTE_MIN(mtu, (uint32_t)info->max_mtu);
	/* Of an interface the kernel keeps the MTU, and the driver does nothing with ours; but
	 * AF_PACKET's calls itself good for 1518 bytes. port_mtu_fits() knows better. */
	if (port->facts->interface && info->max_rx_pktlen > L2_OVERHEAD)
		mtu = RTE_MIN(mtu, info->max_rx_pktlen - L2_OVERHEAD);
	return mtu;
}

/* The mlx5 driver sets the MTU of the kernel's interface, which is the card's: longer frames are
 * dropped at the physical port, those for the kernel too. */
void port_mtu_remember(struct port *port, uint32_t mtu)
{
	if (port->facts->writes != DRIVER_WRITES_DMA || port->mtu_before ||
	    rte_eth_dev_get_mtu(port->id, &port->mtu_before) != 0)
		return;
	if (port->mtu_before > mtu)
		log_warning("port %s: its MTU of %u is %u until the port is closed, as the frames' "
			    "slots are; the kernel's longer frames on it are dropped meanwhile "
			    "(--frame-size %u leaves it as it is)",
			    port->name, port->mtu_before, mtu, port->mtu_before + L2_OVERHEAD);
	else if (port->mtu_before < mtu)
		log_info("port %s: its MTU of %u is %u until the port is closed", port->name,
			 port->mtu_before, mtu);
}

/*
 * The kernel throws away longer frames than the MTU's that are sent, without a word to the driver.
 * Which ones come is up to others: those of an embedder's port, opened with smaller slots, would be
 * cut although they are no longer than was said.
 */
int port_mtu_fits(const struct port *port, const struct port_queues *queues,
		  uint32_t interface_index, struct gdrcap_error *error)
{
	const uint32_t bytes = queues->frame_bytes_max, cut = port->cut_from + RTE_ETHER_CRC_LEN;
	char interface[IF_NAMESIZE];
	uint32_t mtu;

	if (port->cut_from && bytes >= cut)
		return error_set(error, -EMSGSIZE,
				 "port %s was opened with room for frames of up to %u bytes, and "
				 "frame.size, or the file, has %u; open it with a larger framesz",
				 port->name, cut - 1, bytes);
	if (!port->facts->interface || !if_indextoname(interface_index, interface))
		return 0;
	mtu = interface_mtu(interface);
	if (mtu && queues->sends && bytes > mtu + L2_OVERHEAD)
		return error_set(
			error, -EMSGSIZE,
			"port %s: interface %s has an MTU of %u, and frames of %u bytes need "
			"%u: ip link set %s mtu %u (at the other end too)",
			port->name, interface, mtu, bytes, bytes - L2_OVERHEAD, interface,
			bytes - L2_OVERHEAD);
	if (queues->sends || !mtu)
		return 0;
	if (bytes > mtu + L2_OVERHEAD)
		log_warning(
			"port %s: interface %s has an MTU of %u, so frames of over %u bytes may "
			"not come: ip link set %s mtu %u",
			port->name, interface, mtu, mtu + L2_OVERHEAD, interface,
			bytes - L2_OVERHEAD);
	else if (port->cut_from && mtu + L2_OVERHEAD >= cut)
		log_warning(
			"port %s: interface %s has an MTU of %u; of frames that are longer than "
			"%u bytes only the beginning is received, and they count as cut "
			"(--frame-size %u takes them all)",
			port->name, interface, mtu, cut - 1, mtu + L2_OVERHEAD);
	return 0;
}

void port_mtu_give_back(struct port *port)
{
	uint16_t mtu;
	int ret;

	if (!port->mtu_before || rte_eth_dev_get_mtu(port->id, &mtu) != 0 ||
	    mtu == port->mtu_before)
		return;
	ret = rte_eth_dev_set_mtu(port->id, port->mtu_before);
	if (ret < 0)
		log_warning("port %s: its MTU stays %u: %s; it was %u (ip link set INTERFACE mtu)",
			    port->name, mtu, rte_strerror(-ret), port->mtu_before);
}
