/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GPU and card go together, and which CPUs lie near both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "doctor/doctor_internal.h"
#include "doctor/tree.h"

struct ranked {
	enum topology topology;
	bool infiniband, down, virtual_function;
	double card_gbps, gpu_gbps; /* of their PCIe links; 0: unknown */
	uint32_t gpu, card;
};

/* Gbit/s of a PCIe link, encoding aside: "current" or, for what saves power when idle, "max". */
static double link_gbps(struct tree *tree, const struct machine_pci *pci, const char *which)
{
	char text[TREE_TEXT_MAX];
	uint64_t width;
	double speed;

	if (tree_text(tree, text, "/sys/bus/pci/devices/%s/%s_link_speed", pci->address, which) < 0)
		return 0;
	/* "16.0 GT/s PCIe" */
	speed = strtod(text, NULL);
	if (!(speed > 0 && speed < 1e6) ||
	    tree_number(tree, &width, 10, "/sys/bus/pci/devices/%s/%s_link_width", pci->address,
			which) < 0 ||
	    width > 64)
		return 0;
	return speed * (double)width;
}

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
	if (x->card_gbps != y->card_gbps)
		return x->card_gbps > y->card_gbps ? -1 : 1;
	if (x->gpu_gbps != y->gpu_gbps)
		return x->gpu_gbps > y->gpu_gbps ? -1 : 1;
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

/* Sets those of a list of the kernel's, "0-3,8". False: there is no such file, or it is no list. */
static bool cpus_of(struct tree *tree, bool set[PAIRS_CPUS_MAX], const char *path)
{
	static const char fact[] = "process/cpus";
	int cpus[PAIRS_CPUS_MAX];
	char text[TREE_TEXT_MAX];
	size_t count = 0;

	memset(set, 0, PAIRS_CPUS_MAX * sizeof(*set));
	if ((path ? tree_text(tree, text, "%s", path) : tree_fact(tree, text, fact)) < 0)
		return false;
	/* "": there is none. */
	if (text[0] && parse_cpu_list(text, cpus, PAIRS_CPUS_MAX, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (cpus[i] >= 0 && cpus[i] < (int)PAIRS_CPUS_MAX)
			set[cpus[i]] = true;
	return true;
}

void pairs_cpus(struct gdrcap_doctor *doctor, const struct machine_pci *pci,
		struct pairs_cpus *cpus)
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

/* Adds those that are `isolated` or not, as ranges; whole ones, as many as there is room for. */
static void cpus_text(const struct pairs_cpus *cpus, bool isolated, char *text, size_t size)
{
	for (uint32_t first = 0; first < PAIRS_CPUS_MAX; first++) {
		const size_t used = strlen(text);
		uint32_t last = first;
		char piece[32];

		if (!cpus->near[first] || cpus->isolated[first] != isolated)
			continue;
		while (last + 1 < PAIRS_CPUS_MAX && cpus->near[last + 1] &&
		       cpus->isolated[last + 1] == isolated)
			last++;
		snprintf(piece, sizeof(piece), first == last ? "%s%u" : "%s%u-%u", used ? "," : "",
			 first, last);
		first = last;
		if (used + strlen(piece) < size)
			snprintf(text + used, size - used, "%s", piece);
	}
}

static void pair_fill(struct gdrcap_doctor *doctor, const struct ranked *ranked,
		      struct gdrcap_pair *pair)
{
	const struct machine_gpu *gpu = &doctor->machine.gpu[ranked->gpu];
	const struct machine_card *card = &doctor->machine.card[ranked->card];
	struct pairs_cpus cpus;

	snprintf(pair->gpu, sizeof(pair->gpu), "%s", gpu->pci.address);
	snprintf(pair->card, sizeof(pair->card), "%s", card->pci.address);
	snprintf(pair->interface, sizeof(pair->interface), "%s", card->interface);
	snprintf(pair->path, sizeof(pair->path), "%s", topology_name(ranked->topology));
	pair->cuda_ordinal = gpu->cuda_ordinal;
	pair->numa_node = card->pci.numa_node;
	pairs_cpus(doctor, &card->pci, &cpus);
	cpus_text(&cpus, true, pair->cores, sizeof(pair->cores));
	cpus_text(&cpus, false, pair->cores, sizeof(pair->cores));
}

void doctor_pairs(struct gdrcap_doctor *doctor)
{
	static const char current[] = "current", most[] = "max";
	const struct machine *machine = &doctor->machine;
	struct ranked *ranked = calloc(DOCTOR_PAIRS_MAX, sizeof(*ranked));
	double gpu_gbps[MACHINE_GPUS_MAX];
	uint32_t count = 0;

	if (!ranked) {
		doctor->no_memory = true;
		return;
	}
	for (uint32_t g = 0; g < machine->gpus; g++)
		gpu_gbps[g] = link_gbps(doctor->tree, &machine->gpu[g].pci, most);
	for (uint32_t c = 0; c < machine->cards; c++) {
		const struct machine_card *card = &machine->card[c];
		const bool infiniband = pairs_infiniband(doctor->tree, card);
		const bool down = !pairs_up(doctor->tree, card);
		const double gbps = link_gbps(doctor->tree, &card->pci, current);

		for (uint32_t g = 0; card->connectx && g < machine->gpus; g++)
			ranked[count++] = (struct ranked){
				.topology = machine_topology(&machine->gpu[g].pci, &card->pci),
				.infiniband = infiniband,
				.down = down,
				.virtual_function = card->pci.virtual_function,
				.card_gbps = gbps,
				.gpu_gbps = gpu_gbps[g],
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

int gdrcap_doctor_pair(const struct gdrcap_doctor *doctor, uint32_t index, struct gdrcap_pair *pair)
{
	if (index >= doctor->pairs)
		return -ENOENT;
	*pair = doctor->pair[index];
	return 0;
}
