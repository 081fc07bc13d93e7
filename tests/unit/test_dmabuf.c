/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmabuf.c: DPDK's own mlx5 code registers memory, against doubles of libibverbs. Links with
 * --wrap=ibv_reg_mr_iova2, as everything that takes in the driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "memory/dmabuf.h"

/* As in DPDK's mlx5_common_mr.h, which is not installed. */
struct mlx5_pmd_mr {
	uint32_t lkey;
	void *addr;
	size_t len;
	void *obj;
	void *mkey;
};
int mlx5_common_verbs_reg_mr(void *pd, void *addr, size_t length, struct mlx5_pmd_mr *pmd_mr);
void mlx5_common_verbs_dereg_mr(struct mlx5_pmd_mr *pmd_mr);

static struct {
	int address_error, dmabuf_error; /* 0: takes it */
	unsigned int by_address, by_dmabuf, deregistered;
	uint64_t offset, iova;
	size_t length;
	int fd, access;
	struct ibv_mr mr;
} kernel;

static struct {
	int error;
	unsigned int calls;
	int fd;
} gpu;

static char region[1 << 20];
#define PIECE 4096

static struct ibv_mr *mr_answer(void *addr, size_t length)
{
	kernel.mr.addr = addr;
	kernel.mr.length = length;
	kernel.mr.lkey = 77;
	return &kernel.mr;
}

/* ---- libibverbs ---- */

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	kernel.by_address++;
	if (kernel.address_error) {
		errno = kernel.address_error;
		return NULL;
	}
	return mr_answer(addr, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	kernel.by_dmabuf++;
	assert_true(fcntl(fd, F_GETFD) >= 0);
	kernel.fd = fd;
	kernel.offset = offset;
	kernel.length = length;
	kernel.iova = iova;
	kernel.access = access;
	if (kernel.dmabuf_error) {
		errno = kernel.dmabuf_error;
		return NULL;
	}
	/* as libibverbs: the offset, not the address */
	return mr_answer((void *)(uintptr_t)offset, length);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	assert_ptr_equal(mr, &kernel.mr);
	kernel.deregistered++;
	return 0;
}

/* ---- the GPU's driver ---- */

static int export_fd(void *context, void *base, size_t bytes)
{
	assert_ptr_equal(context, &gpu);
	assert_ptr_equal(base, region + PIECE);
	assert_int_equal(bytes, sizeof(region) - 2 * PIECE);
	gpu.calls++;
	if (gpu.error)
		return -gpu.error;
	gpu.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(gpu.fd >= 0);
	return gpu.fd;
}

static const struct dmabuf_memory memory = {
	.base = region + PIECE,
	.bytes = sizeof(region) - 2 * PIECE,
	.export_fd = export_fd,
	.context = &gpu,
};

static struct gdrcap_error error;

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&gpu, 0, sizeof(gpu));
	gpu.fd = -1;
	return 0;
}

static int teardown(void **state)
{
	dmabuf_remove(region + PIECE);
	if (gpu.fd >= 0)
		assert_int_equal(fcntl(gpu.fd, F_GETFD), -1); /* closed with the entry */
	return 0;
}

static struct dmabuf_state now(void)
{
	struct dmabuf_state state;

	dmabuf_state(memory.base, &state);
	return state;
}

static void by_address(void **state)
{
	struct mlx5_pmd_mr mr;

	assert_int_equal(dmabuf_add(&memory, &error), 0);
	assert_int_equal(now().way, DMABUF_WAY_NONE);
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), 0);
	assert_ptr_equal(mr.addr, memory.base);
	assert_int_equal(now().way, DMABUF_WAY_ADDRESS);
	assert_int_equal(now().by_address, 1);
	assert_int_equal(gpu.calls, 0); /* not asked where it is not needed */
	assert_int_equal(kernel.by_dmabuf, 0);
	mlx5_common_verbs_dereg_mr(&mr);
	assert_int_equal(kernel.deregistered, 1);
}

static void by_dmabuf(void **state)
{
	char *const pool = region + PIECE + 8 * PIECE;
	struct mlx5_pmd_mr mr;

	assert_int_equal(dmabuf_add(&memory, &error), 0);
	kernel.address_error = EFAULT;
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), 0);
	assert_int_equal(kernel.offset, 0);
	assert_ptr_equal(mr.addr, memory.base);
	/* a pool's part, later, of the same dma-buf */
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, pool, 2 * PIECE, &mr), 0);
	assert_int_equal(kernel.offset, 8 * PIECE);
	assert_int_equal(kernel.length, 2 * PIECE);
	assert_int_equal(kernel.iova, (uintptr_t)pool);
	assert_int_equal(kernel.fd, gpu.fd);
	assert_true(kernel.access & IBV_ACCESS_LOCAL_WRITE);
	/* what the driver looks frames' memory up by */
	assert_ptr_equal(mr.addr, pool);
	assert_int_equal(mr.lkey, 77);
	assert_int_equal(mr.len, 2 * PIECE);
	assert_int_equal(gpu.calls, 1);
	assert_int_equal(now().way, DMABUF_WAY_DMABUF);
	assert_int_equal(now().by_dmabuf, 2);
	assert_int_equal(now().address_error, EFAULT);
	assert_true(fcntl(gpu.fd, F_GETFD) >= 0); /* open until removed */
	kernel.address_error = 0; /* another card, or the module was loaded meanwhile */
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), 0);
	assert_int_equal(now().way, DMABUF_WAY_BOTH);
}

static void others_untouched(void **state)
{
	struct mlx5_pmd_mr mr;

	assert_int_equal(dmabuf_add(&memory, &error), 0);
	kernel.address_error = ENOMEM;
	/* before it, across its start, across its end, behind it, and an overflow */
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, region, PIECE, &mr), -1);
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, region, 2 * PIECE, &mr), -1);
	assert_int_equal(
		mlx5_common_verbs_reg_mr(NULL, region + sizeof(region) - 2 * PIECE, 2 * PIECE, &mr),
		-1);
	assert_int_equal(
		mlx5_common_verbs_reg_mr(NULL, region + sizeof(region) - PIECE, PIECE, &mr), -1);
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, SIZE_MAX, &mr), -1);
	assert_int_equal(kernel.by_address, 5);
	assert_int_equal(kernel.by_dmabuf, 0);
	assert_int_equal(now().way, DMABUF_WAY_NONE);
	dmabuf_remove(memory.base);
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, PIECE, &mr), -1);
	assert_int_equal(kernel.by_dmabuf, 0);
	assert_int_equal(now().way, DMABUF_WAY_NONE);
	assert_int_equal(now().address_error, 0);
}

static void both_refused(void **state)
{
	struct mlx5_pmd_mr mr;
	char text[512];

	assert_int_equal(dmabuf_add(&memory, &error), 0);
	dmabuf_explain(memory.base, text, sizeof(text));
	assert_non_null(strstr(text, "before it asked the kernel"));

	kernel.address_error = EFAULT;
	gpu.error = ENOTSUP;
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(now().way, DMABUF_WAY_REFUSED);
	assert_int_equal(now().export_error, ENOTSUP);
	assert_int_equal(kernel.by_dmabuf, 0);
	dmabuf_explain(memory.base, text, sizeof(text));
	assert_non_null(strstr(text, "Bad address"));
	assert_non_null(strstr(text, "modprobe nvidia-peermem"));
	assert_non_null(strstr(text, "open kernel modules"));

	gpu.error = EINVAL;
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), -1);
	dmabuf_explain(memory.base, text, sizeof(text));
	assert_non_null(strstr(text, "Invalid argument"));

	gpu.error = 0;
	kernel.dmabuf_error = EOPNOTSUPP;
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), -1);
	assert_int_equal(now().export_error, 0);
	assert_int_equal(now().dmabuf_error, EOPNOTSUPP);
	assert_int_equal(now().way, DMABUF_WAY_REFUSED);
	dmabuf_explain(memory.base, text, sizeof(text));
	assert_non_null(strstr(text, "Linux 5.12"));
	assert_non_null(strstr(text, "CONFIG_INFINIBAND_ON_DEMAND_PAGING"));
	assert_int_equal(gpu.calls, 3);
}

static void nobody_exports(void **state)
{
	struct dmabuf_memory plain = memory;
	struct mlx5_pmd_mr mr;

	plain.export_fd = NULL;
	assert_int_equal(dmabuf_add(&plain, &error), 0);
	kernel.address_error = EFAULT;
	assert_int_equal(mlx5_common_verbs_reg_mr(NULL, memory.base, memory.bytes, &mr), -1);
	assert_int_equal(now().export_error, ENOTSUP);
}

static void no_overlap(void **state)
{
	const struct dmabuf_memory wrong[] = {
		{ .base = region, .bytes = PIECE + 1 },
		{ .base = region, .bytes = sizeof(region) },
		{ .base = region + 2 * PIECE, .bytes = PIECE },
		{ .base = region + sizeof(region) - PIECE - 1, .bytes = PIECE },
	};
	const struct dmabuf_memory before = { .base = region, .bytes = PIECE };
	const struct dmabuf_memory none = { .base = region, .bytes = 0 };
	const struct dmabuf_memory endless = { .base = region, .bytes = SIZE_MAX };

	assert_int_equal(dmabuf_add(&memory, &error), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(dmabuf_add(&wrong[i], &error), -EEXIST);
	assert_int_equal(dmabuf_add(&none, &error), -EINVAL);
	assert_int_equal(dmabuf_add(&endless, &error), -EINVAL);
	assert_int_equal(dmabuf_add(&before, &error), 0);
	dmabuf_remove(region + 1); /* not its base: stays */
	assert_int_equal(dmabuf_add(&before, &error), -EEXIST);
	dmabuf_remove(region);
	assert_int_equal(dmabuf_add(&before, &error), 0);
	dmabuf_remove(region);
	dmabuf_remove(region); /* twice is nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_address, setup, teardown),
		cmocka_unit_test_setup_teardown(by_dmabuf, setup, teardown),
		cmocka_unit_test_setup_teardown(others_untouched, setup, teardown),
		cmocka_unit_test_setup_teardown(both_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_exports, setup, teardown),
		cmocka_unit_test_setup_teardown(no_overlap, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
