/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards, and whether one of them can be captured from: driver, RDMA device, link layer, link. A
 * card that fails makes a capture impossible only where no other card is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"

#define READ_MAX 512u

typedef enum gdrcap_health card_look(struct tree *tree, const struct machine_card *card,
				     char read[READ_MAX]);

/* ---- one card, one matter ---- */

static enum gdrcap_health driver_look(struct tree *tree, const struct machine_card *card,
				      char read[READ_MAX])
{
	const char *driver = card->pci.driver;

	snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/driver: %s", card->pci.address,
		 driver[0] ? driver : "none");
	return strcmp(driver, "mlx5_core") == 0 ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_FAIL;
}

/* The uverbs device through which programs reach the RDMA device. */
static enum gdrcap_health uverbs_look(struct tree *tree, const char *rdma, char read[READ_MAX])
{
	static const char folder[] = "/sys/class/infiniband_verbs";
	const size_t used = strlen(read);
	char(*names)[64], text[TREE_TEXT_MAX];
	enum gdrcap_health health = GDRCAP_HEALTH_FAIL;
	bool silent = false;
	int count;

	count = tree_list(tree, &names, "%s", folder);
	for (int i = 0; i < count && health == GDRCAP_HEALTH_FAIL; i++) {
		if (strncmp(names[i], "uverbs", 6) != 0)
			continue;
		if (tree_text(tree, text, "%s/%s/ibdev", folder, names[i]) < 0 ||
		    !machine_is_name(text))
			silent = true;
		if (strcmp(text, rdma) != 0)
			continue;
		snprintf(read + used, READ_MAX - used, "; %s/%s/ibdev: %s", folder, names[i], rdma);
		health = GDRCAP_HEALTH_OK;
	}
	free(names);
	if (health == GDRCAP_HEALTH_OK)
		return health;
	snprintf(read + used, READ_MAX - used, "; %s: %s", folder,
		 count < 0 ? strerror(-count)
		 : silent  ? "one whose ibdev cannot be read"
			   : "none of it");
	return silent || (count < 0 && count != -ENOENT) ? GDRCAP_HEALTH_UNKNOWN
							 : GDRCAP_HEALTH_FAIL;
}

static enum gdrcap_health rdma_look(struct tree *tree, const struct machine_card *card,
				    char read[READ_MAX])
{
	const char *address = card->pci.address;

	if (strcmp(card->pci.driver, "mlx5_core") != 0) {
		snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/driver: not mlx5_core", address);
		return GDRCAP_HEALTH_NOT_APPLICABLE;
	}
	snprintf(read, READ_MAX, "/sys/bus/pci/devices/%s/infiniband: %s", address,
		 card->rdma[0] ? card->rdma : "none");
	if (card->rdma[0])
		return uverbs_look(tree, card->rdma, read);
	return tree_find(tree, "/sys/bus/pci/devices/%s/infiniband", address) == -EACCES
		       ? GDRCAP_HEALTH_UNKNOWN
		       : GDRCAP_HEALTH_FAIL;
}

/* ARPHRD_ETHER and ARPHRD_INFINIBAND, of <linux/if_arp.h>. */
static enum gdrcap_health type_look(struct tree *tree, const char *interface, char read[READ_MAX])
{
	uint64_t type;
	const int ret = tree_number(tree, &type, 10, "/sys/class/net/%s/type", interface);

	if (ret < 0) {
		snprintf(read, READ_MAX, "/sys/class/net/%s/type: %s", interface, strerror(-ret));
		return GDRCAP_HEALTH_UNKNOWN;
	}
	snprintf(read, READ_MAX, "/sys/class/net/%s/type: %llu", interface,
		 (unsigned long long)type);
	return type == 1    ? GDRCAP_HEALTH_OK
	       : type == 32 ? GDRCAP_HEALTH_FAIL
			    : GDRCAP_HEALTH_UNKNOWN;
}

static enum gdrcap_health layer_look(struct tree *tree, const struct machine_card *card,
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
		return GDRCAP_HEALTH_NOT_APPLICABLE;
	}
	ret = tree_text(tree, text, "/sys/class/infiniband/%s/ports/1/link_layer", card->rdma);
	snprintf(read, READ_MAX, "/sys/class/infiniband/%s/ports/1/link_layer: %.64s", card->rdma,
		 ret < 0 ? strerror(-ret) : text);
	if (ret == 0 && strcmp(text, "Ethernet") == 0)
		return GDRCAP_HEALTH_OK;
	return ret == 0 && strcmp(text, "InfiniBand") == 0 ? GDRCAP_HEALTH_FAIL
							   : GDRCAP_HEALTH_UNKNOWN;
}

/* Without an interface in this network namespace: the RDMA port's state, "4: ACTIVE". */
static enum gdrcap_health port_look(struct tree *tree, const char *rdma, char read[READ_MAX])
{
	char text[TREE_TEXT_MAX];
	const int ret = tree_text(tree, text, "/sys/class/infiniband/%s/ports/1/state", rdma);

	snprintf(read, READ_MAX, "/sys/class/infiniband/%s/ports/1/state: %.64s", rdma,
		 ret < 0 ? strerror(-ret) : text);
	if (ret == 0 && strcmp(text, "4: ACTIVE") == 0)
		return GDRCAP_HEALTH_OK;
	return ret == 0 && strcmp(text, "1: DOWN") == 0 ? GDRCAP_HEALTH_FAIL
							: GDRCAP_HEALTH_UNKNOWN;
}

/* "carrier" cannot be read while the interface is down; the driver of DPDK brings it up. */
static bool interface_is_down(struct tree *tree, const char *interface)
{
	uint64_t flags;

	return tree_number(tree, &flags, 16, "/sys/class/net/%s/flags", interface) == 0 &&
	       !(flags & 1);
}

static enum gdrcap_health link_look(struct tree *tree, const struct machine_card *card,
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
		return GDRCAP_HEALTH_NOT_APPLICABLE;
	}
	got_carrier = tree_text(tree, carrier, "/sys/class/net/%s/carrier", interface);
	got_state = tree_text(tree, state, "/sys/class/net/%s/operstate", interface);
	snprintf(read, READ_MAX, "/sys/class/net/%s/carrier: %.32s; operstate: %.32s", interface,
		 got_carrier < 0 ? strerror(-got_carrier) : carrier,
		 got_state < 0 ? strerror(-got_state) : state);
	if (got_carrier == 0 && strcmp(carrier, "1") == 0)
		return GDRCAP_HEALTH_OK;
	if (got_carrier == 0 && strcmp(carrier, "0") == 0)
		return GDRCAP_HEALTH_FAIL;
	if (interface_is_down(tree, interface)) {
		snprintf(read + strlen(read), READ_MAX - strlen(read),
			 "; flags: the interface is down");
		return GDRCAP_HEALTH_UNKNOWN;
	}
	if (got_state == 0 && strcmp(state, "up") == 0)
		return GDRCAP_HEALTH_OK;
	return got_state == 0 && strcmp(state, "down") == 0 ? GDRCAP_HEALTH_FAIL
							    : GDRCAP_HEALTH_UNKNOWN;
}

/* ---- one matter, all cards ---- */

static bool card_fails(struct tree *tree, const struct machine_card *card)
{
	static card_look *const looks[] = { driver_look, rdma_look, layer_look, link_look };
	char read[READ_MAX];

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		if (looks[i](tree, card, read) == GDRCAP_HEALTH_FAIL)
			return true;
	return false;
}

static bool some_card_works(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);

	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx &&
		    !card_fails(doctor_tree(doctor), &machine->card[i]))
			return true;
	return false;
}

static void cards_check(struct gdrcap_doctor *doctor, card_look *look,
			void (*remedy)(struct gdrcap_doctor *doctor,
				       const struct machine_card *card, enum gdrcap_health verdict))
{
	const struct machine *machine = doctor_machine(doctor);
	const bool works = some_card_works(doctor);
	char read[READ_MAX];

	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];
		enum gdrcap_health verdict;

		if (!card->connectx)
			continue;
		verdict = look(doctor_tree(doctor), card, read);
		if (verdict == GDRCAP_HEALTH_FAIL && works)
			verdict = GDRCAP_HEALTH_WARN;
		finding(doctor, card->pci.address, verdict, "%s%s", read,
			verdict == GDRCAP_HEALTH_WARN ? " (another card is fit)" : "");
		if (verdict != GDRCAP_HEALTH_OK && verdict != GDRCAP_HEALTH_NOT_APPLICABLE)
			remedy(doctor, card, verdict);
	}
}

/* ---- the checks ---- */

void check_nic_present(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);
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
		finding(doctor, NULL, GDRCAP_HEALTH_OK, "/sys/bus/pci/devices%s", read);
		return;
	}
	ret = tree_find(doctor_tree(doctor), "/sys/bus/pci/devices");
	if (ret < 0)
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "/sys/bus/pci/devices: %s",
			strerror(-ret));
	else
		finding(doctor, NULL, GDRCAP_HEALTH_FAIL, "/sys/bus/pci/devices: no ConnectX%s",
			read);
	finding_remedy(doctor, "lspci -nn -d 15b3:  # does the machine see a card?");
	finding_remedy(doctor,
		       "# an NVIDIA ConnectX-5 or later is needed to receive into GPU memory "
		       "without a copy; a virtual machine must be given one by its host");
}

static void driver_remedy(struct gdrcap_doctor *doctor, const struct machine_card *card,
			  enum gdrcap_health verdict)
{
	static const char *const reserving[] = { "vfio-pci", "uio_pci_generic", "igb_uio",
						 "pci-stub", NULL };
	const char *address = card->pci.address, *driver = card->pci.driver;

	for (int i = 0; reserving[i]; i++) {
		if (strcmp(driver, reserving[i]) != 0)
			continue;
		finding_remedy(doctor, "# if no virtual machine uses it: DPDK drives a ConnectX "
				       "through the kernel's own driver");
		finding_remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers/%s/unbind", address,
			       driver);
		finding_remedy(doctor, "echo | sudo tee /sys/bus/pci/devices/%s/driver_override",
			       address);
		break;
	}
	if (driver[0] == '\0' && tree_exists(doctor_tree(doctor), "/sys/module/mlx5_core"))
		finding_remedy(doctor, "sudo dmesg | grep %s  # why the driver left it", address);
	finding_remedy(doctor, "sudo modprobe mlx5_core");
	finding_remedy(doctor, "echo %s | sudo tee /sys/bus/pci/drivers/mlx5_core/bind", address);
}

void check_nic_driver(struct gdrcap_doctor *doctor)
{
	cards_check(doctor, driver_look, driver_remedy);
}

/* Distributions keep drivers that few need in packages of their own. */
static void module_package(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);
	const char *kernel = machine_is_name(machine->kernel) ? machine->kernel : "$(uname -r)";

	if (machine->distribution == DISTRIBUTION_UBUNTU)
		finding_remedy(
			doctor,
			"sudo apt-get install linux-modules-extra-%s  # if modprobe does not "
			"find it",
			kernel);
	else if (machine->distribution == DISTRIBUTION_RHEL)
		finding_remedy(doctor,
			       "sudo dnf install kernel-modules-%s  # if modprobe does not find it",
			       kernel);
}

static void rdma_remedy(struct gdrcap_doctor *doctor, const struct machine_card *card,
			enum gdrcap_health verdict)
{
	const char *module = card->rdma[0] ? "ib_uverbs" : "mlx5_ib";

	if (verdict == GDRCAP_HEALTH_UNKNOWN) {
		finding_remedy(doctor,
			       "sudo ls /sys/bus/pci/devices/%s/infiniband "
			       "/sys/class/infiniband_verbs",
			       card->pci.address);
		return;
	}
	if (tree_exists(doctor_tree(doctor), "/sys/module/%s", module)) {
		finding_remedy(doctor, "rdma system show  # \"netns exclusive\": the device is in "
				       "another network namespace");
		finding_remedy(doctor, "sudo dmesg | grep mlx5");
		return;
	}
	finding_remedy(doctor, "sudo modprobe %s", module);
	module_package(doctor);
	finding_remedy(doctor,
		       "echo %s | sudo tee /etc/modules-load.d/gdrcap-%s.conf  # at each boot",
		       module, module);
}

void check_nic_rdma(struct gdrcap_doctor *doctor)
{
	cards_check(doctor, rdma_look, rdma_remedy);
}

/* LINK_TYPE_P1 is that of function 0, P2 that of function 1. */
static void layer_remedy(struct gdrcap_doctor *doctor, const struct machine_card *card,
			 enum gdrcap_health verdict)
{
	const struct machine *machine = doctor_machine(doctor);
	const char *address = card->pci.address;
	const int port = strcmp(address + strlen(address) - 2, ".1") == 0 ? 2 : 1;

	if (verdict == GDRCAP_HEALTH_UNKNOWN && card->rdma[0]) {
		finding_remedy(doctor, "cat /sys/class/infiniband/%s/ports/1/link_layer",
			       card->rdma);
		return;
	}
	if (verdict == GDRCAP_HEALTH_UNKNOWN) {
		finding_remedy(doctor, "cat /sys/class/net/%s/type  # 1: Ethernet, 32: InfiniBand",
			       card->interface);
		return;
	}
	if (card->pci.virtual_function || strstr(card->model, " VF")) {
		finding_remedy(doctor, "# a virtual function's link layer is its physical "
				       "function's: set LINK_TYPE there, on the host");
		return;
	}
	if (!tree_exists(doctor_tree(doctor), "/usr/bin/mstconfig"))
		finding_install(doctor, PACKAGE_MSTFLINT);
	finding_remedy(doctor, "sudo mstconfig -d %s set LINK_TYPE_P%d=2  # Ethernet", address,
		       port);
	finding_remedy(doctor, "sudo mstfwreset -d %s reset  # or reboot", address);
	if (machine->virtual_machine[0])
		finding_remedy(doctor, "# where that is refused: on the host, or not at all in a "
				       "rented machine");
}

void check_nic_link_layer(struct gdrcap_doctor *doctor)
{
	cards_check(doctor, layer_look, layer_remedy);
}

static void link_remedy(struct gdrcap_doctor *doctor, const struct machine_card *card,
			enum gdrcap_health verdict)
{
	const char *interface = card->interface;

	if (!interface[0]) {
		finding_remedy(doctor,
			       "rdma link show %s/1  # its interface is in another network "
			       "namespace",
			       card->rdma);
		return;
	}
	if (verdict == GDRCAP_HEALTH_UNKNOWN) {
		finding_remedy(doctor, "sudo ip link set dev %s up", interface);
		finding_remedy(doctor, "cat /sys/class/net/%s/carrier  # some seconds later; 1: up",
			       interface);
		return;
	}
	finding_remedy(doctor, "# plug in cable and transceiver, and bring the other end up");
	if (!tree_exists(doctor_tree(doctor), "/usr/sbin/ethtool"))
		finding_install(doctor, PACKAGE_ETHTOOL);
	finding_remedy(doctor, "sudo ethtool %s  # \"Link detected\", and why not", interface);
	finding_remedy(doctor, "sudo ethtool -m %s  # is a transceiver seen?", interface);
}

void check_nic_link(struct gdrcap_doctor *doctor)
{
	cards_check(doctor, link_look, link_remedy);
}
