/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GPU and card go together, and which CPUs lie near both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "doctor/pci_config.h"
#include "base/parse.h"
#include "cpu_list.h"
#include "doctor/tree.h"

struct ranked {
	enum topology topology;
	bool infiniband, down, virtual_function;
	uint64_t card_mbps, gpu_mbps; /* of their PCIe links; 0: unknown */
	uint32_t gpu, card;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	/* A card in InfiniBand mode takes more than a cable; a far one stays far. */
	if (x->infiniband != y->infiniband)
		return x->infiniband - y->infiniband;
	if (x->topology != y->topology)
		return x->topology < y->topology ? -1 : 1;
	if (x->down != y->down)
		return x->down - y->down;
	if (x->virtual_function != y->virtual_function)
		return x->virtual_function - y->virtual_function;
	if (x->card_mbps != y->card_mbps)
		return x->card_mbps > y->card_mbps ? -1 : 1;
	if (x->gpu_mbps != y->gpu_mbps)
		return x->gpu_mbps > y->gpu_mbps ? -1 : 1;
	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	return x->card < y->card ? -1 : x->card > y->card;
}

bool pairs_infiniband(struct tree *tree, const struct machine_card *card)
{
	char text[TREE_TEXT_MAX];

	return card->rdma[0] &&
	       tree_text(tree, text, "/sys/class/infiniband/%s/ports/1/link_layer", card->rdma) ==
		       0 &&
	       strcmp(text, "InfiniBand") == 0;
}

bool pairs_up(struct tree *tree, const struct machine_card *card)
{
	uint64_t carrier;

	return card->interface[0] &&
	       tree_number(tree, &carrier, 10, "/sys/class/net/%s/carrier", card->interface) == 0 &&
	       carrier == 1;
}

/* ---- CPUs ---- */

int cpus_read(const char *text, bool *set, size_t max)
{
	int cpus[PARSE_CPUS];
	size_t count = 0;

	memset(set, 0, max * sizeof(*set));
	if (text[0] && strcmp(text, "(null)") != 0 && parse_cpu_list(text, cpus, max, &count) < 0)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (cpus[i] < (int)max)
			set[cpus[i]] = true;
	return (int)count;
}

/* Those of a file; NULL: those that this process may run on. False: it is not known. */
static bool cpus_of(struct tree *tree, bool set[PAIRS_CPUS_MAX], const char *path)
{
	static const char fact[] = "process/cpus";
	char text[TREE_TEXT_MAX];

	memset(set, 0, PAIRS_CPUS_MAX * sizeof(*set));
	return (path ? tree_text(tree, text, "%s", path) : tree_fact(tree, text, fact)) == 0 &&
	       cpus_read(text, set, PAIRS_CPUS_MAX) >= 0;
}

void pairs_cpus(struct doctor *doctor, const struct machine_pci *pci, struct pairs_cpus *cpus)
{
	bool is_allowed[PAIRS_CPUS_MAX];
	struct tree *tree = doctor->tree;
	uint32_t usable = 0;
	bool known = false;
	char path[96];

	if (pci && pci->numa_node >= 0) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
			 pci->numa_node);
		known = cpus_of(tree, cpus->near, path);
	}
	if (!known && pci) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/local_cpulist", pci->address);
		known = cpus_of(tree, cpus->near, path);
	}
	if (!known)
		cpus_of(tree, cpus->near, "/sys/devices/system/cpu/online");
	cpus_of(tree, cpus->isolated, "/sys/devices/system/cpu/isolated");
	/* Isolated ones are not among those that a process gets by itself, but it may move there;
	 * in a container only to those that it was given. */
	known = cpus_of(tree, is_allowed, NULL);
	for (uint32_t i = 0; i < PAIRS_CPUS_MAX; i++) {
		if (known && !is_allowed[i] && (!cpus->isolated[i] || doctor->machine.container[0]))
			cpus->near[i] = false;
		usable += cpus->near[i];
	}
	/* It has the interrupts and the kernel's own work. */
	cpus->zero = cpus->near[0];
	if (usable > 1)
		cpus->near[0] = false;
}

/* Adds those that are `isolated` or not, as ranges. */
static void cpus_text(const struct pairs_cpus *cpus, bool isolated, char *text, size_t size)
{
	const size_t bytes = CPU_ALLOC_SIZE(PAIRS_CPUS_MAX);
	cpu_set_t *set = CPU_ALLOC(PAIRS_CPUS_MAX);

	if (!set)
		return;
	CPU_ZERO_S(bytes, set);
	for (uint32_t i = 0; i < PAIRS_CPUS_MAX; i++)
		if (cpus->near[i] && cpus->isolated[i] == isolated)
			CPU_SET_S(i, bytes, set);
	cpu_list_add(text, size, set, PAIRS_CPUS_MAX);
	CPU_FREE(set);
}

static void pair_fill(struct doctor *doctor, const struct ranked *ranked, struct pair *pair)
{
	const struct machine_card *card = &doctor->machine.card[ranked->card];
	struct pairs_cpus cpus;

	pair->gpu = &doctor->machine.gpu[ranked->gpu];
	pair->card = card;
	pair->path = topology_name(ranked->topology);
	pairs_cpus(doctor, &card->pci, &cpus);
	cpus_text(&cpus, true, pair->cores, sizeof(pair->cores));
	cpus_text(&cpus, false, pair->cores, sizeof(pair->cores));
}

void doctor_pairs(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	struct ranked *ranked = calloc(DOCTOR_PAIRS_MAX, sizeof(*ranked));
	struct pci_link link;
	uint64_t gpu_mbps[MACHINE_GPUS_MAX];
	uint32_t count = 0;

	if (!ranked) {
		doctor->no_memory = true;
		return;
	}
	for (uint32_t g = 0; g < machine->gpus; g++) {
		pci_link_read(&link, doctor->tree, machine->gpu[g].pci.address);
		/* What it can: it saves power when idle. */
		link.width = link.width_most;
		link.rate = link.rate_most;
		gpu_mbps[g] = pci_link_mbps(&link);
	}
	for (uint32_t c = 0; c < machine->cards; c++) {
		const struct machine_card *card = &machine->card[c];
		const bool infiniband = pairs_infiniband(doctor->tree, card);
		const bool down = !pairs_up(doctor->tree, card);

		pci_link_read(&link, doctor->tree, card->pci.address);
		for (uint32_t g = 0; card->connectx && g < machine->gpus; g++)
			ranked[count++] = (struct ranked){
				.topology = machine_topology(&machine->gpu[g].pci, &card->pci),
				.infiniband = infiniband,
				.down = down,
				.virtual_function = card->pci.virtual_function,
				.card_mbps = pci_link_mbps(&link),
				.gpu_mbps = gpu_mbps[g],
				.gpu = g,
				.card = c,
			};
	}
	qsort(ranked, count, sizeof(*ranked), by_rank);
	doctor->pairs = count < DOCTOR_PAIRS_KEPT ? count : DOCTOR_PAIRS_KEPT;
	for (uint32_t i = 0; i < doctor->pairs; i++)
		pair_fill(doctor, &ranked[i], &doctor->pair[i]);
	free(ranked);
}
