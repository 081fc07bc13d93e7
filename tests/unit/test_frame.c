/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The own frame. Checksums and the header's layout are computed a second time here, from the RFCs
 * and docs/frame-format.md; the whole frame printed in that document is asserted byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pattern/frame.h"

#define LEN_MAX 9212u

static uint64_t random_state = 7;

static uint64_t random64(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void layout_make(struct frame_layout *layout, enum frame_format format, uint16_t vlan)
{
	const struct frame_config config = { .format = format, .vlan = vlan };

	assert_int_equal(frame_layout_init(layout, &config), 0);
}

static void pattern_make(struct pattern *pattern, enum pattern_kind kind)
{
	const struct pattern_config config = {
		.kind = kind, .restart = kind == PATTERN_COUNTER8, .invert = -1, .seed = 5
	};

	assert_int_equal(pattern_init(pattern, &config), 0);
}

/* On a copy of exactly `len` bytes, so that a sanitizer sees any read beyond. */
static struct frame_result fast_check(const struct frame_layout *layout,
				      const struct pattern *pattern, const uint8_t *frame,
				      uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct frame_result result;

	assert_non_null(copy);
	memcpy(copy, frame, len);
	frame_check_ahead(layout, pattern, copy, len, NULL, &result);
	free(copy);
	return result;
}

/* ---- second definitions ---- */

static uint32_t crc_bitwise(uint32_t polynomial, const uint8_t *bytes, size_t n)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
	}
	return ~crc;
}

/* RFC 1071, a byte at a time. Over correct data including its checksum: 0. */
static uint32_t internet_checksum(uint32_t start, const uint8_t *bytes, size_t n)
{
	uint32_t sum = start;

	for (size_t i = 0; i < n; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		while (sum > 0xffff)
			sum -= 0xffff;
	}
	return ~sum & 0xffff;
}

static uint64_t field(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

/* ---- tests ---- */

static void test_crc32c(void **state)
{
	uint8_t bytes[32];

	for (unsigned int i = 0; i < 256; i++) {
		const uint8_t byte = (uint8_t)i;

		/* one byte's CRC is a table entry, but for the register's first and last value */
		assert_int_equal(frame_crc32c(frame_crc32c_table, &byte, 1),
				 crc_bitwise(0x82f63b78, &byte, 1));
	}
	assert_int_equal(frame_crc32c(frame_crc32c_table, (const uint8_t *)"123456789", 9),
			 0xe3069283);
	/* RFC 3720 B.4 */
	memset(bytes, 0, 32);
	assert_int_equal(frame_crc32c(frame_crc32c_table, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, 32);
	assert_int_equal(frame_crc32c(frame_crc32c_table, bytes, 32), 0x62a8ab43);
	for (unsigned int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(frame_crc32c(frame_crc32c_table, bytes, 32), 0x46dd794e);
	for (unsigned int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	assert_int_equal(frame_crc32c(frame_crc32c_table, bytes, 32), 0x113fdb5c);
}

/* docs/frame-format.md prints this frame. */
static void test_documented_frame(void **state)
{
	static const uint8_t documented[64] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88,
		0xb5, 0x67, 0x43, 0x01, 0x07, 0x00, 0x01, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x18,
		0x86, 0x72, 0x51, 0xed, 0xfa, 0x00, 0x00, 0x28, 0x20, 0x47, 0xaa, 0x00, 0x00,
		0x00, 0x01, 0xff, 0xff, 0xff, 0xe3, 0xff, 0xff, 0x71, 0x97, 0x68, 0x79,
	};
	const struct frame_header header = {
		.stream = 1,
		.pattern = PATTERN_PRBS31,
		.payload_bytes = 10,
		.time_ns = 1767225600000000000ull, /* 2026-01-01 00:00:00 UTC */
	};
	struct frame_layout layout;
	struct frame_result result;
	struct pattern pattern;
	uint8_t frame[60];
	uint32_t fcs;

	layout_make(&layout, FRAME_ETHERNET, 0);
	pattern_make(&pattern, PATTERN_PRBS31);
	memset(frame, 0x99, sizeof(frame));
	frame_write(&layout, &pattern, frame, sizeof(frame), &header);
	assert_memory_equal(frame, documented, 60);
	fcs = crc_bitwise(0xedb88320, frame, 60); /* of Ethernet: sent low byte first */
	for (int i = 0; i < 4; i++)
		assert_int_equal(documented[60 + i], fcs >> 8 * i & 0xff);
	result = fast_check(&layout, &pattern, documented, 60);
	assert_int_equal(result.verdict, FRAME_VALID);
	assert_int_equal(result.header_ok, 1);
	assert_int_equal(result.stream, 1);
	assert_int_equal(result.sequence, 0);
	assert_int_equal(result.payload_bytes, 10);
	pattern_free(&pattern);
}

/* And these first 16 bytes of each pattern, at position 0, stream 1, sequence 0, seed 0. */
static void test_documented_patterns(void **state)
{
	static const struct {
		enum pattern_kind kind;
		uint8_t bytes[16];
	} documented[] = {
		{ PATTERN_PRBS7,
		  { 0xfe, 0x04, 0x18, 0x51, 0xe4, 0x59, 0xd4, 0xfa, 0x1c, 0x49, 0xb5, 0xbd, 0x8d,
		    0x2e, 0xe6, 0x55 } },
		{ PATTERN_PRBS9,
		  { 0xff, 0x83, 0xdf, 0x17, 0x32, 0x09, 0x4e, 0xd1, 0xe7, 0xcd, 0x8a, 0x91, 0xc6,
		    0xd5, 0xc4, 0xc4 } },
		{ PATTERN_PRBS11,
		  { 0xff, 0xe0, 0x0c, 0x07, 0x83, 0x31, 0xfe, 0xc0, 0xb8, 0x4b, 0x2c, 0xf3, 0xe7,
		    0x8f, 0x36, 0x7d } },
		{ PATTERN_PRBS15,
		  { 0x00, 0x01, 0xff, 0xfb, 0xff, 0xe7, 0xff, 0xaf, 0xfe, 0x1f, 0xfb, 0xbf, 0xe6,
		    0x7f, 0xaa, 0xfe } },
		{ PATTERN_PRBS20,
		  { 0xff, 0xff, 0xf1, 0xc7, 0x1c, 0x8d, 0xc8, 0xd2, 0x8d, 0x28, 0x2d, 0x7d, 0x26,
		    0x15, 0x7d, 0xda } },
		{ PATTERN_PRBS23,
		  { 0x00, 0x00, 0x01, 0xff, 0xff, 0x83, 0xff, 0xe0, 0x07, 0xf8, 0x3e, 0x0e, 0x00,
		    0x00, 0x63, 0xff } },
		{ PATTERN_PRBS31,
		  { 0x00, 0x00, 0x00, 0x01, 0xff, 0xff, 0xff, 0xe3, 0xff, 0xff, 0xfe, 0x07, 0xff,
		    0xff, 0xe3, 0x8f } },
		{ PATTERN_COUNTER8,
		  { 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c,
		    0x0d, 0x0e, 0x0f } },
		{ PATTERN_COUNTER16_BE,
		  { 0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00,
		    0x06, 0x00, 0x07 } },
		{ PATTERN_COUNTER16_LE,
		  { 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06,
		    0x00, 0x07, 0x00 } },
		{ PATTERN_COUNTER32_BE,
		  { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00,
		    0x00, 0x00, 0x03 } },
		{ PATTERN_COUNTER32_LE,
		  { 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03,
		    0x00, 0x00, 0x00 } },
		{ PATTERN_COUNTER64_BE,
		  { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		    0x00, 0x00, 0x01 } },
		{ PATTERN_COUNTER64_LE,
		  { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
		    0x00, 0x00, 0x00 } },
		{ PATTERN_CONSTANT,
		  { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		    0x00, 0x00, 0x00 } },
		{ PATTERN_WALKING_ONE,
		  { 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, 0x80, 0x40, 0x20, 0x10, 0x08,
		    0x04, 0x02, 0x01 } },
		{ PATTERN_RANDOM,
		  { 0xec, 0xc5, 0xd0, 0x6a, 0x49, 0x62, 0x23, 0xea, 0xf5, 0x59, 0xa4, 0x73, 0xb3,
		    0x44, 0x49, 0x07 } },
	};
	const struct pattern_place place = { .stream = 1 };

	for (size_t i = 0; i < sizeof(documented) / sizeof(documented[0]); i++) {
		const struct pattern_config config = { .kind = documented[i].kind, .invert = -1 };
		struct pattern pattern;
		uint8_t bytes[16];

		assert_int_equal(pattern_init(&pattern, &config), 0);
		pattern_fill(&pattern, &place, bytes, 16);
		assert_memory_equal(bytes, documented[i].bytes, 16);
		pattern_free(&pattern);
	}
}

static void test_layout(void **state)
{
	const struct frame_config refused[] = {
		{ .format = (enum frame_format)3 },
		{ .ethertype = 0x5ff },
		{ .ethertype = 0x8100 },
		{ .ethertype = 0x88a8 },
		{ .vlan = 0x0fff },
		{ .src_mac = { 1, 0, 0, 0, 0, 1 } },
	};
	static const struct {
		enum frame_format format;
		uint16_t vlan;
		uint32_t own_offset, min_bytes;
	} right[] = {
		{ FRAME_ETHERNET, 0, 14, 64 },
		{ FRAME_ETHERNET, 0x6123, 18, 68 },
		{ FRAME_IPV4_UDP, 0, 42, 82 },
		{ FRAME_IPV4_UDP, 5, 46, 86 },
	};
	struct frame_layout layout;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_true(frame_layout_init(&layout, &refused[i]) < 0);
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		const uint32_t overhead = right[i].own_offset + 36;

		layout_make(&layout, right[i].format, right[i].vlan);
		assert_int_equal(layout.own_offset, right[i].own_offset);
		assert_int_equal(frame_min_bytes(&layout), right[i].min_bytes);
		assert_int_equal(frame_payload_bytes(&layout, overhead - 1), 0);
		assert_int_equal(frame_payload_bytes(&layout, overhead), 0);
		assert_int_equal(frame_payload_bytes(&layout, overhead + 1), 1);
		assert_int_equal(frame_payload_bytes(&layout, LEN_MAX), LEN_MAX - overhead);
		assert_int_equal(frame_payload_bytes(&layout, UINT32_MAX), LEN_MAX - overhead);
	}
	layout_make(&layout, FRAME_CUSTOM, 0);
	assert_int_equal(layout.own_offset | layout.custom.payload | layout.match.count, 0);
	layout.custom.payload = 18;
	assert_int_equal(frame_payload_bytes(&layout, 17), 0);
	assert_int_equal(frame_payload_bytes(&layout, 60), 42);
	layout.custom.payload_bytes = 40;
	assert_int_equal(frame_payload_bytes(&layout, 57), 0);
	assert_int_equal(frame_payload_bytes(&layout, 60), 40);
	frame_layout_proof(&layout);
	assert_int_equal(frame_min_bytes(&layout), 78);
	assert_int_equal(frame_payload_bytes(&layout, 73), 0);
	assert_int_equal(frame_payload_bytes(&layout, 74), 32);
	assert_int_equal(frame_payload_bytes(&layout, 1000), 32);
}

static void test_header_on_the_wire(void **state)
{
	struct frame_header header = {
		.sequence = 0x0102030405060708ull,
		.position = 0x1112131415161718ull,
		.time_ns = 0x2122232425262728ull,
		.stream = 0x3132,
		.pattern = PATTERN_COUNTER8,
		.payload_bytes = 100,
	};
	const struct frame_config config = {
		.format = FRAME_IPV4_UDP,
		.vlan = 0x6064,
		.src_mac = { 0x12, 1, 2, 3, 4, 5 },
		.dst_mac = { 0x22, 1, 2, 3, 4, 5 },
		.src_ip = 0x0a000001,
		.dst_ip = 0x0a000002,
		.src_port = 1000,
		.dst_port = 2000,
	};
	uint8_t frame[300], gpu[300];
	struct frame_layout layout;
	struct pattern pattern;
	const uint8_t *own = frame + 46;

	assert_int_equal(frame_layout_init(&layout, &config), 0);
	pattern_make(&pattern, PATTERN_COUNTER8);
	memset(frame, 0x99, sizeof(frame));
	frame_write(&layout, &pattern, frame, 200, &header);
	assert_memory_equal(frame, "\x22\x01\x02\x03\x04\x05\x12\x01\x02\x03\x04\x05", 12);
	assert_memory_equal(frame + 12, "\x81\x00\x60\x64\x08\x00\x45\x00", 8);
	assert_int_equal(field(frame + 20, 2), 20 + 8 + 36 + 100); /* the padding is Ethernet's */
	assert_int_equal(field(frame + 26, 2), 64 << 8 | 17);
	assert_int_equal(internet_checksum(0, frame + 18, 20), 0);
	assert_int_equal(field(frame + 30, 8), 0x0a0000010a000002ull);
	assert_int_equal(field(frame + 38, 4), (1000 + 0x3132) << 16 | 2000);
	assert_int_equal(field(frame + 42, 2), 8 + 36 + 100);
	assert_int_equal(field(own, 8), 0x6743010800000064ull | 0x3132ull << 16);
	assert_int_equal(field(own + 8, 8), header.sequence);
	assert_int_equal(field(own + 16, 8), header.position);
	assert_int_equal(field(own + 24, 8), header.time_ns);
	assert_int_equal(field(own + 32, 4), crc_bitwise(0x82f63b78, own, 32));
	/* 1 follows the last port */
	header.stream = 65535 - 1000 + 2;
	frame_write(&layout, &pattern, frame, 200, &header);
	assert_int_equal(field(frame + 38, 2), 2);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(own[36 + i], i);
	for (unsigned int i = 182; i < 200; i++)
		assert_int_equal(frame[i], 0);
	for (unsigned int i = 200; i < 300; i++)
		assert_int_equal(frame[i], 0x99);
	/* what a kernel writes is the same but for payload, padding and UDP checksum */
	memset(gpu, 0x99, sizeof(gpu));
	assert_int_equal(frame_write_headers(&layout, frame_crc32c_table, gpu, 200, &header), 82);
	assert_int_equal(field(gpu + 44, 2), 0);
	memset(frame + 44, 0, 2);
	assert_memory_equal(gpu, frame, 82);
	for (unsigned int i = 82; i < 300; i++)
		assert_int_equal(gpu[i], 0x99);
	pattern_free(&pattern);
}

static void test_udp_checksum(void **state)
{
	struct frame_layout layout;
	struct pattern pattern;
	uint8_t frame[LEN_MAX];
	int all_ones = 0;

	layout_make(&layout, FRAME_IPV4_UDP, 0);
	pattern_make(&pattern, PATTERN_RANDOM);
	/* many, so that one of them has a checksum of 0, which is sent as ffff */
	for (uint64_t k = 0; k < 200000; k++) {
		const uint32_t len = k % 1000 ? 78 + (uint32_t)(random64() % 8)
					      : 78 + (uint32_t)(random64() % (LEN_MAX - 77));
		const struct frame_header header = {
			.sequence = k,
			.pattern = PATTERN_RANDOM,
			.payload_bytes = (uint16_t)(len - 78),
		};
		uint32_t pseudo = 17, sent;

		frame_write(&layout, &pattern, frame, len, &header);
		for (unsigned int i = 26; i < 34; i += 2)
			pseudo += (uint32_t)field(frame + i, 2);
		pseudo += len - 34;
		sent = (uint32_t)field(frame + 40, 2);
		assert_int_not_equal(sent, 0);
		assert_int_equal(internet_checksum(pseudo, frame + 34, len - 34), 0);
		memset(frame + 40, 0, 2);
		all_ones += sent == 0xffff;
	}
	assert_true(all_ones > 0);
	pattern_free(&pattern);
}

/* Any length is safe, and what does not fit is cut off. */
static void test_write_hostile_lengths(void **state)
{
	const struct frame_header header = { .pattern = PATTERN_PRBS31, .payload_bytes = 0xffff };
	struct frame_layout layouts[3];
	struct frame_result result;
	struct pattern pattern;

	layout_make(&layouts[0], FRAME_ETHERNET, 0);
	layout_make(&layouts[1], FRAME_IPV4_UDP, 9);
	frame_layout_proof(&layouts[2]);
	pattern_make(&pattern, PATTERN_PRBS31);
	for (size_t i = 0; i < 3; i++) {
		const uint32_t start = layouts[i].own_offset + (layouts[i].raw ? 32 : 36);

		for (uint32_t len = 0; len <= LEN_MAX; len += len < 300 ? 1 : 99) {
			uint8_t *frame = malloc(len ? len : 1);

			assert_non_null(frame);
			memset(frame, 0x99, len);
			frame_write(&layouts[i], &pattern, frame, len, &header);
			for (uint32_t b = 0; len < start && b < len; b++)
				assert_int_equal(frame[b], 0);
			if (len >= start && !layouts[i].raw) {
				result = fast_check(&layouts[i], &pattern, frame, len);
				assert_int_equal(result.verdict, FRAME_VALID);
				assert_int_equal(result.payload_bytes, len - start);
			}
			free(frame);
		}
	}
	{
		uint8_t *frame = malloc(LEN_MAX);

		assert_non_null(frame);
		frame_write(&layouts[0], &pattern, frame, UINT32_MAX, &header);
		result = fast_check(&layouts[0], &pattern, frame, LEN_MAX);
		assert_int_equal(result.verdict, FRAME_VALID);
		assert_int_equal(result.payload_bytes, LEN_MAX - 50);
		free(frame);
	}
	pattern_free(&pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_documented_frame),
		cmocka_unit_test(test_documented_patterns),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_header_on_the_wire),
		cmocka_unit_test(test_udp_checksum),
		cmocka_unit_test(test_write_hostile_lengths),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
