/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor's checks stand on: trees (hostile ones too), captures, the machine, pairs, the
 * configuration. The checks themselves have tests of their own. */
#include <fcntl.h>
#include <ftw.h>
#include <time.h>

#include "doctor_tree.h"

#define GPU_WAY "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0"
#define CARD_WAY "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0/0000:3e:00.0"
#define SECOND_WAY "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0/0000:3e:00.1"
#define FAR_WAY "pci0000:ae/0000:ae:00.0/0000:af:00.0"

static struct tree *made_tree(void)
{
	struct tree *tree = tree_open(made_root);

	assert_non_null(tree);
	assert_false(tree_live(tree));
	return tree;
}

/* ---- files ---- */

static void test_text(void **state)
{
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX], large[TREE_TEXT_MAX + 1];

	made_file("one\ntwo \t\n", "/a/b");
	assert_int_equal(tree_text(tree, text, "/a/%s", "b"), 0);
	assert_string_equal(text, "one\ntwo");
	made_bytes("\x1b[31m\0\xff\n", 8, "/a/b");
	assert_int_equal(tree_text(tree, text, "/a/b"), 0);
	assert_string_equal(text, "?[31m??");
	made_bytes("", 0, "/a/b");
	assert_int_equal(tree_text(tree, text, "/a/b"), 0);
	assert_string_equal(text, "");
	memset(large, 'x', sizeof(large));
	made_bytes(large, TREE_TEXT_MAX - 1, "/a/b");
	assert_int_equal(tree_text(tree, text, "/a/b"), 0);
	assert_int_equal(strlen(text), TREE_TEXT_MAX - 1);
	made_bytes(large, TREE_TEXT_MAX, "/a/b");
	assert_int_equal(tree_text(tree, text, "/a/b"), -EFBIG);
	assert_string_equal(text, "");
	assert_int_equal(tree_text(tree, text, "/a/none"), -ENOENT);
	assert_int_equal(tree_text(tree, text, "/a/b/c"), -ENOTDIR);
	assert_int_equal(tree_text(tree, text, "/a"), -EISDIR);
	assert_int_equal(tree_text(tree, text, "/a/%0300d", 1), -ENAMETOOLONG);
	assert_int_equal(tree_text(tree, text, "/%05000d", 1), -ENAMETOOLONG);
	tree_close(tree);
}

static void test_number(void **state)
{
	struct tree *tree = made_tree();
	uint64_t number = 7;

	made_file("0x10de", "/n");
	assert_int_equal(tree_number(tree, &number, 16, "/n"), 0);
	assert_int_equal(number, 0x10de);
	assert_int_equal(tree_number(tree, &number, 10, "/n"), -EINVAL);
	made_file("42", "/n");
	assert_int_equal(tree_number(tree, &number, 10, "/n"), 0);
	assert_int_equal(number, 42);
	for (size_t i = 0; i < 5; i++) {
		static const char *const none[] = { "-1", "", "4 2", "99999999999999999999",
						    "abc" };

		made_file(none[i], "/n");
		assert_int_equal(tree_number(tree, &number, 10, "/n"), -EINVAL);
	}
	tree_close(tree);
}

static void test_links(void **state)
{
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX], path[PATH_MAX];

	made_file("inside", "/etc/secret");
	made_link("/etc/secret", "/absolute");
	made_link("/etc/secret", "/a/b/absolute");
	made_link("../../../../../../etc/secret", "/a/b/relative");
	made_link("loop2", "/loop1");
	made_link("loop1", "/loop2");
	made_link("/etc/passwd", "/passwd");
	made_link("a/b", "/folder");
	assert_int_equal(tree_text(tree, text, "/absolute"), 0);
	assert_string_equal(text, "inside");
	assert_int_equal(tree_text(tree, text, "/folder/relative"), 0);
	assert_string_equal(text, "inside");
	assert_int_equal(tree_text(tree, text, "/folder/absolute"), 0);
	assert_string_equal(text, "inside");
	assert_int_equal(tree_text(tree, text, "/a/../../../etc/secret"), 0);
	assert_int_equal(tree_text(tree, text, "/loop1"), -ELOOP);
	assert_false(tree_exists(tree, "/loop1"));
	/* That of this machine is there. */
	assert_int_equal(tree_text(tree, text, "/passwd"), -ENOENT);
	assert_int_equal(tree_link(tree, path, sizeof(path), "/folder/relative"), 0);
	assert_string_equal(path, "/etc/secret");
	assert_int_equal(tree_link(tree, path, 5, "/folder/relative"), -ENAMETOOLONG);
	assert_int_equal(tree_find(tree, "/folder/none"), -ENOENT);
	assert_int_equal(tree_find(tree, "/etc/secret/below"), -ENOENT);
	tree_close(tree);
}

static void test_special_files(void **state)
{
	static const char *const words[] = { "x", NULL };
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX], path[PATH_MAX];
	char(*names)[64];

	/* Nobody writes into it: whoever opens it waits. */
	snprintf(path, sizeof(path), "%s/fifo", made_root);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(tree_text(tree, text, "/fifo"), -EINVAL);
	assert_int_equal(tree_grep(tree, "/fifo", words, text, sizeof(text)), -EINVAL);
	assert_int_equal(tree_list(tree, &names, "/fifo"), -ENOTDIR);
	free(names);
	assert_true(tree_exists(tree, "/fifo"));
	tree_close(tree);
}

static void test_list(void **state)
{
	struct tree *tree = made_tree();
	char(*names)[64];

	made_file("", "/f/b");
	made_file("", "/f/a");
	made_file("", "/f/.hidden");
	made_file("", "/f/%064d", 1);
	made_folder("/f/c");
	assert_int_equal(tree_list(tree, &names, "/f"), 3);
	assert_string_equal(names[0], "a");
	assert_string_equal(names[1], "b");
	assert_string_equal(names[2], "c");
	free(names);
	assert_int_equal(tree_list(tree, &names, "/none"), -ENOENT);
	free(names);
	tree_close(tree);
}

static void test_grep(void **state)
{
	static const char *const wanted[] = { "Cap", "Max", NULL };
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX], path[PATH_MAX], *large = malloc(300000);
	int fd;

	assert_non_null(large);
	made_file("Name: x\nCapEff: 1\nnone\nMax locked\x1b 7", "/status");
	assert_int_equal(tree_grep(tree, "/status", wanted, text, sizeof(text)), 2);
	assert_string_equal(text, "CapEff: 1\nMax locked? 7");
	/* As much as there is room for, whole lines. */
	assert_int_equal(tree_grep(tree, "/status", wanted, text, 12), 1);
	assert_string_equal(text, "CapEff: 1");
	/* The one that is wanted lies across pieces of reading; its neighbour has no end. */
	memset(large, '\0', 300000);
	memcpy(large + 65530, "\nCapEff: 2\n", 11);
	memset(large + 65541, 'y', 200000);
	made_bytes(large, 300000, "/large");
	assert_int_equal(tree_grep(tree, "/large", wanted, text, sizeof(text)), 1);
	assert_string_equal(text, "CapEff: 2");
	free(large);
	/* A hundred gigabytes of nothing. */
	snprintf(path, sizeof(path), "%s/huge", made_root);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)100 << 30), 0);
	assert_int_equal(pwrite(fd, "\nCapEff: 3\n", 11, 1000000), 11);
	assert_int_equal(pwrite(fd, "\nCapEff: 4\n", 11, (off_t)90 << 30), 11);
	close(fd);
	assert_int_equal(tree_grep(tree, "/huge", wanted, text, sizeof(text)), 1);
	assert_string_equal(text, "CapEff: 3");
	tree_close(tree);
}

static void test_words(void **state)
{
	static const char *const wanted[] = { "iommu", "isolcpus=", NULL };
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX];

	made_file("BOOT=/x password=geheim iommu=pt  not_iommu=1\tisolcpus=2-5", "/proc/cmdline");
	assert_int_equal(tree_words(tree, "/proc/cmdline", wanted, text, sizeof(text)), 2);
	assert_string_equal(text, "iommu=pt isolcpus=2-5");
	made_file("quiet", "/proc/cmdline");
	assert_int_equal(tree_words(tree, "/proc/cmdline", wanted, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	tree_close(tree);
}

/* ---- captures ---- */

/* Captures what was read so far, and opens what came out of it. */
static struct tree *recaptured(struct tree *tree)
{
	made_remove("/");
	assert_int_equal(tree_capture(tree, made_root), 0);
	tree_close(tree);
	return made_tree();
}

static void test_capture(void **state)
{
	static const char *const max[] = { "Max", NULL }, *const cap[] = { "Cap", NULL };
	static const char *const iommu[] = { "iommu", NULL }, *const isol[] = { "isol", NULL };
	struct tree *tree = made_tree();
	char text[TREE_TEXT_MAX], path[PATH_MAX], command[PATH_MAX * 2];
	char(*names)[64];

	made_file("target", "/deep/target");
	made_link("../deep", "/links/folder");
	made_file("Max 1\nsecret\nCap 2", "/status");
	made_file("iommu=pt secret isolcpus=1", "/cmdline");
	made_file("secret", "/not/read");
	made_fact("13.0", "cuda/driver");
	assert_int_equal(tree_text(tree, text, "/links/folder/target"), 0);
	assert_int_equal(tree_bytes(tree, text, 3, "/deep/target"), 3);
	assert_int_equal(tree_list(tree, &names, "/not"), 1);
	free(names);
	/* Two checks look for different lines of one file. */
	assert_int_equal(tree_grep(tree, "/status", max, text, sizeof(text)), 1);
	assert_int_equal(tree_grep(tree, "/status", cap, text, sizeof(text)), 1);
	assert_int_equal(tree_words(tree, "/cmdline", isol, text, sizeof(text)), 1);
	assert_int_equal(tree_words(tree, "/cmdline", iommu, text, sizeof(text)), 1);
	assert_int_equal(tree_fact(tree, text, "cuda/driver"), 0);

	tree = recaptured(tree);
	assert_int_equal(tree_link(tree, path, sizeof(path), "/links/folder"), 0);
	assert_string_equal(path, "/deep");
	assert_int_equal(tree_text(tree, text, "/links/folder/target"), 0);
	assert_string_equal(text, "target");
	assert_int_equal(tree_list(tree, &names, "/not"), 1);
	assert_string_equal(names[0], "read");
	free(names);
	assert_int_equal(tree_grep(tree, "/status", max, text, sizeof(text)), 1);
	assert_string_equal(text, "Max 1");
	assert_int_equal(tree_grep(tree, "/status", cap, text, sizeof(text)), 1);
	assert_string_equal(text, "Cap 2");
	assert_int_equal(tree_words(tree, "/cmdline", isol, text, sizeof(text)), 1);
	assert_int_equal(tree_words(tree, "/cmdline", iommu, text, sizeof(text)), 1);
	assert_string_equal(text, "iommu=pt");
	assert_int_equal(tree_fact(tree, text, "cuda/driver"), 0);
	assert_string_equal(text, "13.0");
	assert_int_equal(tree_fact(tree, text, "cuda/count"), -ENOENT);
	snprintf(command, sizeof(command), "grep -r secret %s", made_root);
	assert_int_equal(WEXITSTATUS(system(command)), 1);
	tree_close(tree);
}

/* What could not be read stays so, and a whole file is not replaced by a part of it. */
static void test_capture_refused(void **state)
{
	static const char *const line[] = { "two", NULL };
	struct tree *tree;
	char text[TREE_TEXT_MAX];

	made_file("one\ntwo\nthree", "/whole");
	made_file("", "/root/only");
	made_file("inside", "/closed/inside");
	made_unreadable("/root/only");
	made_unreadable("/closed");
	tree = made_tree();
	assert_int_equal(tree_text(tree, text, "/whole"), 0);
	assert_int_equal(tree_grep(tree, "/whole", line, text, sizeof(text)), 1);
	assert_int_equal(tree_text(tree, text, "/root/only"), -EACCES);
	assert_true(tree_exists(tree, "/root/only"));
	assert_int_equal(tree_text(tree, text, "/closed/inside"), -EACCES);
	for (int times = 0; times < 2; times++) {
		tree = recaptured(tree);
		assert_int_equal(tree_text(tree, text, "/whole"), 0);
		assert_string_equal(text, "one\ntwo\nthree");
		assert_int_equal(tree_text(tree, text, "/root/only"), -EACCES);
		assert_true(tree_exists(tree, "/root/only"));
		assert_int_equal(tree_text(tree, text, "/closed/inside"), -EACCES);
		assert_int_equal(tree_find(tree, "/closed/inside"), -EACCES);
	}
	tree_close(tree);
}

/* ---- the machine ---- */

static struct machine machine;

static void machine_read(void)
{
	struct tree *tree = made_tree();

	machine_find(&machine, tree);
	tree_close(tree);
}

static void test_machine(void **state)
{
	made_gpu(GPU_WAY);
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	made_card(SECOND_WAY, "ens1f1np1", "mlx5_1");
	made_pci(&(struct made_pci){ FAR_WAY, "0x15b3", "0x1003", "0x020000", NULL, "1" });
	machine_read();
	assert_int_equal(machine.distribution, DISTRIBUTION_DEBIAN);
	assert_string_equal(machine.distribution_name, "Debian GNU/Linux 12 (bookworm)");
	assert_string_equal(machine.kernel, "6.1.0-18-amd64");
	assert_string_equal(machine.container, "");
	assert_string_equal(machine.virtual_machine, "");
	assert_true(machine.root);
	assert_int_equal(machine.gpus, 1);
	assert_string_equal(machine.gpu[0].pci.address, "0000:3d:00.0");
	assert_string_equal(machine.gpu[0].pci.host, "pci0000:3a");
	assert_int_equal(machine.gpu[0].pci.bridges, 3);
	assert_string_equal(machine.gpu[0].pci.bridge[0], "0000:3a:00.0");
	assert_string_equal(machine.gpu[0].pci.bridge[2], "0000:3c:00.0");
	assert_string_equal(machine.gpu[0].name, "NVIDIA A100-PCIE-80GB");
	assert_int_equal(machine.gpu[0].minor, 0);
	assert_int_equal(machine.cards, 3);
	assert_string_equal(machine.card[0].interface, "ens1f0np0");
	assert_string_equal(machine.card[0].rdma, "mlx5_0");
	assert_string_equal(machine.card[0].model, "ConnectX-6 Dx");
	assert_string_equal(machine.card[0].pci.driver, "mlx5_core");
	assert_true(machine.card[0].connectx);
	assert_int_equal(machine.card[0].pci.numa_node, 0);
	assert_string_equal(machine.card[1].pci.address, "0000:3e:00.1");
	/* ConnectX-3: another driver's. */
	assert_false(machine.card[2].connectx);
	assert_int_equal(machine.card[2].pci.numa_node, 1);
}

static void test_machine_names(void **state)
{
	static const struct {
		const char *name;
		bool pci;
	} names[] = {
		{ "0000:3b:00.0", true },
		{ "10000:01:00.7", true },
		{ "0000:3b:00.8", false },
		{ "000:3b:00.0", false },
		{ "0000:3b:00.0x", false },
		{ "-000:3b:00.0", false },
		{ "0000:3B:00.0", false },
		{ "0000:3b:00", false },
		{ "", false },
		{ "0x0:3b:00.0", false },
		{ "123456789:3b:00.0", false },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(machine_is_pci(names[i].name), names[i].pci);
	assert_true(machine_is_name("ens1f0np0"));
	assert_true(machine_is_name("eth0.5:1@x-y_z"));
	for (size_t i = 0; i < 6; i++) {
		static const char *const bad[] = { "", "a b", "$(id)", "a;b", "-rf", "a\nb" };

		assert_false(machine_is_name(bad[i]));
	}
	/* They would stand in commands. */
	made_card(CARD_WAY, "$(reboot)", "a;b");
	machine_read();
	assert_int_equal(machine.cards, 1);
	assert_string_equal(machine.card[0].interface, "");
	assert_string_equal(machine.card[0].rdma, "");
}

/* Virtual functions come after all physical ones, and leave room for them. */
static void test_machine_virtual_functions(void **state)
{
	char way[64];

	for (int i = 0; i < 80; i++) {
		snprintf(way, sizeof(way), "pci0000:3a/0000:3b:%02x.%d", i / 8, i % 8);
		made_pci(&(struct made_pci){ way, "0x15b3", "0x101e", "0x020000", NULL, NULL });
		made_link("../0000:ff:00.0", "/sys/bus/pci/devices/%s/physfn",
			  strrchr(way, '/') + 1);
	}
	made_folder("/sys/devices/pci0000:3a/0000:ff:00.0");
	made_card("pci0000:ae/0000:af:00.0", "ens9", "mlx5_9");
	machine_read();
	assert_int_equal(machine.cards, MACHINE_CARDS_MAX);
	assert_string_equal(machine.card[0].pci.address, "0000:af:00.0");
	assert_false(machine.card[0].pci.virtual_function);
	assert_true(machine.card[1].pci.virtual_function);
}

static void test_machine_numa(void **state)
{
	made_pci(&(struct made_pci){ CARD_WAY, "0x15b3", "0x101d", "0x020000", NULL, "-1" });
	machine_read();
	assert_int_equal(machine.card[0].pci.numa_node, -1);
	assert_int_equal(machine.numa_nodes, 0);
	made_folder("/sys/devices/system/node/node0");
	made_file("0", "/sys/devices/system/node/online");
	machine_read();
	assert_int_equal(machine.numa_nodes, 1);
	assert_int_equal(machine.card[0].pci.numa_node, 0);
	made_folder("/sys/devices/system/node/node1");
	machine_read();
	assert_int_equal(machine.numa_nodes, 2);
	assert_int_equal(machine.card[0].pci.numa_node, -1);
}

static void test_machine_system(void **state)
{
	static const struct {
		const char *file, *text, *container;
	} containers[] = {
		{ "/.dockerenv", "", "docker" },
		{ "/run/.containerenv", "", "podman" },
		{ "/run/systemd/container", "systemd-nspawn", "systemd-nspawn" },
		{ "/proc/self/cgroup", "0::/kubepods.slice/x", "kubernetes" },
		{ "/proc/mounts", "overlay / overlay rw,lowerdir=/var/lib/containerd/1",
		  "container" },
		{ "/proc/mounts", "overlay / overlay rw,lowerdir=/run/live", "" },
		{ "/var/run/secrets/kubernetes.io/x", "", "kubernetes" },
	};
	static const struct {
		const char *id, *like;
		enum distribution distribution;
	} releases[] = {
		{ "debian", "", DISTRIBUTION_DEBIAN },
		{ "ubuntu", "debian", DISTRIBUTION_UBUNTU },
		{ "linuxmint", "\"ubuntu debian\"", DISTRIBUTION_UBUNTU },
		{ "\"rocky\"", "\"rhel centos fedora\"", DISTRIBUTION_RHEL },
		{ "rhel", "fedora", DISTRIBUTION_RHEL },
		{ "arch", "", DISTRIBUTION_OTHER },
	};
	char text[256];

	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++) {
		made_file(containers[i].text, "%s", containers[i].file);
		machine_read();
		assert_string_equal(machine.container, containers[i].container);
		made_remove("%s", containers[i].file);
	}
	made_remove("/var");
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		snprintf(text, sizeof(text), "PRETTY_NAME='x'\nID=%s\nID_LIKE=%s", releases[i].id,
			 releases[i].like);
		made_file(text, "/etc/os-release");
		machine_read();
		assert_int_equal(machine.distribution, releases[i].distribution);
	}
	/* A cloud's bare metal, its virtual machine, and one whose maker nobody knows. */
	made_file("Amazon EC2", "/sys/class/dmi/id/sys_vendor");
	made_file("flags\t\t: fpu vme", "/proc/cpuinfo");
	machine_read();
	assert_string_equal(machine.virtual_machine, "");
	made_file("flags\t\t: fpu hypervisor", "/proc/cpuinfo");
	machine_read();
	assert_string_equal(machine.virtual_machine, "Amazon EC2");
	made_file("Nobody", "/sys/class/dmi/id/sys_vendor");
	machine_read();
	assert_string_equal(machine.virtual_machine, "unknown");
	made_file("Name:\tx\nCapEff:\t0000000000003000", "/proc/self/status");
	machine_read();
	assert_false(machine.root);
}

static void test_topology(void **state)
{
	static const struct {
		const char *a, *b, *node;
		const char *name;
	} ways[] = {
		{ GPU_WAY, CARD_WAY, "0", "PIX" },
		{ CARD_WAY, SECOND_WAY, "0", "PIX" },
		{ GPU_WAY,
		  "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:02.0/0000:40:00.0/0000:41:00.0/"
		  "0000:42:00.0",
		  "0", "PXB" },
		{ GPU_WAY, "pci0000:3a/0000:3a:02.0/0000:50:00.0", "0", "PHB" },
		{ GPU_WAY, FAR_WAY, "0", "NODE" },
		{ GPU_WAY, FAR_WAY, "1", "SYS" },
		{ GPU_WAY, FAR_WAY, "-1", "unknown" },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		enum topology topology;

		made_remove("/sys");
		made_pci(
			&(struct made_pci){ ways[i].a, "0x15b3", "0x101d", "0x020000", NULL, "0" });
		made_pci(&(struct made_pci){ ways[i].b, "0x15b3", "0x101d", "0x020000", NULL,
					     ways[i].node });
		machine_read();
		assert_int_equal(machine.cards, 2);
		topology = machine_topology(&machine.card[0].pci, &machine.card[1].pci);
		assert_string_equal(topology_name(topology), ways[i].name);
		assert_int_equal(machine_topology(&machine.card[1].pci, &machine.card[0].pci),
				 topology);
	}
}

/* ---- pairs and configuration ---- */

static void cpus(void)
{
	made_file("0-7", "/sys/devices/system/node/node0/cpulist");
	made_file("8-15", "/sys/devices/system/node/node1/cpulist");
	made_file("0-15", "/sys/devices/system/cpu/online");
	made_file("4-6", "/sys/devices/system/cpu/isolated");
	made_fact("0-3,7-15", "process/cpus");
	for (int i = 0; i < 8; i++) {
		char text[32];

		/* 0 and 4, 1 and 5, ... are threads of one core */
		snprintf(text, sizeof(text), "%d,%d", i % 4, i % 4 + 4);
		made_file(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
	}
}

/* A GPU with two ports near, and one far away that is faster. */
static void two_ports(void)
{
	made_gpu(GPU_WAY);
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	made_card(SECOND_WAY, "ens1f1np1", "mlx5_1");
	made_card(FAR_WAY, "ens9", "mlx5_2");
	made_file("1", "/sys/bus/pci/devices/0000:af:00.0/numa_node");
	made_file("32.0 GT/s PCIe", "/sys/bus/pci/devices/0000:af:00.0/current_link_speed");
	made_fact("1", "cuda/count");
	made_fact("0000:3d:00.0", "cuda/0/pci");
	made_fact("100000", "ethtool/ens1f0np0/speed");
	cpus();
}

static void pair_expect(uint32_t index, const char *card, const char *path, const char *cores)
{
	const struct pair *pair = &made_doctor->pair[index];

	assert_true(index < made_doctor->pairs);
	assert_string_equal(pair->gpu->pci.address, "0000:3d:00.0");
	assert_string_equal(pair->card->pci.address, card);
	assert_string_equal(pair->path, path);
	assert_string_equal(pair->cores, cores);
	assert_int_equal(pair->gpu->cuda_ordinal, 0);
}

static void test_pairs(void **state)
{
	two_ports();
	made_examine();
	pair_expect(0, "0000:3e:00.0", "PIX", "4-6,1-3,7");
	pair_expect(1, "0000:3e:00.1", "PIX", "4-6,1-3,7");
	pair_expect(2, "0000:af:00.0", "SYS", "8-15");
	assert_int_equal(made_doctor->pairs, 3);
	/* Down is worse than up, InfiniBand worse than far. In a container isolated CPUs are only
	 * those that it was given. */
	made_file("0", "/sys/class/net/ens1f0np0/carrier");
	made_file("InfiniBand", "/sys/class/infiniband/mlx5_1/ports/1/link_layer");
	made_file("", "/.dockerenv");
	made_examine();
	pair_expect(0, "0000:3e:00.0", "PIX", "1-3,7");
	pair_expect(1, "0000:af:00.0", "SYS", "8-15");
	pair_expect(2, "0000:3e:00.1", "PIX", "1-3,7");
	/* A machine made from a container's image is none: its namespaces are the first. */
	made_fact("own", "process/namespaces");
	made_examine();
	assert_string_equal(made_doctor->machine.container, "docker");
	made_fact("initial", "process/namespaces");
	made_examine();
	assert_string_equal(made_doctor->machine.container, "");
}

/* Writes it, has it read and checked, and returns it. */
static struct gdrcap_config *config;
static char config_text[4096];

static void config_written(void)
{
	struct gdrcap_error error = { 0 };
	char path[PATH_MAX];
	FILE *in;

	snprintf(path, sizeof(path), "%s/gdrcap.yaml", made_root);
	unlink(path);
	made_examine();
	if (doctor_write_config(made_doctor, path, &error) < 0)
		fail_msg("%s", error.text);
	in = fopen(path, "r");
	assert_non_null(in);
	config_text[fread(config_text, 1, sizeof(config_text) - 1, in)] = '\0';
	fclose(in);
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	if (gdrcap_config_load(config, path, &error) < 0 || gdrcap_config_check(config, &error) < 0)
		fail_msg("%s\n%s", error.text, config_text);
	assert_int_equal(doctor_write_config(made_doctor, path, &error), -EEXIST);
	assert_non_null(strstr(error.text, "there already"));
}

static void test_config(void **state)
{
	two_ports();
	config_written();
	assert_string_equal(gdrcap_config_get(config, "port", 0), "0000:3e:00.0");
	assert_string_equal(gdrcap_config_get(config, "tx_port", 0), "0000:3e:00.1");
	assert_string_equal(gdrcap_config_get(config, "gpu", 0), "0");
	assert_string_equal(gdrcap_config_get(config, "memory", 0), "device");
	/* 100 Gbit/s would be four queues; there are cores for three, thread siblings last. */
	assert_string_equal(gdrcap_config_get(config, "queues", 0), "2");
	assert_string_equal(gdrcap_config_get(config, "cores", 0), "4,5,6,3");
	assert_non_null(strstr(config_text, "PIX from the card"));
}

static void test_config_less(void **state)
{
	/* No second port. */
	made_gpu(GPU_WAY);
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	config_written();
	assert_string_equal(gdrcap_config_get(config, "port", 0), "0000:3e:00.0");
	assert_null(gdrcap_config_get(config, "tx_port", 0));
	assert_string_equal(gdrcap_config_get(config, "gpu", 0), "auto");
	assert_non_null(strstr(config_text, "no second port"));
	assert_non_null(strstr(config_text, "gdrcap capture --config"));
	/* No GPU. */
	made_remove("/sys/devices");
	made_remove("/sys/bus");
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	made_card(SECOND_WAY, "ens1f1np1", "mlx5_1");
	config_written();
	assert_string_equal(gdrcap_config_get(config, "gpu", 0), "host");
	assert_string_equal(gdrcap_config_get(config, "memory", 0), "host");
	assert_string_equal(gdrcap_config_get(config, "tx_port", 0), "0000:3e:00.1");
	/* Nothing at all; two CPUs, one. */
	made_remove("/sys/devices");
	made_remove("/sys/bus");
	made_file("0-1", "/sys/devices/system/cpu/online");
	config_written();
	assert_string_equal(gdrcap_config_get(config, "cores", 0), "1,0");
	made_file("0", "/sys/devices/system/cpu/online");
	config_written();
	assert_string_equal(gdrcap_config_get(config, "port", 0), "ring:wire");
	assert_string_equal(gdrcap_config_get(config, "tx_port", 0), "ring:wire");
	assert_string_equal(gdrcap_config_get(config, "gpu", 0), "host");
	assert_string_equal(gdrcap_config_get(config, "cores", 0), "0");
	assert_non_null(strstr(config_text, "gdrcap loopback --config"));
}

/* ---- the whole ---- */

static void test_order_and_ability(void **state)
{
	static const unsigned int badness[] = { [HEALTH_FAIL] = 0,
						[HEALTH_WARN] = 1,
						[HEALTH_UNKNOWN] = 2,
						[HEALTH_OK] = 3,
						[HEALTH_NOT_APPLICABLE] = 4 };
	const struct finding *finding, *before = NULL;
	uint32_t unknown = 0, fatal = 0, unread = 0;

	two_ports();
	made_file("Max locked memory         65536                65536                bytes",
		  "/proc/self/limits");
	made_examine();
	for (finding = made_doctor->findings; finding < made_doctor->findings + made_doctor->count;
	     finding++) {
		if (before) {
			const unsigned int a = badness[before->verdict],
					   b = badness[finding->verdict];

			assert_true(a < b || (a == b &&
					      before->check->severity <= finding->check->severity));
		}
		assert_true(finding->check->id[0] && finding->check->group[0] && finding->read[0] &&
			    finding->check->why[0]);
		fatal += finding->check->severity == SEVERITY_FATAL &&
			 finding->verdict == HEALTH_FAIL;
		unread += finding->check->severity == SEVERITY_FATAL &&
			  finding->verdict == HEALTH_UNKNOWN;
		before = finding;
	}
	assert_true(fatal >= 1);
	assert_int_equal(doctor_able(made_doctor, &unknown), 0);
	assert_int_equal(unknown, unread);
	assert_int_equal(made_doctor->machine.gpus, 1);
	assert_int_equal(made_doctor->machine.cards, 3);
	assert_string_equal(made_doctor->machine.card[0].interface, "ens1f0np0");
}

static void test_refused(void **state)
{
	struct doctor_config wrong = { .root = "/none/of/it" };
	struct gdrcap_error error = { 0 };
	struct doctor *doctor;

	assert_int_equal(doctor_create(&wrong, &doctor, &error), -ENOENT);
	assert_null(doctor);
	wrong.root = "/etc/passwd";
	assert_int_equal(doctor_create(&wrong, &doctor, &error), -ENOTDIR);
	wrong.root = made_root;
	wrong.live = 1;
	assert_int_equal(doctor_create(&wrong, &doctor, &error), -EINVAL);
	assert_non_null(strstr(error.text, "--live"));
	doctor_destroy(NULL);
}

/* This machine, whatever it is, and the same out of its capture. */
static void test_this_machine(void **state)
{
	const struct doctor_config here = { 0 };
	const struct finding *finding, *other;
	struct gdrcap_error error = { 0 };
	struct doctor *doctor;

	assert_int_equal(doctor_create(&here, &doctor, &error), 0);
	made_remove("/");
	assert_int_equal(doctor_capture(doctor, made_root, &error), 0);
	assert_int_equal(doctor_capture(doctor, made_root, &error), -EEXIST);
	assert_int_equal(doctor_capture(doctor, "/none/of/it", &error), -ENOENT);
	made_examine();
	assert_int_equal(doctor->count, made_doctor->count);
	for (uint32_t i = 0; i < doctor->count; i++) {
		finding = &doctor->findings[i];
		other = &made_doctor->findings[i];
		assert_string_equal(finding->check->id, other->check->id);
		assert_string_equal(finding->subject, other->subject);
		assert_string_equal(finding->read, other->read);
		assert_int_equal(finding->verdict, other->verdict);
		assert_string_equal(finding->remedy, other->remedy);
	}
	doctor_destroy(doctor);
}

/* ---- random trees ---- */

static unsigned int damage_odds;

static void noise_write(const char *path)
{
	uint8_t noise[6000];
	const size_t bytes = (size_t)rand() % sizeof(noise);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	for (size_t i = 0; i < bytes; i++)
		noise[i] = (uint8_t)(rand() % 4 ? "0123456789abcdef\n:.-x, "[rand() % 24] : rand());
	fwrite(noise, 1, bytes, out);
	fclose(out);
}

/* Something else in its place. Folders only where they are empty by now. */
static int damage(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	if ((unsigned int)rand() % 100 >= damage_odds || place->level == 0)
		return 0;
	if (kind == FTW_F && rand() % 3 == 0) {
		noise_write(path);
		return 0;
	}
	if (remove(path) != 0)
		return 0;
	switch (rand() % 6) {
	case 0:
		assert_int_equal(mkdir(path, 0700), 0);
		break;
	case 1:
		assert_int_equal(mkfifo(path, 0600), 0);
		break;
	case 2:
		assert_int_equal(symlink(path + place->base, path), 0);
		break;
	case 3:
		assert_int_equal(symlink("..", path), 0);
		break;
	case 4:
		noise_write(path);
		assert_int_equal(truncate(path, (off_t)1 << 34), 0);
		break;
	default:
		break;
	}
	return 0;
}

/* Nothing but a crash, a hang or a sanitizer's word can fail it. */
static void test_random_trees(void **state)
{
	for (unsigned int seed = 1; seed <= 12; seed++) {
		char path[PATH_MAX], command[PATH_MAX + 16];
		struct gdrcap_error error;

		made_teardown(state);
		made_setup(state);
		two_ports();
		made_file("Max locked memory  1 1 bytes", "/proc/self/limits");
		made_file("x", "/proc/mounts");
		made_file("x", "/proc/kallsyms");
		made_file("1", "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
		made_fact("1", "cuda/0/dma_buf_supported");
		made_file("1", "/gdrcap/refused");
		srand(seed);
		damage_odds = seed % 4 == 0 ? 60 : seed % 4 * 6;
		assert_int_equal(nftw(made_root, damage, 32, FTW_DEPTH | FTW_PHYS), 0);
		made_examine();
		snprintf(path, sizeof(path), "%s.captured", made_root);
		assert_int_equal(doctor_capture(made_doctor, path, &error), 0);
		snprintf(command, sizeof(command), "rm -r %s", path);
		assert_int_equal(system(command), 0);
		snprintf(path, sizeof(path), "%s.yaml", made_root);
		assert_int_equal(doctor_write_config(made_doctor, path, &error), 0);
		gdrcap_config_free(config);
		config = gdrcap_config_new();
		if (gdrcap_config_load(config, path, &error) < 0)
			fail_msg("seed %u: %s", seed, error.text);
		unlink(path);
	}
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, made_setup, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MADE(test_text),
		MADE(test_number),
		MADE(test_links),
		MADE(test_special_files),
		MADE(test_list),
		MADE(test_grep),
		MADE(test_words),
		MADE(test_capture),
		MADE(test_capture_refused),
		MADE(test_machine),
		MADE(test_machine_names),
		MADE(test_machine_virtual_functions),
		MADE(test_machine_numa),
		MADE(test_machine_system),
		MADE(test_topology),
		MADE(test_pairs),
		MADE(test_config),
		MADE(test_config_less),
		MADE(test_order_and_ability),
		MADE(test_refused),
		MADE(test_this_machine),
		MADE(test_random_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
