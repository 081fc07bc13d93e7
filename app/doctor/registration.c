/* SPDX-License-Identifier: BSD-3-Clause */
/* What several checks ask: GPUs, the kernel, and whether a card can register GPU memory. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"

#define PEERS "/sys/kernel/mm/memory_peers"
#define SYMBOLS "/proc/kallsyms"

const char *answer_word(enum answer answer)
{
	return answer == ANSWER_YES ? "yes" : answer == ANSWER_NO ? "no" : "not known";
}

/* ---- GPUs ---- */

void doctor_gpus(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	char text[TREE_TEXT_MAX];
	uint32_t count = 0;

	for (; count < machine->gpus; count++) {
		struct gpu_seen *gpu = &doctor->gpu[count];

		gpu->gpu = &machine->gpu[count];
		gpu->ordinal = gpu->gpu->cuda_ordinal;
		snprintf(gpu->pci, sizeof(gpu->pci), "%s", gpu->gpu->pci.address);
	}
	/* Where the PCI bus is hidden CUDA still has them. */
	for (int i = 0; i < (int)MACHINE_GPUS_MAX && count < MACHINE_GPUS_MAX; i++) {
		uint32_t known = 0;

		if (tree_fact(doctor->tree, text, "cuda/%d/pci", i) < 0)
			break;
		while (known < count && strcmp(doctor->gpu[known].pci, text) != 0)
			known++;
		if (known < count || !machine_is_pci(text))
			continue;
		doctor->gpu[count].ordinal = i;
		snprintf(doctor->gpu[count].pci, sizeof(doctor->gpu[count].pci), "%.15s", text);
		count++;
	}
	doctor->gpus = count;
}

const struct gpu_seen *gpu_of_cuda(const struct doctor *doctor)
{
	for (uint32_t i = 0; i < doctor->gpus; i++)
		if (doctor->gpu[i].ordinal >= 0)
			return &doctor->gpu[i];
	return NULL;
}

int cuda_number(struct doctor *doctor, int ordinal, const char *name, unsigned int *number)
{
	char text[TREE_TEXT_MAX], *end;
	int ret;

	if (ordinal < 0)
		return -ENOENT;
	ret = tree_fact(doctor->tree, text, "cuda/%d/%s", ordinal, name);
	if (ret < 0)
		return ret;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	*number = (unsigned int)strtoul(text, &end, 10);
	return *end ? -EINVAL : 0;
}

/* ---- the kernel ---- */

enum answer module_loaded(struct doctor *doctor, const char *name)
{
	const int ret = tree_find(doctor->tree, "/sys/module/%s", name);

	if (ret == 0)
		return ANSWER_YES;
	return ret == -ENOENT && tree_exists(doctor->tree, "/sys/module") ? ANSWER_NO
									  : ANSWER_UNKNOWN;
}

int nvidia_driver_line(struct doctor *doctor, char line[256])
{
	static const char *const wanted[] = { "NVRM version:", NULL };
	const int ret = tree_grep(doctor->tree, "/proc/driver/nvidia/version", wanted, line, 256);

	line[strcspn(line, "\n")] = '\0';
	return ret > 0 ? 0 : ret < 0 ? ret : -EINVAL;
}

/*
 * Whether the kernel has a function. The list is long, tens of milliseconds: read only where
 * nothing else tells, and once. The last word is always there where the RDMA core is loaded.
 */
static enum answer kernel_has(struct doctor *doctor, const char *symbol, char read[READ_TEXT])
{
	static const char *const wanted[] = { " ib_register_peer_memory_client",
					      " ib_umem_dmabuf_get", " ib_register_client", NULL };
	struct tree *tree = doctor->tree;
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

int device_access(struct doctor *doctor, const char *path)
{
	struct tree *tree = doctor->tree;
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

enum answer peer_interface(struct doctor *doctor, char read[READ_TEXT])
{
	/* The RDMA core makes the folder together with the interface; not all versions do. */
	if (tree_exists(doctor->tree, PEERS)) {
		snprintf(read, READ_TEXT, "%s: there", PEERS);
		return ANSWER_YES;
	}
	return kernel_has(doctor, "ib_register_peer_memory_client", read);
}

enum answer peer_client(struct doctor *doctor, char read[READ_TEXT])
{
	static const char *const modules[] = { "nvidia_peermem", "nv_peer_mem" };
	/* Both of nvidia-peermem; the ancestor has the first. */
	static const char *const clients[] = { "nv_mem", "nv_mem_nc" };
	struct tree *tree = doctor->tree;
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

enum answer dmabuf_export(struct doctor *doctor, int ordinal, char read[READ_TEXT])
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
enum answer dmabuf_import(struct doctor *doctor, char read[READ_TEXT])
{
	static const char *const wanted[] = { "CONFIG_INFINIBAND_ON_DEMAND_PAGING", NULL };
	const struct machine *machine = &doctor->machine;
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
	if (tree_grep(doctor->tree, path, wanted, text, sizeof(text)) < 1 ||
	    !strstr(text, "is not set"))
		return ANSWER_YES;
	snprintf(read, READ_TEXT, "%s: %.200s", path, text);
	/* OFED's modules are built with a configuration of their own. */
	return module_loaded(doctor, "mlx_compat") == ANSWER_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}

enum answer dmabuf_way(struct doctor *doctor)
{
	enum answer best = ANSWER_NO, import;
	char read[READ_TEXT];

	for (uint32_t i = 0; i < doctor->gpus && best != ANSWER_YES; i++) {
		const enum answer answer = dmabuf_export(doctor, doctor->gpu[i].ordinal, read);

		if (answer != ANSWER_NO)
			best = answer;
	}
	if (best == ANSWER_NO)
		return ANSWER_NO;
	import = dmabuf_import(doctor, read);
	return import == ANSWER_YES ? best : import;
}

/* ---- remedies ---- */

void remedy_load_peermem(struct doctor *doctor)
{
	char read[READ_TEXT];
	const enum answer there = peer_interface(doctor, read);

	remedy_on_host(doctor);
	if (there == ANSWER_NO)
		remedy(doctor, "# this kernel's RDMA core lacks the interface: install "
			       "NVIDIA's DOCA-OFED (package doca-ofed), then NVIDIA's "
			       "driver once more, then:");
	remedy(doctor, "sudo modprobe nvidia-peermem");
	remedy(doctor, "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf");
}
