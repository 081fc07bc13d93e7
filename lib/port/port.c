/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "log.h"

#define JOIN_MS 5000u /* a port that joins another waits so long for it, ... */
#define JOIN_TRY_MS 200u /* ... and so long for an answer before it asks again */
#define JOIN_TICK_MS 10u
#define JOIN_PAUSE_MS 100u
#define JOIN_LOG "pmd.net.memif"
#define L2_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)

/* "net_pcap0,rx_pcap=a" is a device name and its arguments. */
static int name_split(const char *name, char *device, size_t device_bytes, const char **args)
{
	const char *comma = strchr(name, ',');
	const size_t length = comma ? (size_t)(comma - name) : strlen(name);

	if (length == 0 || length >= device_bytes)
		return -EINVAL;
	memcpy(device, name, length);
	device[length] = '\0';
	*args = comma ? comma + 1 : "";
	return 0;
}

static int port_by_name(struct port *port, const char *device)
{
	return rte_eth_dev_get_port_by_name(device, &port->id) == 0 ? 0 : -ENODEV;
}

int port_open(struct port *port, const char *name, struct gdrcap_error *error)
{
	const char *args;
	int ret;

	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", name);
	port->facts = driver_facts_find(name);
	if (name_split(name, port->device, sizeof(port->device), &args) < 0)
		return error_set(error, -EINVAL,
				 "\"%s\" is no port; give ring:NAME, a DPDK vdev such as "
				 "net_af_packet0,iface=eth0, or a PCI address such as 0000:3b:00.0",
				 name);
	if (port_by_name(port, port->device) == 0) {
		port->device[0] = '\0'; /* opened by an embedder: it stays theirs */
		port->open = true;
	} else {
		ret = port_name_is_pci(name) ? rte_dev_probe(name) :
					       rte_vdev_init(port->device, args);
		/* A bare -1 is no errno: EAL has no such driver, or the driver gives no reason. */
		if (ret < 0)
			return error_set(
				error,
				ret == -EEXIST ? -EBUSY
				: ret == -1    ? -ENODEV
					       : ret,
				"port %s cannot be opened: %s; check its name and arguments%s",
				name,
				ret == -1 ? "no driver takes it, or its own words are above"
					  : rte_strerror(-ret),
				port->facts->needs_root
					? ", that the interface exists and is up, and that you "
					  "are root (CAP_NET_RAW, CAP_NET_ADMIN)"
					: "");
		port->open = true;
		if (port_by_name(port, port->device) < 0) {
			port_close(port);
			return error_set(error, -ENODEV, "%s opened, but is no Ethernet port",
					 name);
		}
	}
	port->numa_node = rte_eth_dev_socket_id(port->id);
	return 0;
}

static int port_rx_setup(const struct port *port, const struct port_queues *queues,
			 const struct rte_eth_dev_info *info, uint16_t descriptors,
			 struct gdrcap_error *error)
{
	for (uint16_t q = 0; q < port->rx_queues; q++) {
		int ret =
			rte_eth_rx_queue_setup(port->id, q, descriptors,
					       (unsigned int)SOCKET_ID_ANY, NULL, queues->rx_pool);

		if (ret < 0)
			return error_set(
				error, ret,
				"port %s (%s) refused receive queue %u of %u descriptors: %s; "
				"try fewer --descriptors",
				port->name, info->driver_name, q, descriptors, rte_strerror(-ret));
	}
	return 0;
}

static int port_tx_setup(const struct port *port, const struct rte_eth_dev_info *info,
			 uint16_t descriptors, struct gdrcap_error *error)
{
	for (uint16_t q = 0; q < port->tx_queues; q++) {
		int ret = rte_eth_tx_queue_setup(port->id, q, descriptors,
						 (unsigned int)SOCKET_ID_ANY, NULL);

		if (ret < 0)
			return error_set(
				error, ret,
				"port %s (%s) refused send queue %u of %u descriptors: %s; "
				"try fewer --descriptors",
				port->name, info->driver_name, q, descriptors, rte_strerror(-ret));
	}
	return 0;
}

/* The MTU that the largest frame needs, within what the driver admits. */
static uint32_t port_mtu(const struct rte_eth_dev_info *info, uint16_t frame_bytes_max)
{
	uint32_t mtu =
		RTE_MAX((uint32_t)frame_bytes_max, (uint32_t)RTE_ETHER_MAX_LEN) - L2_OVERHEAD;

	if (info->max_mtu)
		mtu = RTE_MIN(mtu, (uint32_t)info->max_mtu);
	return mtu;
}

int port_configure(const struct port *port, const struct port_queues *queues,
		   struct gdrcap_error *error)
{
	struct rte_eth_conf conf;
	struct rte_eth_dev_info info;
	uint16_t rx_descriptors = queues->descriptors, tx_descriptors = queues->descriptors;
	int ret;

	ret = rte_eth_dev_info_get(port->id, &info);
	if (ret < 0)
		return error_set(error, ret, "port %s does not tell its limits: %s", port->name,
				 rte_strerror(-ret));
	if (queues->rx_queues > info.max_rx_queues || queues->tx_queues > info.max_tx_queues)
		return error_set(
			error, -EINVAL,
			"port %s (%s) has %u receive and %u send queues, %u and %u are asked "
			"for; lower --queues",
			port->name, info.driver_name, info.max_rx_queues, info.max_tx_queues,
			queues->rx_queues, queues->tx_queues);
	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = port_mtu(&info, queues->frame_bytes_max);
	if (queues->rx_queues > 1 && port->facts->writes == DRIVER_WRITES_DMA) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
	}
	if (queues->send_on_timestamp)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	ret = rte_eth_dev_configure(port->id, queues->rx_queues, queues->tx_queues, &conf);
	if (ret < 0)
		return error_set(error, ret, "port %s (%s) refused its configuration: %s%s",
				 port->name, info.driver_name, rte_strerror(-ret),
				 ret == -EBUSY
					 ? "; it is started already: stop it first, or the session "
					   "that has it"
					 : "");
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_descriptors, &tx_descriptors);
	if (ret < 0)
		return error_set(error, ret, "port %s (%s) refused %u descriptors: %s", port->name,
				 info.driver_name, queues->descriptors, rte_strerror(-ret));
	ret = port_rx_setup(port, queues, &info, rx_descriptors, error);
	if (ret < 0)
		return ret;
	ret = port_tx_setup(port, &info, tx_descriptors, error);
	if (ret < 0)
		return ret;
	/* Not every driver has these; a wire in software hears everything anyway. */
	(void)rte_eth_promiscuous_enable(port->id);
	return 0;
}

/* Starts a port that joins another until the two are connected. A driver that was turned away, since
 * the other end is there but not started yet, does not try again by itself. */
static int port_join(struct port *port, struct gdrcap_error *error)
{
	const struct timespec tick = { .tv_nsec = 1000000L * JOIN_TICK_MS };
	const struct timespec pause = { .tv_nsec = 1000000L * JOIN_PAUSE_MS };
	unsigned int tries = 0, ms = 0;
	int ret;

	do {
		ret = rte_eth_dev_start(port->id);
		for (unsigned int n = 0; ret == 0 && n < JOIN_TRY_MS; n += JOIN_TICK_MS) {
			if (port_link_up(port)) {
				rte_log_set_level_pattern(JOIN_LOG, RTE_LOG_NOTICE);
				return 0;
			}
			nanosleep(&tick, NULL);
			ms += JOIN_TICK_MS;
		}
		if (ret == 0)
			rte_eth_dev_stop(port->id);
		if (tries++ == 0) {
			log_line(GDRCAP_LOG_PROGRESS, "port %s: waiting for its other end",
				 port->name);
			/* It says so each time. */
			rte_log_set_level_pattern(JOIN_LOG, RTE_LOG_EMERG);
		}
		nanosleep(&pause, NULL);
		ms += JOIN_PAUSE_MS;
	} while (ms < JOIN_MS);
	rte_log_set_level_pattern(JOIN_LOG, RTE_LOG_NOTICE);
	return error_set(error, -ECONNREFUSED,
			 "port %s: nobody answers after %u s; its other end (role=server, the same "
			 "socket and id) must be there first, in this or another process",
			 port->name, JOIN_MS / 1000);
}

int port_start(struct port *port, struct gdrcap_error *error)
{
	struct rte_eth_stats stats;
	int ret;

	if (port_name_joins(port->name)) {
		ret = port_join(port, error);
		if (ret < 0)
			return ret;
	} else {
		ret = rte_eth_dev_start(port->id);
		if (ret < 0)
			return error_set(error, ret,
					 "port %s does not start: %s; the log above has the "
					 "driver's words", port->name, rte_strerror(-ret));
	}
	port->started = true;
	if (rte_eth_stats_get(port->id, &stats) == 0) {
		port->missed_base = stats.imissed;
		port->error_base = stats.ierrors;
		port->tx_error_base = stats.oerrors;
	}
	return 0;
}

void port_stop(struct port *port)
{
	int ret;

	if (!port->started)
		return;
	port->started = false;
	ret = rte_eth_dev_stop(port->id);
	if (ret < 0)
		log_warning("port %s does not stop: %s", port->name, rte_strerror(-ret));
}

void port_close(struct port *port)
{
	int ret;

	if (!port->open)
		return;
	port_stop(port);
	port->open = false;
	if (port->device[0] == '\0')
		return;
	if (rte_eth_dev_is_valid_port(port->id)) {
		ret = rte_eth_dev_close(port->id);
		if (ret < 0)
			log_warning("port %s does not close: %s", port->name, rte_strerror(-ret));
	}
	if (!port_name_is_pci(port->name)) {
		ret = rte_vdev_uninit(port->device);
		if (ret < 0)
			log_debug("vdev %s stays: %s", port->device, rte_strerror(-ret));
	}
}

struct rte_device *port_device(const struct port *port)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port->id, &info) == 0 ? info.device : NULL;
}

/* The kernel's interface under a port: the AF_PACKET and AF_XDP drivers call a link up for as long
 * as they run. True where there is none, or nobody can tell. */
static bool interface_up(const char *name)
{
	const char *at = strstr(name, ",iface=");
	struct ifreq request = { 0 };
	bool up = true;
	int fd;

	if (!at)
		return true;
	at += strlen(",iface=");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", (int)strcspn(at, ","), at);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	if (ioctl(fd, SIOCGIFFLAGS, &request) == 0)
		up = (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
	close(fd);
	return up;
}

bool port_link_up(const struct port *port)
{
	struct rte_eth_link link;

	/* A driver that cannot tell is not in the way. */
	return (rte_eth_link_get_nowait(port->id, &link) != 0 ||
		link.link_status == RTE_ETH_LINK_UP) &&
	       interface_up(port->name);
}

void port_counters(const struct port *port, struct port_counters *counters)
{
	struct rte_eth_stats stats;

	memset(counters, 0, sizeof(*counters));
	if (!port->open || rte_eth_stats_get(port->id, &stats) != 0)
		return;
	counters->rx_frames = stats.ipackets;
	counters->tx_frames = stats.opackets;
	counters->missed = stats.imissed - port->missed_base;
	counters->error = stats.ierrors - port->error_base;
	counters->tx_error = stats.oerrors - port->tx_error_base;
	counters->rx_nombuf = stats.rx_nombuf;
}
