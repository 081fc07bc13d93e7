/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of facts about drivers. */
#include "port/driver_table.h"

#include <stdio.h>
#include <string.h>

#define CONNECTX_DRIVER "mlx5"

/* The longest prefix that fits wins, so net_af_xdp is not taken for something shorter. */
static const struct driver_facts driver_table[] = {
	{ .prefix = "ring:",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_PASSES_ON,
	  .missed_exact = true,
	  .error_exact = true,
	  .what = "software wire" },
	{ .prefix = "net_ring",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_PASSES_ON,
	  .missed_exact = true,
	  .error_exact = true,
	  .shared_mbufs = true,
	  .what = "another's software wire" },
	/* Without scatter, which would cost the vector functions, a slot must hold a frame of the
	 * MTU with its FCS; and an MTU below 1500 would harm the kernel's own traffic on the
	 * interface. */
	/* Its errors are send WQEs, which may hold several frames, and receive buffers of a queue
	 * in error: no frames. What it lost before a queue, its extended statistics say. */
	{ .prefix = CONNECTX_DRIVER,
	  .writes = DRIVER_WRITES_DMA,
	  .missed_exact = true,
	  .room_min = 1518,
	  .room_fcs = true,
	  .what = "ConnectX" },
	/* With copy=0, which the port set-up insists on for memory that the CPU cannot address. */
	{ .prefix = "net_null",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_PASSES_ON,
	  .missed_exact = true,
	  .error_exact = true,
	  .what = "endless source without content" },
	{ .prefix = "net_memif",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_COPIES,
	  .missed_exact = true,
	  .error_exact = true,
	  .joins = true,
	  .both_ways = true,
	  .system_calls = true,
	  .frame_max = 1518, /* whatever bsize is */
	  .what = "shared memory interface" },
	{ .prefix = "net_pcap",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_COPIES,
	  .missed_exact = true,
	  .error_exact = true,
	  .system_calls = true,
	  .reads_first = true,
	  .what = "pcap file" },
	/*
	 * Its kernel ring drops without telling the driver, but tells us: kernel_drops.h. Frames
	 * that do not fit the ring's slots are cut, or freed as if they were sent: af_packet.h. The
	 * kernel takes 802.1Q tags off, and the driver cannot put them back into external buffers.
	 * What it calls send errors while the link is down is sent when the link is up again.
	 */
	{ .prefix = "net_af_packet",
	  .sleeps = true,
	  .writes = DRIVER_COPIES,
	  .system_calls = true,
	  .needs_root = true,
	  .no_vlan = true,
	  .interface = true,
	  .what = "kernel interface (AF_PACKET)" },
	/* Chunks of 4096 bytes less mbuf, headers and the kernel's headroom of 256. */
	{ .prefix = "net_af_xdp",
	  .sleeps = true,
	  .tx_error_counted = true,
	  .writes = DRIVER_COPIES,
	  .umem = true,
	  .system_calls = true,
	  .needs_root = true,
	  .both_ways = true,
	  .interface = true,
	  .frame_max = 3000,
	  .what = "kernel interface (AF_XDP)" },
	{ .prefix = "net_tap",
	  .sleeps = true,
	  .writes = DRIVER_COPIES,
	  .system_calls = true,
	  .needs_root = true,
	  .what = "kernel interface (TAP)" },
};

static const struct driver_facts unknown_driver = {
	.prefix = "",
	.writes = DRIVER_COPIES,
	.system_calls = true,
	.what = "driver without a row in "
		"the driver table",
};

const struct driver_facts *driver_facts_find(const char *name)
{
	const struct driver_facts *best = &unknown_driver;

	if (port_name_is_connectx(name))
		name = CONNECTX_DRIVER;
	/* The driver's other name: what it loses and cuts must not go unsaid for that. */
	if (strncmp(name, "eth_af_packet", strlen("eth_af_packet")) == 0)
		name = "net_af_packet";
	for (size_t i = 0; i < sizeof(driver_table) / sizeof(driver_table[0]); i++) {
		const struct driver_facts *row = &driver_table[i];

		if (strncmp(name, row->prefix, strlen(row->prefix)) == 0 &&
		    strlen(row->prefix) > strlen(best->prefix))
			best = row;
	}
	return best;
}

bool port_name_is_wire(const char *name)
{
	return strncmp(name, "ring:", strlen("ring:")) == 0;
}

bool port_name_is_pci(const char *name)
{
	unsigned int domain, bus, device, function;
	int end = 0;

	if (sscanf(name, "%4x:%2x:%2x.%1u%n", &domain, &bus, &device, &function, &end) == 4 ||
	    (end = 0, sscanf(name, "%2x:%2x.%1u%n", &bus, &device, &function, &end) == 3))
		return name[end] == '\0' || name[end] == ',';
	return false;
}

bool port_name_has_files(const char *name)
{
	return strncmp(name, "net_pcap", strlen("net_pcap")) == 0 && strstr(name, ",rx_pcap=");
}

/* One that sends into files is its driver's. */
bool port_name_is_file(const char *name)
{
	return port_name_has_files(name) && !strstr(name, ",tx_");
}

/* DPDK's names of virtual devices begin so, whichever driver they are of. */
bool port_name_is_vdev(const char *name)
{
	return strncmp(name, "net_", strlen("net_")) == 0 ||
	       strncmp(name, "eth_", strlen("eth_")) == 0;
}

bool port_name_is_connectx(const char *name)
{
	return name[0] && name[0] != ',' && !port_name_is_wire(name) && !port_name_is_vdev(name);
}

bool port_name_listens(const char *name)
{
	return strstr(name, "role=server") != NULL || strstr(name, "role=master") != NULL;
}

bool port_name_joins(const char *name)
{
	return driver_facts_find(name)->joins && !port_name_listens(name);
}
