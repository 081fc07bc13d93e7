/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way between each card and each GPU, and ACS on it. A card is judged by its best GPU: that it
 * is far from others harms nobody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor/doctor.h"
#include "doctor/pci_config.h"

/* With more pairs than that only the best of each card are told. */
#define PAIRS_MOST 256u
#define JUDGED_MOST 128u

/* A virtual function lies where its physical function lies. */
static bool card_counts(const struct machine_card *card)
{
	return card->connectx && !card->pci.virtual_function;
}

/* How near the nearest GPU is, and which it is. */
static enum topology best_of(const struct machine *machine, const struct machine_card *card,
			     const struct machine_gpu **gpu)
{
	enum topology best = TOPOLOGY_UNKNOWN;

	*gpu = NULL;
	for (uint32_t i = 0; i < machine->gpus; i++) {
		const enum topology way = machine_topology(&card->pci, &machine->gpu[i].pci);

		if (way < best || !*gpu) {
			best = way;
			*gpu = &machine->gpu[i];
		}
	}
	return best;
}

/* ---- topology ---- */

static enum health judge(const struct machine *machine, enum topology way)
{
	if (way <= TOPOLOGY_PXB)
		return HEALTH_OK;
	/* What a virtual machine sees of its PCIe may be made up by its host. */
	if (way == TOPOLOGY_UNKNOWN || machine->virtual_machine[0])
		return HEALTH_UNKNOWN;
	return way == TOPOLOGY_SYS ? HEALTH_FAIL : HEALTH_WARN;
}

static void pair_finding(struct doctor *doctor, const struct machine_card *card,
			 const struct machine_gpu *gpu, enum topology best,
			 const struct machine_gpu *nearest)
{
	const struct machine *machine = &doctor->machine;
	const enum topology way = machine_topology(&card->pci, &gpu->pci);
	enum health verdict = judge(machine, way);
	char subject[40], read[256];

	snprintf(subject, sizeof(subject), "%s %s", card->pci.address, gpu->pci.address);
	snprintf(
		read, sizeof(read),
		"/sys/bus/pci/devices: card %s%s%s below %s, node %d; GPU %s below %s, node %d: %s",
		card->pci.address, card->interface[0] ? " " : "", card->interface,
		card->pci.host[0] ? card->pci.host : "(unknown)", card->pci.numa_node,
		gpu->pci.address, gpu->pci.host[0] ? gpu->pci.host : "(unknown)",
		gpu->pci.numa_node, topology_name(way));
	if (way > best) {
		finding(doctor, subject, HEALTH_NOT_APPLICABLE,
			"%s; GPU %s is nearer to this card: %s", read, nearest->pci.address,
			topology_name(best));
		return;
	}
	finding(doctor, subject, verdict, "%s", read);
	switch (verdict) {
	case HEALTH_UNKNOWN:
		remedy(doctor, "nvidia-smi topo -m%s",
		       machine->virtual_machine[0] ? "  # on the host" : "");
		break;
	case HEALTH_WARN:
	case HEALTH_FAIL:
		remedy(doctor, "nvidia-smi topo -m  # to compare");
		remedy(doctor,
		       "# move card %s or GPU %s to slots below one PCIe switch; if "
		       "the machine has none, of one %s (its manual has a diagram)",
		       card->pci.address, gpu->pci.address,
		       way == TOPOLOGY_SYS ? "CPU socket" : "root complex");
		break;
	default:
		break;
	}
}

static void check_pcie_topology(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	const bool all = machine->cards * machine->gpus <= PAIRS_MOST;

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];
		const struct machine_gpu *nearest;
		const enum topology best = best_of(machine, card, &nearest);

		if (!card_counts(card))
			continue;
		for (uint32_t j = 0; j < machine->gpus; j++)
			if (all || &machine->gpu[j] == nearest)
				pair_finding(doctor, card, &machine->gpu[j], best, nearest);
	}
}

/* ---- ACS ---- */

struct judged {
	uint32_t count;
	const char *bridge[JUDGED_MOST];
};

/* The bridges of a function that lie below those that it shares with the other. */
static void bridges_add(struct judged *judged, const struct machine_pci *pci, uint32_t shared)
{
	for (uint32_t i = shared; i < pci->bridges; i++) {
		bool known = false;

		for (uint32_t j = 0; j < judged->count && !known; j++)
			known = strcmp(judged->bridge[j], pci->bridge[i]) == 0;
		if (!known && judged->count < JUDGED_MOST)
			judged->bridge[judged->count++] = pci->bridge[i];
	}
}

/* Bridges between the cards and their nearest GPUs, where the way turns below the root complex. */
static void bridges_find(const struct machine *machine, struct judged *judged)
{
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_pci *card = &machine->card[i].pci;
		const struct machine_gpu *nearest;
		const enum topology best = best_of(machine, &machine->card[i], &nearest);

		if (!card_counts(&machine->card[i]) || best > TOPOLOGY_PXB)
			continue;
		for (uint32_t j = 0; j < machine->gpus; j++) {
			const struct machine_pci *gpu = &machine->gpu[j].pci;
			uint32_t shared = 0;

			if (machine_topology(card, gpu) != best)
				continue;
			while (shared < card->bridges && shared < gpu->bridges &&
			       strcmp(card->bridge[shared], gpu->bridge[shared]) == 0)
				shared++;
			bridges_add(judged, card, shared);
			bridges_add(judged, gpu, shared);
		}
	}
}

static void bridge_finding(struct doctor *doctor, const char *bridge)
{
	static const uint16_t turning =
		ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT | ACS_EGRESS_CONTROL;
	struct pci_config config;
	uint16_t control = 0;
	int ret;

	ret = pci_config_read(doctor->tree, &config, bridge);
	if (ret == 0)
		ret = pci_config_acs(&config, &control);
	if (ret == -ENOENT && config.length) {
		finding(doctor, bridge, HEALTH_OK,
			"/sys/bus/pci/devices/%s/config: no ACS capability", bridge);
		return;
	}
	if (ret < 0) {
		finding(doctor, bridge, HEALTH_UNKNOWN,
			"/sys/bus/pci/devices/%s/config: %zu bytes, %s", bridge, config.length,
			ret == -EACCES	 ? config_hidden(doctor)
			: ret == -EINVAL ? "in which ACS cannot be found"
					 : strerror(-ret));
		remedy(doctor,
		       "sudo lspci -s %s -vvv | grep ACSCtl  # ReqRedir, CmpltRedir "
		       "and EgressCtrl are to be -",
		       bridge);
		return;
	}
	finding(doctor, bridge, control & turning ? HEALTH_FAIL : HEALTH_OK,
		"/sys/bus/pci/devices/%s/config: ACSCtl %04x (SrcValid%c ReqRedir%c CmpltRedir%c "
		"EgressCtrl%c)",
		bridge, control, control & ACS_SOURCE_VALIDATION ? '+' : '-',
		control & ACS_REQUEST_REDIRECT ? '+' : '-',
		control & ACS_COMPLETION_REDIRECT ? '+' : '-',
		control & ACS_EGRESS_CONTROL ? '+' : '-');
	if (!(control & turning))
		return;
	remedy_setpci(doctor);
	remedy(doctor, "sudo setpci -s %s ECAP_ACS+0x6.w=0000  # until the next start", bridge);
	remedy(doctor,
	       "# at each start: the kernel argument pci=disable_acs_redir=%s "
	       "(several bridges: with ';' between), or ACS off in the BIOS",
	       bridge);
	remedy(doctor, "# not on a host that passes these devices on to virtual machines: "
		       "ACS keeps those apart");
}

static void check_pcie_acs(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	struct judged judged = { 0 };

	if (machine->cards == 0 || machine->gpus == 0)
		return;
	if (machine->virtual_machine[0]) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			"in a virtual machine (%s) ACS is its host's matter, and has to stay on there",
			machine->virtual_machine);
		return;
	}
	bridges_find(machine, &judged);
	for (uint32_t i = 0; i < judged.count; i++)
		bridge_finding(doctor, judged.bridge[i]);
	if (judged.count == 0)
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			"/sys/bus/pci/devices: no bridge lies between a card and its nearest GPU "
			"below the root complex");
}

const struct doctor_check checks_topology[] = {
	{ "pcie-topology", "pcie", SEVERITY_SLOW,
	  "between devices below one PCIe switch frames go straight from card to GPU; through a root complex they go slower, and between CPU sockets slower still",
	  .run = check_pcie_topology },
	{ "pcie-acs", "pcie", SEVERITY_SLOW,
	  "ACS redirection sends what could pass straight through a switch up to the root complex",
	  .run = check_pcie_acs },
	{ 0 },
};
