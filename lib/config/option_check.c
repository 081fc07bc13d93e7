/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of single options whose value is a text. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "config/option_check.h"
#include "gdrcap.h"
#include "pattern/frame.h"
#include "pattern/frame_match.h"
#include "port/driver_table.h"
#include "replay/pacing.h"

#define WIRE_NAME_MAX 32
#define HEX_DIGITS "0123456789abcdefABCDEF"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

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

int port_is_same(const char *a, const char *b)
{
	size_t length = strcspn(a, ",");

	if (port_name_is_pci(a) && port_name_is_pci(b))
		return pci_number(a) == pci_number(b);
	return length == strcspn(b, ",") && !strncmp(a, b, length);
}

const char *option_check_port(const char *text)
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

const char *option_check_gpu(const char *text)
{
	uint64_t ordinal;

	if (!strcmp(text, "auto") || !strcmp(text, "host"))
		return NULL;
	if (text[1] == 'x' || text[1] == 'X' || parse_u64(text, &ordinal))
		return "names no GPU";
	return ordinal <= 255 ? NULL : "is out of range";
}

const char *option_check_frame_size(const char *text)
{
	uint16_t sizes[PARSE_FRAME_SIZES_MAX];
	size_t count;

	switch (parse_frame_sizes(text, FRAME_MIN_BYTES, FRAME_MAX_BYTES, sizes,
				  PARSE_FRAME_SIZES_MAX, &count)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "is out of range";
	case -E2BIG:
		return "makes a cycle of more than 16384 sizes";
	default:
		return "is not a list of frame sizes";
	}
}

static const char *check_mac(const char *text, int source)
{
	static const uint8_t zero[6];
	uint8_t mac[6];

	if (parse_mac(text, mac))
		return "is not a MAC address";
	if (!memcmp(mac, zero, sizeof(mac)))
		return "is the zero address, which no station has";
	if (source && (mac[0] & 1))
		return "is a group address, which no frame comes from";
	return NULL;
}

const char *option_check_src_mac(const char *text)
{
	return check_mac(text, 1);
}

const char *option_check_dst_mac(const char *text)
{
	return check_mac(text, 0);
}

static const char *check_ip(const char *text, int source)
{
	uint32_t address;

	if (parse_ipv4(text, &address))
		return "is not an IPv4 address";
	if (!address)
		return "is the zero address";
	if (source && address >= 0xe0000000u)
		return "is multicast or reserved, which no packet comes from";
	return NULL;
}

const char *option_check_src_ip(const char *text)
{
	return check_ip(text, 1);
}

const char *option_check_dst_ip(const char *text)
{
	return check_ip(text, 0);
}

const char *option_check_pattern(const char *text)
{
	enum pattern_kind kind;

	return pattern_from_name(text, &kind) ? "is no pattern" : NULL;
}

const char *option_check_cores(const char *text)
{
	int cpus[GDRCAP_CORES_MAX];
	size_t count;

	switch (parse_cpu_list(text, cpus, GDRCAP_CORES_MAX, &count)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "is out of range (CPUs are 0..8191)";
	case -E2BIG:
		return "names too many CPUs";
	default:
		return "is not a list of CPUs, each named once";
	}
}

const char *option_check_match(const char *text)
{
	static _Thread_local char why[128];
	struct frame_match_rule rule;

	return frame_match_parse(&rule, text, why, sizeof(why)) ? why : NULL;
}

const char *option_check_loops(const char *text)
{
	uint64_t loops;

	if (strcmp(text, "forever") == 0)
		return NULL;
	if (parse_count(text, &loops))
		return "is no count";
	return loops >= 1 && loops <= UINT32_MAX ? NULL : "is out of range";
}

const char *option_check_rate(const char *text)
{
	struct pacing_config pacing;

	return pacing_parse_rate(text, &pacing) ? "is no rate" : NULL;
}

const char *option_check_speed(const char *text)
{
	struct pacing_config pacing;

	return pacing_parse_speed(text, &pacing) ? "is no factor" : NULL;
}
