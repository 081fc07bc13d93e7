/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of an examination for people. */
#include <string.h>

#include "doctor/doctor_report.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

#define COLUMNS 96
#define GROUPS_MAX 16

static const struct {
	const char *word, *tint;
} verdicts[] = {
	[GDRCAP_HEALTH_OK] = { "ok", GREEN },
	[GDRCAP_HEALTH_WARN] = { "WARN", YELLOW },
	[GDRCAP_HEALTH_FAIL] = { "FAIL", RED },
	[GDRCAP_HEALTH_UNKNOWN] = { "unknown", YELLOW },
	[GDRCAP_HEALTH_NOT_APPLICABLE] = { "-", "" },
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

static void print_finding(FILE *to, const struct gdrcap_finding *finding, int colour)
{
	const char *tint = colour ? verdicts[finding->verdict].tint : "";
	const char *plain = colour && tint[0] ? PLAIN : "";
	/* What could not be read may be bad, or fine: nothing is known that is to be fixed. */
	const int bad = finding->verdict == GDRCAP_HEALTH_FAIL ||
			finding->verdict == GDRCAP_HEALTH_WARN ||
			finding->verdict == GDRCAP_HEALTH_UNKNOWN;

	fprintf(to, "%s%-8s%s%s%s%s%s%s\n", tint, verdicts[finding->verdict].word, plain,
		colour ? BOLD : "", finding->id, colour ? PLAIN : "",
		finding->subject[0] ? "  " : "", finding->subject);
	print_wrapped(to, 14, "read: ", finding->read);
	if (!bad)
		return;
	print_wrapped(to, 14, "why: ", finding->why);
	if (finding->remedy[0]) {
		fprintf(to, "        do:\n");
		print_remedy(to, finding->remedy);
	}
}

static int is_fine(const struct gdrcap_finding *finding)
{
	return finding->verdict == GDRCAP_HEALTH_OK ||
	       finding->verdict == GDRCAP_HEALTH_NOT_APPLICABLE;
}

/* One line a group: the ids that found nothing to say, each once. */
static void print_fine(FILE *to, const struct gdrcap_doctor *doctor)
{
	const char *groups[GROUPS_MAX];
	const struct gdrcap_finding *finding, *other;
	uint32_t count = 0, k;

	for (uint32_t i = 0; (finding = gdrcap_doctor_finding(doctor, i)); i++) {
		for (k = 0; k < count && strcmp(groups[k], finding->group) != 0; k++)
			;
		if (k == count && count < GROUPS_MAX && finding->verdict == GDRCAP_HEALTH_OK)
			groups[count++] = finding->group;
	}
	for (k = 0; k < count; k++) {
		char label[32], text[2048] = "";
		size_t used = 0;

		for (uint32_t i = 0; (finding = gdrcap_doctor_finding(doctor, i)); i++) {
			int again = 0;

			if (finding->verdict != GDRCAP_HEALTH_OK ||
			    strcmp(finding->group, groups[k]) != 0)
				continue;
			for (uint32_t j = 0; j < i; j++) {
				other = gdrcap_doctor_finding(doctor, j);
				again |= other->verdict == GDRCAP_HEALTH_OK &&
					 strcmp(other->id, finding->id) == 0;
			}
			if (!again && used + strlen(finding->id) + 3 < sizeof(text))
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
							 used ? ", " : "", finding->id);
		}
		snprintf(label, sizeof(label), "%-14.14s", groups[k]);
		fprintf(to, "ok      ");
		print_wrapped(to, 14, label, text);
	}
}

static void print_machine(FILE *to, const struct gdrcap_machine *machine)
{
	fprintf(to, "%s, kernel %s%s%s%s%s%s\n",
		machine->distribution[0] ? machine->distribution : "unknown distribution",
		machine->kernel[0] ? machine->kernel : "unknown",
		machine->virtual_machine[0] ? ", virtual machine: " : "", machine->virtual_machine,
		machine->container[0] ? ", container: " : "", machine->container,
		machine->root ? "" : ", not root");
	for (uint32_t i = 0; i < machine->gpus; i++) {
		const struct gdrcap_machine_gpu *gpu = &machine->gpu[i];

		fprintf(to, "  GPU   %s  %s", gpu->pci, gpu->name[0] ? gpu->name : "unnamed");
		if (gpu->cuda_ordinal >= 0)
			fprintf(to, ", CUDA ordinal %d", gpu->cuda_ordinal);
		if (gpu->numa_node >= 0)
			fprintf(to, ", NUMA node %d", gpu->numa_node);
		fprintf(to, "\n");
	}
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct gdrcap_machine_card *card = &machine->card[i];

		fprintf(to, "  card  %s  %s, %s, %s", card->pci,
			card->model[0] ? card->model : "no ConnectX that DPDK takes",
			card->interface[0] ? card->interface : "no interface",
			card->rdma[0] ? card->rdma : "no RDMA device");
		if (card->numa_node >= 0)
			fprintf(to, ", NUMA node %d", card->numa_node);
		fprintf(to, "\n");
	}
}

#define PAIRS_SHOWN 4

static void print_pairs(FILE *to, const struct gdrcap_doctor *doctor, int all)
{
	struct gdrcap_pair pair;
	uint32_t i;

	for (i = 0; gdrcap_doctor_pair(doctor, i, &pair) == 0; i++) {
		if (i == PAIRS_SHOWN && !all) {
			fprintf(to, "  more with --all\n");
			break;
		}
		if (i == 0)
			fprintf(to, "GPU and card to use together, best first:\n");
		fprintf(to, "  %s + %s %s  %s%s%s\n", pair.gpu, pair.card, pair.interface,
			pair.path, pair.cores[0] ? ", cores " : "", pair.cores);
	}
	if (i)
		fprintf(to, "\n");
}

static void print_result(FILE *to, const struct gdrcap_doctor *doctor, int colour)
{
	const struct gdrcap_machine *machine = gdrcap_doctor_machine(doctor);
	const struct gdrcap_finding *finding;
	uint32_t unknown, fatal = 0;
	const int able = gdrcap_doctor_able(doctor, &unknown);

	for (uint32_t i = 0; (finding = gdrcap_doctor_finding(doctor, i)); i++)
		fatal += finding->severity == GDRCAP_SEVERITY_FATAL &&
			 finding->verdict == GDRCAP_HEALTH_FAIL;
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

void doctor_print_text(FILE *to, const struct gdrcap_doctor *doctor, int all, int colour)
{
	const struct gdrcap_finding *finding;

	print_machine(to, gdrcap_doctor_machine(doctor));
	fprintf(to, "\n");
	for (uint32_t i = 0; (finding = gdrcap_doctor_finding(doctor, i)); i++) {
		if (!all && is_fine(finding))
			continue;
		print_finding(to, finding, colour);
		fprintf(to, "\n");
	}
	if (!all) {
		print_fine(to, doctor);
		fprintf(to, "\n");
	}
	print_pairs(to, doctor, all);
	print_result(to, doctor, colour);
}
