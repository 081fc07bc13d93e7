/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up machines, and how their cards come to GPU memory. */
#include "doctor_tree.h"

#define GPU "0000:ca:00.0"
#define CARD_WAY "pci0000:c9/0000:c9:02.0/0000:cb:00.0"
#define PEERS "/sys/kernel/mm/memory_peers"
#define PARAMETERS "/sys/module/nvidia_peermem/parameters"
#define SYMBOLS "/proc/kallsyms"
#define CORE "ffffffffc0a0 T ib_register_client\t[ib_core]\n"

/* Everything but the two ways: neither is there. */
static int neither(void **state)
{
	made_setup(state);
	made_gpu("pci0000:c9/0000:c9:02.0/" GPU);
	made_card(CARD_WAY, "ens1f0np0", "mlx5_0");
	made_file("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12",
		  "/proc/driver/nvidia/version");
	made_folder("/sys/module");
	made_file("24.10-1.1.4", "/sys/module/mlx5_core/version");
	made_file(CORE "ffffffffc0a1 T ib_register_peer_memory_client\t[ib_core]", SYMBOLS);
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_fact("0", "cuda/0/dma_buf_supported");
	made_fact("", "kernel/messages");
	return 0;
}

static void has_dmabuf(void)
{
	made_fact("1", "cuda/0/dma_buf_supported");
}

static void has_peermem(void)
{
	made_file("535.183.01", "/sys/module/nvidia_peermem/version");
	made_file("0", PARAMETERS "/peerdirect_support");
	made_file("1", PARAMETERS "/persistent_api_support");
	made_file("535.183.01", PEERS "/nv_mem/version");
}

/* Whether this group alone makes the machine unable. */
static void expect_able(bool able)
{
	made_expect("gpu-memory-registration", NULL, able ? OK : FAIL, NULL, NULL);
}

static void test_neither(void **state)
{
	made_examine();
	made_expect("gpu-memory-registration", NULL, FAIL,
		    "by address: /sys/module/nvidia_peermem: not loaded; as dma-buf: no",
		    "sudo modprobe nvidia-peermem\n"
		    "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf");
	assert_false(doctor_able(made_doctor, NULL));
	made_expect("peermem-loaded", NULL, WARN, "not loaded", "sudo modprobe nvidia-peermem");
	made_expect("peermem-interface", NULL, OK, "ib_register_peer_memory_client", "");
	made_expect("nv-peer-mem", NULL, OK, "not loaded", "");
	made_expect("peermem-mode", NULL, NONE, NULL, NULL);
	made_expect("peermem-deadlock", NULL, NONE, NULL, NULL);
	made_expect("module-symbols", NULL, OK, "no module", "");
}

/* The open driver and a kernel that takes dma-bufs: nothing is missing. */
static void test_dmabuf_only(void **state)
{
	has_dmabuf();
	made_examine();
	expect_able(true);
	made_expect("peermem-loaded", NULL, NONE, "not needed", "");
	made_file(CORE, SYMBOLS);
	made_examine();
	made_expect("peermem-interface", NULL, NONE, "not needed", "");
}

static void test_peermem_only(void **state)
{
	has_peermem();
	made_examine();
	expect_able(true);
	made_expect("gpu-memory-registration", NULL, OK, PEERS "/nv_mem: there; as dma-buf: no",
		    "");
	made_expect("peermem-loaded", NULL, OK, "/sys/module/nvidia_peermem/version: 535.183.01",
		    "");
	made_expect("peermem-interface", NULL, OK, PEERS, "");
	made_expect("peermem-mode", "peerdirect_support", OK, "24.10-1.1.4", "");
	made_expect("peermem-mode", "persistent_api_support", OK, ": 1", "");
	made_expect("peermem-deadlock", NULL, OK, "nothing is called back", "");
}

/* Older drivers register a second client under another name. */
static void test_second_client(void **state)
{
	made_file("1", PEERS "/nv_mem_nc/version");
	made_examine();
	expect_able(true);
}

static void test_unknown(void **state)
{
	/* Loaded, in a kernel that does not list its clients. */
	made_file("535.183.01", "/sys/module/nvidia_peermem/version");
	made_examine();
	made_expect("gpu-memory-registration", NULL, UNKNOWN, "cannot be seen",
		    "sudo gdrcap doctor --live");
	made_expect("peermem-loaded", NULL, UNKNOWN, "cannot be seen", "--live");
	/* Listed, without it: it has not registered. */
	made_folder(PEERS);
	made_examine();
	expect_able(false);
	made_expect("peermem-loaded", NULL, FAIL, "loaded; " PEERS ": no nv_mem",
		    "sudo modprobe -r nvidia-peermem");
	/* No list of modules at all. */
	made_remove(PEERS);
	made_remove("/sys/module");
	made_examine();
	made_expect("gpu-memory-registration", NULL, UNKNOWN, "/sys/module cannot be read", NULL);
	made_expect("nv-peer-mem", NULL, UNKNOWN, "cannot be read", "lsmod");
	/* CUDA does not say. */
	made_folder("/sys/module");
	made_remove("/gdrcap/facts/cuda");
	made_examine();
	made_expect("gpu-memory-registration", NULL, UNKNOWN, "as dma-buf: not known", NULL);
}

static void test_interface(void **state)
{
	made_file(CORE, SYMBOLS);
	made_examine();
	made_expect("peermem-interface", NULL, WARN, "no ib_register_peer_memory_client",
		    "sudo apt-get install doca-ofed");
	made_expect("peermem-loaded", NULL, WARN, NULL, "DOCA-OFED");
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("peermem-interface", NULL, WARN, NULL, "sudo dnf install doca-ofed");
	made_file("ffff T printk", SYMBOLS);
	made_examine();
	made_expect("peermem-interface", NULL, UNKNOWN, "ib_core", "sudo modprobe mlx5_ib");
	made_unreadable(SYMBOLS);
	made_examine();
	made_expect("peermem-interface", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_conflict(void **state)
{
	made_file("1.0-9", "/sys/module/nv_peer_mem/version");
	made_examine();
	made_expect("nv-peer-mem", NULL, FAIL, "loaded",
		    "sudo dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms\n"
		    "sudo modprobe nvidia-peermem");
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("nv-peer-mem", NULL, FAIL, NULL, "sudo rpm -e nvidia_peer_memory");
	/* It does register GPU memory, as it always did. */
	made_file("1.0-9", PEERS "/nv_mem/version");
	made_examine();
	expect_able(true);
	made_expect("nv-peer-mem", NULL, FAIL, NULL, NULL);
	made_expect("peermem-loaded", NULL, OK, "/sys/module/nv_peer_mem/version: 1.0-9", "");
}

static void test_mode(void **state)
{
	has_peermem();
	/* MLNX_OFED 4.9 LTS takes the other setting. */
	made_file("4.9-5.1.0", "/sys/module/mlx5_core/version");
	made_examine();
	made_expect("peermem-mode", "peerdirect_support", WARN, ": 0; ",
		    "echo 'options nvidia-peermem peerdirect_support=1'");
	made_file("1", PARAMETERS "/peerdirect_support");
	made_examine();
	made_expect("peermem-mode", "peerdirect_support", OK, "4.9-5.1.0", "");
	/* The kernel's own driver is none of OFED's, whatever its number. */
	made_file("5.0-0", "/sys/module/mlx5_core/version");
	made_file("0", PARAMETERS "/persistent_api_support");
	made_examine();
	made_expect("peermem-mode", "peerdirect_support", WARN, ": 1; ", "peerdirect_support=0");
	made_expect("peermem-mode", "persistent_api_support", WARN, ": 0",
		    "persistent_api_support=1");
	made_unreadable(PARAMETERS "/peerdirect_support");
	made_remove(PARAMETERS "/persistent_api_support");
	made_examine();
	made_expect("peermem-mode", "peerdirect_support", UNKNOWN, "Permission denied",
		    "sudo cat " PARAMETERS "/peerdirect_support");
	made_expect("peermem-mode", "persistent_api_support", NONE, "no such parameter", "");
}

static void ofed_is(const char *version, enum health verdict)
{
	made_file(version, "/sys/module/mlx5_core/version");
	made_examine();
	made_expect("peermem-deadlock", NULL, verdict, NULL, NULL);
}

static void test_deadlock(void **state)
{
	has_peermem();
	made_file("0", PARAMETERS "/persistent_api_support");
	ofed_is("4.9-5.1.0", OK);
	ofed_is("5.1-0.6.6", WARN);
	made_expect("peermem-deadlock", NULL, WARN, "5.1-0.6.6", "persistent_api_support=1");
	ofed_is("5.3-1.0.0", WARN);
	ofed_is("5.3-1.0.0.1.43", OK);
	ofed_is("5.4-1.0.3", WARN);
	ofed_is("5.4-2.4.1", WARN);
	ofed_is("5.4-3.0.3", OK);
	ofed_is("5.5-1.0.3", OK);
	ofed_is("24.10-1.1.4", OK);
	ofed_is("5.0-0", UNKNOWN);
	ofed_is("nonsense", UNKNOWN);
	/* Nothing is called back: no lock to be taken. */
	made_file("1", PARAMETERS "/persistent_api_support");
	ofed_is("5.1-0.6.6", OK);
	/* A driver from before the remedy, whatever OFED is. */
	made_remove(PARAMETERS);
	ofed_is("24.10-1.1.4", WARN);
	made_expect("peermem-deadlock", NULL, WARN, "an early driver", "5.4-3.0.3.0 or later");
	ofed_is("4.9-5.1.0", OK);
}

static void test_deadlock_ancestor(void **state)
{
	made_file("1.1-0", "/sys/module/nv_peer_mem/version");
	ofed_is("4.9-5.1.0", OK);
	ofed_is("5.8-3.0.7", WARN);
	made_file("1.2-0", "/sys/module/nv_peer_mem/version");
	ofed_is("5.8-3.0.7", OK);
	ofed_is("5.4-1.0.3", WARN);
	made_file("?", "/sys/module/nv_peer_mem/version");
	ofed_is("5.8-3.0.7", UNKNOWN);
}

static void test_symbols(void **state)
{
	made_fact("[    9.1] nvidia_peermem: disagrees about version of symbol "
		  "ib_register_peer_memory_client",
		  "kernel/messages");
	made_examine();
	made_expect("module-symbols", NULL, FAIL, "nvidia_peermem: disagrees",
		    "sudo modprobe nvidia_peermem");
	/* It has been loaded since. */
	has_peermem();
	made_examine();
	made_expect("module-symbols", NULL, OK, NULL, "");
	/* Somebody else's module. */
	made_fact("[    9.1] vboxdrv: disagrees about version of symbol printk", "kernel/messages");
	made_examine();
	made_expect("module-symbols", NULL, OK, NULL, "");
	made_fact("Operation not permitted", "kernel/messages_error");
	made_examine();
	made_expect("module-symbols", NULL, UNKNOWN, NULL, "sudo dmesg | grep 'disagrees");
	made_remove("/gdrcap/facts/kernel");
	made_examine();
	made_expect("module-symbols", NULL, UNKNOWN, NULL, "sudo dmesg");
}

/* What has to be done outside of it is said to be so. */
static void test_container(void **state)
{
	made_file("", "/.dockerenv");
	made_examine();
	made_expect("gpu-memory-registration", NULL, FAIL, NULL,
		    "# on the host, not in this container:\nsudo modprobe");
}

static void test_garbage(void **state)
{
	for (unsigned int seed = 1; seed <= 8; seed++) {
		made_teardown(state);
		neither(state);
		made_file("1.0-9", "/sys/module/nv_peer_mem/version");
		made_file("535", "/sys/module/nvidia_peermem/version");
		made_file("0", PARAMETERS "/peerdirect_support");
		made_file("0", PARAMETERS "/persistent_api_support");
		made_garbage(seed);
		made_expect("gpu-memory-registration", NULL, UNKNOWN, NULL, NULL);
		made_expect("peermem-loaded", NULL, UNKNOWN, NULL, NULL);
		made_expect("peermem-interface", NULL, UNKNOWN, NULL, NULL);
		made_expect("peermem-mode", "peerdirect_support", UNKNOWN, NULL, NULL);
		made_expect("peermem-mode", "persistent_api_support", UNKNOWN, NULL, NULL);
		made_expect("peermem-deadlock", NULL, UNKNOWN, NULL, NULL);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, neither, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(neither),	CASE(dmabuf_only),	 CASE(peermem_only), CASE(second_client),
		CASE(unknown),	CASE(interface),	 CASE(conflict),     CASE(mode),
		CASE(deadlock), CASE(deadlock_ancestor), CASE(symbols),	     CASE(container),
		CASE(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
