/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards, and whether one of them can be captured from: driver, RDMA device, link layer, link. A
 * card that fails makes a capture impossible only where no other card is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define READ_MAX 512u

typedef enum health card_look(struct tree *tree, const struct machine_card *card,
			      char read[READ_MAX]);

/* ---- one card, one matter ---- */

static enum health driver_look(struct tree *tree, const struct machine_card *card,
			       char read[READ_MAX])
{
	const char *driver = card->pci.driver;

	snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/driver: %s", card->pci.address,
		 driver[0] ? driver : "none");
	return strcmp(driver, "mlx5_core") == 0 ? HEALTH_OK : HEALTH_FAIL;
}

/* The uverbs device through which programs reach the RDMA device. */
static enum health uverbs_look(struct tree *tree, const char *rdma, char read[READ_MAX])
{
	static const char folder[] = "/sys/class/infiniband_verbs";
	const size_t used = strlen(read);
	char(*names)[64], text[TREE_TEXT_MAX];
	enum health health = HEALTH_FAIL;
	bool silent = false;
	int count;

	count = tree_list(tree, &names, "%s", folder);
	for (int i = 0; i < count && health == HEALTH_FAIL; i++) {
		if (strncmp(names[i], "uverbs", 6) != 0)
			continue;
		if (tree_text(tree, text, "%s/%s/ibdev", folder, names[i]) < 0 ||
		    !machine_is_name(text))
			silent = true;
		if (strcmp(text, rdma) != 0)
			continue;
		snprintf(read + used, READ_MAX - used, "; %s/%s/ibdev: %s", folder, names[i], rdma);
		health = HEALTH_OK;
	}
	free(names);
	if (health == HEALTH_OK)
		return health;
	snprintf(read + used, READ_MAX - used, "; %s: %s", folder,
		 count < 0 ? strerror(-count)
		 : silent  ? "one whose ibdev cannot be read"
			   : "none of it");
	return silent || (count < 0 && count != -ENOENT) ? HEALTH_UNKNOWN : HEALTH_FAIL;
}

static enum health rdma_look(struct tree *tree, const struct machine_card *card,
			     char read[READ_MAX])
{
	const char *address = card->pci.address;

	if (strcmp(card->pci.driver, "mlx5_core") != 0) {
		snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/driver: not mlx5_core", address);
		return HEALTH_NOT_APPLICABLE;
	}
	snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/infiniband: %s", address,
		 card->rdma[0] ? card->rdma : "none");
	if (card->rdma[0])
		return uverbs_look(tree, card->rdma, read);
	return tree_find(tree, "/sys/bus/pci/devices/%s/infiniband", address) == -EACCES
		       ? HEALTH_UNKNOWN
		       : HEALTH_FAIL;
}

/* ARPHRD_ETHER and ARPHRD_INFINIBAND, of <linux/if_arp.h>. */
static enum health type_look(struct tree *tree, const char *interface, char read[READ_MAX])
{
	uint64_t type;
	const int ret = tree_number(tree, &type, 10, "/sys/class/net/%s/type", interface);

	if (ret < 0) {
		snprintf(read, READ_MAX, "/sys/class/net/%s/type: %s", interface, strerror(-ret));
		return HEALTH_UNKNOWN;
	}
	snprintf(read, READ_MAX, "/sys/class/net/%s/type: %llu", interface,
		 (unsigned long long)type);
	return type == 1 ? HEALTH_OK : type == 32 ? HEALTH_FAIL : HEALTH_UNKNOWN;
}

static enum health layer_look(struct tree *tree, const struct machine_card *card,
			      char read[READ_MAX])
{
	char text[TREE_TEXT_MAX];
	int ret;

	if (!card->rdma[0] && card->interface[0])
		return type_look(tree, card->interface, read);
	if (!card->rdma[0]) {
		snprintf(read, READ_MAX,
			 "/sys/bus/pci/devices/%s: neither infiniband nor net in it",
			 card->pci.address);
		return HEALTH_NOT_APPLICABLE;
	}
	ret = tree_text(tree, text, "/sys/class/infiniband/%s/ports/1/link_layer", card->rdma);
	snprintf(read, READ_MAX, "/sys/class/infiniband/%s/ports/1/link_layer: %.64s", card->rdma,
		 ret < 0 ? strerror(-ret) : text);
	if (ret == 0 && strcmp(text, "Ethernet") == 0)
		return HEALTH_OK;
	return ret == 0 && strcmp(text, "InfiniBand") == 0 ? HEALTH_FAIL : HEALTH_UNKNOWN;
}

/* Without an interface in this network namespace: the RDMA port's state, "4: ACTIVE". */
static enum health port_look(struct tree *tree, const char *rdma, char read[READ_MAX])
{
	char text[TREE_TEXT_MAX];
	const int ret = tree_text(tree, text, "/sys/class/infiniband/%s/ports/1/state", rdma);

	snprintf(read, READ_MAX, "/sys/class/infiniband/%s/ports/1/state: %.64s", rdma,
		 ret < 0 ? strerror(-ret) : text);
	if (ret == 0 && strcmp(text, "4: ACTIVE") == 0)
		return HEALTH_OK;
	return ret == 0 && strcmp(text, "1: DOWN") == 0 ? HEALTH_FAIL : HEALTH_UNKNOWN;
}

/* "carrier" cannot be read while the interface is down; the driver of DPDK brings it up. */
static bool interface_is_down(struct tree *tree, const char *interface)
{
	uint64_t flags;

	return tree_number(tree, &flags, 16, "/sys/class/net/%s/flags", interface) == 0 &&
	       !(flags & 1);
}

static enum health link_look(struct tree *tree, const struct machine_card *card,
			     char read[READ_MAX])
{
	const char *interface = card->interface;
	char carrier[TREE_TEXT_MAX], state[TREE_TEXT_MAX];
	int got_carrier, got_state;

	if (!interface[0] && card->rdma[0])
		return port_look(tree, card->rdma, read);
	if (!interface[0]) {
		snprintf(read, READ_MAX,
			 "/sys/bus/pci/devices/%s: neither net nor infiniband in it",
			 card->pci.address);
		return HEALTH_NOT_APPLICABLE;
	}
	got_carrier = tree_text(tree, carrier, "/sys/class/net/%s/carrier", interface);
	got_state = tree_text(tree, state, "/sys/class/net/%s/operstate", interface);
	snprintf(read, READ_MAX, "/sys/class/net/%s/carrier: %.32s; operstate: %.32s", interface,
		 got_carrier < 0 ? strerror(-got_carrier) : carrier,
		 got_state < 0 ? strerror(-got_state) : state);
	if (got_carrier == 0 && strcmp(carrier, "1") == 0)
		return HEALTH_OK;
	if (got_carrier == 0 && strcmp(carrier, "0") == 0)
		return HEALTH_FAIL;
	if (interface_is_down(tree, interface)) {
		snprintf(read + strlen(read), READ_MAX - strlen(read),
			 "; flags: the interface is down");
		return HEALTH_UNKNOWN;
	}
	if (got_state == 0 && strcmp(state, "up") == 0)
		return HEALTH_OK;
	return got_state == 0 && strcmp(state, "down") == 0 ? HEALTH_FAIL : HEALTH_UNKNOWN;
}

/* ---- one matter, all cards ---- */

static bool card_fails(struct tree *tree, const struct machine_card *card)
{
	static card_look *const looks[] = { driver_look, rdma_look, layer_look, link_look };
	char read[READ_MAX];

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		if (looks[i](tree, card, read) == HEALTH_FAIL)
			return true;
	return false;
}

static bool some_card_works(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;

	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx && !card_fails(doctor->tree, &machine->card[i]))
			return true;
	return false;
}

static void cards_check(struct doctor *doctor, card_look *look,
			void (*mend)(struct doctor *doctor, const struct machine_card *card,
				     enum health verdict))
{
	const struct machine *machine = &doctor->machine;
	const bool works = some_card_works(doctor);
	char read[READ_MAX];

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];
		enum health verdict;

		if (!card->connectx)
			continue;
		verdict = look(doctor->tree, card, read);
		if (verdict == HEALTH_FAIL && works)
			verdict = HEALTH_WARN;
		finding(doctor, card->pci.address, verdict, "%s%s", read,
			verdict == HEALTH_WARN ? " (another card is fit)" : "");
		if (verdict != HEALTH_OK && verdict != HEALTH_NOT_APPLICABLE)
			mend(doctor, card, verdict);
	}
}

/* ---- the checks ---- */

static void check_nic_present(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	char read[1024] = "";
	bool found = false;
	int ret;

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];
		const size_t used = strlen(read);

		found = found || card->connectx;
		if (card->connectx)
			snprintf(read + used, sizeof(read) - used, "; %s: %s", card->pci.address,
				 card->model);
		else
			snprintf(read + used, sizeof(read) - used,
				 "; %s: 15b3:%04x, which DPDK's mlx5 driver does not know",
				 card->pci.address, card->pci.device);
	}
	if (found) {
		finding(doctor, NULL, HEALTH_OK, "/sys/bus/pci/devices%s", read);
		return;
	}
	ret = tree_find(doctor->tree, "/sys/bus/pci/devices");
	if (ret < 0)
		finding(doctor, NULL, HEALTH_UNKNOWN, "/sys/bus/pci/devices: %s", strerror(-ret));
	else
		finding(doctor, NULL, HEALTH_FAIL, "/sys/bus/pci/devices: no ConnectX%s", read);
	remedy(doctor, "lspci -nn -d 15b3:  # does the machine see a card?");
	remedy(doctor, "# an NVIDIA ConnectX-5 or later is needed to receive into GPU memory "
		       "without a copy; a virtual machine must be given one by its host");
}

static void driver_remedy(struct doctor *doctor, const struct machine_card *card,
			  enum health verdict)
{
	static const char *const reserving[] = { "vfio-pci", "uio_pci_generic", "igb_uio",
						 "pci-stub", NULL };
	const char *address = card->pci.address, *driver = card->pci.driver;

	for (int i = 0; reserving[i]; i++) {
		if (strcmp(driver, reserving[i]) != 0)
			continue;
		remedy(doctor, "# if no virtual machine uses it: DPDK drives a ConnectX "
			       "through the kernel's own driver");
		remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers/%s/unbind", address,
		       driver);
		remedy(doctor, "echo | sudo tee /sys/bus/pci/devices/%s/driver_override", address);
		break;
	}
	if (driver[0] == '\0' && tree_exists(doctor->tree, "/sys/module/mlx5_core"))
		remedy(doctor, "sudo dmesg | grep %s  # why the driver left it", address);
	remedy(doctor, "sudo modprobe mlx5_core");
	remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers/mlx5_core/bind", address);
}

static void check_nic_driver(struct doctor *doctor)
{
	cards_check(doctor, driver_look, driver_remedy);
}

/* Distributions keep drivers that few need in packages of their own. */
static void module_package(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	const char *kernel = machine_is_name(machine->kernel) ? machine->kernel : "$(uname -r)";

	if (machine->distribution == DISTRIBUTION_UBUNTU)
		remedy(doctor,
		       "sudo apt-get install linux-modules-extra-%s  # if modprobe does not "
		       "find it",
		       kernel);
	else if (machine->distribution == DISTRIBUTION_RHEL)
		remedy(doctor, "sudo dnf install kernel-modules-%s  # if modprobe does not find it",
		       kernel);
}

static void rdma_remedy(struct doctor *doctor, const struct machine_card *card, enum health verdict)
{
	const char *module = card->rdma[0] ? "ib_uverbs" : "mlx5_ib";

	if (verdict == HEALTH_UNKNOWN) {
		remedy(doctor,
		       "sudo ls /sys/bus/pci/devices/%s/infiniband /sys/class/infiniband_verbs",
		       card->pci.address);
		return;
	}
	if (tree_exists(doctor->tree, "/sys/module/%s", module)) {
		remedy(doctor, "rdma system show  # \"netns exclusive\": the device is in "
			       "another network namespace");
		remedy(doctor, "sudo dmesg | grep mlx5");
		return;
	}
	remedy(doctor, "sudo modprobe %s", module);
	module_package(doctor);
	remedy(doctor, "echo %s | sudo tee /etc/modules-load.d/gdrcap-%s.conf  # at each boot",
	       module, module);
}

static void check_nic_rdma(struct doctor *doctor)
{
	cards_check(doctor, rdma_look, rdma_remedy);
}

/* LINK_TYPE_P1 is that of function 0, P2 that of function 1. */
static void layer_remedy(struct doctor *doctor, const struct machine_card *card,
			 enum health verdict)
{
	const struct machine *machine = &doctor->machine;
	const char *address = card->pci.address;
	const int port = strcmp(address + strlen(address) - 2, ".1") == 0 ? 2 : 1;

	if (verdict == HEALTH_UNKNOWN && card->rdma[0]) {
		remedy(doctor, "cat /sys/class/infiniband/%s/ports/1/link_layer", card->rdma);
		return;
	}
	if (verdict == HEALTH_UNKNOWN) {
		remedy(doctor, "cat /sys/class/net/%s/type  # 1: Ethernet, 32: InfiniBand",
		       card->interface);
		return;
	}
	if (card_is_virtual(card)) {
		remedy(doctor, "# a virtual function's link layer is its physical "
			       "function's: set LINK_TYPE there, on the host");
		return;
	}
	if (!tree_exists(doctor->tree, "/usr/bin/mstconfig"))
		remedy_install(doctor, PACKAGE_MSTFLINT);
	remedy(doctor, "sudo mstconfig -d %s set LINK_TYPE_P%d=2  # Ethernet", address, port);
	remedy(doctor, "sudo mstfwreset -d %s reset  # or reboot", address);
	if (machine->virtual_machine[0])
		remedy(doctor, "# where that is refused: on the host, or not at all in a "
			       "rented machine");
}

static void check_nic_link_layer(struct doctor *doctor)
{
	cards_check(doctor, layer_look, layer_remedy);
}

static void link_remedy(struct doctor *doctor, const struct machine_card *card, enum health verdict)
{
	const char *interface = card->interface;

	if (!interface[0]) {
		remedy(doctor,
		       "rdma link show %s/1  # its interface is in another network namespace",
		       card->rdma);
		return;
	}
	if (verdict == HEALTH_UNKNOWN) {
		remedy(doctor, "sudo ip link set dev %s up", interface);
		remedy(doctor, "cat /sys/class/net/%s/carrier  # some seconds later; 1: up",
		       interface);
		return;
	}
	remedy(doctor, "# plug in cable and transceiver, and bring the other end up");
	if (!tree_exists(doctor->tree, "/usr/sbin/ethtool"))
		remedy_install(doctor, PACKAGE_ETHTOOL);
	remedy(doctor, "sudo ethtool %s  # \"Link detected\", and why not", interface);
	remedy(doctor, "sudo ethtool -m %s  # is a transceiver seen?", interface);
}

static void check_nic_link(struct doctor *doctor)
{
	cards_check(doctor, link_look, link_remedy);
}

const struct doctor_check checks_nic[] = {
	{ "nic-present", "nic", SEVERITY_FATAL,
	  "only a ConnectX writes frames into GPU memory by itself", .run = check_nic_present },
	{ "nic-driver", "nic", SEVERITY_FATAL,
	  "DPDK drives a ConnectX together with the kernel's mlx5_core, not in place of it",
	  .run = check_nic_driver },
	{ "nic-rdma", "nic", SEVERITY_FATAL,
	  "queues are made and memory is registered through the card's RDMA device",
	  .run = check_nic_rdma },
	{ "nic-link-layer", "nic", SEVERITY_FATAL,
	  "a port in InfiniBand mode neither sends nor receives Ethernet frames",
	  .run = check_nic_link_layer },
	{ "nic-link", "nic", SEVERITY_FATAL, "without a link no frame arrives",
	  .run = check_nic_link },
	{ 0 },
};
