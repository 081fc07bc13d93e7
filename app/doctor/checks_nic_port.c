/* SPDX-License-Identifier: BSD-3-Clause */
/* What a card that works is and does: model, function, speed, MTU, pause frames, firmware. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "doctor/pci_config.h"

bool card_is_virtual(const struct machine_card *card)
{
	return card->pci.virtual_function || strstr(card->model, " VF");
}

/* ---- model ---- */

static void check_nic_model(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];
		const char *address = card->pci.address, *model = card->model;
		char read[256];

		snprintf(read, sizeof(read), "/sys/bus/pci/devices/%s/device: 0x%04x, %s", address,
			 card->pci.device, model);
		if (!card->connectx) {
			finding(doctor, address, HEALTH_NOT_APPLICABLE,
				"%snot known to DPDK's mlx5 driver", read);
		} else if (strncmp(model, "ConnectX-4", 10) == 0) {
			finding(doctor, address, HEALTH_WARN,
				"%s: it receives into GPU memory, but cannot send from it: it "
				"wants the beginning of each frame in its descriptor, where the CPU "
				"would have to copy it",
				read);
			remedy(doctor, "# let a ConnectX-5 or later send, or send from host "
				       "memory");
		} else if (strncmp(model, "ConnectX-5", 10) == 0 ||
			   strcmp(model, "BlueField") == 0 || strcmp(model, "BlueField VF") == 0) {
			finding(doctor, address, HEALTH_OK,
				"%s: no hardware steering (dv_flow_en=2), which the capture does "
				"not use",
				read);
		} else {
			finding(doctor, address, HEALTH_OK, "%s", read);
		}
	}
}

/* ---- physical, virtual, or with representors ---- */

/* The number of a virtual function among its physical function's; -1: not found. */
static int virtual_number(struct tree *tree, const char *physical, const char *address)
{
	char(*names)[64], target[512];
	int count, number = -1, end;

	count = tree_list(tree, &names, "/sys/bus/pci/devices/%s", physical);
	for (int i = 0; i < count; i++) {
		unsigned int n;
		const char *last;

		end = 0;
		if (sscanf(names[i], "virtfn%4u%n", &n, &end) != 1 || names[i][end] ||
		    tree_link(tree, target, sizeof(target), "/sys/bus/pci/devices/%s/%s", physical,
			      names[i]) < 0)
			continue;
		last = strrchr(target, '/');
		if (last && strcmp(last + 1, address) == 0)
			number = (int)n;
	}
	free(names);
	return number;
}

static void virtual_finding(struct doctor *doctor, const struct machine_card *card)
{
	const struct machine *machine = &doctor->machine;
	const char *address = card->pci.address, *physical = NULL, *interface = "";
	char target[512];
	int number;

	if (tree_link(doctor->tree, target, sizeof(target), "/sys/bus/pci/devices/%s/physfn",
		      address) == 0)
		physical = strrchr(target, '/');
	if (!physical || !machine_is_pci(physical + 1)) {
		finding(doctor, address, HEALTH_WARN, "%s", card->model);
		remedy(doctor, "# on the host: ip link set dev INTERFACE_OF_THE_PHYSICAL_"
			       "FUNCTION vf NUMBER trust on");
		return;
	}
	physical++;
	number = virtual_number(doctor->tree, physical, address);
	for (uint32_t i = 0; i < machine->cards; i++)
		if (strcmp(machine->card[i].pci.address, physical) == 0)
			interface = machine->card[i].interface;
	finding(doctor, address, HEALTH_WARN,
		"/sys/bus/pci/devices/%s/physfn: %s; it is a virtual function", address, physical);
	if (interface[0] && number >= 0) {
		remedy(doctor, "ip link show dev %s  # its address, VLAN and trust", interface);
		remedy(doctor, "sudo ip link set dev %s vf %d trust on", interface, number);
	} else {
		remedy(doctor,
		       "# give the virtual function trust through the interface of "
		       "%s: ip link set dev INTERFACE vf NUMBER trust on",
		       physical);
	}
}

/* "pf0vf1" and "pf0sf1", on a card of several hosts "c1pf0vf1": ports of its e-switch. */
static bool is_representor(struct tree *tree, const char *address, const char *interface)
{
	char name[TREE_TEXT_MAX], *at = name;

	if (tree_text(tree, name, "/sys/bus/pci/devices/%s/net/%s/phys_port_name", address,
		      interface) < 0)
		return false;
	if (*at == 'c')
		at += 1 + strspn(at + 1, "0123456789");
	if (strncmp(at, "pf", 2) != 0)
		return false;
	at += 2 + strspn(at + 2, "0123456789");
	return strncmp(at, "vf", 2) == 0 || strncmp(at, "sf", 2) == 0;
}

static void physical_finding(struct doctor *doctor, const struct machine_card *card)
{
	const char *address = card->pci.address;
	unsigned int representors = 0;
	char(*names)[64];
	int count;

	count = tree_list(doctor->tree, &names, "/sys/bus/pci/devices/%s/net", address);
	for (int i = 0; i < count; i++)
		representors += is_representor(doctor->tree, address, names[i]);
	free(names);
	if (count < 0 && count != -ENOENT) {
		finding(doctor, address, HEALTH_UNKNOWN, "/sys/bus/pci/devices/%s/net: %s", address,
			strerror(-count));
		remedy(doctor, "sudo devlink dev eswitch show pci/%s", address);
		return;
	}
	finding(doctor, address, representors ? HEALTH_WARN : HEALTH_OK,
		"/sys/bus/pci/devices/%s: a physical function; net/*/phys_port_name: %u "
		"representors",
		address, representors);
	if (!representors)
		return;
	remedy(doctor, "sudo devlink dev eswitch show pci/%s", address);
	remedy(doctor,
	       "sudo devlink dev eswitch set pci/%s mode legacy  # removes the "
	       "representors: not where virtual machines or containers use them",
	       address);
}

static void check_nic_function(struct doctor *doctor, const struct machine_card *card)
{
	if (card_is_virtual(card))
		virtual_finding(doctor, card);
	else
		physical_finding(doctor, card);
}

/* ---- speed ---- */

static void check_nic_speed(struct doctor *doctor, const struct machine_card *card)
{
	struct tree *tree = doctor->tree;
	const char *address = card->pci.address, *interface = card->interface;
	struct pci_link link;
	uint64_t mbps, pcie;
	int ret;

	ret = tree_number(tree, &mbps, 10, "/sys/class/net/%s/speed", interface);
	if (ret < 0 || mbps == 0 || mbps > 10000000) {
		finding(doctor, address, HEALTH_UNKNOWN, "/sys/class/net/%s/speed: %s", interface,
			ret == -EINVAL || ret == 0 ? "unknown, as while the link is down"
						   : strerror(-ret));
		remedy(doctor, "ethtool %s", interface);
		return;
	}
	pci_link_read(&link, tree, address);
	pcie = pci_link_mbps(&link);
	if (!pcie) {
		finding(doctor, address, HEALTH_OK, "/sys/class/net/%s/speed: %llu Mbit/s",
			interface, (unsigned long long)mbps);
		return;
	}
	finding(doctor, address, pcie < mbps ? HEALTH_WARN : HEALTH_OK,
		"/sys/class/net/%s/speed: %llu Mbit/s; /sys/bus/pci/devices/%s/"
		"current_link_{width,speed}: %u lanes of %s, at most %llu Mbit/s",
		interface, (unsigned long long)mbps, address, link.width, link.speed,
		(unsigned long long)pcie);
	if (pcie < mbps)
		remedy(doctor, "# put the card into a slot of more lanes or a later "
			       "PCIe generation (see pcie-link), or send less");
}

/* ---- MTU ---- */

static void check_nic_mtu(struct doctor *doctor, const struct machine_card *card)
{
	const char *interface = card->interface;
	uint64_t mtu;
	int ret;

	ret = tree_number(doctor->tree, &mtu, 10, "/sys/class/net/%s/mtu", interface);
	if (ret < 0 || mtu > 65535) {
		finding(doctor, card->pci.address, HEALTH_UNKNOWN, "/sys/class/net/%s/mtu: %s",
			interface, ret < 0 ? strerror(-ret) : "no MTU of Ethernet");
		remedy(doctor, "ip link show dev %s", interface);
		return;
	}
	finding(doctor, card->pci.address, mtu < 1500 ? HEALTH_WARN : HEALTH_OK,
		"/sys/class/net/%s/mtu: %llu", interface, (unsigned long long)mtu);
	if (mtu < 1500)
		remedy(doctor, "sudo ip link set dev %s mtu 1500", interface);
	else if (mtu < 9000)
		remedy(doctor,
		       "# for frames over %llu bytes: sudo ip link set dev "
		       "INTERFACE mtu 9000 at the sender, and jumbo frames "
		       "in each switch between",
		       (unsigned long long)mtu + 18);
}

/* ---- pause frames ---- */

/* Pause frames that were seen since the driver was loaded. */
static void pause_counted(struct tree *tree, const char *interface, char *read, size_t bytes)
{
	static const char *const names[] = { "rx_pause_ctrl_phy", "tx_pause_ctrl_phy" };
	char text[TREE_TEXT_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t used = strlen(read);

		if (tree_fact(tree, text, "ethtool/%s/stat/%s", interface, names[i]) == 0)
			snprintf(read + used, bytes - used, "; %s: %.24s", names[i], text);
	}
}

static void check_nic_pause(struct doctor *doctor, const struct machine_card *card)
{
	const char *interface = card->interface;
	char text[TREE_TEXT_MAX], rx[4], tx[4], negotiated[4], read[256] = "";
	bool known, off;
	int ret;

	ret = tree_fact(doctor->tree, text, "ethtool/%s/pause", interface);
	known = ret == 0 &&
		sscanf(text, "rx %3[a-z], tx %3[a-z], autonegotiated %3[a-z]", rx, tx,
		       negotiated) == 3 &&
		(strcmp(rx, "on") == 0 || strcmp(rx, "off") == 0) &&
		(strcmp(tx, "on") == 0 || strcmp(tx, "off") == 0);
	if (!known) {
		finding(doctor, card->pci.address, HEALTH_UNKNOWN, "ethtool -a %s: %.64s",
			interface, ret < 0 ? "the kernel was not asked or gave no answer" : text);
		remedy(doctor, "ethtool -a %s", interface);
		return;
	}
	pause_counted(doctor->tree, interface, read, sizeof(read));
	off = strcmp(rx, "off") == 0 && strcmp(tx, "off") == 0;
	finding(doctor, card->pci.address, off ? HEALTH_OK : HEALTH_WARN,
		"ethtool -a %s: rx %s, tx %s%s", interface, rx, tx, read);
	if (!off)
		remedy(doctor, "sudo ethtool -A %s %srx off tx off", interface,
		       strcmp(negotiated, "on") == 0 ? "autoneg off " : "");
}

/* ---- firmware ---- */

/* What DPDK 22.11 asks for (its guides, platform/mlx5); a version's first number is its family. */
static const struct {
	unsigned int family, major, minor;
} firmware_least[] = {
	{ 12, 21, 1000 }, { 14, 21, 1000 }, { 16, 21, 1000 }, { 18, 25, 1010 }, { 20, 27, 90 },
	{ 22, 27, 90 },	  { 24, 28, 1002 }, { 26, 27, 90 },   { 28, 33, 2028 },
};

static bool firmware_old(unsigned int family, unsigned int major, unsigned int minor)
{
	for (size_t i = 0; i < sizeof(firmware_least) / sizeof(firmware_least[0]); i++)
		if (firmware_least[i].family == family)
			return major < firmware_least[i].major ||
			       (major == firmware_least[i].major &&
				minor < firmware_least[i].minor);
	return false;
}

static void check_nic_firmware(struct doctor *doctor, const struct machine_card *card)
{
	const char *address = card->pci.address;
	char text[TREE_TEXT_MAX], path[128];
	unsigned int family, major, minor;
	int ret = -ENOENT;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/fw_ver",
		 card->rdma[0] ? card->rdma : "*");
	if (card->rdma[0])
		ret = tree_text(doctor->tree, text, "%s", path);
	if (ret < 0 && card->interface[0]) {
		snprintf(path, sizeof(path), "ethtool -i %s: firmware-version", card->interface);
		ret = tree_fact(doctor->tree, text, "ethtool/%s/firmware", card->interface);
	}
	if (ret < 0 || sscanf(text, "%3u.%3u.%5u", &family, &major, &minor) != 3) {
		finding(doctor, address, HEALTH_UNKNOWN, "%s: %.64s", path,
			ret < 0 ? strerror(-ret) : text);
		remedy(doctor, "sudo mstflint -d %s q", address);
	} else if (firmware_old(family, major, minor)) {
		finding(doctor, address, HEALTH_WARN,
			"%s: %.64s, older than DPDK's driver asks for", path, text);
		remedy(doctor,
		       "sudo mstflint -d %s q  # its PSID; the image for it: "
		       "https://network.nvidia.com/support/firmware",
		       address);
		remedy(doctor, "# then: sudo mstflint -d %s -i IMAGE.bin burn", address);
	} else {
		finding(doctor, address, HEALTH_OK, "%s: %.64s", path, text);
	}
}

static void check_nic_firmware_options(struct doctor *doctor, const struct machine_card *card)
{
	const char *address = card->pci.address;

	if (card_is_virtual(card))
		return;
	finding(doctor, address, HEALTH_UNKNOWN,
		"CQE_COMPRESSION and REAL_TIME_CLOCK_ENABLE lie in the card, not in a file");
	if (!tree_exists(doctor->tree, "/usr/bin/mstconfig"))
		remedy_install(doctor, PACKAGE_MSTFLINT);
	remedy(doctor, "sudo mstconfig -d %s q CQE_COMPRESSION REAL_TIME_CLOCK_ENABLE", address);
	remedy(doctor,
	       "# for timestamps in ns: sudo mstconfig -d %s set "
	       "REAL_TIME_CLOCK_ENABLE=1, then reboot; compression is not "
	       "used by the capture",
	       address);
}

const struct doctor_check checks_nic_port[] = {
	{ "nic-model", "nic", SEVERITY_INFO, "what can be done differs from model to model",
	  .run = check_nic_model },
	{ "nic-function", "nic", SEVERITY_INFO,
	  "a virtual function gets only what the card's e-switch lets through to it, and with representors the e-switch's rules come before the capture's",
	  .card = check_nic_function },
	{ "nic-speed", "nic", SEVERITY_SLOW,
	  "a card cannot put more into memory than its PCIe link carries",
	  .interface = check_nic_speed },
	{ "nic-mtu", "nic", SEVERITY_INFO,
	  "the capture sets its port's MTU as its frames need, but the sender and each switch between must admit frames as long",
	  .interface = check_nic_mtu },
	{ "nic-pause", "nic", SEVERITY_SLOW,
	  "with pause frames a receiver that is too slow holds the sender back, and nobody sees that frames would have been lost",
	  .interface = check_nic_pause },
	{ "nic-firmware", "nic", SEVERITY_INFO,
	  "DPDK's driver asks for a least version of the firmware", .card = check_nic_firmware },
	{ "nic-firmware-options", "nic", SEVERITY_INFO,
	  "timestamps are in nanoseconds only with REAL_TIME_CLOCK_ENABLE",
	  .card = check_nic_firmware_options },
	{ 0 },
};
