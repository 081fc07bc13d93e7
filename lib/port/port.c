/* SPDX-License-Identifier: BSD-3-Clause */
/* An ethdev port: configured, started, started again, stopped, closed, its counters. */
#include "port/port.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "port/dpdk_release.h"
#include "port/held_files.h"
#include "port/interface.h"
#include "port/kernel_drops.h"
#include "port/memif_stop.h"
#include "port/port_join.h"
#include "port/port_mtu.h"

#define SPLIT_SEGMENTS 2
/* With more, the completion queue of the mlx5 driver's scalar functions, twice as long where
 * completions are compressed, has a length that does not fit their 16 bits: nothing is received. */
#define SPLIT_DESCRIPTORS_MAX 16384u
#define DRAIN_FRAMES 32

static bool rx_has(const struct port *port, uint64_t offloads, struct rte_eth_dev_info *info)
{
	return rte_eth_dev_info_get(port->id, info) == 0 &&
	       (info->rx_offload_capa & offloads) == offloads;
}

#define SPLIT_OFFLOADS (RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT)

bool port_has_split(const struct port *port)
{
	struct rte_eth_dev_info info;

	return rx_has(port, SPLIT_OFFLOADS, &info) && info.rx_seg_capa.multi_pools &&
	       info.rx_seg_capa.max_nseg >= SPLIT_SEGMENTS;
}

bool port_has_rx_timestamps(const struct port *port)
{
	struct rte_eth_dev_info info;

	return rx_has(port, RTE_ETH_RX_OFFLOAD_TIMESTAMP, &info);
}

bool port_has_tx_segments(const struct port *port)
{
	struct rte_eth_dev_info info;

	return port->facts->writes != DRIVER_PASSES_ON && !port->facts->umem &&
	       rte_eth_dev_info_get(port->id, &info) == 0 &&
	       (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
}

static int port_rx_setup(const struct port *port, const struct port_queues *queues,
			 const struct rte_eth_dev_info *info, uint16_t descriptors,
			 struct gdrcap_error *error)
{
	union rte_eth_rxseg segment[SPLIT_SEGMENTS] = { 0 };
	struct rte_eth_rxconf split = info->default_rxconf;

	split.rx_seg = segment;
	split.rx_nseg = SPLIT_SEGMENTS;
	split.offloads |= SPLIT_OFFLOADS;
	for (uint16_t q = 0; q < port->rx_queues; q++) {
		int ret;

		if (queues->split) {
			segment[0].split.mp = queues->head_pool[q];
			segment[0].split.length = queues->split;
			segment[1].split.mp = queues->rx_pool[q];
		}
		ret = rte_eth_rx_queue_setup(port->id, q, descriptors, (unsigned int)SOCKET_ID_ANY,
					     queues->split ? &split : NULL,
					     queues->split ? NULL : queues->rx_pool[q]);
		if (ret < 0)
			return error_set(
				error, ret,
				"port %s (%s) refused receive queue %u of %u descriptors: %s; "
				"try fewer --descriptors",
				port->name, info->driver_name, q, descriptors, rte_strerror(-ret));
	}
	return 0;
}

/* The same, with a look at the sockets that a driver opens for them. */
static int port_rx_setup_seen(struct port *port, const struct port_queues *queues,
			      const struct rte_eth_dev_info *info, uint16_t descriptors,
			      struct gdrcap_error *error)
{
	struct kernel_sockets before;
	int ret;

	kernel_sockets_list(&before);
	ret = port_rx_setup(port, queues, info, descriptors, error);
	if (ret == 0 && !port->drops)
		port->drops = kernel_drops_open(&before, info->if_index, port->rx_queues);
	return ret;
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

/* What the port is asked for, within what `info` says that it can. */
static void conf_make(const struct port *port, const struct port_queues *queues,
		      const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->rxmode.mtu = port_mtu(port, info, queues->frame_bytes_max);
	/* Where rules decide, it is their own actions that spread frames, by the same fields. */
	if (queues->rx_queues > 1 && port->facts->writes == DRIVER_WRITES_DMA) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
	}
	if (queues->split)
		conf->rxmode.offloads |= SPLIT_OFFLOADS;
	if (queues->rx_timestamps)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	if (queues->segments && port_has_tx_segments(port))
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (queues->send_on_timestamp)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	/* Without it a card that is taken away does not say so. */
	conf->intr_conf.rxq = queues->rx_interrupts;
	conf->intr_conf.rmv = info->dev_flags && (*info->dev_flags & RTE_ETH_DEV_INTR_RMV) != 0;
}

static const char *configure_remedy(int code)
{
	if (code == -EBUSY)
		return "; it is started already: stop it first, or the session that has it";
	if (code == -EPERM)
		return "; to change the MTU of its interface takes CAP_NET_ADMIN, or root: or let "
		       "--frame-size be the MTU and 18 bytes";
	return "";
}

/* Of drivers whose devargs say how many there are: how to have more. */
static const char *queues_more(const struct port *port)
{
	if (port_name_is_af_packet(port->name))
		return ", or give the port as many: qpairs=N in its name";
	return strcmp(port->facts->prefix, "net_af_xdp") == 0
		       ? ", or give the port as many: queue_count=N in its name, of an interface "
			 "that has them (ethtool -l)"
		       : "";
}

int port_configure(struct port *port, const struct port_queues *queues, struct gdrcap_error *error)
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
		return error_of_config(
			error,
			error_set(error, -EINVAL,
				  "port %s (%s) has %u receive and %u send queues, %u and %u are "
				  "asked for; lower queues%s",
				  port->name, info.driver_name, info.max_rx_queues,
				  info.max_tx_queues, queues->rx_queues, queues->tx_queues,
				  queues_more(port)));
	ret = port_mtu_fits(port, queues, info.if_index, error);
	if (ret < 0)
		return ret;
	port->setup = *queues;
	conf_make(port, queues, &info, &conf);
	port_mtu_remember(port, conf.rxmode.mtu);
	log_words_forget();
	ret = rte_eth_dev_configure(port->id, queues->rx_queues, queues->tx_queues, &conf);
	if (ret < 0 && conf.intr_conf.rxq) {
		port->setup.rx_interrupts = false;
		conf.intr_conf.rxq = 0;
		ret = rte_eth_dev_configure(port->id, queues->rx_queues, queues->tx_queues, &conf);
	}
	if (ret < 0)
		return error_add_words(
			error, error_set(error, ret, "port %s (%s) refused its configuration: %s%s",
					 port->name, info.driver_name, rte_strerror(-ret),
					 configure_remedy(ret)));
	/* A split frame takes one for each part. */
	if (queues->split)
		rx_descriptors = (uint16_t)RTE_MIN(SPLIT_SEGMENTS * (uint32_t)rx_descriptors,
						   SPLIT_DESCRIPTORS_MAX);
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_descriptors, &tx_descriptors);
	if (ret < 0)
		return error_set(error, ret, "port %s (%s) refused %u descriptors: %s", port->name,
				 info.driver_name, queues->descriptors, rte_strerror(-ret));
	ret = port->facts->interface ? port_rx_setup_seen(port, queues, &info, rx_descriptors,
							  error)
				     : port_rx_setup(port, queues, &info, rx_descriptors, error);
	if (ret < 0)
		return ret;
	ret = port_tx_setup(port, &info, tx_descriptors, error);
	if (ret < 0)
		return ret;
	/* Not every driver has it; a wire in software hears everything anyway, and an isolated port
	 * what its rules say. Those of the kernel's interfaces would set a flag that stays. */
	if (port->rx_queues > 0 && !port->facts->interface && !port->isolated)
		(void)rte_eth_promiscuous_enable(port->id);
	if (port->rx_queues > 0 && port->facts->interface && !port->hears_all)
		port->hears_all = interface_hear_all(info.if_index, port->name);
	return 0;
}

static int port_start_once(struct port *port, struct gdrcap_error *error)
{
	char interface[IF_NAMESIZE];
	bool hears_all;
	int ret;

	if (port_name_joins(port->name))
		return join_start(port, error);
	hears_all = port->facts->interface && interface_of(port->name, interface) &&
		    interface_hears_all(interface);
	log_words_forget();
	ret = rte_eth_dev_start(port->id);
	/* ethdev, which does not know that somebody wants it so, has turned it off. */
	if (hears_all && !interface_hears_all(interface))
		interface_set_hears_all(interface);
	return ret < 0 ? error_add_words(error, error_set(error, ret, "port %s does not start: %s",
							  port->name, rte_strerror(-ret)))
		       : 0;
}

int port_start(struct port *port, struct gdrcap_error *error)
{
	struct port_queues queues = port->setup;
	struct rte_eth_stats stats;
	int ret = port_start_once(port, error);

	if (ret < 0 && queues.rx_interrupts) {
		/* For want of them, perhaps: they are made at the start. */
		queues.rx_interrupts = false;
		ret = port_configure(port, &queues, error);
		if (ret == 0)
			ret = port_start_once(port, error);
		if (ret == 0)
			log_info("port %s starts without receive interrupts only: idle receivers "
				 "look for frames from time to time",
				 port->name);
	}
	if (ret < 0)
		return ret;
	port->started = true;
	/* Its sockets took frames of all interfaces until they were bound to theirs. */
	if (port_name_is_af_packet(port->name)) {
		struct af_packet_ring ring;

		af_packet_ring(&ring, port->name);
		port_flush(port, ring.frames);
	}
	if (rte_eth_stats_get(port->id, &stats) == 0) {
		port->missed_base = stats.imissed;
		port->error_base = stats.ierrors;
		port->tx_error_base = stats.oerrors;
		port->tx_frames_base = stats.opackets;
		port->tx_bytes_base = stats.obytes;
	}
	return 0;
}

void port_flush(const struct port *port, uint32_t most)
{
	struct rte_mbuf *mbufs[DRAIN_FRAMES];

	for (uint16_t q = 0; q < port->rx_queues; q++) {
		uint16_t count = DRAIN_FRAMES;

		for (uint32_t gone = 0; gone < most && count == DRAIN_FRAMES; gone += count) {
			count = rte_eth_rx_burst(port->id, q, mbufs, DRAIN_FRAMES);
			rte_pktmbuf_free_bulk(mbufs, count);
		}
	}
}

void port_stop(struct port *port)
{
	int ret;

	if (!port->started)
		return;
	port->started = false;
	ret = port->facts->joins ? memif_stop(port->id) : rte_eth_dev_stop(port->id);
	if (ret < 0)
		log_warning("port %s does not stop: %s", port->name, rte_strerror(-ret));
}

int port_restart(struct port *port, struct gdrcap_error *error)
{
	const struct port_queues queues = port->setup;
	struct port_counters counted;
	int ret;

	port_stop(port);
	port_counters(port, &counted);
	/* New queues: the mlx5 driver's vector functions remember an error over a stop, and would
	 * ask the card for a change of state that the queue is not in. */
	ret = port_configure(port, &queues, error);
	if (ret == 0)
		ret = port_start(port, error);
	if (ret < 0)
		return ret;
	/* Some drivers' counters begin anew at a start and others' go on. */
	port->missed_base -= counted.missed;
	port->error_base -= counted.error;
	port->tx_error_base -= counted.tx_error;
	/* A queue that remembers an error loses what comes until a poll has found nothing. */
	port_flush(port, 1);
	return 0;
}

void port_close(struct port *port)
{
	int ret;

	if (!port->open)
		return;
	port_stop(port);
	port->open = false;
	kernel_drops_close(port->drops);
	port->drops = NULL;
	if (port->hears_all)
		close(port->hears_all);
	port->hears_all = 0;
	port_mtu_give_back(port);
	if (port->device[0] == '\0')
		return;
	if (rte_eth_dev_is_valid_port(port->id)) {
		ret = port->facts->joins ? memif_close(port->id) : rte_eth_dev_close(port->id);
		if (ret < 0)
			log_warning("port %s does not close: %s", port->name, rte_strerror(-ret));
	}
	if (port->facts->writes == DRIVER_WRITES_DMA) {
		/* Else nobody could open it again with other arguments in this process. */
		ret = rte_eal_hotplug_remove("pci", port->device);
		if (ret < 0)
			log_warning("port %s stays open: %s", port->name, rte_strerror(-ret));
	} else {
		ret = rte_vdev_uninit(port->device);
		if (ret < 0)
			log_debug("vdev %s stays: %s", port->device, rte_strerror(-ret));
	}
	held_files_close(port->held);
	port->held = NULL;
}

struct rte_device *port_device(const struct port *port)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port->id, &info) == 0 ? info.device : NULL;
}

uint32_t port_room_min(const char *name)
{
	struct af_packet_ring ring;

	if (!port_name_is_af_packet(name))
		return driver_facts_find(name)->room_min;
	af_packet_ring(&ring, name);
	return af_packet_room(&ring);
}

/* A card says so by an event; a caller's own port may be of another network namespace. */
unsigned int port_interface_index(const struct port *port)
{
	struct rte_eth_dev_info info;

	if (!port->open || port->facts->writes != DRIVER_COPIES || port->device[0] == '\0' ||
	    rte_eth_dev_info_get(port->id, &info) != 0)
		return 0;
	return info.if_index;
}

bool port_link_up(const struct port *port)
{
	char interface[IF_NAMESIZE];
	struct rte_eth_link link;

	/* A driver that cannot tell is not in the way. Those of the kernel's interfaces call a link
	 * up for as long as they run. */
	return (rte_eth_link_get_nowait(port->id, &link) != 0 ||
		link.link_status == RTE_ETH_LINK_UP) &&
	       (!interface_of(port->name, interface) || interface_up(interface));
}

void port_counters(const struct port *port, struct port_counters *counters)
{
	struct rte_eth_stats stats;

	memset(counters, 0, sizeof(*counters));
	if (!port->open || rte_eth_stats_get(port->id, &stats) != 0)
		return;
	counters->missed =
		port->drops ? kernel_drops_read(port->drops) : stats.imissed - port->missed_base;
	/* What the driver has read is no longer there for us. */
	if (DPDK_READS_PACKET_DROPS && port->drops && kernel_drops_clear(port->drops))
		counters->missed += stats.imissed;
	counters->error = stats.ierrors - port->error_base;
	counters->tx_error = stats.oerrors - port->tx_error_base;
	counters->tx_frames = stats.opackets - port->tx_frames_base;
	counters->tx_bytes = stats.obytes - port->tx_bytes_base;
	counters->rx_nombuf = stats.rx_nombuf;
}

bool port_missed_exact(const struct port *port)
{
	return port->facts->missed_exact || port->drops;
}
