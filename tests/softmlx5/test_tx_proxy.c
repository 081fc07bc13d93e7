/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU thread beside a sender on the GPU, where it rings for it (PROXY) and mends its queue (HANDED,
 * RESUME): a thread plays the kernel's part, and the card is software. Each burst waits until the one before
 * has left, so no ring may be missing.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "device.h"
#include "nic.h"
#include "replay/tx_worker.h"
#include "replay/tx_worker_gpu.h"

#define SLOTS 256u
#define SLOT_BYTES 2048u
#define FRAME_BYTES 100u
#define BURST 10u
#define BURSTS 300u
#define HANG_SECONDS 240

struct bench {
	struct devx_card card;
	struct ibv_mr *mr;
	uint8_t *frames;
	struct soft_device *device;
	struct tx_own own;
	struct tx_worker worker;
	struct tx_gpu gpu;
	struct kernel_send send;
	struct send_words words;
	struct send_status status;
	struct send_place place;
	struct sq_mark mark[KERNEL_SEND_MARKS_MAX];
	/* The player's. */
	uint32_t bursts; /* that it is to post */
	uint64_t mended;
	uint64_t first_ns; /* wall clock: when it was told to send */
	bool hung;
	time_t until;
};

static int setup(void **state)
{
	const struct connectx_card found = { .rdma = "mlx5_0" };
	struct bench *bench =
		aligned_alloc(RING_LINE, (sizeof(*bench) + RING_LINE - 1) / RING_LINE * RING_LINE);
	struct own_tx_config config = { .slots = SLOTS, .memory = GDRCAP_MEMORY_HOST };
	struct gdrcap_error error = { 0 };

	assert_non_null(bench);
	memset(bench, 0, sizeof(*bench));
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
	memset(&bench->device->count, 0, sizeof(bench->device->count));
	memset(&bench->device->faults.tx_error, 0, sizeof(bench->device->faults.tx_error));
	nic_unlock();
	config.card = &bench->card;
	config.key = bench->mr->lkey;
	if (own_tx_create(&bench->own.tx, &config, &error) < 0)
		fail_msg("%s", error.text);
	bench->own.front.queue = bench->own.tx.queue;
	bench->own.front.mark =
		calloc(sq_marks_max(&bench->own.tx.queue), sizeof(*bench->own.front.mark));
	assert_non_null(bench->own.front.mark);
	bench->worker.config.own = &bench->own;
	bench->gpu = (struct tx_gpu){
		.words = &bench->words,
		.status = &bench->status,
		.place = &bench->place,
		.mark = bench->mark,
		.tables = bench->frames, /* the player looks at none */
		.host_bell = bench->own.front.queue.bell,
	};
	bench->bursts = BURSTS;
	bench->until = time(NULL) + HANG_SECONDS;
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;
	struct gdrcap_error error;

	assert_int_equal(bench->device->count.bad_doorbells, 0);
	assert_int_equal(own_tx_destroy(&bench->own.tx, &error), 0);
	assert_int_equal(devx_key_destroy(&bench->mr), 0);
	devx_close(&bench->card);
	free(bench->own.front.mark);
	free(bench->frames);
	free(bench);
	return 0;
}

/* ---- the kernel's part ---- */

static bool player_may_go_on(struct bench *bench)
{
	bench->hung |= time(NULL) > bench->until;
	return !bench->hung &&
	       __atomic_load_n(&bench->words.control, __ATOMIC_RELAXED) != GPU_SEND_STOP;
}

/* Without a register it asks for a ring. */
static void player_ring(struct bench *bench)
{
	struct sq_front *front = &bench->place.front;

	sq_bell(front);
	__atomic_store_n(&bench->status.bell, front->bell, __ATOMIC_RELAXED);
	/* PROXY */
	__atomic_store_n(&bench->status.rings, front->rings, __ATOMIC_RELEASE);
}

static void player_burst(struct bench *bench)
{
	struct sq_front *front = &bench->place.front;

	for (uint32_t i = 0; i < BURST; i++)
		sq_write_frame(&front->queue, front->posted, 0, i,
			       (uintptr_t)bench->frames + (front->frames + i) % SLOTS * SLOT_BYTES,
			       FRAME_BYTES);
	sq_write_entry(&front->queue, front->posted, BURST, SQ_ALWAYS);
	sq_burst_add(front, BURST, 0, 1);
	__atomic_fetch_add(&bench->status.sent, BURST, __ATOMIC_RELAXED);
	player_ring(bench);
}

/* HANDED, until RESUME. */
static void player_hands_over(struct bench *bench)
{
	const uint32_t resumes = (uint32_t)bench->mended;

	__atomic_store_n(&bench->status.state, GPU_SEND_FAILED, __ATOMIC_RELEASE);
	while (player_may_go_on(bench) &&
	       __atomic_load_n(&bench->words.resumes, __ATOMIC_ACQUIRE) == resumes)
		sched_yield();
	bench->mended++;
}

static void *player(void *arg)
{
	struct bench *bench = arg;
	struct sq_front *front = &bench->place.front;

	__atomic_store_n(&bench->status.state, GPU_SEND_RUNS, __ATOMIC_RELAXED);
	while (player_may_go_on(bench) &&
	       __atomic_load_n(&bench->words.control, __ATOMIC_RELAXED) == GPU_SEND_HOLD)
		sched_yield();
	bench->first_ns = time_ns(CLOCK_REALTIME);
	for (uint32_t i = 0; i < bench->bursts && player_may_go_on(bench); i++) {
		player_burst(bench);
		while (front->state == SQ_RUNS && front->sent != front->frames &&
		       player_may_go_on(bench)) {
			(void)sq_poll(front);
			sched_yield();
		}
		if (front->state != SQ_RUNS)
			player_hands_over(bench);
	}
	__atomic_store_n(&bench->status.state, GPU_SEND_ENDED, __ATOMIC_RELEASE);
	return NULL;
}

static void play(struct bench *bench)
{
	pthread_t thread;

	tx_gpu_show(&bench->gpu, &bench->worker, &bench->send, 0);
	assert_null(bench->place.front.queue.bell);
	assert_int_equal(pthread_create(&thread, NULL, player, bench), 0);
	assert_true(tx_gpu_run(&bench->gpu, &bench->worker));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(bench->hung);
	nic_settle();
}

/* ---- tests ---- */

/* Every burst leaves, each by a ring of its own; then the thread has queue, register and counts. */
static void test_rings(void **state)
{
	struct bench *bench = *state;
	const struct sq_front *front = &bench->own.front;

	play(bench);
	assert_int_equal(bench->device->count.tx_packets_phy, (uint64_t)BURSTS * BURST);
	assert_int_equal(atomic_load(&bench->worker.sent), (uint64_t)BURSTS * BURST);
	assert_int_equal(front->sent, (uint64_t)BURSTS * BURST);
	assert_int_equal(bench->gpu.rung, BURSTS);
	assert_ptr_equal(front->queue.bell, bench->own.tx.queue.bell);
	assert_ptr_not_equal(front->mark, bench->mark);
}

/* Its own register again after a reset, whose rings go on counting. */
static void test_mends(void **state)
{
	struct bench *bench = *state;

	nic_lock();
	bench->device->faults.tx_error = (struct soft_knob){ .start = 50, .step = 60, .count = 5 };
	nic_unlock();
	play(bench);
	assert_int_equal(bench->mended, 5);
	assert_int_equal(atomic_load(&bench->own.resets), 5);
	/* Each time the burst that failed, and no other. */
	assert_int_equal(atomic_load(&bench->own.lost), 5 * BURST);
	assert_int_equal(bench->device->count.tx_packets_phy, (BURSTS - 5) * (uint64_t)BURST);
	assert_int_equal(bench->own.front.sent, (uint64_t)BURSTS * BURST);
}

/* EAL, which knows the frequency, is not initialised here. */
static uint64_t measured_tsc_hz(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	const uint64_t ns = time_ns(CLOCK_MONOTONIC), tsc = rte_rdtsc();

	nanosleep(&pause, NULL);
	return (rte_rdtsc() - tsc) * 1000000000 / (time_ns(CLOCK_MONOTONIC) - ns);
}

/* A kernel that was launched before its time is held until then. */
static void test_starts_at_its_time(void **state)
{
	struct bench *bench = *state;
	struct tx_worker *worker = &bench->worker;
	uint64_t late;

	worker->tsc_hz = measured_tsc_hz();
	worker->config.start_ns = time_ns(CLOCK_REALTIME) + 200000000;
	play(bench);
	assert_true(bench->first_ns >= worker->config.start_ns);
	assert_true(tx_start_late(worker, atomic_load(&worker->first_tsc), &late));
	assert_true(worker->config.start_ns + late <= time_ns(CLOCK_REALTIME));
	assert_int_equal(atomic_load(&worker->sent), (uint64_t)BURSTS * BURST);
}

/* A stop reaches a kernel that waits for nothing. */
static void test_stop(void **state)
{
	struct bench *bench = *state;

	bench->bursts = UINT32_MAX;
	atomic_store(&bench->worker.stop, 1);
	play(bench);
	assert_int_equal(bench->device->count.tx_packets_phy, bench->own.front.frames);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_rings), TEST(test_mends),
					    TEST(test_starts_at_its_time), TEST(test_stop) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
