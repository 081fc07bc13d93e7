/* SPDX-License-Identifier: BSD-3-Clause */
/* Fronts, checkers and the card that a kernel plays, on one GPU: see fronts.h. */
#include "bench/fronts_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CQ_PRESET 0xf1

/* ---- life ---- */

static int queue_memory(struct fronts *fronts, struct front_queue *queue,
			struct gdrcap_error *error)
{
	const struct {
		void *at;
		size_t bytes;
		bool shared;
	} parts[] = {
		{ &queue->desc, (size_t)RESIDENT_BURSTS * BURST_FRAMES_MAX * sizeof(*queue->desc),
		  false },
		{ &queue->ready, RESIDENT_BURSTS * sizeof(*queue->ready), false },
		{ &queue->beside, RESIDENT_BURSTS * sizeof(*queue->beside), false },
		{ &queue->free_word, RESIDENT_BURSTS * sizeof(*queue->free_word), false },
		{ &queue->end, RESIDENT_BURSTS * sizeof(*queue->end), false },
		{ &queue->record, 64, false },
		{ &queue->cq, (size_t)fronts->cq_entries * CQ_BYTES, false },
		{ &queue->head, RESIDENT_BURSTS * sizeof(*queue->head), true },
		{ &queue->words, sizeof(*queue->words), true },
		{ &queue->status, sizeof(*queue->status), true },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		void *memory =
			resident_alloc(fronts->resident, parts[i].bytes, parts[i].shared, error);

		if (!memory)
			return -ENOMEM;
		memcpy(parts[i].at, &memory, sizeof(memory));
	}
	return fronts_failed(error,
			     fronts->bench->ops->fill(fronts->bench->device, queue->cq, CQ_PRESET,
						      (size_t)fronts->cq_entries * CQ_BYTES));
}

static void queue_free(const struct fronts *fronts, struct front_queue *queue)
{
	const struct resident *resident = fronts->resident;

	resident_free(resident, queue->desc, false);
	resident_free(resident, queue->ready, false);
	resident_free(resident, queue->beside, false);
	resident_free(resident, queue->free_word, false);
	resident_free(resident, queue->end, false);
	resident_free(resident, queue->record, false);
	resident_free(resident, queue->cq, false);
	resident_free(resident, queue->head, true);
	resident_free(resident, queue->words, true);
	resident_free(resident, queue->status, true);
}

/* The checkers' ring, parts of which the front writes. */
static void queue_view(const struct fronts *fronts, uint32_t q)
{
	struct front_queue *queue = (struct front_queue *)&fronts->queue[q];

	queue->view = fronts->resident->ring[q].view;
	queue->view.desc = queue->desc;
	queue->view.ready = queue->ready;
	queue->view.beside = queue->beside;
	queue->view.free_word = queue->free_word;
	queue->words->lease = fronts->config.leased ? 0 : UINT64_MAX;
}

static void queue_front(const struct fronts *fronts, uint32_t q, struct kernel_front *front)
{
	const struct front_queue *queue = &fronts->queue[q];
	const uint32_t slot_bytes = 1u << queue->view.slot_shift;

	*front = (struct kernel_front){
		.queue = { .cq = queue->cq,
			   .record = queue->record,
			   .cq_entries = fronts->cq_entries,
			   .slots = fronts->config.slots,
			   .first_slot = fronts->resident->ring[q].first_slot,
			   .slot_bytes = slot_bytes > UINT16_MAX ? UINT16_MAX : slot_bytes,
			   .stride_shift = fronts->config.stride_shift },
		.words = queue->words,
		.status = queue->status,
		.head = queue->head,
		.end = queue->end,
		.burst = queue->collected,
		.first = queue->first,
		.next = queue->first,
		.burst_max = fronts->config.burst,
		.burst_us = fronts->config.burst_us,
		.warps = fronts->config.warps,
	};
}

/* Checkers, or fronts. */
static int job_start(struct fronts *fronts, enum kernel_role role, struct kernel_workers **workers,
		     struct gdrcap_error *error)
{
	const struct fronts_config *config = &fronts->config;
	struct burst_ring_view views[FRONTS_MAX];
	struct kernel_front front[FRONTS_MAX];
	const struct kernel_job job = {
		.role = role,
		.rings = views,
		.ring_count = config->queues,
		.workers_per_ring = config->checkers,
		.frame_bytes_hint = config->frame_bytes,
		.layout = fronts->resident->layout,
		.pattern = fronts->resident->pattern,
		.fronts = front,
	};
	int ret;

	for (uint32_t q = 0; q < config->queues; q++) {
		views[q] = fronts->queue[q].view;
		queue_front(fronts, q, &front[q]);
	}
	ret = fronts->bench->ops->start(fronts->bench->device, &job, workers);
	if (ret)
		*workers = NULL;
	return fronts_failed(error, ret);
}

/* The list in GPU memory. */
static int list_make(struct fronts *fronts, struct gdrcap_error *error)
{
	const struct fronts_config *config = &fronts->config;
	const size_t entries = config->list_count * sizeof(*config->list);
	const size_t begin = (entries + 15) / 16 * 16;
	int ret;

	fronts->list = resident_alloc(fronts->resident, begin + config->list_size, false, error);
	if (!fronts->list)
		return -ENOMEM;
	ret = fronts->bench->ops->copy_in(fronts->bench->device, fronts->list, config->list,
					  entries);
	if (ret == 0)
		ret = fronts->bench->ops->copy_in(fronts->bench->device, fronts->list + begin,
						  config->list_bytes, config->list_size);
	return fronts_failed(error, ret);
}

static int card_make(struct fronts *fronts, struct gdrcap_error *error)
{
	const struct resident *resident = fronts->resident;
	struct card_queue cards[FRONTS_MAX];

	for (uint32_t q = 0; q < fronts->config.queues; q++) {
		struct card_queue *card = &cards[q];

		memset(card, 0, sizeof(*card));
		if (fronts->config.card)
			*card = *fronts->config.card;
		card->cq = fronts->queue[q].cq;
		card->record = fronts->queue[q].record;
		card->cq_entries = fronts->cq_entries;
		card->slots = fronts->config.slots;
		card->stride_shift = fronts->config.stride_shift;
		card->first_slot = resident->ring[q].first_slot;
		card->slot_shift = resident->slot_shift;
		card->frames = resident->frames;
		card->len = fronts->config.frame_bytes - FRAME_FCS_BYTES;
		card->go = fronts->go;
		if (!fronts->list)
			continue;
		card->list = (const struct card_frame *)(const void *)fronts->list;
		card->list_count = fronts->config.list_count;
		card->bytes = fronts->list +
			      (fronts->config.list_count * sizeof(*card->list) + 15) / 16 * 16;
	}
	return fronts_failed(error,
			     bench_card_open(fronts->bench->ordinal, cards, fronts->config.queues,
					     fronts->config.card_blocks, &fronts->card));
}

static int fronts_make(struct fronts *fronts, struct gdrcap_error *error)
{
	const struct fronts_config *config = &fronts->config;
	struct resident_config of = {
		.frame_bytes = config->frame_bytes,
		.burst = config->burst,
		.rings = config->queues,
		.pattern = config->pattern,
		.memory = "device",
	};
	uint32_t slot_shift = 8;
	int ret;

	while (1u << slot_shift < config->frame_bytes)
		slot_shift++;
	of.bytes = (size_t)config->queues * config->slots << slot_shift;
	ret = resident_create(fronts->bench, &of, &fronts->resident, error);
	if (ret == 0)
		ret = resident_fill(fronts->resident, error);
	for (uint32_t q = 0; q < config->queues && !ret; q++)
		ret = queue_memory(fronts, &fronts->queue[q], error);
	if (ret == 0 && config->list)
		ret = list_make(fronts, error);
	if (ret == 0 && config->on_word) {
		fronts->go = resident_alloc(fronts->resident, 128, true, error);
		ret = fronts->go ? 0 : -ENOMEM;
	}
	if (ret == 0)
		ret = card_make(fronts, error);
	if (ret < 0)
		return ret;
	resident_reset(fronts->resident, KERNEL_CHECK);
	for (uint32_t q = 0; q < config->queues; q++)
		queue_view(fronts, q);
	ret = job_start(fronts, KERNEL_CHECK, &fronts->resident->workers, error);
	return ret < 0 ? ret : job_start(fronts, KERNEL_FRONT, &fronts->front, error);
}

int fronts_open(const struct bench *bench, const struct fronts_config *config,
		struct fronts **opened, struct gdrcap_error *error)
{
	struct fronts *fronts;
	int ret;

	if (!config->queues || config->queues > FRONTS_MAX)
		return error_set(error, -EINVAL, "%u fronts: 1 to %u", config->queues, FRONTS_MAX);
	fronts = calloc(1, sizeof(*fronts));
	if (!fronts)
		return error_set(error, -ENOMEM, "no memory for fronts");
	fronts->bench = bench;
	fronts->config = *config;
	if (config->card) {
		fronts->card_config = *config->card;
		fronts->config.card = &fronts->card_config;
	}
	fronts->cq_entries = 2 * config->slots;
	ret = fronts_make(fronts, error);
	if (ret < 0)
		fronts_close(fronts);
	else
		*opened = fronts;
	return ret;
}

static void phase_set(struct fronts *fronts, enum front_phase phase)
{
	for (uint32_t q = 0; q < fronts->config.queues; q++)
		__atomic_store_n(&fronts->queue[q].words->phase, phase, __ATOMIC_RELAXED);
}

static bool fronts_have_ended(const struct fronts *fronts)
{
	bool ended = true;

	for (uint32_t q = 0; q < fronts->config.queues; q++)
		ended = ended && __atomic_load_n(&fronts->queue[q].status->state,
						 __ATOMIC_ACQUIRE) == FRONT_ENDED;
	return ended;
}

static int front_join(struct fronts *fronts, uint32_t timeout_ms)
{
	int ret = 0;

	if (fronts->front)
		ret = fronts->bench->ops->join(fronts->front, timeout_ms);
	if (ret != -ETIMEDOUT)
		fronts->front = NULL;
	return ret;
}

/* By their own words, as bench_card_join(). They are joined when the checkers have left, or before others start. */
int fronts_end(struct fronts *fronts, enum front_phase phase, uint32_t timeout_ms)
{
	const uint64_t until = bench_now_ns() + timeout_ms * UINT64_C(1000000);

	phase_set(fronts, phase);
	while (fronts->front && !fronts_have_ended(fronts))
		if (bench_now_ns() > until)
			return front_join(fronts, 0);
	return 0;
}

int fronts_restart(struct fronts *fronts, struct gdrcap_error *error)
{
	int ret = fronts_failed(error, front_join(fronts, FRONTS_JOIN_MS));

	if (ret == 0)
		ret = fronts_failed(error, bench_card_reset(fronts->card));
	for (uint32_t q = 0; q < fronts->config.queues; q++) {
		struct front_queue *queue = &fronts->queue[q];

		queue->first = (uint32_t)queue->status->next;
		memset(queue->status, 0, sizeof(*queue->status));
	}
	phase_set(fronts, FRONT_RUN);
	return ret < 0 ? ret : job_start(fronts, KERNEL_FRONT, &fronts->front, error);
}

/* Front and card first: while one of them runs, no memory is freed. */
static int fronts_halt(struct fronts *fronts)
{
	int ret = 0;

	if (fronts->card) {
		bench_card_stop(fronts->card);
		ret = bench_card_join(fronts->card, FRONTS_JOIN_MS);
	}
	if (fronts->front && fronts_end(fronts, FRONT_DRAIN, FRONTS_STUCK_MS) < 0)
		ret = fronts_end(fronts, FRONT_LEAVE, FRONTS_JOIN_MS);
	return ret;
}

void fronts_close(struct fronts *fronts)
{
	if (!fronts)
		return;
	if (fronts_halt(fronts) < 0) {
		log_warning("bench: %s; its memory is not given back", kernel_error());
		return;
	}
	if (fronts->resident && resident_stop(fronts->resident, NULL) == 0 &&
	    front_join(fronts, FRONTS_JOIN_MS) == 0) {
		for (uint32_t q = 0; q < fronts->config.queues; q++)
			queue_free(fronts, &fronts->queue[q]);
		resident_free(fronts->resident, fronts->list, false);
		resident_free(fronts->resident, fronts->go, true);
		if (fronts->card)
			bench_card_close(fronts->card);
	}
	resident_close(fronts->resident);
	free(fronts);
}
