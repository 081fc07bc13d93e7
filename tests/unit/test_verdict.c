/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verdict.c against a model that looks at each frame alone and forgets nothing. Traffic is made
 * frame by frame, put together to records by the consumer's own rule (kernels/frame_records.h), and after
 * each burst every count of every queue, every stream and the total must be the model's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "kernels/frame_records.h"
#include "number_set.h"
#include "verdict/verdict.h"
#include "verdict_records.h"

#define QUEUES 4
#define STREAMS 5 /* of the sender */
#define IDS 8	  /* more: strangers' */
#define WINDOW ((uint64_t)SEQUENCE_WINDOW)

struct model_counts {
	uint64_t received, valid, damaged, duplicate, reordered, filtered;
	uint64_t bits_checked, bits_wrong, bytes;
};

struct model {
	bool own; /* the sender is ours: its count is known */
	uint64_t random;
	uint64_t sent[IDS];  /* by the sender; its next new sequence number */
	uint64_t again[IDS]; /* below `sent`: it goes through these a second time */
	uint64_t sent_total;
	struct sequence_model stream[IDS];
	struct model_counts queue[QUEUES], of_stream[IDS];
	struct sequence_model newest[QUEUES][IDS]; /* of what this queue saw */
	uint64_t unreadable, damaged_frames, stale;
	bool ended; /* all streams: the sender has said what it sent */
	struct verdict verdict;
};

static void counts_add(struct model_counts *counts, const struct frame_result *frame, uint32_t len,
		       bool fresh, bool late)
{
	counts->received++;
	counts->bytes += len;
	counts->bits_checked += 8ull * frame->payload_bytes;
	counts->bits_wrong += frame->wrong_bits;
	if (!fresh)
		counts->duplicate++;
	else if (frame->verdict == FRAME_VALID)
		counts->valid++;
	else
		counts->damaged++;
	counts->reordered += fresh && late;
}

static void model_frame(struct model *model, uint32_t queue, const struct frame_result *frame,
			uint32_t len)
{
	struct model_counts *q = &model->queue[queue];
	struct sequence_model *here;
	bool late, fresh;

	model->stale += frame->verdict == FRAME_DAMAGED_STALE;
	if (frame->verdict != FRAME_FILTERED && !frame->header_ok) {
		q->received++;
		q->bytes += len;
		q->damaged++;
		model->unreadable++;
		model->damaged_frames++;
		return;
	}
	if (frame->verdict == FRAME_FILTERED || (model->own && frame->stream >= STREAMS)) {
		q->received++;
		q->bytes += len;
		q->filtered++;
		return;
	}
	model->damaged_frames += frame->verdict != FRAME_VALID;
	here = &model->newest[queue][frame->stream];
	late = here->any && frame->sequence <= here->newest;
	if (!late && frame->sequence != UINT64_MAX) {
		here->any = true;
		here->newest = frame->sequence;
	}
	fresh = sequence_model_add(&model->stream[frame->stream], frame->sequence, WINDOW);
	counts_add(q, frame, len, fresh, late);
	counts_add(&model->of_stream[frame->stream], frame, len, fresh, late);
}

static void counts_equal(const struct gdrcap_counts *real, const struct model_counts *model)
{
	assert_true(real->received == model->received);
	assert_true(real->valid == model->valid);
	assert_true(real->damaged == model->damaged);
	assert_true(real->duplicate == model->duplicate);
	assert_true(real->reordered == model->reordered);
	assert_true(real->filtered == model->filtered);
	assert_true(real->bits_checked == model->bits_checked);
	assert_true(real->bits_wrong == model->bits_wrong);
	assert_true(real->bytes == model->bytes);
}

static void streams_equal(struct model *model)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < model->verdict.stream_count; i++) {
		const uint32_t id = model->verdict.streams[i].id;
		struct gdrcap_counts counts;

		verdict_stream_counts(&model->verdict, &model->verdict.streams[i], model->own,
				      model->sent[id], &counts);
		counts_equal(&counts, &model->of_stream[id]);
		identities(&counts);
		assert_true(counts.sent ==
			    (model->own || model->ended
				     ? model->sent[id]
				     : sequence_model_expected(&model->stream[id], false)));
		assert_int_equal(found >> id & 1, 0);
		found |= 1ull << id;
	}
	for (uint32_t id = 0; id < IDS; id++)
		assert_int_equal(found >> id & 1, model->of_stream[id].received != 0 ||
							  (model->ended && id < STREAMS));
}

static void totals_equal(struct model *model)
{
	struct model_counts total = { 0 };
	struct gdrcap_counts counts;
	uint64_t sent = model->sent_total, unique = 0, expected = 0, gaps, filled;

	for (uint32_t q = 0; q < QUEUES; q++) {
		const struct model_counts *queue = &model->queue[q];

		verdict_queue_counts(&model->verdict, q, &counts);
		counts_equal(&counts, queue);
		assert_true(counts.received ==
			    counts.valid + counts.damaged + counts.duplicate + counts.filtered);
		total.received += queue->received;
		total.valid += queue->valid;
		total.damaged += queue->damaged;
		total.duplicate += queue->duplicate;
		total.reordered += queue->reordered;
		total.filtered += queue->filtered;
		total.bits_checked += queue->bits_checked;
		total.bits_wrong += queue->bits_wrong;
		total.bytes += queue->bytes;
	}
	for (uint32_t id = 0; id < IDS; id++) {
		unique += model->stream[id].seen.used;
		expected += model->ended ? model->sent[id]
					 : sequence_model_expected(&model->stream[id], false);
	}
	/* An unreadable frame is one of the missing while some are. */
	gaps = (model->own ? sent : expected) - unique;
	filled = model->unreadable < gaps ? model->unreadable : gaps;
	if (model->own || model->ended) {
		if (!model->own)
			sent = expected;
		total.damaged -= model->unreadable - filled;
		total.duplicate += model->unreadable - filled;
	} else {
		sent = expected + model->unreadable - filled;
	}
	verdict_total(&model->verdict, model->own, model->sent_total, &counts);
	counts_equal(&counts, &total);
	identities(&counts);
	assert_true(counts.sent == sent);
	assert_true(counts.lost == gaps - filled);
	assert_true(model->verdict.unique == unique);
	assert_true(model->verdict.stale == model->stale);
	assert_int_equal(model->verdict.damage_count, model->damaged_frames < GDRCAP_DAMAGE_MAX
							      ? model->damaged_frames
							      : GDRCAP_DAMAGE_MAX);
}

/* One burst: model frame by frame, verdict record by record. */
static void burst_add(struct model *model, uint32_t queue, const struct frame_result *frames,
		      uint32_t count)
{
	static const struct frame_layout layout = { .format = FRAME_ETHERNET };
	struct frame_record record = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t len = 60 + (uint32_t)frames[i].sequence % 100;

		model_frame(model, queue, &frames[i], len);
		if (i && record_joins(&layout, NULL, &frames[i - 1], &frames[i])) {
			record.count++;
			record.bytes += run_bytes(&frames[i]);
			record.frame_bytes += len;
			continue;
		}
		if (i)
			verdict_add(&model->verdict, queue, &record);
		record_begin(&record, &frames[i], i, len);
	}
	verdict_add(&model->verdict, queue, &record);
}

/* What the wire does to the sender's next frame, or something that was never sent. */
static struct frame_result frame_next(struct model *model, uint32_t stream, uint32_t fault_rate)
{
	uint64_t *r = &model->random;
	struct frame_result frame = {
		.stream = stream,
		.payload_bytes = 24,
		.header_ok = 1,
		.verdict = FRAME_VALID,
	};

	if (model->again[stream] < model->sent[stream]) {
		frame.sequence = model->again[stream]++;
		return frame;
	}
	frame.sequence = model->sent[stream]++;
	model->again[stream] = model->sent[stream];
	model->sent_total++;
	if (random_below(r, fault_rate))
		return frame;
	switch (random_below(r, 10)) {
	case 0: /* some are lost */
	case 1: {
		const uint64_t gap = random_below(r, random_below(r, 20) ? 300 : VERDICT_JUMP);

		model->sent[stream] += gap;
		model->sent_total += gap;
		frame.sequence = model->sent[stream]++;
		model->again[stream] = model->sent[stream];
		model->sent_total++;
		break;
	}
	case 2: /* an old one instead: late, or seen before */
	case 3: {
		const uint64_t by = random_below(r, 600);

		frame.sequence -= by < frame.sequence ? by : frame.sequence;
		break;
	}
	case 4:
		frame.verdict = FRAME_DAMAGED_PAYLOAD;
		frame.wrong_bits = 1 + (uint32_t)random_below(r, 100);
		if (random_below(r, 2)) {
			frame.verdict = FRAME_DAMAGED_STALE;
			frame.wrong_bits = 0;
		}
		break;
	case 5:
		frame.verdict = random_below(r, 2) ? FRAME_DAMAGED_LENGTH : FRAME_DAMAGED_HEADER;
		frame.payload_bytes = 0;
		break;
	case 6:
		frame = (struct frame_result){ .verdict = FRAME_DAMAGED_HEADER };
		break;
	case 7:
		frame = (struct frame_result){ .verdict = FRAME_FILTERED };
		break;
	case 9: /* and all that follow it, up to new ones */
		model->again[stream] -= RTE_MIN(random_below(r, 200), model->again[stream]);
		frame.sequence = model->again[stream]++;
		break;
	case 8: /* a stream that the sender does not have */
		if (model->own)
			frame.stream = STREAMS + (uint32_t)random_below(r, IDS - STREAMS);
		break;
	}
	return frame;
}

static void model_init(struct model *model, bool own, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	model->own = own;
	model->random = seed;
	assert_int_equal(create(&model->verdict, QUEUES, own ? STREAMS : 0), 0);
	if (!own)
		for (uint32_t id = 0; id < STREAMS; id++)
			model->sent[id] = id < 2 ? id : random_next(&model->random) >> (id + 1);
}

static void model_free(struct model *model)
{
	for (uint32_t id = 0; id < IDS; id++)
		number_set_free(&model->stream[id].seen);
	verdict_destroy(&model->verdict);
}

/* The sender is through. Its last frames were lost, of one stream all. */
static void random_end(struct model *model)
{
	assert_false(verdict_ended(&model->verdict));
	for (uint32_t copy = 0; copy < 3; copy++) {
		for (uint32_t id = 0; id < STREAMS; id++) {
			const uint32_t queue = (uint32_t)random_below(&model->random, QUEUES);
			const uint32_t count = 1 + (uint32_t)random_below(&model->random, 3);

			if (copy == 0)
				model->sent[id] += random_below(&model->random, 2) ? 0 : 1000 + id;
			verdict_add(&model->verdict, queue,
				    &(struct frame_record){ .verdict = FRAME_END,
							    .header_ok = 1,
							    .stream = (uint16_t)id,
							    .sequence = model->sent[id],
							    .detail = STREAMS,
							    .count = (uint16_t)count,
							    .frame_bytes = 60 * count });
			model->queue[queue].received += count;
			model->queue[queue].filtered += count;
			model->queue[queue].bytes += 60 * count;
			model->ended = copy || id == STREAMS - 1;
			assert_true(verdict_ended(&model->verdict) == model->ended);
		}
		streams_equal(model);
		totals_equal(model);
	}
}

static void random_traffic(bool own, uint64_t seed, uint32_t fault_rate)
{
	static struct model model;

	model_init(&model, own, seed);
	for (uint32_t b = 0; b < 400; b++) {
		struct frame_result frames[BURST_FRAMES_MAX];
		const uint32_t count = 1 + (uint32_t)random_below(&model.random, BURST_FRAMES_MAX);
		const uint32_t queue = (uint32_t)random_below(&model.random, QUEUES);
		uint32_t stream = (uint32_t)random_below(&model.random, STREAMS);
		/* Now and then somebody sends the same burst again, into any queue. */
		const uint32_t copies = random_below(&model.random, 10) ? 1 : 2;

		for (uint32_t i = 0; i < count; i++) {
			if (random_below(&model.random, 50) == 0)
				stream = (uint32_t)random_below(&model.random, STREAMS);
			frames[i] = frame_next(&model, stream, fault_rate);
		}
		burst_add(&model, queue, frames, count);
		if (copies == 2) {
			const uint32_t from = (uint32_t)random_below(&model.random, count);

			burst_add(&model, (uint32_t)random_below(&model.random, QUEUES),
				  frames + from, count - from);
		}
		streams_equal(&model);
		totals_equal(&model);
	}
	if (!own)
		random_end(&model);
	model_free(&model);
}

static void traffic_of_our_sender(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		random_traffic(true, seed, seed % 3 == 0 ? 3 : seed % 3 == 1 ? 50 : 2000);
}

static void traffic_of_somebody(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		random_traffic(false, seed, seed % 3 == 0 ? 3 : seed % 3 == 1 ? 50 : 2000);
}

/* A damaged frame without a number is one of the missing; where none is, a second copy. */
static void unreadable(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 1), 0);
	add(&verdict, 0, record_of(0, 0, 5, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 6, 4, FRAME_VALID, 1));
	for (uint32_t n = 1; n <= 3; n++) {
		add(&verdict, 0, record_of(0, 0, 1, FRAME_DAMAGED_HEADER, 0));
		verdict_total(&verdict, true, 10, &counts);
		assert_int_equal(counts.received, 9 + n);
		assert_int_equal(counts.sent, 10);
		assert_int_equal(counts.damaged, 1);
		assert_int_equal(counts.duplicate, n - 1);
		assert_int_equal(counts.lost, 0);
		identities(&counts);
		/* Nobody knows how many were sent: each is one more. */
		verdict_total(&verdict, false, 0, &counts);
		assert_int_equal(counts.sent, 10 + n - 1);
		assert_int_equal(counts.damaged, n);
		assert_int_equal(counts.duplicate, 0);
		assert_int_equal(counts.lost, 0);
		identities(&counts);
	}
	verdict_destroy(&verdict);
}

/* Two frames late and new on this queue, and more that another queue had first. */
static void late_and_duplicate_in_one_run(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 2, 1), 0);
	add(&verdict, 0, record_of(0, 7, 1, FRAME_VALID, 1));
	add(&verdict, 1, record_of(0, 8, 10, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 5, 8, FRAME_VALID, 1)); /* 5, 6 late; 7 .. 12 a second time */
	verdict_queue_counts(&verdict, 0, &counts);
	assert_int_equal(counts.reordered, 2);
	assert_int_equal(counts.duplicate, 6);
	verdict_destroy(&verdict);
}

static void hostile_numbers(void **state)
{
	static const uint64_t numbers[] = { UINT64_MAX, UINT64_MAX - 1, 1ull << 63, UINT64_MAX, 0 };

	for (int own = 0; own < 2; own++) {
		struct gdrcap_counts counts;
		struct verdict verdict;

		assert_int_equal(create(&verdict, 1, own ? 3 : 0), 0);
		add(&verdict, 0, record_of(0, 10, 4, FRAME_VALID, 1));
		add(&verdict, 0, record_of(0, 10, 4, FRAME_VALID, 1));
		for (uint32_t i = 0; i < 3 * sizeof(numbers) / sizeof(numbers[0]); i++) {
			add(&verdict, 0,
			    record_of((uint16_t)(i % 3), numbers[i / 3], 1, FRAME_VALID, 1));
			verdict_total(&verdict, own, 14, &counts);
			identities(&counts);
			assert_int_equal(counts.received, 8 + i + 1);
			for (uint32_t s = 0; s < verdict.stream_count; s++) {
				verdict_stream_counts(&verdict, &verdict.streams[s], own, 14,
						      &counts);
				identities(&counts);
			}
		}
		verdict_destroy(&verdict);
	}
}

/* Frames up to 2^64 - 1, which is no sequence number, are judged alike in one record and in many. */
static void up_to_the_last_number(void **state)
{
	for (uint16_t together = 1; together <= 10; together++) {
		struct gdrcap_counts counts;
		struct verdict verdict;

		assert_int_equal(create(&verdict, 1, 0), 0);
		for (uint16_t i = 0; i < 10; i += together)
			add(&verdict, 0,
			    record_of(0, UINT64_MAX - 9 + i,
				      (uint16_t)(together < 10 - i ? together : 10 - i),
				      FRAME_VALID, 1));
		verdict_finish(&verdict);
		verdict_total(&verdict, false, 0, &counts);
		identities(&counts);
		assert_int_equal(counts.valid, 9);
		assert_int_equal(counts.damaged, 1);
		assert_int_equal(counts.duplicate, 0);
		assert_int_equal(counts.bits_checked, 9 * 8 * 24);
		assert_int_equal(verdict.damage_count, 1);
		assert_string_equal(verdict.damage[0].kind, "stray");
		verdict_destroy(&verdict);
	}
}

/* The gaps of two streams are more than 64 bits can say, not few. */
static void more_than_64_bits_of_gaps(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 2), 0);
	add(&verdict, 0, record_of(0, 1ull << 63, 2, FRAME_VALID, 1));
	add(&verdict, 0, record_of(1, 1ull << 63, 2, FRAME_VALID, 1));
	verdict_total(&verdict, false, 0, &counts);
	assert_true(counts.sent == UINT64_MAX);
	assert_true(counts.lost == UINT64_MAX - 4);
	identities(&counts);
	verdict_destroy(&verdict);
}

static void streams_beyond_the_limit(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t id = 0; id < GDRCAP_STREAMS_MAX + 50; id++)
			add(&verdict, 0,
			    record_of((uint16_t)(65535 - id), round, 1, FRAME_VALID, 1));
	assert_int_equal(verdict.live_count, GDRCAP_STREAMS_MAX);
	/* Of these the first frame was counted, and then there was no room. */
	assert_int_equal(verdict.untracked, 50);
	verdict_total(&verdict, false, 0, &counts);
	assert_int_equal(counts.received, 2 * (GDRCAP_STREAMS_MAX + 50));
	assert_int_equal(counts.valid, 2 * GDRCAP_STREAMS_MAX + 50);
	assert_int_equal(counts.filtered, 50);
	assert_int_equal(counts.lost, 0);
	identities(&counts);
	assert_int_equal(verdict.listed_count, GDRCAP_STREAMS_MAX);
	for (uint32_t i = 0; i < GDRCAP_STREAMS_MAX; i++)
		assert_int_equal(verdict_listed(&verdict, i)->id, 65535 - i);
	verdict_destroy(&verdict);
}

/* Thousands of ids, a frame each, and then the stream that was meant: it has its room, is told of,
 * and its loss is seen. */
static void stray_ids_take_no_room(void **state)
{
	const struct verdict_stream *stream = NULL;
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	for (uint32_t id = 1; id <= 40000; id++)
		add(&verdict, 0, record_of((uint16_t)id, 77 * id, 1, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 0, 50, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 150, 50, FRAME_VALID, 1));
	assert_int_equal(verdict.untracked, 0);
	assert_int_equal(verdict.live_count, 1);
	verdict_total(&verdict, false, 0, &counts);
	identities(&counts);
	assert_int_equal(counts.lost, 100);
	assert_int_equal(counts.valid, 40100);
	for (uint32_t i = 0; i < verdict.listed_count; i++)
		if (verdict_listed(&verdict, i)->id == 0)
			stream = verdict_listed(&verdict, i);
	assert_non_null(stream);
	verdict_stream_counts(&verdict, stream, false, 0, &counts);
	assert_int_equal(counts.lost, 100);
	verdict_destroy(&verdict);
}

/* Seen by the consumer before the sender has counted it. */
static void seen_before_it_counts(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 1), 0);
	add(&verdict, 0, record_of(0, 0, 10, FRAME_VALID, 1));
	verdict_total(&verdict, true, 7, &counts);
	identities(&counts);
	assert_int_equal(counts.sent, 10);
	assert_int_equal(counts.lost, 0);
	verdict_destroy(&verdict);
}

/* The first are kept, with what was seen. */
static void damage_is_told(void **state)
{
	struct verdict verdict;

	assert_int_equal(create(&verdict, 3, 2), 0);
	for (uint32_t i = 0; i < 2 * GDRCAP_DAMAGE_MAX; i++) {
		struct frame_record record = record_of(1, 100 + i, 1, FRAME_DAMAGED_PAYLOAD, 1);

		record.offset = (uint16_t)(50 + i);
		record.expected = 0x12;
		record.got = 0x13;
		record.wrong_bits = 1;
		if (i == 1)
			record = record_of(0, 0, 1, FRAME_DAMAGED_HEADER, 0);
		if (i == 2)
			record = record_of(1, 5, 1, FRAME_DAMAGED_LENGTH, 1);
		if (i == 3)
			record = record_of(1, 103, 1, FRAME_DAMAGED_STALE, 1);
		add(&verdict, 2, record_of(1, i, 1, FRAME_VALID, 1));
		add(&verdict, 2, record);
		/* A stranger's damage is no business of ours. */
		add(&verdict, 2, record_of(2, 5, 1, FRAME_DAMAGED_PAYLOAD, 1));
	}
	assert_int_equal(verdict.damage_count, GDRCAP_DAMAGE_MAX);
	assert_int_equal(verdict.damage[0].sequence, 100);
	assert_int_equal(verdict.damage[0].stream, 1);
	assert_int_equal(verdict.damage[0].queue, 2);
	assert_int_equal(verdict.damage[0].offset, 50);
	assert_int_equal(verdict.damage[0].expected, 0x12);
	assert_int_equal(verdict.damage[0].got, 0x13);
	assert_int_equal(verdict.damage[0].wrong_bits, 1);
	assert_int_equal(verdict.damage[0].header_ok, 1);
	assert_string_equal(verdict.damage[0].kind, "payload");
	assert_string_equal(verdict.damage[1].kind, "header");
	assert_int_equal(verdict.damage[1].header_ok, 0);
	assert_string_equal(verdict.damage[2].kind, "length");
	assert_string_equal(verdict.damage[3].kind, "stale");
	assert_int_equal(verdict.damage[3].sequence, 103);
	assert_int_equal(verdict.damage[3].header_ok, 1);
	assert_int_equal(verdict.damage[GDRCAP_DAMAGE_MAX - 1].sequence,
			 100 + GDRCAP_DAMAGE_MAX - 1);
	verdict_destroy(&verdict);
}

/* A frame that was seen too early is damaged, came, and fills its own place; whatever else such
 * frames are, second copies, others' or without a number, each is a fault that was seen. */
static void stale_frames(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 1), 0);
	add(&verdict, 0, record_of(0, 0, 3, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 3, 1, FRAME_DAMAGED_STALE, 1));
	add(&verdict, 0, record_of(0, 4, 3, FRAME_VALID, 1));
	verdict_total(&verdict, true, 7, &counts);
	assert_int_equal(counts.damaged, 1);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(counts.reordered, 0);
	assert_int_equal(verdict.stale, 1);
	identities(&counts);
	add(&verdict, 0, record_of(0, 3, 1, FRAME_DAMAGED_STALE, 1));
	add(&verdict, 0, record_of(1, 0, 1, FRAME_DAMAGED_STALE, 1));
	add(&verdict, 0, record_of(0, 0, 1, FRAME_DAMAGED_STALE, 0));
	verdict_total(&verdict, true, 8, &counts);
	assert_int_equal(counts.damaged, 2);
	assert_int_equal(counts.duplicate, 1);
	assert_int_equal(counts.filtered, 1);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(verdict.stale, 4);
	identities(&counts);
	verdict_destroy(&verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_of_our_sender),
		cmocka_unit_test(traffic_of_somebody),
		cmocka_unit_test(unreadable),
		cmocka_unit_test(late_and_duplicate_in_one_run),
		cmocka_unit_test(hostile_numbers),
		cmocka_unit_test(up_to_the_last_number),
		cmocka_unit_test(more_than_64_bits_of_gaps),
		cmocka_unit_test(streams_beyond_the_limit),
		cmocka_unit_test(stray_ids_take_no_room),
		cmocka_unit_test(seen_before_it_counts),
		cmocka_unit_test(damage_is_told),
		cmocka_unit_test(stale_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
