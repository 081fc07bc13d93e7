/* SPDX-License-Identifier: BSD-3-Clause */
/* Comments of damaged frames: they agree with the checker's answer, and the bytes they call
 * expected are those of the frame before it was damaged: no pattern's code had to say them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "save/comment.h"
#include "kernels/frame_records.h"
#include "number_set.h"

#define LEN 300u

static struct frame_layout own, custom;
static struct pattern pattern;
static struct comment_reference reference = { .layout = &own, .pattern = &pattern };

static void pattern_make(enum pattern_kind kind)
{
	const struct pattern_config config = { .kind = kind, .invert = -1, .seed = 9 };

	pattern_free(&pattern);
	assert_int_equal(pattern_init(&pattern, &config), 0);
}

static int begin(void **state)
{
	const struct frame_config config = { .format = FRAME_ETHERNET };
	const struct frame_config other = { .format = FRAME_CUSTOM };

	if (frame_layout_init(&own, &config) < 0 || frame_layout_init(&custom, &other) < 0)
		return -1;
	custom.custom = (struct frame_custom){
		.sequence = { .offset = 14, .bytes = 4 },
		.sequence_step = 1,
		.payload = 20,
	};
	return 0;
}

static int end(void **state)
{
	pattern_free(&pattern);
	return 0;
}

/* Frame 1234 of stream 3. */
static void frame_make(uint8_t frame[LEN], uint32_t payload)
{
	const struct frame_header header = {
		.sequence = 1234,
		.position = 1234 * 250,
		.stream = 3,
		.payload_bytes = (uint16_t)payload,
		.pattern = (uint8_t)pattern.kind,
		.version = FRAME_VERSION,
	};

	memset(frame, 0, LEN);
	frame_write(&own, &pattern, frame, LEN, &header);
}

/* What the checker says, as a record. */
static struct frame_record checked(const uint8_t *frame, uint32_t len)
{
	struct frame_result result = { 0 };
	struct frame_record record = { 0 };

	if (reference.expect)
		frame_expect_check(reference.layout, reference.expect, frame, len, &result);
	else
		frame_check(reference.layout, &pattern, frame_crc32c_table, frame, len, &result);
	record_begin(&record, &result, 0, len);
	return record;
}

/* In memory of exactly that length, so that a sanitizer sees any read beyond. */
static void comment_is(const struct frame_record *record, const uint8_t *frame, uint32_t len,
		       const char *want)
{
	uint8_t *copy = malloc(len ? len : 1);
	char text[COMMENT_BYTES];

	assert_non_null(copy);
	memcpy(copy, frame, len);
	comment_damaged(text, &reference, record, copy, len, len);
	assert_string_equal(text, want);
	free(copy);
}

static char *hex(char *to, const uint8_t *from, uint32_t n)
{
	to[0] = '\0';
	for (uint32_t i = 0; i < n; i++)
		sprintf(to + 3 * i, " %02x", from[i]);
	return to;
}

/* The checker on a frame that was `right` and is `wrong` from `offset` on. */
static void payload_case(const char *which, const uint8_t *right, const uint8_t *wrong,
			 uint32_t offset, uint32_t payload_end, uint32_t bits)
{
	const struct frame_record record = checked(wrong, LEN);
	const uint32_t n = payload_end - offset < 8 ? payload_end - offset : 8;
	char want[COMMENT_BYTES], expected[32], got[32];

	assert_int_equal(record.verdict, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(record.offset, offset);
	snprintf(want, sizeof(want),
		 "gdrcap: damaged %s%s: %u wrong bit%s, first at offset %u of the frame: "
		 "expected%s, got%s",
		 reference.expect ? "frame" : "payload", which, bits, bits == 1 ? "" : "s", offset,
		 hex(expected, right + offset, n), hex(got, wrong + offset, n));
	comment_is(&record, wrong, LEN, want);
}

static void payloads(void **state)
{
	static const enum pattern_kind kinds[] = { PATTERN_PRBS7, PATTERN_PRBS31, PATTERN_RANDOM,
						   PATTERN_COUNTER32_BE, PATTERN_CONSTANT };
	uint8_t right[LEN], wrong[LEN];
	uint64_t random = 1;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		pattern_make(kinds[k]);
		for (uint32_t at = 50; at < 290; at++) {
			frame_make(right, 240);
			memcpy(wrong, right, LEN);
			wrong[at] ^= 0x10;
			payload_case(", stream 3 sequence 1234", right, wrong, at, 290, 1);
			if (at + 5 < 290) {
				wrong[at + 1 + random_below(&random, 4)] ^= 0x81;
				payload_case(", stream 3 sequence 1234", right, wrong, at, 290, 3);
			}
		}
	}
}

/* The copy is not what the checker saw: it says so, and gives the checker's bytes. */
static void changed_since(void **state)
{
	uint8_t right[LEN], wrong[LEN];
	char want[COMMENT_BYTES], expected[32];
	struct frame_record record;

	pattern_make(PATTERN_PRBS31);
	frame_make(right, 240);
	memcpy(wrong, right, LEN);
	wrong[100] ^= 1;
	record = checked(wrong, LEN);
	hex(expected, right + 100, 8);
	snprintf(want, sizeof(want),
		 "gdrcap: damaged payload, stream 3 sequence 1234: 1 wrong bit, first at offset "
		 "100 of the frame: expected%s, got%s; it was %02x when it was checked, and "
		 "changed since",
		 expected, expected, wrong[100]);
	comment_is(&record, right, LEN, want);
	/* Not even the header is the same. */
	memset(right, 0, LEN);
	snprintf(want, sizeof(want),
		 "gdrcap: damaged payload, stream 3 sequence 1234: 1 wrong bit, first at offset "
		 "100 of the frame: expected %02x, got %02x",
		 record.expected, record.got);
	comment_is(&record, right, LEN, want);
}

static void headers(void **state)
{
	uint8_t frame[LEN], crc[4];
	struct frame_record record;
	char want[COMMENT_BYTES], expected[32], got[32];

	pattern_make(PATTERN_PRBS31);
	frame_make(frame, 240);
	frame[15] ^= 0xff;
	record = checked(frame, LEN);
	comment_is(&record, frame, LEN,
		   "gdrcap: damaged header: magic at offset 14 of the frame: "
		   "expected 67 43, got 67 bc");
	frame_make(frame, 240);
	frame[16] = 9;
	record = checked(frame, LEN);
	comment_is(&record, frame, LEN,
		   "gdrcap: damaged header: version at offset 16 of the frame: "
		   "expected 01, got 09");
	frame_make(frame, 240);
	memcpy(crc, frame + 46, 4);
	frame[48] ^= 2;
	record = checked(frame, LEN);
	snprintf(want, sizeof(want),
		 "gdrcap: damaged header: CRC32C at offset 46 of the frame: "
		 "expected%s, got%s",
		 hex(expected, crc, 4), hex(got, frame + 46, 4));
	comment_is(&record, frame, LEN, want);
	frame_make(frame, 240);
	comment_is(&record, frame, LEN,
		   "gdrcap: damaged header: it is right here, and changed after "
		   "it was checked");
	frame[17] = PATTERN_PRBS9;
	frame_put32(frame + 46, frame_crc32c(frame_crc32c_table, frame + 14, 32));
	record = checked(frame, LEN);
	comment_is(&record, frame, LEN,
		   "gdrcap: damaged header, stream 3 sequence 1234: pattern at "
		   "offset 17 of the frame: expected 07, got 02");
}

static void lengths(void **state)
{
	uint8_t frame[LEN];
	struct frame_record record;

	pattern_make(PATTERN_PRBS31);
	frame_make(frame, 240);
	record = checked(frame, 200);
	assert_int_equal(record.verdict, FRAME_DAMAGED_LENGTH);
	comment_is(&record, frame, 200,
		   "gdrcap: damaged length, stream 3 sequence 1234: its header "
		   "says 240 payload bytes, the frame has room for 150");
	record = checked(frame, 30);
	comment_is(&record, frame, 30,
		   "gdrcap: damaged length: its header ends at offset 50, the "
		   "frame has 30 bytes");
}

static void custom_frames(void **state)
{
	uint8_t right[LEN] = { 0 }, wrong[LEN];
	struct pattern_place place = { .sequence = 77, .position = 77 * (LEN - 20) };
	char want[COMMENT_BYTES];
	struct frame_record record;

	reference.layout = &custom;
	pattern_make(PATTERN_PRBS31);
	right[17] = 77;
	pattern_fill(&pattern, &place, right + 20, LEN - 20);
	memcpy(wrong, right, LEN);
	wrong[LEN - 3] ^= 3;
	payload_case(", sequence 77", right, wrong, LEN - 3, LEN, 2);
	record = checked(wrong, 16);
	comment_is(&record, wrong, 16,
		   "gdrcap: damaged length: the frame has 16 bytes and ends in "
		   "its sequence number or stream id");
	custom.custom.payload_bytes = 100;
	record = checked(wrong, 119);
	comment_is(&record, wrong, 119,
		   "gdrcap: damaged length, sequence 77: its payload ends at "
		   "offset 120, the frame has 119 bytes");
	custom.custom.payload_bytes = 0;
	custom.custom.sequence.bytes = 0;
	custom.custom.self_phase = 1;
	for (uint32_t at = 20; at < LEN; at += 1 + at / 16) {
		memcpy(wrong, right, LEN);
		wrong[at] ^= 0x80;
		payload_case("", right, wrong, at, LEN, 1);
	}
	for (uint32_t at = 20; at < LEN; at++)
		wrong[at] = (uint8_t)mixed(at);
	record = checked(wrong, LEN);
	assert_int_equal(record.verdict, FRAME_DAMAGED_UNLOCKED);
	snprintf(want, sizeof(want),
		 "gdrcap: unlocked: no phase of prbs31 fits the %u payload "
		 "bytes from offset 20 of the frame",
		 LEN - 20);
	comment_is(&record, wrong, LEN, want);
	custom.custom.self_phase = 0;
	custom.custom.sequence.bytes = 4;
	reference.layout = &own;
}

static void expected_from_a_file(void **state)
{
	static uint8_t data[64 + 304];
	const struct store_frame frames[] = { { .at = 0, .len = 40 },
					      { .at = 64, .len = LEN, .class_first = 1 } };
	const struct frame_store_view store = {
		.data = data,
		.frames = frames,
		.count = 2,
		.data_bytes = sizeof(data),
	};
	struct frame_record record = { .sequence = 1,
				       .offset = 100,
				       .wrong_bits = 1,
				       .count = 1,
				       .verdict = FRAME_DAMAGED_PAYLOAD,
				       .header_ok = 1 };
	uint8_t wrong[LEN];
	char want[COMMENT_BYTES], expected[32], got[32];

	for (uint32_t i = 0; i < LEN; i++)
		data[64 + i] = (uint8_t)mixed(i);
	memcpy(wrong, data + 64, LEN);
	wrong[100] ^= 4;
	record.expected = data[164];
	record.got = wrong[100];
	reference.expect = &store;
	snprintf(want, sizeof(want),
		 "gdrcap: damaged frame, frame 2 of the expected file: 1 wrong "
		 "bit, first at offset 100 of the frame: expected%s, got%s",
		 hex(expected, data + 164, 8), hex(got, wrong + 100, 8));
	comment_is(&record, wrong, LEN, want);
	/* Only so much of it is here. */
	snprintf(want, sizeof(want),
		 "gdrcap: damaged frame, frame 2 of the expected file: 1 wrong "
		 "bit, first at offset 100 of the frame: expected%s, got%s",
		 hex(expected, data + 164, 3), hex(got, wrong + 100, 3));
	comment_is(&record, wrong, 103, want);
	/* A short frame that somebody padded to 60 bytes, not with zeros only. */
	memset(wrong, 0, 60);
	memcpy(wrong, data, 40);
	wrong[58] = 1;
	record = (struct frame_record){ .sequence = 0,
					.offset = 58,
					.wrong_bits = 1,
					.got = 1,
					.verdict = FRAME_DAMAGED_PAYLOAD,
					.header_ok = 1 };
	comment_is(&record, wrong, 60,
		   "gdrcap: damaged frame, frame 1 of the expected file: 1 wrong "
		   "bit, first at offset 58 of the frame: expected 00 00, got 01 "
		   "00");
	/* What no file has. */
	record.sequence = 2;
	comment_is(&record, wrong, 60,
		   "gdrcap: damaged frame, frame 3 of the expected file: 1 wrong "
		   "bit, first at offset 58 of the frame: expected 00, got 01");
	record = (struct frame_record){ .verdict = FRAME_DAMAGED_HEADER };
	comment_is(&record, wrong, 60, "gdrcap: not in the expected file");
	reference.expect = NULL;
}

/* It is right now, so there is nothing to compare. */
static void stale_frames(void **state)
{
	const struct frame_record record = { .verdict = FRAME_DAMAGED_STALE,
					     .stream = 3,
					     .sequence = 1234,
					     .header_ok = 1,
					     .count = 1 };
	const struct frame_record unread = { .verdict = FRAME_DAMAGED_STALE, .count = 1 };
	uint8_t frame[LEN];

	pattern_make(PATTERN_PRBS31);
	frame_make(frame, 240);
	comment_is(&record, frame, LEN,
		   "gdrcap: stale, stream 3 sequence 1234: it was announced "
		   "before its bytes were there; this is what came");
	comment_is(&unread, frame, LEN,
		   "gdrcap: stale: it was announced before its bytes were "
		   "there; this is what came");
}

/* Whatever the record and the frame say, nothing is read that is not there. */
static void hostile(void **state)
{
	const struct comment_reference references[] = { { &own, &pattern, NULL },
							{ &custom, &pattern, NULL } };
	uint64_t random = 3;

	pattern_make(PATTERN_PRBS23);
	for (uint32_t i = 0; i < 20000; i++) {
		const uint32_t len = (uint32_t)random_below(&random, 120);
		uint8_t *frame = malloc(len ? len : 1);
		char text[COMMENT_BYTES];
		struct frame_record record;

		assert_non_null(frame);
		for (uint32_t b = 0; b < sizeof(record); b++)
			((uint8_t *)&record)[b] = (uint8_t)random_next(&random);
		record.verdict %= FRAME_VERDICTS + 1;
		record.header_ok &= 1;
		if (i & 1)
			record.offset %= 128;
		for (uint32_t b = 0; b < len; b++)
			frame[b] = (uint8_t)random_next(&random);
		if (len > 18 && (i & 2)) {
			frame_put16(frame + 12, FRAME_ETHERTYPE);
			frame_put16(frame + 14, FRAME_MAGIC);
			frame[16] = FRAME_VERSION;
		}
		custom.custom.self_phase = i >> 2 & 1;
		comment_damaged(text, &references[i & 1], &record, frame, len, len);
		assert_true(strncmp(text, "gdrcap: ", 8) == 0);
		free(frame);
	}
	custom.custom.self_phase = 0;
}

static void neighbours(void **state)
{
	char text[COMMENT_BYTES];

	comment_neighbour(text, 2);
	assert_string_equal(text, "gdrcap: 2 frames after a damaged one");
	comment_neighbour(text, -1);
	assert_string_equal(text, "gdrcap: 1 frame before a damaged one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payloads),	 cmocka_unit_test(changed_since),
		cmocka_unit_test(headers),	 cmocka_unit_test(lengths),
		cmocka_unit_test(custom_frames), cmocka_unit_test(expected_from_a_file),
		cmocka_unit_test(stale_frames),	 cmocka_unit_test(hostile),
		cmocka_unit_test(neighbours),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
