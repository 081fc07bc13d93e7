/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The IOMMU. GPUDirect RDMA takes a GPU's physical addresses for what the card sends: NVIDIA's
 * guide asks for an IOMMU that is off or passes addresses on as they are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

void remedy_kernel_argument(struct doctor *doctor, const char *argument)
{
	switch (doctor->machine.distribution) {
	case DISTRIBUTION_DEBIAN:
	case DISTRIBUTION_UBUNTU:
		remedy(doctor,
		       "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&%s /' /etc/default/grub && sudo "
		       "update-grub",
		       argument);
		break;
	case DISTRIBUTION_RHEL:
		remedy(doctor, "sudo grubby --update-kernel=ALL --args='%s'", argument);
		break;
	case DISTRIBUTION_OTHER:
		remedy(doctor, "# add %s to the kernel's arguments in the boot loader", argument);
		break;
	}
	remedy(doctor, "sudo reboot");
}

/* ---- what is there ---- */

struct iommu {
	int units;	/* a negative errno: nobody knows */
	bool arm;	/* an SMMU, which has arguments of its own */
	char read[256]; /* of the machine, for each finding */
};

static void iommu_find(struct iommu *iommu, struct tree *tree)
{
	static const char *const words[] = {
		"iommu=", "intel_iommu=", "amd_iommu=", "iommu.passthrough=", "iommu.strict=", NULL
	};
	char(*names)[64], arguments[160];

	*iommu = (struct iommu){ .units = tree_list(tree, &names, "/sys/class/iommu") };
	for (int i = 0; i < iommu->units; i++)
		iommu->arm = iommu->arm || strncmp(names[i], "smmu", 4) == 0;
	if (iommu->units < 0)
		snprintf(iommu->read, sizeof(iommu->read), "; /sys/class/iommu: %s",
			 strerror(-iommu->units));
	else
		snprintf(iommu->read, sizeof(iommu->read), "; /sys/class/iommu: %s%s",
			 iommu->units ? names[0] : "empty", iommu->units > 1 ? ", ..." : "");
	free(names);
	if (tree_words(tree, "/proc/cmdline", words, arguments, sizeof(arguments)) > 0)
		snprintf(iommu->read + strlen(iommu->read),
			 sizeof(iommu->read) - strlen(iommu->read), "; /proc/cmdline: %s",
			 arguments);
}

/* What the IOMMU does with what a function sends. */
enum translation { TRANSLATION_NONE, TRANSLATION_ON, TRANSLATION_UNKNOWN };

static enum translation translation_of(struct tree *tree, const struct iommu *iommu,
				       const char *address, char read[128])
{
	char text[TREE_TEXT_MAX];
	const int ret = tree_text(tree, text, "/sys/bus/pci/devices/%s/iommu_group/type", address);

	if (ret < 0)
		snprintf(read, 128, "/sys/bus/pci/devices/%s/iommu_group/type: %s", address,
			 ret == -ENOENT ? "not there" : strerror(-ret));
	else
		snprintf(read, 128, "/sys/bus/pci/devices/%s/iommu_group/type: %.16s", address,
			 text);
	if (ret == 0 && strcmp(text, "identity") == 0)
		return TRANSLATION_NONE;
	if (ret == 0 && (strcmp(text, "DMA") == 0 || strcmp(text, "DMA-FQ") == 0))
		return TRANSLATION_ON;
	return ret == -ENOENT && iommu->units == 0 ? TRANSLATION_NONE : TRANSLATION_UNKNOWN;
}

/* ---- findings ---- */

static void iommu_remedy(struct doctor *doctor, const struct iommu *iommu)
{
	if (doctor->machine.container[0])
		remedy(doctor, "# on the host of this container:");
	remedy_kernel_argument(doctor, iommu->arm ? "iommu.passthrough=1" : "iommu=pt");
}

static void device_finding(struct doctor *doctor, const struct iommu *iommu,
			   const struct machine_pci *pci, enum health when_on)
{
	char read[128];
	const enum translation translation =
		translation_of(doctor->tree, iommu, pci->address, read);

	switch (translation) {
	case TRANSLATION_NONE:
		finding(doctor, pci->address, HEALTH_OK, "%s%s", read, iommu->read);
		break;
	case TRANSLATION_ON:
		finding(doctor, pci->address, when_on, "%s%s", read, iommu->read);
		iommu_remedy(doctor, iommu);
		break;
	case TRANSLATION_UNKNOWN:
		finding(doctor, pci->address, HEALTH_UNKNOWN, "%s%s", read, iommu->read);
		remedy(doctor, "cat /sys/bus/pci/devices/%s/iommu_group/type  # good: identity",
		       pci->address);
		remedy(doctor, "sudo dmesg | grep -i -e iommu -e DMAR  # \"Default domain type\"");
		break;
	}
}

static void check_pcie_iommu(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	enum health when_on = HEALTH_FAIL;
	struct iommu iommu;
	char read[128];

	iommu_find(&iommu, doctor->tree);
	/* In a virtual machine, and with an SMMU that asks the GPU itself (ATS), it may work. */
	if (machine->virtual_machine[0] || iommu.arm)
		when_on = HEALTH_WARN;
	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx &&
		    translation_of(doctor->tree, &iommu, machine->card[i].pci.address, read) ==
			    TRANSLATION_NONE)
			when_on = HEALTH_WARN;
	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx)
			device_finding(doctor, &iommu, &machine->card[i].pci, when_on);
	/* It is the card that addresses the GPU; the GPU addresses the card for GPUDirect Async. */
	for (uint32_t i = 0; i < machine->gpus; i++)
		device_finding(doctor, &iommu, &machine->gpu[i].pci, HEALTH_WARN);
}

const struct doctor_check checks_iommu[] = {
	{ "pcie-iommu", "pcie", SEVERITY_FATAL,
	  "GPUDirect RDMA works only where the IOMMU is off or passes addresses on as they are",
	  .run = check_pcie_iommu },
	{ 0 },
};
