/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of the network interface, by the names that the kernel's driver gives them. */
#include "device.h"

#define COUNTER(name, field)                                                                       \
	{                                                                                          \
		name, offsetof(struct soft_counters, field)                                        \
	}

static const struct {
	const char *name;
	size_t offset;
} stats[] = {
	COUNTER("rx_vport_unicast_packets", unicast[0]),
	COUNTER("rx_vport_unicast_bytes", unicast_bytes[0]),
	COUNTER("tx_vport_unicast_packets", unicast[1]),
	COUNTER("tx_vport_unicast_bytes", unicast_bytes[1]),
	COUNTER("rx_vport_multicast_packets", multicast[0]),
	COUNTER("rx_vport_multicast_bytes", multicast_bytes[0]),
	COUNTER("tx_vport_multicast_packets", multicast[1]),
	COUNTER("tx_vport_multicast_bytes", multicast_bytes[1]),
	COUNTER("rx_vport_broadcast_packets", broadcast[0]),
	COUNTER("rx_vport_broadcast_bytes", broadcast_bytes[0]),
	COUNTER("tx_vport_broadcast_packets", broadcast[1]),
	COUNTER("tx_vport_broadcast_bytes", broadcast_bytes[1]),
	COUNTER("rx_packets_phy", rx_packets_phy),
	COUNTER("rx_bytes_phy", rx_bytes_phy),
	COUNTER("tx_packets_phy", tx_packets_phy),
	COUNTER("tx_bytes_phy", tx_bytes_phy),
	COUNTER("rx_discards_phy", rx_discards_phy),
	COUNTER("tx_discards_phy", tx_discards_phy),
	COUNTER("rx_crc_errors_phy", rx_crc_errors_phy),
	COUNTER("rx_oversize_pkts_phy", rx_oversize_phy),
	COUNTER("rx_pause_ctrl_phy", rx_pause_phy),
	COUNTER("tx_pause_ctrl_phy", tx_pause_phy),
	COUNTER("rx_out_of_buffer", out_of_buffer),
	COUNTER("rx_wqe_err", rx_wqe_err),
	/* Below: of the model only. */
	COUNTER("soft_to_kernel", to_kernel),
	COUNTER("soft_dropped_by_rule", dropped_by_rule),
	COUNTER("soft_bad_doorbells", bad_doorbells),
	COUNTER("soft_bad_keys", bad_keys),
	COUNTER("soft_cq_overruns", cq_overruns),
	COUNTER("soft_flushed", flushed),
	COUNTER("soft_compressed", compressed),
	COUNTER("soft_interrupts", interrupts),
};

unsigned int netdev_stats_count(void)
{
	return sizeof(stats) / sizeof(stats[0]);
}

const char *netdev_stats_name(unsigned int i)
{
	return stats[i].name;
}

uint64_t netdev_stats_value(const struct soft_device *device, unsigned int i)
{
	return *(const uint64_t *)((const char *)&device->count + stats[i].offset);
}
