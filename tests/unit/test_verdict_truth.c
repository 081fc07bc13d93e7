/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verdict against the truth. A sender's frames go over a wire that loses, copies, delays and
 * damages them, among frames of nobody's; now and then a sender begins again, and there are several.
 * What the verdict then says must be what was done: the model counts what it does to the frames, and
 * knows nothing of how the verdict finds out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "big_memory.h"
#include "number_set.h"
#include "test_long.h"
#include "verdict/verdict.h"
#include "verdict_records.h"

#define STREAMS 20000u /* in all; VERDICT_STREAMS sets another number */
#define STREAMS_LONG 200000u
#define SENDERS_MAX 3u
#define LATE_MAX 40u /* frames that wait, delayed, at a time */
#define BURST 32u

struct late {
	uint64_t number, due; /* given when this many frames were sent after it */
	bool damaged;
};

/* A stream as its sender, and the wire, know it. */
struct stream {
	uint16_t id;
	uint32_t source, birth, birth_high; /* halves of the time that frame 0 has */
	uint64_t next;			    /* number of the frame to be sent */
	uint64_t base;			    /* numbers begin here: a capture may come late */
	struct number_set came;
	uint64_t lowest, newest; /* that came, of this life; newest: of those counted in order */
	bool any;
	struct late late[LATE_MAX];
	uint32_t late_count;
	/* Of the lives before. */
	uint64_t past_expected;
	uint32_t restarts;
	/* What the wire did. */
	uint64_t valid, damaged, duplicate, reordered, unique;
	uint64_t announced; /* in its last life; UINT64_MAX: not */
};

struct truth {
	uint64_t random;
	struct verdict verdict;
	struct stream streams[SENDERS_MAX * 2];
	uint32_t count, senders;
	uint64_t strays, received, filtered;
	/* Frames on their way, put together to bursts of records. */
	struct frame_record record;
};

static uint64_t below(struct truth *truth, uint64_t limit)
{
	return random_below(&truth->random, limit);
}

/* ---- what the consumer does: neighbouring frames become records ---- */

static void burst_flush(struct truth *truth)
{
	if (truth->record.count)
		verdict_add(&truth->verdict, 0, &truth->record);
	truth->record.count = 0;
}

static void frame_arrives(struct truth *truth, const struct stream *stream, uint64_t number,
			  uint8_t verdict, uint32_t birth)
{
	struct frame_record *record = &truth->record;
	const bool joins = record->count && record->count < BURST &&
			   record->verdict == FRAME_VALID && verdict == FRAME_VALID &&
			   record->stream == stream->id && record->source == stream->source &&
			   number && record->sequence + record->count == number;

	truth->received++;
	if (joins && below(truth, 8)) {
		record->count++;
		record->bytes += 24;
		record->frame_bytes += 60;
		return;
	}
	burst_flush(truth);
	*record = record_of(stream->id, number, 1, verdict, 1);
	record->source = stream->source;
	record->detail = number ? 0 : birth;
	record->phase_first = number ? 0 : stream->birth_high;
}

/* ---- the wire ---- */

static void deliver(struct truth *truth, struct stream *stream, uint64_t number, bool damaged)
{
	const bool late = stream->any && number <= stream->newest;

	frame_arrives(truth, stream, number, damaged ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID,
		      stream->birth);
	if (!number_add(&stream->came, number)) {
		stream->duplicate++;
		return;
	}
	stream->unique++;
	*(damaged ? &stream->damaged : &stream->valid) += 1;
	stream->reordered += late;
	if (!stream->any || number < stream->lowest)
		stream->lowest = number;
	if (!late)
		stream->newest = number;
	stream->any = true;
}

static void late_deliver(struct truth *truth, struct stream *stream, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < stream->late_count; i++) {
		const struct late late = stream->late[i];

		if (all || late.due <= stream->next)
			deliver(truth, stream, late.number, late.damaged);
		else
			stream->late[kept++] = late;
	}
	stream->late_count = kept;
}

static void send_one(struct truth *truth, struct stream *stream, uint32_t fault_rate)
{
	const uint64_t number = stream->next++;
	const bool damaged = below(truth, fault_rate) == 0 && below(truth, 2);

	late_deliver(truth, stream, false);
	switch (below(truth, fault_rate) ? 9 : below(truth, 3)) {
	case 0: /* lost */
		return;
	case 1: /* late */
		if (stream->late_count == LATE_MAX)
			break;
		stream->late[stream->late_count++] = (struct late){
			.number = number,
			.due = number + 1 + below(truth, 200),
			.damaged = damaged,
		};
		return;
	case 2: /* twice, the copy late */
		if (stream->late_count == LATE_MAX)
			break;
		stream->late[stream->late_count++] = (struct late){
			.number = number,
			.due = number + 1 + below(truth, 200),
		};
		break;
	}
	deliver(truth, stream, number, damaged);
}

static void send_some(struct truth *truth, struct stream *stream, uint64_t count,
		      uint32_t fault_rate)
{
	while (count--)
		send_one(truth, stream, fault_rate);
}

/* Frames that arrive for certain and in order: what goes before or after something far away must
 * say where the stream is. */
static void send_surely(struct truth *truth, struct stream *stream, uint32_t count)
{
	late_deliver(truth, stream, true);
	while (count--)
		deliver(truth, stream, stream->next++, false);
}

/* A frame with this stream's id, from its sender's address, that is none of its frames. */
static void stray(struct truth *truth, struct stream *stream)
{
	static const uint64_t far[] = { 3000000,
					1ull << 63,
					UINT64_MAX,
					UINT64_MAX - 1,
					VERDICT_JUMP + 1,
					SEQUENCE_WINDOW,
					5ull * SEQUENCE_WINDOW };
	const uint64_t by = far[below(truth, RTE_DIM(far))];
	uint64_t number = by;

	if (by < 1ull << 62)
		number = stream->next + by + below(truth, 1000);
	frame_arrives(truth, stream, number, FRAME_VALID, 0);
	truth->strays++;
	send_surely(truth, stream, 1 + (uint32_t)below(truth, 3));
}

/* More is lost at once than a lone frame would be believed for. */
static void gap(struct truth *truth, struct stream *stream)
{
	late_deliver(truth, stream, true);
	stream->next +=
		VERDICT_JUMP + 1 + below(truth, below(truth, 4) ? 10000 : 5 * SEQUENCE_WINDOW);
	send_surely(truth, stream, 2);
}

/* A copy of frame 0, where that came in this life, is no new beginning. */
static void first_again(struct truth *truth, struct stream *stream)
{
	if (*number_slot(&stream->came, 0)) {
		deliver(truth, stream, 0, false);
		send_surely(truth, stream, 1);
	}
}

/* Of all lives: what must have been sent. */
static uint64_t expected(const struct stream *stream)
{
	if (stream->announced != UINT64_MAX)
		return stream->past_expected + stream->announced;
	/* The first life of a stream that a capture joined has no known head; a new one begins with
	 * frame 0. */
	return stream->past_expected +
	       (stream->any ? stream->newest + 1 - (stream->restarts ? 0 : stream->lowest) : 0);
}

/* What the life before sent last comes behind frame 0 of the new one, mixed with copies of that. */
static void stragglers(struct truth *truth, struct stream *stream, uint32_t birth, uint32_t *copies)
{
	const uint32_t count = (uint32_t)below(truth, 4);
	const uint32_t lost = (uint32_t)below(truth, 8); /* of four; others: none */
	const uint32_t swapped = count == 3 && below(truth, 2);

	for (uint32_t i = 0; i < count; i++) {
		if (i != lost)
			deliver(truth, stream, stream->next + (i && swapped ? 3 - i : i), false);
		while (below(truth, 4) == 0) {
			frame_arrives(truth, stream, 0, FRAME_VALID, birth);
			++*copies;
		}
	}
	stream->next += count;
	/* a copy of one of the last that came for certain */
	if (count && stream->next > 10 && below(truth, 4) == 0)
		deliver(truth, stream, stream->newest, false);
}

static void begin_anew(struct truth *truth, struct stream *stream)
{
	const uint32_t flip = 1 + (uint32_t)below(truth, 1000), birth = stream->birth ^ flip;
	const bool is_long = stream->next > 100;
	uint32_t copies = 0;

	late_deliver(truth, stream, true);
	/* another time, also where a sum of its halves is the same */
	if (below(truth, 2))
		stream->birth_high ^= flip;
	frame_arrives(truth, stream, 0, FRAME_VALID, birth);
	stragglers(truth, stream, birth, &copies);
	stream->past_expected = expected(stream);
	stream->announced = UINT64_MAX;
	number_set_free(&stream->came);
	number_add(&stream->came, 0);
	stream->lowest = stream->newest = 0;
	stream->next = 1;
	stream->valid++;
	stream->unique++;
	stream->duplicate += copies;
	stream->birth = birth;
	stream->restarts++;
	if (is_long && below(truth, 4) == 0)
		stream->next += below(truth, 3); /* lost */
	send_surely(truth, stream, 2 + (uint32_t)below(truth, 3));
}

static void end_frames(struct truth *truth, struct stream *stream, uint32_t streams)
{
	struct frame_record record = record_of(stream->id, stream->next, 1, FRAME_END, 1);

	late_deliver(truth, stream, true);
	burst_flush(truth);
	record.bytes = 0;
	record.source = stream->source;
	record.detail = streams;
	for (uint32_t i = 0; i < 5; i++)
		verdict_add(&truth->verdict, 0, &record);
	truth->received += 5;
	truth->filtered += 5;
	stream->announced = stream->next;
}

/* ---- the judgement ---- */

static void judge(struct truth *truth)
{
	uint64_t valid = 0, damaged = 0, duplicate = 0, lost = 0, reordered = 0, gaps = 0, ends = 0;
	struct gdrcap_counts counts;
	uint64_t filled;

	burst_flush(truth);
	verdict_finish(&truth->verdict);
	for (uint32_t i = 0; i < truth->count; i++) {
		struct stream *stream = &truth->streams[i];
		const struct verdict_stream *found = NULL;

		for (uint32_t n = 0; n < truth->verdict.stream_count; n++) {
			const struct verdict_stream *one = &truth->verdict.streams[n];

			if (one->id == stream->id && one->sender == stream->source)
				found = one;
		}
		assert_non_null(found);
		verdict_stream_counts(&truth->verdict, found, false, 0, &counts);
		if (counts.sent != expected(stream))
			print_error("stream %u: sent %llu, in truth %llu\n", i,
				    (unsigned long long)counts.sent,
				    (unsigned long long)expected(stream));
		assert_true(counts.sent == expected(stream));
		assert_true(counts.lost == expected(stream) - stream->unique);
		assert_true(counts.valid == stream->valid);
		assert_true(counts.damaged == stream->damaged);
		assert_true(counts.duplicate == stream->duplicate);
		assert_true(counts.reordered == stream->reordered);
		assert_int_equal(found->restarts, stream->restarts);
		valid += stream->valid;
		damaged += stream->damaged;
		duplicate += stream->duplicate;
		reordered += stream->reordered;
		gaps += counts.lost;
		ends += stream->announced != UINT64_MAX;
	}
	/* A stray is damaged, and one of the missing as long as some are; else one more. */
	filled = RTE_MIN(truth->strays, gaps);
	lost = gaps - filled;
	verdict_total(&truth->verdict, false, 0, &counts);
	identities(&counts);
	if (ends == truth->count) {
		damaged += filled;
		duplicate += truth->strays - filled;
	} else {
		damaged += truth->strays;
	}
	assert_true(counts.received == truth->received);
	assert_true(counts.filtered == truth->filtered);
	assert_true(counts.valid == valid);
	assert_true(counts.damaged == damaged);
	assert_true(counts.duplicate == duplicate);
	assert_true(counts.lost == lost);
	assert_true(counts.reordered == reordered);
	assert_true(verdict_ended(&truth->verdict) == (ends == truth->count));
	assert_int_equal(truth->verdict.untracked, 0);
	assert_int_equal(truth->verdict.conflicts, 0);
}

static void truth_begin(struct truth *truth, uint64_t seed)
{
	memset(truth, 0, sizeof(*truth));
	truth->random = seed;
	truth->senders = 1 + (uint32_t)below(truth, SENDERS_MAX);
	truth->count = truth->senders * (1 + (uint32_t)below(truth, 2));
	assert_int_equal(verdict_create(&truth->verdict, 1,
					&(struct verdict_config){ .senders = truth->senders }),
			 0);
	for (uint32_t i = 0; i < truth->count; i++) {
		struct stream *stream = &truth->streams[i];

		stream->id = (uint16_t)(i * 1000 + below(truth, 1000));
		stream->source = 1 + i % truth->senders;
		stream->birth = 1 + (uint32_t)below(truth, 1000000);
		stream->announced = UINT64_MAX;
		/* It may run already when the capture begins. (Not for so short a time that a frame
		 * 0 might just be late.) */
		if (below(truth, 3) == 0)
			stream->next = VERDICT_JUMP +
				       (random_next(&truth->random) >> (2 + below(truth, 60)));
		if (below(truth, 10) == 0 && stream->next == 0) {
			frame_arrives(truth, stream, below(truth, 2) ? UINT64_MAX : 1ull << 63,
				      FRAME_VALID, 0);
			truth->strays++;
		}
		send_surely(truth, stream, 2);
	}
}

/* Returns its streams. */
static uint32_t scenario(uint64_t seed)
{
	static struct truth truth;
	const bool ends = seed % 2;
	const uint32_t fault_rate = seed % 5 ? 200 : 10;
	uint32_t steps;

	truth_begin(&truth, seed);
	steps = (uint32_t)below(&truth, 30);
	for (uint32_t step = 0; step < steps; step++) {
		struct stream *stream = &truth.streams[below(&truth, truth.count)];

		switch (below(&truth, 12)) {
		case 0:
			send_surely(&truth, stream, 1);
			stray(&truth, stream);
			break;
		case 1:
			gap(&truth, stream);
			break;
		case 2:
			begin_anew(&truth, stream);
			break;
		case 3:
			first_again(&truth, stream);
			break;
		default:
			send_some(&truth, stream, below(&truth, 300), fault_rate);
		}
	}
	for (uint32_t i = 0; i < truth.count; i++) {
		send_surely(&truth, &truth.streams[i], 1);
		if (ends)
			end_frames(&truth, &truth.streams[i], truth.count / truth.senders);
	}
	judge(&truth);
	for (uint32_t i = 0; i < truth.count; i++)
		number_set_free(&truth.streams[i].came);
	verdict_destroy(&truth.verdict);
	return truth.count;
}

static void verdict_is_the_truth(void **state)
{
	const char *asked = getenv("VERDICT_STREAMS");
	const uint64_t streams =
		asked ? strtoull(asked, NULL, 0) : test_cases(STREAMS_LONG, STREAMS);
	uint64_t played = 0;

	(void)state;
	for (uint64_t seed = 1; played < streams; seed++)
		played += scenario(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdict_is_the_truth),
	};

	big_memory_is_sparse();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
