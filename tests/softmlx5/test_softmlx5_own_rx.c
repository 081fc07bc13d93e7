/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues of our own on the software ConnectX: what comes is in the slot of its work entry. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device.h"
#include "gpu/gpu_open.h"
#include "nic.h"
#include "own_rig.h"

#define SLOTS 64u
#define SMALL_SHIFT 8u
#define DATAGRAMS 120u
#define SKIP 77

static uint32_t work_entries(const struct own_queue *queue)
{
	return queue->rx.front.slots >> queue->rx.front.stride_shift;
}

/* ---- frames ---- */

/* Of all lengths, over three laps of both rings. */
static void frames_of_all_lengths(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	own_rig_queues(rig, 1, SLOTS, rig->strides ? OWN_STRIDE_SHIFT : OWN_SLOT_SHIFT);
	for (uint32_t i = 0; i < 3 * queue->rx.front.cq_entries; i += SLOTS / 2) {
		own_rig_send(rig, SLOTS / 2, 64, rig->strides ? 8192 : 9000);
		own_receive(rig, queue, SLOTS / 2, rig->number - SLOTS / 2);
	}
	assert_null(own_next(queue));
	assert_int_equal(own_out_of_buffer(queue), 0);
}

/* The card counts work entries in 16 bits. */
static void counter_wraps(void **state)
{
	const uint32_t slots[] = { 1024, CQ_FRONT_SLOTS_MAX };
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	for (size_t s = 0; s < 2; s++) {
		own_rig_queues(rig, 1, slots[s], SMALL_SHIFT);
		while (queue->next < 2 * UINT16_MAX + slots[s]) {
			own_rig_send(rig, 512, 64, 200);
			own_receive(rig, queue, 512, rig->number - 512);
		}
		assert_int_equal(own_out_of_buffer(queue), 0);
		own_rig_reset(state);
	}
}

/* The card's counter has 32 bits. */
static void loss_beyond_32_bits(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	const uint64_t before = UINT32_MAX - 10;

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	nic_lock();
	soft_devices[1].q_counters[queue->rx.counter.number]->out_of_buffer = before;
	nic_unlock();
	assert_int_equal(own_out_of_buffer(queue), before);
	own_rig_send(rig, SLOTS + 30, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), before + 30);
}

/* A work entry that was not posted is not used, and what it would have taken is counted. */
static void room_ends(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	uint64_t first;

	own_rig_queues(rig, 2, SLOTS, SMALL_SHIFT);
	first = rig->number;
	/* RIG_ETHERTYPE is not spread: rule 0 leads to queue 0. */
	own_rig_send(rig, SLOTS + 100, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 100);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(own_frame_check(rig, queue, own_next(queue)), first + i);
	assert_null(own_next(queue));
	own_post(queue, 3);
	own_rig_send(rig, 5, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 102);
	own_post(queue, SLOTS - 3);
	own_rig_faults("1.no_buffers=1/2/7");
	own_rig_send(rig, 20, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 109);
	assert_int_equal(own_drain(queue), 3 + 13);
	assert_int_equal(own_out_of_buffer(&rig->queue[1]), 0);
	assert_null(own_next(&rig->queue[1]));
}

/* Its completion is an error's, its work entry is used up, and the next frame comes. */
static void frame_longer_than_a_slot(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	const struct mlx5_err_cqe *bad;

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	own_rig_send(rig, 1, 256, 256);
	own_rig_send(rig, 1, 257, 257);
	own_rig_send(rig, 1, 256, 256);
	own_receive(rig, queue, 1, rig->number - 3);
	bad = (const struct mlx5_err_cqe *)own_next(queue);
	assert_non_null(bad);
	assert_int_equal(bad->op_own >> 4, MLX5_CQE_RESP_ERR);
	assert_int_equal(bad->syndrome, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	assert_int_equal(be16toh(bad->wqe_counter), 1);
	queue->next++;
	own_receive(rig, queue, 1, rig->number - 1);
}

/* ---- memory ---- */

/* As a dma-buf, and where that is refused, by address; the CPU reaches neither but by its map. */
static void rings_in_gpu_memory(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	struct gdrcap_error error = { 0 };

	rig->gpu = (int16_t)gpu_open_host(true, &error);
	assert_true(rig->gpu >= 0);
	for (uint32_t i = 0; i < 4; i++) {
		rig->in_gpu = true;
		rig->record_beside = i & 1;
		own_rig_faults(i < 2 ? "refuse_dmabuf=off" : "1.refuse_dmabuf=1/1/0");
		own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
		assert_int_equal(queue->rx.completions.umem.dmabuf, i < 2);
		assert_ptr_not_equal(queue->rx.completions.base, queue->rx.front.cq);
		for (uint32_t n = 0; n < 8; n++) {
			own_rig_send(rig, SLOTS, 64, 200);
			own_receive(rig, queue, SLOTS, rig->number - SLOTS);
		}
		assert_int_equal(own_rx_halt(&queue->rx, &error), 0);
		assert_int_equal(*queue->rx.front.record, 0);
		own_rig_reset(state);
	}
	rig->in_gpu = true;
	own_rig_faults("1.refuse_dmabuf=1/1/0,1.refuse_peer=1/1/0");
	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), -EFAULT);
	if (!strstr(error.text, "as dma-buf: Operation not supported") ||
	    !strstr(error.text, "by address: Bad address") ||
	    !strstr(error.text, "modprobe nvidia-peermem"))
		fail_msg("%s", error.text);
}

static void record_in_host_memory(void **state)
{
	struct own_rig *rig = *state;

	rig->record_beside = false;
	frames_of_all_lengths(state);
}

/* ---- rules ---- */

static void send_datagrams(struct own_rig *rig, uint32_t count)
{
	static const uint8_t header[] = { 0x45, 0, 0,  86, 0, 0, 0,  0, 64, 17,
					  0,	0, 10, 0,  0, 1, 10, 0, 0,  2 };

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *frame = rig_frame(rig->pool, &rig->sent, 100, 0x0800, i);
		const uint16_t ports[] = { htobe16((uint16_t)(1000 + i)), htobe16(4000),
					   htobe16(66), 0 };
		uint8_t *data;

		assert_non_null(frame);
		data = rig_host(&rig->sent, rte_pktmbuf_mtod(frame, uint8_t *));
		memcpy(data + 14, header, sizeof(header));
		memcpy(data + 34, ports, sizeof(ports));
		while (rte_eth_tx_burst(rig->port[0].id, 0, &frame, 1) == 0)
			nic_settle();
		nic_settle();
	}
}

/* Which it is stands in its slot, as its port; each comes once. */
static void datagram_check(const struct own_rig *rig, const struct own_queue *queue, uint32_t slot,
			   bool *seen)
{
	const uint8_t *data = own_slot(rig, queue, slot, 64);
	const uint32_t datagram = (uint32_t)(data[34] << 8 | data[35]) - 1000;

	assert_true(datagram < DATAGRAMS);
	assert_false(seen[datagram]);
	seen[datagram] = true;
}

static void rules_spread_over_queues(void **state)
{
	struct own_rig *rig = *state;
	struct steering_hits hits[STEERING_RULES_MAX];
	bool seen[DATAGRAMS] = { false };
	uint32_t all = 0;

	rig->rule = "dst_ip=10.0.0.2,dst_port=4000";
	own_rig_queues(rig, OWN_QUEUES, SLOTS, SMALL_SHIFT);
	assert_true(rig->steering.rule[0].spread && rig->steering.rule[0].counted);
	send_datagrams(rig, DATAGRAMS);
	own_rig_send(rig, 5, 64, 200); /* of another EtherType */
	for (uint32_t q = 0; q < OWN_QUEUES; q++) {
		const struct mlx5_cqe64 *cqe;
		uint32_t here = 0;

		while ((cqe = own_next(&rig->queue[q])) != NULL) {
			/* The mark of rule 0, as the driver puts it: one more, and turned round. */
			assert_int_equal(be32toh(cqe->sop_drop_qpn) & 0xffffff,
					 htobe32(STEERING_MARK(0) + 1) >> 8);
			assert_int_equal(own_length(&rig->queue[q], cqe), 100);
			datagram_check(rig, &rig->queue[q], here, seen);
			here++;
		}
		assert_true(here > 0);
		all += here;
	}
	assert_int_equal(all, DATAGRAMS);
	assert_int_equal(own_out_of_buffer(&rig->queue[0]), 0);
	steering_query(&rig->steering, hits);
	assert_true(hits[0].known);
}

/* A port that is stopped and started again finds the queues where they were. */
static void port_restarts(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	struct gdrcap_error error = { 0 };

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	for (uint32_t i = 0; i < 3; i++) {
		own_rig_send(rig, 10, 64, 200);
		own_receive(rig, queue, 10, rig->number - 10);
		steering_destroy(&rig->steering);
		assert_int_equal(rte_eth_dev_stop(rig->port[1].id), 0);
		assert_int_equal(rte_eth_dev_start(rig->port[1].id), 0);
		own_rig_rule(rig);
	}
	/* A queue that rules lead to stays. */
	assert_true(own_rx_destroy(&queue->rx, &error) < 0);
	assert_non_null(strstr(error.text, "rules still lead to"));
	own_rig_send(rig, 10, 64, 200);
	own_receive(rig, queue, 10, rig->number - 10);
}

/* ---- errors and resets ---- */

/* Halts, drains, posts and starts. Returns the completions in between. */
static uint32_t reset(struct own_queue *queue)
{
	struct gdrcap_error error = { 0 };
	uint32_t drained;

	if (own_rx_halt(&queue->rx, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(own_record(queue), 0);
	drained = own_drain(queue);
	queue->next = 0;
	queue->posted = 0;
	own_post(queue, queue->rx.front.slots);
	if (own_rx_start(&queue->rx, &error) < 0)
		fail_msg("%s", error.text);
	return drained;
}

static bool has_failed(struct own_queue *queue)
{
	struct own_rx_counters counters;

	assert_int_equal(own_rx_counters(&queue->rx, &counters, NULL), 0);
	return counters.failed;
}

/* The error, then what was posted and came back. */
static void error_is(struct own_queue *queue, uint8_t syndrome, uint32_t flushed)
{
	const struct mlx5_err_cqe *cqe = (const struct mlx5_err_cqe *)own_next(queue);

	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
	assert_int_equal(cqe->syndrome, syndrome);
	assert_int_equal(be16toh(cqe->wqe_counter),
			 queue->next >> queue->rx.front.stride_shift & 0xffff);
	for (uint32_t i = 0; i < flushed; i++) {
		cqe = (const struct mlx5_err_cqe *)own_next(queue);
		assert_non_null(cqe);
		assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
	assert_null(own_next(queue));
	assert_true(has_failed(queue));
}

static void error_and_reset(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	for (uint32_t i = 0; i < 3; i++) {
		own_rig_send(rig, 40, 64, 200);
		own_receive(rig, queue, 40, rig->number - 40);
		assert_false(has_failed(queue));
		own_rig_faults("1.rx_error=1/1/1");
		own_rig_send(rig, 10, 64, 200);
		error_is(queue, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, work_entries(queue) - 1);
		own_rig_faults("1.rx_error=off");
		assert_int_equal(reset(queue), 0);
	}
	/* The frame of each error is lost, and what came before the reset found no queue. */
	assert_int_equal(own_out_of_buffer(queue), 3 * 9);
	own_rig_send(rig, 40, 64, 200);
	own_receive(rig, queue, 40, rig->number - 40);
}

/* A queue that has not failed, with frames in it: they come, and the rest flushed; of strides, a work entry with
 * frames in it, too. */
static void reset_without_error(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	for (uint32_t i = 0; i < 3; i++) {
		own_rig_send(rig, 7, 64, 200);
		nic_settle();
		assert_int_equal(reset(queue), rig->strides ? 7 + work_entries(queue) : SLOTS);
		own_rig_send(rig, 100, 64, 200);
		assert_int_equal(own_out_of_buffer(queue), (i + 1) * (100 - SLOTS));
		own_receive(rig, queue, SLOTS, rig->number - 100);
	}
}

static void key_is_revoked(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	own_rig_send(rig, 10, 64, 200);
	own_receive(rig, queue, 10, rig->number - 10);
	own_rig_faults("1.revoke=1");
	own_rig_send(rig, 1, 64, 200);
	error_is(queue, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, work_entries(queue) - 1);
}

/* The model's own: a card that does not keep to what it should shows. */
static void planted_defects_show(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	const struct mlx5_cqe64 *cqe;
	uint64_t first;

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	own_rig_faults("1.torn=1,1.torn_us=1000000");
	own_rig_send(rig, 1, 100, 100);
	/* Not own_next(): the card stands between the two halves. */
	while ((cqe = own_look(queue)) == NULL)
		;
	assert_int_not_equal(be32toh(cqe->byte_cnt), 100);
	nic_settle();
	if (!queue->far)
		assert_int_equal(be32toh(cqe->byte_cnt), 100);
	queue->next++;
	own_rig_faults("1.wrong_entry=1");
	own_rig_send(rig, 2, 100, 100);
	for (uint32_t i = 0; i < 2; i++) {
		cqe = own_next(queue);
		assert_non_null(cqe);
		assert_int_equal(be16toh(cqe->wqe_counter), queue->next + (i == 0));
		queue->next++;
	}
	/* The record ends the card's room no more: slots in use are written, and nobody counts it. */
	own_rig_faults("1.ignore_records=1");
	first = rig->number;
	own_rig_send(rig, SLOTS + 10, 100, 100);
	for (uint32_t i = 0; i < SLOTS + 10; i++) {
		cqe = own_next(queue);
		assert_non_null(cqe);
		if (i >= 10)
			assert_int_equal(own_frame_check(rig, queue, cqe), first + i);
		else
			queue->next++;
	}
	assert_int_equal(own_out_of_buffer(queue), 0);
}

int main(int argc, char **argv)
{
	/* Those of which something lies in the GPU. */
	const struct CMUnitTest cuda[] = {
		cmocka_unit_test_teardown(frames_of_all_lengths, own_rig_reset),
		cmocka_unit_test_teardown(counter_wraps, own_rig_reset),
		cmocka_unit_test_teardown(record_in_host_memory, own_rig_reset),
		cmocka_unit_test_teardown(room_ends, own_rig_reset),
		cmocka_unit_test_teardown(frame_longer_than_a_slot, own_rig_reset),
		cmocka_unit_test_teardown(rules_spread_over_queues, own_rig_reset),
		cmocka_unit_test_teardown(error_and_reset, own_rig_reset),
		cmocka_unit_test_teardown(reset_without_error, own_rig_reset),
		cmocka_unit_test_teardown(key_is_revoked, own_rig_reset),
		cmocka_unit_test_teardown(planted_defects_show, own_rig_reset),
	};
	/* A port that was closed is opened once more, with another context. */
	const struct CMUnitTest again[] = {
		cmocka_unit_test_teardown(frames_of_all_lengths, own_rig_reset),
		cmocka_unit_test_teardown(rules_spread_over_queues, own_rig_reset),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(frames_of_all_lengths, own_rig_reset),
		cmocka_unit_test_teardown(counter_wraps, own_rig_reset),
		cmocka_unit_test_teardown(room_ends, own_rig_reset),
		cmocka_unit_test_teardown(loss_beyond_32_bits, own_rig_reset),
		cmocka_unit_test_teardown(frame_longer_than_a_slot, own_rig_reset),
		cmocka_unit_test_teardown(rings_in_gpu_memory, own_rig_reset),
		cmocka_unit_test_teardown(rules_spread_over_queues, own_rig_reset),
		cmocka_unit_test_teardown(port_restarts, own_rig_reset),
		cmocka_unit_test_teardown(error_and_reset, own_rig_reset),
		cmocka_unit_test_teardown(reset_without_error, own_rig_reset),
		cmocka_unit_test_teardown(key_is_revoked, own_rig_reset),
		cmocka_unit_test_teardown(planted_defects_show, own_rig_reset),
	};

	/* Those to which it makes a difference what a work entry is, with several strides in each. */
	const struct CMUnitTest strides[] = {
		cmocka_unit_test_teardown(frames_of_all_lengths, own_rig_reset),
		cmocka_unit_test_teardown(rings_in_gpu_memory, own_rig_reset),
		cmocka_unit_test_teardown(rules_spread_over_queues, own_rig_reset),
		cmocka_unit_test_teardown(port_restarts, own_rig_reset),
		cmocka_unit_test_teardown(error_and_reset, own_rig_reset),
		cmocka_unit_test_teardown(reset_without_error, own_rig_reset),
		cmocka_unit_test_teardown(key_is_revoked, own_rig_reset),
	};

	own_rig_init(argc, argv);
	if (argc > 1 && strcmp(argv[1], "strides") == 0) {
		own_rig_strides(OWN_STRIDES);
		return cmocka_run_group_tests(strides, own_rig_setup, own_rig_teardown);
	}
	if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
		if (!own_rig_cuda()) {
			printf("no GPU\n");
			return SKIP;
		}
		return cmocka_run_group_tests(cuda, own_rig_setup, own_rig_teardown);
	}
	return cmocka_run_group_tests(tests, own_rig_setup, own_rig_teardown) +
	       cmocka_run_group_tests(again, own_rig_setup, own_rig_teardown);
}
