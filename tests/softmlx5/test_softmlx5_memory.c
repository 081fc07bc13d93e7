/* SPDX-License-Identifier: BSD-3-Clause */
/* The card reaches registered memory, and no other. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "memory.h"
#include "nic.h"
#include "rig.h"

#define SIZE 65536

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct soft_device *device;

static void set(const char *faults)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(faults), 0);
	nic_unlock();
}

static void open_card(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = ibv_open_device(list[0]);
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	device = soft_device(context);
	ibv_free_device_list(list);
}

static void close_card(void)
{
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static bool reaches(uint32_t key, const void *address, uint32_t length)
{
	bool reached;

	nic_lock();
	reached = soft_region_find(device, key, (uintptr_t)address, length) != NULL;
	nic_unlock();
	return reached;
}

static void keys_have_bounds(void **state)
{
	struct rig_memory memory;
	struct ibv_mr *mr, *other;
	uint32_t key;

	rig_memory(&memory, SIZE, false);
	open_card();
	mr = ibv_reg_mr(pd, memory.device, SIZE / 2, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	key = mr->lkey;
	assert_true(reaches(key, memory.device, SIZE / 2));
	assert_true(reaches(key, memory.device + SIZE / 2 - 1, 1));
	assert_false(reaches(key, memory.device + SIZE / 2 - 1, 2));
	assert_false(reaches(key, memory.device - 1, 2));
	assert_false(reaches(key + 1, memory.device, 1));
	assert_false(reaches(key, memory.device, UINT32_MAX));
	/* A key of the same slot is another one. */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_false(reaches(key, memory.device, 1));
	other = ibv_reg_mr(pd, memory.device, SIZE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(other);
	assert_int_not_equal(other->lkey, key);
	assert_false(reaches(key, memory.device, 1));
	/* The planted defect. */
	set("0.no_key_check=1");
	assert_true(reaches(key, memory.device, 1));
	assert_int_equal(ibv_dereg_mr(other), 0);
	close_card();
}

static void hidden_memory_is_reached_by_dma_only(void **state)
{
	struct rig_memory memory;
	struct soft_region *region;
	struct ibv_mr *mr;
	char text[8] = "";

	rig_memory(&memory, SIZE, true);
	open_card();
	mr = ibv_reg_mr(pd, memory.device, SIZE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	nic_lock();
	region = soft_region_find(device, mr->lkey, (uintptr_t)memory.device + 100, 6);
	assert_non_null(region);
	assert_ptr_equal(region->dma, &soft_dma_hidden);
	soft_region_write(region, (uintptr_t)memory.device + 100, "hello", 6);
	soft_region_read(region, (uintptr_t)memory.device + 100, text, 6);
	nic_unlock();
	assert_string_equal(text, "hello");
	assert_string_equal((const char *)memory.host + 100, "hello");
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* From the middle of a page to that of another. */
	mr = ibv_reg_mr(pd, memory.device + 5000, 9000, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	nic_lock();
	region = soft_region_find(device, mr->lkey, (uintptr_t)memory.device + 13990, 6);
	assert_non_null(region);
	soft_region_write(region, (uintptr_t)memory.device + 13990, "again", 6);
	nic_unlock();
	assert_string_equal((const char *)memory.host + 13990, "again");
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close_card();
}

/* By the file that stands for the dma-buf, at an offset, under an address that is nothing to the
 * CPU. */
static void dmabuf_is_registered(void **state)
{
	const uint64_t iova = 0x7000000000ull;
	struct rig_memory memory;
	struct soft_region *region;
	struct ibv_mr *mr;

	rig_memory(&memory, SIZE, true);
	open_card();
	set("0.refuse_peer=1/1/0"); /* says nothing to a dma-buf */
	mr = ibv_reg_dmabuf_mr(pd, 4096, SIZE / 2, iova, memory.file, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	nic_lock();
	region = soft_region_find(device, mr->lkey, iova + 10, 6);
	assert_non_null(region);
	soft_region_write(region, iova + 10, "world", 6);
	nic_unlock();
	assert_string_equal((const char *)memory.host + 4096 + 10, "world");
	assert_false(reaches(mr->lkey, (void *)(uintptr_t)(iova + SIZE / 2), 1));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, SIZE, iova, -1, 0));
	assert_int_equal(errno, EBADF);
	set("0.refuse_dmabuf=1");
	assert_null(ibv_reg_dmabuf_mr(pd, 0, SIZE, iova, memory.file, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	close_card();
}

static void refusals_have_the_kernels_errors(void **state)
{
	struct rig_memory hidden, plain;
	struct ibv_mr *mr;

	rig_memory(&hidden, SIZE, true);
	rig_memory(&plain, SIZE, false);
	open_card();
	set("0.refuse_peer=1/1/0");
	assert_null(ibv_reg_mr(pd, hidden.device, SIZE, 0));
	assert_int_equal(errno, EFAULT);
	mr = ibv_reg_mr(pd, plain.device, SIZE, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	set("0.refuse_peer=off,0.refuse=2");
	mr = ibv_reg_mr(pd, plain.device, SIZE, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(pd, plain.device, SIZE, 0));
	assert_int_equal(errno, ENOMEM);
	/* Not mapped at all, and mapped only in part. */
	assert_null(ibv_reg_mr(pd, (void *)0x10000, SIZE, 0));
	assert_int_equal(errno, EFAULT);
	munmap(plain.device + SIZE / 2, SIZE / 2);
	assert_null(ibv_reg_mr(pd, plain.device, SIZE, 0));
	assert_int_equal(errno, EFAULT);
	close_card();
}

/* The driver's own way: without nvidia-peermem, the DMA map of a device's memory fails. */
static void driver_reports_the_refusal(void **state)
{
	struct rig_memory memory;

	rig_memory(&memory, SIZE, true);
	set("refuse_peer=1/1/0");
	assert_true(rig_map(&memory) < 0);
	set("refuse_peer=off");
}

static void keep(void *address, void *opaque)
{
}

/* No byte of a buffer that was never registered leaves; the queue's error is overcome. */
static void unregistered_buffer_is_not_sent(void **state)
{
	static struct rte_mbuf_ext_shared_info shared = { .free_cb = keep };
	struct rig_run run = { .count = 2000, .shortest = 60, .longest = 500, .lossy = true };
	struct rte_flow_error error;
	struct rig *rig = *state;
	struct rte_mempool *heads;
	struct rig_memory custom;
	struct rte_mbuf *mbuf;
	uint64_t before;

	rig_memory(&custom, SIZE, false);
	memset(custom.host, 0x88, SIZE);
	heads = rte_pktmbuf_pool_create("heads", 63, 0, 0, 0, SOCKET_ID_ANY);
	assert_non_null(heads);
	rig_ports_start(rig);
	assert_non_null(rig_rule(1, 0x8888, 0, 0, &error));
	assert_non_null(rig_rule(1, RIG_ETHERTYPE, 0, 0, &error));
	before = soft_devices[0].count.tx_packets_phy;
	mbuf = rte_pktmbuf_alloc(heads);
	assert_non_null(mbuf);
	rte_mbuf_ext_refcnt_set(&shared, 1);
	rte_pktmbuf_attach_extbuf(mbuf, custom.device, RTE_BAD_IOVA, SIZE / 2, &shared);
	rte_pktmbuf_append(mbuf, 100);
	assert_int_equal(rte_eth_tx_burst(0, 0, &mbuf, 1), 1);
	nic_settle();
	assert_int_equal(soft_devices[0].count.tx_packets_phy, before);
	assert_int_equal(soft_devices[0].count.bad_keys > 0, 1);
	/* The first of these find the queue in error. */
	rig_run(rig, &run);
	run = (struct rig_run){ .count = 2000, .shortest = 60, .longest = 500 };
	rig_run(rig, &run);
	assert_int_equal(run.received, run.count);
	assert_int_equal(run.damaged + run.disordered, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(keys_have_bounds, rig_reset),
		cmocka_unit_test_teardown(hidden_memory_is_reached_by_dma_only, rig_reset),
		cmocka_unit_test_teardown(dmabuf_is_registered, rig_reset),
		cmocka_unit_test_teardown(refusals_have_the_kernels_errors, rig_reset),
		cmocka_unit_test_teardown(driver_reports_the_refusal, rig_reset),
		cmocka_unit_test_teardown(unregistered_buffer_is_not_sent, rig_reset),
	};
	int failed;

	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, rig_setup, rig_teardown);
	rig_stop();
	return failed;
}
