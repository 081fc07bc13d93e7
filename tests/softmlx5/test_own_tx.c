/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue of our own on the software card, whose reader of entries is the one that DPDK's driver is
 * tested with: frames and bytes that leave, doorbells, errors, a queue that is reset.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device.h"
#include "nic.h"
#include "port/own_tx.h"

#define SLOTS 1024u
#define SLOT_BYTES 16384u
#define BURST 256u
#define FRAME_MIN 60u /* shorter ones are padded */
#define FRAME_MAX 9000u
#define FCS 4u

struct bench {
	struct devx_card card;
	struct ibv_mr *mr;
	uint8_t *frames;
	struct own_tx tx[2];
	struct sq_front front[2];
	struct soft_device *device;
	uint64_t bytes; /* of what was posted, with FCS */
};

static uint32_t random_below(uint32_t end)
{
	static uint64_t state = 7;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % end);
}

static void queue_make(struct bench *bench, uint32_t q, struct mlx5dv_devx_uar *uar)
{
	const struct own_tx_config config = {
		.card = &bench->card,
		.key = bench->mr->lkey,
		.slots = SLOTS,
		.memory = GDRCAP_MEMORY_HOST,
		.uar = uar,
	};
	struct gdrcap_error error = { 0 };

	if (own_tx_create(&bench->tx[q], &config, &error) < 0)
		fail_msg("%s", error.text);
	bench->front[q] = (struct sq_front){ .queue = bench->tx[q].queue };
	bench->front[q].mark =
		calloc(sq_marks_max(&bench->tx[q].queue), sizeof(*bench->front[q].mark));
	assert_non_null(bench->front[q].mark);
}

static int setup(void **state)
{
	const struct connectx_card found = { .rdma = "mlx5_0" };
	struct bench *bench = calloc(1, sizeof(*bench));
	struct gdrcap_error error = { 0 };

	assert_non_null(bench);
	if (devx_open(&bench->card, &found, "card", &error) < 0)
		fail_msg("%s", error.text);
	bench->frames = aligned_alloc(65536, (size_t)SLOTS * SLOT_BYTES);
	assert_non_null(bench->frames);
	memset(bench->frames, 2, (size_t)SLOTS * SLOT_BYTES);
	assert_int_equal(devx_key_create(&bench->card, &bench->mr, bench->frames,
					 (size_t)SLOTS * SLOT_BYTES, &error),
			 0);
	bench->device = soft_device(bench->card.context);
	nic_lock();
	bench->device->peer->mtu = FRAME_MAX;
	memset(&bench->device->count, 0, sizeof(bench->device->count));
	memset(&bench->device->faults.tx_error, 0, sizeof(bench->device->faults.tx_error));
	bench->device->faults.ignore_doorbells = 0;
	nic_unlock();
	queue_make(bench, 0, NULL);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;
	struct gdrcap_error error;

	assert_int_equal(bench->device->count.bad_doorbells, 0);
	assert_int_equal(bench->device->count.cq_overruns, 0);
	for (uint32_t q = 0; q < 2; q++) {
		assert_int_equal(own_tx_destroy(&bench->tx[q], &error), 0);
		free(bench->front[q].mark);
	}
	assert_int_equal(devx_key_destroy(&bench->mr), 0);
	devx_close(&bench->card);
	free(bench->frames);
	free(bench);
	return 0;
}

/* Frame n lies in slot n % SLOTS. False: no room now. */
static bool post_key(struct bench *bench, uint32_t q, uint32_t count, int each, uint32_t key)
{
	struct sq_front *front = &bench->front[q];
	struct sq_queue queue = front->queue;
	int marked;

	if (!sq_fits(front, count, each) || front->frames + count - front->sent > SLOTS)
		return false;
	marked = sq_mark_due(front, count, each);
	queue.key = key;
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t slot = (front->frames + i) % SLOTS;
		const uint32_t bytes = each ? FRAME_MIN + random_below(FRAME_MAX - FRAME_MIN)
					    : FRAME_MIN + random_below(200);

		bench->bytes += bytes + FCS;
		sq_write_frame(&queue, front->posted, each, i,
			       (uintptr_t)bench->frames + slot * SLOT_BYTES, bytes);
	}
	for (uint32_t e = 0; e < sq_entries(count, each); e++)
		sq_write_entry(&queue, front->posted + sq_entry_block(each, e),
			       sq_entry_frames(count, each, e),
			       marked && e + 1 == sq_entries(count, each) ? SQ_ALWAYS
									  : SQ_IF_FIRST_TO_FAIL);
	sq_burst_add(front, count, each, marked);
	return true;
}

static bool post(struct bench *bench, uint32_t q, uint32_t count, int each)
{
	return post_key(bench, q, count, each, bench->tx[q].queue.key);
}

/* Until all that was posted is through, or the queue has stopped. */
static void flush(struct bench *bench, uint32_t q)
{
	struct sq_front *front = &bench->front[q];

	(void)sq_poll(front);
	while (front->state == SQ_RUNS && !sq_post_nop(front))
		(void)sq_poll(front);
	if (front->state == SQ_RUNS)
		sq_bell(front);
	while (front->state == SQ_RUNS && front->sent != front->frames)
		(void)sq_poll(front);
}

static uint64_t left_card(struct bench *bench, uint64_t *bytes)
{
	uint64_t frames;

	nic_settle();
	nic_lock();
	frames = bench->device->count.tx_packets_phy;
	if (bytes)
		*bytes = bench->device->count.tx_bytes_phy;
	nic_unlock();
	return frames;
}

static void restart(struct bench *bench, uint32_t q)
{
	struct sq_front *front = &bench->front[q];
	struct gdrcap_error error = { 0 };

	if (own_tx_halt(&bench->tx[q], front->state == SQ_FAILED, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(*front->queue.record, 0);
	sq_skip(front);
	sq_restart(front);
	if (own_tx_start(&bench->tx[q], &error) < 0)
		fail_msg("%s", error.text);
}

/* Many laps of ring and completion queue, all lengths of bursts, both shapes. */
static void test_frames(void **state)
{
	struct bench *bench = *state;
	struct sq_front *front = &bench->front[0];
	uint64_t frames = 0, bytes;

	for (uint32_t i = 0; front->posted <= 3 * 65536ull || front->marks < 3 * front->queue.cqes;
	     i++) {
		const uint32_t count = 1 + random_below(i % 8 ? 40 : BURST);
		const int each = random_below(8) == 0;

		while (!post(bench, 0, count, each)) {
			assert_int_equal(front->state, SQ_RUNS);
			(void)sq_poll(front);
		}
		frames += count;
		sq_bell(front);
	}
	flush(bench, 0);
	assert_int_equal(front->state, SQ_RUNS);
	assert_int_equal(front->sent, frames);
	assert_int_equal(left_card(bench, &bytes), frames);
	assert_int_equal(bytes, bench->bytes);
	assert_int_equal(bench->device->count.bad_keys, 0);
}

/* And the planted defect is seen: a card that sends without it. */
static void test_record_alone_starts_nothing(void **state)
{
	struct bench *bench = *state;
	struct sq_front *front = &bench->front[0];
	uint64_t *bell = front->queue.bell;

	front->queue.bell = NULL;
	assert_true(post(bench, 0, 3, 0));
	sq_bell(front);
	assert_int_equal(left_card(bench, NULL), 0);
	front->queue.bell = bell;
	sq_bell(front);
	assert_int_equal(left_card(bench, NULL), 3);

	nic_lock();
	bench->device->faults.ignore_doorbells = 1;
	nic_unlock();
	front->queue.bell = NULL;
	assert_true(post(bench, 0, 3, 0));
	sq_bell(front);
	assert_int_equal(left_card(bench, NULL), 6);
	front->queue.bell = bell;
	nic_lock();
	bench->device->faults.ignore_doorbells = 0;
	nic_unlock();
	flush(bench, 0);
	assert_int_equal(front->sent, 6);
}

/* An error completion; a reset; on it goes. Often, wherever the queue stands. */
static void test_errors(void **state)
{
	struct bench *bench = *state;
	struct sq_front *front = &bench->front[0];
	uint64_t good = 0, before;
	char text[200];

	for (uint32_t round = 0; round < 50; round++) {
		const uint32_t bursts = random_below(10);

		for (uint32_t i = 0; i < bursts; i++) {
			const uint32_t count = 1 + random_below(50);

			good += post(bench, 0, count, 0) ? count : 0;
			sq_bell(front);
			(void)sq_poll(front);
		}
		flush(bench, 0);
		assert_int_equal(front->state, SQ_RUNS);
		before = front->lost;
		/* One before it and two behind it are marked. */
		nic_lock();
		bench->device->faults.tx_error =
			(struct soft_knob){ .start = 1, .step = 1, .count = 1 };
		nic_unlock();
		for (uint32_t i = 0; i < 12; i++)
			assert_true(post(bench, 0, 10, 0));
		sq_bell(front);
		while (front->state == SQ_RUNS)
			(void)sq_poll(front);
		assert_int_equal(front->state, SQ_FAILED);
		assert_int_equal(front->syndrome & 0xff, 4);
		own_tx_explain(front, text, sizeof(text));
		assert_non_null(strstr(text, "memory that is not registered"));
		assert_false(post(bench, 0, 1, 0));
		nic_settle();
		restart(bench, 0);
		assert_int_equal(front->lost - before, 120);
		assert_int_equal(front->sent, front->frames);
	}
	good += 100;
	assert_true(post(bench, 0, 100, 0));
	flush(bench, 0);
	assert_int_equal(front->state, SQ_RUNS);
	assert_int_equal(left_card(bench, NULL), good);
}

/* A key that no memory has, in the middle: what is before leaves, what is behind does not. */
static void test_wrong_key(void **state)
{
	struct bench *bench = *state;
	struct sq_front *front = &bench->front[0];

	assert_true(post(bench, 0, 100, 0));
	assert_true(post_key(bench, 0, 10, 0, bench->mr->lkey ^ 0x7700));
	assert_true(post(bench, 0, 100, 0));
	sq_bell(front);
	while (front->state == SQ_RUNS)
		(void)sq_poll(front);
	assert_int_equal(front->state, SQ_FAILED);
	assert_int_equal(left_card(bench, NULL), 100);
	restart(bench, 0);
	assert_true(post(bench, 0, 100, 0));
	flush(bench, 0);
	assert_int_equal(left_card(bench, NULL), 200);
}

/* A completion that nothing asked for, written by whom ever: nothing comes back for it, and the queue
 * is made anew. */
static void test_broken_card(void **state)
{
	struct bench *bench = *state;
	struct sq_front *front = &bench->front[0];
	uint8_t *cqe = bench->tx[0].completions.front;
	char text[200];

	cqe[63] = 0; /* sent, entry 0xf1f1 of queue 0xf1f1f1 */
	assert_int_equal(sq_poll(front), 0);
	assert_int_equal(front->state, SQ_BROKEN);
	own_tx_explain(front, text, sizeof(text));
	assert_non_null(strstr(text, "what was not sent"));
	cqe[63] = 0xf1;
	front->cqe = 0;
	restart(bench, 0);
	assert_true(post(bench, 0, 100, 0));
	flush(bench, 0);
	assert_int_equal(front->sent, 100);
	assert_int_equal(left_card(bench, NULL), 100);
}

/* Two queues ring one register: the second may hide the first, and both send. */
static void test_shared_register(void **state)
{
	struct bench *bench = *state;
	uint64_t frames = 0;

	queue_make(bench, 1, bench->tx[0].uar);
	assert_ptr_equal(bench->front[0].queue.bell, bench->front[1].queue.bell);
	assert_int_not_equal(bench->front[0].queue.number, bench->front[1].queue.number);
	for (uint32_t i = 0; i < 2000; i++) {
		for (uint32_t q = 0; q < 2; q++)
			while (!post(bench, q, 7, 0))
				(void)sq_poll(&bench->front[q]);
		sq_bell(&bench->front[0]);
		sq_bell(&bench->front[1]);
		frames += 14;
	}
	flush(bench, 0);
	flush(bench, 1);
	assert_int_equal(bench->front[0].sent + bench->front[1].sent, frames);
	assert_int_equal(left_card(bench, NULL), frames);
}

/* What cannot be had is refused with the reason, and leaves nothing behind. */
static void test_refused(void **state)
{
	struct bench *bench = *state;
	struct own_tx_config config = bench->tx[0].config;
	const uint32_t log_max = bench->card.log_wq_max;
	struct gdrcap_error error;
	struct own_tx tx;

	config.memory = GDRCAP_MEMORY_DEVICE;
	assert_int_equal(own_tx_create(&tx, &config, &error), -ENOTSUP);
	config.memory = GDRCAP_MEMORY_HOST;
	bench->card.log_wq_max = 9;
	assert_int_equal(own_tx_create(&tx, &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "2^9"));
	bench->card.log_wq_max = log_max;
	bench->card.inline_mode = PRM_INLINE_MODE_L2;
	assert_int_equal(own_tx_create(&tx, &config, &error), -ENOTSUP);
	assert_non_null(strstr(error.text, "ConnectX-5"));
	bench->card.inline_mode = PRM_INLINE_MODE_NONE;
	assert_int_equal(own_tx_destroy(&tx, &error), 0);
	/* A queue can be made again and again: numbers and memory come back. */
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(own_tx_create(&tx, &config, &error), 0);
		assert_int_equal(own_tx_destroy(&tx, &error), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_frames),	TEST(test_record_alone_starts_nothing),
		TEST(test_errors),	TEST(test_wrong_key),
		TEST(test_broken_card), TEST(test_shared_register),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
