/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames per second of the software ConnectX: one thread sends and receives, the card's own thread
 * does the rest.
 *
 * Usage: bench_softmlx5 [verbs|devx [DEVARGS [BYTES [SECONDS]]]]
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "rig.h"

#define BURST 64
#define BUFFERS 8192

static uint64_t sent, received;

static void pump(struct rte_mempool *pool, const struct rig_memory *memory, uint32_t length)
{
	struct rte_mbuf *frames[BURST], *back[BURST];
	unsigned int count = 0;
	uint16_t done;

	/* The payload is what the buffers happen to hold, with an EtherType: the CPU has no time to
	 * fill it. */
	if (rte_pktmbuf_alloc_bulk(pool, frames, BURST) == 0) {
		for (count = 0; count < BURST; count++)
			rte_pktmbuf_append(frames[count], (uint16_t)length);
		done = rte_eth_tx_burst(0, 0, frames, BURST);
		sent += done;
		rte_pktmbuf_free_bulk(frames + done, BURST - done);
	}
	done = rte_eth_rx_burst(1, 0, back, BURST);
	received += done;
	rte_pktmbuf_free_bulk(back, done);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Seconds that the card's thread was on a core: on a busy machine, the better measure. */
static double card_time(void)
{
	char path[64], name[32] = "";
	unsigned long long ns = 0;
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");
	FILE *file;

	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) == NULL)
			name[0] = '\0';
		fclose(file);
		if (strcmp(name, "softmlx5\n") != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/schedstat", entry->d_name);
		file = fopen(path, "re");
		if (file != NULL && fscanf(file, "%llu", &ns) != 1)
			ns = 0;
		if (file != NULL)
			fclose(file);
	}
	if (tasks != NULL)
		closedir(tasks);
	return (double)ns / 1e9;
}

static void fill(const struct rig_memory *memory)
{
	for (size_t at = 0; at < memory->size; at += RIG_BUFFER) {
		memory->host[at + RTE_PKTMBUF_HEADROOM + 12] = RIG_ETHERTYPE >> 8;
		memory->host[at + RTE_PKTMBUF_HEADROOM + 13] = RIG_ETHERTYPE & 0xff;
	}
}

int main(int argc, char **argv)
{
	uint32_t length = argc > 3 ? (uint32_t)atoi(argv[3]) - 4 : 60; /* without the checksum */
	double seconds = argc > 4 ? atof(argv[4]) : 2;
	struct rte_flow_error error = { 0 };
	struct rig_memory memory;
	struct rig_port port = {
		.rx_queues = 1, .tx_queues = 1, .descriptors = 1024, .isolated = true
	};
	double end, card;

	rig_start(argc, argv);
	rig_memory(&memory, (size_t)BUFFERS * RIG_BUFFER, true);
	if (rig_map(&memory) < 0)
		return 1;
	fill(&memory);
	port.pool = rig_pool("bench", &memory);
	rig_port_start(&port);
	port.id = 1;
	rig_port_start(&port);
	if (rig_rule(1, RIG_ETHERTYPE, 0, 0, &error) == NULL)
		return 1;
	card = card_time();
	end = now() + seconds;
	while (now() < end)
		pump(port.pool, &memory, length);
	printf("%u bytes: sent %.2f, received %.2f million frames a second\n", length + 4,
	       (double)sent / seconds / 1e6, (double)received / seconds / 1e6);
	card = card_time() - card;
	printf("the card's thread: %.2f s on a core, %.0f ns a frame\n", card,
	       card / (double)sent * 1e9);
	printf("sent %lu, received %lu, out of buffer %lu, arrived %lu\n", (unsigned long)sent,
	       (unsigned long)received, (unsigned long)rig_xstat(1, "rx_out_of_buffer"),
	       (unsigned long)rig_xstat(1, "rx_phy_packets"));
	rig_stop();
	return 0;
}
