/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration as a whole: defaults, copies by size, and checks of options against each
 * other. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "config/config.h"
#include "config/option_check.h"
#include "config/option_table.h"
#include "port/driver_table.h"

/* A size outside is no struct of any version but memory that nobody filled. */
#define CONFIG_SIZE_MIN offsetof(struct gdrcap_config, queues)
#define CONFIG_SIZE_MAX 65536u
#define REGION_ALIGNMENT 65536u

int config_import(struct gdrcap_config *to, const struct gdrcap_config *from,
		  struct gdrcap_error *error)
{
	const char *bytes = (const char *)from;
	size_t i;

	if (!from)
		return error_set(error, -EINVAL, "no configuration is given");
	if (from->size < CONFIG_SIZE_MIN || from->size > CONFIG_SIZE_MAX)
		return error_set(error, -EINVAL,
				 "the configuration's size field is %zu, which is no version's; "
				 "start from gdrcap_config_default()",
				 from->size);
	for (i = sizeof(*to); i < from->size; i++)
		if (bytes[i])
			return error_set(
				error, -EINVAL,
				"the configuration has fields that this library (%s) does not "
				"know; leave them zero, or update libgdrcap",
				GDRCAP_VERSION);
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

void config_export(struct gdrcap_config *to, const struct gdrcap_config *from)
{
	size_t size = to->size;

	memcpy(to, from, size < sizeof(*from) ? size : sizeof(*from));
	to->size = size;
}

static void config_set_defaults(struct gdrcap_config *config)
{
	const struct option_row *row;
	size_t i;

	for (i = 0; (row = option_at(i)); i++)
		option_set_default(row, config);
}

void gdrcap_config_default(struct gdrcap_config *config)
{
	if (!config)
		return;
	memset(config, 0, sizeof(*config));
	config->size = sizeof(*config);
	config_set_defaults(config);
}

int gdrcap_config_set(struct gdrcap_config *config, const char *key, const char *value, int append,
		      struct gdrcap_error *error)
{
	const struct option_row *row = NULL;
	char quoted[OPTION_QUOTE_BYTES];
	struct gdrcap_config work;
	const char *nearest;
	int ret;

	ret = config_import(&work, config, error);
	if (ret)
		return ret;
	if (!key || !value)
		return error_set(error, -EINVAL, "no %s is given", key ? "value" : "option");
	row = option_find(key);
	if (!row) {
		nearest = option_nearest(key, "", 0);
		if (!nearest)
			nearest = option_nearest(key, "", 1);
		return error_set(error, -EINVAL, "%s: is no option%s%s%s",
				 option_quote(quoted, sizeof(quoted), key),
				 nearest ? "; did you mean '" : "", nearest ? nearest : "",
				 nearest ? "'?" : "");
	}
	if (row->offset + row->width > config->size)
		return error_set(error, -EINVAL,
				 "%s: the caller was built with a gdrcap.h that has no such field; "
				 "rebuild it",
				 key);
	ret = option_set(row, key, &work, value, append, error);
	if (!ret)
		config_export(config, &work);
	return ret;
}

unsigned int config_port_count(const char ports[GDRCAP_PORTS_MAX][256])
{
	unsigned int count = 0;

	while (count < GDRCAP_PORTS_MAX && ports[count][0])
		count++;
	return count;
}

/* Least and largest size that are sent; the text was checked before. */
static void frame_size_limits(const struct gdrcap_config *config, uint32_t *least,
			      uint32_t *largest)
{
	uint16_t sizes[PARSE_FRAME_SIZES_MAX];
	size_t count = 0, i;

	*least = FRAME_MAX_BYTES;
	*largest = FRAME_MIN_BYTES;
	parse_frame_sizes(config->frame_size, FRAME_MIN_BYTES, FRAME_MAX_BYTES, sizes,
			  PARSE_FRAME_SIZES_MAX, &count);
	for (i = 0; i < count; i++) {
		if (sizes[i] < *least)
			*least = sizes[i];
		if (sizes[i] > *largest)
			*largest = sizes[i];
	}
}

uint32_t config_largest_frame(const struct gdrcap_config *config)
{
	uint32_t least, largest;

	frame_size_limits(config, &least, &largest);
	return largest;
}

uint32_t config_slot_bytes(const struct gdrcap_config *config)
{
	uint32_t needed = CONFIG_HEADROOM + config_largest_frame(config), slot = 256;

	if (config->slot_bytes)
		return config->slot_bytes;
	while (slot < needed)
		slot *= 2;
	return slot;
}

/* One list: no device twice. */
static int check_list(const char *key, const char ports[GDRCAP_PORTS_MAX][256],
		      struct gdrcap_error *error)
{
	unsigned int count = config_port_count(ports), i, j;
	char quoted[OPTION_QUOTE_BYTES];

	for (i = 0; i < count; i++)
		for (j = 0; j < i; j++)
			if (port_is_same(ports[i], ports[j]))
				return error_set(
					error, -EINVAL,
					"%s: '%s' is given twice; give each port once (more "
					"queues: option queues)",
					key, option_quote(quoted, sizeof(quoted), ports[i]));
	return 0;
}

/* A wire in this process needs both of its ends, at the same place in the lists. */
static int check_rings(const struct gdrcap_config *config, unsigned int rx, unsigned int tx,
		       struct gdrcap_error *error)
{
	unsigned int i;

	for (i = 0; i < rx || i < tx; i++) {
		const char *peer = i < tx ? config->tx_port[i] : "";

		if (port_name_is_wire(config->port[i]) && strcmp(config->port[i], peer))
			return error_set(
				error, -EINVAL,
				"port: nothing plays into '%s', a wire inside this process; "
				"give tx_port: %s in the same place, or receive from a port "
				"that has another end",
				config->port[i], config->port[i]);
		if (port_name_is_wire(peer) && strcmp(config->port[i], peer))
			return error_set(error, -EINVAL,
					 "tx_port: nothing receives from '%s', a wire inside this "
					 "process; give port: %s in the same place",
					 peer, peer);
	}
	return 0;
}

static int check_ports(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	unsigned int rx = config_port_count(config->port);
	unsigned int tx = config_port_count(config->tx_port), i, j;
	char quoted[OPTION_QUOTE_BYTES];
	int ret;

	if (!rx && !tx)
		return error_set(error, -EINVAL,
				 "port: none is given, nor a tx_port; allowed: ring:NAME, a DPDK "
				 "vdev such as net_af_packet0,iface=eth0, or a ConnectX: PCI "
				 "address, interface or mlx5_N (rdma link)");
	if (rx && tx && tx != rx)
		return error_set(
			error, -EINVAL,
			"tx_port: %u for %u in port; give none, or one for each (the first "
			"plays into the first)",
			tx, rx);
	ret = check_list("port", config->port, error);
	if (!ret)
		ret = check_list("tx_port", config->tx_port, error);
	if (!ret)
		ret = check_rings(config, rx, tx, error);
	if (ret)
		return ret;
	for (i = 0; i < rx; i++)
		for (j = 0; j < tx; j++)
			if (!port_name_is_wire(config->port[i]) &&
			    port_is_same(config->port[i], config->tx_port[j]))
				return error_set(
					error, -EINVAL,
					"tx_port: '%s' is in port too; only a ring is both "
					"ends, so send from another port",
					option_quote(quoted, sizeof(quoted), config->tx_port[j]));
	if (config->burst > config->descriptors)
		return error_set(error, -EINVAL,
				 "burst: %u is more than the %u descriptors of a ring; allowed: up "
				 "to descriptors",
				 config->burst, config->descriptors);
	return 0;
}

static int check_memory(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	int cuda = strcmp(config->gpu, "auto") && strcmp(config->gpu, "host");

	if (cuda && config->memory == GDRCAP_MEMORY_HOST)
		return error_set(error, -EINVAL,
				 "memory: host memory is not visible to CUDA device %s; use pinned "
				 "(host memory that the GPU reads), or gpu: host",
				 config->gpu);
	if (config->guard && cuda)
		return error_set(
			error, -EINVAL,
			"guard: works on host memory only, not on CUDA device %s; use gpu: "
			"host, or leave guard out",
			config->gpu);
	if (config->guard && (config->memory == GDRCAP_MEMORY_PINNED ||
			      config->memory == GDRCAP_MEMORY_HOST || config->memory_addr))
		return error_set(
			error, -EINVAL,
			"guard: protects memory of the host \"GPU\" only; use memory: device "
			"without a region of your own, or leave guard out");
	if (config->slot_bytes & (config->slot_bytes - 1))
		return error_set(
			error, -EINVAL,
			"slot_bytes: %u is not a power of two; allowed: 256, 512, ... 16384, "
			"or 0 (chosen)",
			config->slot_bytes);
	if (!config->memory_addr)
		return 0;
	if ((uintptr_t)config->memory_addr % REGION_ALIGNMENT)
		return error_set(error, -EINVAL, "memory_addr: %p is not aligned to 64 KiB",
				 config->memory_addr);
	if (!config->pool_bytes || config->pool_bytes % REGION_ALIGNMENT)
		return error_set(error, -EINVAL,
				 "pool: %" PRIu64
				 " bytes at memory_addr; give the region's length, a "
				 "multiple of 64 KiB",
				 config->pool_bytes);
	return 0;
}

/* Options about how frames are received: whoever gives one expects something of it. */
static int check_receiver(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	const bool times = config_wants_times(config);
	const char *given = config->split			 ? "split"
			    : config->stale_check		 ? "stale_check"
			    : config->clock != GDRCAP_CLOCK_AUTO ? "clock"
								 : NULL;

	if (given && !config->port[0][0])
		return error_set(error, -EINVAL,
				 "%s: is about frames received, and nothing is; leave it out",
				 given);
	if (config->clock != GDRCAP_CLOCK_AUTO && !times)
		return error_set(error, -EINVAL,
				 "clock: is of the arrival times in saved files; give save or "
				 "save_damaged: FILE too, or leave it out");
	if (config->stale_check && config->consumer != GDRCAP_CONSUMER_VALIDATE)
		return error_set(
			error, -EINVAL,
			"stale_check: is done by the built-in consumer; the caller's own has "
			"the frames");
	if (config->stale_check && (config->save[0] || config->save_damaged[0]))
		return error_set(
			error, -EINVAL,
			"stale_check: writes over frames once they are checked, so %s would "
			"hold its marks in their place; give one of the two",
			config->save[0] ? "save" : "save_damaged");
	return 0;
}

/* A value of an enum option, by name. */
static const char *option_name(const char *key, int value)
{
	return option_find(key)->names[value];
}

static int check_frames(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	uint32_t least, largest, allowed;
	struct frame_layout layout;

	/* A tag inside what claims to be the innermost header would never be read. */
	if (config->format == GDRCAP_FORMAT_ETHERNET &&
	    (config->ethertype == 0x8100 || config->ethertype == 0x88a8))
		return error_set(
			error, -EINVAL,
			"frame.ethertype: 0x%x is that of a VLAN tag; use frame.vlan for a "
			"tag, and here another EtherType",
			config->ethertype);
	if (config_layout(config, &layout))
		return error_set(error, -EINVAL, "frame: the addresses make no frame");
	/* A sender of a file has its sizes from there. */
	if (config->pcap[0] && !config->port[0][0])
		return 0;
	allowed = frame_min_bytes(&layout);
	frame_size_limits(config, &least, &largest);
	if (least < allowed)
		return error_set(error, -EINVAL,
				 "frame.size: %u bytes cannot hold the headers of format %s%s; "
				 "allowed: %u..%u bytes with FCS",
				 least, option_name("frame.format", config->format),
				 config->vlan ? " with a VLAN tag" : "", allowed, FRAME_MAX_BYTES);
	if (config->slot_bytes && config->slot_bytes < CONFIG_HEADROOM + largest)
		return error_set(error, -EINVAL,
				 "slot_bytes: %u cannot hold %u bytes of room and a frame of %u; "
				 "allowed: 0 (chosen) or a power of two from %u",
				 config->slot_bytes, CONFIG_HEADROOM, largest,
				 CONFIG_HEADROOM + largest);
	return 0;
}

static int check_pattern(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	enum pattern_kind kind = PATTERN_NONE;

	pattern_from_name(config->pattern, &kind);
	if (kind == PATTERN_FILE && !config->pattern_file[0])
		return error_set(error, -EINVAL,
				 "pattern.file: is missing; the pattern file needs a file's path");
	if (kind != PATTERN_FILE && config->pattern_file[0])
		return error_set(
			error, -EINVAL,
			"pattern.file: is for the pattern file only, not for %s; leave it out, "
			"or set pattern.name: file",
			config->pattern);
	return 0;
}

int config_complete(struct gdrcap_config *to, const struct gdrcap_config *from,
		    struct gdrcap_error *error)
{
	const struct option_row *row;
	size_t i;
	int ret;

	ret = config_import(to, from, error);
	if (ret)
		return ret;
	to->size = sizeof(*to);
	for (i = 0; (row = option_at(i)); i++) {
		ret = option_check(row, to, error);
		if (ret)
			return ret;
	}
	if ((unsigned int)to->consumer > GDRCAP_CONSUMER_GPU)
		return error_set(error, -EINVAL, "consumer: %u is none of enum gdrcap_consumer",
				 (unsigned int)to->consumer);
	config_set_defaults(to);
	/* A file played into our own port is what is expected there. */
	if (to->pcap[0] && to->port[0][0] && !to->expect[0] &&
	    to->format != GDRCAP_FORMAT_FOREIGN && to->consumer == GDRCAP_CONSUMER_VALIDATE)
		memcpy(to->expect, to->pcap, sizeof(to->expect));
	ret = check_ports(to, error);
	if (!ret)
		ret = check_memory(to, error);
	if (!ret)
		ret = check_receiver(to, error);
	if (!ret)
		ret = check_frames(to, error);
	if (!ret)
		ret = check_pattern(to, error);
	if (!ret)
		ret = config_check_foreign(to, error);
	if (!ret)
		ret = config_check_files(to, error);
	return ret;
}

int gdrcap_config_check(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	struct gdrcap_config complete;

	return config_complete(&complete, config, error);
}
