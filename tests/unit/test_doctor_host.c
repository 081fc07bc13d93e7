/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up machines, and what is said of libraries, rights, limits, hugepages, CPUs and what their
 * kernels forbid. */
#include "doctor_tree.h"

#define CARD "0000:3b:00.0"
#define CARD_WAY "pci0000:3a/0000:3a:00.0/" CARD
#define GPU "0000:ca:00.0"
#define LIMITS "/proc/self/limits"
#define STATUS "/proc/self/status"
#define HUGE "/sys/kernel/mm/hugepages"
#define NODE "/sys/devices/system/node"
#define CPU "/sys/devices/system/cpu"
#define SECURE "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SECURITY "/sys/kernel/security"

static void locked(const char *soft, const char *hard)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "Max processes  9 9 processes\n"
		 "Max locked memory         %s             %s             bytes",
		 soft, hard);
	made_file(text, LIMITS);
}

static void secure_boot(unsigned char on)
{
	const unsigned char bytes[5] = { 6, 0, 0, 0, on };

	made_bytes(bytes, sizeof(bytes), SECURE);
}

/* One card, two nodes, all as it should be. */
static int healthy(void **state)
{
	made_setup(state);
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	made_gpu("pci0000:c9/0000:c9:02.0/" GPU);
	made_file("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15",
		  "/proc/driver/nvidia/version");
	made_file("", "/dev/infiniband/uverbs0");
	made_fact("yes", "library/libibverbs.so.1");
	made_fact("yes", "library/libmlx5.so.1");
	made_file("         0          0 4294967295", "/proc/self/uid_map");
	locked("unlimited", "unlimited");
	made_file("1024", HUGE "/hugepages-2048kB/free_hugepages");
	made_file("1024", NODE "/node0/hugepages/hugepages-2048kB/free_hugepages");
	made_file("0", NODE "/node1/hugepages/hugepages-2048kB/free_hugepages");
	made_file("0-1", NODE "/online");
	made_file("0-7,16-23", NODE "/node0/cpulist");
	made_file("8-15,24-31", NODE "/node1/cpulist");
	made_fact("0-31", "process/cpus");
	made_file("hugetlbfs /dev/hugepages hugetlbfs rw,relatime 0 0", "/proc/mounts");
	made_folder("/dev/hugepages");
	made_file("performance", CPU "/cpufreq/policy0/scaling_governor");
	made_file("performance", CPU "/cpufreq/policy1/scaling_governor");
	made_file("0-31", CPU "/online");
	made_file("4-7", CPU "/isolated");
	made_file("4-7", CPU "/nohz_full");
	made_file("[none] integrity confidentiality", SECURITY "/lockdown");
	secure_boot(0);
	return 0;
}

static void rights(const char *effective)
{
	char text[64];

	snprintf(text, sizeof(text), "Name:\tgdrcap\nCapEff:\t%s", effective);
	made_file(text, STATUS);
}

static void test_healthy(void **state)
{
	static const char *const ids[] = { "uverbs",	    "capabilities",   "memlock",
					   "hugepages",	    "hugepage-files", "cpu-governor",
					   "cpu-isolation", "lockdown",	      "secure-boot" };

	made_examine();
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		made_expect(ids[i], NULL, OK, NULL, "");
	made_expect("rdma-core", "libibverbs.so.1", OK, NULL, "");
	made_expect("rdma-core", "libmlx5.so.1", OK, NULL, "");
	made_expect("numa", CARD, OK, "numa_node: 0, CPUs 0-7,16-23", "");
	made_expect("numa", GPU, OK, "a card there", "");
	made_expect("secure-boot", NULL, OK, "off", "");
	made_expect("hugepages", "node0", OK, "free_hugepages: 1024", "");
}

static void test_rdma_core(void **state)
{
	made_fact("libmlx5.so.1: cannot open shared object file", "library/libmlx5.so.1");
	made_remove("/gdrcap/facts/library/libibverbs.so.1");
	made_examine();
	made_expect("rdma-core", "libmlx5.so.1", FAIL, "cannot open",
		    "sudo apt-get install rdma-core ibverbs-providers");
	made_expect("rdma-core", "libibverbs.so.1", UNKNOWN, NULL, "ldconfig -p");
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("rdma-core", "libmlx5.so.1", FAIL, NULL,
		    "sudo dnf install rdma-core libibverbs");
}

static void test_uverbs(void **state)
{
	made_remove("/dev/infiniband");
	made_examine();
	made_expect("uverbs", CARD, FAIL, "/dev/infiniband/uverbs0: No such file",
		    "sudo modprobe ib_uverbs");
	made_file("", "/dev/infiniband/uverbs0");
	made_fact("13", "process/access/dev/infiniband/uverbs0");
	made_examine();
	made_expect("uverbs", CARD, FAIL, "Permission denied",
		    "sudo chmod a+rw /dev/infiniband/uverbs0");
	/* Another card's is enough. */
	made_card("pci0000:3a/0000:3a:00.0/0000:3b:00.1", "ens1f1np1", "mlx5_1");
	made_file("", "/dev/infiniband/uverbs1");
	made_examine();
	made_expect("uverbs", CARD, WARN, NULL, NULL);
	made_expect("uverbs", "0000:3b:00.1", OK, NULL, "");
}

static void test_capabilities(void **state)
{
	rights("0000000000003000"); /* NET_ADMIN, NET_RAW */
	made_examine();
	made_expect("capabilities", NULL, FAIL, "0x3000, without CAP_SYS_RAWIO", "sudo setcap");
	rights("0000000000023000");
	made_examine();
	made_expect("capabilities", NULL, OK, NULL, "");
	made_file("         0       1000          1", "/proc/self/uid_map");
	made_examine();
	made_expect("capabilities", NULL, UNKNOWN, "user namespace", NULL);
	rights("nothing");
	made_examine();
	made_expect("capabilities", NULL, UNKNOWN, "no line", "grep CapEff");
	made_unreadable(STATUS);
	made_examine();
	made_expect("capabilities", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_memlock(void **state)
{
	rights("0");
	locked("65536", "65536");
	made_examine();
	made_expect("memlock", NULL, FAIL, "65536 bytes, at most 65536",
		    "sudo tee /etc/security/limits.d/gdrcap.conf");
	locked("4294967296", "unlimited");
	made_examine();
	made_expect("memlock", NULL, WARN, "4294967296 bytes, at most unlimited", "ulimit -l");
	/* The right to lock more than that, but not one of a namespace. */
	locked("65536", "65536");
	rights("0000000000004000");
	made_examine();
	made_expect("memlock", NULL, OK, "CAP_IPC_LOCK", "");
	made_file("0 1000 1", "/proc/self/uid_map");
	made_examine();
	made_expect("memlock", NULL, FAIL, NULL, NULL);
	made_file("", "/.dockerenv");
	made_examine();
	made_expect("memlock", NULL, FAIL, NULL, "docker run --ulimit memlock=-1");
	made_file("Max locked memory", LIMITS);
	made_examine();
	made_expect("memlock", NULL, UNKNOWN, "no line", "ulimit -l");
	made_unreadable(LIMITS);
	made_examine();
	made_expect("memlock", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_hugepages(void **state)
{
	made_file("10", NODE "/node0/hugepages/hugepages-2048kB/free_hugepages");
	made_examine();
	made_expect("hugepages", "node0", WARN, "free_hugepages: 10",
		    "echo 256 | sudo tee " NODE "/node0/hugepages/hugepages-2048kB/nr_hugepages");
	/* Two sizes together are enough. */
	made_file("1", NODE "/node0/hugepages/hugepages-1048576kB/free_hugepages");
	made_examine();
	made_expect("hugepages", "node0", OK, "hugepages-1048576kB/free_hugepages: 1; ", "");
	made_file("many", NODE "/node0/hugepages/hugepages-2048kB/free_hugepages");
	made_examine();
	made_expect("hugepages", "node0", UNKNOWN, NULL, "/proc/meminfo");
	made_unreadable(NODE "/node0/hugepages/hugepages-2048kB/free_hugepages");
	made_examine();
	made_expect("hugepages", "node0", UNKNOWN, "Permission denied", NULL);
}

static void test_hugepages_one_node(void **state)
{
	made_remove(NODE "/node1");
	made_file("0", NODE "/online");
	made_file("0", HUGE "/hugepages-2048kB/free_hugepages");
	made_examine();
	made_expect("hugepages", "", WARN, "free_hugepages: 0",
		    "echo 256 | sudo tee /proc/sys/vm/nr_hugepages");
	made_expect("numa", NULL, NONE, NULL, NULL);
}

static void test_hugepage_files(void **state)
{
	made_file("", "/dev/hugepages/rtemap_0");
	made_file("", "/dev/hugepages/appmap_12");
	made_file("", "/dev/hugepages/other");
	made_examine();
	/* Enough are free. */
	made_expect("hugepage-files", "/dev/hugepages", OK, "files of DPDK's programs: 2", "");
	made_file("3", HUGE "/hugepages-2048kB/free_hugepages");
	made_examine();
	made_expect("hugepage-files", "/dev/hugepages", WARN, "files of DPDK's programs: 2",
		    "sudo rm /dev/hugepages/*map_*");
	/* A name that a shell would take for more than a name. */
	made_file("hugetlbfs /mnt/$(reboot) hugetlbfs rw 0 0", "/proc/mounts");
	made_examine();
	made_expect("hugepage-files", NULL, OK, "no hugetlbfs", "");
	made_unreadable("/proc/mounts");
	made_examine();
	made_expect("hugepage-files", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_numa(void **state)
{
	made_fact("8-15", "process/cpus");
	made_file("1", "/sys/bus/pci/devices/%s/numa_node", GPU);
	made_examine();
	made_expect("numa", CARD, WARN, "this process: CPUs 8-15", "taskset -c 0-7,16-23");
	made_expect("numa", GPU, WARN, "numa_node: 1, no card there", NULL);
	made_file("-1", "/sys/bus/pci/devices/%s/numa_node", CARD);
	made_examine();
	made_expect("numa", CARD, UNKNOWN, "numa_node: -1, the firmware does not say", NULL);
	made_file("many", "/sys/bus/pci/devices/%s/numa_node", CARD);
	made_examine();
	made_expect("numa", CARD, UNKNOWN, "numa_node: many", NULL);
	made_file("0", "/sys/bus/pci/devices/%s/numa_node", CARD);
	made_file("zero to seven", NODE "/node0/cpulist");
	made_examine();
	made_expect("numa", CARD, UNKNOWN, "Invalid argument", "lscpu");
}

static void test_governor(void **state)
{
	made_file("powersave", CPU "/cpufreq/policy1/scaling_governor");
	made_examine();
	made_expect("cpu-governor", NULL, WARN, "powersave in 1 of 2",
		    "echo performance | sudo tee " CPU "/cpufreq/policy*/scaling_governor");
	made_file("\xff schedutil", CPU "/cpufreq/policy1/scaling_governor");
	made_examine();
	made_expect("cpu-governor", NULL, UNKNOWN, "Invalid argument", NULL);
	made_unreadable(CPU "/cpufreq/policy0/scaling_governor");
	made_examine();
	made_expect("cpu-governor", NULL, UNKNOWN, "Permission denied", NULL);
	made_remove(CPU "/cpufreq");
	made_examine();
	made_expect("cpu-governor", NULL, NONE, "hypervisor", "");
}

static void test_isolation(void **state)
{
	made_file("(null)", CPU "/nohz_full");
	made_examine();
	made_expect("cpu-isolation", NULL, WARN, "isolated: 4-7", NULL);
	made_file("", CPU "/isolated");
	made_examine();
	made_expect("cpu-isolation", NULL, WARN, "isolated: none",
		    "isolcpus=20,21,22,23 nohz_full=20,21,22,23");
	made_expect("cpu-isolation", NULL, WARN, "nohz_full: none", "sudo update-grub");
	made_file("ID=rhel", "/etc/os-release");
	made_remove(CPU "/nohz_full");
	made_examine();
	made_expect("cpu-isolation", NULL, WARN, NULL,
		    "--args='isolcpus=20,21,22,23 nohz_full=20,21,22,23'");
	made_file("some of them", CPU "/isolated");
	made_examine();
	made_expect("cpu-isolation", NULL, UNKNOWN, "Invalid argument", NULL);
	made_unreadable(CPU "/isolated");
	made_examine();
	made_expect("cpu-isolation", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_lockdown(void **state)
{
	made_file("none [integrity] confidentiality", SECURITY "/lockdown");
	made_examine();
	made_expect("lockdown", NULL, WARN, "[integrity]", "mokutil");
	made_remove(SECURITY "/lockdown");
	made_examine();
	made_expect("lockdown", NULL, UNKNOWN, "No such file", NULL);
	made_file("capability,apparmor", SECURITY "/lsm");
	made_examine();
	made_expect("lockdown", NULL, OK, "not built into", "");
	made_file("[none] integrity confidentiality", SECURITY "/lockdown");
	made_unreadable(SECURITY "/lockdown");
	made_examine();
	made_expect("lockdown", NULL, UNKNOWN, "Permission denied", "sudo cat");
}

static void test_secure_boot(void **state)
{
	secure_boot(1);
	made_examine();
	made_expect("secure-boot", NULL, OK, "on; NVIDIA's kernel module: loaded", "");
	made_remove("/proc/driver/nvidia/version");
	made_examine();
	made_expect("secure-boot", NULL, WARN, "not loaded",
		    "sudo mokutil --import /var/lib/dkms/mok.pub");
	made_file("ID=ubuntu", "/etc/os-release");
	made_examine();
	made_expect("secure-boot", NULL, WARN, NULL, "/var/lib/shim-signed/mok/MOK.der");
	made_unreadable(SECURE);
	made_examine();
	made_expect("secure-boot", NULL, UNKNOWN, "Permission denied", "mokutil --sb-state");
	made_remove("/sys/firmware/efi");
	made_examine();
	made_expect("secure-boot", NULL, NONE, "not there", "");
	/* Its runtime hides the folder. */
	made_file("", "/.dockerenv");
	made_examine();
	made_expect("secure-boot", NULL, UNKNOWN, NULL, "mokutil --sb-state");
}

static void test_no_card(void **state)
{
	made_remove("/sys/bus/pci/devices/%s", CARD);
	made_examine();
	made_expect("rdma-core", NULL, NONE, NULL, NULL);
	made_expect("uverbs", NULL, NONE, NULL, NULL);
	made_expect("capabilities", NULL, NONE, NULL, NULL);
}

static void test_garbage(void **state)
{
	static const char *const ids[] = { "capabilities", "memlock",	    "hugepages",
					   "cpu-governor", "cpu-isolation", "lockdown",
					   "secure-boot" };

	for (unsigned int seed = 1; seed <= 8; seed++) {
		made_teardown(state);
		healthy(state);
		/* made_garbage() leaves what lies in /sys/devices as it is. */
		made_file("\001\002\xff", NODE "/node0/hugepages/hugepages-2048kB/free_hugepages");
		made_file("\033[2J", CPU "/cpufreq/policy0/scaling_governor");
		made_file("0-99999999999", CPU "/isolated");
		made_file("9-3,--", NODE "/node0/cpulist");
		made_garbage(seed);
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
			assert_int_not_equal(made_find(ids[i], NULL)->verdict, OK);
		made_expect("numa", CARD, UNKNOWN, NULL, NULL);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, healthy, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(healthy),
		CASE(rdma_core),
		CASE(uverbs),
		CASE(capabilities),
		CASE(memlock),
		CASE(hugepages),
		CASE(hugepages_one_node),
		CASE(hugepage_files),
		CASE(numa),
		CASE(governor),
		CASE(isolation),
		CASE(lockdown),
		CASE(secure_boot),
		CASE(no_card),
		CASE(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
