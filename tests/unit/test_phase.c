/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The phase of a PRBS, found in the data: against the shift register of pattern_reference.h, which
 * is clocked bit by bit.
 */
#include "pattern_reference.h"
#include "pattern/phase.h"

#define START 42u /* of the payload in its frame */

static void results_equal(const struct frame_result *a, const struct frame_result *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->payload_bytes, b->payload_bytes);
	assert_int_equal(a->wrong_bits, b->wrong_bits);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->expected, b->expected);
	assert_int_equal(a->got, b->got);
	assert_int_equal(a->phase_first, b->phase_first);
	assert_int_equal(a->phase_next, b->phase_next);
	assert_int_equal(a->detail, b->detail);
}

/* Both checkers, on a copy of exactly so many bytes. */
static struct frame_result both_check(const struct pattern *pattern, const uint8_t *payload,
				      uint32_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	struct frame_result slow, fast;

	assert_non_null(copy);
	memcpy(copy, payload, bytes);
	memset(&slow, 0x11, sizeof(slow));
	memset(&fast, 0x22, sizeof(fast));
	phase_check(pattern, copy, bytes, START, &slow);
	phase_check_ahead(pattern, copy, bytes, START, NULL, &fast);
	results_equal(&slow, &fast);
	free(copy);
	return slow;
}

/* `bytes` of the stream from bit `bit` on. */
static void stream_fill(size_t i, int inverted, uint64_t bit, uint8_t *to, size_t bytes)
{
	struct shift_register r = register_at(prbs[i].degree, prbs[i].tap, bit);

	while (bytes--)
		*to++ = register_byte(&r, inverted);
}

/* The 32 uninverted bits from bit `bit` on. */
static uint32_t phase_at(size_t i, uint64_t bit)
{
	uint8_t bytes[4];

	stream_fill(i, 0, bit, bytes, 4);
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static uint64_t bit_random(size_t i)
{
	return random64() % ((1ull << prbs[i].degree) - 1);
}

static void test_steps(void **state)
{
	for (size_t i = 0; i < PRBS_COUNT; i++) {
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		for (int round = 0; round < 200; round++) {
			const uint64_t period = pattern.period, bit = bit_random(i);
			const uint32_t phase = phase_at(i, bit);

			assert_true(phase_is_one(&pattern, phase));
			assert_int_equal(phase_step(&pattern, phase), phase_at(i, bit + 32));
			assert_int_equal(phase_step_back(&pattern, phase),
					 phase_at(i, bit + 32 * period - 32));
			assert_int_equal(phase_skip(&pattern, phase, (uint32_t)round % 32),
					 phase_at(i, bit + (uint64_t)round % 32));
			/* no bit can be another one */
			for (uint32_t b = 0; b < 32; b++) {
				const uint32_t other = phase ^ 1u << b;

				assert_false(phase_is_one(&pattern, other) &&
					     phase_step(&pattern, other) == phase_at(i, bit + 32));
			}
		}
		assert_false(phase_is_one(&pattern, 0));
		pattern_free(&pattern);
	}
}

static void test_jumps(void **state)
{
	static const int64_t distances[] = { 0,	       1,	  -1,	     4,
					     -4,       1458,	  -1458,     9200000,
					     -9200000, INT32_MAX, INT64_MAX, INT64_MIN };

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		for (size_t d = 0; d < sizeof(distances) / sizeof(distances[0]); d++) {
			const int64_t period = (int64_t)pattern.period;
			const __int128 bits = (__int128)distances[d] * 8;
			const uint64_t on = (uint64_t)((bits % period + period) % period);
			struct phase_jump jump;

			phase_jump_init(&jump, &pattern, distances[d]);
			for (int round = 0; round < 20; round++) {
				const uint64_t bit = bit_random(i);

				assert_int_equal(phase_jump_apply(&jump, phase_at(i, bit)),
						 phase_at(i, bit + on));
			}
			assert_int_equal(phase_jump_apply(&jump, 0), 0);
		}
		pattern_free(&pattern);
	}
}

static void test_right_payloads(void **state)
{
	static uint8_t payload[MAX_BYTES];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		for (int invert = 0; invert <= 1; invert++) {
			struct pattern pattern;

			pattern_make(&pattern, prbs[i].kind, 0, invert);
			for (uint32_t bytes = 0; bytes < MAX_BYTES;
			     bytes += bytes < 300 ? 1 : 977) {
				const uint64_t bit = bit_random(i);
				struct frame_result r;

				stream_fill(i, invert, bit, payload, bytes);
				r = both_check(&pattern, payload, bytes);
				if (bytes < 12) {
					assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
					assert_int_equal(r.payload_bytes, 0);
					assert_int_equal(r.detail, bytes);
					assert_int_equal(r.offset, START);
					continue;
				}
				assert_int_equal(r.verdict, FRAME_VALID);
				assert_int_equal(r.payload_bytes, bytes);
				assert_int_equal(r.wrong_bits | r.offset | r.detail, 0);
				assert_int_equal(r.phase_first, phase_at(i, bit));
				assert_int_equal(r.phase_next, phase_at(i, bit + 8ull * bytes));
			}
			pattern_free(&pattern);
		}
	}
}

/* Single wrong bits at every place of a payload. */
static void test_one_wrong_bit(void **state)
{
	const uint32_t bytes = 63;
	uint8_t payload[63];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t bit = bit_random(i);
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		stream_fill(i, prbs[i].inverted, bit, payload, bytes);
		for (uint32_t b = 0; b < 8 * bytes; b++) {
			const uint8_t flip = (uint8_t)(0x80 >> b % 8);
			struct frame_result r;

			payload[b / 8] ^= flip;
			r = both_check(&pattern, payload, bytes);
			payload[b / 8] ^= flip;
			assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
			assert_int_equal(r.payload_bytes, bytes);
			assert_int_equal(r.wrong_bits, 1);
			assert_int_equal(r.offset, START + b / 8);
			assert_int_equal(r.expected, payload[b / 8]);
			assert_int_equal(r.got, payload[b / 8] ^ flip);
			assert_int_equal(r.phase_first, phase_at(i, bit));
			assert_int_equal(r.phase_next, phase_at(i, bit + 8 * bytes));
		}
		pattern_free(&pattern);
	}
}

/* Planted errors of every number: exact, until no three words in a row are left or too much is
 * wrong. */
static void test_planted_errors(void **state)
{
	static uint8_t right[MAX_BYTES], payload[MAX_BYTES];
	unsigned int locked = 0, unlocked = 0;

	for (int round = 0; round < 4000; round++) {
		const size_t i = random64() % PRBS_COUNT;
		const uint32_t bytes =
			12 + (uint32_t)(random64() % (round % 16 ? 400 : MAX_BYTES - 12));
		const uint64_t bit = bit_random(i);
		const uint32_t flips =
			1 + (uint32_t)(random64() % (random64() % 2 ? 8 : 8 * bytes / 6));
		uint32_t wrong = 0, first = bytes, best = 0, good = 0;
		struct pattern pattern;
		struct frame_result r;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		stream_fill(i, prbs[i].inverted, bit, right, bytes);
		memcpy(payload, right, bytes);
		for (uint32_t f = 0; f < flips; f++)
			payload[random64() % bytes] ^= (uint8_t)(1u << random64() % 8);
		for (uint32_t at = 0; at < bytes; at++) {
			wrong += (uint32_t)__builtin_popcount(payload[at] ^ right[at]);
			if (payload[at] != right[at] && first == bytes)
				first = at;
		}
		for (uint32_t at = 0; at + 4 <= bytes; at += 4) {
			good = memcmp(payload + at, right + at, 4) ? 0 : good + 1;
			best = good > best ? good : best;
		}
		r = both_check(&pattern, payload, bytes);
		if (best >= 3 && 4 * wrong <= 8 * bytes) {
			assert_int_equal(r.verdict, wrong ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID);
			assert_int_equal(r.wrong_bits, wrong);
			assert_int_equal(r.phase_first, phase_at(i, bit));
			assert_int_equal(r.phase_next, phase_at(i, bit + 8ull * bytes));
			if (wrong) {
				assert_int_equal(r.offset, START + first);
				assert_int_equal(r.expected, right[first]);
				assert_int_equal(r.got, payload[first]);
			}
			locked++;
		} else if (best < 3) {
			assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
			assert_int_equal(r.detail, bytes);
			assert_int_equal(r.phase_first | r.phase_next | r.payload_bytes, 0);
			unlocked++;
		}
		pattern_free(&pattern);
	}
	assert_true(locked > 1000 && unlocked > 100);
}

/* One bit in four may be wrong, and not one more. */
static void test_the_most_wrong_bits(void **state)
{
	static uint8_t payload[200];
	struct pattern pattern;
	struct frame_result r;

	pattern_make(&pattern, PATTERN_PRBS23, 0, -1);
	stream_fill(5, 1, 1234567, payload, 100);
	for (uint32_t at = 75; at < 100; at++)
		payload[at] ^= 0xff; /* 200 of 800 bits */
	r = both_check(&pattern, payload, 100);
	assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(r.wrong_bits, 200);
	payload[40] ^= 1;
	r = both_check(&pattern, payload, 100);
	assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
	pattern_free(&pattern);
}

/* What must not be taken for a phase. */
static void test_no_phase(void **state)
{
	static uint8_t payload[1400], all[1400];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		struct pattern pattern;
		struct frame_result r;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		for (unsigned int byte = 0; byte < 256; byte++) {
			memset(payload, (int)byte, sizeof(payload));
			r = both_check(&pattern, payload, sizeof(payload));
			assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
		}
		for (size_t at = 0; at < sizeof(payload); at++)
			payload[at] = (uint8_t)random64();
		r = both_check(&pattern, payload, sizeof(payload));
		assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
		assert_int_equal(r.detail, sizeof(payload));
		/* the other polarity, and swapped bytes, are other data */
		stream_fill(i, !prbs[i].inverted, 99, payload, sizeof(payload));
		r = both_check(&pattern, payload, sizeof(payload));
		assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
		stream_fill(i, prbs[i].inverted, 99, all, sizeof(all));
		for (size_t at = 0; at < sizeof(all); at++)
			payload[at] = all[at ^ 1];
		r = both_check(&pattern, payload, sizeof(payload));
		assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
		pattern_free(&pattern);
	}
}

/* Pieces of 12 bytes from elsewhere before the true rest: passed over, but not without end. */
static void test_false_starts(void **state)
{
	static uint8_t payload[4000];
	struct pattern pattern;

	pattern_make(&pattern, PATTERN_PRBS31, 0, -1);
	for (uint32_t pieces = 0; pieces <= 10; pieces++) {
		const uint64_t bit = bit_random(6);
		struct frame_result r;

		stream_fill(6, 1, bit, payload, sizeof(payload));
		for (uint32_t p = 0; p < pieces; p++)
			stream_fill(6, 1, bit_random(6), payload + 12 * p, 12);
		r = both_check(&pattern, payload, sizeof(payload));
		if (pieces < PHASE_TRIES) {
			assert_int_equal(r.verdict, pieces ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID);
			assert_int_equal(r.phase_first, phase_at(6, bit));
			assert_true(r.wrong_bits <= 96 * pieces);
		} else {
			assert_int_equal(r.verdict, FRAME_DAMAGED_UNLOCKED);
		}
	}
	/* a long piece counts as one start */
	{
		const uint64_t bit = bit_random(6);
		struct frame_result r;

		stream_fill(6, 1, bit, payload, sizeof(payload));
		stream_fill(6, 1, bit_random(6), payload, 800);
		r = both_check(&pattern, payload, sizeof(payload));
		assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
		assert_int_equal(r.phase_first, phase_at(6, bit));
		assert_in_range(r.wrong_bits, 2000, 6400 - 2000);
	}
	pattern_free(&pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),	       cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_right_payloads), cmocka_unit_test(test_one_wrong_bit),
		cmocka_unit_test(test_planted_errors), cmocka_unit_test(test_the_most_wrong_bits),
		cmocka_unit_test(test_no_phase),       cmocka_unit_test(test_false_starts),
	};

	return cmocka_run_group_tests_name("phase", tests, NULL, NULL);
}
