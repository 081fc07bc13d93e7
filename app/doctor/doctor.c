/* SPDX-License-Identifier: BSD-3-Clause */
/* An examination: reads a machine, runs the checks, sorts what they found. */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

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

static void finding_free(struct finding *finding)
{
	free(finding->subject);
	free(finding->read);
	free(finding->remedy);
}

void finding(struct doctor *doctor, const char *subject, enum health verdict, const char *read, ...)
{
	struct finding *to = &doctor->findings[doctor->count];
	char text[FINDING_TEXT];
	va_list args;

	va_start(args, read);
	vsnprintf(text, sizeof(text), read, args);
	va_end(args);
	doctor->open = doctor->count < DOCTOR_FINDINGS_MAX;
	doctor->said = true;
	if (!doctor->open)
		return;
	*to = (struct finding){
		.check = doctor->check,
		.verdict = verdict,
		.subject = text_copy(subject),
		.read = text_copy(text),
		.remedy = text_copy(""),
		.order = doctor->count,
	};
	if (!to->subject || !to->read || !to->remedy) {
		doctor->no_memory = true;
		doctor->open = false;
		finding_free(to);
		return;
	}
	doctor->count++;
}

void remedy(struct doctor *doctor, const char *format, ...)
{
	struct finding *to = &doctor->findings[doctor->count - 1];
	char line[FINDING_TEXT], *text;
	size_t length;
	va_list args;

	if (!doctor->open)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	length = strlen(to->remedy);
	if (length + strlen(line) + 2 > FINDING_TEXT)
		return;
	text = realloc(to->remedy, length + strlen(line) + 2);
	if (!text) {
		doctor->no_memory = true;
		return;
	}
	snprintf(text + length, strlen(line) + 2, "%s%s", length ? "\n" : "", line);
	to->remedy = text;
}

void remedy_on_host(struct doctor *doctor)
{
	if (doctor->machine.container[0])
		remedy(doctor, "# on the host, not in this container:");
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
	[PACKAGE_CHRONY] = { .name = { "chrony", "chrony", "chrony", "chrony" } },
	[PACKAGE_GDRCOPY] = { .name = { "GDRCopy", "./gdrdrv-dkms_*.deb", "./gdrdrv-dkms_*.deb",
					"./gdrcopy-kmod-*.rpm" },
			      .from = { "", DOWNLOADED, DOWNLOADED, DOWNLOADED } },
	[PACKAGE_GDRCOPY_LIBRARY] = { .name = { "GDRCopy's library", "./libgdrapi_*.deb",
						"./libgdrapi_*.deb", "./gdrcopy-2*.rpm" },
				      .from = { "", DOWNLOADED, DOWNLOADED, DOWNLOADED } },
};

void remedy_install(struct doctor *doctor, enum doctor_package package)
{
	const enum distribution distribution = doctor->machine.distribution;
	const char *name = packages[package].name[distribution];
	const char *from = packages[package].from[distribution];

	if (!from)
		from = "";
	switch (distribution) {
	case DISTRIBUTION_DEBIAN:
	case DISTRIBUTION_UBUNTU:
		remedy(doctor, "sudo apt-get install %s%s", name, from);
		break;
	case DISTRIBUTION_RHEL:
		if (package == PACKAGE_NVIDIA_DRIVER)
			remedy(doctor, "sudo dnf module enable nvidia-driver:open-dkms  # "
				       "releases 8 and 9 only");
		remedy(doctor, "sudo dnf install %s%s", name, from);
		break;
	case DISTRIBUTION_OTHER:
		remedy(doctor, "# install %s", name);
		break;
	}
}

/* ---- order and verdict ---- */

/* Worst first: what makes it impossible, what makes it slow, what is not known, what is well. */
static unsigned int badness(const struct finding *finding)
{
	static const unsigned int of[] = {
		[HEALTH_FAIL] = 0,
		[HEALTH_WARN] = 3,
		[HEALTH_UNKNOWN] = 6,
		[HEALTH_OK] = 9,
		[HEALTH_NOT_APPLICABLE] = 12,
	};

	return of[finding->verdict] + finding->check->severity;
}

static int worst_first(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (badness(x) != badness(y))
		return badness(x) < badness(y) ? -1 : 1;
	/* qsort() keeps no order; findings were made in the table's. */
	return x->order < y->order ? -1 : x->order > y->order;
}

bool doctor_able(const struct doctor *doctor, uint32_t *unknown)
{
	uint32_t failed = 0, unread = 0;

	for (uint32_t i = 0; i < doctor->count; i++) {
		const struct finding *finding = &doctor->findings[i];

		if (finding->check->severity != SEVERITY_FATAL)
			continue;
		failed += finding->verdict == HEALTH_FAIL;
		unread += finding->verdict == HEALTH_UNKNOWN;
	}
	if (unknown)
		*unknown = unread;
	return failed == 0;
}

/* ---- life ---- */

static void check_run(struct doctor *doctor, const struct doctor_check *check)
{
	doctor->check = check;
	doctor->open = false;
	doctor->said = false;
	if (check->run)
		check->run(doctor);
	for (uint32_t i = 0; i < doctor->machine.cards; i++) {
		const struct machine_card *card = &doctor->machine.card[i];

		if (check->card && card->connectx)
			check->card(doctor, card);
		if (check->interface && card->connectx && card->interface[0])
			check->interface(doctor, card);
	}
	for (uint32_t i = 0; check->gpu && i < doctor->gpus; i++)
		check->gpu(doctor, &doctor->gpu[i]);
	if (!doctor->said)
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE, "nothing here that it is about");
}

static void checks_run(struct doctor *doctor, const struct doctor_config *config)
{
	const struct doctor_check *const tables[] = {
		checks_gpu,	  checks_gdrcopy,
		checks_peer,	  checks_nic,
		checks_nic_port,  checks_topology,
		checks_pcie,	  checks_iommu,
		checks_host,	  checks_cpu,
		checks_container, checks_queues,
		checks_clock,	  config->live ? checks_live : NULL,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && tables[i]; i++)
		for (const struct doctor_check *check = tables[i]; check->id; check++) {
			if (config->progress)
				config->progress(check->id);
			check_run(doctor, check);
		}
}

int doctor_create(const struct doctor_config *config, struct doctor **out,
		  struct gdrcap_error *error)
{
	struct doctor *doctor;
	int ret;

	*out = NULL;
	if (config->live && config->root)
		return error_set(error, -EINVAL,
				 "live tests are of this machine; leave out --root or --live");
	doctor = calloc(1, sizeof(*doctor));
	if (!doctor)
		return error_set(error, -ENOMEM, "no memory for an examination");
	doctor->live = config->live;
	doctor->tree = tree_open(config->root);
	if (!doctor->tree) {
		ret = error_set(
			error, -errno,
			"%s: %s; give the folder into which a captured machine was unpacked (tar xf FILE.tar -C FOLDER)",
			config->root ? config->root : "/", strerror(errno));
		goto err;
	}
	if (!tree_exists(doctor->tree, "/sys") && !tree_exists(doctor->tree, "/proc")) {
		ret = error_set(
			error, -ENODATA,
			"%s: nothing of a machine is there to be read, neither /sys nor /proc; "
			"give the folder that gdrcap doctor --capture has written",
			config->root ? config->root : "/");
		goto err;
	}
	machine_find(&doctor->machine, doctor->tree);
	doctor_facts(doctor);
	doctor_gpus(doctor);
	checks_run(doctor, config);
	doctor_pairs(doctor);
	doctor_choose(doctor);
	if (doctor->no_memory) {
		ret = error_set(error, -ENOMEM, "no memory for the findings");
		goto err;
	}
	qsort(doctor->findings, doctor->count, sizeof(doctor->findings[0]), worst_first);
	*out = doctor;
	return 0;
err:
	doctor_destroy(doctor);
	return ret;
}

void doctor_destroy(struct doctor *doctor)
{
	if (!doctor)
		return;
	for (uint32_t i = 0; i < doctor->count; i++)
		finding_free(&doctor->findings[i]);
	tree_close(doctor->tree);
	free(doctor);
}

int doctor_capture(const struct doctor *doctor, const char *path, struct gdrcap_error *error)
{
	const int ret = tree_capture(doctor->tree, path);

	return ret == 0 ? 0
			: error_set(error, ret, "%s cannot be written: %s", path, strerror(-ret));
}
