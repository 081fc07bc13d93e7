/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine as the checks see it: GPUs, cards, interfaces and their places. */
#include "doctor/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>

#define VENDOR_NVIDIA 0x10deu
#define VENDOR_MELLANOX 0x15b3u
#define CLASS_ETHERNET 0x0200u
#define CLASS_INFINIBAND 0x0207u
#define CLASS_VGA 0x0300u
#define CLASS_3D 0x0302u

/* ---- PCI functions ---- */

/* Hexadecimal digits at *at, in small letters as the kernel writes them: how many. */
static size_t hex_digits(const char **at)
{
	const size_t count = strspn(*at, "0123456789abcdef");

	*at += count;
	return count;
}

bool machine_is_pci(const char *name)
{
	const char *at = name;
	/* Longer than four: of an Intel VMD controller. */
	const size_t domain = hex_digits(&at);

	return domain >= 4 && domain <= 8 && *at++ == ':' && hex_digits(&at) == 2 && *at++ == ':' &&
	       hex_digits(&at) == 2 && *at++ == '.' && at[0] >= '0' && at[0] <= '7' &&
	       at[1] == '\0' && strlen(name) < sizeof(((struct machine_pci *)0)->address);
}

bool machine_is_name(const char *name)
{
	/* None that a command would take for an option. */
	return name[0] && name[0] != '-' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "._:@-")] == '\0';
}

/* From "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0": what lies between. */
static void pci_way(struct machine_pci *pci, struct tree *tree)
{
	char path[512], *name, *rest = path;

	if (tree_link(tree, path, sizeof(path), "/sys/bus/pci/devices/%s", pci->address) < 0)
		return;
	while ((name = strsep(&rest, "/")) != NULL) {
		if (strncmp(name, "pci", 3) == 0 && strlen(name) < sizeof(pci->host))
			snprintf(pci->host, sizeof(pci->host), "%s", name);
		else if (machine_is_pci(name) && strcmp(name, pci->address) != 0 &&
			 pci->bridges < MACHINE_BRIDGES_MAX)
			snprintf(pci->bridge[pci->bridges++], sizeof(pci->bridge[0]), "%s", name);
	}
}

/* Of others than NVIDIA's and Mellanox' nothing is read but whose they are. */
static bool pci_read(struct machine_pci *pci, struct tree *tree, const char *address)
{
	static const char folder[] = "/sys/bus/pci/devices";
	uint64_t vendor, device, class;
	char text[TREE_TEXT_MAX], *name;

	memset(pci, 0, sizeof(*pci));
	snprintf(pci->address, sizeof(pci->address), "%s", address);
	pci->numa_node = -1;
	if (tree_number(tree, &vendor, 16, "%s/%s/vendor", folder, address) < 0 ||
	    (vendor != VENDOR_NVIDIA && vendor != VENDOR_MELLANOX) ||
	    tree_number(tree, &class, 16, "%s/%s/class", folder, address) < 0)
		return false;
	if (tree_number(tree, &device, 16, "%s/%s/device", folder, address) < 0)
		device = 0;
	pci->vendor = (uint16_t)vendor;
	pci->device = (uint16_t)device;
	pci->class = (uint32_t) class & 0xffffff;
	if (tree_text(tree, text, "%s/%s/numa_node", folder, address) == 0 &&
	    isdigit((unsigned char)text[0]) && strlen(text) < 6)
		pci->numa_node = atoi(text);
	pci->virtual_function = tree_exists(tree, "%s/%s/physfn", folder, address);
	if (tree_link(tree, text, sizeof(text), "%s/%s/driver", folder, address) == 0 &&
	    (name = strrchr(text, '/')) != NULL && machine_is_name(name + 1))
		snprintf(pci->driver, sizeof(pci->driver), "%.31s", name + 1);
	return true;
}

/* ---- GPUs and cards ---- */

/* "Model: NVIDIA H200" and "Device Minor: 0" of the driver's own file. */
static void gpu_information(struct machine_gpu *gpu, struct tree *tree)
{
	/* Not its UUID, by which this one GPU can be told from all others. */
	static const char *const wanted[] = { "Model:", "Device Minor:", NULL };
	char text[TREE_TEXT_MAX], path[96], *line, *rest = text;

	gpu->minor = -1;
	gpu->cuda_ordinal = -1;
	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", gpu->pci.address);
	if (tree_grep(tree, path, wanted, text, sizeof(text)) < 1)
		return;
	while ((line = strsep(&rest, "\n")) != NULL) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		value++;
		value += strspn(value, " \t");
		if (strncmp(line, "Model:", 6) == 0)
			snprintf(gpu->name, sizeof(gpu->name), "%.63s", value);
		else if (strncmp(line, "Device Minor:", 13) == 0 &&
			 isdigit((unsigned char)value[0]) && strlen(value) < 6)
			gpu->minor = atoi(value);
	}
}

/* The first name in a folder of the function's; "": there is none. */
static void first_in(struct tree *tree, const char *address, const char *folder, char *to,
		     size_t bytes)
{
	char(*names)[64];
	const int count = tree_list(tree, &names, "/sys/bus/pci/devices/%s/%s", address, folder);

	for (int i = 0; i < count && !to[0]; i++)
		if (strlen(names[i]) < bytes && machine_is_name(names[i]))
			snprintf(to, bytes, "%s", names[i]);
	free(names);
}

/* Those that the mlx5 driver of DPDK 22.11 takes. */
static const struct {
	uint16_t device;
	const char *model;
} models[] = {
	{ 0x1013, "ConnectX-4" },	{ 0x1014, "ConnectX-4 VF" },	{ 0x1015, "ConnectX-4 Lx" },
	{ 0x1016, "ConnectX-4 Lx VF" }, { 0x1017, "ConnectX-5" },	{ 0x1018, "ConnectX-5 VF" },
	{ 0x1019, "ConnectX-5 Ex" },	{ 0x101a, "ConnectX-5 Ex VF" }, { 0x101b, "ConnectX-6" },
	{ 0x101c, "ConnectX-6 VF" },	{ 0x101d, "ConnectX-6 Dx" },	{ 0x101e, "ConnectX VF" },
	{ 0x101f, "ConnectX-6 Lx" },	{ 0x1021, "ConnectX-7" },	{ 0xa2d2, "BlueField" },
	{ 0xa2d3, "BlueField VF" },	{ 0xa2d6, "BlueField-2" },	{ 0xa2dc, "BlueField-3" },
};

static const char *model_of(uint16_t device)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (models[i].device == device)
			return models[i].model;
	return "";
}

static void device_add(struct machine *machine, struct tree *tree, const struct machine_pci *pci)
{
	const uint32_t class = pci->class >> 8;

	if (pci->vendor == VENDOR_NVIDIA && (class == CLASS_VGA || class == CLASS_3D) &&
	    machine->gpus < MACHINE_GPUS_MAX) {
		struct machine_gpu *gpu = &machine->gpu[machine->gpus++];

		gpu->pci = *pci;
		pci_way(&gpu->pci, tree);
		gpu_information(gpu, tree);
	}
	if (pci->vendor == VENDOR_MELLANOX &&
	    (class == CLASS_ETHERNET || class == CLASS_INFINIBAND) &&
	    machine->cards < MACHINE_CARDS_MAX) {
		struct machine_card *card = &machine->card[machine->cards++];

		card->pci = *pci;
		pci_way(&card->pci, tree);
		first_in(tree, pci->address, "net", card->interface, sizeof(card->interface));
		first_in(tree, pci->address, "infiniband", card->rdma, sizeof(card->rdma));
		card->model = model_of(pci->device);
		card->connectx = card->model[0] != '\0';
	}
}

/* ---- the system ---- */

/* KEY=value or KEY="value" of os-release. */
static void release_value(const char *text, const char *key, char *to, size_t bytes)
{
	const size_t length = strlen(key);
	const char *at = text;

	to[0] = '\0';
	while (at && (strncmp(at, key, length) != 0 || at[length] != '=')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return;
	at += length + 1;
	at += *at == '"';
	snprintf(to, bytes, "%.*s", (int)strcspn(at, "\"\n"), at);
}

static void distribution_find(struct machine *machine, struct tree *tree)
{
	char text[TREE_TEXT_MAX], id[64], like[128];

	if (tree_text(tree, text, "/etc/os-release") < 0 &&
	    tree_text(tree, text, "/usr/lib/os-release") < 0)
		return;
	release_value(text, "PRETTY_NAME", machine->distribution_name,
		      sizeof(machine->distribution_name));
	release_value(text, "ID", id, sizeof(id));
	release_value(text, "ID_LIKE", like, sizeof(like));
	if (strcmp(id, "ubuntu") == 0 || strstr(like, "ubuntu"))
		machine->distribution = DISTRIBUTION_UBUNTU;
	else if (strcmp(id, "debian") == 0 || strstr(like, "debian"))
		machine->distribution = DISTRIBUTION_DEBIAN;
	else if (strcmp(id, "rhel") == 0 || strcmp(id, "fedora") == 0 || strstr(like, "rhel") ||
		 strstr(like, "fedora"))
		machine->distribution = DISTRIBUTION_RHEL;
}

/*
 * True in the namespaces that the kernel began with, whose numbers are fixed (include/linux/proc_ns.h):
 * a container has others. A virtual machine made from a container's image looks like one else.
 */
static bool is_initial(struct tree *tree)
{
	static const char *const spaces[] = { "pid:[4026531836]", "uts:[4026531838]",
					      "ipc:[4026531839]", "cgroup:[4026531835]" };
	char text[TREE_TEXT_MAX], path[64], target[64];
	bool initial = true;

	for (size_t i = 0; tree_live(tree) && i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		ssize_t got;

		snprintf(path, sizeof(path), "/proc/self/ns/%.*s", (int)strcspn(spaces[i], ":"),
			 spaces[i]);
		got = readlink(path, target, sizeof(target) - 1);
		target[got < 0 ? 0 : got] = '\0';
		initial &= strcmp(target, spaces[i]) == 0;
	}
	if (tree_live(tree))
		tree_fact_set(tree, "process/namespaces", initial ? "initial" : "own");
	return tree_fact(tree, text, "process/namespaces") == 0 && strcmp(text, "initial") == 0;
}

static void container_find(struct machine *machine, struct tree *tree)
{
	static const char *const groups[] = { "kubepods",   "docker", "libpod",
					      "containerd", "lxc",    NULL };
	static const char *const kinds[] = { "kubernetes", "docker", "podman", "containerd",
					     "lxc" };
	/* Runtimes keep an image's layers in such folders; a live system's root is an overlay too. */
	static const char *const roots[] = { " / overlay ", NULL };
	char text[TREE_TEXT_MAX];
	const char *kind = "";

	if (is_initial(tree))
		return;
	if (tree_grep(tree, "/proc/mounts", roots, text, sizeof(text)) > 0 &&
	    (strstr(text, "/docker/") || strstr(text, "containerd") ||
	     strstr(text, "/containers/")))
		kind = "container";
	if (tree_grep(tree, "/proc/self/cgroup", groups, text, sizeof(text)) > 0)
		for (size_t i = 0; groups[i]; i++)
			if (strstr(text, groups[i])) {
				kind = kinds[i];
				break;
			}
	/* systemd's name for what it runs in: docker, podman, lxc, systemd-nspawn, ... */
	if (tree_text(tree, text, "/run/systemd/container") == 0 && machine_is_name(text))
		snprintf(machine->container, sizeof(machine->container), "%.31s", text);
	if (tree_exists(tree, "/run/.containerenv"))
		kind = "podman";
	if (tree_exists(tree, "/.dockerenv"))
		kind = "docker";
	if (tree_exists(tree, "/var/run/secrets/kubernetes.io"))
		kind = "kubernetes";
	if (kind[0] && (strcmp(kind, "container") != 0 || !machine->container[0]))
		snprintf(machine->container, sizeof(machine->container), "%s", kind);
}

/* What the CPU says: 1 in a virtual machine, 0 not, -1: it does not say (no x86). */
static int hypervisor_flag(struct tree *tree)
{
	static const char *const wanted[] = { "flags\t", NULL };
	char text[TREE_TEXT_MAX];
	int ret;

	/* Room for the first CPU's only. */
	ret = tree_grep(tree, "/proc/cpuinfo", wanted, text, sizeof(text));
	if (ret < 1)
		return -1;
	return strstr(text, " hypervisor") != NULL;
}

static void virtual_machine_find(struct machine *machine, struct tree *tree)
{
	static const char *const makers[] = { "QEMU",
					      "KVM",
					      "VMware",
					      "Xen",
					      "VirtualBox",
					      "Amazon EC2",
					      "OpenStack",
					      "Google Compute",
					      "Virtual Machine",
					      "Firecracker",
					      NULL };
	const int flag = hypervisor_flag(tree);
	char text[TREE_TEXT_MAX];

	/* A cloud's bare metal has the cloud's name too. */
	if (flag == 0)
		return;
	for (int file = 0; file < 2 && !machine->virtual_machine[0]; file++) {
		if (tree_text(tree, text, "/sys/class/dmi/id/%s",
			      file ? "sys_vendor" : "product_name") < 0)
			continue;
		for (int i = 0; makers[i] && !machine->virtual_machine[0]; i++)
			if (strstr(text, makers[i]))
				snprintf(machine->virtual_machine, sizeof(machine->virtual_machine),
					 "%s", makers[i]);
	}
	if (machine->virtual_machine[0] == '\0' &&
	    tree_text(tree, text, "/sys/hypervisor/type") == 0 && machine_is_name(text))
		snprintf(machine->virtual_machine, sizeof(machine->virtual_machine), "%.31s", text);
	if (machine->virtual_machine[0] == '\0' && flag == 1)
		snprintf(machine->virtual_machine, sizeof(machine->virtual_machine), "unknown");
}

static bool has_admin(struct tree *tree)
{
	static const char *const wanted[] = { "CapEff:", NULL };
	char text[TREE_TEXT_MAX];
	unsigned long long effective = 0;

	if (tree_grep(tree, "/proc/self/status", wanted, text, sizeof(text)) < 1)
		return false;
	return sscanf(text, "CapEff: %llx", &effective) == 1 && (effective >> CAP_SYS_ADMIN & 1);
}

/* With one node only, a function that does not say its own has that one. */
static void numa_find(struct machine *machine, struct tree *tree)
{
	char(*names)[64];
	const int count = tree_list(tree, &names, "/sys/devices/system/node");
	int only = -1;

	for (int i = 0; i < count; i++) {
		char *end;
		unsigned long node;

		if (strncmp(names[i], "node", 4) != 0 || !isdigit((unsigned char)names[i][4]))
			continue;
		node = strtoul(names[i] + 4, &end, 10);
		if (*end || node > 65535)
			continue;
		machine->numa_nodes++;
		only = (int)node;
	}
	free(names);
	if (machine->numa_nodes != 1)
		return;
	for (uint32_t i = 0; i < machine->gpus; i++)
		machine->gpu[i].pci.numa_node = only;
	for (uint32_t i = 0; i < machine->cards; i++)
		machine->card[i].pci.numa_node = only;
}

void machine_find(struct machine *machine, struct tree *tree)
{
	char(*names)[64], text[TREE_TEXT_MAX];
	struct machine_pci pci;
	int count;

	memset(machine, 0, sizeof(*machine));
	distribution_find(machine, tree);
	if (tree_text(tree, text, "/proc/sys/kernel/osrelease") == 0)
		snprintf(machine->kernel, sizeof(machine->kernel), "%.127s", text);
	container_find(machine, tree);
	virtual_machine_find(machine, tree);
	machine->root = has_admin(tree);
	count = tree_list(tree, &names, "/sys/bus/pci/devices");
	/* There may be more virtual functions than room. */
	for (int virtual = 0; virtual < 2; virtual ++)
		for (int i = 0; i < count; i++)
			if (machine_is_pci(names[i]) && pci_read(&pci, tree, names[i]) &&
			    pci.virtual_function == virtual)
				device_add(machine, tree, &pci);
	free(names);
	numa_find(machine, tree);
}

/* ---- topology ---- */

enum topology machine_topology(const struct machine_pci *a, const struct machine_pci *b)
{
	uint32_t common = 0, apart;

	if (!a->host[0] || !b->host[0])
		return TOPOLOGY_UNKNOWN;
	while (common < a->bridges && common < b->bridges &&
	       strcmp(a->bridge[common], b->bridge[common]) == 0)
		common++;
	if (common) {
		/* Below the bridge that both have: each step down is a port of a switch, and a
		 * switch has two, so one more on either side is one switch. */
		apart = (a->bridges - common) + (b->bridges - common);
		return apart <= 2 ? TOPOLOGY_PIX : TOPOLOGY_PXB;
	}
	if (strcmp(a->host, b->host) == 0)
		return TOPOLOGY_PHB;
	if (a->numa_node >= 0 && b->numa_node >= 0)
		return a->numa_node == b->numa_node ? TOPOLOGY_NODE : TOPOLOGY_SYS;
	return TOPOLOGY_UNKNOWN;
}

const char *topology_name(enum topology topology)
{
	static const char *const names[] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

	return (unsigned int)topology < TOPOLOGY_UNKNOWN ? names[topology] : "unknown";
}
