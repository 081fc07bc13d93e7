/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up machines, and what is said of queues of our own and of a GPU that drives them. */
#include "doctor_tree.h"

#define GPU "0000:ca:00.0"
#define GPU_WAY "pci0000:c9/0000:c9:02.0/" GPU
#define CARD "0000:98:00.0"
#define CARD_WAY "pci0000:97/0000:97:02.0/" CARD
#define PARAMETERS "/proc/driver/nvidia/params"

/* A GPU and a card that can all of it, by dma-bufs, examined by nobody in particular. */
static int able(void **state)
{
	made_setup(state);
	made_gpu(GPU_WAY);
	made_card(CARD_WAY, "ens1", "mlx5_0");
	made_folder("/sys/module");
	made_fact("1000", "process/user");
	made_fact("yes", "symbol/mlx5dv_devx_general_cmd");
	made_fact("yes", "symbol/mlx5dv_devx_umem_reg_ex");
	made_file("EnableMSI: 1\nRegistryDwords: \"PeerMappingOverride=1;\"", PARAMETERS);
	made_fact("12.4", "cuda/driver");
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_fact("1", "cuda/0/dma_buf_supported");
	made_fact("100", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_fact("1", "cuda/0/stream_memory_operations");
	made_fact("108", "cuda/0/multiprocessors");
	made_fact("1", "cuda/0/concurrent_kernels");
	made_fact("0", "cuda/0/kernel_timeout");
	return 0;
}

static void test_able(void **state)
{
	made_examine();
	made_expect("devx", CARD, OK, "mlx5dv_devx_general_cmd: yes; Linux 6.1.0-18-amd64", "");
	made_expect("umem", NULL, OK, "mlx5dv_devx_umem_reg_ex: yes", "");
	made_expect("peer-mapping", NULL, OK, "PeerMappingOverride=1", "");
	made_expect("stream-memory-operations", GPU, OK, "64_BIT_STREAM_MEM_OPS: 1", "");
	made_expect("gpu-front", GPU, OK, "WRITES_ORDERING: 100", "");
	made_expect("kernels-together", GPU, OK, "108 multiprocessors", "");
}

/* None of it stands in the way of a capture. */
static void test_not_fatal(void **state)
{
	const char *const ids[] = { "devx",	    "umem",
				    "peer-mapping", "stream-memory-operations",
				    "gpu-front",    "kernels-together" };

	made_examine();
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_int_equal(made_find(ids[i], NULL)->check->severity, SEVERITY_INFO);
}

static void test_devx(void **state)
{
	made_fact("no", "symbol/mlx5dv_devx_general_cmd");
	made_examine();
	made_expect("devx", CARD, WARN, "mlx5dv_devx_general_cmd: no",
		    "sudo apt-get install rdma-core ibverbs-providers");
	made_remove("/gdrcap/facts/symbol");
	made_examine();
	made_expect("devx", CARD, UNKNOWN, "not known", "--live");
	/* Before Linux 4.20, but for the modules of OFED, or of RHEL's kernels. */
	made_fact("yes", "symbol/mlx5dv_devx_general_cmd");
	made_file("4.19.0-27-amd64", "/proc/sys/kernel/osrelease");
	made_examine();
	made_expect("devx", CARD, WARN, "4.19.0-27-amd64 is too old", "# Linux 4.20 or later");
	made_file("5.5-1.0.3", "/sys/module/mlx_compat/version");
	made_examine();
	made_expect("devx", CARD, UNKNOWN, "may be newer", "sudo gdrcap doctor --live");
	made_remove("/sys/module/mlx_compat");
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("devx", CARD, UNKNOWN, NULL, "sudo gdrcap doctor --live");
	made_file("4.20.0", "/proc/sys/kernel/osrelease");
	made_examine();
	made_expect("devx", CARD, OK, NULL, "");
}

static void test_connectx_4(void **state)
{
	made_file("0x1015", "/sys/bus/pci/devices/%s/device", CARD);
	made_examine();
	made_expect("devx", CARD, WARN, "ConnectX-4 Lx", "ConnectX-5 or later");
	made_file("0x1017", "/sys/bus/pci/devices/%s/device", CARD);
	made_examine();
	made_expect("devx", CARD, OK, NULL, "");
}

static void test_umem(void **state)
{
	made_fact("no", "symbol/mlx5dv_devx_umem_reg_ex");
	made_examine();
	made_expect("umem", NULL, WARN, "mlx5dv_devx_umem_reg_ex: no",
		    "sudo apt-get install rdma-core ibverbs-providers\n# or by address, with "
		    "nvidia-peermem");
	made_fact("yes", "symbol/mlx5dv_devx_umem_reg_ex");
	made_file("6.0.19", "/proc/sys/kernel/osrelease");
	made_examine();
	made_expect("umem", NULL, WARN, "6.0.19 is too old", "# Linux 6.1 or later");
	/* The GPU makes no dma-bufs: then by address, or not at all. */
	made_fact("0", "cuda/0/dma_buf_supported");
	made_examine();
	made_expect("umem", NULL, NONE, "see gpu-memory-registration", "");
	made_file("570.86.15", "/sys/module/nvidia_peermem/version");
	made_examine();
	made_expect("umem", NULL, UNKNOWN, "cannot be seen", "--live");
	made_file("570.86.15", "/sys/kernel/mm/memory_peers/nv_mem/version");
	made_examine();
	made_expect("umem", NULL, OK, "by address: /sys/kernel/mm/memory_peers/nv_mem", "");
}

static void test_peer_mapping(void **state)
{
	made_file("EnableMSI: 1\nRegistryDwords: \"\"", PARAMETERS);
	made_examine();
	made_expect("peer-mapping", NULL, WARN, "without PeerMappingOverride=1",
		    "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' | sudo "
		    "tee /etc/modprobe.d/nvidia-peer-mapping.conf\nsudo update-initramfs -u");
	made_file("RegistryDwords: \"PeerMappingOverride=0;\"", PARAMETERS);
	made_file("ID=rhel", "/etc/os-release");
	made_examine();
	made_expect("peer-mapping", NULL, WARN, NULL, "sudo dracut --force && sudo reboot");
	made_remove(PARAMETERS);
	made_examine();
	made_expect("peer-mapping", NULL, UNKNOWN, "No such file", "grep RegistryDwords");
	made_fact("0", "process/user");
	made_examine();
	made_expect("peer-mapping", NULL, OK, "root does not need", "");
}

static void test_stream_operations(void **state)
{
	made_fact("0", "cuda/0/stream_memory_operations");
	made_examine();
	made_expect("stream-memory-operations", GPU, WARN, ": 0", "running kernel");
	made_remove("/gdrcap/facts/cuda/0/stream_memory_operations");
	made_examine();
	made_expect("stream-memory-operations", GPU, UNKNOWN, "not known", NULL);
	made_fact("11.6", "cuda/driver");
	made_examine();
	made_expect("stream-memory-operations", GPU, WARN, "not in CUDA 11.6",
		    "515 or later, which needs no NVreg_EnableStreamMemOPs=1");
	made_fact("11.7", "cuda/driver");
	made_examine();
	made_expect("stream-memory-operations", GPU, UNKNOWN, NULL, NULL);
}

static void test_front(void **state)
{
	made_fact("99", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_examine();
	made_expect("gpu-front", GPU, WARN, ": 99, and 100", "CPU thread");
	made_fact("-1", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_examine();
	made_expect("gpu-front", GPU, UNKNOWN, "not known", NULL);
}

static void test_together(void **state)
{
	made_fact("1", "cuda/0/kernel_timeout");
	made_examine();
	made_expect("kernels-together", GPU, WARN, "KERNEL_EXEC_TIMEOUT: 1",
		    "sudo systemctl isolate multi-user.target");
	made_fact("0", "cuda/0/kernel_timeout");
	made_fact("0", "cuda/0/concurrent_kernels");
	made_examine();
	made_expect("kernels-together", GPU, WARN, "CONCURRENT_KERNELS: 0", "one kernel at a time");
	made_remove("/gdrcap/facts/cuda/0/kernel_timeout");
	made_examine();
	made_expect("kernels-together", GPU, UNKNOWN, "not known", NULL);
}

/* A GPU that CUDA does not have, and none: gpu-found says what is to be said. */
static void test_nothing(void **state)
{
	made_remove("/gdrcap/facts/cuda");
	made_examine();
	made_expect("gpu-front", NULL, NONE, NULL, "");
	made_expect("stream-memory-operations", NULL, NONE, NULL, "");
	made_expect("kernels-together", NULL, NONE, NULL, "");
	made_remove("/sys/bus/pci/devices/%s", GPU);
	made_examine();
	made_expect("umem", NULL, NONE, NULL, "");
	made_expect("peer-mapping", NULL, NONE, NULL, "");
	made_expect("devx", CARD, OK, NULL, "");
}

static void test_garbage(void **state)
{
	for (unsigned int seed = 0; seed < 20; seed++)
		made_garbage(seed);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, able, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(able),
		CASE(not_fatal),
		CASE(devx),
		CASE(connectx_4),
		CASE(umem),
		CASE(peer_mapping),
		CASE(stream_operations),
		CASE(front),
		CASE(together),
		CASE(nothing),
		CASE(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
