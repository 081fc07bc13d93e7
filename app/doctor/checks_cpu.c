/* SPDX-License-Identifier: BSD-3-Clause */
/* The host: NUMA nodes, CPUs, and what the kernel forbids. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define CPUS_MAX 8192u
#define CPU "/sys/devices/system/cpu"
#define ISOLATED_WANTED 4u

/* ---- NUMA ---- */

/* Whether this process may run near a function. */
static void numa_cpus(struct doctor *doctor, const struct machine_pci *pci)
{
	bool near[CPUS_MAX], allowed[CPUS_MAX], some = false;
	char list[TREE_TEXT_MAX], own[TREE_TEXT_MAX];
	int ret;

	ret = tree_text(doctor->tree, list, "/sys/devices/system/node/node%d/cpulist",
			pci->numa_node);
	if (ret == 0)
		ret = cpus_read(list, near, CPUS_MAX);
	if (ret >= 0)
		ret = tree_fact(doctor->tree, own, "process/cpus");
	if (ret >= 0)
		ret = cpus_read(own, allowed, CPUS_MAX);
	if (ret < 0) {
		finding(doctor, pci->address, HEALTH_UNKNOWN,
			"numa_node: %d; its CPUs, or those of this process: %s", pci->numa_node,
			strerror(-ret));
		remedy(doctor, "lscpu | grep NUMA; taskset -cp $$");
		return;
	}
	for (uint32_t i = 0; i < CPUS_MAX; i++)
		some = some || (near[i] && allowed[i]);
	finding(doctor, pci->address, some ? HEALTH_OK : HEALTH_WARN,
		"numa_node: %d, CPUs %.200s; this process: CPUs %.200s", pci->numa_node, list, own);
	if (!some && doctor->machine.container[0])
		remedy(doctor,
		       "# docker run --cpuset-cpus %.200s --cpuset-mems %d; in Kubernetes, the "
		       "Topology Manager's policy single-numa-node",
		       list, pci->numa_node);
	else if (!some)
		remedy(doctor,
		       "taskset -c %.200s gdrcap capture ...  # or gdrcap's own options of cores",
		       list);
}

static void check_numa(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	char text[TREE_TEXT_MAX];
	int ret;

	if (machine->numa_nodes < 2)
		return;
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_pci *pci = &machine->card[i].pci;

		if (pci->numa_node >= 0) {
			numa_cpus(doctor, pci);
			continue;
		}
		ret = tree_text(doctor->tree, text, "/sys/bus/pci/devices/%s/numa_node",
				pci->address);
		finding(doctor, pci->address, HEALTH_UNKNOWN,
			"/sys/bus/pci/devices/%s/numa_node: %.60s", pci->address,
			ret < 0			  ? strerror(-ret)
			: strcmp(text, "-1") == 0 ? "-1, the firmware does not say"
						  : text);
		remedy(doctor, "lspci -vv -s %s | grep NUMA", pci->address);
	}
	for (uint32_t i = 0; i < machine->gpus && machine->cards; i++) {
		const struct machine_pci *pci = &machine->gpu[i].pci;
		bool near = false;

		for (uint32_t j = 0; j < machine->cards; j++)
			near = near || machine->card[j].pci.numa_node == pci->numa_node;
		if (pci->numa_node < 0)
			continue;
		finding(doctor, pci->address, near ? HEALTH_OK : HEALTH_WARN,
			"numa_node: %d, %s card there", pci->numa_node, near ? "a" : "no");
		if (!near)
			remedy(doctor,
			       "# put a card into a slot of node %d, or use a GPU of a card's node",
			       pci->numa_node);
	}
}

/* ---- CPUs ---- */

static void check_governor(struct doctor *doctor)
{
	struct tree *tree = doctor->tree;
	char(*names)[64], text[TREE_TEXT_MAX], other[64] = "";
	unsigned int policies = 0, slow = 0;
	int count, ret = 0;

	count = tree_list(tree, &names, CPU "/cpufreq");
	for (int i = 0; i < count && i < 1024; i++) {
		if (strncmp(names[i], "policy", 6) != 0)
			continue;
		policies++;
		ret = tree_text(tree, text, CPU "/cpufreq/%s/scaling_governor", names[i]);
		if (ret == 0 && !machine_is_name(text))
			ret = -EINVAL;
		if (ret < 0)
			break;
		if (strcmp(text, "performance") == 0)
			continue;
		slow++;
		snprintf(other, sizeof(other), "%.63s", text);
	}
	free(names);
	if (policies == 0) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			CPU "/cpufreq: %s; firmware or hypervisor decides",
			count < 0 ? strerror(-count) : "no policy");
		return;
	}
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, CPU "/cpufreq/*/scaling_governor: %s",
			strerror(-ret));
		remedy(doctor, "cat " CPU "/cpufreq/policy*/scaling_governor");
		return;
	}
	finding(doctor, NULL, slow ? HEALTH_WARN : HEALTH_OK,
		CPU "/cpufreq/*/scaling_governor: %s in %u of %u", slow ? other : "performance",
		slow ? slow : policies, policies);
	if (!slow)
		return;
	remedy_on_host(doctor);
	remedy(doctor, "echo performance | sudo tee " CPU "/cpufreq/policy*/scaling_governor");
	remedy(doctor, "# for good: sudo tuned-adm profile throughput-performance (package tuned)");
}

/* The last CPUs near the first card, or of all: "12-15". */
static void isolation_remedy(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	const int node = machine->cards ? machine->card[0].pci.numa_node : -1;
	char text[TREE_TEXT_MAX], list[128] = "", arguments[320];
	bool set[CPUS_MAX];
	unsigned int wanted = ISOLATED_WANTED;
	int ret = -ENOENT, first = 0;

	if (node >= 0)
		ret = tree_text(doctor->tree, text, "/sys/devices/system/node/node%d/cpulist",
				node);
	if (ret < 0)
		ret = tree_text(doctor->tree, text, CPU "/online");
	if (ret < 0 || cpus_read(text, set, CPUS_MAX) <= (int)ISOLATED_WANTED) {
		remedy(doctor,
		       "# isolcpus=CPUS nohz_full=CPUS on the kernel's command line, with the CPUs "
		       "of gdrcap's receivers and senders");
		return;
	}
	for (int i = CPUS_MAX - 1; i >= 0 && wanted; i--)
		if (set[i]) {
			first = i;
			wanted--;
		}
	for (int i = first; i < (int)CPUS_MAX && strlen(list) < 100; i++)
		if (set[i])
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d",
				 list[0] ? "," : "", i);
	snprintf(arguments, sizeof(arguments), "isolcpus=%s nohz_full=%s", list, list);
	remedy_kernel_argument(doctor, arguments);
}

static void check_isolation(struct doctor *doctor)
{
	static const char *const files[] = { CPU "/isolated", CPU "/nohz_full" };
	char text[2][TREE_TEXT_MAX];
	bool set[CPUS_MAX];
	int count[2];

	for (int i = 0; i < 2; i++) {
		count[i] = tree_text(doctor->tree, text[i], "%s", files[i]);
		if (count[i] == -ENOENT && tree_exists(doctor->tree, CPU "/online"))
			count[i] = 0; /* a kernel that cannot */
		else if (count[i] == 0)
			count[i] = cpus_read(text[i], set, CPUS_MAX);
		if (count[i] < 0) {
			finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", files[i],
				strerror(-count[i]));
			remedy(doctor, "cat %s %s", files[0], files[1]);
			return;
		}
	}
	finding(doctor, NULL, count[0] && count[1] ? HEALTH_OK : HEALTH_WARN,
		"%s: %.200s; %s: %.200s", files[0], count[0] ? text[0] : "none", files[1],
		count[1] ? text[1] : "none");
	if (count[0] && count[1])
		return;
	remedy_on_host(doctor);
	isolation_remedy(doctor);
}

/* ---- what the kernel forbids ---- */

/* "none [integrity] confidentiality": the one in brackets. */
static void check_lockdown(struct doctor *doctor)
{
	static const char path[] = "/sys/kernel/security/lockdown";
	char text[TREE_TEXT_MAX];
	int ret = tree_text(doctor->tree, text, path);

	/* Where there is the folder's other content, the kernel has no such thing. */
	if (ret == -ENOENT && tree_exists(doctor->tree, "/sys/kernel/security/lsm")) {
		finding(doctor, NULL, HEALTH_OK, "%s: not built into this kernel", path);
		return;
	}
	if (ret == 0 && strstr(text, "[none]")) {
		finding(doctor, NULL, HEALTH_OK, "%s: %.100s", path, text);
		return;
	}
	if (ret == 0 && (strstr(text, "[integrity]") || strstr(text, "[confidentiality]"))) {
		finding(doctor, NULL, HEALTH_WARN, "%s: %.100s", path, text);
		remedy(doctor,
		       "# setpci, mstconfig and unsigned modules are refused; where they are "
		       "needed, disable Secure Boot (sudo mokutil --disable-validation) or leave "
		       "out lockdown= on the kernel's command line");
		return;
	}
	finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %.100s", path, ret < 0 ? strerror(-ret) : text);
	if (ret == -ENOENT)
		remedy(doctor, "sudo mount -t securityfs securityfs /sys/kernel/security");
	remedy(doctor, "sudo cat %s", path);
}

static void check_secure_boot(struct doctor *doctor)
{
	static const char path[] =
		"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	const struct machine *machine = &doctor->machine;
	struct tree *tree = doctor->tree;
	unsigned char bytes[8];
	char line[256];
	bool loaded;
	ssize_t got;

	/* Container runtimes hide what is in there. */
	if (tree_find(tree, "/sys/firmware/efi") == -ENOENT && tree_exists(tree, "/sys/firmware") &&
	    !machine->container[0]) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE, "/sys/firmware/efi: not there");
		return;
	}
	/* Four bytes of attributes, and one: 0 or 1. */
	got = tree_bytes(tree, bytes, sizeof(bytes), path);
	if (got != 5 || bytes[4] > 1) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", path,
			got < 0 ? strerror((int)-got) : "not of 5 bytes");
		remedy(doctor, "mokutil --sb-state");
		return;
	}
	if (bytes[4] == 0) {
		finding(doctor, NULL, HEALTH_OK, "SecureBoot: off");
		return;
	}
	loaded = machine->gpus == 0 || nvidia_driver_line(doctor, line) == 0;
	finding(doctor, NULL, loaded ? HEALTH_OK : HEALTH_WARN,
		"SecureBoot: on; NVIDIA's kernel module: %s",
		machine->gpus == 0 ? "no GPU"
		: loaded	   ? "loaded"
				   : "not loaded");
	if (loaded)
		return;
	remedy_on_host(doctor);
	remedy(doctor,
	       "sudo mokutil --import %s  # then reboot and enrol the key that DKMS signs with",
	       machine->distribution == DISTRIBUTION_UBUNTU ? "/var/lib/shim-signed/mok/MOK.der"
							    : "/var/lib/dkms/mok.pub");
}

const struct doctor_check checks_cpu[] = {
	{ "numa", "host", SEVERITY_SLOW,
	  "a receiver on another CPU socket than its card waits longer for each burst",
	  .run = check_numa },
	{ "cpu-governor", "host", SEVERITY_SLOW,
	  "a CPU that has to raise its clock first loses frames at the beginning of each load",
	  .run = check_governor },
	{ "cpu-isolation", "host", SEVERITY_SLOW,
	  "whatever else runs on a receiver's CPU, were it only the timer, makes it late",
	  .run = check_isolation },
	{ "lockdown", "host", SEVERITY_INFO,
	  "a locked-down kernel refuses the tools that repair PCIe and firmware settings",
	  .run = check_lockdown },
	{ "secure-boot", "host", SEVERITY_INFO,
	  "with Secure Boot the kernel loads only modules that are signed with a key it knows",
	  .run = check_secure_boot },
	{ 0 },
};
