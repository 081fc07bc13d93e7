/* SPDX-License-Identifier: BSD-3-Clause */
/* The vdev gpu_cuda on a real device, through rte_gpu_*. Exit 77 without a CUDA device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include "gpu/gpu_drivers.h"
#include "gpu/gpu_export.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int devices;

static int16_t gpu_find(const char *name)
{
	struct rte_gpu_info info;
	int16_t id;

	RTE_GPU_FOREACH(id)
	if (!rte_gpu_info_get(id, &info) && !strcmp(info.name, name))
		return id;
	return RTE_GPU_ID_NONE;
}

static int16_t cuda(void)
{
	return gpu_find("gpu_cuda");
}

static void info_is_what_cuda_says(void **state)
{
	struct cudaDeviceProp properties;
	struct rte_gpu_info info;

	assert_int_equal(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
	assert_int_equal(rte_gpu_info_get(cuda(), &info), 0);
	assert_int_equal(info.total_memory, properties.totalGlobalMem);
	assert_int_equal(info.processor_count, properties.multiProcessorCount);
	assert_int_equal(info.page_size, 64 * KIB);
	assert_true(info.context != 0);
	assert_true(info.numa_node >= -1);
}

static void arguments_are_checked(void **state)
{
	char beyond[32];
	const char *const refused[] = { beyond,	       "ordinal=-1",	      "ordinal=",
					"ordinal=0x0", "ordinal=99999999999", "ordinal=0,ordinal=0",
					"guard=1" };

	snprintf(beyond, sizeof(beyond), "ordinal=%d", devices);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_true(rte_vdev_init("gpu_cuda_bad", refused[i]) < 0);
		assert_int_equal(gpu_find("gpu_cuda_bad"), RTE_GPU_ID_NONE);
	}
}

static void memory_is_device_memory(void **state)
{
	static const struct {
		size_t bytes;
		unsigned int align;
		size_t expected;
	} cases[] = {
		{ 1, 0, 64 * KIB },	 { 1024, 4096, 64 * KIB }, { 100 * KIB, 1u << 20, MIB },
		{ 2 * MIB, 0, 2 * MIB }, { 5 * MIB, 64, 2 * MIB }, { MIB, 1u << 28, 256 * MIB },
	};
	static uint8_t sent[5 * MIB], received[5 * MIB];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 251 >> 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cudaPointerAttributes attributes;
		void *at = rte_gpu_mem_alloc(cuda(), cases[i].bytes, cases[i].align);

		assert_non_null(at);
		assert_int_equal((uintptr_t)at % cases[i].expected, 0);
		assert_int_equal(cudaPointerGetAttributes(&attributes, at), cudaSuccess);
		assert_int_equal(attributes.type, cudaMemoryTypeDevice);
		assert_int_equal(attributes.device, 0);
		assert_int_equal(cudaMemcpy(at, sent, cases[i].bytes, cudaMemcpyDefault),
				 cudaSuccess);
		assert_int_equal(cudaMemcpy(received, at, cases[i].bytes, cudaMemcpyDefault),
				 cudaSuccess);
		assert_memory_equal(received, sent, cases[i].bytes);
		memset(received, 0, cases[i].bytes);
		assert_true(rte_gpu_mem_free(cuda(), (uint8_t *)at + 1) < 0);
		assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
		assert_true(rte_gpu_mem_free(cuda(), at) < 0);
	}
}

static void too_much_is_refused(void **state)
{
	struct rte_gpu_info info;
	size_t before, after, total;
	void *at;

	assert_int_equal(cudaMemGetInfo(&before, &total), cudaSuccess);
	assert_int_equal(rte_gpu_info_get(cuda(), &info), 0);
	assert_null(rte_gpu_mem_alloc(cuda(), info.total_memory * 2, 0));
	assert_int_equal(rte_errno, ENOMEM);
	/* nothing is left for the application's own check to find */
	assert_int_equal(cudaPeekAtLastError(), cudaSuccess);

	at = rte_gpu_mem_alloc(cuda(), 512 * MIB, 0);
	assert_non_null(at);
	assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
	assert_int_equal(cudaMemGetInfo(&after, &total), cudaSuccess);
	/* other programs may use the device too: what was freed is free, give or take their use */
	assert_true(after + 256 * MIB > before);
}

static void registered_memory_has_one_address(void **state)
{
	uint8_t *host = rte_zmalloc(NULL, 256 * KIB, 4096), read[16];
	void *device = NULL;

	assert_non_null(host);
	assert_int_equal(rte_gpu_mem_register(cuda(), 128 * KIB, host), 0);
	assert_int_equal(cudaHostGetDevicePointer(&device, host, 0), cudaSuccess);
	assert_ptr_equal(device, host);
	memset(host, 0x3c, 128 * KIB);
	assert_int_equal(cudaMemcpy(read, host + 100, sizeof(read), cudaMemcpyDefault),
			 cudaSuccess);
	assert_int_equal(read[0], 0x3c);
	assert_true(rte_gpu_mem_register(cuda(), 128 * KIB, host) < 0);
	assert_true(rte_gpu_mem_register(cuda(), 4096, host + 64 * KIB) < 0);
	assert_true(rte_gpu_mem_unregister(cuda(), host + 4096) < 0);
	assert_int_equal(rte_gpu_mem_unregister(cuda(), host), 0);
	assert_true(rte_gpu_mem_unregister(cuda(), host) < 0);

	/* registered behind the driver's back: CUDA's own refusal arrives, and leaves no trace */
	assert_int_equal(cudaHostRegister(host, 4096, cudaHostRegisterDefault), cudaSuccess);
	assert_true(rte_gpu_mem_register(cuda(), 4096, host) < 0);
	assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
	assert_int_equal(cudaHostUnregister(host), cudaSuccess);
	assert_int_equal(rte_gpu_mem_register(cuda(), 4096, host), 0);
	assert_int_equal(rte_gpu_mem_unregister(cuda(), host), 0);
	rte_free(host);
}

static void cpu_mapping_is_the_same_memory(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(cuda(), 256 * KIB, 0), *cpu, read[4];

	assert_non_null(at);
	assert_null(rte_gpu_mem_cpu_map(cuda(), 256 * KIB, at + 64 * KIB));
	cpu = rte_gpu_mem_cpu_map(cuda(), 100, at + 70 * KIB);
	if (!cpu) {
		/* the driver's log line says what GDRCopy lacks */
		assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
		skip();
	}
	cpu[0] = 1;
	cpu[3] = 4;
	assert_int_equal(rte_gpu_wmb(cuda()), 0);
	assert_int_equal(cudaMemcpy(read, at + 70 * KIB, 4, cudaMemcpyDefault), cudaSuccess);
	assert_int_equal(read[0], 1);
	assert_int_equal(read[3], 4);
	assert_int_equal(rte_gpu_mem_cpu_unmap(cuda(), at + 70 * KIB), 0);
	assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
}

static void write_barrier_follows_the_device(void **state)
{
	int ordering = 0, flush = 0;

	assert_int_equal(
		cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, 0),
		cudaSuccess);
	assert_int_equal(
		cudaDeviceGetAttribute(&flush, cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0),
		cudaSuccess);
	if (ordering >= cudaGPUDirectRDMAWritesOrderingOwner ||
	    flush & cudaFlushGPUDirectRDMAWritesOptionHost)
		assert_int_equal(rte_gpu_wmb(cuda()), 0);
	else
		assert_true(rte_gpu_wmb(cuda()) < 0);
}

static void external_memory_takes_large_pages(void **state)
{
	void *at = rte_gpu_mem_alloc(cuda(), 6 * MIB, 0);

	assert_non_null(at);
	assert_int_equal(rte_extmem_register(at, 6 * MIB, NULL, 3, 2 * MIB), 0);
	assert_int_equal(rte_extmem_unregister(at, 6 * MIB), 0);
	assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
}

/* As a dma-buf: our own allocations, parts of them, and the application's. */
static void memory_is_exported(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(cuda(), 4 * MIB, 0), *own = NULL;
	static uint8_t host[64 << 10] __attribute__((aligned(4096)));
	int fd;

	assert_non_null(at);
	fd = gpu_export(cuda(), at, 4 * MIB);
	if (fd == -ENOTSUP) {
		/* the driver, its kernel modules or the GPU make none */
		assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4 * MIB);
	close(fd);
	fd = gpu_export(cuda(), at + MIB, 64 * KIB);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cudaMalloc((void **)&own, 2 * MIB), cudaSuccess);
	fd = gpu_export(cuda(), own, 2 * MIB);
	assert_true(fd >= 0);
	close(fd);
	assert_true(gpu_export(cuda(), host, sizeof(host)) < 0);
	assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
	assert_int_equal(cudaFree(own), cudaSuccess);
	assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
}

static void own_memory_is_told_from_other(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(cuda(), MIB, 0), *device = NULL, *pinned = NULL,
		*managed = NULL;
	static uint8_t host[4096];

	assert_non_null(at);
	assert_int_equal(gpu_owns(cuda(), at, MIB), 1);
	assert_int_equal(gpu_owns(cuda(), host, sizeof(host)), 0);
	assert_int_equal(cudaMalloc((void **)&device, MIB), cudaSuccess);
	assert_int_equal(gpu_owns(cuda(), device, MIB), 1);
	assert_int_equal(cudaHostAlloc((void **)&pinned, MIB, cudaHostAllocMapped), cudaSuccess);
	assert_int_equal(gpu_owns(cuda(), pinned, MIB), 0);
	assert_int_equal(cudaMallocManaged((void **)&managed, MIB, cudaMemAttachGlobal),
			 cudaSuccess);
	assert_int_equal(gpu_owns(cuda(), managed, MIB), 0);
	/* from the GPU's into nobody's */
	assert_int_equal(gpu_owns(cuda(), device, (size_t)1 << 46), 0);
	assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
	assert_int_equal(cudaFree(managed), cudaSuccess);
	assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
	assert_int_equal(cudaFree(device), cudaSuccess);
	assert_int_equal(rte_gpu_mem_free(cuda(), at), 0);
}

/* With a second GPU: its memory is its own, and the caller stays on the device it chose. */
static void the_callers_device_stays(void **state)
{
	struct cudaPointerAttributes attributes;
	int last = devices - 1, current = -1;
	char args[32];
	int16_t gpu;
	void *at;

	snprintf(args, sizeof(args), "ordinal=%d", last);
	assert_int_equal(rte_vdev_init("gpu_cuda_last", args), 0);
	gpu = gpu_find("gpu_cuda_last");
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	at = rte_gpu_mem_alloc(gpu, MIB, 0);
	assert_non_null(at);
	assert_int_equal(cudaPointerGetAttributes(&attributes, at), cudaSuccess);
	assert_int_equal(attributes.device, last);
	assert_int_equal(cudaGetDevice(&current), cudaSuccess);
	assert_int_equal(current, 0);
	assert_int_equal(gpu_owns(gpu, at, MIB), 1);
	assert_int_equal(gpu_owns(cuda(), at, MIB), last == 0);
	assert_int_equal(cudaGetDevice(&current), cudaSuccess);
	assert_int_equal(current, 0);
	/* left allocated: removal gives it back */
	assert_int_equal(rte_vdev_uninit("gpu_cuda_last"), 0);
	assert_int_equal(gpu_find("gpu_cuda_last"), RTE_GPU_ID_NONE);
}

int main(int argc, char **argv)
{
	char prefix[64], why[256];
	char *eal[] = { argv[0],       "--no-huge",	     "-m",
			"128",	       "--no-pci",	     "--no-telemetry",
			"--no-shconf", "--file-prefix",	     prefix,
			"--vdev",      "gpu_cuda,ordinal=0", NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info_is_what_cuda_says),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(memory_is_device_memory),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(registered_memory_has_one_address),
		cmocka_unit_test(cpu_mapping_is_the_same_memory),
		cmocka_unit_test(write_barrier_follows_the_device),
		cmocka_unit_test(external_memory_takes_large_pages),
		cmocka_unit_test(memory_is_exported),
		cmocka_unit_test(own_memory_is_told_from_other),
		cmocka_unit_test(the_callers_device_stays),
	};
	int failed;

	devices = gpu_cuda_count(why, sizeof(why));
	if (devices == 0) {
		printf("skipped: no CUDA device: %s\n", why);
		return 77;
	}
	snprintf(prefix, sizeof(prefix), "gdrcap-test-gpudev-%d", (int)getpid());
	gpu_cuda_register();
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])) - 1, eal) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(rte_eal_get_runtime_dir());
	return rte_eal_cleanup() ? 1 : failed;
}
