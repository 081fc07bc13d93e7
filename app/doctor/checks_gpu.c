/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs, their driver, and what CUDA says of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

/* Bits of CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS and values of
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING. */
#define FLUSH_HOST 1u
#define ORDERED_OWNER 100u
#define ORDERED_ALL 200u

/* What cuInit() says, at the beginning of the fact "cuda/error": CUresult in brackets. */
static const struct {
	const char *code, *remedy;
} cuda_causes[] = {
	{ "802", "sudo systemctl start nvidia-fabricmanager  # the GPUs' switches are not set up" },
	{ "803", "sudo reboot  # the driver's library and its kernel module are of two versions" },
	{ "804", "# this CUDA's forward compatibility package is not for this GPU: remove it "
		 "(cuda-compat) or install a newer driver" },
};

/* ---- the driver ---- */

static const struct machine_gpu *gpu_with_driver(const struct machine *machine, const char *driver)
{
	for (uint32_t i = 0; i < machine->gpus; i++)
		if (strcmp(machine->gpu[i].pci.driver, driver) == 0)
			return &machine->gpu[i];
	return NULL;
}

static void driver_remedy(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	const struct machine_gpu *other = gpu_with_driver(machine, "vfio-pci");

	remedy_on_host(doctor);
	if (other) {
		const char *address = other->pci.address;

		remedy(doctor, "# %s is set aside for virtual machines; to have it back:", address);
		remedy(doctor,
		       "echo | sudo tee "
		       "/sys/bus/pci/devices/%s/driver_override",
		       address);
		remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind", address);
		remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers_probe", address);
		return;
	}
	remedy_install(doctor, PACKAGE_NVIDIA_DRIVER);
	if (gpu_with_driver(machine, "nouveau")) {
		remedy(doctor, "echo 'blacklist nouveau' | sudo tee "
			       "/etc/modprobe.d/blacklist-nouveau.conf");
		if (machine->distribution == DISTRIBUTION_RHEL)
			remedy(doctor, "sudo dracut --force && sudo reboot");
		else
			remedy(doctor, "sudo update-initramfs -u && sudo reboot");
		return;
	}
	remedy(doctor, "sudo modprobe nvidia");
}

static void check_nvidia_driver(struct doctor *doctor)
{
	static const char path[] = "/proc/driver/nvidia/version";
	const struct gpu_seen *gpu = gpu_of_cuda(doctor);
	char line[256];
	const int ret = nvidia_driver_line(doctor, line);

	if (ret == 0) {
		finding(doctor, NULL, HEALTH_OK, "%s: %s", path, line);
		return;
	}
	if (doctor->gpus == 0)
		return;
	/* A driver that CUDA works with is there, whatever the file is. */
	if (gpu) {
		finding(doctor, NULL, HEALTH_OK, "%s: %s; CUDA has %s", path, strerror(-ret),
			gpu->pci);
		return;
	}
	if (ret != -ENOENT) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", path,
			ret == -EINVAL ? "no line \"NVRM version\"" : strerror(-ret));
		remedy(doctor, "cat %s", path);
		return;
	}
	gpu = &doctor->gpu[0];
	finding(doctor, NULL, HEALTH_FAIL, "%s: not there; driver of %s: %s", path, gpu->pci,
		gpu->gpu && gpu->gpu->pci.driver[0] ? gpu->gpu->pci.driver : "none");
	if (doctor->machine.container[0])
		remedy(doctor, "# or the container was started without its GPUs: docker "
			       "run --gpus all; in Kubernetes, nvidia.com/gpu in the "
			       "pod's resources");
	driver_remedy(doctor);
}

/* Anything at all that the bus shows; a negative errno. */
static int functions_on_bus(struct doctor *doctor)
{
	char(*names)[64];
	const int count = tree_list(doctor->tree, &names, "/sys/bus/pci/devices");

	free(names);
	return count;
}

static void check_libcuda(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	unsigned int branch;
	char text[TREE_TEXT_MAX], line[256], *version;

	/* Where there is none, gpu-found says so. */
	if (doctor->gpus == 0 && functions_on_bus(doctor) > 0)
		return;
	if (tree_fact(doctor->tree, text, "library/libcuda.so.1") < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "libcuda.so.1: not asked for");
		remedy(doctor, "ldconfig -p | grep libcuda.so.1");
		return;
	}
	if (strcmp(text, "yes") == 0) {
		finding(doctor, NULL, HEALTH_OK, "dlopen(\"libcuda.so.1\"): loads%s",
			tree_fact(doctor->tree, text, "library/libcuda.so") == 0 &&
					strcmp(text, "yes") != 0
				? "; libcuda.so is missing, which only DPDK's own driver asks for"
				: "");
		return;
	}
	finding(doctor, NULL, HEALTH_FAIL, "dlopen(\"libcuda.so.1\"): %.400s", text);
	if (machine->container[0])
		remedy(doctor, "# docker run --gpus all -e "
			       "NVIDIA_DRIVER_CAPABILITIES=compute,utility: the library "
			       "comes from the host; else:");
	version = nvidia_driver_line(doctor, line) == 0 ? strpbrk(line, "0123456789") : NULL;
	/* "... Kernel Module for x86_64  570.86.15  Release Build": the first number with a dot. */
	for (branch = 0; version && branch == 0; version = strpbrk(version, "0123456789")) {
		const size_t digits = strspn(version, "0123456789");

		if (digits < 5 && version[digits] == '.')
			branch = (unsigned int)atoi(version);
		version += digits;
	}
	if (machine->distribution == DISTRIBUTION_DEBIAN)
		remedy(doctor, "sudo apt-get install libcuda1");
	else if (machine->distribution == DISTRIBUTION_UBUNTU && branch)
		remedy(doctor,
		       "sudo apt-get install libnvidia-compute-%u  # or "
		       "libnvidia-compute-%u-server, as the kernel module",
		       branch, branch);
	else if (machine->distribution == DISTRIBUTION_RHEL)
		remedy(doctor, "sudo dnf install nvidia-driver-cuda  # from NVIDIA's "
			       "repository");
	else
		remedy_install(doctor, PACKAGE_NVIDIA_DRIVER);
}

/* ---- the GPUs ---- */

static void gpus_missing(struct doctor *doctor)
{
	const int count = functions_on_bus(doctor);

	if (count <= 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "/sys/bus/pci/devices: %s; CUDA: no device",
			count < 0 ? strerror(-count) : "empty");
		remedy(doctor, "lspci -d 10de: ; nvidia-smi -L");
		return;
	}
	finding(doctor, NULL, HEALTH_FAIL, "/sys/bus/pci/devices: %d functions, no NVIDIA GPU",
		count);
	remedy(doctor,
	       "sudo lspci -d 10de:  # nothing: the card is not seated, has no "
	       "power, or is not passed through to this %s",
	       doctor->machine.virtual_machine[0] ? "virtual machine" : "machine");
	remedy(doctor, "gdrcap loopback  # tries all but GPU and card");
}

/* One that CUDA does not have: whether others are there decides how bad that is. */
static void gpu_unknown_to_cuda(struct doctor *doctor, const struct gpu_seen *gpu)
{
	struct tree *tree = doctor->tree;
	char error[TREE_TEXT_MAX], text[TREE_TEXT_MAX];
	const char *driver = gpu->gpu && gpu->gpu->pci.driver[0] ? gpu->gpu->pci.driver : "none";
	const bool asked = tree_fact(tree, text, "cuda/count") == 0 && text[0] &&
			   text[strspn(text, "0123456789")] == '\0';
	const bool failed = tree_fact(tree, error, "cuda/error") == 0;

	if (!asked && !failed) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "driver: %s; CUDA could not be asked",
			driver);
		remedy(doctor, "nvidia-smi -L");
		return;
	}
	/* A driver that starts first takes longer than the doctor waits. */
	if (failed && strncmp(error, "no answer", 9) == 0) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "driver: %s; CUDA: %.300s", driver,
			error);
		remedy(doctor, "sudo nvidia-smi -pm 1  # the driver stays loaded; then "
			       "examine once more");
		return;
	}
	finding(doctor, gpu->pci, gpu_of_cuda(doctor) ? HEALTH_WARN : HEALTH_FAIL,
		"driver: %s; CUDA: %.300s", driver, failed ? error : "does not have it");
	for (size_t i = 0; failed && i < sizeof(cuda_causes) / sizeof(cuda_causes[0]); i++)
		if (strstr(error, cuda_causes[i].code)) {
			remedy(doctor, "%s", cuda_causes[i].remedy);
			return;
		}
	if (gpu->gpu && strcmp(driver, "nvidia") != 0) {
		remedy(doctor, "# see nvidia-driver");
		return;
	}
	remedy(doctor, "nvidia-smi -L; echo \"$CUDA_VISIBLE_DEVICES\"  # listed, and not "
		       "left out there?");
	remedy(doctor, "sudo dmesg | grep -e NVRM -e %s", gpu->pci);
}

static void check_gpu_found(struct doctor *doctor)
{
	char name[TREE_TEXT_MAX], compute[TREE_TEXT_MAX];

	if (doctor->gpus == 0)
		gpus_missing(doctor);
	for (uint32_t i = 0; i < doctor->gpus; i++) {
		const struct gpu_seen *gpu = &doctor->gpu[i];

		if (gpu->ordinal < 0) {
			gpu_unknown_to_cuda(doctor, gpu);
			continue;
		}
		if (tree_fact(doctor->tree, name, "cuda/%d/name", gpu->ordinal) < 0)
			snprintf(name, sizeof(name), "no name");
		if (tree_fact(doctor->tree, compute, "cuda/%d/compute", gpu->ordinal) < 0)
			snprintf(compute, sizeof(compute), "unknown");
		finding(doctor, gpu->pci, HEALTH_OK,
			"CUDA device %d: %.60s, compute capability %.8s%s", gpu->ordinal, name,
			compute, gpu->gpu ? "" : "; not in /sys/bus/pci/devices");
	}
}

/* ---- what they can ---- */

static bool gpudirect(struct doctor *doctor, const struct gpu_seen *gpu, unsigned int *supported)
{
	return cuda_number(doctor, gpu->ordinal, "gpu_direct_rdma_supported", supported) == 0;
}

static void check_gpudirect(struct doctor *doctor, const struct gpu_seen *gpu)
{
	static const char name[] = "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED";
	unsigned int supported, other;
	bool others = false;

	if (!gpudirect(doctor, gpu, &supported)) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "%s: not known", name);
		remedy(doctor, "gdrcap doctor  # once libcuda and gpu-found are well");
		return;
	}
	for (uint32_t i = 0; i < doctor->gpus; i++)
		others = others || (gpudirect(doctor, &doctor->gpu[i], &other) && other);
	finding(doctor, gpu->pci,
		supported ? HEALTH_OK
		: others  ? HEALTH_WARN
			  : HEALTH_FAIL,
		"%s: %u", name, supported);
	if (!supported)
		remedy(doctor,
		       "# GPUs of the data centre and professional lines can; GeForce cannot: use another, or --memory pinned");
}

/* One GPU's dma-bufs, and the kernel that has to take them. */
static void check_dmabuf(struct doctor *doctor, const struct gpu_seen *gpu)
{
	char export_read[READ_TEXT], import_read[READ_TEXT], peer_read[READ_TEXT], line[256];
	const enum answer export = dmabuf_export(doctor, gpu->ordinal, export_read);
	const enum answer import = dmabuf_import(doctor, import_read);
	const bool peer = peer_client(doctor, peer_read) == ANSWER_YES;

	if (export == ANSWER_YES && import == ANSWER_YES) {
		finding(doctor, gpu->pci, HEALTH_OK, "%s; %s", export_read, import_read);
		return;
	}
	if (export != ANSWER_NO && import != ANSWER_NO) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN, "%s; %s", export_read, import_read);
		remedy(doctor, "sudo gdrcap doctor --live");
		return;
	}
	/* The other way is as good. */
	finding(doctor, gpu->pci, peer ? HEALTH_NOT_APPLICABLE : HEALTH_WARN, "%s; %s%s",
		export_read, import_read,
		peer ? "; not needed, the peer memory module does it" : "");
	if (peer)
		return;
	remedy_on_host(doctor);
	if (import == ANSWER_NO)
		remedy(doctor, "# a kernel of 5.12 or later with "
			       "CONFIG_INFINIBAND_ON_DEMAND_PAGING is needed");
	if (export == ANSWER_NO && nvidia_driver_line(doctor, line) == 0 &&
	    !strstr(line, "Open Kernel Module"))
		remedy_install(doctor, PACKAGE_NVIDIA_DRIVER);
	else if (export == ANSWER_NO)
		remedy(doctor, "# this GPU makes no dma-bufs (those before Turing do "
			       "not): see peermem-loaded");
}

/* As flush_needed() in lib/session/workers.c decides for --flush auto. */
static void check_write_ordering(struct doctor *doctor, const struct gpu_seen *gpu)
{
	unsigned int ordering, options;
	char text[64] = "not known";

	if (cuda_number(doctor, gpu->ordinal, "gpu_direct_rdma_writes_ordering", &ordering) < 0) {
		finding(doctor, gpu->pci, HEALTH_UNKNOWN,
			"GPU_DIRECT_RDMA_WRITES_ORDERING: not known; --flush auto flushes each "
			"burst");
		remedy(doctor, "gdrcap doctor  # once libcuda and gpu-found are well");
		return;
	}
	if (ordering >= ORDERED_OWNER) {
		finding(doctor, gpu->pci, HEALTH_OK,
			"GPU_DIRECT_RDMA_WRITES_ORDERING: %u (%s); --flush auto does not flush",
			ordering, ordering >= ORDERED_ALL ? "all devices" : "owner");
		return;
	}
	if (cuda_number(doctor, gpu->ordinal, "gpu_direct_rdma_flush_writes_options", &options))
		options = FLUSH_HOST;
	else
		snprintf(text, sizeof(text), "%u%s", options,
			 options & FLUSH_HOST ? " (host)" : ", without the host's (1)");
	finding(doctor, gpu->pci, options & FLUSH_HOST ? HEALTH_WARN : HEALTH_FAIL,
		"GPU_DIRECT_RDMA_WRITES_ORDERING: %u (none); --flush auto flushes each burst; "
		"GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: %s",
		ordering, text);
	if (options & FLUSH_HOST)
		remedy(doctor, "# nothing to repair: bursts are flushed; --burst with a "
			       "larger number means fewer of them");
	else
		remedy(doctor, "# this GPU cannot be flushed by the CPU: --memory pinned, "
			       "or --flush none with --stale-check");
}

const struct doctor_check checks_gpu[] = {
	{ "nvidia-driver", "gpu", SEVERITY_FATAL,
	  "without NVIDIA's kernel module there is no GPU for CUDA", .run = check_nvidia_driver },
	{ "libcuda", "gpu", SEVERITY_FATAL,
	  "all work on the GPU goes through the driver's library, which is loaded at run time",
	  .run = check_libcuda },
	{ "gpu-found", "gpu", SEVERITY_FATAL, "a GPU that CUDA does not have cannot be used",
	  .run = check_gpu_found },
	{ "gpudirect-rdma", "gpu", SEVERITY_FATAL,
	  "only a GPU that lets other devices into its memory can be written by a card",
	  .gpu = check_gpudirect },
	{ "dma-buf", "gpu", SEVERITY_INFO,
	  "one of the two ways in which a card is given GPU memory, and the one that needs no module besides the driver",
	  .gpu = check_dmabuf },
	{ "write-ordering", "gpu", SEVERITY_SLOW,
	  "a kernel that already runs sees what a card has written only once the GPU has ordered or flushed it",
	  .gpu = check_write_ordering },
	{ 0 },
};
