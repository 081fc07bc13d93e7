/* SPDX-License-Identifier: BSD-3-Clause */
/* The card without a driver: WQEs, doorbells and completions by hand. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "device.h"
#include "nic.h"

#define ENTRIES 64
#define PLAYED 100
#define PLAY_FILE "test_softmlx5_queues.pcap" /* in the current folder */
#define FRAME 100
#define COMPLETE_ERROR 0
#define COMPLETE_FIRST_ERROR 1
#define COMPLETE_ALWAYS 2
#define HANG_MS 240000

struct bench {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct mlx5dv_cq dv_cq;
	struct mlx5dv_qp dv_qp;
	struct soft_device *device;
	uint16_t posted;
	uint32_t seen; /* completions */
	uint8_t data[4096];
};

static int setup(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct bench *bench = calloc(1, sizeof(*bench));
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RAW_PACKET,
					 .cap.max_send_wr = ENTRIES };
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RTS };
	struct mlx5dv_obj object = { 0 };

	assert_non_null(bench);
	bench->context = ibv_open_device(list[0]);
	assert_non_null(bench->context);
	ibv_free_device_list(list);
	bench->device = soft_device(bench->context);
	bench->pd = ibv_alloc_pd(bench->context);
	bench->mr = ibv_reg_mr(bench->pd, bench->data, sizeof(bench->data), 0);
	bench->cq = ibv_create_cq(bench->context, ENTRIES, NULL, NULL, 0);
	assert_non_null(bench->mr);
	assert_non_null(bench->cq);
	attr.send_cq = attr.recv_cq = bench->cq;
	bench->qp = ibv_create_qp(bench->pd, &attr);
	assert_non_null(bench->qp);
	object.cq.in = bench->cq;
	object.cq.out = &bench->dv_cq;
	object.qp.in = bench->qp;
	object.qp.out = &bench->dv_qp;
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ | MLX5DV_OBJ_QP), 0);
	assert_int_equal(ibv_modify_qp(bench->qp, &to, IBV_QP_STATE), 0);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(ibv_destroy_qp(bench->qp), 0);
	assert_int_equal(ibv_destroy_cq(bench->cq), 0);
	assert_int_equal(ibv_dereg_mr(bench->mr), 0);
	assert_int_equal(ibv_dealloc_pd(bench->pd), 0);
	assert_int_equal(ibv_close_device(bench->context), 0);
	free(bench);
	return 0;
}

/* A frame by reference in one block. */
static uint64_t *write_wqe(struct bench *bench, uint8_t complete, uint32_t key)
{
	uint8_t *block = (uint8_t *)bench->dv_qp.sq.buf +
			 (bench->posted & (bench->dv_qp.sq.wqe_cnt - 1)) * (size_t)SOFT_BLOCK;
	struct mlx5_wqe_ctrl_seg *control = (struct mlx5_wqe_ctrl_seg *)block;
	struct mlx5_wqe_data_seg *data = (struct mlx5_wqe_data_seg *)(block + 32);

	memset(block, 0, SOFT_BLOCK);
	control->opmod_idx_opcode = htobe32((uint32_t)bench->posted << 8 | MLX5_OPCODE_SEND);
	control->qpn_ds = htobe32(bench->qp->qp_num << 8 | 3);
	control->fm_ce_se = (uint8_t)(complete << 2);
	data->byte_count = htobe32(FRAME);
	data->lkey = htobe32(key);
	data->addr = htobe64((uintptr_t)bench->data);
	bench->posted++;
	return (uint64_t *)block;
}

static void write_record(struct bench *bench)
{
	__atomic_store_n(&bench->dv_qp.dbrec[1], htobe32(bench->posted), __ATOMIC_RELEASE);
}

static void ring(struct bench *bench, uint64_t value)
{
	__atomic_store_n((uint64_t *)bench->dv_qp.bf.reg, value, __ATOMIC_RELEASE);
}

/* NULL: there is none, and there comes none. */
static struct mlx5_cqe64 *next_completion(struct bench *bench)
{
	struct mlx5_cqe64 *cqe =
		(struct mlx5_cqe64 *)bench->dv_cq.buf + (bench->seen & (bench->dv_cq.cqe_cnt - 1));
	uint8_t owner = (bench->seen & bench->dv_cq.cqe_cnt) != 0, op_own;

	nic_settle();
	op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != owner)
		return NULL;
	bench->seen++;
	__atomic_store_n(bench->dv_cq.dbrec, htobe32(bench->seen), __ATOMIC_RELEASE);
	return cqe;
}

static uint64_t sent(struct bench *bench)
{
	uint64_t count;

	nic_lock();
	count = bench->device->count.tx_packets_phy;
	nic_unlock();
	return count;
}

static void record_alone_starts_nothing(void **state)
{
	struct bench *bench = *state;
	uint64_t before = sent(bench), *wqe = write_wqe(bench, COMPLETE_ALWAYS, bench->mr->lkey);

	write_record(bench);
	assert_null(next_completion(bench));
	assert_int_equal(sent(bench), before);
	ring(bench, *wqe);
	assert_non_null(next_completion(bench));
	assert_int_equal(sent(bench), before + 1);
}

/* The register's value may be that of an older WQE; the record says how far to go. */
static void completions_come_where_asked_for(void **state)
{
	struct bench *bench = *state;
	struct mlx5_cqe64 *cqe;
	uint64_t *wqe = NULL;

	for (unsigned int round = 0; round < 10 * ENTRIES; round++) {
		for (unsigned int i = 0; i < 8; i++)
			wqe = write_wqe(bench, i == 7 ? COMPLETE_ALWAYS : COMPLETE_FIRST_ERROR,
					bench->mr->lkey);
		write_record(bench);
		ring(bench, *wqe);
		cqe = next_completion(bench);
		assert_non_null(cqe);
		assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ);
		assert_int_equal(be16toh(cqe->wqe_counter), (uint16_t)(bench->posted - 1));
	}
	assert_int_equal(bench->device->count.cq_overruns, 0);
}

static void doorbell_of_no_queue_is_counted(void **state)
{
	struct bench *bench = *state;
	uint64_t before = bench->device->count.bad_doorbells, *wqe;
	uint32_t stranger = htobe32((bench->qp->qp_num + 1) << 8 | 3);

	wqe = write_wqe(bench, COMPLETE_ALWAYS, bench->mr->lkey);
	write_record(bench);
	ring(bench, (*wqe & UINT32_MAX) | (uint64_t)stranger << 32);
	assert_null(next_completion(bench));
	assert_int_equal(bench->device->count.bad_doorbells, before + 1);
}

static void error_flushes_what_follows(void **state)
{
	static const uint8_t complete[] = { COMPLETE_FIRST_ERROR, COMPLETE_FIRST_ERROR,
					    COMPLETE_ALWAYS, COMPLETE_FIRST_ERROR, COMPLETE_ERROR };
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RESET };
	struct bench *bench = *state;
	uint64_t before = sent(bench), *wqe = NULL;
	struct mlx5_err_cqe *cqe;

	/* The second has no valid key. */
	for (unsigned int i = 0; i < sizeof(complete); i++)
		wqe = write_wqe(bench, complete[i], i == 1 ? 0x12345600 : bench->mr->lkey);
	write_record(bench);
	ring(bench, *wqe);
	cqe = (struct mlx5_err_cqe *)next_completion(bench);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(be16toh(cqe->wqe_counter), 1);
	for (unsigned int i = 2; i < sizeof(complete); i += 2) {
		cqe = (struct mlx5_err_cqe *)next_completion(bench);
		assert_non_null(cqe);
		assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		assert_int_equal(be16toh(cqe->wqe_counter), i);
	}
	assert_null(next_completion(bench));
	assert_int_equal(sent(bench), before + 1);
	/* After a reset it begins at the first block. */
	assert_int_equal(ibv_modify_qp(bench->qp, &to, IBV_QP_STATE), 0);
	to.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(bench->qp, &to, IBV_QP_STATE), 0);
	bench->posted = 0;
	wqe = write_wqe(bench, COMPLETE_ALWAYS, bench->mr->lkey);
	write_record(bench);
	ring(bench, *wqe);
	cqe = (struct mlx5_err_cqe *)next_completion(bench);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ);
}

static void wrong_index_is_an_error(void **state)
{
	struct bench *bench = *state;
	struct mlx5_err_cqe *cqe;
	uint64_t *wqe;

	bench->posted = 5; /* where the card is at 0 */
	wqe = write_wqe(bench, COMPLETE_ALWAYS, bench->mr->lkey);
	write_record(bench);
	ring(bench, *wqe);
	cqe = (struct mlx5_err_cqe *)next_completion(bench);
	assert_non_null(cqe);
	assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

static void full_completion_queue_overruns(void **state)
{
	struct bench *bench = *state;
	uint64_t before = bench->device->count.cq_overruns, *wqe = NULL;

	for (unsigned int round = 0; round < 2 * bench->dv_cq.cqe_cnt / 32 + 1; round++) {
		for (unsigned int i = 0; i < 32; i++)
			wqe = write_wqe(bench, COMPLETE_ALWAYS, bench->mr->lkey);
		write_record(bench);
		ring(bench, *wqe);
		nic_settle();
	}
	assert_true(bench->device->count.cq_overruns > before);
	/* What was written is not overwritten. */
	for (unsigned int i = 0; i < bench->dv_cq.cqe_cnt; i++) {
		struct mlx5_cqe64 *cqe = next_completion(bench);

		assert_non_null(cqe);
		assert_int_equal(be16toh(cqe->wqe_counter), i);
	}
}

static void set(const char *faults)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(faults), 0);
	nic_unlock();
}

/* The descriptor becomes readable; then there is one event and no more. */
static void expect_event(struct bench *bench, enum ibv_event_type type)
{
	struct pollfd wait = { .fd = bench->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&wait, 1, HANG_MS), 1);
	assert_int_equal(ibv_get_async_event(bench->context, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_get_async_event(bench->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

static void link_changes_are_events(void **state)
{
	struct bench *bench = *state;
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(bench->context, &event), -1);
	set("1.link=0");
	expect_event(bench, IBV_EVENT_PORT_ERR);
	set("1.link=1");
	expect_event(bench, IBV_EVENT_PORT_ACTIVE);
}

/* There is no queue behind the cable, and so nothing to wait for; without the cable all is lost. */
static void another_plays_into_the_cable(void **state)
{
	struct bench *bench = *state;
	uint64_t before = sent(bench);

	set("0.play=3");
	nic_settle();
	assert_int_equal(sent(bench), before + 3 * PLAYED);
	set("0.play=0");
	nic_settle();
	set("0.play=1");
	nic_settle();
	assert_int_equal(sent(bench), before + 4 * PLAYED);
	set("0.play=0");
}

/* A file of PLAYED frames; before the library looks for it. */
static void __attribute__((constructor(101))) write_file(void)
{
	uint32_t header[6] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1 };
	uint32_t record[4] = { 0, 0, 60, 60 };
	uint8_t frame[60] = { 2 };
	FILE *file = fopen(PLAY_FILE, "w");

	if (file == NULL)
		return;
	fwrite(header, sizeof(header), 1, file);
	for (unsigned int i = 0; i < PLAYED; i++) {
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame, sizeof(frame), 1, file);
	}
	fclose(file);
	setenv("SOFTMLX5_PLAY", PLAY_FILE, 1);
}

int main(void)
{
	int failed;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(record_alone_starts_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(completions_come_where_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(doorbell_of_no_queue_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(error_flushes_what_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_index_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(full_completion_queue_overruns, setup, teardown),
		cmocka_unit_test_setup_teardown(link_changes_are_events, setup, teardown),
		cmocka_unit_test_setup_teardown(another_plays_into_the_cable, setup, teardown),
	};

	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(PLAY_FILE);
	return failed;
}
