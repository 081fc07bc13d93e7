/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PCI function's configuration space, from its file "config". Whoever may not (CAP_SYS_ADMIN)
 * gets the first 64 bytes, in which no capability lies. And its link, which anybody may read.
 */
#ifndef DOCTOR_PCI_CONFIG_H
#define DOCTOR_PCI_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "doctor/tree.h"

#define PCI_CONFIG_BYTES 4096u

struct pci_config {
	size_t length; /* of what could be read */
	uint8_t bytes[PCI_CONFIG_BYTES];
};

/* DevCap and DevCtl of the PCI Express capability. */
struct pci_express {
	uint32_t payload_most;		/* bytes; what the function can */
	uint32_t payload, read_request; /* bytes; as set */
	uint16_t control;		/* DevCtl as it is */
};

/* ACS control bits, PCI Express Base Specification 7.7.11.3. */
#define ACS_SOURCE_VALIDATION 0x01u
#define ACS_REQUEST_REDIRECT 0x04u
#define ACS_COMPLETION_REDIRECT 0x08u
#define ACS_EGRESS_CONTROL 0x20u

int pci_config_read(struct tree *tree, struct pci_config *config, const char *address);
/* -ENOENT: the function has none; -EACCES: only root sees it; -EINVAL: it makes no sense. */
int pci_config_express(const struct pci_config *config, struct pci_express *express);
int pci_config_acs(const struct pci_config *config, uint16_t *control);

/* Of the link towards the root, or of a port's towards the device. */
struct pci_link {
	unsigned int width, width_most; /* lanes; 0: unknown */
	unsigned int rate, rate_most;	/* MT/s a lane; 0: unknown */
	char speed[16], speed_most[16]; /* the same, "16 GT/s" */
};
/* False: neither width is known. */
bool pci_link_read(struct pci_link *link, struct tree *tree, const char *address);
/* Mbit/s each way before the overhead of packets; 0: unknown. */
uint64_t pci_link_mbps(const struct pci_link *link);

#endif
