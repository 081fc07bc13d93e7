/* SPDX-License-Identifier: BSD-3-Clause */
/* Live tests: on each GPU that CUDA has, and each card with an RDMA device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "base/eal.h"
#include "base/guest.h"
#include "base/log.h"
#include "doctor/live_gpu.h"
#include "doctor/pci_config.h"
#include "gpu/gpu_drivers.h"
#include "gpu/gpu_open.h"

#define EAL_BYTES ((size_t)64 << 20)
#define COPY_SHARE 0.6 /* of what the link carries, packet headers included */

struct live_device {
	struct live_gpu gpu;
	char pci[16];
	int ordinal;
};

/* Why nothing can be tested; "": something can. */
static const char *live_obstacle(struct doctor *doctor, int *devices)
{
	char text[TREE_TEXT_MAX];

	*devices = tree_fact(doctor->tree, text, "cuda/count") == 0 ? atoi(text) : 0;
	if (*devices > (int)MACHINE_GPUS_MAX)
		*devices = (int)MACHINE_GPUS_MAX;
#ifndef GDRCAP_WITH_CUDA
	if (*devices > 0) {
		*devices = 0;
		return "this gdrcap was built without CUDA";
	}
#endif
	return *devices > 0 ? "" : "CUDA has no device here";
}

/* The GPU with this ordinal, opened. */
static int live_open(struct doctor *doctor, int ordinal, struct live_device *live,
		     struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = EAL_BYTES };
	char text[TREE_TEXT_MAX];
	int ret;

	memset(live, 0, sizeof(*live));
	live->ordinal = ordinal;
	if (tree_fact(doctor->tree, text, "cuda/%d/pci", ordinal) < 0)
		snprintf(text, sizeof(text), "CUDA ordinal %d", ordinal);
	snprintf(live->pci, sizeof(live->pci), "%.15s", text);
	live->gpu.ops = NULL;
	live->gpu.ordinal = ordinal;
#ifdef GDRCAP_WITH_CUDA
	live->gpu.ops = &kernel_cuda_ops;
#endif
	ret = guest_enter(error);
	if (ret < 0)
		return ret;
	/* Before EAL: at the process's end EAL gives the GPU back, and CUDA must still be there. */
	ret = gpu_cuda_count(NULL, 0) > ordinal ? eal_start(&needs, error)
						: error_set(error, -ENODEV, "CUDA has lost it");
	if (ret == 0)
		ret = gpu_open_cuda(ordinal, error);
	if (ret < 0)
		goto err;
	live->gpu.gpu = (int16_t)ret;
	ret = live->gpu.ops->open(ordinal, &live->gpu.device);
	if (ret < 0) {
		error_set(error, ret, "%s", kernel_error());
		goto err;
	}
	guest_gpu_opened();
	return 0;
err:
	guest_leave();
	return ret;
}

/* Calls `test` for each GPU. */
static void live_each(struct doctor *doctor,
		      void (*test)(struct doctor *doctor, const struct live_device *live))
{
	struct gdrcap_error error;
	int devices;
	const char *obstacle = live_obstacle(doctor, &devices);

	if (obstacle[0])
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE, "%s", obstacle);
	for (int i = 0; i < devices; i++) {
		struct live_device live;

		if (live_open(doctor, i, &live, &error) < 0) {
			finding(doctor, live.pci, HEALTH_FAIL, "%s", error.text);
			continue;
		}
		test(doctor, &live);
		live.gpu.ops->close(live.gpu.device);
		guest_leave();
	}
}

/* ---- registration ---- */

static void outcome(char *text, size_t size, const char *how, int error, int dmabuf)
{
	const char *reason = live_register_reason(error, dmabuf);

	if (error == 0)
		snprintf(text, size, "%s: registered", how);
	else
		snprintf(text, size, "%s: errno %d (%s)%s%s", how, error, strerror(error),
			 reason[0] ? ": " : "", reason);
}

static void register_with(struct doctor *doctor, const struct live_device *live,
			  const struct machine_card *card)
{
	struct live_registration result;
	char subject[96], address[256], dmabuf[256];
	bool able;

	snprintf(subject, sizeof(subject), "%s with %s (%s)", live->pci, card->pci.address,
		 card->rdma);
	live_register(&live->gpu, card->rdma, &result);
	if (result.open || result.allocate) {
		const int error = result.open ? result.open : result.allocate;

		finding(doctor, subject, HEALTH_FAIL, "%s: errno %d (%s)",
			result.open ? "the RDMA device cannot be opened"
				    : "64 KiB of GPU memory cannot be allocated",
			error, strerror(error));
		return;
	}
	outcome(address, sizeof(address), "64 KiB by address", result.by_address, 0);
	if (result.export)
		snprintf(dmabuf, sizeof(dmabuf),
			 "as a dma-buf: the GPU's driver makes none (errno %d)", result.export);
	else
		outcome(dmabuf, sizeof(dmabuf), "as a dma-buf", result.as_dmabuf, 1);
	able = !result.by_address || (!result.export && !result.as_dmabuf);
	finding(doctor, subject, able ? HEALTH_OK : HEALTH_FAIL, "%s; %s", address, dmabuf);
	if (able)
		return;
	if (result.by_address == ENOMEM)
		remedy(doctor, "ulimit -l unlimited");
	else
		remedy(doctor, "sudo modprobe nvidia-peermem");
	remedy(doctor, "# then again; the checks of group peer-memory say what stands in its way");
}

static void each_card(struct doctor *doctor, const struct live_device *live,
		      void (*test)(struct doctor *doctor, const struct live_device *live,
				   const struct machine_card *card))
{
	const struct machine *machine = &doctor->machine;
	bool any = false;

	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].rdma[0]) {
			any = true;
			test(doctor, live, &machine->card[i]);
		}
	if (!any)
		finding(doctor, live->pci, HEALTH_NOT_APPLICABLE, "no card has an RDMA device");
}

static void register_all(struct doctor *doctor, const struct live_device *live)
{
	each_card(doctor, live, register_with);
}

static void check_live_register(struct doctor *doctor)
{
	live_each(doctor, register_all);
}

/* ---- queues of our own ---- */

static const char *step(char text[128], int error)
{
	if (error == LIVE_NOT_TRIED)
		return "not tried";
	if (error == 0)
		return "yes";
	snprintf(text, 128, "errno %d (%s)", error, strerror(error));
	return text;
}

static void umem_with(struct doctor *doctor, const struct live_device *live,
		      const struct machine_card *card)
{
	char subject[96], text[4][128];
	struct live_umem result;
	bool rings;

	snprintf(subject, sizeof(subject), "%s with %s (%s)", live->pci, card->pci.address,
		 card->rdma);
	live_umem(&live->gpu, card->rdma, &result);
	if (result.open || result.allocate) {
		finding(doctor, subject, HEALTH_WARN, "%s: %s",
			result.open ? "commands of the card (DevX)" : "64 KiB of GPU memory",
			step(text[0], result.open ? result.open : result.allocate));
		if (result.open)
			remedy(doctor, "# see devx; as root, or with CAP_NET_RAW");
		return;
	}
	rings = !result.by_address || (!result.export && !result.as_dmabuf);
	finding(doctor, subject,
		rings && !result.doorbell && result.mapping <= 0 ? HEALTH_OK : HEALTH_WARN,
		"64 KiB for rings by address: %s; as a dma-buf: %s; a page of doorbells: %s; in "
		"the GPU: %s",
		step(text[0], result.by_address),
		step(text[1], result.export ? result.export : result.as_dmabuf),
		step(text[2], result.doorbell),
		step(text[3], result.doorbell ? LIVE_NOT_TRIED : result.mapping));
	if (!rings)
		remedy(doctor, "# see umem");
	if (result.doorbell)
		remedy(doctor, "# other processes may hold the card's pages of doorbells");
	else if (result.mapping > 0)
		remedy(doctor, "# see peer-mapping; without it a CPU thread rings for the GPU");
}

static void umem_all(struct doctor *doctor, const struct live_device *live)
{
	each_card(doctor, live, umem_with);
}

static void check_live_umem(struct doctor *doctor)
{
	live_each(doctor, umem_all);
}

/* ---- copies ---- */

static void copy_one(struct doctor *doctor, const struct live_device *live)
{
	struct gdrcap_error error;
	struct pci_link link;
	char text[96] = "its link is unknown";
	double rate, most;
	bool slow;

	if (live_copy(&live->gpu, &rate, &error) < 0) {
		finding(doctor, live->pci, HEALTH_FAIL, "%s", error.text);
		return;
	}
	/* Right after use: idle links are slower. */
	pci_link_read(&link, doctor->tree, live->pci);
	most = (double)pci_link_mbps(&link) / 8000;
	if (most > 0)
		snprintf(text, sizeof(text), "its link of %s x%u carries %.1f", link.speed,
			 link.width, most);
	slow = rate / 1e9 < COPY_SHARE * most;
	finding(doctor, live->pci, slow ? HEALTH_WARN : HEALTH_OK, "host to GPU %.1f GB/s; %s",
		rate / 1e9, text);
	if (!slow)
		return;
	remedy(doctor, "# again on an idle machine, and on CPUs near the GPU:");
	remedy(doctor,
	       "taskset -c \"$(cat /sys/bus/pci/devices/%s/local_cpulist)\" gdrcap doctor --live",
	       live->pci);
}

static void check_live_copy(struct doctor *doctor)
{
	live_each(doctor, copy_one);
}

/* ---- the kernel ---- */

static void kernel_one(struct doctor *doctor, const struct live_device *live)
{
	struct gdrcap_error error;
	double us;

	if (live_kernel(&live->gpu, &us, &error) < 0) {
		finding(doctor, live->pci, HEALTH_FAIL, "%s", error.text);
		return;
	}
	finding(doctor, live->pci, HEALTH_OK,
		"a frame in GPU memory, CPU to running kernel and back: %.1f us", us);
}

static void check_live_kernel(struct doctor *doctor)
{
	live_each(doctor, kernel_one);
}

static void check_live_loopback(struct doctor *doctor)
{
	finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
		"the way of a frame through cards and cable is gdrcap loopback's");
	remedy(doctor, "gdrcap doctor --write-config gdrcap.yaml");
	remedy(doctor, "gdrcap loopback --config gdrcap.yaml");
}

const struct doctor_check checks_live[] = {
	{ "live-register", "peer-memory", SEVERITY_FATAL,
	  "what a card cannot register it cannot write; this is the same call that a capture makes",
	  .run = check_live_register },
	{ "live-umem", "own-queues", SEVERITY_INFO,
	  "the same calls that queues of gdrcap's own make", .run = check_live_umem },
	{ "live-copy", "pcie", SEVERITY_SLOW,
	  "a GPU that the host reaches slowly is reached slowly by cards too",
	  .run = check_live_copy },
	{ "live-kernel", "gpu", SEVERITY_FATAL,
	  "frames are checked by a kernel that runs all the time and is handed bursts by the CPU",
	  .run = check_live_kernel },
	{ "live-loopback", "nic", SEVERITY_INFO,
	  "only a frame that was sent and came back proves all of it", .run = check_live_loopback },
	{ 0 },
};
