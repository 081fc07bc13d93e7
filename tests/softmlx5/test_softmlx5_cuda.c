/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames out of and into the memory of a real GPU. The test fills and looks through copies of the
 * CUDA driver.
 *
 * Exits with 77 where there is no GPU.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "memory.h"
#include "nic.h"
#include "rig.h"

#define PAGE 65536
#define BUFFERS 4096
#define FRAMES 5000
#define WINDOW 128
#define SKIP 77
#define HANG_SECONDS 240

static struct {
	int (*init)(unsigned int flags);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*alloc)(uint64_t *address, size_t size);
	int (*fill)(uint64_t address, unsigned char value, size_t size);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*to_host)(void *to, uint64_t from, size_t size);
} cu;

static bool gpu_start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;

	if (library == NULL)
		return false;
	cu.init = dlsym(library, "cuInit");
	cu.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	cu.set_current = dlsym(library, "cuCtxSetCurrent");
	cu.alloc = dlsym(library, "cuMemAlloc_v2");
	cu.fill = dlsym(library, "cuMemsetD8_v2");
	cu.to_device = dlsym(library, "cuMemcpyHtoD_v2");
	cu.to_host = dlsym(library, "cuMemcpyDtoH_v2");
	return cu.init(0) == 0 && cu.retain(&context, 0) == 0 && cu.set_current(context) == 0;
}

/* host is a shadow: what is copied to the GPU, and back. */
static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	uint64_t address;

	assert_non_null(rig);
	rig->memory.size = (size_t)BUFFERS * RIG_BUFFER;
	assert_int_equal(cu.alloc(&address, rig->memory.size + PAGE), 0);
	rig->memory.device = (uint8_t *)(uintptr_t)RTE_ALIGN(address, (uint64_t)PAGE);
	assert_int_equal(cu.fill((uintptr_t)rig->memory.device, 0xee, rig->memory.size), 0);
	rig->memory.host = malloc(rig->memory.size);
	assert_non_null(rig->memory.host);
	assert_int_equal(rig_map(&rig->memory), 0);
	rig->pool = rig_pool("gpu", &rig->memory);
	for (uint16_t i = 0; i < 2; i++)
		rig->port[i] = (struct rig_port){ .id = i,
						  .rx_queues = 2,
						  .tx_queues = 1,
						  .descriptors = 512,
						  .isolated = true,
						  .pool = rig->pool };
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	free(rig->memory.host);
	free(rig);
	return 0;
}

static bool send_one(struct rig *rig, uint64_t number)
{
	struct rte_mbuf *mbuf =
		rig_frame(rig->pool, &rig->memory, 60 + (uint32_t)(number * 37 % 1455),
			  RIG_ETHERTYPE, number);
	uint8_t *data;

	if (mbuf == NULL)
		return false;
	data = rte_pktmbuf_mtod(mbuf, uint8_t *);
	assert_int_equal(
		cu.to_device((uintptr_t)data, rig_host(&rig->memory, data), mbuf->data_len), 0);
	if (rte_eth_tx_burst(0, 0, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

static void frames_land_in_the_gpu(void **state)
{
	uint64_t sent = 0, received = 0, number;
	const time_t until = time(NULL) + HANG_SECONDS;
	struct rte_flow_error error = { 0 };
	struct rig *rig = *state;
	struct rte_mbuf *back[32];
	uint16_t count;

	rig_port_start(&rig->port[0]);
	rig_port_start(&rig->port[1]);
	assert_non_null(rig_rule(1, RIG_ETHERTYPE, 1, 0, &error));
	while (received < FRAMES && time(NULL) < until) {
		if (sent < FRAMES && sent - received < WINDOW && send_one(rig, sent))
			sent++;
		assert_int_equal(rte_eth_rx_burst(1, 0, back, 32), 0);
		count = rte_eth_rx_burst(1, 1, back, 32);
		for (uint16_t i = 0; i < count; i++) {
			uint8_t *data = rte_pktmbuf_mtod(back[i], uint8_t *);

			memset(rig_host(&rig->memory, data), 0, back[i]->pkt_len);
			assert_int_equal(cu.to_host(rig_host(&rig->memory, data), (uintptr_t)data,
						    back[i]->pkt_len),
					 0);
			assert_int_equal(rig_check(back[i], &rig->memory, &number), 0);
			assert_int_equal(number, received);
			received++;
		}
		rte_pktmbuf_free_bulk(back, count);
	}
	assert_int_equal(received, FRAMES);
	printf("%lu frames through the GPU's memory, all intact\n", (unsigned long)received);
}

static void revoked_key_changes_nothing(void **state)
{
	struct rig *rig = *state;
	size_t size = rig->memory.size;
	uint8_t *after = malloc(size);
	struct rte_mbuf *back[4];
	uint16_t count = 0;

	assert_non_null(after);
	for (unsigned int i = 0; i < 100; i++)
		rte_eth_tx_burst(0, 0, NULL, 0);
	nic_lock();
	assert_int_equal(soft_faults_parse("1.revoke=1"), 0);
	nic_unlock();
	/* The frame itself must be in place before the picture is taken. */
	assert_true(send_one(rig, 1));
	nic_settle();
	assert_int_equal(cu.to_host(rig->memory.host, (uintptr_t)rig->memory.device, size), 0);
	assert_true(send_one(rig, 1));
	nic_settle();
	assert_int_equal(cu.to_host(after, (uintptr_t)rig->memory.device, size), 0);
	for (unsigned int i = 0; i < 10; i++)
		count = (uint16_t)(count + rte_eth_rx_burst(1, 1, back, 4));
	assert_int_equal(count, 0);
	/* But for the second frame's own buffer, written by the test, nothing has changed. */
	count = 0;
	for (size_t at = 0; at < size; at += RIG_BUFFER)
		count = (uint16_t)(count +
				   (memcmp(after + at, rig->memory.host + at, RIG_BUFFER) != 0));
	assert_true(count <= 1);
	free(after);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_land_in_the_gpu),
		cmocka_unit_test(revoked_key_changes_nothing),
	};
	int failed;

	if (!gpu_start()) {
		printf("no GPU\n");
		return SKIP;
	}
	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, setup, teardown);
	rig_stop();
	return failed;
}
