/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front on a GPU, with its checkers, and a kernel that plays the card: frames of all lengths over many laps,
 * planted errors, an accountant that is late, slots on lease, completions of a broken card, stops.
 * Usage: test_front_cuda [FRAMES], or test_front_cuda rate QUEUES BYTES BURST WARPS CHECKERS CARDS MS. 77 without a GPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/fronts.h"

#define LIST 4099u /* a prime: frames come to lie in other slots each lap */
#define STREAM 3u
#define BYTES_MAX 9000u
#define STOP_MS 100u

static struct bench bench;
static struct card_frame list[LIST];
static uint8_t *list_bytes;
static size_t list_size;
static uint64_t frames_wanted = 300000;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "FAIL %s:%d: %s\n", __func__, __LINE__, #condition);       \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static bool open_bench(int *ret)
{
	struct kernel_info info;

	*ret = kernel_cuda_ops.open(0, &bench.device);
	if (*ret) {
		printf("skipped: %s\n", kernel_error());
		*ret = *ret == -ENODEV ? 77 : 1;
		return false;
	}
	kernel_cuda_ops.info(bench.device, &info);
	printf("%s, %u multiprocessors, writes ordering %d\n", info.name, info.units,
	       info.writes_ordering);
	bench.ops = &kernel_cuda_ops;
	bench.cuda = true;
	bench.cpus[0] = 0;
	bench.cpu_count = 1;
	return true;
}

/* Frames of all lengths, the sequence numbers of which are their places in the list. */
static bool make_list(void)
{
	const struct frame_config config = { .format = FRAME_ETHERNET };
	struct pattern_config of = { .invert = -1 };
	struct frame_layout layout;
	struct pattern pattern;
	uint64_t position = 0;
	size_t at = 0;

	CHECK(pattern_from_name("prbs31", &of.kind) == 0);
	CHECK(frame_layout_init(&layout, &config) == 0 && pattern_init(&pattern, &of) == 0);
	for (uint32_t i = 0; i < LIST; i++) {
		list[i].len = i % 3 ? 60 + i * 7919 % (BYTES_MAX - 64) : 60 + i % 70;
		list[i].at = (uint32_t)(at / 16);
		at += (list[i].len + 15) / 16 * 16;
	}
	list_size = at;
	list_bytes = calloc(1, at);
	CHECK(list_bytes);
	for (uint32_t i = 0; i < LIST; i++) {
		struct frame_header header = {
			.sequence = i,
			.position = position,
			.stream = STREAM,
			.payload_bytes = (uint16_t)frame_payload_bytes(&layout, list[i].len),
			.pattern = pattern.kind,
		};

		frame_write(&layout, &pattern, list_bytes + (size_t)list[i].at * 16, list[i].len,
			    &header);
		position += header.payload_bytes;
	}
	pattern_free(&pattern);
	return true;
}

static struct fronts_config usual(const struct card_queue *card)
{
	return (struct fronts_config){
		.queues = 1,
		.slots = 1024,
		.burst = 256,
		.warps = 32,
		.checkers = 8,
		.card_blocks = 1,
		.frame_bytes = BYTES_MAX,
		.burst_us = 20,
		.pattern = "prbs31",
		.card = card,
		.list = list,
		.list_bytes = list_bytes,
		.list_count = LIST,
		.list_size = list_size,
	};
}

static struct fronts *opened(const struct fronts_config *config)
{
	struct gdrcap_error error = { 0 };
	struct fronts *fronts = NULL;

	if (fronts_open(&bench, config, &fronts, &error) < 0)
		fprintf(stderr, "FAIL: open: %s\n", error.text);
	return fronts;
}

static void print(const char *what, struct fronts *fronts, const struct fronts_counts *counts)
{
	const struct front_status *status = fronts_status(fronts, 0);
	const struct card_counts *card = fronts_card(fronts, 0);

	printf("%-28s %" PRIu64 " frames, %" PRIu64 " valid, %" PRIu64 " damaged, %" PRIu64
	       " gaps, %" PRIu64 " out of buffer, %" PRIu64 " bursts, reposts %" PRIu64
	       ", backlog %" PRIu64 ", looks %" PRIu64 "/%" PRIu64 ", state %" PRIu64
	       ", fault %u, next %" PRIu64 ", %.3f s\n",
	       what, counts->frames, counts->validated, counts->damaged, counts->gaps,
	       card->out_of_buffer, counts->bursts, status->reposts, status->backlog,
	       status->passes, status->empty, status->state, status->fault.kind, status->next,
	       counts->seconds);
	fflush(stdout);
}

/* All lengths, wraps of slots, queue and ring, batches of all sizes; nothing is lost or wrong. */
static bool test_lengths(uint32_t slots, uint32_t burst, uint32_t warps, uint32_t batch,
			 uint32_t pause_ns)
{
	const struct card_queue card = {
		.batch = batch, .ragged = 1, .limit = frames_wanted, .pause_ns = pause_ns
	};
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts;
	char what[64];

	config.slots = slots;
	config.burst = burst;
	config.warps = warps;
	snprintf(what, sizeof(what), "lengths %u/%u/%u/%u", slots, burst, warps, batch);
	fronts = opened(&config);
	CHECK(fronts);
	if (fronts_play(fronts, 0, &counts, &error) < 0)
		fprintf(stderr, "FAIL: play: %s\n", error.text);
	print(what, fronts, &counts);
	CHECK(counts.frames == frames_wanted && counts.validated == frames_wanted);
	CHECK(counts.gaps == 0 && counts.damaged == 0);
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	CHECK(fronts_status(fronts, 0)->state == FRONT_ENDED);
	CHECK(fronts_status(fronts, 0)->frames == frames_wanted);
	CHECK(fronts_status(fronts, 0)->bursts == counts.bursts);
	CHECK(fronts_status(fronts, 0)->fault.kind == CQ_NONE);
	fronts_close(fronts);
	return true;
}

static int rate(char **argv)
{
	const struct fronts_config config = {
		.queues = (uint32_t)atoi(argv[0]),
		.frame_bytes = (uint32_t)atoi(argv[1]),
		.burst = (uint32_t)atoi(argv[2]),
		.warps = (uint32_t)atoi(argv[3]),
		.checkers = (uint32_t)atoi(argv[4]),
		.card_blocks = (uint32_t)atoi(argv[5]),
		.slots = 32768,
		.burst_us = 20,
		.pattern = "prbs31",
	};
	const uint32_t ms = (uint32_t)atoi(argv[6]);
	struct fronts *fronts = opened(&config);

	for (uint32_t run = 0; fronts && run < 3; run++) {
		struct fronts_counts counts = { 0 };
		struct gdrcap_error error = { 0 };

		if (fronts_play(fronts, ms, &counts, &error) < 0) {
			fprintf(stderr, "FAIL: %s\n", error.text);
			break;
		}
		printf("%u queues, %u B, burst %u, %u warps, %u checkers, %u card blocks: %.1f Mpps, "
		       "%.1f Gb/s, %" PRIu64 " frames, %" PRIu64 " validated, %" PRIu64
		       " damaged, %" PRIu64 " out of order, %.1f a burst, looks %" PRIu64
		       "/%" PRIu64 ", reposts %" PRIu64 ", backlog %" PRIu64 "\n",
		       config.queues, config.frame_bytes, config.burst, config.warps,
		       config.checkers, config.card_blocks,
		       (double)counts.validated / counts.seconds / 1e6,
		       (double)counts.validated / counts.seconds / 1e9 * config.frame_bytes * 8,
		       counts.frames, counts.validated, counts.damaged, counts.out_of_order,
		       (double)counts.frames / (double)counts.bursts,
		       fronts_status(fronts, 0)->passes, fronts_status(fronts, 0)->empty,
		       fronts_status(fronts, 0)->reposts, fronts_status(fronts, 0)->backlog);
		fflush(stdout);
	}
	fronts_close(fronts);
	return 0;
}

int main(int argc, char **argv)
{
	bool good;
	int ret;

	if (!open_bench(&ret))
		return ret;
	if (argc == 9 && !strcmp(argv[1], "rate"))
		return rate(argv + 2);
	if (argc > 1)
		frames_wanted = strtoull(argv[1], NULL, 0);
	good = make_list() && test_lengths(1024, 256, 32, 700, 0) &&
	       test_lengths(64, 32, 3, 64, 0) && test_lengths(256, 64, 8, 3, 2000);
	printf("%s\n", good ? "PASS" : "FAIL");
	free(list_bytes);
	if (good)
		kernel_cuda_ops.close(bench.device);
	return good ? 0 : 1;
}
