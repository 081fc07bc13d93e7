/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver's extended statistics: where and why frames were lost. */
#include "port/xstats.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include <rte_ethdev.h>

#define KERNEL_COUNTERS_MAX 16384u /* an mlx5 interface has some thousand */

/* Each counter's name in DPDK's mlx5 driver, and in the kernel's, which other DPDK drivers and
 * later releases use too. The first that is there counts. What is counted at the physical port is asked of
 * the kernel before the driver, as the kernel's goes on while the port is started again; of a queue
 * the kernel knows only its own. */
static const struct {
	const char *name, *counter[2];
} causes[XSTATS_CAUSES] = {
	[XSTATS_NO_BUFFER] = { "out_of_buffer", { "rx_out_of_buffer", "rx_out_of_buffer" } },
	[XSTATS_CARD_FULL] = { "card_full", { "rx_phy_discard_packets", "rx_discards_phy" } },
	[XSTATS_WIRE_CRC] = { "wire_crc", { "rx_phy_crc_errors", "rx_crc_errors_phy" } },
	[XSTATS_WIRE_SYMBOL] = { "wire_symbol", { "rx_phy_symbol_errors", "rx_symbol_err_phy" } },
	[XSTATS_WIRE_LENGTH] = { "wire_length",
				 { "rx_phy_in_range_len_errors", "rx_in_range_len_errors_phy" } },
	[XSTATS_QUEUE_ERROR] = { "queue_error", { "rx_wqe_errors", "rx_wqe_err" } },
	[XSTATS_PAUSE_RX] = { "pause_received", { "rx_phy_pause_packets", "rx_pause_ctrl_phy" } },
	[XSTATS_PAUSE_TX] = { "pause_sent", { "tx_phy_pause_packets", "tx_pause_ctrl_phy" } },
	[XSTATS_TX_WIRE_ERROR] = { "tx_wire_error", { "tx_phy_errors", "tx_errors_phy" } },
	[XSTATS_TX_DISCARD] = { "tx_discard", { "tx_phy_discard_packets", "tx_discards_phy" } },
	[XSTATS_WIRE_FRAMES_RX] = { "wire_frames_received",
				    { "rx_phy_packets", "rx_packets_phy" } },
	[XSTATS_WIRE_FRAMES_TX] = { "wire_frames_sent", { "tx_phy_packets", "tx_packets_phy" } },
};

/* What a count says to people, with what helps. */
static const struct {
	const char *text;
	bool senders; /* it is counted where frames are sent */
} meanings[XSTATS_CAUSES] = {
	[XSTATS_NO_BUFFER] = { "no free slot in the queue (the frames of nic_missed): the consumer is slower than "
			       "the wire, or the pool is small; raise --blocks or --pool",
			       false },
	[XSTATS_CARD_FULL] = { "the card's own buffer was full: PCIe or the memory is slower than the wire; see "
			       "LnkSta in lspci -vv, and nvidia-smi topo -m",
			       false },
	[XSTATS_WIRE_CRC] = { "damaged on the wire: clean or change cable and transceiver (ethtool -m INTERFACE)",
			      false },
	[XSTATS_WIRE_SYMBOL] = { "symbol errors on the wire: clean or change cable and transceiver, and use the same "
				 "FEC at both ends (ethtool --show-fec INTERFACE)",
				 false },
	[XSTATS_WIRE_LENGTH] = { "frames whose length field was wrong: the other side makes them; correct its frames",
				 false },
	[XSTATS_QUEUE_ERROR] = { "receive buffers that ended in an error: the memory's registration broke, or the GPU "
				 "failed; the messages and dmesg say which",
				 false },
	[XSTATS_PAUSE_RX] = { "pause frames that came: the other side held this sender up; its flow control off: "
			      "ethtool -A INTERFACE tx off, there",
			      true },
	[XSTATS_PAUSE_TX] = { "pause frames that we sent: flow control held the sender up in place of loss; to see "
			      "the loss: ethtool -A INTERFACE tx off",
			      false },
	[XSTATS_TX_WIRE_ERROR] = { "frames that the card could not send: see the link (ethtool INTERFACE) and dmesg",
				   true },
	[XSTATS_TX_DISCARD] = { "frames that the card dropped before the wire: the link was down, or paused for too "
				"long (ethtool -a INTERFACE)",
				true },
	[XSTATS_WIRE_FRAMES_RX] = { "all frames that came to the physical port, the kernel's too; those sent that are not "
				    "among them were lost on the way",
				    false },
	[XSTATS_WIRE_FRAMES_TX] = { "all frames that left through the physical port, the kernel's too",
				    true },
};

const char *xstats_cause_name(enum xstats_cause cause)
{
	return (unsigned int)cause < XSTATS_CAUSES ? causes[cause].name : "unknown";
}

const char *xstats_cause_meaning(enum xstats_cause cause)
{
	return (unsigned int)cause < XSTATS_CAUSES ? meanings[cause].text : "";
}

bool xstats_cause_is_senders(enum xstats_cause cause)
{
	return (unsigned int)cause < XSTATS_CAUSES && meanings[cause].senders;
}

/* ---- the kernel's counters: ethtool -S ---- */

static int kernel_ask(const char *interface, void *question)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	/* The kernel's names are shorter. */
	memcpy(request.ifr_name, interface, strnlen(interface, sizeof(request.ifr_name) - 1));
	request.ifr_data = question;
	ret = ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static uint32_t kernel_counters(const char *interface)
{
	union {
		struct ethtool_sset_info info;
		uint32_t room[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
	} sets = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS } };
	uint32_t count = 0;

	if (kernel_ask(interface, &sets) == 0 && sets.info.sset_mask)
		memcpy(&count, sets.info.data, sizeof(count));
	return count <= KERNEL_COUNTERS_MAX ? count : 0;
}

static bool at_physical_port(uint32_t cause)
{
	return strstr(causes[cause].counter[1], "_phy") != NULL;
}

/* Where the kernel has what the driver has not, or knows it better. */
static void kernel_names(struct xstats *xstats)
{
	const uint32_t count = kernel_counters(xstats->interface);
	struct ethtool_gstrings *names;

	if (count == 0)
		return;
	names = calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
	if (!names)
		return;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = count;
	if (kernel_ask(xstats->interface, names) == 0 && names->len == count) {
		xstats->kernel_counters = count;
		for (uint32_t i = 0; i < count; i++)
			for (uint32_t c = 0; c < XSTATS_CAUSES; c++) {
				if (xstats->cause[c].source == XSTATS_KERNEL ||
				    (xstats->cause[c].source == XSTATS_DRIVER &&
				     !at_physical_port(c)) ||
				    strncmp((char *)names->data + (size_t)i * ETH_GSTRING_LEN,
					    causes[c].counter[1], ETH_GSTRING_LEN) != 0)
					continue;
				xstats->cause[c].source = XSTATS_KERNEL;
				xstats->cause[c].id = i;
			}
	}
	free(names);
}

/* NULL, or all of them: free() it. */
static struct ethtool_stats *kernel_read(const struct xstats *xstats)
{
	const uint32_t count = xstats->kernel_counters;
	struct ethtool_stats *stats;

	if (count == 0)
		return NULL;
	/* The kernel writes as many as it has by now, whatever it is told; somebody may be changing
	 * the interface's channels. */
	if (kernel_counters(xstats->interface) != count)
		return NULL;
	stats = calloc(1, sizeof(*stats) + 2 * (size_t)count * sizeof(stats->data[0]));
	if (!stats)
		return NULL;
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = count;
	if (kernel_ask(xstats->interface, stats) == 0 && stats->n_stats == count)
		return stats;
	free(stats);
	return NULL;
}

/* ---- both ---- */

static void driver_names(struct xstats *xstats)
{
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++)
		for (uint32_t n = 0; n < 2 && xstats->cause[c].source == XSTATS_NOWHERE; n++)
			if (rte_eth_xstats_get_id_by_name(xstats->port, causes[c].counter[n],
							  &xstats->cause[c].id) == 0)
				xstats->cause[c].source = XSTATS_DRIVER;
}

/* As they stand, base included. */
static void values_read(const struct xstats *xstats, struct xstats_values *values)
{
	uint64_t id[XSTATS_CAUSES], count[XSTATS_CAUSES];
	struct ethtool_stats *kernel = kernel_read(xstats);
	unsigned int asked = 0, answered;

	memset(values, 0, sizeof(*values));
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++)
		if (xstats->cause[c].source == XSTATS_DRIVER)
			id[asked++] = xstats->cause[c].id;
	/* All at once: each call makes the driver ask the card for everything. */
	if (asked && rte_eth_xstats_get_by_id(xstats->port, id, count, asked) != (int)asked)
		asked = 0;
	answered = 0;
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++) {
		if (xstats->cause[c].source == XSTATS_DRIVER && asked)
			values->count[c] = count[answered++];
		else if (xstats->cause[c].source == XSTATS_KERNEL && kernel)
			values->count[c] = kernel->data[xstats->cause[c].id];
		else
			continue;
		values->known |= 1u << c;
	}
	free(kernel);
}

void xstats_open(struct xstats *xstats, uint16_t port)
{
	struct rte_eth_dev_info info;
	struct xstats_values values;

	memset(xstats, 0, sizeof(*xstats));
	xstats->port = port;
	driver_names(xstats);
	if (rte_eth_dev_info_get(port, &info) == 0 && info.if_index &&
	    if_indextoname(info.if_index, xstats->interface))
		kernel_names(xstats);
	values_read(xstats, &values);
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++) {
		xstats->cause[c].base = values.count[c];
		/* Without a base nothing is known afterwards either. */
		if (!xstats_known(&values, (enum xstats_cause)c))
			xstats->cause[c].source = XSTATS_NOWHERE;
	}
}

void xstats_read(const struct xstats *xstats, struct xstats_values *values)
{
	values_read(xstats, values);
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++)
		if (xstats_known(values, (enum xstats_cause)c))
			values->count[c] -= xstats->cause[c].base;
}

void xstats_go_on(struct xstats *xstats, const struct xstats_values *before)
{
	struct xstats_values now;

	xstats_read(xstats, &now);
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++)
		if (xstats->cause[c].source == XSTATS_DRIVER &&
		    xstats_known(&now, (enum xstats_cause)c) &&
		    (int64_t)(now.count[c] - before->count[c]) < 0)
			xstats->cause[c].base += now.count[c] - before->count[c];
}
