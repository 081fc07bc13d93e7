/* SPDX-License-Identifier: BSD-3-Clause */
/* Fronts, checkers and the card that a kernel plays, on one GPU: see fronts.h. */
#include "bench/fronts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/resident.h"
#include "kernels/frame_records.h"

#define COLLECT_AT_ONCE 32u /* bursts of a queue before the next one's turn */
#define LOOPS_PER_LOOK 256u
#define STUCK_MS 5000u
#define JOIN_MS 10000u
#define CQ_PRESET 0xf1

/* A queue; what the card and the front write lies in GPU memory. */
struct front_queue {
	struct burst_ring_view view;
	struct frame_desc *desc;
	struct burst_ready *ready;
	struct burst_beside *beside;
	uint64_t *free_word;
	uint32_t *end, *record;
	uint8_t *cq;
	/* pinned */
	uint64_t *head;
	struct front_words *words;
	struct front_status *status;
	uint64_t collected, frames; /* bursts; frames */
	uint64_t wire; /* of the list: number on the wire of the frame that comes next */
};

struct fronts {
	const struct bench *bench;
	struct fronts_config config;
	struct card_queue card_config; /* config.card, if there is one */
	struct resident *resident; /* frames, pinned parts of rings; its workers are the checkers */
	struct kernel_workers *front;
	struct bench_card *card;
	uint32_t cq_entries;
	uint64_t *go;  /* pinned */
	uint8_t *list; /* the card's: entries, then bytes */
	struct front_queue queue[FRONTS_MAX];
};

static int failed(struct gdrcap_error *error, int ret)
{
	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

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
	return failed(error, fronts->bench->ops->fill(fronts->bench->device, queue->cq, CQ_PRESET,
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
			   .slot_bytes = slot_bytes > UINT16_MAX ? UINT16_MAX : slot_bytes },
		.words = queue->words,
		.status = queue->status,
		.head = queue->head,
		.end = queue->end,
		.burst_max = fronts->config.burst,
		.burst_us = fronts->config.burst_us,
		.warps = fronts->config.warps,
	};
}

static int workers_start(struct fronts *fronts, struct gdrcap_error *error)
{
	const struct bench *bench = fronts->bench;
	const struct fronts_config *config = &fronts->config;
	struct burst_ring_view views[FRONTS_MAX];
	struct kernel_front front[FRONTS_MAX];
	struct kernel_job job = {
		.role = KERNEL_CHECK,
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
	ret = bench->ops->start(bench->device, &job, &fronts->resident->workers);
	if (ret) {
		fronts->resident->workers = NULL;
		return failed(error, ret);
	}
	job.role = KERNEL_FRONT;
	ret = bench->ops->start(bench->device, &job, &fronts->front);
	if (ret)
		fronts->front = NULL;
	return failed(error, ret);
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
	return failed(error, ret);
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
	return failed(error, bench_card_open(fronts->bench->ordinal, cards, fronts->config.queues,
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
	return workers_start(fronts, error);
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

int fronts_end(struct fronts *fronts, enum front_phase phase, uint32_t timeout_ms)
{
	int ret;

	phase_set(fronts, phase);
	ret = fronts->bench->ops->join(fronts->front, timeout_ms);
	if (ret != -ETIMEDOUT)
		fronts->front = NULL;
	return ret;
}

/* Front and card first: while one of them runs, no memory is freed. */
static int fronts_halt(struct fronts *fronts)
{
	int ret = 0;

	if (fronts->card) {
		bench_card_stop(fronts->card);
		ret = bench_card_join(fronts->card, JOIN_MS);
	}
	if (fronts->front && fronts_end(fronts, FRONT_DRAIN, STUCK_MS) < 0)
		ret = fronts_end(fronts, FRONT_LEAVE, JOIN_MS);
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
	if (fronts->resident && resident_stop(fronts->resident, NULL) == 0) {
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

/* ---- the accountant ---- */

/* A record of valid frames whose sequence numbers are their slots'. */
static void lying_count(const struct fronts *fronts, const struct frame_record *record,
			uint32_t frame, struct fronts_counts *counts)
{
	const struct resident *resident = fronts->resident;
	const uint32_t slot = frame & (fronts->config.slots - 1);

	if (record->sequence == slot && record->stream == RESIDENT_STREAM &&
	    record->bytes == record->count * resident->payload_bytes)
		counts->validated += record->count;
	else
		counts->out_of_order += record->count;
}

/* The same of the card's list, which goes round. */
static void list_count(const struct fronts *fronts, struct front_queue *queue,
		       const struct frame_record *record, struct fronts_counts *counts)
{
	const uint64_t count = fronts->config.list_count;
	const uint64_t gap = (record->sequence + count - queue->wire % count) % count;

	counts->validated += record->count;
	counts->gaps += gap;
	queue->wire += gap + record->count;
}

static void burst_count(const struct fronts *fronts, struct front_queue *queue, uint64_t word,
			struct fronts_counts *counts)
{
	const uint32_t frames = burst_frames(word), first = burst_word_first(word);
	const uint32_t records = burst_records(&queue->view, queue->collected);
	uint32_t seen = 0;

	for (uint32_t r = 0; r < records && seen < frames; r++) {
		struct frame_record plain;
		const struct frame_record *record =
			record_read(&queue->view, queue->collected, first, r, &plain);

		if (record->verdict != FRAME_VALID) {
			counts->damaged += record->count;
			counts->wrong_bits += record->wrong_bits;
			queue->wire += record->count;
		} else if (fronts->list) {
			list_count(fronts, queue, record, counts);
		} else {
			lying_count(fronts, record, first + seen, counts);
		}
		seen += record->count;
	}
	counts->frames += frames;
	counts->bursts++;
}

static bool queue_collect(const struct fronts *fronts, struct front_queue *queue,
			  struct fronts_counts *counts)
{
	const uint64_t before = queue->collected;

	for (uint32_t n = 0; n < COLLECT_AT_ONCE; n++) {
		const uint32_t slot = (uint32_t)queue->collected & queue->view.burst_mask;
		uint64_t word;

		if (!burst_is_done(&queue->view.result[slot], queue->collected,
				   RESIDENT_BURST_BITS))
			break;
		word = __atomic_load_n(&queue->head[slot], __ATOMIC_RELAXED);
		if (!burst_word_is(word, queue->collected, RESIDENT_BURST_BITS))
			break;
		burst_count(fronts, queue, word, counts);
		queue->frames += burst_frames(word);
		queue->collected++;
	}
	if (queue->collected == before)
		return false;
	/* ROOM */
	__atomic_store_n(&queue->words->collected, queue->collected, __ATOMIC_RELEASE);
	return true;
}

const struct front_status *fronts_status(const struct fronts *fronts, uint32_t queue)
{
	return fronts->queue[queue].status;
}

const struct card_counts *fronts_card(const struct fronts *fronts, uint32_t queue)
{
	return bench_card_counts(fronts->card, queue);
}

uint64_t *fronts_go(const struct fronts *fronts)
{
	return fronts->go;
}

uint32_t fronts_batch(const struct fronts *fronts)
{
	return fronts->config.card->batch;
}

struct front_words *fronts_words(const struct fronts *fronts, uint32_t queue)
{
	return fronts->queue[queue].words;
}

const uint8_t *fronts_slots(const struct fronts *fronts, uint32_t *slot_shift)
{
	*slot_shift = fronts->resident->slot_shift;
	return fronts->resident->frames;
}

bool fronts_are_through(const struct fronts *fronts)
{
	for (uint32_t q = 0; q < fronts->config.queues; q++) {
		const struct card_counts *card = fronts_card(fronts, q);

		if (!__atomic_load_n(&card->over, __ATOMIC_ACQUIRE) ||
		    fronts->queue[q].frames < card->completed - card->flushed)
			return false;
	}
	return true;
}

static int stuck(const struct fronts *fronts, struct gdrcap_error *error)
{
	for (uint32_t q = 0; q < fronts->config.queues; q++) {
		const struct front_status *status = fronts->queue[q].status;

		log_warning(
			"queue %u: state %u, %llu frames, %llu bursts, next %u, fault %u; card: %u, "
			"%llu; collected %llu bursts, %llu frames",
			q, (unsigned int)status->state, (unsigned long long)status->frames,
			(unsigned long long)status->bursts, (unsigned int)status->next,
			status->fault.kind, (unsigned int)fronts_card(fronts, q)->over,
			(unsigned long long)fronts_card(fronts, q)->completed,
			(unsigned long long)fronts->queue[q].collected,
			(unsigned long long)fronts->queue[q].frames);
	}
	return error_set(
		error, -ETIMEDOUT,
		"no burst comes back from the fronts any more: see dmesg, and whether other "
		"programs use the GPU (nvidia-smi)");
}

int fronts_begin(struct fronts *fronts, struct gdrcap_error *error)
{
	return failed(error, bench_card_start(fronts->card));
}

int fronts_card_stop(struct fronts *fronts)
{
	bench_card_stop(fronts->card);
	return bench_card_join(fronts->card, JOIN_MS);
}

bool fronts_collect(struct fronts *fronts, struct fronts_counts *counts)
{
	bool any = false;

	for (uint32_t q = 0; q < fronts->config.queues; q++)
		any |= queue_collect(fronts, &fronts->queue[q], counts);
	return any;
}

int fronts_play(struct fronts *fronts, uint32_t ms, struct fronts_counts *counts,
		struct gdrcap_error *error)
{
	const uint64_t begin = bench_now_ns(), end = begin + (uint64_t)ms * 1000000u;
	int ret = fronts_begin(fronts, error);
	uint64_t moved = begin, now;

	for (uint32_t loop = 1; !ret; loop++) {
		const bool any = fronts_collect(fronts, counts);

		if (any && loop % LOOPS_PER_LOOK)
			continue;
		now = bench_now_ns();
		moved = any ? now : moved;
		if (ms && now >= end)
			bench_card_stop(fronts->card);
		if (!any && fronts_are_through(fronts))
			break;
		if (now - moved > STUCK_MS * 1000000ull)
			ret = stuck(fronts, error);
	}
	counts->seconds += (double)(bench_now_ns() - begin) * 1e-9;
	return ret;
}
