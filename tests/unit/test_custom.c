/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a custom layout: fields of any shape, numbers that wrap, payloads by number or by phase, records. */
#include "pattern_reference.h"
#include "kernels/frame_records.h"

#define LEN_MAX 2000u

static struct frame_layout layout_make(void)
{
	const struct frame_config config = { .format = FRAME_CUSTOM };
	struct frame_layout layout;

	assert_int_equal(frame_layout_init(&layout, &config), 0);
	layout.custom.payload = 18;
	layout.custom.sequence_step = 1;
	return layout;
}

/* Both checkers, on a copy of exactly so many bytes. */
static struct frame_result both_check(const struct frame_layout *layout,
				      const struct pattern *pattern, const uint8_t *frame,
				      uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct frame_result slow, fast;

	assert_non_null(copy);
	memcpy(copy, frame, len);
	memset(&slow, 0, sizeof(slow));
	memset(&fast, 0, sizeof(fast));
	frame_check(layout, pattern, frame_crc32c_table, copy, len, &slow);
	frame_check_ahead(layout, pattern, copy, len, NULL, &fast);
	assert_memory_equal(&slow, &fast, sizeof(slow));
	free(copy);
	return slow;
}

static void field_put(const struct frame_field *field, uint8_t *frame, uint64_t value)
{
	for (uint32_t i = 0; i < field->bytes; i++) {
		const uint32_t shift = 8 * (field->little ? i : field->bytes - 1u - i);

		frame[field->offset + i] = (uint8_t)(value >> shift);
	}
}

/* The low `bytes` bytes of a number, by division: what a field can hold. */
static uint64_t held(uint64_t value, uint32_t bytes)
{
	return bytes == 8 ? value : value % (1ull << (8 * bytes));
}

static void test_fields(void **state)
{
	static uint8_t frame[LEN_MAX];
	struct pattern pattern;

	pattern_make(&pattern, PATTERN_NONE, 0, -1);
	for (int round = 0; round < 20000; round++) {
		struct frame_layout layout = layout_make();
		struct frame_custom *custom = &layout.custom;
		const uint32_t len = (uint32_t)(random64() % 200);
		const uint64_t number = random64(), stream = random64();
		uint32_t end_sequence, end_stream;
		struct frame_result r;

		custom->sequence = (struct frame_field){ (uint16_t)(random64() % 100),
							 (uint8_t)(random64() % 9),
							 (uint8_t)(random64() % 2) };
		do {
			custom->stream = (struct frame_field){ (uint16_t)(random64() % 100),
							       (uint8_t)(random64() % 3),
							       (uint8_t)(random64() % 2) };
			end_sequence = custom->sequence.offset + custom->sequence.bytes;
			end_stream = custom->stream.offset + custom->stream.bytes;
		} while (custom->stream.offset < end_sequence &&
			 custom->sequence.offset < end_stream);
		custom->payload = (uint32_t)(random64() % 101);
		custom->payload_bytes = random64() % 2 ? (uint32_t)(random64() % 150) : 0;
		field_put(&custom->sequence, frame, number);
		field_put(&custom->stream, frame, stream);
		r = both_check(&layout, &pattern, frame, len);
		if ((custom->sequence.bytes && end_sequence > len) ||
		    (custom->stream.bytes && end_stream > len)) {
			assert_int_equal(r.verdict, FRAME_DAMAGED_LENGTH);
			assert_int_equal(r.header_ok, 0);
			assert_int_equal(r.sequence | r.stream, 0);
			continue;
		}
		assert_int_equal(r.verdict, custom->payload + custom->payload_bytes > len
						    ? FRAME_DAMAGED_LENGTH
						    : FRAME_VALID);
		assert_int_equal(r.header_ok, 1);
		assert_int_equal(r.sequence,
				 custom->sequence.bytes ? held(number, custom->sequence.bytes) : 0);
		assert_int_equal(r.stream,
				 custom->stream.bytes ? held(stream, custom->stream.bytes) : 0);
		assert_int_equal(r.payload_bytes | r.offset, 0);
	}
	/* a stream id has 16 bits */
	{
		struct frame_layout layout = layout_make();

		layout.custom.stream = (struct frame_field){ 2, 4, 0 };
		memcpy(frame, "\0\0\x12\x34\x56\x78", 6);
		assert_int_equal(both_check(&layout, &pattern, frame, 60).stream, 0x5678);
	}
}

/* By counting: frame k of a stream has start + k * step. */
static void test_numbers(void **state)
{
	static const uint64_t steps[] = { 1, 2, 3, 5, 6, 7, 64, 96, 200, 255 };
	struct frame_layout layout = layout_make();

	layout.custom.sequence = (struct frame_field){ 14, 1, 0 };
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		for (uint64_t start = 0; start < 256; start += 51) {
			uint64_t period = 1;

			while (period * steps[s] % 256)
				period++;
			layout.custom.sequence_start = start;
			layout.custom.sequence_step = steps[s];
			for (uint64_t k = 0; k < 2 * period; k++)
				assert_int_equal(
					frame_number(&layout, (start + k * steps[s]) % 256),
					k % period);
		}
	}
	layout.custom.sequence.bytes = 8;
	layout.custom.sequence_start = UINT64_MAX - 1;
	layout.custom.sequence_step = 3;
	assert_int_equal(frame_number(&layout, 1), 1);
	assert_int_equal(frame_number(&layout, UINT64_MAX - 1 + 3 * 123456789012345678ull),
			 123456789012345678ull);
	layout.custom.sequence_step = 0; /* nobody's stream; must come to an end */
	assert_int_equal(frame_number(&layout, UINT64_MAX), 1);
	layout.custom.sequence.bytes = 1;
	layout.custom.sequence_step = 256;
	assert_int_equal(frame_number(&layout, 5), 7);
	layout.custom.sequence.bytes = 0;
	assert_int_equal(frame_number(&layout, 5), 0);
}

/* Frame `k` of a stream in the manner of an FPGA: a counter at 14, then the payload. */
static uint32_t stream_frame(const struct frame_layout *layout, const struct pattern *pattern,
			     uint64_t k, uint32_t payload_bytes, uint8_t *frame)
{
	const struct frame_custom *custom = &layout->custom;
	const struct pattern_place place = { .position = k * payload_bytes, .sequence = k };

	memset(frame, 0xee, custom->payload);
	field_put(&custom->sequence, frame, custom->sequence_start + k * custom->sequence_step);
	reference_fill(pattern, &place, frame + custom->payload, payload_bytes);
	return custom->payload + payload_bytes;
}

static void test_payload_by_number(void **state)
{
	static uint8_t frame[LEN_MAX];

	for (int kind = PATTERN_PRBS7; kind < PATTERN_KINDS; kind++) {
		for (int restart = 0; restart <= 1; restart++) {
			struct frame_layout layout = layout_make();
			struct pattern pattern;

			pattern_make(&pattern, (enum pattern_kind)kind, restart, -1);
			layout.custom.sequence = (struct frame_field){ 14, 4, 0 };
			layout.custom.sequence_start = 0xfffffff0; /* wraps on the way */
			layout.custom.sequence_step = 5;
			for (uint64_t k = 0; k < 40; k++) {
				const uint32_t bytes = 301, len = stream_frame(&layout, &pattern, k,
									       bytes, frame);
				struct frame_result r = both_check(&layout, &pattern, frame, len);

				assert_int_equal(r.verdict, FRAME_VALID);
				assert_int_equal(r.sequence, held(0xfffffff0 + 5 * k, 4));
				assert_int_equal(r.payload_bytes, bytes);
				assert_int_equal(r.phase_first | r.phase_next | r.detail, 0);
				frame[18 + k] ^= 0x41;
				r = both_check(&layout, &pattern, frame, len);
				assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
				assert_int_equal(r.wrong_bits, 2);
				assert_int_equal(r.offset, 18 + k);
				assert_int_equal(r.got ^ r.expected, 0x41);
				assert_int_equal(r.got, frame[18 + k]);
			}
			pattern_free(&pattern);
		}
	}
}

/* The stream: PRBS-31 behind a 32-bit big-endian counter at 14. */
static void test_where_bits_are_wrong(void **state)
{
	static const uint32_t places[] = { 0, 1, 3, 4, 30, 31, 32, 700, 1477, 1478, 1479 };
	struct frame_layout layout = layout_make(), swapped;
	static uint8_t frame[LEN_MAX];
	struct pattern pattern;
	struct frame_result r;
	uint32_t len;

	pattern_make(&pattern, PATTERN_PRBS31, 0, -1);
	layout.custom.sequence = (struct frame_field){ 14, 4, 0 };
	swapped = layout;
	swapped.custom.sequence.little = 1;
	for (uint64_t k = 1000; k < 1010; k++) {
		len = stream_frame(&layout, &pattern, k, 1480, frame);
		for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
			frame[18 + places[p]] ^= 0x10;
			r = both_check(&layout, &pattern, frame, len);
			assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
			assert_int_equal(r.wrong_bits, 1);
			assert_int_equal(r.offset, 18 + places[p]);
			assert_int_equal(r.header_ok, 1);
			assert_int_equal(r.sequence, k);
			frame[18 + places[p]] ^= 0x10;
		}
		/* read in the wrong byte order it is another place in the stream */
		r = both_check(&swapped, &pattern, frame, len);
		assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
		assert_int_equal(r.sequence, __builtin_bswap32((uint32_t)k));
		assert_in_range(r.wrong_bits, 1480 * 8 / 3, 1480 * 8 * 2 / 3);
	}
	pattern_free(&pattern);
}

static void test_fixed_payload(void **state)
{
	struct frame_layout layout = layout_make();
	static uint8_t frame[LEN_MAX];
	struct pattern pattern;
	struct frame_result r;

	pattern_make(&pattern, PATTERN_COUNTER16_BE, 0, -1);
	layout.custom.sequence = (struct frame_field){ 14, 2, 0 };
	layout.custom.payload_bytes = 30;
	stream_frame(&layout, &pattern, 7, 30, frame);
	for (uint32_t len = 0; len <= 60; len++) { /* what is behind the payload does not count */
		r = both_check(&layout, &pattern, frame, len);
		assert_int_equal(r.verdict, len < 48 ? FRAME_DAMAGED_LENGTH : FRAME_VALID);
		assert_int_equal(r.header_ok, len >= 16);
		assert_int_equal(r.sequence, len >= 16 ? 7 : 0);
		assert_int_equal(r.payload_bytes, len < 48 ? 0 : 30);
	}
	layout.custom.payload_bytes = UINT32_MAX;
	r = both_check(&layout, &pattern, frame, 60);
	assert_int_equal(r.verdict, FRAME_DAMAGED_LENGTH);
	layout.custom.payload_bytes = 0x10000;
	assert_int_equal(both_check(&layout, &pattern, frame, 60).verdict, FRAME_DAMAGED_LENGTH);
	/* frames longer than a length field can say are read as far as it can */
	{
		uint8_t *large = calloc(1, 70000);

		layout.custom.payload_bytes = 0;
		frame_check_ahead(&layout, &pattern, large, 70000, NULL, &r);
		assert_int_equal(r.payload_bytes, 65535 - 18);
		free(large);
	}
}

static void test_rules_first(void **state)
{
	struct frame_layout layout = layout_make();
	uint8_t frame[60] = { [12] = 0x88, 0xb5 };
	struct pattern pattern;

	pattern_make(&pattern, PATTERN_CONSTANT, 0, -1);
	layout.match.count = 1;
	layout.match.rule[0].fields = FRAME_MATCH_ETHERTYPE;
	layout.match.rule[0].ethertype = 0x88b6;
	assert_int_equal(both_check(&layout, &pattern, frame, 60).verdict, FRAME_FILTERED);
	assert_int_equal(both_check(&layout, &pattern, frame, 10).verdict, FRAME_FILTERED);
	layout.match.rule[0].ethertype = 0x88b5;
	assert_int_equal(both_check(&layout, &pattern, frame, 60).verdict, FRAME_DAMAGED_PAYLOAD);
}

static void test_self_phase(void **state)
{
	static uint8_t frame[LEN_MAX];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		struct frame_layout layout = layout_make();
		struct pattern pattern;
		uint32_t next = 0;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		layout.custom.self_phase = 1;
		for (uint64_t k = 0; k < 30; k++) {
			const uint32_t len = stream_frame(&layout, &pattern, 500 + k, 777, frame);
			struct frame_result r = both_check(&layout, &pattern, frame, len);

			assert_int_equal(r.verdict, FRAME_VALID);
			assert_int_equal(r.header_ok, 1);
			assert_int_equal(r.sequence, 0);
			assert_int_equal(r.payload_bytes, 777);
			if (k)
				assert_int_equal(r.phase_first, next);
			next = r.phase_next;
			frame[18] ^= 1;
			frame[len - 1] ^= 3;
			r = both_check(&layout, &pattern, frame, len);
			assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
			assert_int_equal(r.wrong_bits, 3);
			assert_int_equal(r.offset, 18);
			assert_int_equal(r.phase_next, next);
			memset(frame + 18, 0x5a, 777);
			r = both_check(&layout, &pattern, frame, len);
			assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
			assert_int_equal(r.header_ok, 1);
			assert_int_equal(r.detail, 777);
			assert_int_equal(r.phase_first | r.phase_next | r.payload_bytes, 0);
			/* no room for a phase, or for the payload */
			r = both_check(&layout, &pattern, frame, 18 + (uint32_t)k % 12);
			assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
			assert_int_equal(r.detail, k % 12);
			r = both_check(&layout, &pattern, frame, 17);
			assert_int_equal(r.verdict, FRAME_DAMAGED_LENGTH);
		}
		pattern_free(&pattern);
	}
}

/* ---- records ---- */

static struct frame_result valid(uint64_t sequence, uint32_t stream, uint32_t first, uint32_t next)
{
	return (struct frame_result){ .verdict = FRAME_VALID,
				      .header_ok = 1,
				      .sequence = sequence,
				      .stream = stream,
				      .payload_bytes = 10,
				      .phase_first = first,
				      .phase_next = next };
}

static int joins(const struct frame_layout *layout, struct frame_result last,
		 struct frame_result next)
{
	return record_joins(layout, NULL, &last, &next);
}

static void test_runs_by_number(void **state)
{
	struct frame_layout layout = layout_make(), own = { .format = FRAME_ETHERNET };
	struct frame_result damaged = valid(8, 0, 0, 0), filtered = valid(0, 0, 0, 0), end;

	damaged.verdict = FRAME_DAMAGED_PAYLOAD;
	filtered.verdict = FRAME_FILTERED;
	end = filtered;
	end.verdict = FRAME_END;
	layout.custom.sequence = (struct frame_field){ 14, 1, 0 };
	layout.custom.sequence_step = 3;
	assert_true(joins(&layout, valid(7, 0, 0, 0), valid(10, 0, 0, 0)));
	assert_true(joins(&layout, valid(254, 0, 0, 0), valid(1, 0, 0, 0)));
	assert_true(joins(&layout, valid(253, 0, 0, 0), valid(0, 0, 0, 0)));
	assert_false(joins(&layout, valid(7, 0, 0, 0), valid(8, 0, 0, 0)));
	assert_false(joins(&layout, valid(7, 0, 0, 0), valid(7, 0, 0, 0)));
	assert_false(joins(&layout, valid(7, 1, 0, 0), valid(10, 2, 0, 0)));
	layout.custom.sequence.bytes = 2;
	assert_false(joins(&layout, valid(254, 0, 0, 0), valid(1, 0, 0, 0)));
	assert_true(joins(&layout, valid(65534, 0, 0, 0), valid(1, 0, 0, 0)));
	layout.custom.sequence.bytes = 8;
	assert_true(joins(&layout, valid(UINT64_MAX, 0, 0, 0), valid(2, 0, 0, 0)));
	/* the phase must go on too */
	layout.custom.self_phase = 1;
	assert_true(joins(&layout, valid(1, 0, 5, 6), valid(4, 0, 6, 7)));
	assert_false(joins(&layout, valid(1, 0, 5, 6), valid(4, 0, 5, 7)));
	assert_false(joins(&layout, valid(1, 0, 5, 6), valid(5, 0, 6, 7)));
	/* phases alone */
	layout.custom.sequence.bytes = 0;
	assert_true(joins(&layout, valid(0, 0, 5, 6), valid(0, 0, 6, 7)));
	assert_false(joins(&layout, valid(0, 0, 5, 6), valid(0, 0, 9, 7)));
	/* counted only */
	layout.custom.self_phase = 0;
	assert_true(joins(&layout, valid(0, 3, 0, 0), valid(0, 3, 0, 0)));
	assert_false(joins(&layout, valid(0, 3, 0, 0), valid(0, 4, 0, 0)));
	/* own */
	assert_true(joins(&own, valid(7, 0, 0, 0), valid(8, 0, 0, 0)));
	assert_false(joins(&own, valid(UINT64_MAX, 0, 0, 0), valid(0, 0, 0, 0)));
	/* outcomes */
	assert_false(joins(&own, valid(7, 0, 0, 0), damaged));
	assert_false(joins(&layout, damaged, damaged));
	assert_true(joins(&layout, filtered, filtered));
	assert_false(joins(&layout, filtered, valid(0, 0, 0, 0)));
	assert_false(joins(&layout, end, end));
}

static void test_runs_of_a_file(void **state)
{
	/* A B A C: frame 2 is like frame 0 */
	const struct store_frame frames[] = { { .class_first = 0 },
					      { .class_first = 1 },
					      { .class_first = 0 },
					      { .class_first = 3 } };
	const struct frame_store_view store = { .frames = frames, .count = 4 };
	struct frame_layout layout = { .format = FRAME_ETHERNET };
	const struct frame_result a = valid(0, 0, 0, 0), b = valid(1, 0, 0, 0),
				  c = valid(3, 0, 0, 0);

	assert_true(record_joins(&layout, &store, &a, &b));
	assert_true(record_joins(&layout, &store, &b, &a));
	assert_true(record_joins(&layout, &store, &c, &a)); /* the file again */
	assert_false(
		record_joins(&layout, &store, &a, &c)); /* in order, but a new record: see there */
	assert_false(record_joins(&layout, &store, &b, &c));
	assert_false(record_joins(&layout, &store, &a, &a));
}

static void test_what_a_run_says(void **state)
{
	struct frame_result r = { .sequence = 9,
				  .stream = 3,
				  .payload_bytes = 7,
				  .wrong_bits = 2,
				  .offset = 50,
				  .expected = 1,
				  .got = 2,
				  .header_ok = 1,
				  .phase_first = 11,
				  .phase_next = 12,
				  .detail = 13 };
	struct frame_record record;

	for (uint8_t verdict = 0; verdict < FRAME_VERDICTS; verdict++) {
		const int filtered = verdict == FRAME_FILTERED;
		const int damaged = verdict != FRAME_VALID && verdict != FRAME_END && !filtered;

		memset(&record, 0x77, sizeof(record));
		r.verdict = verdict;
		record_begin(&record, &r, 5, 64);
		assert_int_equal(record.verdict, verdict);
		assert_int_equal(record.sequence, filtered ? 0 : 9);
		assert_int_equal(record.stream, filtered ? 0 : 3);
		assert_int_equal(record.header_ok, !filtered);
		assert_int_equal(record.bytes, filtered ? 0 : 7);
		assert_int_equal(record.phase_first, filtered ? 0 : 11);
		assert_int_equal(record.phase_next, filtered ? 0 : 12);
		assert_int_equal(record.detail, filtered ? 0 : 13);
		assert_int_equal(record.wrong_bits, damaged ? 2 : 0);
		assert_int_equal(record.offset, damaged ? 50 : 0);
		assert_int_equal(record.expected, damaged ? 1 : 0);
		assert_int_equal(record.got, damaged ? 2 : 0);
		assert_int_equal(record.first, 5);
		assert_int_equal(record.count, 1);
		assert_int_equal(record.frame_bytes, 64);
		assert_int_equal(record.source, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_payload_by_number),
		cmocka_unit_test(test_where_bits_are_wrong),
		cmocka_unit_test(test_fixed_payload),
		cmocka_unit_test(test_rules_first),
		cmocka_unit_test(test_self_phase),
		cmocka_unit_test(test_runs_by_number),
		cmocka_unit_test(test_runs_of_a_file),
		cmocka_unit_test(test_what_a_run_says),
	};

	return cmocka_run_group_tests_name("custom", tests, NULL, NULL);
}
