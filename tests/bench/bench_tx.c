/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tx worker costs on the CPU, in ns a frame: slots from the pool, descriptors, PUBLISH,
 * due times, and a software wire's send burst. The real tx_worker_run() runs on this thread; a send
 * function put before the wire's own plays writer and receiver, and the cycles it spends are
 * subtracted. No payload is read or written, no other thread runs.
 *
 * Usage: bench_tx [FRAMES [REPEATS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ethdev_driver.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/eal.h"
#include "gpu/gpu_open.h"
#include "port/port.h"
#include "memory/region.h"
#include "replay/tx_worker.h"

#define REPEATS_MAX 101
#define SLOTS 8192u
#define FILE_COUNT 100000u

enum source { SOURCE_PATTERN, SOURCE_PACED, SOURCE_FILE, SOURCES };

static struct {
	struct region region;
	struct rte_mempool *pool;
	struct port_wire wire;
	struct port sender, receiver;
	struct frame_layout layout;
	struct file_frames *file;
	struct tx_worker *worker;
	eth_tx_burst_t send; /* net_ring's own */
	uint64_t harness_cycles;
} bench;

/* The writer is through with burst b, at once. */
static void bench_written(struct ring_producer *ring, uint64_t b)
{
	ring->result[(uint32_t)b & ring->burst_mask].done = burst_word(b, ring->burst_bits, 0, 0);
}

static uint16_t bench_tx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t sent = bench.send(queue, mbufs, n);
	/* Cycles from here to the return are the harness's, not the tx worker's. */
	const uint64_t before = rte_rdtsc();
	struct ring_producer *ring = &bench.worker->ring;
	const uint64_t b = bench.worker->sending;
	struct rte_mbuf *got[BURST_FRAMES_MAX];
	uint16_t taken;

	taken = rte_eth_rx_burst(bench.receiver.id, 0, got, n);
	rte_mempool_put_bulk(bench.pool, (void *const *)got, taken);
	/* With its last frame, the burst's place in the next lap. */
	if (ring->end[(uint32_t)b & ring->burst_mask] - ring->tail == sent)
		bench_written(ring, b + ring->burst_mask + 1);
	bench.harness_cycles += rte_rdtsc() - before;
	return sent;
}

/* One run; ns a frame, or a negative value. */
static double bench_run(enum source source, uint32_t burst, uint64_t frames)
{
	static const uint16_t length = 60;
	const struct ring_config ring = {
		.region = &bench.region,
		.frames = SLOTS,
		.burst_max = burst,
		.replay = true,
	};
	const struct tx_config config = {
		.port = bench.sender.id,
		.region = &bench.region,
		.pool = bench.pool,
		.layout = &bench.layout,
		.lengths = &length,
		.length_count = 1,
		.stream_count = 1,
		.stream_step = 1,
		.frames = frames,
		.file = source == SOURCE_FILE ? bench.file : NULL,
		/* More than it can send: every frame is due. */
		.pacing = { source == SOURCE_PACED ? PACING_FRAMES : PACING_NONE, 1e12 },
	};
	struct tx_worker *worker = bench.worker;
	struct gdrcap_error error;
	uint64_t cycles;

	if (tx_worker_create(worker, &config, &ring, &error) < 0) {
		fprintf(stderr, "bench_tx: %s\n", error.text);
		return -1;
	}
	for (uint64_t b = 0; b <= worker->ring.burst_mask; b++)
		bench_written(&worker->ring, b);
	bench.harness_cycles = 0;
	bench.send = rte_eth_fp_ops[bench.sender.id].tx_pkt_burst;
	rte_eth_fp_ops[bench.sender.id].tx_pkt_burst = bench_tx_burst;
	cycles = rte_rdtsc();
	tx_worker_run(worker);
	cycles = rte_rdtsc() - cycles - bench.harness_cycles;
	rte_eth_fp_ops[bench.sender.id].tx_pkt_burst = bench.send;
	frames = atomic_load(&worker->sent);
	tx_worker_destroy(worker);
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz() / (double)frames;
}

/* A pcap file of equal frames of 64 bytes with FCS. */
static int bench_file(struct gdrcap_error *error)
{
	const uint32_t head[6] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1 };
	const uint32_t record[4] = { 0, 0, 60, 60 };
	char path[] = "/tmp/bench_tx_XXXXXX";
	const int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	uint8_t frame[60] = { 0 };
	struct file_scan scan;
	const struct file_frames_config config = {
		.path = path,
		.scan = &scan,
		.gpu = bench.region.gpu,
		.memory_max = SIZE_MAX,
	};
	int ret;

	if (!file)
		return -1;
	fwrite(head, sizeof(head), 1, file);
	for (uint32_t i = 0; i < FILE_COUNT; i++) {
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame, sizeof(frame), 1, file);
	}
	fclose(file);
	ret = file_frames_scan(path, NULL, &scan, error);
	if (ret == 0)
		ret = file_frames_create(&bench.file, &config, error);
	unlink(path);
	return ret;
}

static int bench_open(struct gdrcap_error *error)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	struct region_config region = {
		.kind = GDRCAP_MEMORY_HOST,
		.bytes = (size_t)SLOTS << 11,
		.slot_shift = 11,
	};
	const struct port_queues queues = {
		.rx_queues = 1,
		.tx_queues = 1,
		.descriptors = 1024,
		.frame_bytes_max = 1518,
	};
	struct port_queues with_pool = queues;
	int ret = eal_start(&needs, error);

	if (ret == 0)
		ret = gpu_open_host(false, error);
	if (ret < 0)
		return ret;
	region.gpu = (int16_t)ret;
	ret = frame_layout_init(&bench.layout, &frame);
	if (ret == 0)
		ret = region_create(&bench.region, &region, error);
	if (ret < 0)
		return ret;
	bench.pool = region_pool_create(&bench.region, "bench", SLOTS, false, REGION_POOL_CACHED,
					-1, error);
	if (!bench.pool)
		return -1;
	with_pool.rx_pool = &bench.pool;
	ret = port_wire_open(&bench.wire, &bench.sender, &bench.receiver, "ring:bench", 1, SLOTS,
			     error);
	bench.sender.rx_queues = bench.sender.tx_queues = 1;
	bench.receiver.rx_queues = bench.receiver.tx_queues = 1;
	if (ret == 0)
		ret = port_configure(&bench.sender, &with_pool, error);
	if (ret == 0)
		ret = port_configure(&bench.receiver, &with_pool, error);
	if (ret == 0)
		ret = port_start(&bench.sender, error);
	if (ret == 0)
		ret = port_start(&bench.receiver, error);
	if (ret == 0)
		ret = bench_file(error);
	return ret;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int bench_source(enum source source, uint64_t frames, int repeats)
{
	static const char *const names[SOURCES] = { "pattern", "paced", "file" };
	static const uint32_t bursts[] = { 64, 256 };
	double ns[REPEATS_MAX];

	for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
		bench_run(source, bursts[b], frames / 10 + 1); /* warm-up */
		for (int i = 0; i < repeats; i++) {
			ns[i] = bench_run(source, bursts[b], frames);
			if (ns[i] < 0)
				return 1;
		}
		qsort(ns, (size_t)repeats, sizeof(ns[0]), compare);
		printf("%8s %8u %14.2f %10.2f %10.2f\n", names[source], bursts[b], ns[repeats / 2],
		       ns[0], ns[repeats - 1]);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const uint64_t frames = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000000;
	const int repeats = argc > 2 ? atoi(argv[2]) : 5;
	struct gdrcap_error error = { .text = "no memory" };
	int ret = 0;

	if (frames == 0 || repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "usage: bench_tx [FRAMES [REPEATS, 1..%d]]\n", REPEATS_MAX);
		return 2;
	}
	bench.worker = aligned_alloc(RING_LINE, sizeof(*bench.worker));
	if (!bench.worker || bench_open(&error) < 0) {
		fprintf(stderr, "bench_tx: %s\n", error.text);
		return 1;
	}
	printf("tx worker on a software wire, %llu frames of 64 bytes, median of %d runs, one "
	       "core\n",
	       (unsigned long long)frames, repeats);
	printf("%8s %8s %14s %10s %10s\n", "source", "burst", "ns a frame", "least", "most");
	for (int source = 0; source < SOURCES && ret == 0; source++)
		ret = bench_source((enum source)source, frames, repeats);
	return ret;
}
