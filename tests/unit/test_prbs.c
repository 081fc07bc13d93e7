/* SPDX-License-Identifier: BSD-3-Clause */
/* PRBS: tables, jump, sequence, and that no wrong bit escapes the fast check. */
#include "pattern_reference.h"

static void test_tables(void **state)
{
	struct pattern_tables tables;
	struct pattern pattern;

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const unsigned int n = prbs[i].degree;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		tables = pattern_table_bytes(&pattern);
		assert_int_equal(pattern.degree, n);
		assert_int_equal(pattern.tap, prbs[i].tap);
		assert_int_equal(pattern.period, (1ull << n) - 1);
		assert_int_equal(tables.windows_bytes / 8 * tables.powers_bytes / 4, 1ull << n);
		assert_int_equal(tables.file_bytes, 0);
		assert_true(pattern.near_bytes >= 64 && pattern.near_bytes < 128);
		assert_int_equal(pattern.near_bytes * n, pattern.far_bytes * prbs[i].tap);
		pattern_free(&pattern);
		assert_null(pattern.windows);
	}
	pattern_make(&pattern, PATTERN_FILE, 0, -1);
	tables = pattern_table_bytes(&pattern);
	assert_int_equal(tables.file_bytes, sizeof(file_bytes) - 1);
	assert_int_equal(tables.windows_bytes + tables.powers_bytes, 0);
	pattern_free(&pattern);
}

/* Every byte of a period and beyond its end (PRBS-31: of the first 4 Mbit). */
static void test_prbs_from_start(void **state)
{
	static uint8_t bytes[MAX_BYTES];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t period = (1ull << prbs[i].degree) - 1;
		const uint64_t end = (period < 1 << 23 ? period / 8 : 1 << 19) + 20000;
		struct shift_register r = register_at(prbs[i].degree, prbs[i].tap, 0);
		struct pattern_place place = { 0 };
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		assert_int_equal(pattern.invert, prbs[i].inverted);
		while (place.position < end) {
			const size_t n = 1 + random64() % MAX_BYTES;

			pattern_fill(&pattern, &place, bytes, n);
			for (size_t b = 0; b < n; b++)
				assert_int_equal(bytes[b], register_byte(&r, prbs[i].inverted));
			place.position += n;
		}
		pattern_free(&pattern);
	}
}

/* The register comes back to its start after 2^n - 1 clocks, and not before. */
static void test_prbs_is_maximal(void **state)
{
	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t period = (1ull << prbs[i].degree) - 1;
		struct shift_register r = register_at(prbs[i].degree, prbs[i].tap, 0);
		const uint32_t start = r.stages;
		uint64_t clocks = 0;

		assert_int_equal(register_at(prbs[i].degree, prbs[i].tap, period).stages, start);
		if (prbs[i].degree == 31)
			continue; /* 2^31 - 1 is prime: no shorter period divides it */
		do {
			register_clock(&r);
			clocks++;
		} while (r.stages != start);
		assert_int_equal(clocks, period);
	}
}

static void test_prbs_far_away(void **state)
{
	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t period = (1ull << prbs[i].degree) - 1;
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, 0);
		for (uint64_t k = 0; k < 4000; k++) {
			/* the first: bytes around the end of the period, of 1 to 8 rounds */
			const uint64_t around = period * (1 + k % 8) / 8 + k / 8;
			const struct pattern_place place = {
				.position = k < 800 ? around - (around < 50 ? around : 50)
						    : random_position(),
			};
			uint8_t expected[16];

			reference_fill(&pattern, &place, expected, sizeof(expected));
			for (uint32_t b = 0; b + 4 <= sizeof(expected); b++) {
				const uint32_t word = pattern_word(&pattern, &place, b);

				assert_int_equal(word & 0xff, expected[b]);
				assert_int_equal(word >> 8 & 0xff, expected[b + 1]);
				assert_int_equal(word >> 16 & 0xff, expected[b + 2]);
				assert_int_equal(word >> 24, expected[b + 3]);
			}
		}
		pattern_free(&pattern);
	}
}

static void test_jump_by_clmul(void **state)
{
	if (!fast_cpu_now().clmul)
		skip();
	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t period = (1ull << prbs[i].degree) - 1;
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, 0);
		for (int k = 0; k < 20000; k++) {
			const uint64_t phase = random64() % (period + 1);
			const uint64_t window = prbs_window(&pattern, phase, true);

			assert_int_equal(window, prbs_window(&pattern, phase, false));
			assert_int_equal(window >> 32, pattern_prbs_bits(&pattern, phase));
		}
		pattern_free(&pattern);
	}
}

/* Each single wrong bit, anywhere, with all that the CPU can run. */
static void test_each_single_bit(void **state)
{
	const struct pattern_place place = { .position = 987654321 };
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);
	uint8_t bytes[231];

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		struct pattern pattern;

		pattern_make(&pattern, prbs[i].kind, 0, -1);
		for (size_t n = 1; n <= sizeof(bytes); n += n < 40 ? 1 : 19) {
			pattern_fill(&pattern, &place, bytes, n);
			for (size_t bit = 0; bit < 8 * n; bit++) {
				bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
				for (size_t c = 0; c < cpu_count; c++)
					assert_false(
						prbs_is_right(&pattern, &place, bytes, n, cpus[c]));
				bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			}
		}
		pattern_free(&pattern);
	}
}

/* A payload that is wholly another pattern, so that nearly everything is wrong. */
static void test_all_wrong(void **state)
{
	const struct pattern_place place = { .position = 77 };
	static uint8_t expected[MAX_BYTES], got[MAX_BYTES];
	struct pattern_mismatch mismatch;
	struct pattern pattern;
	uint32_t bits = 0;

	pattern_make(&pattern, PATTERN_PRBS31, 0, -1);
	pattern_fill(&pattern, &place, expected, MAX_BYTES);
	for (size_t i = 0; i < MAX_BYTES; i++)
		got[i] = (uint8_t)~expected[i];
	assert_int_equal(pattern_check_ahead(&pattern, &place, got, MAX_BYTES, NULL, &mismatch),
			 8 * MAX_BYTES);
	/* one bit behind: each byte after the head still follows from the ones before */
	memmove(got, expected + 1, MAX_BYTES - 1);
	got[MAX_BYTES - 1] = 0;
	for (size_t i = 0; i < MAX_BYTES; i++)
		bits += (uint32_t)__builtin_popcount(expected[i] ^ got[i]);
	assert_int_equal(pattern_check_ahead(&pattern, &place, got, MAX_BYTES, NULL, &mismatch),
			 bits);
	pattern_free(&pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),		cmocka_unit_test(test_prbs_from_start),
		cmocka_unit_test(test_prbs_is_maximal), cmocka_unit_test(test_prbs_far_away),
		cmocka_unit_test(test_jump_by_clmul),	cmocka_unit_test(test_each_single_bit),
		cmocka_unit_test(test_all_wrong),
	};

	return cmocka_run_group_tests_name("prbs", tests, NULL, NULL);
}
