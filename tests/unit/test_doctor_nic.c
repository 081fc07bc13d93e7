/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor says of cards: made-up machines, each with one thing wrong. */
#include "doctor_tree.h"

#define CARD "0000:3b:00.0"
#define OTHER "0000:3b:00.1"
#define PCI "/sys/bus/pci/devices"
#define NET "/sys/class/net/ens1f0np0"

static void one_card(void)
{
	made_card("pci0000:3a/0000:3a:00.0/" CARD, "ens1f0np0", "mlx5_0");
}

static void second_card(void)
{
	made_card("pci0000:3a/0000:3a:00.0/" OTHER, "ens1f1np1", "mlx5_1");
}

/* Such a failure makes the machine unable. */
static void fatal(const char *id, const char *subject)
{
	const struct finding *finding = made_find(id, subject);

	assert_int_equal(finding->verdict, FAIL);
	assert_int_equal(finding->check->severity, SEVERITY_FATAL);
	assert_false(doctor_able(made_doctor, NULL));
}

/* All of the group but what lies in the card only. */
static void healthy(void **state)
{
	static const char *const ids[] = { "nic-driver",  "nic-rdma",  "nic-link-layer",
					   "nic-link",	  "nic-model", "nic-function",
					   "nic-speed",	  "nic-mtu",   "nic-pause",
					   "nic-firmware" };

	one_card();
	made_examine();
	made_expect("nic-present", "", OK, CARD ": ConnectX-6 Dx", "");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		made_expect(ids[i], CARD, OK, NULL, "");
}

/* ---- present ---- */

static void present_none(void **state)
{
	made_examine();
	made_expect("nic-present", "", FAIL, "no ConnectX", "lspci -nn -d 15b3:");
	fatal("nic-present", "");
	/* the others have nothing to look at */
	made_expect("nic-driver", "", NONE, NULL, "");
	made_expect("nic-pause", "", NONE, NULL, "");
}

/* A ConnectX-3 is a card, but none for the mlx5 driver. */
static void present_other(void **state)
{
	const struct made_pci old = {
		"pci0000:3a/0000:3a:00.0/" CARD, "0x15b3", "0x1003", "0x020000", "mlx4_core", NULL
	};

	made_pci(&old);
	made_examine();
	made_expect("nic-present", "", FAIL, "15b3:1003", "ConnectX-5");
	made_expect("nic-model", CARD, NONE, "0x1003", "");
}

static void present_unreadable(void **state)
{
	made_remove("/sys/bus/pci");
	made_examine();
	made_expect("nic-present", "", UNKNOWN, "No such file", "lspci -nn -d 15b3:");
}

/* ---- driver ---- */

static void driver_none(void **state)
{
	one_card();
	made_remove(PCI "/" CARD "/driver");
	made_examine();
	made_expect("nic-driver", CARD, FAIL, "driver: none", "sudo modprobe mlx5_core");
	made_expect("nic-driver", CARD, FAIL, NULL,
		    "echo " CARD " | sudo tee /sys/bus/pci/drivers/mlx5_core/bind");
	made_expect("nic-rdma", CARD, NONE, NULL, "");
	fatal("nic-driver", CARD);
}

static void driver_vfio(void **state)
{
	one_card();
	made_folder("/sys/bus/pci/drivers/vfio-pci");
	made_link("/sys/bus/pci/drivers/vfio-pci", PCI "/" CARD "/driver");
	made_examine();
	made_expect("nic-driver", CARD, FAIL, "vfio-pci",
		    "echo " CARD " | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind");
	made_expect("nic-driver", CARD, FAIL, NULL,
		    "echo | sudo tee /sys/bus/pci/devices/" CARD "/driver_override");
}

/* A card that is given away harms nobody while there is another. */
static void driver_another(void **state)
{
	one_card();
	second_card();
	made_folder("/sys/bus/pci/drivers/vfio-pci");
	made_link("/sys/bus/pci/drivers/vfio-pci", PCI "/" CARD "/driver");
	made_examine();
	made_expect("nic-driver", CARD, WARN, "another card is fit", "vfio-pci/unbind");
	made_expect("nic-driver", OTHER, OK, NULL, "");
	/* ... but one whose link is down is none */
	made_file("0", "/sys/class/net/ens1f1np1/carrier");
	made_examine();
	made_expect("nic-driver", CARD, FAIL, NULL, NULL);
	made_expect("nic-link", OTHER, FAIL, NULL, NULL);
}

/* ---- RDMA device ---- */

static void rdma_none(void **state)
{
	one_card();
	made_remove(PCI "/" CARD "/infiniband");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, "infiniband: none", "sudo modprobe mlx5_ib");
	assert_null(strstr(made_find("nic-rdma", CARD)->remedy, "apt-get"));
	made_file("ID=ubuntu\nPRETTY_NAME=\"Ubuntu 22.04\"", "/etc/os-release");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, NULL,
		    "sudo apt-get install linux-modules-extra-6.1.0-18-amd64");
	made_file("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "/etc/os-release");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, NULL, "sudo dnf install kernel-modules-6.1.0-18-amd64");
	/* its link layer is then known from the interface */
	made_expect("nic-link-layer", CARD, OK, "ens1f0np0/type: 1", "");
	made_folder("/sys/module/mlx5_ib");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, NULL, "rdma system show");
}

static void rdma_no_uverbs(void **state)
{
	one_card();
	made_remove("/sys/class/infiniband_verbs");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, "infiniband_verbs: No such file",
		    "sudo modprobe ib_uverbs");
	made_file("mlx5_7", "/sys/class/infiniband_verbs/uverbs0/ibdev");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, "none of it", NULL);
	/* One that does not say whose it is may be this card's. */
	made_file("\xff\x01", "/sys/class/infiniband_verbs/uverbs1/ibdev");
	made_file("6", "/sys/class/infiniband_verbs/abi_version");
	made_examine();
	made_expect("nic-rdma", CARD, UNKNOWN, "whose ibdev cannot be read",
		    "/sys/class/infiniband_verbs");
	made_remove("/sys/class/infiniband_verbs/uverbs1");
	made_examine();
	made_expect("nic-rdma", CARD, FAIL, "none of it", NULL);
}

static void rdma_unreadable(void **state)
{
	one_card();
	made_unreadable("/sys/class/infiniband_verbs");
	made_examine();
	made_expect("nic-rdma", CARD, UNKNOWN, "Permission denied", "sudo ls");
}

/* ---- link layer ---- */

static void layer_infiniband(void **state)
{
	one_card();
	made_file("InfiniBand", "/sys/class/infiniband/mlx5_0/ports/1/link_layer");
	made_examine();
	made_expect("nic-link-layer", CARD, FAIL, "link_layer: InfiniBand",
		    "sudo mstconfig -d " CARD " set LINK_TYPE_P1=2");
	made_expect("nic-link-layer", CARD, FAIL, NULL, "sudo apt-get install mstflint");
	fatal("nic-link-layer", CARD);
	/* function 1 is port 2; and with an Ethernet port the machine is able */
	second_card();
	made_file("InfiniBand", "/sys/class/infiniband/mlx5_1/ports/1/link_layer");
	made_file("Ethernet", "/sys/class/infiniband/mlx5_0/ports/1/link_layer");
	made_file("", "/usr/bin/mstconfig");
	made_examine();
	made_expect("nic-link-layer", OTHER, WARN, NULL,
		    "sudo mstconfig -d " OTHER " set LINK_TYPE_P2=2");
	assert_null(strstr(made_find("nic-link-layer", OTHER)->remedy, "install"));
}

static void layer_unreadable(void **state)
{
	one_card();
	made_remove("/sys/class/infiniband/mlx5_0/ports/1/link_layer");
	made_examine();
	made_expect("nic-link-layer", CARD, UNKNOWN, "No such file",
		    "cat /sys/class/infiniband/mlx5_0/ports/1/link_layer");
	made_file("Token Ring", "/sys/class/infiniband/mlx5_0/ports/1/link_layer");
	made_examine();
	made_expect("nic-link-layer", CARD, UNKNOWN, "Token Ring", NULL);
}

static void layer_of_virtual(void **state)
{
	one_card();
	second_card();
	made_link(PCI "/" CARD, PCI "/" OTHER "/physfn");
	made_file("InfiniBand", "/sys/class/infiniband/mlx5_1/ports/1/link_layer");
	made_examine();
	made_expect("nic-link-layer", OTHER, WARN, NULL, "physical function");
	assert_null(strstr(made_find("nic-link-layer", OTHER)->remedy, "mstconfig"));
}

/* ---- link ---- */

static void link_no_carrier(void **state)
{
	one_card();
	made_file("0", NET "/carrier");
	made_file("down", NET "/operstate");
	made_examine();
	made_expect("nic-link", CARD, FAIL, "carrier: 0; operstate: down",
		    "sudo ethtool ens1f0np0");
	made_expect("nic-link", CARD, FAIL, NULL, "sudo apt-get install ethtool");
	fatal("nic-link", CARD);
	second_card();
	made_examine();
	made_expect("nic-link", CARD, WARN, NULL, NULL);
	made_expect("nic-link", OTHER, OK, NULL, "");
}

/* Its carrier cannot be read then: the kernel says EINVAL. */
static void link_interface_down(void **state)
{
	one_card();
	made_remove(NET "/carrier");
	made_file("down", NET "/operstate");
	made_file("0x1002", NET "/flags");
	made_examine();
	made_expect("nic-link", CARD, UNKNOWN, "the interface is down",
		    "sudo ip link set dev ens1f0np0 up");
	/* up, and yet no carrier to be read */
	made_file("0x1003", NET "/flags");
	made_examine();
	made_expect("nic-link", CARD, FAIL, NULL, NULL);
	made_file("up", NET "/operstate");
	made_examine();
	made_expect("nic-link", CARD, OK, NULL, "");
	made_file("perhaps", NET "/operstate");
	made_examine();
	made_expect("nic-link", CARD, UNKNOWN, "perhaps", "cat /sys/class/net/ens1f0np0/carrier");
}

/* In another network namespace the RDMA port says how it is. */
static void link_no_interface(void **state)
{
	one_card();
	made_remove(PCI "/" CARD "/net");
	made_examine();
	made_expect("nic-link", CARD, OK, "state: 4: ACTIVE", "");
	made_expect("nic-mtu", "", NONE, NULL, "");
	made_file("1: DOWN", "/sys/class/infiniband/mlx5_0/ports/1/state");
	made_examine();
	made_expect("nic-link", CARD, FAIL, "1: DOWN", "rdma link show mlx5_0/1");
	made_file("2: INIT", "/sys/class/infiniband/mlx5_0/ports/1/state");
	made_examine();
	made_expect("nic-link", CARD, UNKNOWN, NULL, "rdma link show mlx5_0/1");
}

/* ---- model and function ---- */

static void model_by_id(void **state)
{
	one_card();
	made_file("0x1015", PCI "/" CARD "/device");
	made_examine();
	made_expect("nic-model", CARD, WARN, "cannot send", "ConnectX-5 or later");
	made_file("0x1017", PCI "/" CARD "/device");
	made_examine();
	made_expect("nic-model", CARD, OK, "dv_flow_en=2", "");
	made_file("0xa2d6", PCI "/" CARD "/device");
	made_examine();
	made_expect("nic-model", CARD, OK, "BlueField-2", "");
	assert_null(strstr(made_find("nic-model", CARD)->read, "dv_flow_en"));
}

static void function_virtual(void **state)
{
	one_card();
	made_card("pci0000:3a/0000:3a:00.0/0000:3b:00.4", "ens1f0v2", "mlx5_2");
	made_file("0x101e", PCI "/0000:3b:00.4/device");
	made_link(PCI "/" CARD, PCI "/0000:3b:00.4/physfn");
	made_link(PCI "/0000:3b:00.3", PCI "/" CARD "/virtfn1");
	made_link(PCI "/0000:3b:00.4", PCI "/" CARD "/virtfn2");
	made_examine();
	made_expect("nic-function", "0000:3b:00.4", WARN, "physfn: " CARD,
		    "sudo ip link set dev ens1f0np0 vf 2 trust on");
	made_expect("nic-function", CARD, OK, NULL, "");
	/* in a virtual machine its physical function is not seen */
	made_remove(PCI "/0000:3b:00.4/physfn");
	made_examine();
	made_expect("nic-function", "0000:3b:00.4", WARN, "VF", "# on the host");
	/* options of the firmware are the physical function's */
	made_expect("nic-firmware-options", CARD, UNKNOWN, NULL, NULL);
	assert_int_equal(made_count("nic-firmware-options"), 1);
}

static void function_representors(void **state)
{
	one_card();
	made_file("p0", PCI "/" CARD "/net/ens1f0np0/phys_port_name");
	made_examine();
	made_expect("nic-function", CARD, OK, "0 representors", "");
	made_file("pf0vf0", PCI "/" CARD "/net/ens1f0npf0vf0/phys_port_name");
	made_file("c1pf0sf3", PCI "/" CARD "/net/ens1f0npf0sf3/phys_port_name");
	made_examine();
	made_expect("nic-function", CARD, WARN, "2 representors",
		    "sudo devlink dev eswitch show pci/" CARD);
}

static void function_unreadable(void **state)
{
	one_card();
	made_unreadable(PCI "/" CARD "/net");
	made_examine();
	made_expect("nic-function", CARD, UNKNOWN, "Permission denied",
		    "sudo devlink dev eswitch show pci/" CARD);
}

/* ---- speed, MTU, pause ---- */

static void speed_over_pcie(void **state)
{
	one_card();
	made_file("200000", NET "/speed");
	made_examine();
	/* 16 GT/s x 16 x 128/130 */
	made_expect("nic-speed", CARD, OK, "at most 252061 Mbit/s", "");
	made_file("8.0 GT/s PCIe", PCI "/" CARD "/current_link_speed");
	made_examine();
	made_expect("nic-speed", CARD, WARN, "at most 126030 Mbit/s", "slot");
	/* older generations spend two bits in ten */
	made_file("5 GT/s", PCI "/" CARD "/current_link_speed");
	made_file("8", PCI "/" CARD "/current_link_width");
	made_examine();
	made_expect("nic-speed", CARD, WARN, "at most 32000 Mbit/s", NULL);
	made_file("Unknown", PCI "/" CARD "/current_link_speed");
	made_examine();
	made_expect("nic-speed", CARD, OK, "200000 Mbit/s", "");
}

static void speed_unreadable(void **state)
{
	one_card();
	made_file("-1", NET "/speed");
	made_examine();
	made_expect("nic-speed", CARD, UNKNOWN, "link is down", "ethtool ens1f0np0");
	made_file("99999999999", NET "/speed");
	made_examine();
	made_expect("nic-speed", CARD, UNKNOWN, NULL, NULL);
}

static void mtu_values(void **state)
{
	one_card();
	made_file("1500", NET "/mtu");
	made_examine();
	made_expect("nic-mtu", CARD, OK, "mtu: 1500", "# for frames over 1518 bytes");
	made_file("576", NET "/mtu");
	made_examine();
	made_expect("nic-mtu", CARD, WARN, "mtu: 576", "sudo ip link set dev ens1f0np0 mtu 1500");
	made_file("70000", NET "/mtu");
	made_examine();
	made_expect("nic-mtu", CARD, UNKNOWN, NULL, "ip link show dev ens1f0np0");
	made_remove(NET "/mtu");
	made_examine();
	made_expect("nic-mtu", CARD, UNKNOWN, "No such file", "ip link show dev ens1f0np0");
}

static void pause_values(void **state)
{
	one_card();
	made_fact("rx on, tx off, autonegotiated off", "ethtool/ens1f0np0/pause");
	made_fact("12", "ethtool/ens1f0np0/stat/tx_pause_ctrl_phy");
	made_examine();
	made_expect("nic-pause", CARD, WARN, "rx on, tx off; tx_pause_ctrl_phy: 12",
		    "sudo ethtool -A ens1f0np0 rx off tx off");
	made_fact("rx off, tx on, autonegotiated on", "ethtool/ens1f0np0/pause");
	made_examine();
	made_expect("nic-pause", CARD, WARN, "rx off, tx on",
		    "sudo ethtool -A ens1f0np0 autoneg off rx off tx off");
	made_fact("rx maybe", "ethtool/ens1f0np0/pause");
	made_examine();
	made_expect("nic-pause", CARD, UNKNOWN, "rx maybe", "ethtool -a ens1f0np0");
	made_remove("/gdrcap/facts/ethtool");
	made_examine();
	made_expect("nic-pause", CARD, UNKNOWN, "not asked", "ethtool -a ens1f0np0");
}

/* ---- firmware ---- */

static void firmware_versions(void **state)
{
	one_card();
	made_file("22.27.0089", "/sys/class/infiniband/mlx5_0/fw_ver");
	made_examine();
	made_expect("nic-firmware", CARD, WARN, "22.27.0089, older", "sudo mstflint -d " CARD " q");
	made_file("22.27.0090", "/sys/class/infiniband/mlx5_0/fw_ver");
	made_examine();
	made_expect("nic-firmware", CARD, OK, NULL, "");
	made_file("22.26.9999", "/sys/class/infiniband/mlx5_0/fw_ver");
	made_examine();
	made_expect("nic-firmware", CARD, WARN, NULL, NULL);
	/* a family that DPDK 22.11 sets no least version for */
	made_file("32.1.0001", "/sys/class/infiniband/mlx5_0/fw_ver");
	made_examine();
	made_expect("nic-firmware", CARD, OK, NULL, "");
	made_file("latest", "/sys/class/infiniband/mlx5_0/fw_ver");
	made_examine();
	made_expect("nic-firmware", CARD, UNKNOWN, "latest", "sudo mstflint -d " CARD " q");
	/* from ethtool where the RDMA device does not say */
	made_remove("/sys/class/infiniband/mlx5_0/fw_ver");
	made_fact("22.20.1000 (MT_0000000359)", "ethtool/ens1f0np0/firmware");
	made_examine();
	made_expect("nic-firmware", CARD, WARN, "ethtool -i ens1f0np0", NULL);
	made_remove("/gdrcap/facts/ethtool/ens1f0np0/firmware");
	made_examine();
	made_expect("nic-firmware", CARD, UNKNOWN, NULL, NULL);
}

static void firmware_options(void **state)
{
	one_card();
	made_examine();
	made_expect("nic-firmware-options", CARD, UNKNOWN, "REAL_TIME_CLOCK_ENABLE",
		    "sudo mstconfig -d " CARD " q CQE_COMPRESSION REAL_TIME_CLOCK_ENABLE");
	made_expect("nic-firmware-options", CARD, UNKNOWN, NULL, "sudo apt-get install mstflint");
}

/* ---- noise ---- */

/* A name that is to end in a command is none. */
static void hostile_name(void **state)
{
	const struct finding *finding;

	one_card();
	made_remove(PCI "/" CARD "/net");
	made_folder(PCI "/" CARD "/net/e;reboot");
	made_remove(PCI "/" CARD "/driver");
	made_folder("/sys/bus/pci/drivers/`reboot`");
	made_link("/sys/bus/pci/drivers/`reboot`", PCI "/" CARD "/driver");
	made_examine();
	for (finding = made_doctor->findings; finding < made_doctor->findings + made_doctor->count;
	     finding++) {
		assert_null(strstr(finding->remedy, ";reboot"));
		assert_null(strstr(finding->remedy, "`reboot`"));
	}
}

static void garbage(void **state)
{
	one_card();
	second_card();
	for (unsigned int seed = 1; seed <= 20; seed++)
		made_garbage(seed);
	assert_int_equal(made_count("nic-link"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_setup, made_teardown)
	const struct CMUnitTest tests[] = {
		TEST(healthy),
		TEST(present_none),
		TEST(present_other),
		TEST(present_unreadable),
		TEST(driver_none),
		TEST(driver_vfio),
		TEST(driver_another),
		TEST(rdma_none),
		TEST(rdma_no_uverbs),
		TEST(rdma_unreadable),
		TEST(layer_infiniband),
		TEST(layer_unreadable),
		TEST(layer_of_virtual),
		TEST(link_no_carrier),
		TEST(link_interface_down),
		TEST(link_no_interface),
		TEST(model_by_id),
		TEST(function_virtual),
		TEST(function_representors),
		TEST(function_unreadable),
		TEST(speed_over_pcie),
		TEST(speed_unreadable),
		TEST(mtu_values),
		TEST(pause_values),
		TEST(firmware_versions),
		TEST(firmware_options),
		TEST(hostile_name),
		TEST(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
