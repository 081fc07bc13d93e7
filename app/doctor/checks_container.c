/* SPDX-License-Identifier: BSD-3-Clause */
/* What a container must be given: device files, interfaces, memory, CPUs. Nothing to look at
 * outside of one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

static bool in_container(const struct doctor *doctor)
{
	return doctor->machine.container[0] != '\0';
}

static bool in_kubernetes(const struct doctor *doctor)
{
	return strcmp(doctor->machine.container, "kubernetes") == 0;
}

/* ---- device files ---- */

/* How many names begin so, with a digit behind. */
static int numbered(struct doctor *doctor, const char *folder, const char *start)
{
	const size_t length = strlen(start);
	char(*names)[64];
	const int count = tree_list(doctor->tree, &names, "%s", folder);
	int found = count < 0 ? count : 0;

	for (int i = 0; i < count; i++)
		found += strncmp(names[i], start, length) == 0 && names[i][length] >= '0' &&
			 names[i][length] <= '9';
	free(names);
	return found;
}

static void gpu_files_remedy(struct doctor *doctor)
{
	if (in_kubernetes(doctor)) {
		remedy(doctor, "# in the pod's spec: resources: limits: nvidia.com/gpu: 1 "
			       "(NVIDIA's GPU Operator, or its device plugin)");
		return;
	}
	remedy(doctor, "# docker run --gpus all, with nvidia-container-toolkit on the host:");
	remedy(doctor, "# sudo nvidia-ctk runtime configure --runtime=docker && sudo "
		       "systemctl restart docker");
}

static void check_container_gpu(struct doctor *doctor)
{
	static const char *const needed[] = { "/dev/nvidiactl", "/dev/nvidia-uvm" };
	const struct gpu_seen *gpu = gpu_of_cuda(doctor);
	const int files = numbered(doctor, "/dev", "nvidia");
	char missing[128] = "";

	if (!in_container(doctor) || doctor->gpus == 0)
		return;
	if (gpu) {
		finding(doctor, NULL, HEALTH_OK, "CUDA has %s", gpu->pci);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (device_access(doctor, needed[i]) < 0)
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 ", %s", needed[i]);
	if (files <= 0)
		snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
			 ", /dev/nvidiaN");
	if (!missing[0]) {
		finding(doctor, NULL, HEALTH_OK, "/dev: nvidiactl, nvidia-uvm, %d nvidiaN", files);
		return;
	}
	finding(doctor, NULL, HEALTH_FAIL, "/dev: without %s", missing + 2);
	gpu_files_remedy(doctor);
}

static void rdma_files_remedy(struct doctor *doctor, const char *path)
{
	if (in_kubernetes(doctor))
		remedy(doctor, "# in the pod's spec: resources: limits: rdma/NAME: 1, with "
			       "NAME from `kubectl describe node` (NVIDIA's Network "
			       "Operator: rdmaSharedDevicePlugin or sriovDevicePlugin in "
			       "its NicClusterPolicy)");
	else
		remedy(doctor,
		       "# docker run --device %s --device "
		       "/dev/infiniband/rdma_cm, or --device /dev/infiniband",
		       path);
}

static void check_container_rdma(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	bool any = false;
	char path[80];

	for (uint32_t i = 0; i < machine->cards; i++)
		any = any || rdma_device_file(doctor, &machine->card[i], path) == 0;
	for (uint32_t i = 0; i < machine->cards && in_container(doctor); i++) {
		const int ret = rdma_device_file(doctor, &machine->card[i], path);

		if (ret == -ENODEV)
			continue;
		finding(doctor, machine->card[i].pci.address,
			ret == 0 ? HEALTH_OK
			: any	 ? HEALTH_NOT_APPLICABLE
				 : HEALTH_FAIL,
			"%s: %s%s", path, ret == 0 ? "can be opened" : strerror(-ret),
			ret && any ? "; this container has another card's" : "");
		if (ret < 0 && !any)
			rdma_files_remedy(doctor, path);
	}
}

/* ---- interfaces ---- */

static void check_container_network(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	bool any = false;

	for (uint32_t i = 0; i < machine->cards; i++)
		any = any || (machine->card[i].connectx && machine->card[i].interface[0]);
	for (uint32_t i = 0; i < machine->cards && in_container(doctor); i++) {
		const struct machine_card *card = &machine->card[i];

		if (!card->connectx || strcmp(card->pci.driver, "mlx5_core") != 0)
			continue;
		if (card->interface[0]) {
			finding(doctor, card->pci.address, HEALTH_OK,
				"/sys/bus/pci/devices/%s/net: %s", card->pci.address,
				card->interface);
			continue;
		}
		finding(doctor, card->pci.address, any ? HEALTH_NOT_APPLICABLE : HEALTH_FAIL,
			"/sys/bus/pci/devices/%s/net: none in this network namespace%s",
			card->pci.address, any ? "; this container has another card's" : "");
		if (any)
			continue;
		if (in_kubernetes(doctor))
			remedy(doctor,
			       "# in the pod's annotations: k8s.v1.cni.cncf.io/networks: "
			       "NAME of a network of type host-device or sriov (NVIDIA's Network "
			       "Operator: HostDeviceNetwork, SriovNetwork); or hostNetwork: true");
		else
			remedy(doctor, "# docker run --network host; or on the host: sudo "
				       "ip link set INTERFACE netns PID");
	}
}

/* ---- limits ---- */

/* A limit of the control group, version 2 or 1, bytes or microseconds: UINT64_MAX is none. The name
 * that was read comes into `path`. -ENOENT: the kernel has no such limit. */
static int limit_read(struct doctor *doctor, const char *second, const char *first, uint64_t *limit,
		      char path[96])
{
	const char *const names[] = { second, first };
	char text[TREE_TEXT_MAX], *end;
	int ret = -ENOENT;

	for (int i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, 96, "/sys/fs/cgroup/%s", names[i]);
		ret = tree_text(doctor->tree, text, "%s", path);
	}
	if (ret < 0)
		return ret;
	*limit = UINT64_MAX;
	if (strncmp(text, "max", 3) == 0 || text[0] == '-')
		return 0;
	*limit = strtoull(text, &end, 10);
	/* Of version 1, "none" is the largest number of whole pages. */
	if (*limit > UINT64_MAX / 4)
		*limit = UINT64_MAX;
	return end == text || (*end && *end != ' ') ? -EINVAL : 0;
}

static void check_container_memory(struct doctor *doctor)
{
	static const struct {
		const char *second, *first, *subject, *remedy;
	} limits[] = {
		{ "memory.max", "memory/memory.limit_in_bytes", "memory",
		  "# docker run --memory 4g; in the pod's spec: limits: memory: 4Gi" },
		{ "hugetlb.2MB.max", "hugetlb/hugetlb.2MB.limit_in_bytes", "hugepages of 2 MiB",
		  "# in the pod's spec: limits: hugepages-2Mi: 512Mi, and as much memory" },
		{ "hugetlb.1GB.max", "hugetlb/hugetlb.1GB.limit_in_bytes", "hugepages of 1 GiB",
		  "# in the pod's spec: limits: hugepages-1Gi: 1Gi, and as much memory" },
	};

	enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };
	bool some_pages = false, low;
	uint64_t limit[LIMITS];
	char path[LIMITS][96];
	int ret[LIMITS];

	if (!in_container(doctor))
		return;
	/* Pages of one size are enough. */
	for (int i = 0; i < LIMITS; i++) {
		ret[i] = limit_read(doctor, limits[i].second, limits[i].first, &limit[i], path[i]);
		some_pages = some_pages || (i && ret[i] == 0 && limit[i] >= HUGEPAGES_WANTED);
	}
	for (int i = 0; i < LIMITS; i++) {
		if (ret[i] == -ENOENT)
			continue;
		if (ret[i] < 0) {
			finding(doctor, limits[i].subject, HEALTH_UNKNOWN, "%s: %s", path[i],
				strerror(-ret[i]));
			remedy(doctor, "cat %s", path[i]);
			continue;
		}
		low = limit[i] < HUGEPAGES_WANTED && !(i && some_pages);
		finding(doctor, limits[i].subject, low ? HEALTH_WARN : HEALTH_OK,
			limit[i] == UINT64_MAX ? "%s: no limit" : "%s: %llu bytes", path[i],
			(unsigned long long)limit[i]);
		if (low)
			remedy(doctor, "%s", limits[i].remedy);
	}
}

/* A share of time is taken in slices: a receiver that polls stands still for the rest of each. */
static void check_container_cpus(struct doctor *doctor)
{
	uint64_t quota;
	char path[96];
	int ret;

	if (!in_container(doctor))
		return;
	ret = limit_read(doctor, "cpu.max", "cpu/cpu.cfs_quota_us", &quota, path);
	if (ret == -ENOENT) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE, "/sys/fs/cgroup/cpu.max: not there");
		return;
	}
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", path, strerror(-ret));
		remedy(doctor, "cat %s", path);
		return;
	}
	if (quota == UINT64_MAX) {
		finding(doctor, NULL, HEALTH_OK, "%s: no limit", path);
		return;
	}
	finding(doctor, NULL, HEALTH_WARN, "%s: %llu us of each period", path,
		(unsigned long long)quota);
	remedy(doctor, in_kubernetes(doctor)
			       ? "# whole CPUs of the pod's own: requests equal to limits, a whole "
				 "number, and the kubelet's --cpu-manager-policy=static"
			       : "# docker run --cpuset-cpus LIST in place of --cpus");
}

/* ---- what the operators provide ---- */

static void check_kubernetes(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	char read[READ_TEXT];
	enum answer peer, dmabuf;
	int uverbs;

	if (!in_kubernetes(doctor))
		return;
	peer = peer_client(doctor, read);
	dmabuf = dmabuf_way(doctor);
	finding(doctor, "GPU Operator",
		doctor->gpus == 0			     ? HEALTH_NOT_APPLICABLE
		: peer == ANSWER_YES || dmabuf == ANSWER_YES ? HEALTH_OK
		: peer == ANSWER_NO && dmabuf == ANSWER_NO   ? HEALTH_WARN
							     : HEALTH_UNKNOWN,
		"by address: %s; as dma-buf: %s", read, answer_word(dmabuf));
	if (peer != ANSWER_YES && dmabuf != ANSWER_YES) {
		remedy(doctor, "# either dma-buf: helm upgrade ... --set "
			       "driver.kernelModuleType=open, for GPUs since Turing");
		remedy(doctor, "# or nvidia-peermem: helm upgrade ... --set "
			       "driver.rdma.enabled=true (and "
			       "driver.rdma.useHostMofed=true where OFED is on the host); "
			       "then, in the driver's namespace:");
		remedy(doctor, "kubectl logs -n gpu-operator daemonset/"
			       "nvidia-driver-daemonset -c nvidia-peermem-ctr");
	}
	uverbs = numbered(doctor, "/dev/infiniband", "uverbs");
	finding(doctor, "Network Operator",
		machine->cards == 0 ? HEALTH_NOT_APPLICABLE
		: uverbs > 0	    ? HEALTH_OK
		: uverbs == -EACCES ? HEALTH_UNKNOWN
				    : HEALTH_WARN,
		"/dev/infiniband: %s",
		uverbs > 0   ? "uverbs files"
		: uverbs < 0 ? strerror(-uverbs)
			     : "no uverbs file");
	if (machine->cards && uverbs <= 0)
		remedy(doctor, "kubectl get node -o yaml | grep rdma/  # the resource's "
			       "name, for limits in the pod's spec");
}

const struct doctor_check checks_container[] = {
	{ "container-gpu-files", "container", SEVERITY_FATAL,
	  "CUDA in a container needs the GPU's device files there", .run = check_container_gpu },
	{ "container-rdma-files", "container", SEVERITY_FATAL,
	  "a card in a container needs its RDMA device file there", .run = check_container_rdma },
	{ "container-network", "container", SEVERITY_FATAL,
	  "DPDK's mlx5 driver needs the card's interface in the container's network namespace",
	  .run = check_container_network },
	{ "container-memory", "container", SEVERITY_SLOW,
	  "what the container may not have cannot be allocated, whatever the host has free",
	  .run = check_container_memory },
	{ "container-cpus", "container", SEVERITY_SLOW,
	  "a share of CPU time instead of whole CPUs stops a receiver many times a second",
	  .run = check_container_cpus },
	{ "kubernetes", "container", SEVERITY_INFO,
	  "in a cluster the operators of NVIDIA provide driver, peer memory and devices",
	  .run = check_kubernetes },
	{ 0 },
};
