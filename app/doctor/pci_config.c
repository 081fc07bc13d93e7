/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities in a PCI device's configuration space. */
#include "doctor/pci_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STATUS 0x06u
#define STATUS_CAPABILITIES 0x10u
#define CAPABILITIES 0x34u
#define HEADER_BYTES 64u
#define EXTENDED 0x100u

#define CAPABILITY_EXPRESS 0x10u
#define CAPABILITY_ACS 0x000du

#define EXPRESS_CAPABILITY 4u
#define EXPRESS_CONTROL 8u
#define EXPRESS_SIZE_MOST 5u /* 4096 bytes; 6 and 7 are reserved */
#define ACS_CONTROL 6u

static uint16_t word(const struct pci_config *config, size_t at)
{
	return (uint16_t)(config->bytes[at] | config->bytes[at + 1] << 8);
}

int pci_config_read(struct tree *tree, struct pci_config *config, const char *address)
{
	const ssize_t got = tree_bytes(tree, config->bytes, sizeof(config->bytes),
				       "/sys/bus/pci/devices/%s/config", address);

	config->length = got < 0 ? 0 : (size_t)got;
	if (got < 0)
		return (int)got;
	return config->length < HEADER_BYTES ? -EINVAL : 0;
}

/* Where a capability of the first 256 bytes lies, with `bytes` of it read; 0 and less as
 * pci_config_express(). */
static int capability_find(const struct pci_config *config, uint8_t id, size_t bytes)
{
	size_t at;

	if (!(config->bytes[STATUS] & STATUS_CAPABILITIES))
		return -ENOENT;
	if (config->length <= HEADER_BYTES)
		return -EACCES;
	at = config->bytes[CAPABILITIES] & 0xfcu;
	/* 48 capabilities fill the space: more is a loop. */
	for (int i = 0; i < 48 && at; i++) {
		if (at < HEADER_BYTES || at + 2 > config->length)
			return -EINVAL;
		if (config->bytes[at] == id)
			return at + bytes <= config->length ? (int)at : -EINVAL;
		at = config->bytes[at + 1] & 0xfcu;
	}
	return at ? -EINVAL : -ENOENT;
}

int pci_config_express(const struct pci_config *config, struct pci_express *express)
{
	const int at = capability_find(config, CAPABILITY_EXPRESS, EXPRESS_CONTROL + 2);
	uint16_t can;

	if (at < 0)
		return at;
	can = word(config, (size_t)at + EXPRESS_CAPABILITY) & 7u;
	express->control = word(config, (size_t)at + EXPRESS_CONTROL);
	if (can > EXPRESS_SIZE_MOST || (express->control >> 5 & 7u) > EXPRESS_SIZE_MOST ||
	    (express->control >> 12 & 7u) > EXPRESS_SIZE_MOST)
		return -EINVAL;
	express->payload_most = 128u << can;
	express->payload = 128u << (express->control >> 5 & 7u);
	express->read_request = 128u << (express->control >> 12 & 7u);
	return 0;
}

int pci_config_acs(const struct pci_config *config, uint16_t *control)
{
	size_t at = EXTENDED;

	if (config->length <= HEADER_BYTES)
		return -EACCES;
	if (config->length < EXTENDED)
		return -EINVAL;
	/* 256 bytes: a function of conventional PCI, or a machine that does not reach the others. */
	if (config->length == EXTENDED)
		return capability_find(config, CAPABILITY_EXPRESS, 2) == -ENOENT ? -ENOENT
										 : -EINVAL;
	for (size_t i = 0; i < (PCI_CONFIG_BYTES - EXTENDED) / 8 && at; i++) {
		if (at < EXTENDED || at + 4 > config->length)
			return -EINVAL;
		/* The list of a function without any begins with zeros, or with ones. */
		if (word(config, at) == 0xffffu)
			return at == EXTENDED ? -ENOENT : -EINVAL;
		if (word(config, at) == CAPABILITY_ACS) {
			if (at + ACS_CONTROL + 2 > config->length)
				return -EINVAL;
			*control = word(config, at + ACS_CONTROL);
			return 0;
		}
		at = word(config, at + 2) >> 4 & 0xffcu;
	}
	return at ? -EINVAL : -ENOENT;
}

/* ---- link ---- */

/* As "16.0 GT/s PCIe"; older kernels say "16 GT/s". */
static void speed_read(struct tree *tree, const char *address, const char *file, unsigned int *rate,
		       char speed[16])
{
	static const struct {
		const char *text, *other;
		unsigned int rate;
	} rates[] = {
		{ "2.5 GT/s", "2.5 GT/s", 2500 },  { "5 GT/s", "5.0 GT/s", 5000 },
		{ "8 GT/s", "8.0 GT/s", 8000 },	   { "16 GT/s", "16.0 GT/s", 16000 },
		{ "32 GT/s", "32.0 GT/s", 32000 }, { "64 GT/s", "64.0 GT/s", 64000 },
	};
	char text[TREE_TEXT_MAX];

	*rate = 0;
	snprintf(speed, 16, "unknown");
	if (tree_text(tree, text, "/sys/bus/pci/devices/%s/%s", address, file) < 0)
		return;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (strncmp(text, rates[i].text, strlen(rates[i].text)) != 0 &&
		    strncmp(text, rates[i].other, strlen(rates[i].other)) != 0)
			continue;
		*rate = rates[i].rate;
		snprintf(speed, 16, "%s", rates[i].text);
	}
}

/* 0 and 255 are the kernel's words for "unknown". */
static unsigned int width_read(struct tree *tree, const char *address, const char *file)
{
	uint64_t width;

	if (tree_number(tree, &width, 10, "/sys/bus/pci/devices/%s/%s", address, file) < 0 ||
	    width > 32)
		return 0;
	return (unsigned int)width;
}

bool pci_link_read(struct pci_link *link, struct tree *tree, const char *address)
{
	link->width = width_read(tree, address, "current_link_width");
	link->width_most = width_read(tree, address, "max_link_width");
	speed_read(tree, address, "current_link_speed", &link->rate, link->speed);
	speed_read(tree, address, "max_link_speed", &link->rate_most, link->speed_most);
	return link->width && link->width_most;
}

uint64_t pci_link_mbps(const struct pci_link *link)
{
	const uint64_t bits = (uint64_t)link->width * link->rate;

	/* 8b/10b, 128b/130b, and flits of 242 in 256 bytes */
	if (link->rate <= 5000)
		return bits * 8 / 10;
	return link->rate < 64000 ? bits * 128 / 130 : bits * 242 / 256;
}
