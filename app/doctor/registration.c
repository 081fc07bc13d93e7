/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a card can register memory, tried. */
#include "doctor/registration.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/checks.h"

#define PEERS "/sys/kernel/mm/memory_peers"
#define SYMBOLS "/proc/kallsyms"

/* ---- GPUs ---- */

uint32_t gpus_seen(struct gdrcap_doctor *doctor, struct gpu_seen gpus[MACHINE_GPUS_MAX])
{
	const struct machine *machine = doctor_machine(doctor);
	struct tree *tree = doctor_tree(doctor);
	char text[TREE_TEXT_MAX];
	uint32_t count = 0;

	for (; count < machine->gpus; count++) {
		const char *pci = machine->gpu[count].pci.address;

		gpus[count].gpu = &machine->gpu[count];
		gpus[count].ordinal = facts_cuda_ordinal(tree, pci);
		snprintf(gpus[count].pci, sizeof(gpus[count].pci), "%s", pci);
	}
	/* Where the PCI bus is hidden CUDA still has them. */
	for (int i = 0; count < MACHINE_GPUS_MAX; i++) {
		uint32_t known = 0;

		if (i >= (int)MACHINE_GPUS_MAX || tree_fact(tree, text, "cuda/%d/pci", i) < 0)
			break;
		while (known < count && strcmp(gpus[known].pci, text) != 0)
			known++;
		if (known < count || !machine_is_pci(text))
			continue;
		gpus[count].gpu = NULL;
		gpus[count].ordinal = i;
		snprintf(gpus[count].pci, sizeof(gpus[count].pci), "%.15s", text);
		count++;
	}
	return count;
}

int cuda_number(struct gdrcap_doctor *doctor, int ordinal, const char *name, unsigned int *number)
{
	char text[TREE_TEXT_MAX], *end;
	int ret;

	if (ordinal < 0)
		return -ENOENT;
	ret = tree_fact(doctor_tree(doctor), text, "cuda/%d/%s", ordinal, name);
	if (ret < 0)
		return ret;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	*number = (unsigned int)strtoul(text, &end, 10);
	return *end ? -EINVAL : 0;
}

/* ---- the kernel ---- */

enum answer module_loaded(struct gdrcap_doctor *doctor, const char *name)
{
	const int ret = tree_find(doctor_tree(doctor), "/sys/module/%s", name);

	if (ret == 0)
		return ANSWER_YES;
	return ret == -ENOENT && tree_exists(doctor_tree(doctor), "/sys/module") ? ANSWER_NO
										 : ANSWER_UNKNOWN;
}

int nvidia_driver_line(struct gdrcap_doctor *doctor, char line[256])
{
	static const char *const wanted[] = { "NVRM version:", NULL };
	const int ret =
		tree_grep(doctor_tree(doctor), "/proc/driver/nvidia/version", wanted, line, 256);

	line[strcspn(line, "\n")] = '\0';
	return ret > 0 ? 0 : ret < 0 ? ret : -EINVAL;
}

/*
 * Whether the kernel has a function. The list is long, tens of milliseconds: read only where
 * nothing else tells, and once. The last word is always there where the RDMA core is loaded.
 */
static enum answer kernel_has(struct gdrcap_doctor *doctor, const char *symbol,
			      char read[READ_TEXT])
{
	static const char *const wanted[] = { " ib_register_peer_memory_client",
					      " ib_umem_dmabuf_get", " ib_register_client", NULL };
	struct tree *tree = doctor_tree(doctor);
	char text[TREE_TEXT_MAX];
	int ret = 0;

	if (!tree_live(tree) || tree_fact(tree, text, "kernel/symbols") < 0)
		ret = tree_grep(tree, SYMBOLS, wanted, text, sizeof(text));
	if (tree_live(tree) && ret >= 0)
		tree_fact_set(tree, "kernel/symbols", text);
	if (ret >= 0 && strstr(text, symbol)) {
		snprintf(read, READ_TEXT, "%s: %s", SYMBOLS, symbol);
		return ANSWER_YES;
	}
	if (ret < 0)
		snprintf(read, READ_TEXT, "%s: %s", SYMBOLS, strerror(-ret));
	else if (strstr(text, "ib_register_client"))
		snprintf(read, READ_TEXT, "%s: no %s", SYMBOLS, symbol);
	else
		snprintf(read, READ_TEXT, "%s: the RDMA core (ib_core) is not in it", SYMBOLS);
	return ret >= 0 && strstr(text, "ib_register_client") ? ANSWER_NO : ANSWER_UNKNOWN;
}

int device_access(struct gdrcap_doctor *doctor, const char *path)
{
	struct tree *tree = doctor_tree(doctor);
	char name[128], text[TREE_TEXT_MAX];
	const int there = tree_find(tree, "%s", path);
	int error = 0;

	if (there < 0)
		return there;
	snprintf(name, sizeof(name), "process/access%s", path);
	if (tree_live(tree)) {
		error = access(path, R_OK | W_OK) < 0 ? errno : 0;
		snprintf(text, sizeof(text), "%d", error);
		tree_fact_set(tree, name, text);
	} else if (tree_fact(tree, text, "%s", name) == 0 && sscanf(text, "%d", &error) == 1 &&
		   (error < 0 || error > 4095)) {
		error = 0;
	}
	return -error;
}

/* ---- by address ---- */

enum answer peer_interface(struct gdrcap_doctor *doctor, char read[READ_TEXT])
{
	/* The RDMA core makes the folder together with the interface; not all versions do. */
	if (tree_exists(doctor_tree(doctor), PEERS)) {
		snprintf(read, READ_TEXT, "%s: there", PEERS);
		return ANSWER_YES;
	}
	return kernel_has(doctor, "ib_register_peer_memory_client", read);
}

enum answer peer_client(struct gdrcap_doctor *doctor, char read[READ_TEXT])
{
	static const char *const modules[] = { "nvidia_peermem", "nv_peer_mem" };
	/* Both of nvidia-peermem; the ancestor has the first. */
	static const char *const clients[] = { "nv_mem", "nv_mem_nc" };
	struct tree *tree = doctor_tree(doctor);
	enum answer loaded = ANSWER_NO;
	const char *name = NULL;
	int folder;

	for (int i = 0; i < 2; i++)
		if (tree_exists(tree, "%s/%s", PEERS, clients[i])) {
			snprintf(read, READ_TEXT, "%s/%s: there", PEERS, clients[i]);
			return ANSWER_YES;
		}
	for (int i = 0; i < 2 && loaded != ANSWER_YES; i++) {
		const enum answer answer = module_loaded(doctor, modules[i]);

		if (answer != ANSWER_NO)
			loaded = answer;
		if (answer == ANSWER_YES)
			name = modules[i];
	}
	folder = tree_find(tree, PEERS);
	if (folder == 0) {
		snprintf(read, READ_TEXT, "%s: no nv_mem", PEERS);
		return ANSWER_NO;
	}
	if (loaded == ANSWER_YES)
		snprintf(read, READ_TEXT,
			 "/sys/module/%s: loaded; %s: %s, so whether it is registered cannot be "
			 "seen",
			 name, PEERS, strerror(-folder));
	else
		snprintf(read, READ_TEXT, "/sys/module/nvidia_peermem: %s",
			 loaded == ANSWER_NO ? "not loaded" : "/sys/module cannot be read");
	return loaded == ANSWER_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}

/* ---- as dma-buf ---- */

enum answer dmabuf_export(struct gdrcap_doctor *doctor, int ordinal, char read[READ_TEXT])
{
	unsigned int supported;
	char line[256];

	if (cuda_number(doctor, ordinal, "dma_buf_supported", &supported) == 0) {
		snprintf(read, READ_TEXT, "CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: %u", supported);
		return supported ? ANSWER_YES : ANSWER_NO;
	}
	if (nvidia_driver_line(doctor, line) < 0) {
		snprintf(read, READ_TEXT, "CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: not known");
		return ANSWER_UNKNOWN;
	}
	snprintf(read, READ_TEXT,
		 "/proc/driver/nvidia/version: %.200s; CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: not "
		 "known",
		 line);
	return ANSWER_UNKNOWN;
}

/* Linux has it since 5.12 where on-demand paging is built in; NVIDIA's OFED and RHEL's kernels
 * brought it to earlier ones. */
enum answer dmabuf_import(struct gdrcap_doctor *doctor, char read[READ_TEXT])
{
	static const char *const wanted[] = { "CONFIG_INFINIBAND_ON_DEMAND_PAGING", NULL };
	const struct machine *machine = doctor_machine(doctor);
	char path[192], text[TREE_TEXT_MAX];
	unsigned int major, minor;

	if (sscanf(machine->kernel, "%u.%u", &major, &minor) != 2) {
		snprintf(read, READ_TEXT, "/proc/sys/kernel/osrelease: no version");
		return ANSWER_UNKNOWN;
	}
	if (major < 5 || (major == 5 && minor < 12)) {
		const enum answer answer = kernel_has(doctor, "ib_umem_dmabuf_get", text);

		snprintf(read, READ_TEXT, "Linux %s is older than 5.12; %.400s", machine->kernel,
			 text);
		return answer;
	}
	snprintf(path, sizeof(path), "/boot/config-%s", machine->kernel);
	snprintf(read, READ_TEXT, "Linux %s", machine->kernel);
	if (tree_grep(doctor_tree(doctor), path, wanted, text, sizeof(text)) < 1 ||
	    !strstr(text, "is not set"))
		return ANSWER_YES;
	snprintf(read, READ_TEXT, "%s: %.200s", path, text);
	/* OFED's modules are built with a configuration of their own. */
	return module_loaded(doctor, "mlx_compat") == ANSWER_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}

enum answer dmabuf_way(struct gdrcap_doctor *doctor)
{
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	const uint32_t count = gpus_seen(doctor, gpus);
	enum answer best = ANSWER_NO, import;
	char read[READ_TEXT];

	for (uint32_t i = 0; i < count && best != ANSWER_YES; i++) {
		const enum answer answer = dmabuf_export(doctor, gpus[i].ordinal, read);

		if (answer != ANSWER_NO)
			best = answer;
	}
	if (best == ANSWER_NO)
		return ANSWER_NO;
	import = dmabuf_import(doctor, read);
	return import == ANSWER_YES ? best : import;
}

/* ---- remedies ---- */

void finding_host(struct gdrcap_doctor *doctor)
{
	if (doctor_machine(doctor)->container[0])
		finding_remedy(doctor, "# on the host, not in this container:");
}

void finding_load_peermem(struct gdrcap_doctor *doctor)
{
	char read[READ_TEXT];
	const enum answer there = peer_interface(doctor, read);

	finding_host(doctor);
	if (there == ANSWER_NO)
		finding_remedy(doctor, "# this kernel's RDMA core lacks the interface: install "
				       "NVIDIA's DOCA-OFED (package doca-ofed), then NVIDIA's "
				       "driver once more, then:");
	finding_remedy(doctor, "sudo modprobe nvidia-peermem");
	finding_remedy(doctor,
		       "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf");
}
