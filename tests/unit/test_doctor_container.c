/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up containers, and what they must be given. */
#include "doctor_tree.h"

#define CARD "0000:3b:00.0"
#define OTHER "0000:3b:00.1"
#define WAY "pci0000:3a/0000:3a:00.0/"
#define GPU "0000:ca:00.0"
#define GROUP "/sys/fs/cgroup"

/* A container of docker that has all, but for what CUDA says. */
static int docker(void **state)
{
	made_setup(state);
	made_file("", "/.dockerenv");
	made_card(WAY CARD, "ens1f0np0", "mlx5_0");
	made_gpu("pci0000:c9/0000:c9:02.0/" GPU);
	made_folder("/sys/module");
	made_file("", "/dev/nvidiactl");
	made_file("", "/dev/nvidia-uvm");
	made_file("", "/dev/nvidia0");
	made_file("", "/dev/infiniband/uverbs0");
	made_file("max", GROUP "/memory.max");
	made_file("max", GROUP "/hugetlb.2MB.max");
	made_file("max 100000", GROUP "/cpu.max");
	return 0;
}

static void kubernetes(void)
{
	made_folder("/var/run/secrets/kubernetes.io");
}

static void test_all_there(void **state)
{
	made_examine();
	made_expect("container-gpu-files", NULL, OK, "1 nvidiaN", "");
	made_expect("container-rdma-files", CARD, OK, "/dev/infiniband/uverbs0", "");
	made_expect("container-network", CARD, OK, "ens1f0np0", "");
	made_expect("container-memory", "memory", OK, "no limit", "");
	made_expect("container-memory", "hugepages of 2 MiB", OK, "no limit", "");
	made_expect("container-cpus", NULL, OK, "no limit", "");
	made_expect("kubernetes", NULL, NONE, NULL, NULL);
	made_expect("uverbs", NULL, NONE, NULL, NULL);
}

static void test_outside(void **state)
{
	static const char *const ids[] = { "container-gpu-files", "container-rdma-files",
					   "container-network",	  "container-memory",
					   "container-cpus",	  "kubernetes" };

	made_remove("/.dockerenv");
	made_examine();
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		made_expect(ids[i], NULL, NONE, NULL, NULL);
	made_expect("uverbs", CARD, OK, NULL, "");
}

static void test_gpu_files(void **state)
{
	made_remove("/dev/nvidia-uvm");
	made_remove("/dev/nvidia0");
	made_examine();
	made_expect("container-gpu-files", NULL, FAIL, "without /dev/nvidia-uvm, /dev/nvidiaN",
		    "docker run --gpus all");
	kubernetes();
	made_examine();
	made_expect("container-gpu-files", NULL, FAIL, NULL, "nvidia.com/gpu: 1");
	/* Where CUDA works nothing is missing. */
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_examine();
	made_expect("container-gpu-files", NULL, OK, "CUDA has " GPU, "");
	made_remove("/gdrcap/facts/cuda");
	made_remove("/sys/bus/pci/devices/%s", GPU);
	made_examine();
	made_expect("container-gpu-files", NULL, NONE, NULL, NULL);
}

static void test_gpu_file_forbidden(void **state)
{
	made_fact("1", "process/access/dev/nvidiactl");
	made_examine();
	made_expect("container-gpu-files", NULL, FAIL, "without /dev/nvidiactl", NULL);
}

static void test_rdma_files(void **state)
{
	made_remove("/dev/infiniband");
	made_examine();
	made_expect("container-rdma-files", CARD, FAIL, "No such file",
		    "docker run --device /dev/infiniband/uverbs0");
	kubernetes();
	made_examine();
	made_expect("container-rdma-files", CARD, FAIL, NULL, "rdma/NAME: 1");
	made_expect("kubernetes", "Network Operator", WARN, "No such file", "grep rdma/");
	/* It was given the other one. */
	made_card(WAY OTHER, "ens1f1np1", "mlx5_1");
	made_file("", "/dev/infiniband/uverbs1");
	made_examine();
	made_expect("container-rdma-files", CARD, NONE, "another card's", "");
	made_expect("container-rdma-files", OTHER, OK, NULL, "");
}

static void test_network(void **state)
{
	made_remove("/sys/bus/pci/devices/%s/net", CARD);
	made_examine();
	made_expect("container-network", CARD, FAIL, "none in this network namespace",
		    "docker run --network host");
	kubernetes();
	made_examine();
	made_expect("container-network", CARD, FAIL, NULL, "k8s.v1.cni.cncf.io/networks");
	made_card(WAY OTHER, "ens1f1np1", "mlx5_1");
	made_examine();
	made_expect("container-network", CARD, NONE, "another card's", "");
}

static void test_memory(void **state)
{
	made_file("1048576", GROUP "/memory.max");
	made_file("0", GROUP "/hugetlb.2MB.max");
	made_file("0", GROUP "/hugetlb.1GB.max");
	made_examine();
	made_expect("container-memory", "memory", WARN, "1048576 bytes", "--memory");
	made_expect("container-memory", "hugepages of 2 MiB", WARN, "0 bytes", "hugepages-2Mi");
	/* Pages of one size are enough. */
	made_file("1073741824", GROUP "/hugetlb.1GB.max");
	made_examine();
	made_expect("container-memory", "hugepages of 2 MiB", OK, "0 bytes", "");
	made_expect("container-memory", "memory", WARN, NULL, NULL);
	made_expect("container-memory", "hugepages of 1 GiB", OK, "1073741824 bytes", "");
	/* The first version of control groups. */
	made_remove(GROUP);
	made_file("9223372036854771712", GROUP "/memory/memory.limit_in_bytes");
	made_examine();
	made_expect("container-memory", NULL, OK, "memory.limit_in_bytes: no limit", "");
	made_file("some", GROUP "/memory/memory.limit_in_bytes");
	made_examine();
	made_expect("container-memory", NULL, UNKNOWN, "Invalid argument", "cat " GROUP);
	made_remove(GROUP);
	made_examine();
	made_expect("container-memory", NULL, NONE, NULL, NULL);
	made_file("max", GROUP "/memory.max");
	made_unreadable(GROUP "/memory.max");
	made_examine();
	made_expect("container-memory", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_cpus(void **state)
{
	made_file("200000 100000", GROUP "/cpu.max");
	made_examine();
	made_expect("container-cpus", NULL, WARN, "200000 us", "--cpuset-cpus");
	kubernetes();
	made_examine();
	made_expect("container-cpus", NULL, WARN, NULL, "--cpu-manager-policy=static");
	made_remove(GROUP "/cpu.max");
	made_file("-1", GROUP "/cpu/cpu.cfs_quota_us");
	made_examine();
	made_expect("container-cpus", NULL, OK, "no limit", "");
	made_remove(GROUP);
	made_examine();
	made_expect("container-cpus", NULL, NONE, "not there", "");
	made_file("max 100000", GROUP "/cpu.max");
	made_unreadable(GROUP "/cpu.max");
	made_examine();
	made_expect("container-cpus", NULL, UNKNOWN, "Permission denied", NULL);
}

static void test_kubernetes(void **state)
{
	kubernetes();
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_fact("0", "cuda/0/dma_buf_supported");
	made_examine();
	made_expect("kubernetes", "GPU Operator", WARN, "not loaded; as dma-buf: no",
		    "driver.rdma.enabled=true");
	made_expect("kubernetes", "GPU Operator", WARN, NULL, "-c nvidia-peermem-ctr");
	made_expect("kubernetes", "Network Operator", OK, "uverbs files", "");
	made_remove("/gdrcap/facts/cuda/0/dma_buf_supported");
	made_examine();
	made_expect("kubernetes", "GPU Operator", UNKNOWN, "not known", NULL);
	made_file("570", "/sys/kernel/mm/memory_peers/nv_mem/version");
	made_examine();
	made_expect("kubernetes", "GPU Operator", OK, NULL, "");
}

static void test_garbage(void **state)
{
	for (unsigned int seed = 1; seed <= 8; seed++) {
		made_teardown(state);
		docker(state);
		kubernetes();
		made_fact("13", "process/access/dev/infiniband/uverbs0");
		made_garbage(seed);
		made_expect("container-memory", "memory", UNKNOWN, NULL, NULL);
		made_expect("container-memory", "hugepages of 2 MiB", UNKNOWN, NULL, NULL);
		made_expect("container-cpus", NULL, UNKNOWN, NULL, NULL);
		made_expect("kubernetes", "GPU Operator", UNKNOWN, NULL, NULL);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, docker, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(all_there),  CASE(outside), CASE(gpu_files), CASE(gpu_file_forbidden),
		CASE(rdma_files), CASE(network), CASE(memory),	  CASE(cpus),
		CASE(kubernetes), CASE(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
