/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor says of the way between card and GPU: made-up machines, each with one fault. */
#include "doctor_tree.h"

#define PCI "/sys/bus/pci/devices"
#define CARD "0000:3d:00.0"
#define GPU "0000:3e:00.0"
#define PAIR CARD " " GPU

/* Root port, a switch's upper port, its lower ports. */
#define ROOT_PORT "0000:3a:00.0"
#define UPPER "0000:3b:00.0"
#define LOWER_CARD "0000:3c:00.0"
#define LOWER_GPU "0000:3c:01.0"
#define SWITCH "pci0000:3a/" ROOT_PORT "/" UPPER "/"

static void one_switch(void)
{
	made_card(SWITCH LOWER_CARD "/" CARD, "ens1f0np0", "mlx5_0");
	made_gpu(SWITCH LOWER_GPU "/" GPU);
}

/* A card and a GPU right below root ports of these host bridges. */
static void two_roots(const char *card_node, const char *gpu_node)
{
	made_card("pci0000:3a/0000:3a:01.0/" CARD, "ens1f0np0", "mlx5_0");
	made_gpu("pci0000:5a/0000:5a:01.0/" GPU);
	made_file(card_node, PCI "/" CARD "/numa_node");
	made_file(gpu_node, PCI "/" GPU "/numa_node");
}

static void virtual_machine(void)
{
	made_file("KVM", "/sys/class/dmi/id/product_name");
	made_file("QEMU", "/sys/class/dmi/id/sys_vendor");
}

/* ---- the whole ---- */

static void healthy(void **state)
{
	static const char *const bridges[] = { LOWER_CARD, LOWER_GPU };
	uint8_t config[4096];

	one_switch();
	made_config_fill(config, 0);
	config[MADE_EXPRESS + 9] = 0x59;
	made_config(CARD, config, sizeof(config));
	made_examine();
	made_expect("pcie-topology", PAIR, OK, ": PIX", "");
	for (int i = 0; i < 2; i++)
		made_expect("pcie-acs", bridges[i], OK, "ACSCtl 0000", "");
	assert_int_equal(made_count("pcie-acs"), 2);
	made_expect("pcie-link", CARD, OK, "16 lanes of 16 GT/s", "");
	made_expect("pcie-link", GPU, OK, NULL, "");
	made_expect("pcie-link", UPPER, OK, ROOT_PORT " above it", "");
	/* the switch's two ports have no link between them, and a port no other than its end */
	assert_int_equal(made_count("pcie-link"), 3);
	made_expect("pcie-payload", CARD, OK, CARD ": 256 of 512", "");
	made_expect("pcie-payload", GPU, OK, NULL, "");
	made_expect("pcie-read-request", CARD, OK, "MaxReadReq 4096 bytes", "");
	made_expect("pcie-bar1", GPU, OK, "line 2, BAR1: 65536 MiB", "");
	made_expect("pcie-iommu", CARD, OK, "/sys/class/iommu: empty", "");
	made_expect("pcie-iommu", GPU, OK, NULL, "");
}

/* ---- topology ---- */

static void topology_ways(void **state)
{
	two_roots("0", "0");
	made_examine();
	made_expect("pcie-topology", PAIR, WARN, ": NODE", "move card " CARD " or GPU " GPU);
	made_file("1", PCI "/" GPU "/numa_node");
	made_examine();
	made_expect("pcie-topology", PAIR, FAIL, "node 1: SYS", "CPU socket");
	/* slow, but able */
	assert_int_equal(made_find("pcie-topology", PAIR)->check->severity, SEVERITY_SLOW);
	made_expect("pcie-acs", "", NONE, "no bridge", "");
	/* its host may have made that up */
	virtual_machine();
	made_examine();
	made_expect("pcie-topology", PAIR, UNKNOWN, NULL, "nvidia-smi topo -m  # on the host");
}

static void topology_host_bridge(void **state)
{
	made_card("pci0000:3a/0000:3a:01.0/" CARD, "ens1f0np0", "mlx5_0");
	made_gpu("pci0000:3a/0000:3a:02.0/" GPU);
	made_examine();
	made_expect("pcie-topology", PAIR, WARN, ": PHB", "root complex");
}

static void topology_unknown(void **state)
{
	two_roots("-1", "-1");
	made_file("1", "/sys/devices/system/node/node0/distance");
	made_file("1", "/sys/devices/system/node/node1/distance");
	made_examine();
	made_expect("pcie-topology", PAIR, UNKNOWN, "unknown", "nvidia-smi topo -m");
}

/* The far GPU of a card that has a near one is nobody's trouble. */
static void topology_nearest(void **state)
{
	one_switch();
	made_gpu("pci0000:5a/0000:5a:01.0/0000:5b:00.0");
	made_file("1", PCI "/0000:5b:00.0/numa_node");
	made_examine();
	made_expect("pcie-topology", PAIR, OK, NULL, "");
	made_expect("pcie-topology", CARD " 0000:5b:00.0", NONE,
		    "SYS; GPU " GPU " is nearer to this card: PIX", "");
	assert_int_equal(made_count("pcie-topology"), 2);
}

static void topology_none(void **state)
{
	made_card(SWITCH LOWER_CARD "/" CARD, "ens1f0np0", "mlx5_0");
	made_examine();
	made_expect("pcie-topology", "", NONE, NULL, "");
	made_expect("pcie-acs", "", NONE, NULL, "");
	made_expect("pcie-bar1", "", NONE, NULL, "");
}

/* ---- ACS ---- */

static void acs_on(void **state)
{
	uint8_t config[4096];

	one_switch();
	made_config_fill(config, 1);
	config[MADE_ACS + 6] = 0x1d;
	made_config(LOWER_GPU, config, sizeof(config));
	/* above the point where the way turns it does no harm */
	made_config(ROOT_PORT, config, sizeof(config));
	made_examine();
	made_expect("pcie-acs", LOWER_GPU, FAIL,
		    "ACSCtl 001d (SrcValid+ ReqRedir+ CmpltRedir+ EgressCtrl-)",
		    "sudo setpci -s " LOWER_GPU " ECAP_ACS+0x6.w=0000");
	made_expect("pcie-acs", LOWER_GPU, FAIL, NULL, "pci=disable_acs_redir=" LOWER_GPU);
	made_expect("pcie-acs", LOWER_GPU, FAIL, NULL, "sudo apt-get install pciutils");
	made_expect("pcie-acs", LOWER_CARD, OK, NULL, "");
	assert_int_equal(made_count("pcie-acs"), 2);
	/* each of the three bits that turn packets, and one that does not */
	for (unsigned int bit = 0; bit < 6; bit++) {
		config[MADE_ACS + 6] = (uint8_t)(1u << bit);
		made_config(LOWER_GPU, config, sizeof(config));
		made_examine();
		made_expect("pcie-acs", LOWER_GPU, bit == 2 || bit == 3 || bit == 5 ? FAIL : OK,
			    NULL, NULL);
	}
	virtual_machine();
	made_examine();
	made_expect("pcie-acs", "", NONE, "its host's", "");
}

static void acs_unreadable(void **state)
{
	uint8_t config[4096];

	one_switch();
	made_config_fill(config, 1);
	made_config(LOWER_CARD, config, 64);
	made_config(LOWER_GPU, config, 256);
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, UNKNOWN, "64 bytes, run as root",
		    "sudo lspci -s " LOWER_CARD " -vvv | grep ACSCtl");
	made_expect("pcie-acs", LOWER_GPU, UNKNOWN, "256 bytes", NULL);
	/* Of a length that the kernel does not give, without a word of capabilities. */
	config[0x06] = 0;
	made_config(LOWER_GPU, config, 100);
	made_file("", "/.dockerenv");
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, UNKNOWN, "64 bytes, run as root, on the host", NULL);
	made_expect("pcie-payload", CARD, UNKNOWN, LOWER_CARD "/config: run as root, on the host",
		    NULL);
	made_expect("pcie-acs", LOWER_GPU, UNKNOWN, "100 bytes, in which", NULL);
	made_remove("/.dockerenv");
	made_unreadable(PCI "/" LOWER_CARD "/config");
	made_config(LOWER_GPU, config, 0);
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, UNKNOWN, "0 bytes, run as root", NULL);
	made_expect("pcie-acs", LOWER_GPU, UNKNOWN, "0 bytes", NULL);
	made_remove(PCI "/" LOWER_GPU "/config");
	made_examine();
	made_expect("pcie-acs", LOWER_GPU, UNKNOWN, "No such file", NULL);
}

static void acs_lists(void **state)
{
	uint8_t config[4096];

	one_switch();
	/* none at all */
	made_config_fill(config, 1);
	memset(config + 0x100, 0, 4);
	made_config(LOWER_CARD, config, sizeof(config));
	memset(config + 0x100, 0xff, 4);
	made_config(LOWER_GPU, config, sizeof(config));
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, OK, "no ACS capability", "");
	made_expect("pcie-acs", LOWER_GPU, OK, "no ACS capability", "");
	/* a loop, and one that ends in the first 256 bytes */
	memcpy(config + 0x100, (uint8_t[]){ 0x01, 0x00, 0x02, 0x10 }, 4);
	made_config(LOWER_CARD, config, sizeof(config));
	memcpy(config + 0x100, (uint8_t[]){ 0x01, 0x00, 0x02, 0x08 }, 4);
	made_config(LOWER_GPU, config, sizeof(config));
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, UNKNOWN, "cannot be found", NULL);
	made_expect("pcie-acs", LOWER_GPU, UNKNOWN, "cannot be found", NULL);
	/* ACS whose control word was cut off */
	made_config_fill(config, 1);
	made_config(LOWER_CARD, config, MADE_ACS + 6);
	/* conventional PCI */
	config[0x06] = 0;
	made_config(LOWER_GPU, config, 256);
	made_examine();
	made_expect("pcie-acs", LOWER_CARD, UNKNOWN, NULL, NULL);
	made_expect("pcie-acs", LOWER_GPU, OK, "no ACS capability", "");
}

/* ---- link ---- */

static void link_narrow(void **state)
{
	one_switch();
	made_file("8", PCI "/" CARD "/current_link_width");
	made_examine();
	made_expect("pcie-link", CARD, WARN, "8 lanes of 16 GT/s, at most 16 of 16 GT/s",
		    "# seat the card again");
	/* the slot has no more */
	made_file("8", PCI "/" LOWER_CARD "/max_link_width");
	made_examine();
	made_expect("pcie-link", CARD, WARN, LOWER_CARD " above it: at most 8",
		    "its slot can no more");
	made_file("8", PCI "/" GPU "/current_link_width");
	made_file("8", PCI "/" UPPER "/current_link_width");
	made_examine();
	made_expect("pcie-link", GPU, WARN, NULL, "sudo lspci -s " GPU);
	made_expect("pcie-link", UPPER, WARN, NULL, "sudo lspci -s " UPPER);
}

/* Two bridges are no switch: the only link that is known to be one is the function's own. */
static void link_two_bridges(void **state)
{
	made_card("pci0000:4a/0000:4a:00.0/0000:4b:00.0/0000:4c:00.0", "ens2f0np0", "mlx5_0");
	made_examine();
	made_expect("pcie-link", "0000:4c:00.0", OK, "0000:4b:00.0 above it", "");
	assert_int_equal(made_count("pcie-link"), 1);
}

static void link_slow(void **state)
{
	one_switch();
	made_file("8.0 GT/s PCIe", PCI "/" CARD "/current_link_speed");
	made_file("2.5 GT/s PCIe", PCI "/" GPU "/current_link_speed");
	made_examine();
	made_expect("pcie-link", CARD, WARN, "16 lanes of 8 GT/s", "# seat the card again");
	made_expect("pcie-link", GPU, OK, "a GPU that idles", "");
	made_file("8 GT/s", PCI "/" LOWER_CARD "/max_link_speed");
	made_examine();
	made_expect("pcie-link", CARD, WARN, NULL, "its slot can no more");
}

static void link_unreadable(void **state)
{
	one_switch();
	made_file("0", PCI "/" CARD "/current_link_width");
	made_file("255", PCI "/" GPU "/max_link_width");
	made_remove(PCI "/" UPPER "/current_link_width");
	made_examine();
	made_expect("pcie-link", CARD, UNKNOWN, "not known", "sudo lspci -s " CARD " -vv");
	made_expect("pcie-link", GPU, UNKNOWN, NULL, NULL);
	made_expect("pcie-link", UPPER, UNKNOWN, NULL, NULL);
	virtual_machine();
	made_examine();
	made_expect("pcie-link", CARD, UNKNOWN, NULL, "# on the host");
}

/* ---- payload and read request ---- */

static void payload_sizes(void **state)
{
	uint8_t config[4096];

	one_switch();
	/* the GPU alone is set to 128 */
	made_config_fill(config, 0);
	config[MADE_EXPRESS + 8] = 0x1f;
	made_config(GPU, config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", CARD, OK, NULL, "");
	made_expect("pcie-payload", GPU, WARN, GPU ": 128 of 512; they differ",
		    "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&pci=pcie_bus_safe /' "
		    "/etc/default/grub && sudo update-grub");
	/* large, but not what the way to it is set to */
	config[MADE_EXPRESS + 8] = 0x5f;
	made_config(GPU, config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", GPU, WARN, GPU ": 512 of 512; they differ", NULL);
	config[MADE_EXPRESS + 8] = 0x1f;
	/* all of the way can no more */
	two_roots("0", "0");
	config[MADE_EXPRESS + 4] = 0;
	made_config("0000:5a:01.0", config, sizeof(config));
	made_gpu("pci0000:5a/0000:5a:01.0/0000:5b:00.0");
	made_config("0000:5a:01.0", config, sizeof(config));
	made_config("0000:5b:00.0", config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", "0000:5b:00.0", WARN, NULL, "no more than 128 bytes");
	virtual_machine();
	made_examine();
	made_expect("pcie-payload", CARD, NONE, "virtual machine", "");
	made_expect("pcie-read-request", CARD, NONE, "virtual machine", "");
}

static void payload_unreadable(void **state)
{
	uint8_t config[4096];

	one_switch();
	made_config_fill(config, 1);
	made_config(UPPER, config, 64);
	made_examine();
	made_expect("pcie-payload", CARD, UNKNOWN, UPPER "/config: run as root",
		    "sudo lspci -s " UPPER " -vv | grep MaxPayload");
	/* reserved sizes */
	config[MADE_EXPRESS + 8] = 0xff;
	made_config(UPPER, config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", CARD, UNKNOWN, "makes no sense", NULL);
	/* a list of capabilities that never ends */
	config[0x41] = 0x40;
	made_config(UPPER, config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", CARD, UNKNOWN, "makes no sense", NULL);
	config[0x06] = 0;
	made_config(UPPER, config, sizeof(config));
	made_examine();
	made_expect("pcie-payload", CARD, UNKNOWN, "without PCI Express", NULL);
}

/* The command keeps all bits but the size, and never writes the one that resets the function. */
static void read_request_command(void **state)
{
	uint8_t config[4096];

	one_switch();
	made_examine();
	made_expect("pcie-read-request", CARD, WARN, "DevCtl 293f, MaxReadReq 512 bytes",
		    "sudo setpci -s " CARD " CAP_EXP+8.w=593f");
	made_config_fill(config, 0);
	config[MADE_EXPRESS + 9] = 0xb9;
	made_config(CARD, config, sizeof(config));
	made_file("", "/usr/bin/setpci");
	made_examine();
	made_expect("pcie-read-request", CARD, WARN, "MaxReadReq 1024",
		    "sudo setpci -s " CARD " CAP_EXP+8.w=593f");
	assert_null(strstr(made_find("pcie-read-request", CARD)->remedy, "install"));
	made_config(CARD, config, 64);
	made_examine();
	made_expect("pcie-read-request", CARD, UNKNOWN, "run as root",
		    "sudo lspci -s " CARD " -vv | grep MaxReadReq");
	made_config_fill(config, 0);
	config[MADE_EXPRESS + 9] = 0x60;
	made_config(CARD, config, sizeof(config));
	made_examine();
	made_expect("pcie-read-request", CARD, UNKNOWN, "makes no sense", NULL);
}

/* ---- BAR1 ---- */

static void bar1_small(void **state)
{
	one_switch();
	made_file("0x00000000a4000000 0x00000000a4ffffff 0x0000000000040200\n"
		  "0x0000207000000000 0x000020700fffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000",
		  PCI "/" GPU "/resource");
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, "line 2, BAR1: 256 MiB", "Above 4G Decoding");
	made_expect("pcie-bar1", GPU, WARN, NULL, "sudo update-initramfs -u");
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, NULL, "sudo dracut --force");
	virtual_machine();
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, NULL, "# the host of this virtual machine");
}

/* Since Hopper BAR0 has 64 bits and takes two lines. */
static void bar1_of_hopper(void **state)
{
	one_switch();
	made_file("0x0000026042000000 0x0000026042ffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		  "0x0000024000000000 0x0000025fffffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		  "0x0000026040000000 0x0000026041ffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000",
		  PCI "/" GPU "/resource");
	made_examine();
	made_expect("pcie-bar1", GPU, OK, "line 3, BAR1: 131072 MiB", "");
}

static void bar1_without_addresses(void **state)
{
	static const char *const lines[] = {
		"0x0000000000000000 0x0000000000000000 0x0000000000000000",
		"0x0000000000000000 0x0000000fffffffff 0x000000002014220c",
		"0x0000207000000000 0x0000207fffffffff 0x000000002014220c",
	};
	char text[256];

	one_switch();
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text),
			 "0x00000000a4000000 0x00000000a4ffffff 0x0000000000040200\n%s\n",
			 lines[i]);
		made_file(text, PCI "/" GPU "/resource");
		made_examine();
		made_expect("pcie-bar1", GPU, FAIL, "no addresses", "Above 4G Decoding");
	}
}

static void bar1_full(void **state)
{
	one_switch();
	made_fact("1", "nvml/count");
	made_fact(GPU, "nvml/0/pci");
	made_fact("1048576", "nvml/0/bar1_used");
	made_examine();
	made_expect("pcie-bar1", GPU, OK, "bar1_used: 1 MiB", "");
	/* all but 200 MiB of 64 GiB */
	made_fact("68509761536", "nvml/0/bar1_used");
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, NULL, "nvidia-smi -i " GPU);
	made_fact("9999999999999999999", "nvml/0/bar1_used");
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, NULL, NULL);
	/* the driver knows best how large it is */
	made_fact("0", "nvml/0/bar1_used");
	made_fact("268435456", "nvml/0/bar1_total");
	made_examine();
	made_expect("pcie-bar1", GPU, WARN, "65536 MiB; nvml/0/bar1_total: 256 MiB",
		    "Above 4G Decoding");
}

static void bar1_unreadable(void **state)
{
	static const char *const texts[] = {
		"",
		"yes",
		"0x1 0x2\n0x3",
		"0x0000000000000000 0x0000000000000000 0x0000000000000000",
		"0x00000000a4000000 0x00000000a4ffffff 0x0000000000040200",
	};

	one_switch();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		made_file(texts[i], PCI "/" GPU "/resource");
		made_examine();
		made_expect("pcie-bar1", GPU, UNKNOWN, "makes no sense",
			    "nvidia-smi -i " GPU " -q -d MEMORY");
	}
	made_unreadable(PCI "/" GPU "/resource");
	made_examine();
	made_expect("pcie-bar1", GPU, UNKNOWN, "Permission denied", NULL);
}

/* ---- IOMMU ---- */

static void iommu_translating(void **state)
{
	one_switch();
	made_folder("/sys/class/iommu/dmar0");
	made_file("BOOT_IMAGE=/vmlinuz secret=42 intel_iommu=on quiet", "/proc/cmdline");
	made_iommu(CARD, "7", "DMA-FQ");
	made_iommu(GPU, "8", "DMA");
	made_examine();
	made_expect("pcie-iommu", CARD, FAIL,
		    "iommu_group/type: DMA-FQ; /sys/class/iommu: dmar0; /proc/cmdline: "
		    "intel_iommu=on",
		    "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && "
		    "sudo update-grub");
	assert_null(strstr(made_find("pcie-iommu", CARD)->read, "secret"));
	/* the card is who addresses the other */
	made_expect("pcie-iommu", GPU, WARN, "type: DMA;", "sudo reboot");
	assert_int_equal(made_find("pcie-iommu", CARD)->check->severity, SEVERITY_FATAL);
	made_file("ID=\"rhel\"", "/etc/os-release");
	made_file("docker", "/run/systemd/container");
	made_examine();
	made_expect("pcie-iommu", CARD, FAIL, NULL,
		    "# on the host of this container:\n"
		    "sudo grubby --update-kernel=ALL --args='iommu=pt'");
	made_file("ID=gentoo", "/etc/os-release");
	made_examine();
	made_expect("pcie-iommu", CARD, FAIL, NULL, "# add iommu=pt to the kernel's arguments");
}

static void iommu_passing_on(void **state)
{
	one_switch();
	made_folder("/sys/class/iommu/dmar0");
	made_iommu(CARD, "7", "identity");
	made_iommu(GPU, "8", "identity");
	made_examine();
	made_expect("pcie-iommu", CARD, OK, "identity", "");
	made_expect("pcie-iommu", GPU, OK, "identity", "");
	/* of two cards one is enough */
	made_card("pci0000:4a/0000:4a:00.0/0000:4b:00.0", "ens2f0np0", "mlx5_2");
	made_iommu("0000:4b:00.0", "9", "DMA");
	made_examine();
	made_expect("pcie-iommu", "0000:4b:00.0", WARN, "DMA", NULL);
	assert_true(made_find("pcie-iommu", CARD)->verdict == OK);
}

/* Where it may work all the same, it is no reason to say that it cannot. */
static void iommu_elsewhere(void **state)
{
	one_switch();
	made_folder("/sys/class/iommu/smmu3.0x0000000011000000");
	made_iommu(CARD, "7", "DMA");
	made_iommu(GPU, "8", "DMA");
	made_examine();
	made_expect("pcie-iommu", CARD, WARN, "smmu3", "iommu.passthrough=1");
	made_remove("/sys/class/iommu/smmu3.0x0000000011000000");
	made_folder("/sys/class/iommu/dmar0");
	virtual_machine();
	made_examine();
	made_expect("pcie-iommu", CARD, WARN, "dmar0", "iommu=pt");
}

static void iommu_unreadable(void **state)
{
	one_switch();
	/* there is one, and nobody says what it does */
	made_folder("/sys/class/iommu/ivhd0");
	made_examine();
	made_expect("pcie-iommu", CARD, UNKNOWN, "type: not there; /sys/class/iommu: ivhd0",
		    "cat /sys/bus/pci/devices/" CARD "/iommu_group/type");
	made_iommu(CARD, "7", "perhaps");
	made_examine();
	made_expect("pcie-iommu", CARD, UNKNOWN, "perhaps", NULL);
	made_unreadable("/sys/kernel/iommu_groups/7/type");
	made_examine();
	made_expect("pcie-iommu", CARD, UNKNOWN, "Permission denied", NULL);
	made_remove("/sys/class/iommu");
	made_examine();
	made_expect("pcie-iommu", GPU, UNKNOWN, "/sys/class/iommu: No such file", NULL);
}

/* ---- noise ---- */

static void garbage(void **state)
{
	one_switch();
	made_gpu("pci0000:5a/0000:5a:01.0/0000:5b:00.0");
	made_folder("/sys/class/iommu/dmar0");
	made_iommu(CARD, "7", "DMA");
	for (unsigned int seed = 1; seed <= 20; seed++)
		made_garbage(seed);
	assert_int_equal(made_count("pcie-bar1"), 2);
}

/* Config spaces of noise whose heads make sense, so that lists are followed. */
static void garbage_config(void **state)
{
	static const char *const functions[] = {
		ROOT_PORT, UPPER, LOWER_CARD, LOWER_GPU, CARD, GPU
	};
	uint8_t config[4096];

	one_switch();
	srand(5);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
			const size_t bytes = (size_t)rand() % sizeof(config);

			for (size_t at = 0; at < sizeof(config); at++)
				config[at] = (uint8_t)rand();
			config[0x06] |= 0x10;
			made_config(functions[i], config, round % 2 ? sizeof(config) : bytes);
		}
		made_examine();
	}
	assert_int_equal(made_count("pcie-acs"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, made_setup, made_teardown)
	const struct CMUnitTest tests[] = {
		TEST(healthy),
		TEST(topology_ways),
		TEST(topology_host_bridge),
		TEST(topology_unknown),
		TEST(topology_nearest),
		TEST(topology_none),
		TEST(acs_on),
		TEST(acs_unreadable),
		TEST(acs_lists),
		TEST(link_narrow),
		TEST(link_two_bridges),
		TEST(link_slow),
		TEST(link_unreadable),
		TEST(payload_sizes),
		TEST(payload_unreadable),
		TEST(read_request_command),
		TEST(bar1_small),
		TEST(bar1_of_hopper),
		TEST(bar1_without_addresses),
		TEST(bar1_full),
		TEST(bar1_unreadable),
		TEST(iommu_translating),
		TEST(iommu_passing_on),
		TEST(iommu_elsewhere),
		TEST(iommu_unreadable),
		TEST(garbage),
		TEST(garbage_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
