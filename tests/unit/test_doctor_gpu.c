/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up machines, and what is said of their GPUs, driver, CUDA, GPUDirect Async and GDRCopy. */
#include "doctor_tree.h"

#define GPU "0000:ca:00.0"
#define GPU_WAY "pci0000:c9/0000:c9:02.0/" GPU
#define OTHER "0000:da:00.0"
#define OTHER_WAY "pci0000:d9/0000:d9:02.0/" OTHER
#define VERSION "/proc/driver/nvidia/version"
#define OPEN "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build"
#define CLOSED "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024"

/* A GPU that CUDA has, and all that it can. */
static int healthy(void **state)
{
	made_setup(state);
	made_gpu(GPU_WAY);
	made_file(OPEN "\nGCC version: gcc version 12.2.0", VERSION);
	made_folder("/sys/module");
	made_fact("yes", "library/libcuda.so.1");
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_fact("NVIDIA A100 80GB PCIe", "cuda/0/name");
	made_fact("8.0", "cuda/0/compute");
	made_fact("1", "cuda/0/gpu_direct_rdma_supported");
	made_fact("1", "cuda/0/dma_buf_supported");
	made_fact("100", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_fact("1", "cuda/0/gpu_direct_rdma_flush_writes_options");
	return 0;
}

static void no_cuda(void)
{
	made_remove("/gdrcap/facts/cuda");
}

static void test_healthy(void **state)
{
	made_examine();
	made_expect("nvidia-driver", NULL, OK, "570.86.15", "");
	made_expect("libcuda", NULL, OK, "loads", "");
	made_expect("gpu-found", GPU, OK, "CUDA device 0: NVIDIA A100 80GB PCIe", "");
	made_expect("gpudirect-rdma", GPU, OK, ": 1", "");
	made_expect("dma-buf", GPU, OK, "Linux 6.1.0-18-amd64", "");
	made_expect("write-ordering", GPU, OK, "100 (owner); --flush auto does not flush", "");
	made_expect("gdrcopy", NULL, NONE, "not there", "");
}

static void test_driver(void **state)
{
	/* Missing, with the distribution's packages. */
	made_remove(VERSION);
	no_cuda();
	made_examine();
	made_expect(
		"nvidia-driver", NULL, FAIL, VERSION ": not there; driver of " GPU ": nvidia",
		"sudo apt-get install nvidia-open-kernel-dkms nvidia-driver  # from contrib and "
		"non-free\n"
		"sudo modprobe nvidia");
	made_file("ID=rhel\nPRETTY_NAME=\"RHEL\"", "/etc/os-release");
	made_link("/sys/bus/pci/drivers/nouveau", "/sys/bus/pci/devices/%s/driver", GPU);
	made_folder("/sys/bus/pci/drivers/nouveau");
	made_examine();
	made_expect("nvidia-driver", NULL, FAIL, "driver of " GPU ": nouveau",
		    "sudo dnf module enable nvidia-driver:open-dkms  # releases 8 and 9 only\n"
		    "sudo dnf install nvidia-open  # from NVIDIA's repository\n"
		    "echo 'blacklist nouveau' | sudo tee "
		    "/etc/modprobe.d/blacklist-nouveau.conf\nsudo dracut --force");
	made_link("/sys/bus/pci/drivers/vfio-pci", "/sys/bus/pci/devices/%s/driver", GPU);
	made_folder("/sys/bus/pci/drivers/vfio-pci");
	made_examine();
	made_expect("nvidia-driver", NULL, FAIL, "vfio-pci",
		    "echo " GPU " | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind");
	/* No right to read it. */
	made_file(OPEN, VERSION);
	made_unreadable(VERSION);
	made_examine();
	made_expect("nvidia-driver", NULL, UNKNOWN, "Permission denied", "cat " VERSION);
}

/* CUDA works: then there is a driver, whatever the file is. */
static void test_driver_hidden(void **state)
{
	made_remove(VERSION);
	made_examine();
	made_expect("nvidia-driver", NULL, OK, "CUDA has " GPU, "");
}

static void test_libcuda(void **state)
{
	made_fact("libcuda.so.1: cannot open shared object file", "library/libcuda.so.1");
	no_cuda();
	made_examine();
	made_expect("libcuda", NULL, FAIL, "cannot open shared", "sudo apt-get install libcuda1");
	made_expect("gpu-found", GPU, UNKNOWN, "could not be asked", "nvidia-smi -L");
	made_expect("gpudirect-rdma", GPU, UNKNOWN, "not known", "gdrcap doctor");
	made_expect("write-ordering", GPU, UNKNOWN, "--flush auto flushes each burst", NULL);
	made_file("ID=ubuntu", "/etc/os-release");
	made_examine();
	made_expect("libcuda", NULL, FAIL, NULL, "libnvidia-compute-570 ");
	made_file("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "/etc/os-release");
	made_examine();
	made_expect("libcuda", NULL, FAIL, NULL, "sudo dnf install nvidia-driver-cuda");
	made_remove("/gdrcap/facts/library");
	made_examine();
	made_expect("libcuda", NULL, UNKNOWN, NULL, "ldconfig -p");
}

static void test_gpu_found(void **state)
{
	no_cuda();
	made_fact("cuInit: 802 (system not yet initialized)", "cuda/error");
	made_examine();
	made_expect("gpu-found", GPU, FAIL, "802", "sudo systemctl start nvidia-fabricmanager");
	made_fact("cuInit: 803 (system has unsupported display driver)", "cuda/error");
	made_examine();
	made_expect("gpu-found", GPU, FAIL, "803", "sudo reboot");
	made_fact("no answer within 700 ms", "cuda/error");
	made_examine();
	made_expect("gpu-found", GPU, UNKNOWN, "no answer", "sudo nvidia-smi -pm 1");
	made_fact("cuInit: 100 (no CUDA-capable device is detected)", "cuda/error");
	made_examine();
	made_expect("gpu-found", GPU, FAIL, "100", "sudo dmesg | grep -e NVRM -e " GPU);
	assert_false(doctor_able(made_doctor, NULL));
}

/* One of two is enough: the other is no reason to give up. */
static void test_second_gpu(void **state)
{
	made_gpu(OTHER_WAY);
	made_examine();
	made_expect("gpu-found", OTHER, WARN, "CUDA: does not have it", NULL);
	made_expect("gpu-found", GPU, OK, NULL, "");
	made_expect("gpudirect-rdma", OTHER, UNKNOWN, NULL, NULL);
	made_fact("1x", "cuda/count");
	made_examine();
	made_expect("gpu-found", OTHER, UNKNOWN, "could not be asked", "nvidia-smi -L");
	made_fact("2", "cuda/count");
	made_fact(OTHER, "cuda/1/pci");
	made_fact("0", "cuda/1/gpu_direct_rdma_supported");
	made_examine();
	made_expect("gpu-found", OTHER, OK, "CUDA device 1", "");
	made_expect("gpudirect-rdma", OTHER, WARN, ": 0", "GeForce cannot");
}

static void test_no_gpu(void **state)
{
	made_remove("/sys/bus/pci/devices/%s", GPU);
	made_remove("/gdrcap/facts/cuda");
	made_examine();
	made_expect("gpu-found", NULL, FAIL, "no NVIDIA GPU", "sudo lspci -d 10de:");
	made_expect("gpudirect-rdma", NULL, NONE, NULL, NULL);
	made_expect("libcuda", NULL, NONE, NULL, NULL);
	made_expect("gdrcopy", NULL, NONE, NULL, NULL);
	/* A bus that nobody can see is no proof. */
	made_remove("/sys/bus/pci");
	made_examine();
	made_expect("gpu-found", NULL, UNKNOWN, NULL, "nvidia-smi -L");
	/* CUDA has one all the same. */
	made_fact("1", "cuda/count");
	made_fact(GPU, "cuda/0/pci");
	made_examine();
	made_expect("gpu-found", GPU, OK, "not in /sys/bus/pci/devices", "");
}

static void test_gpudirect(void **state)
{
	made_fact("0", "cuda/0/gpu_direct_rdma_supported");
	made_examine();
	made_expect("gpudirect-rdma", GPU, FAIL, ": 0", "--memory pinned");
	made_fact("yes", "cuda/0/gpu_direct_rdma_supported");
	made_examine();
	made_expect("gpudirect-rdma", GPU, UNKNOWN, "not known", NULL);
}

static void test_dmabuf(void **state)
{
	/* The driver is the closed one: install the open one. */
	made_file(CLOSED, VERSION);
	made_fact("0", "cuda/0/dma_buf_supported");
	made_examine();
	made_expect("dma-buf", GPU, WARN, "DMA_BUF_SUPPORTED: 0", "nvidia-open-kernel-dkms");
	/* It is the open one already: the GPU cannot. */
	made_file(OPEN, VERSION);
	made_examine();
	made_expect("dma-buf", GPU, WARN, NULL, "see peermem-loaded");
	/* The other way works. */
	made_file("570.86.15", "/sys/kernel/mm/memory_peers/nv_mem/version");
	made_examine();
	made_expect("dma-buf", GPU, NONE, "not needed", "");
	made_remove("/sys/kernel");
	/* A kernel before 5.12: OFED's modules may have it. */
	made_fact("1", "cuda/0/dma_buf_supported");
	made_file("5.11.0-49-generic", "/proc/sys/kernel/osrelease");
	made_examine();
	made_expect("dma-buf", GPU, UNKNOWN, "older than 5.12", "sudo gdrcap doctor --live");
	made_file("0 T ib_register_client\t[ib_core]", "/proc/kallsyms");
	made_examine();
	made_expect("dma-buf", GPU, WARN, "no ib_umem_dmabuf_get", "5.12 or later");
	made_file("0 T ib_umem_dmabuf_get\t[ib_uverbs]\n0 T ib_register_client\t[ib_core]",
		  "/proc/kallsyms");
	made_examine();
	made_expect("dma-buf", GPU, OK, "ib_umem_dmabuf_get", "");
	/* A later kernel that was built without. */
	made_file("5.12.0", "/proc/sys/kernel/osrelease");
	made_file("# CONFIG_INFINIBAND_ON_DEMAND_PAGING is not set", "/boot/config-5.12.0");
	made_examine();
	made_expect("dma-buf", GPU, WARN, "is not set", "ON_DEMAND_PAGING");
	made_file("CONFIG_INFINIBAND_ON_DEMAND_PAGING=y", "/boot/config-5.12.0");
	made_examine();
	made_expect("dma-buf", GPU, OK, "Linux 5.12.0", "");
	/* CUDA does not say. */
	made_remove("/gdrcap/facts/cuda/0/dma_buf_supported");
	made_examine();
	made_expect("dma-buf", GPU, UNKNOWN, "not known", "--live");
}

static void test_write_ordering(void **state)
{
	made_fact("200", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_examine();
	made_expect("write-ordering", GPU, OK, "200 (all devices)", "");
	made_fact("0", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_examine();
	made_expect("write-ordering", GPU, WARN, "0 (none); --flush auto flushes each burst", NULL);
	made_fact("2", "cuda/0/gpu_direct_rdma_flush_writes_options");
	made_examine();
	made_expect("write-ordering", GPU, FAIL, "2, without the host's", "--memory pinned");
	made_fact("-1", "cuda/0/gpu_direct_rdma_writes_ordering");
	made_examine();
	made_expect("write-ordering", GPU, UNKNOWN, NULL, NULL);
}

static void test_gdrcopy(void **state)
{
	made_fact("libgdrapi.so.2: cannot open", "library/libgdrapi.so.2");
	made_file("2.4", "/sys/module/gdrdrv/version");
	made_examine();
	made_expect(
		"gdrcopy", NULL, WARN, "/dev/gdrdrv: not there",
		"sudo apt-get install ./libgdrapi_*.deb  # downloaded from NVIDIA: GDRCopy's releases\n"
		"sudo mknod /dev/gdrdrv");
	made_fact("yes", "library/libgdrapi.so.2");
	made_remove("/sys/module/gdrdrv");
	made_examine();
	made_expect(
		"gdrcopy", NULL, WARN, NULL,
		"sudo apt-get install ./gdrdrv-dkms_*.deb  # downloaded from NVIDIA: GDRCopy's releases\n"
		"sudo modprobe gdrdrv");
	made_file("", "/dev/gdrdrv");
	made_examine();
	made_expect("gdrcopy", NULL, OK, "loads", "");
	made_fact("libgdrapi.so.2: cannot open", "library/libgdrapi.so.2");
	made_examine();
	made_expect("gdrcopy", NULL, WARN, "/dev/gdrdrv: there; libgdrapi.so.2: libgdrapi",
		    "sudo apt-get install ./libgdrapi_*.deb");
	made_remove("/gdrcap/facts/library/libgdrapi.so.2");
	made_examine();
	made_expect("gdrcopy", NULL, UNKNOWN, "not known", "ldconfig");
}

static void test_garbage(void **state)
{
	for (unsigned int seed = 1; seed <= 8; seed++) {
		made_teardown(state);
		healthy(state);
		made_garbage(seed);
		made_examine();
		made_expect("nvidia-driver", NULL, UNKNOWN, "no line", NULL);
		assert_int_not_equal(made_find("libcuda", NULL)->verdict, OK);
		assert_int_not_equal(made_find("gpudirect-rdma", GPU)->verdict, OK);
		assert_int_not_equal(made_find("dma-buf", GPU)->verdict, OK);
		assert_int_not_equal(made_find("write-ordering", GPU)->verdict, OK);
		assert_int_not_equal(made_find("gdrcopy", NULL)->verdict, OK);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, healthy, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(healthy),	 CASE(driver),	       CASE(driver_hidden), CASE(libcuda),
		CASE(gpu_found), CASE(second_gpu),     CASE(no_gpu),	    CASE(gpudirect),
		CASE(dmabuf),	 CASE(write_ordering), CASE(gdrcopy),	    CASE(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
