/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of gdrcap's own in place of the driver's, and a GPU that drives them: what NVIDIA calls
 * GPUDirect Async, and libgdsync did with peer-direct verbs. A capture works without any of it, so
 * nothing here is fatal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor/doctor.h"

#define PARAMETERS "/proc/driver/nvidia/params"
#define OVERRIDE "PeerMappingOverride=1"
#define ORDERED_OWNER 100u /* as checks_gpu.c */
#define CONNECTX_4_FIRST 0x1013u
#define CONNECTX_4_LAST 0x1016u

/* ---- kernel and library ---- */

/* Whether the running modules have what Linux has had since this release. Of an earlier one nobody
 * knows where OFED's modules run, or the distribution brings later drivers to old kernels. */
static enum answer kernel_since(struct doctor *doctor, unsigned int major, unsigned int minor)
{
	const struct machine *machine = &doctor->machine;
	unsigned int is_major, is_minor;

	if (sscanf(machine->kernel, "%u.%u", &is_major, &is_minor) != 2)
		return ANSWER_UNKNOWN;
	if (is_major > major || (is_major == major && is_minor >= minor))
		return ANSWER_YES;
	return machine->distribution != DISTRIBUTION_RHEL &&
			       module_loaded(doctor, "mlx_compat") == ANSWER_NO
		       ? ANSWER_NO
		       : ANSWER_UNKNOWN;
}

static enum answer library_has(struct doctor *doctor, const char *symbol)
{
	char text[TREE_TEXT_MAX];

	if (tree_fact(doctor->tree, text, "symbol/%s", symbol) < 0)
		return ANSWER_UNKNOWN;
	return strcmp(text, "yes") == 0 ? ANSWER_YES : ANSWER_NO;
}

/* A function of libmlx5 and a release of Linux: both are needed. True: they are there, and told. */
static bool both_there(struct doctor *doctor, const char *subject, const char *symbol,
		       unsigned int major, unsigned int minor)
{
	const enum answer library = library_has(doctor, symbol);
	const enum answer kernel = kernel_since(doctor, major, minor);
	const bool no = library == ANSWER_NO || kernel == ANSWER_NO;
	const bool yes = library == ANSWER_YES && kernel == ANSWER_YES;

	finding(doctor, subject,
		no    ? HEALTH_WARN
		: yes ? HEALTH_OK
		      : HEALTH_UNKNOWN,
		"libmlx5.so.1 has %s: %s; Linux %s%s", symbol, answer_word(library),
		doctor->machine.kernel[0] ? doctor->machine.kernel : "of an unknown release",
		kernel == ANSWER_YES  ? ""
		: kernel == ANSWER_NO ? " is too old"
				      : " is older or not known; its modules may be newer");
	if (library == ANSWER_NO)
		remedy_install(doctor, PACKAGE_RDMA_CORE);
	if (kernel == ANSWER_NO) {
		remedy_on_host(doctor);
		remedy(doctor, "# Linux %u.%u or later, or NVIDIA's DOCA-OFED (package doca-ofed)",
		       major, minor);
	}
	if (!no && !yes)
		remedy(doctor, "sudo gdrcap doctor --live  # tries it");
	return yes;
}

/* ---- the card ---- */

static void check_devx(struct doctor *doctor, const struct machine_card *card)
{
	if (card->pci.device >= CONNECTX_4_FIRST && card->pci.device <= CONNECTX_4_LAST) {
		finding(doctor, card->pci.address, HEALTH_WARN, "%s", card->model);
		remedy(doctor, "# a ConnectX-5 or later; this one is for the driver's queues");
		return;
	}
	(void)both_there(doctor, card->pci.address, "mlx5dv_devx_general_cmd", 4, 20);
}

/* Rings in GPU memory: by the same two ways as frames, and the second asks for more than theirs. */
static void check_umem(struct doctor *doctor)
{
	static const char symbol[] = "mlx5dv_devx_umem_reg_ex";
	char export_read[READ_TEXT], peer_read[READ_TEXT];
	const struct gpu_seen *gpu = gpu_of_cuda(doctor);
	enum answer export, peer;

	if (doctor->gpus == 0 || doctor->machine.cards == 0)
		return;
	peer = peer_client(doctor, peer_read);
	if (peer == ANSWER_YES) {
		finding(doctor, NULL, HEALTH_OK, "by address: %s; as dma-buf, %s: %s", peer_read,
			symbol, answer_word(library_has(doctor, symbol)));
		return;
	}
	export = dmabuf_export(doctor, gpu ? gpu->ordinal : -1, export_read);
	if (export == ANSWER_NO && peer == ANSWER_NO) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			"no GPU memory for a card at all: see gpu-memory-registration");
		return;
	}
	if (export != ANSWER_YES) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "by address: %.300s; %.300s", peer_read,
			export_read);
		remedy(doctor, "sudo gdrcap doctor --live");
		return;
	}
	if (!both_there(doctor, NULL, symbol, 6, 1))
		remedy(doctor, "# or by address, with nvidia-peermem: see peermem-loaded");
}

/* ---- the doorbell ---- */

/* The registry words that the NVIDIA module runs with. */
static void check_uar(struct doctor *doctor)
{
	static const char *const wanted[] = { "RegistryDwords:", NULL };
	char text[TREE_TEXT_MAX], user[TREE_TEXT_MAX];
	int ret;

	if (doctor->gpus == 0 || doctor->machine.cards == 0)
		return;
	ret = tree_grep(doctor->tree, PARAMETERS, wanted, text, sizeof(text));
	if (ret > 0 && strstr(text, OVERRIDE)) {
		finding(doctor, NULL, HEALTH_OK, PARAMETERS ": %.300s", text);
		return;
	}
	if (tree_fact(doctor->tree, user, "process/user") == 0 && strcmp(user, "0") == 0) {
		finding(doctor, NULL, HEALTH_OK,
			PARAMETERS ": without " OVERRIDE ", which root does not need");
		return;
	}
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, PARAMETERS ": %s", strerror(-ret));
		remedy(doctor, "grep RegistryDwords " PARAMETERS);
		return;
	}
	finding(doctor, NULL, HEALTH_WARN, PARAMETERS ": %.300s, without " OVERRIDE,
		ret > 0 ? text : "no RegistryDwords");
	remedy_on_host(doctor);
	remedy(doctor, "echo 'options nvidia NVreg_RegistryDwords=\"" OVERRIDE ";\"' | sudo tee "
		       "/etc/modprobe.d/nvidia-peer-mapping.conf");
	if (doctor->machine.distribution == DISTRIBUTION_RHEL)
		remedy(doctor, "sudo dracut --force && sudo reboot");
	else
		remedy(doctor, "sudo update-initramfs -u && sudo reboot");
	remedy(doctor, "# or run as root; without either a CPU thread rings the doorbell for the "
		       "GPU, and receiving needs no doorbell at all");
}

/* ---- the GPU ---- */

static void check_stream_operations(struct doctor *doctor, const struct gpu_seen *gpu)
{
	static const char name[] = "CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS";
	unsigned int can, major = 0, minor = 0;
	char driver[TREE_TEXT_MAX];

	if (gpu->ordinal < 0)
		return; /* gpu-found says so */
	if (cuda_number(doctor, gpu->ordinal, "stream_memory_operations", &can) == 0) {
		finding(doctor, gpu->pci, can ? HEALTH_OK : HEALTH_WARN, "%s: %u", name, can);
		if (!can)
			remedy(doctor, "# not on this GPU: take frames by polling, or from a "
				       "running kernel");
		return;
	}
	if (tree_fact(doctor->tree, driver, "cuda/driver") < 0 ||
	    sscanf(driver, "%u.%u", &major, &minor) != 2 || major > 11 ||
	    (major == 11 && minor >= 7)) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "%s: not known", name);
		remedy(doctor, "sudo nvidia-smi -pm 1; gdrcap doctor  # asks CUDA once more");
		return;
	}
	/* Those of before were off unless the module was loaded with NVreg_EnableStreamMemOPs=1. */
	finding(doctor, gpu->pci, HEALTH_WARN, "%s: not in CUDA %u.%u; since 11.7", name, major,
		minor);
	remedy(doctor, "# NVIDIA's driver 515 or later, which needs no "
		       "NVreg_EnableStreamMemOPs=1 any more:");
	remedy_install(doctor, PACKAGE_NVIDIA_DRIVER);
}

static void check_front(struct doctor *doctor, const struct gpu_seen *gpu)
{
	static const char name[] = "GPU_DIRECT_RDMA_WRITES_ORDERING";
	unsigned int ordering;

	if (gpu->ordinal < 0)
		return; /* gpu-found says so */
	if (cuda_number(doctor, gpu->ordinal, "gpu_direct_rdma_writes_ordering", &ordering) < 0) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "%s: not known", name);
		remedy(doctor, "sudo nvidia-smi -pm 1; gdrcap doctor  # asks CUDA once more");
		return;
	}
	finding(doctor, gpu->pci, ordering >= ORDERED_OWNER ? HEALTH_OK : HEALTH_WARN,
		"%s: %u, and %u (owner) or more is needed", name, ordering, ORDERED_OWNER);
	if (ordering < ORDERED_OWNER)
		remedy(doctor, "# another GPU; with this one a CPU thread has to poll the "
			       "completions, and flush");
}

static void check_together(struct doctor *doctor, const struct gpu_seen *gpu)
{
	unsigned int concurrent, timeout, multiprocessors = 0;

	if (gpu->ordinal < 0)
		return; /* gpu-found says so */
	(void)cuda_number(doctor, gpu->ordinal, "multiprocessors", &multiprocessors);
	if (cuda_number(doctor, gpu->ordinal, "concurrent_kernels", &concurrent) < 0 ||
	    cuda_number(doctor, gpu->ordinal, "kernel_timeout", &timeout) < 0) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN,
			"CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, KERNEL_EXEC_TIMEOUT: not known");
		remedy(doctor, "sudo nvidia-smi -pm 1; gdrcap doctor  # asks CUDA once more");
		return;
	}
	finding(doctor, gpu->pci, concurrent && !timeout ? HEALTH_OK : HEALTH_WARN,
		"CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: %u, KERNEL_EXEC_TIMEOUT: %u; %u "
		"multiprocessors",
		concurrent, timeout, multiprocessors);
	if (!concurrent)
		remedy(doctor,
		       "# this GPU, or the debugger that runs it, has one kernel at a time: "
		       "leave the queues to the driver");
	if (timeout) {
		remedy(doctor, "# a display is on this GPU, and kernels that run for seconds are "
			       "ended; without it:");
		remedy(doctor, "sudo systemctl isolate multi-user.target");
	}
}

const struct doctor_check checks_queues[] = {
	{ "devx", "own-queues", SEVERITY_INFO,
	  "queues of gdrcap's own are made by commands of the card (DevX); the peer-direct verbs (ibv_exp_*) that libgdsync made them with are gone",
	  .card = check_devx },
	{ "umem", "own-queues", SEVERITY_INFO,
	  "completions go into GPU memory only where the card takes it for its rings, as a dma-buf or by address through nvidia-peermem",
	  .run = check_umem },
	{ "peer-mapping", "own-queues", SEVERITY_INFO,
	  "a kernel that sends rings the card's doorbell itself (GPUDirect Async), in a page of the card that is mapped into the GPU",
	  .run = check_uar },
	{ "stream-memory-operations", "own-queues", SEVERITY_INFO,
	  "a CUDA stream waits for frames, and gives them back, by operations of the driver, as libgdsync's streams did",
	  .gpu = check_stream_operations },
	{ "gpu-front", "own-queues", SEVERITY_INFO,
	  "a kernel that polls the card's completions must find a frame's bytes there before its completion",
	  .gpu = check_front },
	{ "kernels-together", "own-queues", SEVERITY_INFO,
	  "the kernel that receives and those that check wait for each other: all have to be on the GPU at the same time, for as long as the run",
	  .gpu = check_together },
	{ 0 },
};
