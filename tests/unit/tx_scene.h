/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender with all that it needs: a software wire, slots, and the host twin that writes frames. */
#ifndef GDRCAP_TEST_TX_SCENE_H
#define GDRCAP_TEST_TX_SCENE_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/eal.h"
#include "gpu/gpu_open.h"
#include "kernels/kernels.h"
#include "base/log.h"
#include "nap.h"
#include "port/port.h"
#include "memory/region.h"
#include "replay/tx_worker.h"

#define SCENE_SLOTS 4096u
#define SCENE_HANG_SECONDS 240

static struct {
	int16_t gpu;
	struct kernel_device *device;
	struct region region;
	struct rte_mempool *pool;
	struct frame_layout layout;
	struct pattern pattern;
} scene;

/* One run. */
struct run {
	struct port_wire wire;
	struct port sender, receiver;
	struct tx_worker *worker;
	struct kernel_workers *writer;
	time_t until;
};

static int scene_open(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	const struct pattern_config pattern = { .kind = PATTERN_PRBS31, .invert = -1 };
	struct region_config region = {
		.kind = GDRCAP_MEMORY_HOST,
		.bytes = (size_t)SCENE_SLOTS << 11,
		.slot_shift = 11,
		.cpu_workers = true,
	};

	thread_share_cores(); /* with whatever else this machine does */
	if (eal_start(&needs, NULL) < 0)
		return -1;
	scene.gpu = (int16_t)gpu_open_host(false, NULL);
	region.gpu = scene.gpu;
	if (scene.gpu < 0 || kernel_host_ops.open(0, &scene.device) < 0 ||
	    region_create(&scene.region, &region, NULL) < 0 ||
	    frame_layout_init(&scene.layout, &frame) < 0 ||
	    pattern_init(&scene.pattern, &pattern) < 0)
		return -1;
	scene.pool = region_pool_create(&scene.region, "scene", SCENE_SLOTS, false,
					REGION_POOL_CACHED, -1, NULL);
	return scene.pool ? 0 : -1;
}

static int scene_close(void **state)
{
	rte_mempool_free(scene.pool);
	pattern_free(&scene.pattern);
	region_destroy(&scene.region);
	kernel_host_ops.close(scene.device);
	return 0;
}

/* What all runs have in common. */
static struct tx_config run_config(void)
{
	static const uint16_t lengths[] = { 60, 1514, 508, 61, 1000 };

	return (struct tx_config){
		.region = &scene.region,
		.pool = scene.pool,
		.layout = &scene.layout,
		.lengths = lengths,
		.length_count = 5,
		.stream_count = 1,
		.stream_step = 1,
		.frames = UINT64_MAX,
		.pacing = { PACING_NONE, 1 },
	};
}

static void port_up(struct port *port)
{
	const struct port_queues queues = {
		.rx_queues = 1,
		.tx_queues = 1,
		.descriptors = 64,
		.frame_bytes_max = 1518,
		.rx_pool = &scene.pool,
	};

	port->rx_queues = port->tx_queues = 1;
	assert_int_equal(port_configure(port, &queues, NULL), 0);
	assert_int_equal(port_start(port, NULL), 0);
}

/* All but the sender's thread. */
static void run_open(struct run *run, struct tx_config *config, uint32_t burst, uint32_t wire)
{
	const struct ring_config ring = {
		.region = &scene.region,
		.frames = SCENE_SLOTS,
		.burst_max = burst,
		.replay = true,
		.sleeps = config->writer_wakes,
	};
	struct kernel_wakes wakes;
	struct kernel_job job = {
		.role = KERNEL_WRITE,
		.ring_count = 1,
		.layout = scene.layout,
		.pattern = scene.pattern,
		.store = config->file ? &config->file->view : NULL,
	};

	memset(run, 0, sizeof(*run));
	run->until = time(NULL) + SCENE_HANG_SECONDS;
	assert_int_equal(port_wire_open(&run->wire, &run->sender, &run->receiver, "ring:scene", 1,
					wire, NULL),
			 0);
	port_up(&run->sender);
	port_up(&run->receiver);
	config->port = run->sender.id;
	run->worker = aligned_alloc(RING_LINE, sizeof(*run->worker));
	assert_non_null(run->worker);
	assert_int_equal(tx_worker_create(run->worker, config, &ring, NULL), 0);
	job.rings = &run->worker->ring.view;
	wakes = (struct kernel_wakes){ run->worker->ring.work, &run->worker->wake };
	job.wakes = config->writer_wakes ? &wakes : NULL;
	assert_int_equal(kernel_host_ops.start(scene.device, &job, &run->writer), 0);
}

static void run_go(struct run *run)
{
	assert_int_equal(thread_start(&run->worker->thread, "scene-tx", NULL, tx_worker_run,
				      run->worker, NULL),
			 0);
}

static bool run_finished(const struct run *run)
{
	return atomic_load_explicit(&run->worker->finished, memory_order_acquire);
}

/* Every slot is back. */
static void run_close(struct run *run)
{
	tx_worker_stop(run->worker);
	assert_true(thread_join_within(&run->worker->thread, SCENE_HANG_SECONDS * 1000));
	assert_true(run_finished(run));
	ring_leave(&run->worker->ring);
	assert_int_equal(kernel_host_ops.join(run->writer, SCENE_HANG_SECONDS * 1000), 0);
	tx_worker_reclaim(run->worker);
	assert_int_equal(rte_mempool_avail_count(scene.pool), SCENE_SLOTS);
	tx_worker_destroy(run->worker);
	free(run->worker);
	port_close(&run->sender);
	port_close(&run->receiver);
	port_wire_close(&run->wire);
}

/*
 * Receives until the sender has finished and nothing is left, at most `most` frames at a time;
 * returns how many came.
 */
static uint64_t run_receive(struct run *run, uint16_t most,
			    void (*frame)(void *context, const struct rte_mbuf *mbuf,
					  const uint8_t *bytes),
			    void *context)
{
	struct rte_mbuf *mbufs[64];
	uint64_t count = 0;

	for (;;) {
		const bool finished = run_finished(run);
		const uint16_t n = rte_eth_rx_burst(run->receiver.id, 0, mbufs, most);

		for (uint16_t i = 0; i < n; i++) {
			const uint8_t *at = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

			frame(context, mbufs[i], scene.region.device + (at - scene.region.base));
		}
		rte_pktmbuf_free_bulk(mbufs, n);
		count += n;
		if (n == 0 && finished)
			return count;
		if (n == 0)
			nap();
		assert_true(time(NULL) < run->until);
	}
}

#endif
