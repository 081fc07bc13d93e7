/* SPDX-License-Identifier: BSD-3-Clause */
/* The vdev gpu_host through the public rte_gpu_* calls, plain and with guard=1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_memory.h>

#include "gpu/gpu_drivers.h"
#include "gpu/gpu_export.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static int16_t gpu_find(const char *name)
{
	struct rte_gpu_info info;
	int16_t id;

	RTE_GPU_FOREACH(id)
	if (!rte_gpu_info_get(id, &info) && !strcmp(info.name, name))
		return id;
	return RTE_GPU_ID_NONE;
}

static int16_t plain(void)
{
	return gpu_find("gpu_host_plain");
}

static int16_t guarded(void)
{
	return gpu_find("gpu_host_guard");
}

static void info_is_complete(void **state)
{
	struct rte_gpu_info info;

	assert_int_equal(rte_gpu_count_avail(), 2);
	assert_int_equal(rte_gpu_info_get(guarded(), &info), 0);
	assert_int_equal(info.parent, RTE_GPU_ID_NONE);
	assert_int_equal(info.page_size, 64 * KIB);
	assert_int_equal(info.processor_count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(info.total_memory,
			 (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
	assert_true(info.numa_node >= -1);
}

static void arguments_are_checked(void **state)
{
	static const char *const refused[] = { "guard=2",  "guard=",	     "guard",
					       "guard=-1", "guard=1x",	     "guard=0,guard=1",
					       "fence=1",  "guard=1,fence=1" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_true(rte_vdev_init("gpu_host_bad", refused[i]) < 0);
		assert_int_equal(gpu_find("gpu_host_bad"), RTE_GPU_ID_NONE);
	}
	assert_int_equal(rte_vdev_init("gpu_host_good", "guard=0"), 0);
	assert_true(gpu_find("gpu_host_good") >= 0);
	assert_int_equal(rte_vdev_uninit("gpu_host_good"), 0);
	assert_int_equal(gpu_find("gpu_host_good"), RTE_GPU_ID_NONE);
}

static void alignment_is_kept(void **state)
{
	static const struct {
		size_t bytes;
		unsigned int align;
		size_t expected;
	} cases[] = {
		{ 1, 0, 64 * KIB },	      { 1024, 4096, 64 * KIB }, { 1, 1u << 20, MIB },
		{ 2 * MIB - 1, 0, 64 * KIB }, { 2 * MIB, 0, 2 * MIB },	{ 5 * MIB, 4096, 2 * MIB },
		{ 3 * MIB, 1u << 30, GIB },
	};

	for (int guard = 0; guard < 2; guard++) {
		int16_t gpu = guard ? guarded() : plain();

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			void *at = rte_gpu_mem_alloc(gpu, cases[i].bytes, cases[i].align);
			uint8_t *cpu;

			assert_non_null(at);
			assert_int_equal((uintptr_t)at % cases[i].expected, 0);
			cpu = rte_gpu_mem_cpu_map(gpu, cases[i].bytes, at);
			assert_non_null(cpu);
			assert_int_equal((uintptr_t)cpu % cases[i].expected, 0);
			cpu[0] = 1;
			cpu[cases[i].bytes - 1] = 2;
			assert_int_equal(rte_gpu_mem_free(gpu, at), 0);
		}
	}
}

static void sizes_are_checked(void **state)
{
	volatile size_t huge = SIZE_MAX; /* volatile: the compiler would refuse a constant */
	struct rte_gpu_info info;
	void *at, *rest;

	assert_null(rte_gpu_mem_alloc(plain(), 0, 0));
	assert_null(rte_gpu_mem_alloc(plain(), 4096, 3));
	assert_null(rte_gpu_mem_alloc(plain(), huge, 0));
	assert_int_equal(rte_errno, E2BIG);
	assert_null(rte_gpu_mem_alloc(plain(), huge - 4 * MIB, 0));
	assert_int_equal(rte_errno, E2BIG);

	/* Together no more than there is; what was freed is there again. */
	assert_int_equal(rte_gpu_info_get(plain(), &info), 0);
	assert_null(rte_gpu_mem_alloc(plain(), info.total_memory + 1, 0));
	assert_int_equal(rte_errno, ENOMEM);
	at = rte_gpu_mem_alloc(plain(), info.total_memory / 2, 0);
	assert_non_null(at);
	assert_null(rte_gpu_mem_alloc(plain(), info.total_memory / 2 + 2 * MIB, 0));
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(rte_gpu_mem_free(plain(), at), 0);
	rest = rte_gpu_mem_alloc(plain(), info.total_memory / 2 + 2 * MIB, 0);
	assert_non_null(rest);
	assert_int_equal(rte_gpu_mem_free(plain(), rest), 0);
}

static void free_takes_only_what_was_allocated(void **state)
{
	uint8_t *at[4];
	int here;

	assert_int_equal(rte_gpu_mem_free(plain(), NULL), 0);
	assert_true(rte_gpu_mem_free(plain(), &here) < 0);
	for (int i = 0; i < 4; i++) {
		at[i] = rte_gpu_mem_alloc(plain(), 1024, 0);
		assert_non_null(at[i]);
		at[i][0] = (uint8_t)i;
	}
	assert_true(rte_gpu_mem_free(plain(), at[0] + 0x700) < 0);
	assert_true(rte_gpu_mem_free(guarded(), at[0]) < 0);
	/* newest, middle, oldest, and a new one in between */
	assert_int_equal(rte_gpu_mem_free(plain(), at[3]), 0);
	assert_true(rte_gpu_mem_free(plain(), at[3]) < 0);
	at[3] = rte_gpu_mem_alloc(plain(), 1024, 0);
	assert_non_null(at[3]);
	assert_int_equal(rte_gpu_mem_free(plain(), at[1]), 0);
	assert_int_equal(rte_gpu_mem_free(plain(), at[0]), 0);
	assert_int_equal(at[2][0], 2);
	assert_int_equal(rte_gpu_mem_free(plain(), at[2]), 0);
	assert_int_equal(rte_gpu_mem_free(plain(), at[3]), 0);
	assert_true(rte_gpu_mem_free(plain(), at[2]) < 0);
}

/* Does a read of *at kill a child process by SIGSEGV? */
static int read_faults(const volatile uint8_t *at)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*at & 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void guard_keeps_the_cpu_out(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(guarded(), 3 * MIB, 0);
	uint8_t *cpu = rte_gpu_mem_cpu_map(guarded(), 3 * MIB, at);
	uint8_t *inner = rte_gpu_mem_cpu_map(guarded(), 100, at + MIB + 5);

	assert_non_null(at);
	assert_non_null(cpu);
	assert_ptr_not_equal(cpu, at);
	assert_ptr_equal(inner, cpu + MIB + 5);
	assert_true(read_faults(at));
	assert_true(read_faults(at + MIB + 5));
	assert_true(read_faults(at + 3 * MIB - 1));
	assert_false(read_faults(cpu));

	/* the same memory under both addresses: open the guarded one, only here */
	memset(cpu, 0xa5, 3 * MIB);
	inner[7] = 0x5a;
	assert_int_equal(mprotect(at, 3 * MIB, PROT_READ), 0);
	assert_int_equal(at[0], 0xa5);
	assert_int_equal(at[MIB + 12], 0x5a);
	assert_int_equal(at[3 * MIB - 1], 0xa5);
	assert_int_equal(rte_gpu_mem_free(guarded(), at), 0);
	/* both mappings went with it */
	assert_true(read_faults(at));
	assert_true(read_faults(cpu));
}

static void plain_memory_is_its_own_mapping(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(plain(), 4096, 0);

	assert_non_null(at);
	assert_ptr_equal(rte_gpu_mem_cpu_map(plain(), 4096, at), at);
	assert_ptr_equal(rte_gpu_mem_cpu_map(plain(), 16, at + 100), at + 100);
	assert_int_equal(rte_gpu_wmb(plain()), 0);
	assert_int_equal(rte_gpu_mem_free(plain(), at), 0);
}

static void mappings_are_counted_and_checked(void **state)
{
	uint8_t *at = rte_gpu_mem_alloc(guarded(), 64 * KIB, 0);
	uint8_t *cpu = rte_gpu_mem_cpu_map(guarded(), 64 * KIB, at);
	int here;

	assert_non_null(cpu);
	assert_ptr_equal(rte_gpu_mem_cpu_map(guarded(), 4096, at), cpu);
	assert_null(rte_gpu_mem_cpu_map(guarded(), 64 * KIB, at + 1));
	assert_null(rte_gpu_mem_cpu_map(guarded(), SIZE_MAX, at + 1));
	assert_null(rte_gpu_mem_cpu_map(guarded(), sizeof(here), &here));
	assert_null(rte_gpu_mem_cpu_map(guarded(), 16, cpu));
	assert_true(rte_gpu_mem_cpu_unmap(guarded(), at + 1) < 0);
	assert_int_equal(rte_gpu_mem_cpu_unmap(guarded(), at), 0);
	assert_int_equal(rte_gpu_mem_cpu_unmap(guarded(), at), 0);
	assert_true(rte_gpu_mem_cpu_unmap(guarded(), at) < 0);
	/* a longer range from the same start only when the shorter is gone */
	assert_ptr_equal(rte_gpu_mem_cpu_map(guarded(), 4096, at), cpu);
	assert_null(rte_gpu_mem_cpu_map(guarded(), 4097, at));
	assert_int_equal(rte_gpu_mem_cpu_unmap(guarded(), at), 0);
	assert_ptr_equal(rte_gpu_mem_cpu_map(guarded(), 4097, at), cpu);
	assert_int_equal(rte_gpu_mem_free(guarded(), at), 0);
	assert_true(rte_gpu_mem_cpu_unmap(guarded(), at) < 0);
}

static void registrations_do_not_overlap(void **state)
{
	static uint8_t memory[4096];
	uint8_t *at = rte_gpu_mem_alloc(plain(), 4096, 0);
	void *hole = mmap(NULL, 64 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(rte_gpu_mem_register(plain(), 1024, memory + 1024), 0);
	assert_true(rte_gpu_mem_register(plain(), 1024, memory + 1024) < 0);
	assert_true(rte_gpu_mem_register(plain(), 1025, memory) < 0);
	assert_true(rte_gpu_mem_register(plain(), 1, memory + 2047) < 0);
	assert_true(rte_gpu_mem_register(plain(), 4096, memory) < 0);
	assert_int_equal(rte_gpu_mem_register(plain(), 1024, memory), 0);
	assert_int_equal(rte_gpu_mem_register(plain(), 1024, memory + 2048), 0);
	assert_true(rte_gpu_mem_unregister(plain(), memory + 1024 + 0x300) < 0);
	assert_int_equal(rte_gpu_mem_unregister(plain(), memory + 1024), 0);
	assert_true(rte_gpu_mem_unregister(plain(), memory + 1024) < 0);
	assert_int_equal(rte_gpu_mem_register(plain(), 1024, memory + 1024), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rte_gpu_mem_unregister(plain(), memory + 1024 * i), 0);

	/* not host memory: the GPU's own, past the end, no memory at all */
	assert_true(rte_gpu_mem_register(plain(), 16, at) < 0);
	assert_true(rte_gpu_mem_register(plain(), SIZE_MAX, memory) < 0);
	assert_int_equal(munmap(hole, 64 * KIB), 0);
	assert_true(rte_gpu_mem_register(plain(), 64 * KIB, hole) < 0);
	assert_int_equal(rte_gpu_mem_free(plain(), at), 0);
}

static void external_memory_takes_large_pages(void **state)
{
	for (int guard = 0; guard < 2; guard++) {
		int16_t gpu = guard ? guarded() : plain();
		void *at = rte_gpu_mem_alloc(gpu, 6 * MIB, 0);

		assert_non_null(at);
		assert_int_equal(rte_extmem_register(at, 6 * MIB, NULL, 3, 2 * MIB), 0);
		assert_int_equal(rte_extmem_unregister(at, 6 * MIB), 0);
		assert_int_equal(rte_gpu_mem_free(gpu, at), 0);
	}
}

static unsigned int files_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void exported_file_is_the_memory(void **state)
{
	static uint8_t custom[4096];
	const unsigned int files = files_open();
	uint8_t *seen;
	int fd;

	for (int guard = 0; guard < 2; guard++) {
		int16_t gpu = guard ? guarded() : plain();
		uint8_t *at = rte_gpu_mem_alloc(gpu, 3 * MIB, 0);
		uint8_t *cpu = rte_gpu_mem_cpu_map(gpu, 3 * MIB, at);

		assert_non_null(cpu);
		cpu[2 * MIB + 9] = 0x21;
		fd = gpu_export(gpu, at, 3 * MIB);
		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		seen = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(seen != MAP_FAILED);
		assert_int_equal(seen[2 * MIB + 9], 0x21);
		seen[5] = 0x42;
		assert_int_equal(cpu[5], 0x42);
		assert_int_equal(munmap(seen, 3 * MIB), 0);
		assert_int_equal(close(fd), 0);

		assert_int_equal(gpu_export(gpu, at + 64 * KIB, 64 * KIB), -EINVAL);
		assert_int_equal(gpu_export(gpu, at, 0), -EINVAL);
		assert_int_equal(gpu_export(gpu, at, SIZE_MAX), -EINVAL);
		assert_int_equal(gpu_export(gpu, at, 8 * MIB), -ENOTSUP);
		assert_int_equal(gpu_export(gpu, custom, sizeof(custom)), -ENOTSUP);
		assert_int_equal(gpu_export(guard ? plain() : guarded(), at, 3 * MIB), -ENOTSUP);
		assert_int_equal(rte_gpu_mem_free(gpu, at), 0);
		assert_int_equal(gpu_export(gpu, at, 3 * MIB), -ENOTSUP);
	}
	assert_int_equal(files_open(), files);
	assert_int_equal(gpu_export(99, custom, sizeof(custom)), -ENODEV);
	assert_int_equal(gpu_owns(99, custom, sizeof(custom)), -ENODEV);
	assert_int_equal(gpu_owns(plain(), custom, sizeof(custom)), 1);
}

static void large_allocations_touch_nothing(void **state)
{
	struct rte_gpu_info info;
	struct rusage before, after;
	size_t bytes = 16 * GIB;
	void *at;

	assert_int_equal(rte_gpu_info_get(plain(), &info), 0);
	if (bytes > info.total_memory)
		bytes = info.total_memory / 2;
	for (int guard = 0; guard < 2; guard++) {
		int16_t gpu = guard ? guarded() : plain();

		getrusage(RUSAGE_SELF, &before);
		at = rte_gpu_mem_alloc(gpu, bytes, 0);
		assert_non_null(at);
		assert_int_equal(rte_gpu_mem_free(gpu, at), 0);
		getrusage(RUSAGE_SELF, &after);
		/* one fault for each 64 KiB would be a quarter of a million */
		assert_true(after.ru_minflt - before.ru_minflt < 1000);
	}
}

static void closing_gives_all_back(void **state)
{
	static uint8_t memory[64];
	uint8_t *at, *cpu;
	int16_t gpu;

	/* removed with the vdev, and before it */
	for (int first = 0; first < 2; first++) {
		assert_int_equal(rte_vdev_init("gpu_host_short", "guard=1"), 0);
		gpu = gpu_find("gpu_host_short");
		at = rte_gpu_mem_alloc(gpu, MIB, 0);
		cpu = rte_gpu_mem_cpu_map(gpu, MIB, at);
		assert_non_null(cpu);
		assert_int_equal(rte_gpu_mem_register(gpu, sizeof(memory), memory), 0);
		if (first)
			assert_int_equal(rte_gpu_close(gpu), 0);
		assert_int_equal(rte_vdev_uninit("gpu_host_short"), 0);
		assert_int_equal(gpu_find("gpu_host_short"), RTE_GPU_ID_NONE);
		assert_true(read_faults(cpu));
		assert_true(rte_gpu_mem_free(gpu, at) < 0);
	}
}

int main(int argc, char **argv)
{
	char prefix[64];
	char *eal[] = { argv[0],
			"--no-huge",
			"-m",
			"128",
			"--no-pci",
			"--no-telemetry",
			"--no-shconf",
			"--file-prefix",
			prefix,
			"--vdev",
			"gpu_host_plain",
			"--vdev",
			"gpu_host_guard,guard=1",
			NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info_is_complete),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(alignment_is_kept),
		cmocka_unit_test(sizes_are_checked),
		cmocka_unit_test(free_takes_only_what_was_allocated),
		cmocka_unit_test(guard_keeps_the_cpu_out),
		cmocka_unit_test(plain_memory_is_its_own_mapping),
		cmocka_unit_test(mappings_are_counted_and_checked),
		cmocka_unit_test(registrations_do_not_overlap),
		cmocka_unit_test(external_memory_takes_large_pages),
		cmocka_unit_test(exported_file_is_the_memory),
		cmocka_unit_test(large_allocations_touch_nothing),
		cmocka_unit_test(closing_gives_all_back),
	};
	int failed;

	snprintf(prefix, sizeof(prefix), "gdrcap-test-gpudev-%d", (int)getpid());
	gpu_host_register();
	gpu_host_register();
	gpu_cuda_register();
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])) - 1, eal) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(rte_eal_get_runtime_dir());
	return rte_eal_cleanup() ? 1 : failed;
}
