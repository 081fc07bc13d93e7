/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's own hand-over, rte_gpu_comm_list, in place of the burst ring: the same frames, checked by
 * the same code with the same blocks, published and collected by one CPU thread. The list has no
 * place for outcomes, so these go where the ring has them.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#ifdef GDRCAP_WITH_CUDA
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "base/eal.h"
#include "base/log.h"
#include "bench/resident.h"
#include "gpu/gpu_open.h"
#include "bench/bench_kernels.h"

#define ITEMS 512u  /* a multiple of all numbers of blocks below, 16 times as many at least */
#define MBUFS 8192u /* they stay in the core's cache, which is in the list's favour */
#define DEFAULT_BLOCKS 16u
#define PUBLISH_AT_ONCE 16u
#define LOOPS_PER_LOOK 64u
#define STUCK_NS 5000000000u
#define JOIN_MS 10000u
#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

_Static_assert(sizeof(struct bench_comm_frame) == sizeof(struct rte_gpu_comm_pkt) &&
		       sizeof(enum rte_gpu_comm_list_status) == sizeof(uint32_t) &&
		       (int)BENCH_COMM_READY == (int)RTE_GPU_COMM_LIST_READY &&
		       (int)BENCH_COMM_DONE == (int)RTE_GPU_COMM_LIST_DONE &&
		       BURST_FRAMES_MAX <= RTE_GPU_COMM_LIST_PKTS_MAX,
	       "as DPDK has them");
_Static_assert(ITEMS <= RESIDENT_BURSTS, "an outcome for each item");

struct comm {
	const struct bench *bench;
	struct gdrcap_bench_point point;
	struct resident *resident;
	struct rte_gpu_comm_list *list;
	struct rte_mbuf *mbufs;
	bool runs; /* the kernel does */
};

static uint32_t comm_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const uint32_t sizes[] = { 64, 1500 }, bursts[] = { 256, 64 },
			      blocks[] = { DEFAULT_BLOCKS, 4, 1 };
	const uint32_t burst_count = bench->config->quick ? 1 : COUNT(bursts);
	const uint32_t block_count = bench->config->quick ? 1 : COUNT(blocks);
	uint32_t count = 0;

	for (uint32_t i = 0; i < COUNT(sizes) * burst_count * block_count; i++) {
		struct gdrcap_bench_point *point = &points[count++];

		*point = (struct gdrcap_bench_point){
			.frame_bytes = sizes[i % COUNT(sizes)],
			.burst = bursts[i / COUNT(sizes) % burst_count],
			.blocks = blocks[i / COUNT(sizes) / burst_count],
			.queues = 1,
			.pattern = "prbs31",
			.memory = "device",
			.source = "resident",
		};
	}
	return count;
}

/* ---- life ---- */

/*
 * DPDK asks for status words in GPU memory that the CPU can reach, and takes host memory where
 * there are none: what the driver says of that is no error here. Returns the level to be put back.
 */
static int driver_hush(int level)
{
	const int type = rte_log_register("pmd.gpu.cuda");
	const int before = type < 0 ? level : rte_log_get_level((uint32_t)type);

	if (type >= 0 && before >= 0)
		rte_log_set_level((uint32_t)type, (uint32_t)level);
	return before;
}

static int list_create(struct comm *comm, struct gdrcap_error *error)
{
	const int gpu = gpu_open_cuda(comm->bench->ordinal, error);
	int level;

	if (gpu < 0)
		return gpu;
	level = driver_hush(RTE_LOG_CRIT);
	comm->list = rte_gpu_comm_create_list((uint16_t)gpu, ITEMS);
	driver_hush(level);
	if (!comm->list)
		return error_set(
			error, -ENOTSUP,
			"rte_gpu_comm_create_list() of %u items: %s; it takes %u KiB of "
			"EAL's memory, which the GPU has to register (ulimit -l unlimited)",
			ITEMS, rte_strerror(rte_errno), ITEMS * 24);
	return 0;
}

static void list_destroy(struct comm *comm)
{
	const int level = driver_hush(RTE_LOG_CRIT);

	if (rte_gpu_comm_destroy_list(comm->list, ITEMS) < 0)
		log_warning("bench: rte_gpu_comm_destroy_list(): %s", rte_strerror(rte_errno));
	driver_hush(level);
}

static int mbufs_create(struct comm *comm, struct gdrcap_error *error)
{
	comm->mbufs = aligned_alloc(RTE_CACHE_LINE_SIZE, MBUFS * sizeof(*comm->mbufs));
	if (!comm->mbufs)
		return error_set(error, -ENOMEM, "no memory for %u mbufs", MBUFS);
	memset(comm->mbufs, 0, MBUFS * sizeof(*comm->mbufs));
	for (uint32_t i = 0; i < MBUFS; i++)
		comm->mbufs[i].nb_segs = 1;
	return 0;
}

static int kernel_start(struct comm *comm, struct gdrcap_error *error)
{
	struct bench_comm_item items[ITEMS];
	struct burst_ring_view view;
	struct kernel_job job;
	int ret;

	for (uint32_t i = 0; i < ITEMS; i++)
		items[i] = (struct bench_comm_item){
			.count = &comm->list[i].num_pkts,
			.frames = (const struct bench_comm_frame *)comm->list[i].pkt_list,
			.status = (uint32_t *)comm->list[i].status_d,
		};
	resident_reset(comm->resident, KERNEL_CHECK);
	resident_job(comm->resident, KERNEL_CHECK, comm->point.blocks, &view, &job);
	ret = bench_gpu_comm_start(comm->resident->gpu, &job, items, ITEMS, comm->point.burst);
	comm->runs = ret == 0;
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

static void comm_close(void *state)
{
	struct comm *comm = state;

	if (comm->runs) {
		/* STOP */
		__atomic_store_n(comm->resident->stop, 1, __ATOMIC_RELAXED);
		if (bench_gpu_join(comm->resident->gpu, JOIN_MS) < 0) {
			/* It may still use its memory. */
			log_warning("bench: %s", kernel_error());
			return;
		}
	}
	if (comm->list)
		list_destroy(comm);
	if (comm->resident)
		resident_destroy(comm->resident);
	free(comm->mbufs);
	free(comm);
}

static int comm_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		     void **state, struct gdrcap_error *error)
{
	const struct resident_config config = {
		.frame_bytes = point->frame_bytes,
		.burst = point->burst,
		.rings = 1,
		.pattern = point->pattern,
		.memory = point->memory,
	};
	struct comm *comm = calloc(1, sizeof(*comm));
	int ret;

	if (!comm)
		return error_set(error, -ENOMEM, "no memory for a list");
	comm->bench = bench;
	comm->point = *point;
	bench_pin(bench, 0);
	ret = mbufs_create(comm, error);
	if (ret == 0)
		ret = resident_create(bench, &config, &comm->resident, error);
	if (ret == 0)
		ret = resident_fill(comm->resident, error);
	if (ret == 0)
		ret = list_create(comm, error);
	if (ret == 0)
		ret = kernel_start(comm, error);
	if (ret < 0)
		comm_close(comm);
	else
		*state = comm;
	return ret;
}

/* ---- a run ---- */

/* As a receive queue would leave them: each mbuf knows where its frame lies. */
static int comm_publish(struct comm *comm, struct resident_ring *ring)
{
	const struct resident *resident = comm->resident;
	const uint32_t burst = resident->burst;
	const uint64_t frame = ring->published * burst % ring->slots;
	const uint16_t len = (uint16_t)(resident->frame_bytes - FRAME_FCS_BYTES);
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];

	for (uint32_t i = 0; i < burst; i++) {
		struct rte_mbuf *m = &comm->mbufs[(ring->published * burst + i) % MBUFS];

		m->buf_addr =
			resident->frames + ((ring->first_slot + frame + i) << resident->slot_shift);
		m->data_len = len;
		m->pkt_len = len;
		mbufs[i] = m;
	}
	if (rte_gpu_comm_populate_list_pkts(&comm->list[ring->published % ITEMS], mbufs, burst) < 0)
		return -rte_errno;
	ring->published++;
	return 0;
}

/* False: the oldest item is not done. */
static bool comm_collect(struct comm *comm, struct resident_ring *ring,
			 struct resident_counts *counts, int *ret)
{
	struct rte_gpu_comm_list *item = &comm->list[ring->collected % ITEMS];
	enum rte_gpu_comm_list_status status = RTE_GPU_COMM_LIST_FREE;

	if (ring->collected == ring->published || rte_gpu_comm_get_status(item, &status) < 0 ||
	    status != RTE_GPU_COMM_LIST_DONE)
		return false;
	/* The kernel's release of the status, after the outcome. DPDK reads it relaxed. */
	atomic_thread_fence(memory_order_acquire);
	resident_account(comm->resident, ring, counts);
	if (rte_gpu_comm_cleanup_list(item) < 0)
		*ret = -rte_errno;
	return true;
}

static int comm_watch(struct comm *comm, uint64_t now, uint64_t moved, struct gdrcap_error *error)
{
	if (bench_gpu_running(comm->resident->gpu) < 0)
		return error_set(error, -EIO, "%s", kernel_error());
	if (now - moved > STUCK_NS)
		return error_set(error, -ETIMEDOUT, "no item of the list comes back: see dmesg");
	return 0;
}

static int comm_play(struct comm *comm, uint32_t run_ms, struct resident_counts *counts,
		     struct gdrcap_error *error)
{
	struct resident_ring *ring = &comm->resident->ring[0];
	const uint64_t begin = bench_now_ns(), end = begin + (uint64_t)run_ms * 1000000u;
	uint64_t now = begin, moved = begin, frames = 0;
	int ret = 0, watched = 0;

	for (uint32_t loop = 1;
	     !ret && !watched && (now < end || ring->collected < ring->published); loop++) {
		for (uint32_t n = 0; n < PUBLISH_AT_ONCE && now < end && !ret &&
				     ring->published - ring->collected < ITEMS;
		     n++)
			ret = comm_publish(comm, ring);
		while (!ret && comm_collect(comm, ring, counts, &ret))
			;
		if (loop % LOOPS_PER_LOOK)
			continue;
		now = bench_now_ns();
		moved = counts->frames != frames ? now : moved;
		frames = counts->frames;
		watched = comm_watch(comm, now, moved, error);
	}
	counts->seconds = (double)(bench_now_ns() - begin) * 1e-9;
	return ret ? error_set(error, ret, "rte_gpu_comm_list: %s", rte_strerror(-ret)) : watched;
}

/* Gb/s that the burst ring moved with the same parameters in this bench; 0: not measured. */
static double ring_gbps(const struct comm *comm)
{
	const struct gdrcap_bench_point *own = &comm->point;

	for (size_t i = 0; i < comm->bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &comm->bench->results[i];
		const struct gdrcap_bench_point *point = &result->point;

		if (!strcmp(point->stage, "consumer") && !result->error[0] &&
		    point->frame_bytes == own->frame_bytes && point->burst == own->burst &&
		    point->blocks == own->blocks && point->queues == own->queues &&
		    !strcmp(point->pattern, own->pattern) && !strcmp(point->memory, own->memory))
			return result->median;
	}
	return 0;
}

static int comm_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	struct comm *comm = state;
	const bool mapped = comm->list[0].status_h != comm->list[0].status_d;
	const double ring = ring_gbps(comm);
	struct resident_counts counts = { 0 };
	int used, ret;

	bench_pin(comm->bench, 0);
	ret = comm_play(comm, run_ms, &counts, error);
	if (ret < 0)
		return ret;
	resident_sample(comm->resident, &counts, true, sample);
	sample->value = sample->gbps;
	sample->sequence_checked = true;
	used = snprintf(sample->note, sizeof(sample->note), "status words in %s memory",
			mapped ? "GPU" : "host");
	if (ring > 0)
		snprintf(sample->note + used, sizeof(sample->note) - (size_t)used,
			 "; the burst ring moves %.4g Gb/s, %.2f times as much", ring,
			 ring / sample->gbps);
	return 0;
}
#endif

/* Without CUDA nobody asks a stage that needs it for points. */
const struct bench_stage bench_comm_list = {
	.about = {
		.id = "comm_list",
		.group = "consumer",
		.what = "the consumer behind DPDK's rte_gpu_comm_list instead of the burst ring, same "
			"frames and checks",
		.unit = "Gb/s",
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = comm_points,
	.open = comm_open,
	.run = comm_run,
	.close = comm_close,
#endif
};
