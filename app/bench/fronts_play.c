/* SPDX-License-Identifier: BSD-3-Clause */
/* Fronts that run: the accountant, and what they and the card say. */
#include <errno.h>

#include "bench/fronts_inside.h"
#include "kernels/frame_records.h"

#define COLLECT_AT_ONCE 32u /* bursts of a queue before the next one's turn */
#define LOOPS_PER_LOOK 256u

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
	return fronts_failed(error, bench_card_start(fronts->card));
}

int fronts_card_stop(struct fronts *fronts)
{
	bench_card_stop(fronts->card);
	return bench_card_join(fronts->card, FRONTS_JOIN_MS);
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
		if (now - moved > FRONTS_STUCK_MS * 1000000ull)
			ret = stuck(fronts, error);
	}
	counts->seconds += (double)(bench_now_ns() - begin) * 1e-9;
	return ret;
}
