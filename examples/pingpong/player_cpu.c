/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU in the place of kernels: the calling thread is the stream, and a thread the kernel that runs on. */
#include "player.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gdrcap_device_host.h>

#define IDLE_YIELDS 256u

struct own {
	struct play play;
	struct progress progress;
	pthread_t thread;
	bool runs;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int cpu_open(struct player *player)
{
	struct own *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->play = player->first;
	player->play = &own->play;
	player->progress = &own->progress;
	player->own = own;
	return 0;
}

static void cpu_close(struct player *player)
{
	free(player->own);
	player->own = NULL;
}

static void steps_add(struct player *player, uint32_t bytes)
{
	struct progress *progress = player->progress;

	/* Partner: the watch's acquire loads. */
	__atomic_store_n(&progress->over, player->play->over, __ATOMIC_RELEASE);
	__atomic_store_n(&progress->steps, progress->steps + (bytes != 0), __ATOMIC_RELEASE);
}

static int cpu_hello(struct player *player, uint8_t *out)
{
	return (int)message_write(player->play, out, MESSAGE_HELLO, 0, 0);
}

static int cpu_answer(struct player *player, const uint8_t *in, uint32_t bytes, uint8_t *out)
{
	const uint32_t sent = play_step(player->play, in, bytes, out, now_ns());

	steps_add(player, sent);
	return (int)sent;
}

static int cpu_hello_queue(struct player *player, uint64_t seq, bool submits)
{
	const struct gdrcap_gpu_tx tx = player->gpu_tx;

	if (gdrcap_gpu_tx_reserve(tx, seq, 1) != 1)
		return -EAGAIN;
	gdrcap_gpu_tx_set_bytes(tx, seq, (uint32_t)cpu_hello(player, gdrcap_gpu_tx_data(tx, seq)));
	if (submits)
		gdrcap_gpu_tx_submit(tx, seq, 1);
	return 0;
}

/* The answers to a batch: how many there are. One more than there is room for takes the last one's place: that is a hello,
 * of which one is enough, since rank 0 sends many while others have no core, and nothing else before one is back. */
static uint32_t batch_answer(struct player *player, const struct gdrcap_batch *batch,
			     uint64_t tx_seq)
{
	const struct gdrcap_gpu_tx tx = player->gpu_tx;
	uint32_t answers = 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		const uint64_t at = tx_seq + (answers < ANSWERS_MAX ? answers : ANSWERS_MAX - 1);
		const int bytes =
			cpu_answer(player, gdrcap_frame(batch, i), gdrcap_frame_bytes(batch, i),
				   gdrcap_gpu_tx_data(tx, at));

		if (bytes)
			gdrcap_gpu_tx_set_bytes(tx, at, (uint32_t)bytes);
		answers += bytes && answers < ANSWERS_MAX;
	}
	return answers;
}

static int cpu_batch(struct player *player, uint64_t seq, uint64_t tx_seq)
{
	struct gdrcap_batch batch;

	/* The run is over: the stream was let go by that. */
	if (gdrcap_host_try_next(&player->gpu_queue, seq, &batch) <= 0 ||
	    gdrcap_gpu_tx_reserve(player->gpu_tx, tx_seq, ANSWERS_MAX) != (int)ANSWERS_MAX)
		return 0;
	batch_answer(player, &batch, tx_seq);
	player->progress->batches = seq + 1;
	return 0;
}

/* Sleeps in the end: beside busy threads, Linux keeps one that only yields waiting for seconds. */
static void idle_wait(unsigned int polls)
{
	const struct timespec pause = { .tv_nsec = 5000 };

	if (polls < IDLE_YIELDS)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

static void *run_thread(void *arg)
{
	struct player *player = arg;
	uint64_t tx_seq = gdrcap_gpu_tx_first(player->gpu_tx);

	for (uint64_t seq = 0; !player->play->over; seq++) {
		struct gdrcap_batch batch;
		unsigned int polls = 0;
		int got;

		while ((got = gdrcap_host_try_next(&player->gpu_queue, seq, &batch)) == 0)
			idle_wait(polls++);
		if (got < 0)
			break;
		while ((got = gdrcap_gpu_tx_reserve(player->gpu_tx, tx_seq, ANSWERS_MAX)) >= 0 &&
		       got < (int)ANSWERS_MAX)
			idle_wait(polls++);
		if (got < 0)
			break;
		tx_seq = gdrcap_gpu_tx_submit(player->gpu_tx, tx_seq,
					      (int)batch_answer(player, &batch, tx_seq));
		gdrcap_host_release(&player->gpu_queue, seq);
	}
	return NULL;
}

static int cpu_run(struct player *player)
{
	struct own *own = player->own;
	const int ret = pthread_create(&own->thread, NULL, run_thread, player);

	own->runs = ret == 0;
	return -ret;
}

static int cpu_end(struct player *player)
{
	struct own *own = player->own;

	if (own->runs)
		pthread_join(own->thread, NULL);
	own->runs = false;
	player->first = own->play;
	return 0;
}

const struct player_ops player_cpu = {
	.name = "CPU",
	.open = cpu_open,
	.close = cpu_close,
	.hello = cpu_hello,
	.answer = cpu_answer,
	.hello_queue = cpu_hello_queue,
	.batch = cpu_batch,
	.run = cpu_run,
	.end = cpu_end,
};
