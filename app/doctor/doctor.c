/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap_doctor(): reads a machine, runs the checks, sorts what they found. */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "doctor/doctor_internal.h"

#define FINDING_TEXT 2048u

/* Files of a hostile tree come into the text: nothing that a terminal might obey. */
static char *text_copy(const char *text)
{
	char *copy = strdup(text ? text : "");

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = *c == '\n' || *c == '\t' ? ' ' : '?';
	return copy;
}

void finding(struct gdrcap_doctor *doctor, const char *subject, enum gdrcap_health verdict,
	     const char *read, ...)
{
	struct gdrcap_finding *to;
	char text[FINDING_TEXT];
	va_list args;

	va_start(args, read);
	vsnprintf(text, sizeof(text), read, args);
	va_end(args);
	doctor->open = doctor->count < DOCTOR_FINDINGS_MAX;
	doctor->said = true;
	if (!doctor->open)
		return;
	to = &doctor->findings[doctor->count];
	*to = (struct gdrcap_finding){
		.id = doctor->check->id,
		.group = doctor->check->group,
		.subject = text_copy(subject),
		.severity = doctor->check->severity,
		.verdict = verdict,
		.read = text_copy(text),
		.why = doctor->check->why,
		.remedy = text_copy(""),
	};
	if (!to->subject || !to->read || !to->remedy) {
		doctor->no_memory = true;
		doctor->open = false;
		free((char *)(uintptr_t)to->subject);
		free((char *)(uintptr_t)to->read);
		free((char *)(uintptr_t)to->remedy);
		return;
	}
	doctor->count++;
}

void finding_remedy(struct gdrcap_doctor *doctor, const char *format, ...)
{
	struct gdrcap_finding *to;
	char line[FINDING_TEXT], *text;
	size_t length;
	va_list args;

	if (!doctor->open)
		return;
	to = &doctor->findings[doctor->count - 1];
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	length = strlen(to->remedy);
	if (length + strlen(line) + 2 > FINDING_TEXT)
		return;
	text = realloc((char *)(uintptr_t)to->remedy, length + strlen(line) + 2);
	if (!text) {
		doctor->no_memory = true;
		return;
	}
	snprintf(text + length, strlen(line) + 2, "%s%s", length ? "\n" : "", line);
	to->remedy = text;
}

#define NVIDIAS "  # from NVIDIA's repository"
#define DOWNLOADED "  # downloaded from NVIDIA: GDRCopy's releases"

/* Debian, Ubuntu, RHEL; elsewhere the name of the thing. Where no repository of the distribution
 * that everybody has got has it, a comment behind the command says which does. */
static const struct {
	const char *name[4], *from[4];
} packages[] = {
	[PACKAGE_RDMA_CORE] = { .name = { "rdma-core", "rdma-core ibverbs-providers",
					  "rdma-core ibverbs-providers", "rdma-core libibverbs" } },
	[PACKAGE_NVIDIA_DRIVER] = { .name = { "the NVIDIA driver with its open kernel modules",
					      "nvidia-open-kernel-dkms nvidia-driver",
					      "nvidia-open", "nvidia-open" },
				    .from = { "", "  # from contrib and non-free", NVIDIAS,
					      NVIDIAS } },
	[PACKAGE_MSTFLINT] = { .name = { "mstflint", "mstflint", "mstflint", "mstflint" } },
	[PACKAGE_ETHTOOL] = { .name = { "ethtool", "ethtool", "ethtool", "ethtool" } },
	[PACKAGE_PCIUTILS] = { .name = { "pciutils", "pciutils", "pciutils", "pciutils" } },
	[PACKAGE_GDRCOPY] = { .name = { "GDRCopy", "./gdrdrv-dkms_*.deb", "./gdrdrv-dkms_*.deb",
					"./gdrcopy-kmod-*.rpm" },
			      .from = { "", DOWNLOADED, DOWNLOADED, DOWNLOADED } },
	[PACKAGE_GDRCOPY_LIBRARY] = { .name = { "GDRCopy's library", "./libgdrapi_*.deb",
						"./libgdrapi_*.deb", "./gdrcopy-2*.rpm" },
				      .from = { "", DOWNLOADED, DOWNLOADED, DOWNLOADED } },
};

void finding_install(struct gdrcap_doctor *doctor, enum doctor_package package)
{
	const enum distribution distribution = doctor->machine.distribution;
	const char *name = packages[package].name[distribution];
	const char *from = packages[package].from[distribution];

	if (!from)
		from = "";
	switch (distribution) {
	case DISTRIBUTION_DEBIAN:
	case DISTRIBUTION_UBUNTU:
		finding_remedy(doctor, "sudo apt-get install %s%s", name, from);
		break;
	case DISTRIBUTION_RHEL:
		if (package == PACKAGE_NVIDIA_DRIVER)
			finding_remedy(doctor, "sudo dnf module enable nvidia-driver:open-dkms  # "
					       "releases 8 and 9 only");
		finding_remedy(doctor, "sudo dnf install %s%s", name, from);
		break;
	case DISTRIBUTION_OTHER:
		finding_remedy(doctor, "# install %s", name);
		break;
	}
}

_Static_assert(sizeof(((struct gdrcap_machine *)0)->gpu) ==
			       MACHINE_GPUS_MAX * sizeof(struct gdrcap_machine_gpu) &&
		       sizeof(((struct gdrcap_machine *)0)->card) ==
			       MACHINE_CARDS_MAX * sizeof(struct gdrcap_machine_card),
	       "callers see every device");

/* Texts of the same size. */
#define TEXT_COPY(to, from)                                                                        \
	do {                                                                                       \
		_Static_assert(sizeof(to) == sizeof(from), "one is as large as the other");        \
		memcpy(to, from, sizeof(to));                                                      \
	} while (0)

/* What callers see of the machine. */
static void publish(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	struct gdrcap_machine *to = &doctor->facts;

	TEXT_COPY(to->distribution, machine->distribution_name);
	TEXT_COPY(to->kernel, machine->kernel);
	TEXT_COPY(to->container, machine->container);
	TEXT_COPY(to->virtual_machine, machine->virtual_machine);
	to->root = machine->root;
	to->gpus = machine->gpus;
	to->cards = machine->cards;
	for (uint32_t i = 0; i < machine->gpus; i++) {
		const struct machine_gpu *gpu = &machine->gpu[i];

		TEXT_COPY(to->gpu[i].pci, gpu->pci.address);
		TEXT_COPY(to->gpu[i].name, gpu->name);
		to->gpu[i].cuda_ordinal = gpu->cuda_ordinal;
		to->gpu[i].numa_node = gpu->pci.numa_node;
	}
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];

		TEXT_COPY(to->card[i].pci, card->pci.address);
		snprintf(to->card[i].model, sizeof(to->card[i].model), "%s", card->model);
		TEXT_COPY(to->card[i].interface, card->interface);
		TEXT_COPY(to->card[i].rdma, card->rdma);
		TEXT_COPY(to->card[i].driver, card->pci.driver);
		to->card[i].numa_node = card->pci.numa_node;
		to->card[i].virtual_function = card->pci.virtual_function;
	}
}

const struct gdrcap_machine *gdrcap_doctor_machine(const struct gdrcap_doctor *doctor)
{
	return &doctor->facts;
}

struct tree *doctor_tree(struct gdrcap_doctor *doctor)
{
	return doctor->tree;
}

const struct machine *doctor_machine(const struct gdrcap_doctor *doctor)
{
	return &doctor->machine;
}

/* ---- order and verdict ---- */

/* Worst first: what makes it impossible, what makes it slow, what is not known, what is well. */
static unsigned int badness(const struct gdrcap_finding *finding)
{
	static const unsigned int of[] = {
		[GDRCAP_HEALTH_FAIL] = 0,
		[GDRCAP_HEALTH_WARN] = 3,
		[GDRCAP_HEALTH_UNKNOWN] = 6,
		[GDRCAP_HEALTH_OK] = 9,
		[GDRCAP_HEALTH_NOT_APPLICABLE] = 12,
	};

	return of[finding->verdict] + finding->severity;
}

static int worst_first(const void *a, const void *b)
{
	const struct gdrcap_finding *x = a, *y = b;

	if (badness(x) != badness(y))
		return badness(x) < badness(y) ? -1 : 1;
	/* qsort() keeps no order; findings were made in the table's. */
	return x->order < y->order ? -1 : x->order > y->order;
}

const struct gdrcap_finding *gdrcap_doctor_finding(const struct gdrcap_doctor *doctor,
						   uint32_t index)
{
	return index < doctor->count ? &doctor->findings[index] : NULL;
}

int gdrcap_doctor_able(const struct gdrcap_doctor *doctor, uint32_t *unknown)
{
	uint32_t failed = 0, unread = 0;

	for (uint32_t i = 0; i < doctor->count; i++) {
		const struct gdrcap_finding *finding = &doctor->findings[i];

		if (finding->severity != GDRCAP_SEVERITY_FATAL)
			continue;
		failed += finding->verdict == GDRCAP_HEALTH_FAIL;
		unread += finding->verdict == GDRCAP_HEALTH_UNKNOWN;
	}
	if (unknown)
		*unknown = unread;
	return failed == 0;
}

/* ---- life ---- */

void doctor_check_run(struct gdrcap_doctor *doctor, const struct doctor_check *check,
		      const struct gdrcap_doctor_config *config)
{
	if (config->progress)
		config->progress(config->context, check->id);
	doctor->check = check;
	doctor->open = false;
	doctor->said = false;
	check->run(doctor);
	if (!doctor->said)
		finding(doctor, NULL, GDRCAP_HEALTH_NOT_APPLICABLE,
			"nothing here that it is about");
}

int gdrcap_doctor_create(const struct gdrcap_doctor_config *config, struct gdrcap_doctor **out,
			 struct gdrcap_error *error)
{
	struct gdrcap_doctor *doctor;
	int ret;

	*out = NULL;
	if (config->size != sizeof(*config))
		return error_set(error, -EINVAL, "struct gdrcap_doctor_config of another version");
	if (config->live && config->root)
		return error_set(error, -EINVAL,
				 "live tests are of this machine; leave out --root or --live");
	doctor = calloc(1, sizeof(*doctor));
	if (!doctor)
		return error_set(error, -ENOMEM, "no memory for an examination");
	doctor->live = config->live != 0;
	doctor->tree = tree_open(config->root);
	if (!doctor->tree) {
		ret = error_set(error, -errno,
				"%s: %s; give the folder into which a captured "
				"machine was unpacked (tar xf FILE.tar -C FOLDER)",
				config->root ? config->root : "/", strerror(errno));
		goto err;
	}
	machine_find(&doctor->machine, doctor->tree);
	doctor_facts(doctor);
	for (const struct doctor_check *check = doctor_checks; check->id; check++)
		doctor_check_run(doctor, check, config);
	if (config->live)
		doctor_live(doctor, config);
	doctor_pairs(doctor);
	doctor_choose(doctor);
	publish(doctor);
	if (doctor->no_memory) {
		ret = error_set(error, -ENOMEM, "no memory for the findings");
		goto err;
	}
	for (uint32_t i = 0; i < doctor->count; i++)
		doctor->findings[i].order = i;
	qsort(doctor->findings, doctor->count, sizeof(doctor->findings[0]), worst_first);
	*out = doctor;
	return 0;
err:
	gdrcap_doctor_destroy(doctor);
	return ret;
}

void gdrcap_doctor_destroy(struct gdrcap_doctor *doctor)
{
	if (!doctor)
		return;
	for (uint32_t i = 0; i < doctor->count; i++) {
		free((char *)(uintptr_t)doctor->findings[i].subject);
		free((char *)(uintptr_t)doctor->findings[i].read);
		free((char *)(uintptr_t)doctor->findings[i].remedy);
	}
	tree_close(doctor->tree);
	free(doctor);
}

int gdrcap_doctor_capture(const struct gdrcap_doctor *doctor, const char *path,
			  struct gdrcap_error *error)
{
	const int ret = tree_capture(doctor->tree, path);

	return ret == 0 ? 0
			: error_set(error, ret, "%s cannot be written: %s", path, strerror(-ret));
}
