/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The patterns' definitions written down a second time, for the tests: PRBS as the shift register
 * of O.150, clocked bit by bit, and far away by powers of its transition matrix.
 */
#ifndef GDRCAP_PATTERN_REFERENCE_H
#define GDRCAP_PATTERN_REFERENCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pattern/pattern_fast.h"

#define MAX_BYTES 9200

static const struct {
	enum pattern_kind kind;
	unsigned int degree, tap;
	int inverted;
} prbs[] = {
	{ PATTERN_PRBS7, 7, 6, 0 },    { PATTERN_PRBS9, 9, 5, 0 },   { PATTERN_PRBS11, 11, 9, 0 },
	{ PATTERN_PRBS15, 15, 14, 1 }, { PATTERN_PRBS20, 20, 3, 0 }, { PATTERN_PRBS23, 23, 18, 1 },
	{ PATTERN_PRBS31, 31, 28, 1 },
};
#define PRBS_COUNT (sizeof(prbs) / sizeof(prbs[0]))

static const uint8_t file_bytes[] = "The quick brown fox jumps over the lazy dog";

/* Tests must be repeatable: splitmix64 from a fixed seed. */
static uint64_t random_state = 1;

static inline uint64_t random64(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Of every magnitude, and often at a border. */
static inline uint64_t random_position(void)
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

static inline void pattern_make(struct pattern *pattern, enum pattern_kind kind, int restart,
				int invert)
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

	assert_int_equal(pattern_init(pattern, &config), 0);
}

/* ---- the shift register: stage i (from 1) in bit i - 1, the last stage goes out ---- */

struct shift_register {
	unsigned int degree, tap;
	uint32_t stages;
};

static inline unsigned int register_clock(struct shift_register *r)
{
	const unsigned int out = r->stages >> (r->degree - 1) & 1;
	const unsigned int feedback = out ^ (r->stages >> (r->tap - 1) & 1);

	r->stages = (r->stages << 1 | feedback) & (uint32_t)((1ull << r->degree) - 1);
	return out;
}

static inline uint8_t register_byte(struct shift_register *r, int inverted)
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

static inline uint32_t matrix_apply(const struct matrix *m, uint32_t v)
{
	uint32_t to = 0;

	for (; v; v &= v - 1)
		to ^= m->column[__builtin_ctz(v)];
	return to;
}

/* The register after `steps` clocks from all ones. */
static inline struct shift_register register_at(unsigned int degree, unsigned int tap,
						uint64_t steps)
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

static inline void reference_fill(const struct pattern *pattern, const struct pattern_place *place,
				  uint8_t *to, size_t bytes)
{
	const uint64_t position = pattern->restart ? 0 : place->position;
	const uint32_t kind = pattern->kind;
	struct shift_register r = { 0 };
	int inverted = 0;

	for (size_t i = 0; i < PRBS_COUNT; i++) {
		if (prbs[i].kind == kind) {
			const uint64_t period = (1ull << prbs[i].degree) - 1;

			r = register_at(prbs[i].degree, prbs[i].tap,
					(uint64_t)((unsigned __int128)position * 8 % period));
			inverted = (int)pattern->invert;
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
static inline size_t cpus_list(struct fast_cpu cpus[6])
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

#endif
