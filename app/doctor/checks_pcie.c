/* SPDX-License-Identifier: BSD-3-Clause */
/* What the links carry: lanes and speed, payload and read request sizes, and the GPU's BAR1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor/doctor.h"
#include "doctor/facts.h"
#include "doctor/pci_config.h"

#define LINKS_MOST 256u
#define PAYLOAD_WANTED 256u
#define READ_REQUEST_WANTED 4096u
#define BAR1_WANTED (UINT64_C(1) << 30)
/* The driver uses some of BAR1 itself. */
#define BAR1_SPARE (UINT64_C(32) << 20)

void remedy_setpci(struct doctor *doctor)
{
	if (!tree_exists(doctor->tree, "/usr/bin/setpci") &&
	    !tree_exists(doctor->tree, "/usr/sbin/setpci"))
		remedy_install(doctor, PACKAGE_PCIUTILS);
}

/* ---- link speed and width ---- */

struct links {
	uint32_t count;
	const char *seen[LINKS_MOST];
};

static bool link_is_new(struct links *links, const char *address)
{
	for (uint32_t i = 0; i < links->count; i++)
		if (strcmp(links->seen[i], address) == 0)
			return false;
	if (links->count == LINKS_MOST)
		return false;
	links->seen[links->count++] = address;
	return true;
}

/* One link: `end` is its lower end, `port` the port above, NULL where that is not seen. A GPU that
 * idles lowers its link's speed. */
static void link_finding(struct doctor *doctor, const char *end, const char *port,
			 bool speed_counts)
{
	struct pci_link link, above = { 0 };
	char upper[128] = "";
	bool narrow, slow;

	if (!pci_link_read(&link, doctor->tree, end)) {
		finding(doctor, end, HEALTH_UNKNOWN,
			"/sys/bus/pci/devices/%s/{current,max}_link_width: not known", end);
		remedy(doctor, "sudo lspci -s %s -vv | grep -E 'LnkCap|LnkSta'%s", end,
		       doctor->machine.virtual_machine[0] ? "  # on the host" : "");
		return;
	}
	if (port)
		pci_link_read(&above, doctor->tree, port);
	if (above.width_most)
		snprintf(upper, sizeof(upper), "; %s above it: at most %u of %s", port,
			 above.width_most, above.speed_most);
	narrow = link.width < link.width_most;
	slow = link.rate && link.rate < link.rate_most;
	finding(doctor, end, narrow || (slow && speed_counts) ? HEALTH_WARN : HEALTH_OK,
		"/sys/bus/pci/devices/%s/{current,max}_link_{width,speed}: %u lanes of %s, at most "
		"%u of %s%s%s",
		end, link.width, link.speed, link.width_most, link.speed_most, upper,
		slow && !speed_counts ? " (a GPU that idles lowers its speed)" : "");
	if (!narrow && !(slow && speed_counts))
		return;
	if ((narrow && above.width_most && above.width_most <= link.width) ||
	    (!narrow && above.rate_most && above.rate_most <= link.rate))
		remedy(doctor, "# its slot can no more: put it into one of %u lanes of %s",
		       link.width_most, link.speed_most);
	else
		remedy(doctor, "# seat the card again, and its riser or cable; in the BIOS "
			       "look for the slot's bifurcation and link speed");
	remedy(doctor, "sudo lspci -s %s -vv | grep -E 'LnkCap|LnkSta'", end);
}

/* Upwards from a function: its own link, then those of the switches. Between the two ports of one
 * switch there is none. */
static void links_of(struct doctor *doctor, struct links *links, const struct machine_pci *pci,
		     bool gpu)
{
	uint32_t above = pci->bridges;

	if (link_is_new(links, pci->address))
		link_finding(doctor, pci->address, above ? pci->bridge[above - 1] : NULL, !gpu);
	while (above >= 3) {
		const char *end = pci->bridge[above - 2], *port = pci->bridge[above - 3];

		if (link_is_new(links, end))
			link_finding(doctor, end, port, !gpu);
		above -= 2;
	}
}

static void check_pcie_link(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	struct links links = { 0 };

	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx && !machine->card[i].pci.virtual_function)
			links_of(doctor, &links, &machine->card[i].pci, false);
	for (uint32_t i = 0; i < machine->gpus; i++)
		links_of(doctor, &links, &machine->gpu[i].pci, true);
}

/* ---- payload and read request ---- */

/* 0, or why DevCtl of this function is not known. */
static int express_read(struct doctor *doctor, const char *address, struct pci_express *express)
{
	struct pci_config config;
	const int ret = pci_config_read(doctor->tree, &config, address);

	return ret < 0 ? ret : pci_config_express(&config, express);
}

const char *config_hidden(const struct doctor *doctor)
{
	/* A container's root has not all rights. */
	return doctor->machine.container[0] ? "run as root, on the host" : "run as root";
}

static const char *express_error(const struct doctor *doctor, int error)
{
	return error == -EACCES	  ? config_hidden(doctor)
	       : error == -ENOENT ? "not there, or without PCI Express capability"
	       : error == -EINVAL ? "makes no sense"
				  : strerror(-error);
}

/* Functions of which DevCtl means nothing: a virtual function's is its physical function's, and a
 * virtual machine sees what its host makes up. */
static bool express_hidden(struct doctor *doctor, const struct machine_pci *pci)
{
	const struct machine *machine = &doctor->machine;

	if (!machine->virtual_machine[0])
		return false;
	finding(doctor, pci->address, HEALTH_NOT_APPLICABLE,
		"in a virtual machine (%s) its host sets it", machine->virtual_machine);
	return true;
}

static void payload_finding(struct doctor *doctor, const struct machine_pci *pci)
{
	uint32_t least = UINT32_MAX, most = 0, possible = UINT32_MAX;
	char read[640] = "";
	struct pci_express express;

	for (uint32_t i = 0; i <= pci->bridges; i++) {
		const char *address = i < pci->bridges ? pci->bridge[i] : pci->address;
		const size_t used = strlen(read);
		const int ret = express_read(doctor, address, &express);

		if (ret < 0) {
			finding(doctor, pci->address, HEALTH_UNKNOWN,
				"/sys/bus/pci/devices/%s/config: %s", address,
				express_error(doctor, ret));
			remedy(doctor,
			       "sudo lspci -s %s -vv | grep MaxPayload  # DevCap: "
			       "what it can, DevCtl: what is set",
			       address);
			return;
		}
		snprintf(read + used, sizeof(read) - used, "; %s: %u of %u", address,
			 express.payload, express.payload_most);
		least = express.payload < least ? express.payload : least;
		most = express.payload > most ? express.payload : most;
		possible = express.payload_most < possible ? express.payload_most : possible;
	}
	if (least == most && least >= PAYLOAD_WANTED) {
		finding(doctor, pci->address, HEALTH_OK,
			"/sys/bus/pci/devices/*/config: MaxPayload bytes%s", read);
		return;
	}
	finding(doctor, pci->address, HEALTH_WARN,
		"/sys/bus/pci/devices/*/config: MaxPayload bytes%s%s", read,
		least == most ? "" : "; they differ");
	if (possible < PAYLOAD_WANTED && least == most)
		remedy(doctor, "# the way to this device can no more than %u bytes: another slot",
		       possible);
	else
		remedy_kernel_argument(doctor, "pci=pcie_bus_safe");
}

static void check_pcie_payload(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];

		if (card->connectx && !card->pci.virtual_function &&
		    !express_hidden(doctor, &card->pci))
			payload_finding(doctor, &card->pci);
	}
	for (uint32_t i = 0; i < machine->gpus; i++)
		if (!express_hidden(doctor, &machine->gpu[i].pci))
			payload_finding(doctor, &machine->gpu[i].pci);
}

static void check_pcie_read_request(struct doctor *doctor, const struct machine_card *card)
{
	const char *address = card->pci.address;
	struct pci_express express;
	int ret;

	if (card->pci.virtual_function || express_hidden(doctor, &card->pci))
		return;
	ret = express_read(doctor, address, &express);
	if (ret < 0) {
		finding(doctor, address, HEALTH_UNKNOWN, "/sys/bus/pci/devices/%s/config: %s",
			address, express_error(doctor, ret));
		remedy(doctor, "sudo lspci -s %s -vv | grep MaxReadReq", address);
		return;
	}
	finding(doctor, address,
		express.read_request < READ_REQUEST_WANTED ? HEALTH_WARN : HEALTH_OK,
		"/sys/bus/pci/devices/%s/config: DevCtl %04x, MaxReadReq %u bytes", address,
		express.control, express.read_request);
	if (express.read_request >= READ_REQUEST_WANTED)
		return;
	remedy_setpci(doctor);
	/* Written back, the highest bit would reset the function. */
	remedy(doctor, "sudo setpci -s %s CAP_EXP+8.w=%04x  # until the next start", address,
	       (express.control & 0x0fffu) | 5u << 12);
}

/* ---- BAR1 ---- */

#define FLAG_MEMORY 0x200u
#define FLAG_64_BIT 0x100000u
#define FLAG_UNSET 0x20000000u

/*
 * What NVIDIA calls BAR1 is the GPU's second region of memory: behind BAR0, which takes one line of
 * the file, or two where it has 64 bits (Hopper). The size; 0: it was given no addresses;
 * UINT64_MAX: the file makes no sense.
 */
static uint64_t bar1_bytes(const char *resource, unsigned int *line_number)
{
	uint64_t start, end, flags, skip = 1;
	const char *line = resource;

	for (unsigned int i = 0; i < 6; i++) {
		if (sscanf(line, "0x%16" SCNx64 " 0x%16" SCNx64 " 0x%16" SCNx64, &start, &end,
			   &flags) != 3)
			return UINT64_MAX;
		if (i == 0 && !(flags & FLAG_MEMORY))
			return UINT64_MAX;
		if (i == 0 && (flags & FLAG_64_BIT))
			skip = 2;
		if (i == skip)
			break;
		line = strchr(line, '\n');
		if (!line)
			return UINT64_MAX;
		line++;
	}
	*line_number = (unsigned int)skip + 1;
	if (!(flags & FLAG_MEMORY) || (flags & FLAG_UNSET) || start == 0 || end <= start)
		return 0;
	return end - start + 1;
}

static void bar1_remedy(struct doctor *doctor)
{
	static const char *const rebuild[] = {
		[DISTRIBUTION_DEBIAN] = "sudo update-initramfs -u",
		[DISTRIBUTION_UBUNTU] = "sudo update-initramfs -u",
		[DISTRIBUTION_RHEL] = "sudo dracut --force",
		[DISTRIBUTION_OTHER] = "# make the initial RAM disk anew",
	};
	const struct machine *machine = &doctor->machine;

	if (machine->virtual_machine[0]) {
		remedy(doctor,
		       "# the host of this virtual machine (%s) gives the GPU its "
		       "addresses: a guest with UEFI and a large 64-bit window",
		       machine->virtual_machine);
		return;
	}
	remedy(doctor, "# BIOS: \"Above 4G Decoding\" and \"Resizable BAR\" on; then, for a "
		       "GPU whose driver has to ask for it:");
	remedy(doctor, "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee "
		       "/etc/modprobe.d/gdrcap-bar1.conf");
	remedy(doctor, "%s", rebuild[machine->distribution]);
	remedy(doctor, "sudo reboot");
}

/* What the driver says of BAR1, where it was asked; it knows best which region that is. */
static void bar1_said(struct tree *tree, const char *address, unsigned long long *total,
		      unsigned long long *used, char *said, size_t bytes)
{
	const int number = facts_nvml_number(tree, address);
	char text[TREE_TEXT_MAX];

	if (number < 0)
		return;
	if (tree_fact(tree, text, "nvml/%d/bar1_total", number) == 0 &&
	    sscanf(text, "%19llu", total) == 1)
		snprintf(said, bytes, "; nvml/%d/bar1_total: %llu MiB", number, *total >> 20);
	if (tree_fact(tree, text, "nvml/%d/bar1_used", number) == 0 &&
	    sscanf(text, "%19llu", used) == 1)
		snprintf(said + strlen(said), bytes - strlen(said), "; nvml/%d/bar1_used: %llu MiB",
			 number, *used >> 20);
}

static void bar1_finding(struct doctor *doctor, const struct machine_gpu *gpu)
{
	const char *address = gpu->pci.address;
	char text[TREE_TEXT_MAX], said[128] = "";
	unsigned long long total = 0, used = 0;
	unsigned int line = 0;
	uint64_t bytes, listed;
	bool low;
	int ret;

	ret = tree_text(doctor->tree, text, "/sys/bus/pci/devices/%s/resource", address);
	bytes = listed = ret < 0 ? UINT64_MAX : bar1_bytes(text, &line);
	if (bytes == UINT64_MAX) {
		finding(doctor, address, HEALTH_UNKNOWN, "/sys/bus/pci/devices/%s/resource: %s",
			address, ret < 0 ? strerror(-ret) : "makes no sense");
		remedy(doctor, "nvidia-smi -i %s -q -d MEMORY  # BAR1 Memory Usage", address);
		return;
	}
	if (bytes == 0) {
		finding(doctor, address, HEALTH_FAIL,
			"/sys/bus/pci/devices/%s/resource: line %u, BAR1: it was given no addresses",
			address, line);
		bar1_remedy(doctor);
		return;
	}
	bar1_said(doctor->tree, address, &total, &used, said, sizeof(said));
	if (total)
		bytes = total;
	low = used < bytes && bytes - used < BAR1_WANTED / 4 + BAR1_SPARE;
	finding(doctor, address,
		bytes < BAR1_WANTED || low || used >= bytes ? HEALTH_WARN : HEALTH_OK,
		"/sys/bus/pci/devices/%s/resource: line %u, BAR1: %llu MiB%s", address, line,
		(unsigned long long)listed >> 20, said);
	if (bytes < BAR1_WANTED)
		bar1_remedy(doctor);
	else if (low || used >= bytes)
		remedy(doctor,
		       "nvidia-smi -i %s  # which programs hold it? end those that are not needed",
		       address);
}

static void check_pcie_bar1(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;

	for (uint32_t i = 0; i < machine->gpus; i++)
		bar1_finding(doctor, &machine->gpu[i]);
}

const struct doctor_check checks_pcie[] = {
	{ "pcie-link", "pcie", SEVERITY_SLOW,
	  "half of the lanes or of the speed is half of the throughput", .run = check_pcie_link },
	{ "pcie-payload", "pcie", SEVERITY_SLOW,
	  "small packets spend more of the link on headers, and a receiver refuses larger ones "
	  "than it is set for",
	  .run = check_pcie_payload },
	{ "pcie-read-request", "pcie", SEVERITY_SLOW,
	  "a card that sends from GPU memory has to ask for its frames in pieces of this size",
	  .card = check_pcie_read_request },
	{ "pcie-bar1", "pcie", SEVERITY_SLOW,
	  "the memory into which a card writes has to fit into the GPU's BAR1",
	  .run = check_pcie_bar1 },
	{ 0 },
};
