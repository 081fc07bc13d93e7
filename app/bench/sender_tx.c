/* SPDX-License-Identifier: BSD-3-Clause */
/* One tx worker, as a session has it, on a core of its own; net_null takes and frees what it sends.
 */
#include "bench/sender.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/eal.h"
#include "base/log.h"
#include "bench/resident.h"
#include "gpu/gpu_open.h"
#include "memory/region.h"
#include "port/port.h"
#include "replay/tx_worker.h"

#define SLOTS 32768u /* what a worker has under way, and what its cache keeps, twice */
#define SLOT_SHIFT_MIN 8u
#define DESCRIPTORS 1024u
#define EAL_BYTES ((size_t)128 << 20)
#define WARM_MS 10u
#define BEGIN_MS 5000u
#define END_MS 10000u

struct sender_tx {
	const struct bench *bench;
	uint32_t frame_bytes, burst, blocks;
	struct region region;
	struct rte_mempool *pool;
	struct port port;
	struct resident *check; /* of what lies in the slots; has layout and pattern */
	/* Of a run. */
	uint16_t length; /* of each frame, in memory */
	struct tx_worker *worker;
	struct kernel_workers *writer;
	bool stuck; /* threads did not end: nothing may be given back */
};

/* ---- life ---- */

static int memory_open(struct sender_tx *tx, struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = EAL_BYTES };
	struct region_config config = {
		.kind = tx->bench->cuda ? GDRCAP_MEMORY_DEVICE : GDRCAP_MEMORY_HOST,
		.slot_shift = SLOT_SHIFT_MIN,
		.cpu_workers = !tx->bench->cuda,
	};
	int ret = eal_start(&needs, error);

	if (ret == 0)
		ret = tx->bench->cuda ? gpu_open_cuda(tx->bench->ordinal, error)
				      : gpu_open_host(false, error);
	if (ret < 0)
		return ret;
	config.gpu = (int16_t)ret;
	while (1u << config.slot_shift < RTE_PKTMBUF_HEADROOM + tx->frame_bytes)
		config.slot_shift++;
	config.bytes = (size_t)SLOTS << config.slot_shift;
	ret = region_create(&tx->region, &config, error);
	if (ret < 0)
		return ret;
	tx->pool = region_pool_create(&tx->region, "gdrcap_bench_tx", SLOTS, false,
				      REGION_POOL_CACHED, -1, error);
	return tx->pool ? 0 : -ENOMEM;
}

static int port_up(struct sender_tx *tx, struct gdrcap_error *error)
{
	const struct port_queues queues = {
		.tx_queues = 1,
		.descriptors = DESCRIPTORS,
		.frame_bytes_max = FRAME_MAX_BYTES,
	};
	int ret = port_open(&tx->port, "net_null_bench_tx,copy=0", "net_null", error);

	tx->port.tx_queues = 1;
	if (ret == 0)
		ret = port_configure(&tx->port, &queues, error);
	return ret < 0 ? ret : port_start(&tx->port, error);
}

static int check_open(struct sender_tx *tx, const struct gdrcap_bench_point *point,
		      struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = point->frame_bytes,
		.burst = BURST_FRAMES_MAX,
		.rings = 1,
		.pattern = point->pattern,
		.memory = point->memory,
		.bytes = (size_t)SLOTS << tx->region.slot_shift,
		.frames = tx->region.device,
		.slot_shift = tx->region.slot_shift,
		.offset = RTE_PKTMBUF_HEADROOM,
	};

	return resident_create(tx->bench, &config, &tx->check, error);
}

void sender_tx_close(struct sender_tx *tx)
{
	if (tx->stuck)
		return;
	if (tx->check)
		resident_destroy(tx->check);
	port_stop(&tx->port);
	port_close(&tx->port);
	rte_mempool_free(tx->pool);
	region_destroy(&tx->region);
	free(tx);
}

int sender_tx_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		   struct sender_tx **opened, struct gdrcap_error *error)
{
	struct sender_tx *tx = calloc(1, sizeof(*tx));
	int ret;

	if (!tx)
		return error_set(error, -ENOMEM, "no memory for a sender");
	tx->bench = bench;
	tx->frame_bytes = point->frame_bytes;
	tx->burst = point->burst;
	tx->blocks = point->blocks;
	tx->length = (uint16_t)(point->frame_bytes - FRAME_FCS_BYTES);
	ret = memory_open(tx, error);
	if (ret == 0)
		ret = port_up(tx, error);
	if (ret == 0)
		ret = check_open(tx, point, error);
	if (ret < 0)
		sender_tx_close(tx);
	else
		*opened = tx;
	return ret;
}

/* ---- a run ---- */

static int worker_create(struct sender_tx *tx, struct gdrcap_error *error)
{
	const struct ring_config ring = {
		.region = &tx->region,
		.frames = SLOTS,
		.burst_max = tx->burst,
		.replay = true,
	};
	const struct tx_config config = {
		.port = tx->port.id,
		.region = &tx->region,
		.pool = tx->pool,
		.layout = &tx->check->layout,
		.lengths = &tx->length,
		.length_count = 1,
		.stream_count = 1,
		.stream_step = 1,
		.frames = UINT64_MAX,
		.pacing = { PACING_NONE, 1 },
	};
	int ret;

	tx->worker = aligned_alloc(RING_LINE, sizeof(*tx->worker));
	if (!tx->worker)
		return error_set(error, -ENOMEM, "no memory for a tx worker");
	ret = tx_worker_create(tx->worker, &config, &ring, error);
	if (ret < 0) {
		free(tx->worker);
		tx->worker = NULL;
	}
	return ret;
}

static int writer_start(struct sender_tx *tx, struct gdrcap_error *error)
{
	const struct bench *bench = tx->bench;
	const struct kernel_job job = {
		.role = KERNEL_WRITE,
		.rings = &tx->worker->ring.view,
		.ring_count = 1,
		.workers_per_ring = tx->blocks,
		.frame_bytes_hint = tx->frame_bytes,
		.layout = tx->check->layout,
		.pattern = tx->check->pattern,
		/* this thread only sleeps: its CPU is the twin's */
		.cpus = bench->cpus,
		.cpu_count = 1,
	};
	const int ret = bench->ops->start(bench->device, &job, &tx->writer);

	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Everything that a run started, as far as it did. */
static int run_end(struct sender_tx *tx, struct gdrcap_error *error)
{
	struct tx_worker *worker = tx->worker;
	int ret = 0;

	atomic_store(&worker->stop, 1);
	tx->stuck = !thread_join_within(&worker->thread, END_MS);
	if (tx->stuck)
		return error_set(error, -ETIMEDOUT, "the tx worker did not end within %u ms",
				 END_MS);
	/* STOP */
	__atomic_store_n(worker->ring.stop, 1, __ATOMIC_RELAXED);
	if (tx->writer)
		ret = tx->bench->ops->join(tx->writer, END_MS);
	tx->writer = NULL;
	tx->stuck = ret == -ETIMEDOUT;
	if (tx->stuck)
		return error_set(error, ret, "%s", kernel_error());
	tx_worker_reclaim(worker);
	tx_worker_destroy(worker);
	free(worker);
	tx->worker = NULL;
	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Until the first frame is sent, and a little longer. */
static int wait_begin(const struct sender_tx *tx, struct gdrcap_error *error)
{
	for (uint32_t ms = 0; !atomic_load(&tx->worker->sent); ms++) {
		if (ms >= BEGIN_MS)
			return error_set(error, -ETIMEDOUT,
					 "the tx worker sent nothing within %u ms", BEGIN_MS);
		sleep_ms(1);
	}
	sleep_ms(WARM_MS);
	return 0;
}

static int run_timed(struct sender_tx *tx, uint32_t run_ms, struct resident_counts *counts,
		     struct gdrcap_error *error)
{
	const struct bench *bench = tx->bench;
	uint64_t begin, frames;
	cpu_set_t cpus;
	int ret;

	CPU_ZERO(&cpus);
	/* Ours only sleeps; the host's twin is another thread. */
	CPU_SET(bench->cpus[bench->cuda ? 0 : 1 % bench->cpu_count], &cpus);
	ret = thread_start(&tx->worker->thread, "bench-tx", &cpus, tx_worker_run, tx->worker,
			   error);
	if (ret == 0)
		ret = wait_begin(tx, error);
	if (ret < 0)
		return ret;
	begin = bench_now_ns();
	frames = atomic_load(&tx->worker->sent);
	sleep_ms(run_ms);
	counts->frames = atomic_load(&tx->worker->sent) - frames;
	counts->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	ret = bench->ops->running(tx->writer);
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Checks every slot; those that nobody wrote are zero, and nobody's frames. */
static int slots_check(struct sender_tx *tx, struct resident_counts *counts,
		       struct gdrcap_error *error)
{
	struct resident_counts checked = { 0 };
	int ret = resident_start(tx->check, KERNEL_CHECK, 0, error), stopped;

	if (ret < 0)
		return ret;
	ret = resident_play(tx->check, 0, SLOTS / BURST_FRAMES_MAX, &checked, error);
	stopped = resident_stop(tx->check, ret ? NULL : error);
	tx->stuck = stopped == -ETIMEDOUT;
	counts->validated = checked.validated;
	counts->damaged = checked.damaged;
	counts->lost = checked.lost;
	return ret ? ret : stopped;
}

int sender_tx_run(struct sender_tx *tx, uint32_t run_ms, struct bench_sample *sample,
		  struct gdrcap_error *error)
{
	const struct bench *bench = tx->bench;
	struct resident_counts counts = { 0 };
	int ret = bench->ops->fill(bench->device, tx->region.device, 0, tx->region.bytes), ended;

	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	ret = worker_create(tx, error);
	if (ret < 0)
		return ret;
	ret = writer_start(tx, error);
	if (ret == 0)
		ret = run_timed(tx, run_ms, &counts, error);
	ended = run_end(tx, ret ? NULL : error);
	if (ret == 0 && ended == 0)
		ret = slots_check(tx, &counts, error);
	if (ret < 0 || ended < 0)
		return ret < 0 ? ret : ended;
	resident_sample(tx->check, &counts, false, sample);
	sample->value = sample->mpps;
	snprintf(
		sample->note, sizeof(sample->note),
		"net_null frees one by one; the last frame of each slot was validated (%llu slots)",
		(unsigned long long)counts.validated);
	return 0;
}
