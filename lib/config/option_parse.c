/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of single options whose value is written as a text. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/parse.h"
#include "config/option_parse.h"
#include "config/settings.h"
#include "pattern/pattern.h"

#define WIRE_NAME_MAX 32
#define IDLE_LEAST_US 10u
#define IDLE_MOST_US 10000u
#define HEX_DIGITS "0123456789abcdefABCDEF"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

static const char *port_problem(const char *text)
{
	size_t length = strcspn(text, ",");

	if (port_name_is_wire(text)) {
		text = strchr(text, ':') + 1;
		length = strspn(text, NAME_CHARS);
		if (!length || text[length] || length > WIRE_NAME_MAX)
			return "does not name its wire with 1 to 32 letters, digits, '_', '.' or "
			       "'-'";
		return NULL;
	}
	if (port_name_is_pci(text) && strspn(text, HEX_DIGITS ":.") == length)
		return NULL;
	if (strspn(text, NAME_CHARS) != length)
		return "is not a port's name";
	/* A ConnectX's interface or RDMA device: whether there is one, plan.c finds out. */
	if (port_name_is_vdev(text) ? length > 4 : length > 0)
		return NULL;
	return "is not a port's name";
}

const char *option_parse_port(const char *text, void *to)
{
	const char *problem = port_problem(text);
	struct port_spec *port = to;

	if (problem)
		return problem;
	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", text);
	port->facts = driver_facts_find(text);
	port->wire = port_name_is_wire(text);
	port->connectx = port_name_is_connectx(text);
	port->copies = port->facts->writes == DRIVER_COPIES ||
		       (strncmp(text, "net_null", 8) == 0 && strstr(text, "copy=1"));
	return NULL;
}

const char *option_parse_gpu(const char *text, void *to)
{
	struct gpu_choice *gpu = to;
	uint64_t ordinal = 0;
	enum gpu_kind kind = strcmp(text, "auto") == 0	 ? GPU_AUTO
			     : strcmp(text, "host") == 0 ? GPU_HOST
							 : GPU_CUDA;

	if (kind == GPU_CUDA) {
		if (text[1] == 'x' || text[1] == 'X' || parse_u64(text, &ordinal))
			return "names no GPU";
		if (ordinal > 255)
			return "is out of range";
	}
	gpu->kind = kind;
	gpu->ordinal = (uint32_t)ordinal;
	return NULL;
}

const char *option_parse_sizes(const char *text, void *to)
{
	uint16_t bytes[PARSE_FRAME_SIZES_MAX];
	struct frame_sizes *sizes = to;
	size_t count;

	switch (parse_frame_sizes(text, FRAME_MIN_BYTES, FRAME_MAX_BYTES, bytes,
				  PARSE_FRAME_SIZES_MAX, &count)) {
	case 0:
		break;
	case -ERANGE:
		return "is out of range";
	case -E2BIG:
		return "makes a cycle of more than 16384 sizes";
	default:
		return "is not a list of frame sizes";
	}
	sizes->count = (uint32_t)count;
	sizes->least = FRAME_MAX_BYTES;
	sizes->largest = FRAME_MIN_BYTES;
	for (size_t i = 0; i < count; i++) {
		sizes->least = RTE_MIN(bytes[i], sizes->least);
		sizes->largest = RTE_MAX(bytes[i], sizes->largest);
		sizes->length[i] = (uint16_t)(bytes[i] - FRAME_FCS_BYTES);
	}
	return NULL;
}

static const char *parse_station(const char *text, uint8_t to[6], bool source)
{
	static const uint8_t zero[6];
	uint8_t mac[6];

	if (parse_mac(text, mac))
		return "is not a MAC address";
	if (!memcmp(mac, zero, sizeof(mac)))
		return "is the zero address, which no station has";
	if (source && (mac[0] & 1))
		return "is a group address, which no frame comes from";
	memcpy(to, mac, sizeof(mac));
	return NULL;
}

const char *option_parse_src_mac(const char *text, void *to)
{
	return parse_station(text, to, true);
}

const char *option_parse_dst_mac(const char *text, void *to)
{
	return parse_station(text, to, false);
}

static const char *parse_address(const char *text, uint32_t *to, bool source)
{
	uint32_t address;

	if (parse_ipv4(text, &address))
		return "is not an IPv4 address";
	if (!address)
		return "is the zero address";
	if (source && address >= 0xe0000000u)
		return "is multicast or reserved, which no packet comes from";
	*to = address;
	return NULL;
}

const char *option_parse_src_ip(const char *text, void *to)
{
	return parse_address(text, to, true);
}

const char *option_parse_dst_ip(const char *text, void *to)
{
	return parse_address(text, to, false);
}

const char *option_parse_cores(const char *text, void *to)
{
	struct core_list *cores = to;
	int cpus[GDRCAP_CORES_MAX] = { 0 };
	size_t count;

	switch (parse_cpu_list(text, cpus, GDRCAP_CORES_MAX, &count)) {
	case 0:
		memcpy(cores->cpu, cpus, sizeof(cpus));
		cores->count = (uint32_t)count;
		return NULL;
	case -ERANGE:
		return "is out of range (CPUs are 0..8191)";
	case -E2BIG:
		return "names too many CPUs";
	default:
		return "is not a list of CPUs, each named once";
	}
}

const char *option_parse_match(const char *text, void *to)
{
	static _Thread_local char why[128];
	struct match_rule *match = to;
	struct frame_match_rule rule;

	if (frame_match_parse(&rule, text, why, sizeof(why)))
		return why;
	match->rule = rule;
	snprintf(match->text, sizeof(match->text), "%s", text);
	return NULL;
}

const char *option_parse_path(const char *text, void *to)
{
	snprintf(to, SETTINGS_PATH_BYTES, "%s", text);
	return NULL;
}

const char *option_parse_loops(const char *text, void *to)
{
	uint64_t *loops = to, count = UINT64_MAX;

	if (strcmp(text, "forever") != 0) {
		if (parse_count(text, &count))
			return "is not a count";
		if (count < 1 || count > UINT32_MAX)
			return "is out of range";
	}
	*loops = count;
	return NULL;
}

/* As fast as possible is a value too: 0 says that none was given. */
static void take_pacing(struct pacing_config *to, const struct pacing_config *pacing)
{
	to->kind = pacing->kind;
	to->value = pacing->kind == PACING_NONE ? 1 : pacing->value;
}

const char *option_parse_rate(const char *text, void *to)
{
	struct pacing_config rate;

	if (pacing_parse_rate(text, &rate))
		return "is not a rate";
	take_pacing(to, &rate);
	return NULL;
}

const char *option_parse_start(const char *text, void *to)
{
	struct parse_moment moment;

	switch (parse_moment(text, &moment)) {
	case 0:
		break;
	case -ERANGE:
		return "is out of range";
	default:
		return "is no time";
	}
	if (moment.after && moment.ns > SETTINGS_START_MOST_NS)
		return "is out of range";
	memcpy(to, &moment, sizeof(moment));
	return NULL;
}

const char *option_parse_idle_sleep(const char *text, void *to)
{
	uint64_t us = SETTINGS_IDLE_AUTO;

	if (strcmp(text, "auto") != 0) {
		if (parse_u64(text, &us))
			return "is neither auto nor a whole number in range";
		if (us && (us < IDLE_LEAST_US || us > IDLE_MOST_US))
			return "is out of range";
	}
	*(uint32_t *)to = (uint32_t)us;
	return NULL;
}

const char *option_parse_speed(const char *text, void *to)
{
	struct pacing_config speed;

	if (pacing_parse_speed(text, &speed))
		return "is not a factor";
	take_pacing(to, &speed);
	return NULL;
}
