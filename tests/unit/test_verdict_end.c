/* SPDX-License-Identifier: BSD-3-Clause */
/* What a sender's end-of-stream frames add to the verdict: loss at the head and at the tail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verdict/verdict.h"
#include "verdict_records.h"

static void add_end(struct verdict *verdict, uint16_t stream, uint64_t frames, uint32_t streams)
{
	struct frame_record record = record_of(stream, frames, 1, FRAME_END, 1);

	record.bytes = 0;
	record.detail = streams;
	add(verdict, 0, record);
}

static void sent_is(const struct verdict *verdict, uint64_t sent, uint64_t lost)
{
	struct gdrcap_counts counts, stream;

	verdict_total(verdict, false, 0, &counts);
	identities(&counts);
	assert_true(counts.sent == sent);
	assert_true(counts.lost == lost);
	for (uint32_t i = 0; i < verdict->stream_count; i++) {
		verdict_stream_counts(verdict, &verdict->streams[i], false, 0, &stream);
		identities(&stream);
	}
}

/* Loss before the first frame that was seen, after the last, and of a whole stream. */
static void end_tells_what_was_sent(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 100, 50, FRAME_VALID, 1));
	sent_is(&verdict, 50, 0);
	add_end(&verdict, 0, 200, 2);
	assert_false(verdict_ended(&verdict));
	sent_is(&verdict, 200, 150);
	add_end(&verdict, 7, 30, 2);
	assert_true(verdict_ended(&verdict));
	sent_is(&verdict, 230, 180);
	verdict_stream_counts(&verdict, &verdict.streams[1], false, 0, &counts);
	assert_int_equal(counts.sent, 30);
	assert_int_equal(counts.lost, 30);
	assert_int_equal(counts.received, 0);
	verdict_queue_counts(&verdict, 0, &counts);
	assert_int_equal(counts.received, 52);
	assert_int_equal(counts.filtered, 2);
	assert_int_equal(counts.bytes, 52 * 60);
	assert_int_equal(counts.duplicate, 0);
	/* Frames that come after it, in another queue. */
	add(&verdict, 0, record_of(0, 150, 50, FRAME_VALID, 1));
	sent_is(&verdict, 230, 130);
	/* Where the sender's own count is known it decides. */
	verdict_total(&verdict, true, 240, &counts);
	assert_int_equal(counts.sent, 240);
	verdict_destroy(&verdict);
}

/* All that was sent is there: another frame that cannot be read is a second copy. */
static void unreadable_after_the_end(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 9, FRAME_VALID, 1));
	for (uint32_t i = 0; i < 3; i++)
		add(&verdict, 0, record_of(0, 0, 1, FRAME_DAMAGED_HEADER, 0));
	add_end(&verdict, 0, 10, 1);
	verdict_total(&verdict, false, 0, &counts);
	identities(&counts);
	assert_int_equal(counts.sent, 10);
	assert_int_equal(counts.damaged, 1);
	assert_int_equal(counts.duplicate, 2);
	verdict_destroy(&verdict);
}

static void ends_that_disagree(void **state)
{
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	add_end(&verdict, 0, 110, 1);
	add_end(&verdict, 0, 1ull << 63, 1);
	sent_is(&verdict, 110, 10);
	add_end(&verdict, 0, 50, 1); /* there are more */
	sent_is(&verdict, 110, 10);
	add_end(&verdict, 0, 100, 1);
	sent_is(&verdict, 100, 0);
	/* The sender went on after all. */
	add(&verdict, 0, record_of(0, 100, 20, FRAME_VALID, 1));
	sent_is(&verdict, 120, 0);
	add_end(&verdict, 0, 125, 1);
	sent_is(&verdict, 125, 5);
	assert_int_equal(verdict.senders[0].ended, 1);
	verdict_destroy(&verdict);
}

/* Ends that nobody of ours sends: of no stream, of too many, of somebody else's; and sums. */
static void hostile_ends(void **state)
{
	struct frame_record unread = record_of(0, 5, 1, FRAME_END, 0);
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, unread);
	assert_int_equal(verdict.stream_count, 0);
	add_end(&verdict, 0, UINT64_MAX, 0);
	assert_false(verdict_ended(&verdict));
	add_end(&verdict, 1, UINT64_MAX, UINT32_MAX);
	assert_int_equal(verdict.senders[0].streams, UINT32_MAX);
	assert_false(verdict_ended(&verdict));
	add_end(&verdict, 2, 1, 3);
	assert_true(verdict_ended(&verdict));
	sent_is(&verdict, UINT64_MAX, UINT64_MAX);
	add(&verdict, 0, record_of(0, 0, 1, FRAME_DAMAGED_HEADER, 0));
	sent_is(&verdict, UINT64_MAX, UINT64_MAX - 1);
	verdict_destroy(&verdict);

	assert_int_equal(create(&verdict, 1, 2), 0);
	add_end(&verdict, 2, 5, 3);
	assert_int_equal(verdict.stream_count, 0);
	for (uint32_t id = 0; id < 2; id++)
		add_end(&verdict, (uint16_t)id, 5, 2);
	assert_true(verdict_ended(&verdict));
	verdict_destroy(&verdict);
}

static void add_end_from(struct verdict *verdict, uint32_t source, uint16_t stream, uint64_t frames,
			 uint32_t streams)
{
	struct frame_record record = record_of(stream, frames, 1, FRAME_END, 1);

	record.bytes = 0;
	record.detail = streams;
	record.source = source;
	add(verdict, 0, record);
}

/* One frame against five: no phantom loss, and an end. */
static void forged_ends(void **state)
{
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	add_end(&verdict, 9, 1000000, 1); /* a stream that nobody has */
	add_end(&verdict, 0, 100, 1000);  /* streams that nobody has */
	add_end(&verdict, 0, 700, 1);
	for (uint32_t i = 0; i < 5; i++)
		add_end(&verdict, 0, 100, 1);
	add_end(&verdict, 8, 1000000, 1);
	add_end(&verdict, 0, 101, 2);
	assert_true(verdict_ended(&verdict));
	sent_is(&verdict, 100, 0);
	/* From elsewhere as often as you like. */
	for (uint32_t i = 0; i < 100; i++)
		add_end_from(&verdict, 77, (uint16_t)(i % 3), 5000, 3);
	assert_true(verdict_ended(&verdict));
	sent_is(&verdict, 100, 0);
	verdict_destroy(&verdict);
}

/* Two senders, each with its own streams; an end speaks for its sender alone. */
static void ends_of_two_senders(void **state)
{
	struct frame_record other = record_of(5, 0, 50, FRAME_VALID, 1);
	struct verdict verdict;

	other.source = 2;
	for (uint32_t senders = 0; senders <= 2; senders++) {
		const struct verdict_config config = { .senders = senders };

		assert_int_equal(verdict_create(&verdict, 1, &config), 0);
		add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
		if (senders < 2)
			add(&verdict, 0, other);
		add_end(&verdict, 0, 110, 1);
		assert_false(verdict_ended(&verdict)); /* the other lives, or is waited for */
		if (senders == 2)
			add(&verdict, 0, other);
		add_end_from(&verdict, 2, 5, 50, 1);
		assert_true(verdict_ended(&verdict));
		sent_is(&verdict, 160, 10);
		assert_int_equal(verdict.conflicts, 0);
		verdict_destroy(&verdict);
	}
}

/* Who was waited for and not heard of, and a stream whose sender alone speaks of it. */
static void unheard(void **state)
{
	uint32_t senders, streams;
	struct verdict verdict;

	assert_int_equal(verdict_create(&verdict, 1, &(struct verdict_config){ .senders = 3 }), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	verdict_unheard(&verdict, false, &senders, &streams);
	assert_int_equal(senders, 2);
	assert_int_equal(streams, 0);
	add_end(&verdict, 0, 100, 2);
	add_end_from(&verdict, 5, 1, 0, 1); /* an end is no frame */
	verdict_unheard(&verdict, false, &senders, &streams);
	assert_int_equal(senders, 2);
	assert_int_equal(streams, 1);
	add_end(&verdict, 1, 0, 2);
	verdict_unheard(&verdict, false, &senders, &streams);
	assert_int_equal(streams, 0);
	verdict_destroy(&verdict);
}

/* What nobody can fulfil is no end: it is missed as any other is. */
static void announced_beyond_belief(void **state)
{
	static const uint32_t streams[] = { GDRCAP_STREAMS_MAX + 1, VERDICT_STREAMS_SEEN + 1,
					    UINT32_MAX };
	uint32_t senders, missing;
	struct verdict verdict;

	for (uint32_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		assert_int_equal(create(&verdict, 1, 0), 0);
		add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
		for (uint32_t n = 0; n < 5; n++)
			add_end(&verdict, 0, 100, streams[i]);
		assert_false(verdict_ended(&verdict));
		verdict_unheard(&verdict, false, &senders, &missing);
		assert_int_equal(missing, streams[i] - 1);
		verdict_destroy(&verdict);
	}
}

/* Streams of a sender that left without a word about their end. */
static void left_without_a_word(void **state)
{
	uint32_t senders, streams;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	add(&verdict, 0, record_of(1, 0, 100, FRAME_VALID, 1));
	add(&verdict, 0, record_of(2, 7, 1, FRAME_VALID, 1)); /* anybody's */
	verdict_unheard(&verdict, false, &senders, &streams);
	assert_int_equal(streams, 0);
	verdict_unheard(&verdict, true, &senders, &streams);
	assert_int_equal(streams, 2);
	add_end(&verdict, 0, 100, 2);
	verdict_unheard(&verdict, true, &senders, &streams);
	assert_int_equal(streams, 1);
	add_end(&verdict, 1, 100, 2);
	verdict_unheard(&verdict, true, &senders, &streams);
	assert_int_equal(streams, 0);
	verdict_destroy(&verdict);
}

/* Lone frames and ends from half of the addresses that can be told apart take nobody's place. */
static void ends_of_many_addresses(void **state)
{
	struct frame_record record = record_of(0, 0, 100, FRAME_VALID, 1);
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	for (uint32_t source = 1; source < VERDICT_SOURCES / 2; source += 2) {
		struct frame_record stray = record_of(9, 5, 1, FRAME_VALID, 1);

		stray.source = source;
		add(&verdict, 0, stray);
		add_end_from(&verdict, source + 1, 9, 0, 3);
	}
	record.source = 77;
	add(&verdict, 0, record);
	add_end_from(&verdict, 77, 0, 100, 1);
	assert_int_equal(verdict.untracked, 0);
	assert_int_equal(verdict.senders_live, 1);
	assert_true(verdict_ended(&verdict));
	verdict_destroy(&verdict);
}

/* Records of one frame each, one after the other. */
static void restarts_of_one_frame(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	for (uint32_t i = 1; i <= 20; i++) {
		struct frame_record record = record_of(0, 0, 1, FRAME_VALID, 1);

		record.detail = i;
		add(&verdict, 0, record);
		add_end(&verdict, 0, 1, 1);
	}
	verdict_finish(&verdict);
	verdict_total(&verdict, false, 0, &counts);
	identities(&counts);
	assert_int_equal(counts.valid, 20);
	assert_int_equal(counts.restarts, 19);
	verdict_destroy(&verdict);
}

/* After a loss, the first two frames came in the wrong order. */
static void goes_on_backwards(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 20001, 1, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 20000, 1, FRAME_VALID, 1));
	add(&verdict, 0, record_of(0, 20002, 98, FRAME_VALID, 1));
	verdict_finish(&verdict);
	sent_is(&verdict, 20100, 19900);
	verdict_total(&verdict, false, 0, &counts);
	assert_int_equal(counts.valid, 200);
	assert_int_equal(counts.damaged, 0);
	assert_int_equal(counts.reordered, 1);
	verdict_destroy(&verdict);
}

/* Two programs behind one address, of which each speaks of its own streams. */
static void ends_from_one_address(void **state)
{
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	add(&verdict, 0, record_of(0, 0, 100, FRAME_VALID, 1));
	add(&verdict, 0, record_of(1, 0, 50, FRAME_VALID, 1));
	add_end(&verdict, 0, 100, 1);
	assert_false(verdict_ended(&verdict));
	add(&verdict, 0, record_of(1, 50, 50, FRAME_VALID, 1));
	add_end(&verdict, 1, 100, 1);
	assert_true(verdict_ended(&verdict));
	sent_is(&verdict, 200, 0);
	verdict_destroy(&verdict);
}

/* All but the first and the last frame are lost: the last one is believed where its sender says that
 * it had this many, or is ours. */
static void a_lone_last_frame(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		const bool said = i == 1, known = i == 2;
		struct gdrcap_counts counts;
		struct verdict verdict;

		assert_int_equal(create(&verdict, 1, known ? 1 : 0), 0);
		add(&verdict, 0, record_of(0, 0, 10, FRAME_VALID, 1));
		add(&verdict, 0, record_of(0, 9999, 1, FRAME_VALID, 1));
		if (said || i == 3)
			add_end(&verdict, 0, said ? 10000 : 9999, 1);
		verdict_finish(&verdict);
		verdict_total(&verdict, known, 10000, &counts);
		identities(&counts);
		assert_int_equal(counts.valid, said || known ? 11 : 10);
		assert_int_equal(counts.lost, said || known ? 9989 : i == 3 ? 9988 : 0);
		assert_int_equal(counts.damaged, said || known ? 0 : 1);
		verdict_destroy(&verdict);
	}
}

/* One id from two addresses: each has its own frames, and it is told. */
static void one_id_of_two_senders(void **state)
{
	struct gdrcap_counts counts;
	struct verdict verdict;

	assert_int_equal(create(&verdict, 1, 0), 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct frame_record record = record_of(3, 50 * (i / 2), 50, FRAME_VALID, 1);

		record.source = 1000 + i % 2;
		add(&verdict, 0, record);
	}
	assert_int_equal(verdict.conflicts, 1);
	assert_int_equal(verdict.conflict_id, 3);
	for (uint32_t i = 0; i < 4; i++) {
		struct frame_record third = record_of(3, 0, 2, FRAME_VALID, 1);

		third.source = 7 + i;
		add(&verdict, 0, third);
	}
	assert_int_equal(verdict.conflicts, 1); /* one id, of however many */
	verdict_total(&verdict, false, 0, &counts);
	identities(&counts);
	assert_int_equal(counts.valid, 1008);
	assert_int_equal(counts.duplicate, 0);
	verdict_destroy(&verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_tells_what_was_sent),
		cmocka_unit_test(unreadable_after_the_end),
		cmocka_unit_test(ends_that_disagree),
		cmocka_unit_test(hostile_ends),
		cmocka_unit_test(forged_ends),
		cmocka_unit_test(ends_of_two_senders),
		cmocka_unit_test(ends_from_one_address),
		cmocka_unit_test(unheard),
		cmocka_unit_test(announced_beyond_belief),
		cmocka_unit_test(left_without_a_word),
		cmocka_unit_test(ends_of_many_addresses),
		cmocka_unit_test(restarts_of_one_frame),
		cmocka_unit_test(goes_on_backwards),
		cmocka_unit_test(a_lone_last_frame),
		cmocka_unit_test(one_id_of_two_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
