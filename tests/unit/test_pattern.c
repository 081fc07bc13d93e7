/* SPDX-License-Identifier: BSD-3-Clause */
/* All patterns: pattern_fill(), pattern_word() and pattern_check_ahead() against the definitions. */
#include "pattern_reference.h"

static void test_names(void **state)
{
	enum pattern_kind kind;

	for (int i = 0; i < PATTERN_KINDS; i++) {
		const char *name = pattern_name((enum pattern_kind)i);

		assert_non_null(name);
		assert_int_equal(pattern_from_name(name, &kind), 0);
		assert_int_equal(kind, i);
	}
	assert_null(pattern_name(PATTERN_KINDS));
	assert_null(pattern_name((enum pattern_kind) - 1));
	assert_string_equal(pattern_name(PATTERN_PRBS31), "prbs31");
	assert_string_equal(pattern_name(PATTERN_COUNTER16_BE), "counter16be");
	assert_true(pattern_from_name("", &kind) < 0);
	assert_true(pattern_from_name("prbs3", &kind) < 0);
	assert_true(pattern_from_name("PRBS31", &kind) < 0);
}

static void test_plan_refuses(void **state)
{
	struct pattern_config config = { .kind = PATTERN_KINDS, .invert = -1 };
	struct pattern pattern;

	assert_true(pattern_init(&pattern, &config) < 0);
	config.kind = PATTERN_FILE;
	assert_true(pattern_init(&pattern, &config) < 0);
	config.file = file_bytes;
	assert_true(pattern_init(&pattern, &config) < 0);
	config.kind = PATTERN_COUNTER8;
	config.invert = 1;
	assert_true(pattern_init(&pattern, &config) < 0);
	config.kind = PATTERN_PRBS7;
	config.invert = 2;
	assert_true(pattern_init(&pattern, &config) < 0);
}

static void test_philox_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		/* published with Random123 */
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u, ~0u, ~0u },
		  { ~0u, ~0u },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t words[4];

		memcpy(words, known[i].counter, sizeof(words));
		pattern_philox(words, known[i].key[0], known[i].key[1]);
		assert_memory_equal(words, known[i].out, sizeof(words));
	}
}

/* The same through the pattern: which number goes into which word of counter and key. */
static void test_random_is_keyed(void **state)
{
	const struct pattern_config config = { .kind = PATTERN_RANDOM,
					       .invert = -1,
					       .seed = 0x299f31d0a4093822ull };
	const struct pattern_place place = { .stream = 0x85a308d3,
					     .sequence = 0x0370734413198a2eull };
	const uint32_t block = 0x243f6a88u & 0x0fffffffu;
	uint32_t words[4] = { block, 0x85a308d3, 0x13198a2e, 0x03707344 };
	struct pattern pattern;

	assert_int_equal(pattern_init(&pattern, &config), 0);
	pattern_philox(words, 0xa4093822, 0x299f31d0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pattern_word(&pattern, &place, block * 16 + 4 * i), words[i]);
	pattern_free(&pattern);
}

/* One place, all kinds: pattern_fill(), pattern_word() and pattern_check_ahead() say the same. */
static void place_agrees(const struct pattern *pattern, const struct pattern_place *place,
			 size_t bytes)
{
	uint8_t *expected = malloc(bytes + 1), *got = malloc(bytes ? bytes : 1);
	struct pattern_mismatch mismatch;
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	assert_true(expected && got);
	reference_fill(pattern, place, expected, bytes);
	expected[bytes] = 0;
	memset(got, 0x77, bytes);
	pattern_fill(pattern, place, got, bytes);
	assert_memory_equal(got, expected, bytes);
	for (uint32_t i = 0; i + 4 <= bytes; i++) {
		uint32_t word = pattern_word(pattern, place, i);

		for (int b = 0; b < 4; b++, word >>= 8)
			assert_int_equal(word & 0xff, expected[i + b]);
	}
	for (size_t c = 0; c < cpu_count; c++) {
		const uint64_t q = pattern->restart ? 0 : place->position;

		if (pattern_is_prbs(pattern->kind)) {
			memset(got, 0x77, bytes);
			prbs_fill(pattern, place, 0, got, bytes, cpus[c]);
			assert_memory_equal(got, expected, bytes);
			assert_true(prbs_is_right(pattern, place, got, bytes, cpus[c]));
		} else if (pattern->kind >= PATTERN_COUNTER8 &&
			   pattern->kind <= PATTERN_COUNTER64_LE && q <= UINT64_MAX - bytes) {
			memset(got, 0x77, bytes);
			counter_fill(pattern->kind, q, got, bytes, cpus[c]);
			assert_memory_equal(got, expected, bytes);
		}
	}
	memset(&mismatch, 0x55, sizeof(mismatch));
	assert_int_equal(pattern_check_ahead(pattern, place, got, bytes, NULL, &mismatch), 0);
	assert_int_equal(mismatch.wrong_bits, 0);
	free(expected);
	free(got);
}

static void test_all_agree(void **state)
{
	for (int kind = 0; kind < PATTERN_KINDS; kind++) {
		for (int variant = 0; variant < 4; variant++) {
			const int inverts = kind >= PATTERN_PRBS7 && kind <= PATTERN_PRBS31;
			struct pattern pattern;

			pattern_make(&pattern, (enum pattern_kind)kind, variant & 1,
				     inverts ? variant >> 1 : -1);
			for (size_t k = 0; k < 160; k++) {
				const struct pattern_place place = {
					.position = random_position(),
					.sequence = random64(),
					.stream = (uint32_t)random64(),
				};
				const size_t bytes = k < 140 ? k + random64() % 2 * 64
							     : random64() % (MAX_BYTES + 1);

				place_agrees(&pattern, &place, bytes);
			}
			pattern_free(&pattern);
		}
	}
}

static void test_restart(void **state)
{
	const struct pattern_place first = { 0 }, later = { .position = 123457, .sequence = 9 };
	uint8_t a[200], b[200];

	for (int kind = PATTERN_PRBS7; kind < PATTERN_KINDS; kind++) {
		struct pattern pattern;

		if (kind == PATTERN_RANDOM)
			continue;
		pattern_make(&pattern, (enum pattern_kind)kind, 1, -1);
		pattern_fill(&pattern, &first, a, sizeof(a));
		pattern_fill(&pattern, &later, b, sizeof(b));
		assert_memory_equal(a, b, sizeof(a));
		pattern_free(&pattern);
		pattern_make(&pattern, (enum pattern_kind)kind, 0, -1);
		pattern_fill(&pattern, &later, b, sizeof(b));
		if (kind != PATTERN_CONSTANT)
			assert_memory_not_equal(a, b, sizeof(a));
		pattern_free(&pattern);
	}
}

/* Damages a right payload and compares the answer with counting byte by byte. */
static void damage_is_found(const struct pattern *pattern, const struct pattern_place *place,
			    size_t bytes, unsigned int flips)
{
	uint8_t *right = malloc(bytes), *wrong = malloc(bytes);
	struct pattern_mismatch mismatch;
	uint32_t bits = 0, first = 0;

	assert_true(right && wrong);
	pattern_fill(pattern, place, right, bytes);
	memcpy(wrong, right, bytes);
	while (flips--) {
		/* often near the start, the end, or a vector's border */
		uint64_t at = random64() % bytes;

		if (random64() % 4 == 0)
			at = random64() % (bytes < 40 ? bytes : 40);
		else if (random64() % 4 == 0)
			at = bytes - 1 - random64() % (bytes < 70 ? bytes : 70);
		wrong[at] ^= (uint8_t)(random64() % 8 ? 1u << random64() % 8 : random64());
	}
	for (size_t i = bytes; i-- > 0;) {
		if (right[i] != wrong[i])
			first = (uint32_t)i;
		bits += (uint32_t)__builtin_popcount(right[i] ^ wrong[i]);
	}
	assert_int_equal(pattern_check_ahead(pattern, place, wrong, bytes, NULL, &mismatch), bits);
	assert_int_equal(mismatch.wrong_bits, bits);
	if (bits) {
		assert_int_equal(mismatch.offset, first);
		assert_int_equal(mismatch.expected, right[first]);
		assert_int_equal(mismatch.got, wrong[first]);
	}
	free(right);
	free(wrong);
}

static void test_damage(void **state)
{
	for (int kind = PATTERN_PRBS7; kind < PATTERN_KINDS; kind++) {
		struct pattern pattern;

		pattern_make(&pattern, (enum pattern_kind)kind, 0, -1);
		for (size_t k = 0; k < 1500; k++) {
			const struct pattern_place place = {
				.position = random_position(),
				.sequence = k,
				.stream = 3,
			};
			const size_t bytes = 1 + random64() % (k % 8 ? 300 : MAX_BYTES);

			damage_is_found(&pattern, &place, bytes, 1 + random64() % (k % 3 ? 3 : 30));
		}
		pattern_free(&pattern);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_plan_refuses),
		cmocka_unit_test(test_philox_known_answers),
		cmocka_unit_test(test_random_is_keyed),
		cmocka_unit_test(test_all_agree),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
