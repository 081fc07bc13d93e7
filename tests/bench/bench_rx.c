/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rx worker costs on the CPU, in ns a frame: a software wire's receive burst, descriptors,
 * PUBLISH, and slots back to the pool. The real rx_worker_run() runs on this thread; a receive
 * function put before the wire's own feeds the wire and plays consumer and accountant, and the
 * cycles it spends are subtracted. No payload is read or written, no other thread runs.
 *
 * Usage: bench_rx [FRAMES [REPEATS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ethdev_driver.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "session.h"

#define REPEATS_MAX 101

static struct {
	struct gdrcap_session *session;
	eth_rx_burst_t wire; /* net_ring's own */
	uint64_t frames; /* to receive */
	uint64_t harness_cycles;
} bench;

/* Cycles from here to the return are the harness's, not the rx worker's. */
static void bench_feed(uint16_t n)
{
	struct rx_worker *worker = &bench.session->rx[0];
	const struct session_pair *pair = &bench.session->pairs[0];
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	uint16_t sent = 0;

	/* The consumer and the accountant are through with everything. */
	atomic_store_explicit(&worker->ring.collected,
			      atomic_load_explicit(&worker->ring.published, memory_order_relaxed),
			      memory_order_release);
	if (atomic_load_explicit(&worker->frames, memory_order_relaxed) >= bench.frames) {
		atomic_store_explicit(&worker->phase, RX_DRAIN, memory_order_relaxed);
		return;
	}
	if (rte_pktmbuf_alloc_bulk(pair->tx_pool, mbufs, n) < 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		mbufs[i]->data_len = 60;
		mbufs[i]->pkt_len = 60;
	}
	while (sent < n)
		sent = (uint16_t)(sent + rte_eth_tx_burst(pair->tx.id, 0, mbufs + sent,
							  (uint16_t)(n - sent)));
}

static uint16_t bench_rx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint64_t before = rte_rdtsc();

	bench_feed(n);
	bench.harness_cycles += rte_rdtsc() - before;
	return bench.wire(queue, mbufs, n);
}

/* One run; ns a frame, or a negative value. */
static double bench_run(uint32_t burst, uint64_t frames)
{
	struct gdrcap_config config;
	struct gdrcap_error error;
	struct rx_worker *worker;
	uint64_t cycles;
	uint16_t port;

	gdrcap_config_default(&config);
	snprintf(config.port[0], sizeof(config.port[0]), "ring:bench");
	snprintf(config.tx_port[0], sizeof(config.tx_port[0]), "ring:bench");
	snprintf(config.gpu, sizeof(config.gpu), "host");
	snprintf(config.frame_size, sizeof(config.frame_size), "64");
	config.burst = burst;
	if (gdrcap_create(&config, &bench.session, &error) < 0) {
		fprintf(stderr, "bench_rx: %s\n", error.text);
		return -1;
	}
	worker = &bench.session->rx[0];
	port = bench.session->pairs[0].rx.id;
	bench.frames = frames;
	bench.harness_cycles = 0;
	bench.wire = rte_eth_fp_ops[port].rx_pkt_burst;
	rte_eth_fp_ops[port].rx_pkt_burst = bench_rx_burst;
	cycles = rte_rdtsc();
	rx_worker_run(worker);
	cycles = rte_rdtsc() - cycles - bench.harness_cycles;
	rte_eth_fp_ops[port].rx_pkt_burst = bench.wire;
	frames = atomic_load(&worker->frames);
	gdrcap_destroy(bench.session);
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz() / (double)frames;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const uint64_t frames = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000000;
	const int repeats = argc > 2 ? atoi(argv[2]) : 5;
	static const uint32_t bursts[] = { 32, 64, 128, 256 };
	double ns[REPEATS_MAX];

	if (frames == 0 || repeats < 1 || repeats > REPEATS_MAX) {
		fprintf(stderr, "usage: bench_rx [FRAMES [REPEATS, 1..%d]]\n", REPEATS_MAX);
		return 2;
	}
	printf("rx worker on a software wire, %llu frames of 64 bytes, median of %d runs, one "
	       "core\n",
	       (unsigned long long)frames, repeats);
	printf("%8s %14s %10s %10s\n", "burst", "ns a frame", "least", "most");
	for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
		bench_run(bursts[b], frames / 10 + 1); /* warm-up */
		for (int i = 0; i < repeats; i++) {
			ns[i] = bench_run(bursts[b], frames);
			if (ns[i] < 0)
				return 1;
		}
		qsort(ns, (size_t)repeats, sizeof(ns[0]), compare);
		printf("%8u %14.2f %10.2f %10.2f\n", bursts[b], ns[repeats / 2], ns[0],
		       ns[repeats - 1]);
		fflush(stdout);
	}
	return 0;
}
