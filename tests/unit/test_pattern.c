/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns against definitions written down a second time here: PRBS as the shift register of
 * O.150, clocked bit by bit, and far away by powers of its transition matrix.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pattern_fast.h"

#define MAX_BYTES 9200

static const struct {
	enum pattern_kind kind;
	unsigned int degree, tap;
	int inverted;
} prbs[] = {
	{ PATTERN_PRBS7, 7, 6, 0 },    { PATTERN_PRBS9, 9, 5, 0 },    { PATTERN_PRBS11, 11, 9, 0 },
	{ PATTERN_PRBS15, 15, 14, 1 }, { PATTERN_PRBS20, 20, 3, 0 },  { PATTERN_PRBS23, 23, 18, 1 },
	{ PATTERN_PRBS31, 31, 28, 1 },
};
#define PRBS_COUNT (sizeof(prbs) / sizeof(prbs[0]))

static const uint8_t file_bytes[] = "The quick brown fox jumps over the lazy dog";

/* Tests must be repeatable: splitmix64 from a fixed seed. */
static uint64_t random_state = 1;

static uint64_t random64(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Of every magnitude, and often at a border. */
static uint64_t random_position(void)
{
	uint64_t p = random64() >> (random64() % 64);

	switch (random64() % 8) {
	case 0:
		return 0;
	case 1: /* the frame crosses 2^64 */
		return UINT64_MAX - random64() % MAX_BYTES;
	case 2:
		return (1ull << random64() % 64) - random64() % MAX_BYTES;
	default:
		return p;
	}
}

static void plan_make(struct pattern_plan *plan, enum pattern_kind kind, int restart, int invert)
{
	const struct pattern_config config = {
		.kind = kind,
		.restart = restart,
		.invert = invert,
		.value = 0xa5,
		.seed = 0x123456789abcdef0ull,
		.file = file_bytes,
		.file_bytes = sizeof(file_bytes) - 1,
	};

	assert_int_equal(pattern_plan_init(plan, &config), 0);
}

/* ---- the shift register: stage i (from 1) in bit i - 1, the last stage goes out ---- */

struct shift_register {
	unsigned int degree, tap;
	uint32_t stages;
};

static unsigned int register_clock(struct shift_register *r)
{
	const unsigned int out = r->stages >> (r->degree - 1) & 1;
	const unsigned int feedback = out ^ (r->stages >> (r->tap - 1) & 1);

	r->stages = (r->stages << 1 | feedback) & (uint32_t)((1ull << r->degree) - 1);
	return out;
}

static uint8_t register_byte(struct shift_register *r, int inverted)
{
	unsigned int byte = 0;

	for (int bit = 0; bit < 8; bit++)
		byte = byte << 1 | register_clock(r);
	return (uint8_t)(inverted ? ~byte : byte);
}

/* Column j: what one clock makes of stage j alone. */
struct matrix {
	uint32_t column[31];
};

static uint32_t matrix_apply(const struct matrix *m, uint32_t v)
{
	uint32_t to = 0;

	for (; v; v &= v - 1)
		to ^= m->column[__builtin_ctz(v)];
	return to;
}

/* The register after `steps` clocks from all ones. */
static struct shift_register register_at(unsigned int degree, unsigned int tap, uint64_t steps)
{
	struct shift_register r = { degree, tap, (uint32_t)((1ull << degree) - 1) };
	struct matrix power, square;

	for (unsigned int j = 0; j < degree; j++) {
		struct shift_register one = { degree, tap, 1u << j };

		register_clock(&one);
		power.column[j] = one.stages;
	}
	for (; steps; steps >>= 1) {
		if (steps & 1)
			r.stages = matrix_apply(&power, r.stages);
		for (unsigned int j = 0; j < degree; j++)
			square.column[j] = matrix_apply(&power, power.column[j]);
		power = square;
	}
	return r;
}

/* ---- the definitions, byte by byte ---- */

static void reference_fill(const struct pattern_plan *plan, const struct pattern_place *place,
			   uint8_t *to, size_t bytes)
{
	const uint64_t position = plan->restart ? 0 : place->position;
	const uint32_t kind = plan->kind;
	struct shift_register r = { 0 };
	int inverted = 0;

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		if (prbs[i].kind == kind) {
			const uint64_t period = (1ull << prbs[i].degree) - 1;

			r = register_at(prbs[i].degree, prbs[i].tap,
					(uint64_t)((unsigned __int128)position * 8 % period));
			inverted = (int)plan->invert;
		}
	}
	for (size_t i = 0; i < bytes; i++) {
		const uint64_t q = position + i;
		uint64_t width = 0, index;
		int big_endian = 0;

		switch (kind) {
		case PATTERN_NONE:
			to[i] = 0;
			break;
		case PATTERN_COUNTER8:
			width = 1;
			break;
		case PATTERN_COUNTER16_BE:
			big_endian = 1; /* fall through */
		case PATTERN_COUNTER16_LE:
			width = 2;
			break;
		case PATTERN_COUNTER32_BE:
			big_endian = 1; /* fall through */
		case PATTERN_COUNTER32_LE:
			width = 4;
			break;
		case PATTERN_COUNTER64_BE:
			big_endian = 1; /* fall through */
		case PATTERN_COUNTER64_LE:
			width = 8;
			break;
		case PATTERN_CONSTANT:
			to[i] = 0xa5;
			break;
		case PATTERN_WALKING_ONE:
			to[i] = (uint8_t)(0x80 >> q % 8);
			break;
		case PATTERN_RANDOM: {
			uint32_t words[4] = { (uint32_t)(i / 16), place->stream,
					      (uint32_t)place->sequence,
					      (uint32_t)(place->sequence >> 32) };

			pattern_philox(words, 0x9abcdef0, 0x12345678);
			to[i] = (uint8_t)(words[i / 4 % 4] >> 8 * (i % 4));
			break;
		}
		case PATTERN_FILE:
			to[i] = file_bytes[(uint64_t)(((unsigned __int128)position + i) %
						      (sizeof(file_bytes) - 1))];
			break;
		default:
			to[i] = register_byte(&r, inverted);
		}
		if (width) {
			const uint64_t at = q % width;

			index = q / width;
			to[i] = (uint8_t)(index >> 8 * (big_endian ? width - 1 - at : at));
		}
	}
}

/* All that this CPU can run: the sets are ordered. */
static size_t cpus_list(struct fast_cpu cpus[6])
{
	const struct fast_cpu now = fast_cpu_now();
	size_t count = 0;

	for (int level = FAST_GENERIC; level <= (int)now.level; level++) {
		for (int clmul = 0; clmul <= (int)now.clmul; clmul++) {
			cpus[count].level = (enum fast_level)level;
			cpus[count].crc = false;
			cpus[count++].clmul = clmul;
		}
	}
	return count;
}

/* ---- tests ---- */

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
	assert_null(pattern_name((enum pattern_kind)-1));
	assert_string_equal(pattern_name(PATTERN_PRBS31), "prbs31");
	assert_string_equal(pattern_name(PATTERN_COUNTER16_BE), "counter16be");
	assert_true(pattern_from_name("", &kind) < 0);
	assert_true(pattern_from_name("prbs3", &kind) < 0);
	assert_true(pattern_from_name("PRBS31", &kind) < 0);
}

static void test_plan_refuses(void **state)
{
	struct pattern_config config = { .kind = PATTERN_KINDS, .invert = -1 };
	struct pattern_plan plan;

	assert_true(pattern_plan_init(&plan, &config) < 0);
	config.kind = PATTERN_FILE;
	assert_true(pattern_plan_init(&plan, &config) < 0);
	config.file = file_bytes;
	assert_true(pattern_plan_init(&plan, &config) < 0);
	config.kind = PATTERN_COUNTER8;
	config.invert = 1;
	assert_true(pattern_plan_init(&plan, &config) < 0);
	config.kind = PATTERN_PRBS7;
	config.invert = 2;
	assert_true(pattern_plan_init(&plan, &config) < 0);
}

static void test_tables(void **state)
{
	struct pattern_tables tables;
	struct pattern_plan plan;

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const unsigned int n = prbs[i].degree;

		plan_make(&plan, prbs[i].kind, 0, -1);
		tables = pattern_plan_tables(&plan);
		assert_int_equal(plan.degree, n);
		assert_int_equal(plan.tap, prbs[i].tap);
		assert_int_equal(plan.period, (1ull << n) - 1);
		assert_int_equal(tables.windows_bytes / 8 * tables.powers_bytes / 4, 1ull << n);
		assert_int_equal(tables.file_bytes, 0);
		assert_true(plan.near_bytes >= 64 && plan.near_bytes < 128);
		assert_int_equal(plan.near_bytes * n, plan.far_bytes * prbs[i].tap);
		pattern_plan_free(&plan);
		assert_null(plan.windows);
	}
	plan_make(&plan, PATTERN_FILE, 0, -1);
	tables = pattern_plan_tables(&plan);
	assert_int_equal(tables.file_bytes, sizeof(file_bytes) - 1);
	assert_int_equal(tables.windows_bytes + tables.powers_bytes, 0);
	pattern_plan_free(&plan);
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
		struct pattern_plan plan;

		plan_make(&plan, prbs[i].kind, 0, -1);
		assert_int_equal(plan.invert, prbs[i].inverted);
		while (place.position < end) {
			const size_t n = 1 + random64() % MAX_BYTES;

			pattern_fill(&plan, &place, bytes, n);
			for (size_t b = 0; b < n; b++)
				assert_int_equal(bytes[b], register_byte(&r, prbs[i].inverted));
			place.position += n;
		}
		pattern_plan_free(&plan);
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
		struct pattern_plan plan;

		plan_make(&plan, prbs[i].kind, 0, 0);
		for (uint64_t k = 0; k < 4000; k++) {
			/* the first: bytes around the end of the period, of 1 to 8 rounds */
			const uint64_t around = period * (1 + k % 8) / 8 + k / 8;
			const struct pattern_place place = {
				.position = k < 800 ? around - (around < 50 ? around : 50) :
						      random_position(),
			};
			uint8_t expected[16];

			reference_fill(&plan, &place, expected, sizeof(expected));
			for (uint32_t b = 0; b + 4 <= sizeof(expected); b++) {
				const uint32_t word = pattern_word(&plan, &place, b);

				assert_int_equal(word & 0xff, expected[b]);
				assert_int_equal(word >> 8 & 0xff, expected[b + 1]);
				assert_int_equal(word >> 16 & 0xff, expected[b + 2]);
				assert_int_equal(word >> 24, expected[b + 3]);
			}
		}
		pattern_plan_free(&plan);
	}
}

static void test_jump_by_clmul(void **state)
{
	if (!fast_cpu_now().clmul)
		skip();
	for (size_t i = 0; i < PRBS_COUNT; i++) {
		const uint64_t period = (1ull << prbs[i].degree) - 1;
		struct pattern_plan plan;

		plan_make(&plan, prbs[i].kind, 0, 0);
		for (int k = 0; k < 20000; k++) {
			const uint64_t phase = random64() % (period + 1);
			const uint64_t window = prbs_window(&plan, phase, true);

			assert_int_equal(window, prbs_window(&plan, phase, false));
			assert_int_equal(window >> 32, pattern_prbs_bits(&plan, phase));
		}
		pattern_plan_free(&plan);
	}
}

static void test_philox_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = { /* published with Random123 */
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

/* The same through the plan: which number goes into which word of counter and key. */
static void test_random_is_keyed(void **state)
{
	const struct pattern_config config = {
		.kind = PATTERN_RANDOM, .invert = -1, .seed = 0x299f31d0a4093822ull
	};
	const struct pattern_place place = { .stream = 0x85a308d3, .sequence = 0x0370734413198a2eull };
	const uint32_t block = 0x243f6a88u & 0x0fffffffu;
	uint32_t words[4] = { block, 0x85a308d3, 0x13198a2e, 0x03707344 };
	struct pattern_plan plan;

	assert_int_equal(pattern_plan_init(&plan, &config), 0);
	pattern_philox(words, 0xa4093822, 0x299f31d0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pattern_word(&plan, &place, block * 16 + 4 * i), words[i]);
	pattern_plan_free(&plan);
}

/* One place, all kinds: pattern_fill(), pattern_word() and pattern_check() say the same. */
static void place_agrees(const struct pattern_plan *plan, const struct pattern_place *place,
			 size_t bytes)
{
	uint8_t *expected = malloc(bytes + 1), *got = malloc(bytes ? bytes : 1);
	struct pattern_mismatch mismatch;
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	assert_true(expected && got);
	reference_fill(plan, place, expected, bytes);
	expected[bytes] = 0;
	memset(got, 0x77, bytes);
	pattern_fill(plan, place, got, bytes);
	assert_memory_equal(got, expected, bytes);
	for (uint32_t i = 0; i + 4 <= bytes; i++) {
		uint32_t word = pattern_word(plan, place, i);

		for (int b = 0; b < 4; b++, word >>= 8)
			assert_int_equal(word & 0xff, expected[i + b]);
	}
	for (size_t c = 0; c < cpu_count; c++) {
		const uint64_t q = plan->restart ? 0 : place->position;

		if (pattern_is_prbs(plan->kind)) {
			memset(got, 0x77, bytes);
			prbs_fill(plan, place, 0, got, bytes, cpus[c]);
			assert_memory_equal(got, expected, bytes);
			assert_true(prbs_is_right(plan, place, got, bytes, cpus[c]));
		} else if (plan->kind >= PATTERN_COUNTER8 && plan->kind <= PATTERN_COUNTER64_LE &&
			   q <= UINT64_MAX - bytes) {
			memset(got, 0x77, bytes);
			counter_fill(plan->kind, q, got, bytes, cpus[c]);
			assert_memory_equal(got, expected, bytes);
		}
	}
	memset(&mismatch, 0x55, sizeof(mismatch));
	assert_int_equal(pattern_check(plan, place, got, bytes, &mismatch), 0);
	assert_int_equal(mismatch.wrong_bits, 0);
	free(expected);
	free(got);
}

static void test_all_agree(void **state)
{
	for (int kind = 0; kind < PATTERN_KINDS; kind++) {
		for (int variant = 0; variant < 4; variant++) {
			const int inverts = kind >= PATTERN_PRBS7 && kind <= PATTERN_PRBS31;
			struct pattern_plan plan;

			plan_make(&plan, (enum pattern_kind)kind, variant & 1,
				  inverts ? variant >> 1 : -1);
			for (size_t k = 0; k < 160; k++) {
				const struct pattern_place place = {
					.position = random_position(),
					.sequence = random64(),
					.stream = (uint32_t)random64(),
				};
				const size_t bytes = k < 140 ? k + random64() % 2 * 64 :
							       random64() % (MAX_BYTES + 1);

				place_agrees(&plan, &place, bytes);
			}
			pattern_plan_free(&plan);
		}
	}
}

static void test_restart(void **state)
{
	const struct pattern_place first = { 0 }, later = { .position = 123457, .sequence = 9 };
	uint8_t a[200], b[200];

	for (int kind = PATTERN_PRBS7; kind < PATTERN_KINDS; kind++) {
		struct pattern_plan plan;

		if (kind == PATTERN_RANDOM)
			continue;
		plan_make(&plan, (enum pattern_kind)kind, 1, -1);
		pattern_fill(&plan, &first, a, sizeof(a));
		pattern_fill(&plan, &later, b, sizeof(b));
		assert_memory_equal(a, b, sizeof(a));
		pattern_plan_free(&plan);
		plan_make(&plan, (enum pattern_kind)kind, 0, -1);
		pattern_fill(&plan, &later, b, sizeof(b));
		if (kind != PATTERN_CONSTANT)
			assert_memory_not_equal(a, b, sizeof(a));
		pattern_plan_free(&plan);
	}
}

/* Damages a right payload and compares the answer with counting byte by byte. */
static void damage_is_found(const struct pattern_plan *plan, const struct pattern_place *place,
			    size_t bytes, unsigned int flips)
{
	uint8_t *right = malloc(bytes), *wrong = malloc(bytes);
	struct pattern_mismatch mismatch;
	uint32_t bits = 0, first = 0;

	assert_true(right && wrong);
	pattern_fill(plan, place, right, bytes);
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
	assert_int_equal(pattern_check(plan, place, wrong, bytes, &mismatch), bits);
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
		struct pattern_plan plan;

		plan_make(&plan, (enum pattern_kind)kind, 0, -1);
		for (size_t k = 0; k < 1500; k++) {
			const struct pattern_place place = {
				.position = random_position(),
				.sequence = k,
				.stream = 3,
			};
			const size_t bytes = 1 + random64() % (k % 8 ? 300 : MAX_BYTES);

			damage_is_found(&plan, &place, bytes, 1 + random64() % (k % 3 ? 3 : 30));
		}
		pattern_plan_free(&plan);
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
		struct pattern_plan plan;

		plan_make(&plan, prbs[i].kind, 0, -1);
		for (size_t n = 1; n <= sizeof(bytes); n += n < 40 ? 1 : 19) {
			pattern_fill(&plan, &place, bytes, n);
			for (size_t bit = 0; bit < 8 * n; bit++) {
				bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
				for (size_t c = 0; c < cpu_count; c++)
					assert_false(
						prbs_is_right(&plan, &place, bytes, n, cpus[c]));
				bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			}
		}
		pattern_plan_free(&plan);
	}
}

/* A payload that is wholly another pattern, so that nearly everything is wrong. */
static void test_all_wrong(void **state)
{
	const struct pattern_place place = { .position = 77 };
	static uint8_t expected[MAX_BYTES], got[MAX_BYTES];
	struct pattern_mismatch mismatch;
	struct pattern_plan plan;
	uint32_t bits = 0;

	plan_make(&plan, PATTERN_PRBS31, 0, -1);
	pattern_fill(&plan, &place, expected, MAX_BYTES);
	for (size_t i = 0; i < MAX_BYTES; i++)
		got[i] = (uint8_t)~expected[i];
	assert_int_equal(pattern_check(&plan, &place, got, MAX_BYTES, &mismatch), 8 * MAX_BYTES);
	/* one bit behind: each byte after the head still follows from the ones before */
	memmove(got, expected + 1, MAX_BYTES - 1);
	got[MAX_BYTES - 1] = 0;
	for (size_t i = 0; i < MAX_BYTES; i++)
		bits += (uint32_t)__builtin_popcount(expected[i] ^ got[i]);
	assert_int_equal(pattern_check(&plan, &place, got, MAX_BYTES, &mismatch), bits);
	pattern_plan_free(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_plan_refuses),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_prbs_from_start),
		cmocka_unit_test(test_prbs_is_maximal),
		cmocka_unit_test(test_prbs_far_away),
		cmocka_unit_test(test_jump_by_clmul),
		cmocka_unit_test(test_philox_known_answers),
		cmocka_unit_test(test_random_is_keyed),
		cmocka_unit_test(test_all_agree),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_each_single_bit),
		cmocka_unit_test(test_all_wrong),
	};

	return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
