/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of an examination for people. */
#include <string.h>

#include "doctor/doctor.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

#define COLUMNS 96

static const struct {
	const char *word, *tint;
} verdicts[] = {
	[HEALTH_OK] = { "ok", GREEN },	       [HEALTH_WARN] = { "WARN", YELLOW },
	[HEALTH_FAIL] = { "FAIL", RED },       [HEALTH_UNKNOWN] = { "unknown", YELLOW },
	[HEALTH_NOT_APPLICABLE] = { "-", "" },
};

/* Words of `text` in lines of COLUMNS, each after `indent` blanks, the first after `label`. */
static void print_wrapped(FILE *to, int indent, const char *label, const char *text)
{
	int column = fprintf(to, "%*s%s", indent - (int)strlen(label), "", label);

	while (*text) {
		const int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > COLUMNS) {
			fprintf(to, "\n");
			column = fprintf(to, "%*s", indent, "");
		}
		column += fprintf(to, "%s%.*s", column > indent ? " " : "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fprintf(to, "\n");
}

static void print_remedy(FILE *to, const char *remedy)
{
	while (*remedy) {
		const int length = (int)strcspn(remedy, "\n");

		fprintf(to, "              %.*s\n", length, remedy);
		remedy += length;
		remedy += *remedy == '\n';
	}
}

static bool is_fine(const struct finding *finding)
{
	return finding->verdict == HEALTH_OK || finding->verdict == HEALTH_NOT_APPLICABLE;
}

static void print_finding(FILE *to, const struct finding *finding, int colour)
{
	const char *tint = colour ? verdicts[finding->verdict].tint : "";
	const char *plain = colour && tint[0] ? PLAIN : "";

	fprintf(to, "%s%-8s%s%s%s%s%s%s\n", tint, verdicts[finding->verdict].word, plain,
		colour ? BOLD : "", finding->check->id, colour ? PLAIN : "",
		finding->subject[0] ? "  " : "", finding->subject);
	print_wrapped(to, 14, "read: ", finding->read);
	if (is_fine(finding))
		return;
	print_wrapped(to, 14, "why: ", finding->check->why);
	if (finding->remedy[0]) {
		fprintf(to, "        do:\n");
		print_remedy(to, finding->remedy);
	}
}

/* True when a check, or its group, is fine in a finding before that one too. */
static bool seen_fine(const struct doctor *doctor, uint32_t before,
		      const struct doctor_check *check, bool group)
{
	for (uint32_t i = 0; i < before; i++) {
		const struct finding *other = &doctor->findings[i];

		if (other->verdict == HEALTH_OK &&
		    (group ? strcmp(other->check->group, check->group) == 0
			   : other->check == check))
			return true;
	}
	return false;
}

/* One line a group: the ids that found nothing to say, each once. */
static void print_fine(FILE *to, const struct doctor *doctor)
{
	for (uint32_t first = 0; first < doctor->count; first++) {
		const struct finding *finding = &doctor->findings[first];
		const char *group = finding->check->group;
		char label[32], text[2048] = "";
		size_t used = 0;

		if (finding->verdict != HEALTH_OK || seen_fine(doctor, first, finding->check, true))
			continue;
		for (uint32_t i = first; i < doctor->count; i++) {
			const struct doctor_check *check = doctor->findings[i].check;

			if (doctor->findings[i].verdict == HEALTH_OK &&
			    strcmp(check->group, group) == 0 &&
			    !seen_fine(doctor, i, check, false) &&
			    used + strlen(check->id) + 3 < sizeof(text))
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
							 used ? ", " : "", check->id);
		}
		snprintf(label, sizeof(label), "%-14.14s", group);
		fprintf(to, "ok      ");
		print_wrapped(to, 14, label, text);
	}
}

static void print_machine(FILE *to, const struct machine *machine)
{
	fprintf(to, "%s, kernel %s%s%s%s%s%s\n",
		machine->distribution_name[0] ? machine->distribution_name : "unknown distribution",
		machine->kernel[0] ? machine->kernel : "unknown",
		machine->virtual_machine[0] ? ", virtual machine: " : "", machine->virtual_machine,
		machine->container[0] ? ", container: " : "", machine->container,
		machine->root ? "" : ", not root");
	for (uint32_t i = 0; i < machine->gpus; i++) {
		const struct machine_gpu *gpu = &machine->gpu[i];

		fprintf(to, "  GPU   %s  %s", gpu->pci.address,
			gpu->name[0] ? gpu->name : "unnamed");
		if (gpu->cuda_ordinal >= 0)
			fprintf(to, ", CUDA ordinal %d", gpu->cuda_ordinal);
		if (gpu->pci.numa_node >= 0)
			fprintf(to, ", NUMA node %d", gpu->pci.numa_node);
		fprintf(to, "\n");
	}
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];

		fprintf(to, "  card  %s  %s, %s, %s", card->pci.address,
			card->model[0] ? card->model : "no ConnectX that DPDK takes",
			card->interface[0] ? card->interface : "no interface",
			card->rdma[0] ? card->rdma : "no RDMA device");
		if (card->pci.numa_node >= 0)
			fprintf(to, ", NUMA node %d", card->pci.numa_node);
		fprintf(to, "\n");
	}
}

#define PAIRS_SHOWN 4

static void print_pairs(FILE *to, const struct doctor *doctor, int all)
{
	if (doctor->pairs)
		fprintf(to, "GPU and card to use together, best first:\n");
	for (uint32_t i = 0; i < doctor->pairs && (i < PAIRS_SHOWN || all); i++) {
		const struct pair *pair = &doctor->pair[i];

		fprintf(to, "  %s + %s %s  %s%s%s\n", pair->gpu->pci.address,
			pair->card->pci.address, pair->card->interface, pair->path,
			pair->cores[0] ? ", cores " : "", pair->cores);
	}
	if (doctor->pairs > PAIRS_SHOWN && !all)
		fprintf(to, "  more with --all\n");
	if (doctor->pairs)
		fprintf(to, "\n");
}

static void print_result(FILE *to, const struct doctor *doctor, int colour)
{
	const struct machine *machine = &doctor->machine;
	uint32_t unknown, fatal = 0;
	const bool able = doctor_able(doctor, &unknown);

	for (uint32_t i = 0; i < doctor->count; i++)
		fatal += doctor->findings[i].check->severity == SEVERITY_FATAL &&
			 doctor->findings[i].verdict == HEALTH_FAIL;
	if (unknown)
		fprintf(to, "Not known, and fatal if wrong: %u%s\n", unknown,
			machine->root ? "" : "; root can read more");
	if (!machine->gpus || !machine->cards)
		fprintf(to,
			"There is no %s%s%s. Able to capture into host memory over software "
			"ports; try: gdrcap loopback\n",
			machine->gpus ? "" : "GPU",
			machine->gpus || machine->cards ? "" : " and no ",
			machine->cards ? "" : "ConnectX");
	else if (able)
		fprintf(to, "Next:\n  gdrcap doctor --write-config gdrcap.yaml\n"
			    "  gdrcap loopback --config gdrcap.yaml\n");
	if (able)
		fprintf(to, "%sThis machine is able to capture into GPU memory%s%s\n",
			colour ? GREEN : "", unknown ? ", as far as is known" : "",
			colour ? PLAIN : "");
	else
		fprintf(to, "%sThis machine is not able to capture into GPU memory%s: %u fatal\n",
			colour ? RED : "", colour ? PLAIN : "", fatal);
}

void doctor_print_text(FILE *to, const struct doctor *doctor, int all, int colour)
{
	print_machine(to, &doctor->machine);
	fprintf(to, "\n");
	for (uint32_t i = 0; i < doctor->count; i++) {
		if (!all && is_fine(&doctor->findings[i]))
			continue;
		print_finding(to, &doctor->findings[i], colour);
		fprintf(to, "\n");
	}
	if (!all) {
		print_fine(to, doctor);
		fprintf(to, "\n");
	}
	print_pairs(to, doctor, all);
	print_result(to, doctor, colour);
}
