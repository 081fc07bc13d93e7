/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.c on the vdev gpu_host, mapped for cards: DPDK's own mlx5 code registers the memory, as
 * its DMA map does, against doubles of libibverbs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dev_driver.h>
#include <infiniband/verbs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "gpu/gpu_drivers.h"
#include "base/log.h"
#include "memory/region.h"

#define MIB ((size_t)1 << 20)
#define REGIONS 8

/* As in DPDK's mlx5_common_mr.h, which is not installed. */
struct mlx5_pmd_mr {
	uint32_t lkey;
	void *addr;
	size_t len;
	void *obj;
	void *mkey;
};
int mlx5_common_verbs_reg_mr(void *pd, void *addr, size_t length, struct mlx5_pmd_mr *pmd_mr);

static struct rte_device card0 = { .name = "0000:3b:00.0" }, card1 = { .name = "0000:3b:00.1" };

/* The kernel: which card asks, and what it answers. */
static struct {
	const struct rte_device *card;
	const struct rte_device *refuses; /* by address: this one; NULL: none */
	int address_error;		  /* of that card */
	int dmabuf_error;
	bool silent; /* the driver asks nobody and fails */
	unsigned int by_address, by_dmabuf, unmapped;
	uint64_t offset;
	uint8_t *seen; /* the dma-buf's memory at `offset` */
	struct ibv_mr mr;
} kernel;

static char line[512]; /* the last that was logged */
static struct gdrcap_error error;
static struct region regions[REGIONS];

static void line_take(void *context, enum gdrcap_log_level level, const char *text)
{
	snprintf(line, sizeof(line), "%s", text);
}

static struct log sink = { .line = line_take };

/* ---- libibverbs ---- */

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	kernel.by_address++;
	if (kernel.refuses == kernel.card) {
		errno = kernel.address_error;
		return NULL;
	}
	kernel.mr = (struct ibv_mr){ .addr = addr, .length = length };
	return &kernel.mr;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	uint8_t *whole;

	kernel.by_dmabuf++;
	if (kernel.dmabuf_error) {
		errno = kernel.dmabuf_error;
		return NULL;
	}
	whole = mmap(NULL, offset + length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(whole != MAP_FAILED);
	kernel.offset = offset;
	kernel.seen = whole + offset;
	kernel.mr = (struct ibv_mr){ .addr = (void *)(uintptr_t)offset, .length = length };
	return &kernel.mr;
}

/* ---- the driver ---- */

int __wrap_rte_dev_dma_map(struct rte_device *device, void *addr, uint64_t iova, size_t length);
int __wrap_rte_dev_dma_map(struct rte_device *device, void *addr, uint64_t iova, size_t length)
{
	struct mlx5_pmd_mr mr;

	kernel.card = device;
	if (!kernel.silent && mlx5_common_verbs_reg_mr(NULL, addr, length, &mr) == 0)
		return 0;
	rte_errno = EINVAL;
	return -1;
}

int __wrap_rte_dev_dma_unmap(struct rte_device *device, void *addr, uint64_t iova, size_t length);
int __wrap_rte_dev_dma_unmap(struct rte_device *device, void *addr, uint64_t iova, size_t length)
{
	kernel.unmapped++;
	return 0;
}

/* ---- */

static int16_t gpu_find(const char *name)
{
	struct rte_gpu_info info;
	int16_t id;

	RTE_GPU_FOREACH(id)
	if (!rte_gpu_info_get(id, &info) && !strcmp(info.name, name))
		return id;
	return RTE_GPU_ID_NONE;
}

/* Device memory that the CPU cannot touch. `cpu_workers` false: as if it were a real GPU's. */
static struct region_config device_config(bool cpu_workers)
{
	return (struct region_config){
		.gpu = gpu_find("gpu_host_guard"),
		.kind = GDRCAP_MEMORY_DEVICE,
		.bytes = 4 * MIB,
		.slot_shift = 11,
		.cpu_workers = cpu_workers,
	};
}

static struct region *region_make(const struct region_config *config)
{
	assert_int_equal(region_create(&regions[0], config, &error), 0);
	return &regions[0];
}

static void registration_is(const struct region *region, const char *expected)
{
	char text[32];

	region_registration(region, text, sizeof(text));
	assert_string_equal(text, expected);
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

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&error, 0, sizeof(error));
	line[0] = '\0';
	log_open(&sink);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < REGIONS; i++)
		region_destroy(&regions[i]);
	log_close(&sink);
	return 0;
}

/* Of pages, none belongs to two pools. */
static void page_divides_pools(void **state)
{
	struct region_config config = device_config(false);
	const struct region *region;
	size_t whole;

	region = region_make(&config);
	whole = region->page;
	assert_true(whole >= MIB && region->bytes % whole == 0);
	region_destroy(&regions[0]);
	config.pool_bytes = 3 * MIB / 2;
	region = region_make(&config);
	assert_int_equal(region->page, MIB / 2);
}

static void by_address(void **state)
{
	const struct region_config config = device_config(false);
	struct region *region = region_make(&config);

	registration_is(region, "");
	assert_int_equal(region_map_device(region, &card0, &error), 0);
	assert_string_equal(line, "memory: 0000:3b:00.0 reaches it through nvidia-peermem");
	registration_is(region, "nvidia-peermem");
	assert_int_equal(region_map_device(region, &card1, &error), 0);
	assert_int_equal(kernel.by_dmabuf, 0);
	region_unmap_device(region, &card0);
	registration_is(region, "nvidia-peermem");
	region_unmap_device(region, &card1);
	registration_is(region, "");
	assert_int_equal(kernel.unmapped, 2);
}

static void by_dmabuf(void **state)
{
	const struct region_config config = device_config(true);
	const unsigned int files = files_open();
	struct region *region = region_make(&config);
	struct mlx5_pmd_mr mr;

	kernel.refuses = &card0;
	kernel.address_error = EFAULT;
	assert_int_equal(region_map_device(region, &card0, &error), 0);
	registration_is(region, "dma-buf");
	assert_int_equal(kernel.offset, 0);
	/* the dma-buf is this memory */
	assert_ptr_not_equal(region->device, region->base);
	kernel.seen[4 * MIB - 1] = 0x77;
	assert_int_equal(region->device[4 * MIB - 1], 0x77);
	/* a pool of it, which the driver registers when the port starts */
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, region->base + MIB, MIB, &mr), 0);
	assert_ptr_equal(mr.addr, region->base + MIB);
	assert_int_equal(kernel.offset, MIB);
	kernel.seen[5] = 0x66;
	assert_int_equal(region->device[MIB + 5], 0x66);
	region_unmap_device(region, &card0);
	region_destroy(region);
	assert_int_equal(files_open(), files);
	/* what lies there next is nobody's */
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, region->base, MIB, &mr), -1);
}

static void each_card_its_way(void **state)
{
	const struct region_config config = device_config(false);
	struct region *region = region_make(&config);

	kernel.refuses = &card1;
	kernel.address_error = EFAULT;
	assert_int_equal(region_map_device(region, &card1, &error), 0);
	assert_string_equal(line, "memory: 0000:3b:00.1 reaches it through dma-buf "
				  "(nvidia-peermem refused: Bad address)");
	assert_int_equal(region_map_device(region, &card0, &error), 0);
	assert_string_equal(line, "memory: 0000:3b:00.0 reaches it through nvidia-peermem");
	registration_is(region, "nvidia-peermem and dma-buf");
}

static void host_gpu_is_host_memory(void **state)
{
	const struct region_config config = device_config(true);
	struct region *region = region_make(&config);

	assert_int_equal(region_map_device(region, &card0, &error), 0);
	registration_is(region, "host memory");
	kernel.refuses = &card1;
	kernel.address_error = EFAULT;
	assert_int_equal(region_map_device(region, &card1, &error), 0);
	registration_is(region, "host memory and dma-buf");
}

static void both_ways_refused(void **state)
{
	const struct region_config config = device_config(false);
	struct region *region = region_make(&config);

	kernel.refuses = &card0;
	kernel.address_error = EFAULT;
	kernel.dmabuf_error = EOPNOTSUPP;
	assert_int_equal(region_map_device(region, &card0, &error), -EFAULT);
	assert_int_equal(error.code, -EFAULT);
	assert_non_null(strstr(error.text, "0000:3b:00.0"));
	assert_non_null(strstr(error.text, "Bad address"));
	assert_non_null(strstr(error.text, "modprobe nvidia-peermem"));
	assert_non_null(strstr(error.text, "Operation not supported"));
	assert_non_null(strstr(error.text, "CONFIG_INFINIBAND_ON_DEMAND_PAGING)"));
	assert_int_equal(region->devices, 0);
	registration_is(region, "");

	kernel.address_error = ENOMEM;
	assert_int_equal(region_map_device(region, &card0, &error), -ENOMEM);
	assert_non_null(strstr(error.text, "ulimit -l"));
	assert_null(strstr(error.text, "modprobe"));
}

/* The driver failed for reasons of its own: no cause is made up. */
static void driver_gave_up(void **state)
{
	const struct region_config config = device_config(false);
	struct region *region = region_make(&config);

	kernel.silent = true;
	assert_int_equal(region_map_device(region, &card0, &error), -EIO);
	assert_non_null(strstr(error.text, "before it asked the kernel"));
}

static void host_memory(void **state)
{
	struct region_config config = device_config(true);
	struct region *region;

	for (int kind = GDRCAP_MEMORY_PINNED; kind <= GDRCAP_MEMORY_HOST; kind++) {
		config.kind = kind;
		region = region_make(&config);
		kernel.refuses = NULL;
		assert_int_equal(region_map_device(region, &card0, &error), 0);
		registration_is(region, "host memory");
		kernel.refuses = &card1;
		kernel.address_error = ENOMEM;
		assert_int_equal(region_map_device(region, &card1, &error), -ENOMEM);
		assert_non_null(strstr(error.text, "Cannot allocate memory"));
		assert_non_null(strstr(error.text, "ulimit -l"));
		assert_null(strstr(error.text, "nvidia-peermem"));
		assert_int_equal(kernel.by_dmabuf, 0);
		registration_is(region, "host memory");
		region_destroy(region);
	}
}

/* 1: a core dump leaves the page at `address` out. */
static int left_out_of_dumps(const void *address)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long from = 0, to = 0;
	char text[512];
	int out = -1;

	assert_non_null(maps);
	while (out < 0 && fgets(text, sizeof(text), maps)) {
		sscanf(text, "%lx-%lx ", &from, &to);
		if (strncmp(text, "VmFlags:", 8) == 0 && (uintptr_t)address >= from &&
		    (uintptr_t)address < to)
			out = strstr(text, " dd") != NULL;
	}
	fclose(maps);
	assert_true(out >= 0);
	return out;
}

/* Also where the host stands in for a GPU, and its memory has two addresses. */
static void no_frames_in_core_dumps(void **state)
{
	struct region_config config = device_config(true);

	for (int kind = GDRCAP_MEMORY_DEVICE; kind <= GDRCAP_MEMORY_HOST; kind++)
		for (int dump = 0; dump < 2; dump++) {
			struct region *region;

			config.kind = kind;
			config.dump = dump;
			region = region_make(&config);
			assert_int_equal(left_out_of_dumps(region->base), !dump);
			assert_int_equal(left_out_of_dumps(region->base + region->bytes - 1),
					 !dump);
			assert_int_equal(left_out_of_dumps(region->device), !dump);
			region_destroy(region);
		}
}

static void memory_of_the_caller(void **state)
{
	struct region_config config = device_config(true);
	uint8_t *raw =
		mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *memory = raw + (-(uintptr_t)raw & (REGION_ALIGN - 1));

	assert_true(raw != MAP_FAILED);
	config.gpu = gpu_find("gpu_host_plain");
	config.addr = memory;
	region_make(&config);
	/* another that shares the last page of it */
	config.addr = memory + 4 * MIB - REGION_ALIGN;
	assert_int_equal(region_create(&regions[1], &config, &error), -EEXIST);
	assert_non_null(strstr(error.text, "overlaps another session's"));
	assert_non_null(strstr(error.text, "memory of its own"));
	/* the first is as it was */
	assert_int_equal(region_map_device(&regions[0], &card0, &error), 0);
	registration_is(&regions[0], "host memory");
	region_unmap_device(&regions[0], &card0);
	region_destroy(&regions[0]);
	assert_int_equal(region_create(&regions[1], &config, &error), 0);
	/* nobody can make a dma-buf of it */
	kernel.refuses = &card0;
	kernel.address_error = EFAULT;
	assert_int_equal(region_map_device(&regions[1], &card0, &error), -EFAULT);
	assert_int_equal(kernel.by_dmabuf, 0);
	region_destroy(&regions[1]);
	assert_int_equal(munmap(raw, 8 * MIB), 0);
}

/* The GPU's own memory cannot be pinned for it. A host "GPU" has all memory: that of a real one
 * decides. */
static void memory_of_the_wrong_kind(void **state)
{
	struct region_config config = device_config(false);
	void *memory = rte_gpu_mem_alloc(config.gpu, 4 * MIB, 0);

	assert_non_null(memory);
	config.addr = memory;
	region_make(&config);
	region_destroy(&regions[0]);
	config.kind = GDRCAP_MEMORY_PINNED;
	assert_int_equal(region_create(&regions[0], &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "memory: device"));
	assert_int_equal(rte_gpu_mem_free(config.gpu, memory), 0);
}

/* As header-data split makes it: a second region beside the first. */
static void small_slots(void **state)
{
	const struct region_config frames = device_config(true);
	const struct region_config heads = {
		.gpu = frames.gpu,
		.kind = GDRCAP_MEMORY_HOST,
		.bytes = 1000 << REGION_HEAD_SHIFT,
		.slot_shift = REGION_HEAD_SHIFT,
		.cpu_workers = true,
	};
	struct rte_mempool *pool;
	struct rte_mbuf *mbuf;

	region_make(&frames);
	assert_int_equal(region_create(&regions[1], &heads, &error), 0);
	assert_int_equal(regions[1].bytes % REGION_ALIGN, 0);
	assert_int_equal(regions[1].slots, 1024);
	assert_int_equal(region_map_device(&regions[0], &card0, &error), 0);
	assert_int_equal(region_map_device(&regions[1], &card0, &error), 0);
	assert_null(region_pool_create(&regions[1], "heads", 1025, false, REGION_POOL_CACHED, -1,
				       &error));
	assert_non_null(strstr(error.text, "1024 slots left, 1025 are needed"));
	pool = region_pool_create(&regions[1], "heads", 1024, false, REGION_POOL_CACHED, -1,
				  &error);
	assert_non_null(pool);
	mbuf = rte_pktmbuf_alloc(pool);
	assert_non_null(mbuf);
	assert_int_equal(mbuf->buf_len, 1u << REGION_HEAD_SHIFT);
	assert_true((uint8_t *)mbuf->buf_addr >= regions[1].base &&
		    (uint8_t *)mbuf->buf_addr < regions[1].base + regions[1].bytes);
	rte_pktmbuf_free(mbuf);
	rte_mempool_free(pool);
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
		cmocka_unit_test_setup_teardown(page_divides_pools, setup, teardown),
		cmocka_unit_test_setup_teardown(by_address, setup, teardown),
		cmocka_unit_test_setup_teardown(by_dmabuf, setup, teardown),
		cmocka_unit_test_setup_teardown(each_card_its_way, setup, teardown),
		cmocka_unit_test_setup_teardown(host_gpu_is_host_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(both_ways_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(driver_gave_up, setup, teardown),
		cmocka_unit_test_setup_teardown(host_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(no_frames_in_core_dumps, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_of_the_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_of_the_wrong_kind, setup, teardown),
		cmocka_unit_test_setup_teardown(small_slots, setup, teardown),
	};
	int failed;

	snprintf(prefix, sizeof(prefix), "gdrcap-test-region-%d", (int)getpid());
	gpu_host_register();
	if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])) - 1, eal) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(rte_eal_get_runtime_dir());
	return rte_eal_cleanup() ? 1 : failed;
}
