/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the GPU's front share: the bench's card, a list of frames for it, and how it went. */
#ifndef GDRCAP_TEST_FRONT_SCENE_H
#define GDRCAP_TEST_FRONT_SCENE_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/fronts.h"

#define LIST 4099u /* a prime: frames come to lie in other slots each lap */
#define STREAM 3u
#define BYTES_MAX 9000u
#define STOP_MS 100u
#define HANG_SECONDS 10

static struct bench bench;
static struct card_frame list[LIST];
static uint8_t *list_bytes;
static size_t list_size;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "FAIL %s:%d: %s\n", __func__, __LINE__, #condition);       \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static inline bool open_bench(int *ret)
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
static inline bool make_list(void)
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

static inline struct fronts_config usual(const struct card_queue *card)
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

static inline struct fronts *opened(const struct fronts_config *config)
{
	struct gdrcap_error error = { 0 };
	struct fronts *fronts = NULL;

	if (fronts_open(&bench, config, &fronts, &error) < 0)
		fprintf(stderr, "FAIL: open: %s\n", error.text);
	return fronts;
}

static inline void print(const char *what, struct fronts *fronts,
			 const struct fronts_counts *counts)
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

/* False: it did not leave. */
static inline bool wait_for_card(const struct fronts *fronts)
{
	const time_t until = time(NULL) + HANG_SECONDS;

	while (!__atomic_load_n(&fronts_card(fronts, 0)->over, __ATOMIC_ACQUIRE))
		if (time(NULL) > until)
			return false;
	return true;
}

/* Collects until so many frames are counted, or with UINT64_MAX all that the card completed. False: they do not
 * come. */
static inline bool collect_until(struct fronts *fronts, uint64_t frames,
				 struct fronts_counts *counts)
{
	time_t until = time(NULL) + HANG_SECONDS;

	while (counts->frames < frames && (frames != UINT64_MAX || !fronts_are_through(fronts))) {
		if (fronts_collect(fronts, counts))
			until = time(NULL) + HANG_SECONDS;
		if (time(NULL) > until)
			return false;
	}
	return true;
}

#endif
