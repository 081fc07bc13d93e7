/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multi-packet receive queues: many frames in one large buffer, of host memory. Compressed
 * completions, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nic.h"
#include "rig.h"

static void start(struct rig *rig)
{
	struct rte_flow_error error = { 0 };

	rig->port[0].pool = rig->port[1].pool = rig->pool;
	rig->port[1].descriptors = 4096; /* strides: the frames under way have room */
	rig_ports_start(rig);
	if (rig_rule(1, RIG_ETHERTYPE, 0, 0x77, &error) == NULL)
		fail_msg("rule refused: %s", error.message);
}

static void pass(struct rig *rig, uint32_t shortest, uint32_t longest)
{
	struct rig_run run = { .count = 30000, .shortest = shortest, .longest = longest };

	rig_run(rig, &run);
	assert_int_equal(run.received, run.count);
	assert_int_equal(run.damaged, 0);
	assert_int_equal(run.disordered, 0);
	assert_int_equal(run.marked[0], run.count);
	assert_int_equal(rig_xstat(1, "rx_out_of_buffer"), 0);
	assert_int_equal(soft_devices[1].count.cq_overruns, 0);
}

static void queue_is_of_strides(void **state)
{
	bool striding = false;

	start(*state);
	for (unsigned int i = 1; i < soft_devices[1].rq_end; i++)
		striding |= soft_devices[1].rqs[i] != NULL && soft_devices[1].rqs[i]->striding;
	assert_true(striding);
}

static void small_frames(void **state)
{
	start(*state);
	pass(*state, 60, 60);
}

static void mixed_frames(void **state)
{
	start(*state);
	pass(*state, 60, 1514);
}

/* Strides of 256 bytes: a frame takes several, and what is too little at a buffer's end is filled.
 */
static void frames_over_several_strides(void **state)
{
	struct rig *rig = *state;

	rig->port[0].rx_offloads = rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
	start(rig);
	pass(rig, 60, 1514);
	for (unsigned int i = 1; i < soft_devices[1].rq_end; i++)
		if (soft_devices[1].rqs[i] != NULL && soft_devices[1].rqs[i]->striding)
			assert_int_equal(soft_devices[1].rqs[i]->log_stride_size, 8);
}

/* The driver asks for that by default; where it does not (rxq_cqe_comp_en=0), there are none. */
static void completions_are_compressed(void **state)
{
	uint64_t before = soft_devices[1].count.compressed, compressed;
	bool asked = false;

	start(*state);
	for (unsigned int i = 1; i < SOFT_OBJECTS_MAX; i++)
		asked |= soft_devices[1].cqs[i] != NULL && soft_devices[1].cqs[i]->compress;
	pass(*state, 60, 100);
	compressed = soft_devices[1].count.compressed - before;
	if (asked)
		assert_true(compressed > 1000);
	else
		assert_int_equal(compressed, 0);
}

static void missing_buffers_are_counted(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *frames[32], *back[32];
	uint64_t sent = 0, received = 0;
	uint16_t count, done;

	start(rig);
	while (sent < 20000) {
		for (count = 0; count < 32; count++)
			frames[count] = rig_frame(rig->pool, &rig->memory, 1500, RIG_ETHERTYPE,
						  sent + count);
		done = rte_eth_tx_burst(0, 0, frames, count);
		sent += done;
		rte_pktmbuf_free_bulk(frames + done, (unsigned int)(count - done));
	}
	nic_settle();
	while ((count = rte_eth_rx_burst(1, 0, back, 32)) > 0) {
		received += count;
		rte_pktmbuf_free_bulk(back, count);
	}
	assert_true(received < sent);
	assert_int_equal(rig_xstat(1, "rx_out_of_buffer"), sent - received);
}

static int setup(void **state)
{
	rig_setup(state);
	/* Where the device's address is the host's. */
	((struct rig *)*state)->memory = (struct rig_memory){ 0 };
	((struct rig *)*state)->pool =
		rte_pktmbuf_pool_create("host", 8192, 0, 0, RIG_BUFFER, SOCKET_ID_ANY);
	assert_non_null(((struct rig *)*state)->pool);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(queue_is_of_strides, rig_reset),
		cmocka_unit_test_teardown(small_frames, rig_reset),
		cmocka_unit_test_teardown(mixed_frames, rig_reset),
		cmocka_unit_test_teardown(frames_over_several_strides, rig_reset),
		cmocka_unit_test_teardown(completions_are_compressed, rig_reset),
		cmocka_unit_test_teardown(missing_buffers_are_counted, rig_reset),
	};
	char devargs[256];
	char *arguments[3] = { argv[0], argc > 1 ? argv[1] : (char[]){ "devx" }, devargs };
	int failed;

	snprintf(devargs, sizeof(devargs), "mprq_en=1,rxqs_min_mprq=1,mprq_log_stride_size=8%s%s",
		 argc > 2 ? "," : "", argc > 2 ? argv[2] : "");
	rig_start(3, arguments);
	failed = cmocka_run_group_tests(tests, setup, rig_teardown);
	rig_stop();
	return failed;
}
