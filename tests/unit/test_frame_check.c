/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checkers say of each kind of frame, and that frame_check_ahead() equals frame_check(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

static void results_equal(const struct frame_result *a, const struct frame_result *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->header_ok, b->header_ok);
	assert_int_equal(a->sequence, b->sequence);
	assert_int_equal(a->stream, b->stream);
	assert_int_equal(a->payload_bytes, b->payload_bytes);
	assert_int_equal(a->wrong_bits, b->wrong_bits);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->expected, b->expected);
	assert_int_equal(a->got, b->got);
	assert_int_equal(a->phase_first, b->phase_first);
	assert_int_equal(a->phase_next, b->phase_next);
	assert_int_equal(a->detail, b->detail);
}

/* Both checkers, on a copy of exactly `len` bytes so that a sanitizer sees any read beyond. */
static struct frame_result both_check(const struct frame_layout *layout,
				      const struct pattern *pattern, const uint8_t *frame,
				      uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct frame_result slow, fast;

	assert_non_null(copy);
	memcpy(copy, frame, len);
	memset(&slow, 0x11, sizeof(slow));
	memset(&fast, 0x22, sizeof(fast));
	frame_check(layout, pattern, frame_crc32c_table, copy, len, &slow);
	frame_check_ahead(layout, pattern, copy, len, NULL, &fast);
	results_equal(&slow, &fast);
	if (len > FRAME_HEAD_BYTES_MAX) {
		/* in two parts, the rest alone in memory that ends with it */
		const uint32_t rest_len = len - FRAME_HEAD_BYTES_MAX;
		uint8_t *rest = malloc(rest_len);
		const struct frame_span span = { copy, rest, FRAME_HEAD_BYTES_MAX, 0 };

		assert_non_null(rest);
		memcpy(rest, copy + FRAME_HEAD_BYTES_MAX, rest_len);
		memset(copy + FRAME_HEAD_BYTES_MAX, 0x99, rest_len);
		memset(&fast, 0x33, sizeof(fast));
		frame_check_span(layout, pattern, &span, len, &fast);
		results_equal(&slow, &fast);
		free(rest);
	}
	free(copy);
	return slow;
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

struct sample {
	struct frame_layout layout;
	struct pattern pattern;
	uint8_t frame[200];
	uint32_t len;
};

static void sample_make(struct sample *s, enum frame_format format, uint16_t vlan)
{
	const struct frame_header header = {
		.sequence = 77,
		.position = 1234567,
		.stream = 3,
		.pattern = PATTERN_PRBS31,
		.payload_bytes = 60,
	};

	layout_make(&s->layout, format, vlan);
	pattern_make(&s->pattern, PATTERN_PRBS31);
	s->len = s->layout.own_offset + 36 + 60;
	frame_write(&s->layout, &s->pattern, s->frame, s->len, &header);
}

static void verdict_is(const struct sample *s, uint32_t len, enum frame_verdict verdict,
		       int header_ok)
{
	const struct frame_result r = both_check(&s->layout, &s->pattern, s->frame, len);

	assert_int_equal(r.verdict, verdict);
	assert_int_equal(r.header_ok, header_ok);
	assert_int_equal(r.sequence, header_ok ? 77 : 0);
	assert_int_equal(r.stream, header_ok ? 3 : 0);
	if (verdict != FRAME_DAMAGED_PAYLOAD) {
		assert_int_equal(r.wrong_bits, 0);
		assert_int_equal(r.expected | r.got, 0);
	}
	if (verdict == FRAME_DAMAGED_LENGTH || verdict == FRAME_DAMAGED_HEADER) {
		assert_int_equal(r.offset, s->layout.own_offset);
		assert_int_equal(r.payload_bytes, 0);
	}
}

/* Flips bits of one byte, and back. */
static void flip_verdict_is(struct sample *s, uint32_t at, uint8_t bits, enum frame_verdict verdict,
			    int header_ok)
{
	s->frame[at] ^= bits;
	verdict_is(s, s->len, verdict, header_ok);
	s->frame[at] ^= bits;
}

static void test_verdicts_of_lengths(void **state)
{
	static const uint16_t vlans[] = { 0, 100 };

	for (int format = FRAME_ETHERNET; format <= FRAME_IPV4_UDP; format++) {
		for (int v = 0; v < 2; v++) {
			struct sample s;

			sample_make(&s, (enum frame_format)format, vlans[v]);
			for (uint32_t len = 0; len <= s.len; len++) {
				if (len < s.layout.own_offset)
					verdict_is(&s, len, FRAME_FILTERED, 0);
				else if (len < s.layout.own_offset + 36)
					verdict_is(&s, len, FRAME_DAMAGED_LENGTH, 0);
				else if (len < s.len)
					verdict_is(&s, len, FRAME_DAMAGED_LENGTH, 1);
				else
					verdict_is(&s, len, FRAME_VALID, 1);
			}
			/* what follows the payload is not ours to judge */
			memset(s.frame + s.len, 0xee, 10);
			verdict_is(&s, s.len + 10, FRAME_VALID, 1);
			pattern_free(&s.pattern);
		}
	}
}

static void test_verdicts_of_custom_frames(void **state)
{
	struct sample s;

	sample_make(&s, FRAME_ETHERNET, 0);
	for (uint32_t at = 0; at < 12; at++)
		flip_verdict_is(&s, at, 0xff, FRAME_VALID, 1); /* addresses do not matter */
	flip_verdict_is(&s, 12, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 13, 0x80, FRAME_FILTERED, 0);
	pattern_free(&s.pattern);

	sample_make(&s, FRAME_ETHERNET, 0x2064);
	flip_verdict_is(&s, 13, 0x01, FRAME_FILTERED, 0); /* another tag protocol */
	flip_verdict_is(&s, 14, 0xf0, FRAME_VALID, 1); /* priority and DEI: switches rewrite them */
	flip_verdict_is(&s, 14, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 15, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 17, 0x01, FRAME_FILTERED, 0);
	pattern_free(&s.pattern);

	sample_make(&s, FRAME_IPV4_UDP, 0);
	flip_verdict_is(&s, 13, 0x06, FRAME_FILTERED, 0); /* ARP */
	flip_verdict_is(&s, 14, 0x03, FRAME_FILTERED, 0); /* IHL 6 */
	flip_verdict_is(&s, 14, 0x20, FRAME_FILTERED, 0); /* IP version 6 */
	flip_verdict_is(&s, 20, 0x40, FRAME_VALID, 1);	  /* don't fragment */
	flip_verdict_is(&s, 20, 0x20, FRAME_FILTERED, 0); /* more fragments */
	flip_verdict_is(&s, 20, 0x10, FRAME_FILTERED, 0); /* a later fragment */
	flip_verdict_is(&s, 21, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 23, 17 ^ 6, FRAME_FILTERED, 0); /* TCP */
	flip_verdict_is(&s, 34, 0xff, FRAME_VALID, 1);	    /* source port */
	flip_verdict_is(&s, 36, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 37, 0x01, FRAME_FILTERED, 0);
	pattern_free(&s.pattern);

	sample_make(&s, FRAME_IPV4_UDP, 7);
	flip_verdict_is(&s, 15, 0x01, FRAME_FILTERED, 0);
	flip_verdict_is(&s, 41, 0x01, FRAME_FILTERED, 0);
	pattern_free(&s.pattern);
}

static void own_crc_write(struct sample *s)
{
	uint8_t *own = s->frame + s->layout.own_offset;

	frame_put32(own + 32, crc_bitwise(0x82f63b78, own, 32));
}

static void test_verdicts_of_headers(void **state)
{
	struct sample s;
	uint8_t *own;

	sample_make(&s, FRAME_IPV4_UDP, 0);
	own = s.frame + s.layout.own_offset;
	for (uint32_t bit = 0; bit < 36 * 8; bit++)
		flip_verdict_is(&s, s.layout.own_offset + bit / 8, (uint8_t)(1u << bit % 8),
				FRAME_DAMAGED_HEADER, 0);
	/* with a right CRC */
	own[0] ^= 1;
	own_crc_write(&s);
	verdict_is(&s, s.len, FRAME_DAMAGED_HEADER, 0);
	own[0] ^= 1;
	own[2] = 2;
	own_crc_write(&s);
	verdict_is(&s, s.len, FRAME_DAMAGED_HEADER, 0);
	own[2] = 1;
	own[3] = PATTERN_PRBS23;
	own_crc_write(&s);
	verdict_is(&s, s.len, FRAME_DAMAGED_HEADER, 1);
	own[3] = PATTERN_PRBS31;
	own[7]++; /* one byte more than there is */
	own_crc_write(&s);
	verdict_is(&s, s.len, FRAME_DAMAGED_LENGTH, 1);
	own[6] = own[7] = 0xff;
	own_crc_write(&s);
	verdict_is(&s, s.len, FRAME_DAMAGED_LENGTH, 1);
	pattern_free(&s.pattern);
}

static void test_verdicts_of_payloads(void **state)
{
	struct frame_result r;
	struct sample s;
	uint32_t start;

	sample_make(&s, FRAME_ETHERNET, 0);
	start = s.layout.own_offset + 36;
	for (uint32_t bit = 0; bit < 60 * 8; bit++) {
		const uint32_t at = start + bit / 8;
		const uint8_t mask = (uint8_t)(1u << bit % 8);

		s.frame[at] ^= mask;
		r = both_check(&s.layout, &s.pattern, s.frame, s.len);
		assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
		assert_int_equal(r.header_ok, 1);
		assert_int_equal(r.sequence, 77);
		assert_int_equal(r.stream, 3);
		assert_int_equal(r.payload_bytes, 60);
		assert_int_equal(r.wrong_bits, 1);
		assert_int_equal(r.offset, at);
		assert_int_equal(r.got, s.frame[at]);
		assert_int_equal(r.expected, s.frame[at] ^ mask);
		s.frame[at] ^= mask;
	}
	pattern_free(&s.pattern);

	/* nothing is compared, and that is what the result says */
	pattern_make(&s.pattern, PATTERN_NONE);
	s.frame[14 + 3] = PATTERN_NONE;
	s.frame[start] ^= 1;
	own_crc_write(&s);
	r = both_check(&s.layout, &s.pattern, s.frame, s.len);
	assert_int_equal(r.verdict, FRAME_VALID);
	assert_int_equal(r.payload_bytes, 0);
	pattern_free(&s.pattern);
}

static void test_proof_frame(void **state)
{
	const struct frame_header header = { 0 };
	uint8_t frame[80] = { 0 };
	struct frame_layout layout;
	struct frame_result r;
	struct pattern pattern;

	frame_layout_proof(&layout);
	pattern_make(&pattern, PATTERN_COUNTER8);
	frame_write(&layout, &pattern, frame, 74, &header);
	for (unsigned int i = 0; i < 32; i++)
		assert_int_equal(frame[42 + i], i);
	assert_int_equal(field(frame + 36, 2), 12345);
	assert_int_equal(field(frame + 38, 2), 40);
	assert_int_equal(field(frame + 16, 2), 60);
	assert_int_equal(internet_checksum(0, frame + 14, 20), 0);
	for (uint32_t len = 0; len <= 80; len++) {
		r = both_check(&layout, &pattern, frame, len);
		assert_int_equal(r.verdict, len < 42   ? FRAME_FILTERED
					    : len < 74 ? FRAME_DAMAGED_LENGTH
						       : FRAME_VALID);
		assert_int_equal(r.header_ok, len >= 42);
		assert_int_equal(r.payload_bytes, len < 74 ? 0 : 32);
	}
	frame[45] ^= 0x81;
	r = both_check(&layout, &pattern, frame, 74);
	assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(r.wrong_bits, 2);
	assert_int_equal(r.offset, 45);
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.got, 0x82);
	pattern_free(&pattern);
}

/* Valid, damaged, cut and frames of a custom layout of every format and pattern: both checkers agree. */
static void test_checkers_agree(void **state)
{
	static uint8_t frame[LEN_MAX];
	struct frame_layout layouts[5];
	unsigned int seen[FRAME_VERDICTS] = { 0 };

	layout_make(&layouts[0], FRAME_ETHERNET, 0);
	layout_make(&layouts[1], FRAME_ETHERNET, 100);
	layout_make(&layouts[2], FRAME_IPV4_UDP, 0);
	layout_make(&layouts[3], FRAME_IPV4_UDP, 100);
	frame_layout_proof(&layouts[4]);
	for (int kind = 0; kind < PATTERN_FILE; kind++) {
		struct pattern pattern;

		pattern_make(&pattern, (enum pattern_kind)kind);
		for (int k = 0; k < 3000; k++) {
			const struct frame_layout *layout = &layouts[random64() % 5];
			uint32_t len = 60 + (uint32_t)(random64() % (k % 50 ? 300 : LEN_MAX - 59));
			uint64_t damages = random64() % 4;
			const struct frame_header header = {
				.sequence = random64(),
				.position = random64() >> random64() % 64,
				.stream = (uint16_t)random64(),
				.pattern = (uint8_t)(random64() % 20  ? (uint64_t)kind
						     : random64() % 2 ? FRAME_PATTERN_END
								      : random64()),
				.payload_bytes = (uint16_t)(random64() % 8 ? 0xffff : random64()),
			};

			frame_write(layout, &pattern, frame, len, &header);
			while (damages--) {
				const uint64_t at = random64() % (random64() % 2 ? 90 : len) % len;

				frame[at] = (uint8_t)random64();
			}
			if (random64() % 8 == 0)
				len = (uint32_t)(random64() % len);
			if (random64() % 8 == 0)
				layout = &layouts[random64() % 5];
			seen[both_check(layout, &pattern, frame, len).verdict]++;
		}
		pattern_free(&pattern);
	}
	for (int i = 0; i < FRAME_VERDICTS; i++)
		assert_true(i == FRAME_DAMAGED_UNLOCKED || i == FRAME_DAMAGED_STALE
				    ? !seen[i]
				    : seen[i] > 400);
}

/* The end of a stream: no payload, whatever the header claims; not of a frame that is cut. */
static void test_end_frames(void **state)
{
	static const uint64_t positions[] = { 3, UINT32_MAX - 1, UINT32_MAX, 1ull << 32,
					      UINT64_MAX };
	const uint32_t clipped[] = { 3, UINT32_MAX - 1, UINT32_MAX, UINT32_MAX, UINT32_MAX };

	for (unsigned int i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
		const struct frame_header header = { .sequence = 1000000,
						     .stream = 9,
						     .position = positions[i],
						     .pattern = FRAME_PATTERN_END };
		struct frame_layout layout;
		struct pattern pattern;
		uint8_t frame[64];
		struct frame_result r;

		layout_make(&layout, FRAME_ETHERNET, 0);
		pattern_make(&pattern, i % 2 ? PATTERN_NONE : PATTERN_PRBS31);
		frame_write(&layout, &pattern, frame, 60, &header);
		assert_int_equal(frame_be16(frame + 14 + 6), 0);
		for (unsigned int at = 50; at < 60; at++)
			assert_int_equal(frame[at], 0);
		r = both_check(&layout, &pattern, frame, 60);
		assert_int_equal(r.verdict, FRAME_END);
		assert_int_equal(r.header_ok, 1);
		assert_int_equal(r.sequence, 1000000);
		assert_int_equal(r.stream, 9);
		assert_int_equal(r.detail, clipped[i]);
		assert_int_equal(r.payload_bytes | r.wrong_bits | r.offset | r.phase_first, 0);
		assert_false(frame_is_damaged(r.verdict));
		frame[14 + 16] ^= 1; /* its position: the CRC32C tells */
		r = both_check(&layout, &pattern, frame, 60);
		assert_int_equal(r.verdict, FRAME_DAMAGED_HEADER);
		assert_int_equal(r.header_ok | r.detail, 0);
		pattern_free(&pattern);
	}
}

/* Rules sort out frames of the own formats too. */
static void test_match_of_own_frames(void **state)
{
	struct sample s;

	sample_make(&s, FRAME_IPV4_UDP, 100);
	s.layout.match.count = 1;
	s.layout.match.rule[0].fields = FRAME_MATCH_VLAN | FRAME_MATCH_DST_PORT;
	s.layout.match.rule[0].vlan = 100;
	s.layout.match.rule[0].dst_port = 12345;
	verdict_is(&s, s.len, FRAME_VALID, 1);
	s.layout.match.rule[0].vlan = 101;
	verdict_is(&s, s.len, FRAME_FILTERED, 0);
	verdict_is(&s, 50, FRAME_FILTERED, 0);
	s.layout.match.rule[1].fields = 0;
	s.layout.match.count = 2;
	verdict_is(&s, s.len, FRAME_VALID, 1);
	verdict_is(&s, 50, FRAME_DAMAGED_LENGTH, 0);
	pattern_free(&s.pattern);
}

/* struct frame_look says of each frame what frame_recognise() says. */
static void test_look(void **state)
{
	static const uint16_t types[] = { FRAME_ETHERTYPE, 0x0800, 0x8100, 0x6743 };
	uint32_t meant = 0, tries = 400000;

	for (uint32_t n = 0; n < tries; n++) {
		const struct frame_config config = {
			.format = n & 1 ? FRAME_IPV4_UDP : FRAME_ETHERNET,
			.vlan = n & 2 ? (uint16_t)(1 + random64() % 4094) : 0,
			.dst_port = (uint16_t)random64(),
			.ethertype = n & 4 ? 0x9000 : 0,
		};
		uint8_t frame[FRAME_MIN_BYTES + 32] = { 0 };
		struct frame_layout layout;
		struct frame_look look;
		bool same = true, recognised;

		assert_int_equal(frame_layout_init(&layout, &config), 0);
		frame_look_init(&look, &layout);
		memcpy(frame, layout.templ, sizeof(layout.templ));
		/* what may differ does: fields that are not asked for, and one bit, byte or type */
		for (uint32_t i = 0; i < 12; i++)
			frame[i] = (uint8_t)random64();
		if (random64() % 4)
			frame[12 + random64() % (layout.own_offset - 12)] ^=
				(uint8_t)(1u << random64() % 8);
		if (random64() % 16 == 0)
			frame[random64() % sizeof(layout.templ)] = (uint8_t)random64();
		if (random64() % 16 == 0)
			frame_put16(frame + 12 + 4 * (random64() % 2), types[random64() % 4]);
		for (uint32_t w = 0; w < FRAME_LOOK_WORDS; w++) {
			const uint32_t word = pattern_swap32(frame_be32(frame + 4 * w));

			same = same && (word & look.mask[w]) == look.want[w];
		}
		recognised = frame_recognise(&layout, frame, sizeof(frame)) == FRAME_VALID;
		if (same != recognised)
			fail_msg("try %u: words say %d, the frame's bytes %d", n, same, recognised);
		meant += recognised;
	}
	assert_in_range(meant, tries / 4, tries * 3 / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts_of_lengths),
		cmocka_unit_test(test_verdicts_of_custom_frames),
		cmocka_unit_test(test_verdicts_of_headers),
		cmocka_unit_test(test_verdicts_of_payloads),
		cmocka_unit_test(test_proof_frame),
		cmocka_unit_test(test_checkers_agree),
		cmocka_unit_test(test_end_frames),
		cmocka_unit_test(test_match_of_own_frames),
		cmocka_unit_test(test_look),
	};

	return cmocka_run_group_tests_name("frame_check", tests, NULL, NULL);
}
