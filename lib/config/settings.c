/* SPDX-License-Identifier: BSD-3-Clause */
/* Options together: what follows from several of them, and which do not go together. */
#include "config/settings_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "base/text.h"

#define REGION_ALIGNMENT 65536u

/* ---- ports ---- */

/* The device that "[DDDD:]BB:DD.F" names, as one number; the text was found to be one. */
static uint32_t pci_number(const char *port)
{
	unsigned int domain = 0, bus = 0, device = 0, function = 0;

	if (sscanf(port, "%4x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4) {
		domain = 0;
		sscanf(port, "%2x:%2x.%1x", &bus, &device, &function);
	}
	return domain << 16 | bus << 8 | device << 3 | (function & 7);
}

/* Do both names mean one device, whatever their arguments? */
static bool port_is_same(const struct port_spec *a, const struct port_spec *b)
{
	size_t length = strcspn(a->name, ",");

	if (port_name_is_pci(a->name) && port_name_is_pci(b->name))
		return pci_number(a->name) == pci_number(b->name);
	return length == strcspn(b->name, ",") && !strncmp(a->name, b->name, length);
}

/* One list: no device twice. */
static int check_list(const char *key, const struct port_list *list, struct gdrcap_error *error)
{
	char quoted[TEXT_QUOTE_BYTES];

	for (uint32_t i = 0; i < list->count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (port_is_same(&list->port[i], &list->port[j]))
				return error_set(
					error, -EINVAL,
					"%s: '%s' is given twice; give each port once (more "
					"queues: option queues)",
					key,
					text_quote(quoted, sizeof(quoted), list->port[i].name));
	return 0;
}

/* A wire in this process needs both of its ends, at the same place in the lists. */
static int check_wires(const struct settings *settings, struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < settings->ports; i++) {
		const struct port_spec *rx = &settings->rx.port[i], *tx = &settings->tx.port[i];

		if ((!rx->wire && !tx->wire) || !strcmp(rx->name, tx->name))
			continue;
		if (rx->wire)
			return error_set(
				error, -EINVAL,
				"port: nothing plays into '%s', a wire inside this process; "
				"give tx_port: %s in the same place (gdrcap loopback has "
				"both), or receive from a port that has another end, as "
				"net_memif has in another process",
				rx->name, rx->name);
		return error_set(error, -EINVAL,
				 "tx_port: nothing receives from '%s', a wire inside this "
				 "process; give port: %s in the same place (gdrcap loopback has "
				 "both), or send to a port that has another end, as net_memif has "
				 "in another process",
				 tx->name, tx->name);
	}
	return 0;
}

static int settle_ports(struct settings *settings, struct gdrcap_error *error)
{
	const struct port_list *rx = &settings->rx, *tx = &settings->tx;
	char quoted[TEXT_QUOTE_BYTES];
	int ret;

	if (!rx->count && !tx->count)
		return error_set(error, -EINVAL,
				 "port: none is given, nor a tx_port; allowed: ring:NAME, a DPDK "
				 "vdev such as net_af_packet0,iface=eth0, or a ConnectX: PCI "
				 "address, interface or mlx5_N (rdma link)");
	if (rx->count && tx->count && tx->count != rx->count)
		return error_set(
			error, -EINVAL,
			"tx_port: %u for %u in port; give none, or one for each (the first "
			"plays into the first)",
			tx->count, rx->count);
	/* What the caller sends does not come back: that is a capture. */
	settings->direction = !tx->count || (rx->count && settings_lends(settings))
				      ? DIRECTION_CAPTURE
			      : !rx->count ? DIRECTION_REPLAY
					   : DIRECTION_LOOPBACK;
	settings->ports = RTE_MAX(rx->count, tx->count);
	ret = check_list("port", rx, error);
	if (!ret)
		ret = check_list("tx_port", tx, error);
	if (!ret)
		ret = check_wires(settings, error);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < rx->count; i++)
		for (uint32_t j = 0; j < tx->count; j++)
			if (!rx->port[i].wire && port_is_same(&rx->port[i], &tx->port[j]) &&
			    !(i == j && settings_is_both(settings, i)))
				return error_set(
					error, -EINVAL,
					"tx_port: '%s' is in port too; only a ring is both "
					"ends, so send from another port%s",
					text_quote(quoted, sizeof(quoted), tx->port[j].name),
					settings_lends(settings) ? ", or give it word for word as "
								   "in port, at the same place"
								 : "");
	if (settings->burst > settings->descriptors)
		return error_set(error, -EINVAL,
				 "burst: %u is more than the %u descriptors of a ring; allowed: up "
				 "to descriptors",
				 settings->burst, settings->descriptors);
	return 0;
}

/* ---- memory ---- */

/* The caller's own region stands for the pool. */
static int settle_region(struct settings *settings, struct gdrcap_error *error)
{
	if (!settings->memory_addr)
		return 0;
	if ((uintptr_t)settings->memory_addr % REGION_ALIGNMENT)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_memory: %p is not aligned to 64 KiB",
				 settings->memory_addr);
	if (!settings->memory_bytes || settings->memory_bytes % REGION_ALIGNMENT)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_memory: a pool of %" PRIu64
				 " bytes at %p; give the region's length, a multiple of 64 KiB",
				 settings->memory_bytes, settings->memory_addr);
	if (settings->pool_bytes)
		return error_set(error, -EINVAL,
				 "pool: the memory is the caller's, %" PRIu64
				 " bytes of it; leave pool out",
				 settings->memory_bytes);
	settings->pool_bytes = settings->memory_bytes;
	return 0;
}

static int check_memory(const struct settings *settings, struct gdrcap_error *error)
{
	const bool cuda = settings->gpu.kind == GPU_CUDA;

	if (cuda && settings->memory == GDRCAP_MEMORY_HOST)
		return error_set(error, -EINVAL,
				 "memory: host memory is not visible to CUDA device %u; use pinned "
				 "(host memory that the GPU reads), or gpu: host",
				 settings->gpu.ordinal);
	if (settings->guard && cuda)
		return error_set(
			error, -EINVAL,
			"guard: works on host memory only, not on CUDA device %u; use gpu: "
			"host, or leave guard out",
			settings->gpu.ordinal);
	if (settings->guard && (settings->memory == GDRCAP_MEMORY_PINNED ||
				settings->memory == GDRCAP_MEMORY_HOST || settings->memory_addr))
		return error_set(
			error, -EINVAL,
			"guard: protects memory of the host \"GPU\" only; use memory: device "
			"without a region of your own, or leave guard out");
	if (settings->slot_bytes & (settings->slot_bytes - 1))
		return error_set(
			error, -EINVAL,
			"slot_bytes: %u is not a power of two; allowed: 256, 512, ... 16384, "
			"or 0 (chosen)",
			settings->slot_bytes);
	return 0;
}

/* ---- frames ---- */

static int settle_layout(struct settings *settings, struct gdrcap_error *error)
{
	struct frame_layout *layout = &settings->layout;

	/* A tag inside what claims to be the innermost header would never be read. */
	if (settings->frame.format == FRAME_ETHERNET &&
	    (settings->frame.ethertype == 0x8100 || settings->frame.ethertype == 0x88a8))
		return error_set(
			error, -EINVAL,
			"frame.ethertype: 0x%x is that of a VLAN tag; use frame.vlan for a "
			"tag, and here another EtherType",
			settings->frame.ethertype);
	if (frame_layout_init(layout, &settings->frame) < 0)
		return error_set(error, -EINVAL, "frame: the addresses make no frame");
	settings->custom.self_phase = settings_phase_is_own(settings);
	if (settings_is_custom(settings))
		layout->custom = settings->custom;
	for (uint32_t i = 0; i < settings->match.count; i++)
		layout->match.rule[i] = settings->match.rule[i].rule;
	layout->match.count = settings->match.count;
	return 0;
}

static int check_sizes(const struct settings *settings, struct gdrcap_error *error)
{
	const uint32_t allowed = frame_min_bytes(&settings->layout);

	/* A sender of a file has its sizes from there. */
	if ((settings->pcap[0] && !settings_receives(settings)) || settings->sizes.least >= allowed)
		return 0;
	return error_set(error, -EINVAL,
			 "frame.size: %u bytes cannot hold the headers of format %s%s; allowed: "
			 "%u..%u bytes with FCS",
			 settings->sizes.least,
			 settings->frame.format == FRAME_IPV4_UDP ? "udp" : "ethernet",
			 settings->frame.vlan ? " with a VLAN tag" : "", allowed, FRAME_MAX_BYTES);
}

/* A frame with a whole piece: what a layout asks for, whatever frame.size says. With two VLAN tags and IPv6. */
static uint16_t image_frame_bytes(const struct image_layout *layout)
{
	const uint32_t udp = layout->base == IMAGE_BASE_UDP ? 14 + 8 + 40 + 8 : 0;
	const uint32_t header = layout->parser == IMAGE_PARSER_FIELDS ? layout->payload : 8;
	const uint32_t bytes = udp + header + layout->piece + FRAME_FCS_BYTES;

	return (uint16_t)RTE_MIN(bytes, FRAME_MAX_BYTES);
}

uint16_t settings_frame_bytes(const struct settings *settings)
{
	/* A sender that plays a file has no sizes of its own. */
	uint16_t bytes =
		settings->pcap[0] && !settings_receives(settings) ? 0 : settings->sizes.largest;

	for (uint32_t i = 0; i < settings->images; i++)
		bytes = RTE_MAX(bytes, image_frame_bytes(&settings->image[i].layout));
	return bytes;
}

int settings_slot_fits(const struct settings *settings, uint32_t frame_bytes, uint32_t need,
		       struct gdrcap_error *error)
{
	if (!settings->slot_bytes || need <= settings->slot_bytes)
		return 0;
	return error_set(error, -EMSGSIZE,
			 "slot_bytes: %u are too few: frames of up to %u bytes need %u on these "
			 "ports; leave slot_bytes out, or give %u",
			 settings->slot_bytes, frame_bytes, need, rte_align32pow2(need));
}

/* Ports may need more. */
static int check_slots(const struct settings *settings, struct gdrcap_error *error)
{
	const uint16_t bytes = settings_frame_bytes(settings);

	return bytes ? settings_slot_fits(settings, bytes,
					  bytes - FRAME_FCS_BYTES + RTE_PKTMBUF_HEADROOM, error)
		     : 0;
}

static int check_pattern(const struct settings *settings, struct gdrcap_error *error)
{
	const enum pattern_kind kind = settings->pattern.kind;

	if (kind == PATTERN_FILE && !settings->pattern.file[0])
		return error_set(error, -EINVAL,
				 "pattern.file: is missing; the pattern file needs a file's path");
	if (kind != PATTERN_FILE && settings->pattern.file[0])
		return error_set(
			error, -EINVAL,
			"pattern.file: is for the pattern file only, not for %s; leave it out, "
			"or set pattern.name: file",
			pattern_name(kind));
	return 0;
}

int settings_settle(struct settings *settings, struct gdrcap_error *error)
{
	int ret = settle_ports(settings, error);

	if (!ret)
		ret = settings_check_own_queues(settings, error);
	if (!ret)
		ret = settings_check_sender(settings, error);
	if (!ret)
		ret = settings_check_consumer(settings, error);
	if (!ret)
		ret = settle_region(settings, error);
	if (!ret)
		ret = check_memory(settings, error);
	if (!ret)
		ret = settings_settle_receiver(settings, error);
	if (!ret)
		ret = settle_layout(settings, error);
	if (!ret)
		ret = settings_settle_images(settings, error);
	if (!ret)
		ret = check_sizes(settings, error);
	if (!ret)
		ret = check_slots(settings, error);
	if (!ret)
		ret = check_pattern(settings, error);
	if (!ret)
		ret = settings_check_custom(settings, error);
	if (!ret)
		ret = settings_settle_files(settings, error);
	return ret;
}
