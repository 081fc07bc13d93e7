/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload patterns: by name, prepared, and filled by the CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/pattern_fast.h"

const char *const pattern_names[PATTERN_KINDS + 1] = {
	[PATTERN_NONE] = "none",
	[PATTERN_PRBS7] = "prbs7",
	[PATTERN_PRBS9] = "prbs9",
	[PATTERN_PRBS11] = "prbs11",
	[PATTERN_PRBS15] = "prbs15",
	[PATTERN_PRBS20] = "prbs20",
	[PATTERN_PRBS23] = "prbs23",
	[PATTERN_PRBS31] = "prbs31",
	[PATTERN_COUNTER8] = "counter8",
	[PATTERN_COUNTER16_BE] = "counter16be",
	[PATTERN_COUNTER16_LE] = "counter16le",
	[PATTERN_COUNTER32_BE] = "counter32be",
	[PATTERN_COUNTER32_LE] = "counter32le",
	[PATTERN_COUNTER64_BE] = "counter64be",
	[PATTERN_COUNTER64_LE] = "counter64le",
	[PATTERN_CONSTANT] = "constant",
	[PATTERN_WALKING_ONE] = "walking-one",
	[PATTERN_RANDOM] = "random",
	[PATTERN_FILE] = "file",
};

const char *pattern_name(enum pattern_kind kind)
{
	return (unsigned int)kind < PATTERN_KINDS ? pattern_names[kind] : NULL;
}

int pattern_from_name(const char *name, enum pattern_kind *kind)
{
	for (unsigned int i = 0; i < PATTERN_KINDS; i++) {
		if (!strcmp(name, pattern_names[i])) {
			*kind = (enum pattern_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

int pattern_init(struct pattern *pattern, const struct pattern_config *config)
{
	memset(pattern, 0, sizeof(*pattern));
	if ((unsigned int)config->kind >= PATTERN_KINDS || config->invert < -1 ||
	    config->invert > 1)
		return -EINVAL;
	/* an inversion that would not happen must not be accepted in silence */
	if (config->invert == 1 && !pattern_is_prbs(config->kind))
		return -EINVAL;
	pattern->kind = config->kind;
	pattern->restart = !!config->restart;
	if (pattern_is_prbs(pattern->kind)) {
		pattern->invert = config->invert >= 0 ? (uint32_t)config->invert
						      : pattern->kind == PATTERN_PRBS15 ||
								pattern->kind == PATTERN_PRBS23 ||
								pattern->kind == PATTERN_PRBS31;
		return prbs_init(pattern);
	}
	if (pattern->kind == PATTERN_CONSTANT)
		pattern->value = config->value;
	if (pattern->kind == PATTERN_RANDOM)
		pattern->seed = config->seed;
	if (pattern->kind == PATTERN_FILE) {
		if (!config->file || !config->file_bytes)
			return -EINVAL;
		pattern->file = config->file;
		pattern->period = config->file_bytes;
	}
	return 0;
}

void pattern_free(struct pattern *pattern)
{
	free((void *)pattern->windows);
	free((void *)pattern->powers);
	memset(pattern, 0, sizeof(*pattern));
}

struct pattern_tables pattern_table_bytes(const struct pattern *pattern)
{
	struct pattern_tables tables = { 0 };

	if (pattern_is_prbs(pattern->kind)) {
		tables.windows_bytes = sizeof(*pattern->windows)
				       << (pattern->degree - pattern->lo_bits);
		tables.powers_bytes = sizeof(*pattern->powers) << pattern->lo_bits;
	} else if (pattern->kind == PATTERN_FILE) {
		tables.file_bytes = pattern->period;
	}
	return tables;
}

/* The last resort, for positions that wrap around 2^64 inside a frame. */
static void words_fill(const struct pattern *pattern, const struct pattern_place *place,
		       uint32_t offset, uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)pattern_word(pattern, place, offset + (uint32_t)i);
}

static void random_fill(const struct pattern *pattern, const struct pattern_place *place,
			uint32_t offset, uint8_t *to, size_t bytes)
{
	uint32_t block = offset / 16;
	size_t skip = offset % 16;

	while (bytes) {
		const size_t part = bytes < 16 - skip ? bytes : 16 - skip;
		uint64_t halves[2];
		uint32_t out[4];

		pattern_random_block(pattern, place, block++, out);
		halves[0] = out[0] | (uint64_t)out[1] << 32;
		halves[1] = out[2] | (uint64_t)out[3] << 32;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
		halves[0] = __builtin_bswap64(halves[0]);
		halves[1] = __builtin_bswap64(halves[1]);
#endif
		if (part == 16) {
			memcpy(to, &halves[0], 8);
			memcpy(to + 8, &halves[1], 8);
		} else {
			memcpy(to, (const uint8_t *)halves + skip, part);
		}
		to += part;
		bytes -= part;
		skip = 0;
	}
}

/* A string of `period` bytes from `at` in it, again and again. */
static void repeat_fill(const uint8_t *string, size_t period, size_t at, uint8_t *to, size_t bytes)
{
	size_t done = 0;

	/* one period, in two pieces, and from then on what is already written */
	while (done < bytes && done < period) {
		size_t part = period - at;

		if (part > bytes - done)
			part = bytes - done;
		if (part > period - done)
			part = period - done;
		memcpy(to + done, string + at, part);
		done += part;
		at = 0;
	}
	while (done < bytes) {
		const size_t part = done < bytes - done ? done : bytes - done;

		memcpy(to + done, to, part);
		done += part;
	}
}

/* Bytes [offset, offset + bytes) of the payload. */
static void place_fill(const struct pattern *pattern, const struct pattern_place *place,
		       uint32_t offset, uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	static const uint8_t walk[8] = { 0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1 };
	const uint64_t q = (pattern->restart ? 0 : place->position) + offset;

	if (pattern_is_prbs(pattern->kind)) {
		prbs_fill(pattern, place, offset, to, bytes, cpu);
		return;
	}
	switch (pattern->kind) {
	case PATTERN_NONE:
		memset(to, 0, bytes);
		return;
	case PATTERN_CONSTANT:
		memset(to, (int)pattern->value, bytes);
		return;
	case PATTERN_WALKING_ONE:
		repeat_fill(walk, sizeof(walk), q % 8, to, bytes);
		return;
	case PATTERN_RANDOM:
		random_fill(pattern, place, offset, to, bytes);
		return;
	case PATTERN_FILE:
		repeat_fill(pattern->file, pattern->period,
			    pattern_file_index(pattern, place, offset), to, bytes);
		return;
	default:
		if (pattern_is_counter(pattern->kind) && q <= UINT64_MAX - bytes)
			counter_fill(pattern->kind, q, to, bytes, cpu);
		else
			words_fill(pattern, place, offset, to, bytes);
	}
}

void pattern_fill(const struct pattern *pattern, const struct pattern_place *place, uint8_t *to,
		  size_t bytes)
{
	place_fill(pattern, place, 0, to, bytes, fast_cpu_now());
}

/* Adds the wrong bits of a piece that is known to have some. */
static void piece_count(const uint8_t *expected, const uint8_t *got, uint32_t offset, size_t bytes,
			struct pattern_mismatch *mismatch)
{
	size_t i = 0;

	if (!mismatch->wrong_bits) {
		while (expected[i] == got[i])
			i++;
		mismatch->offset = offset + (uint32_t)i;
		mismatch->expected = expected[i];
		mismatch->got = got[i];
	}
	for (; i + 8 <= bytes; i += 8) {
		uint64_t a, b;

		memcpy(&a, expected + i, 8);
		memcpy(&b, got + i, 8);
		mismatch->wrong_bits += (uint32_t)__builtin_popcountll(a ^ b);
	}
	for (; i < bytes; i++)
		mismatch->wrong_bits += (uint32_t)__builtin_popcount(expected[i] ^ got[i]);
}

/* Compares payload bytes [offset, offset + bytes) by making what belongs there. */
FAST_INLINE uint32_t filled_check(const struct pattern *pattern, const struct pattern_place *place,
				  uint32_t offset, const uint8_t *payload, size_t bytes,
				  struct fast_cpu cpu, struct pattern_mismatch *mismatch)
{
	uint8_t expected[2048]; /* stays in the first-level cache */

	for (size_t at = 0; at < bytes; at += sizeof(expected)) {
		const size_t part = bytes - at < sizeof(expected) ? bytes - at : sizeof(expected);
		const uint32_t from = offset + (uint32_t)at;

		place_fill(pattern, place, from, expected, part, cpu);
		if (memcmp(expected, payload + at, part))
			piece_count(expected, payload + at, from, part, mismatch);
	}
	return mismatch->wrong_bits;
}

/*
 * True when the payload's bytes from `offset` on are right, for the kinds that need not be written
 * to be compared; false says nothing yet.
 */
FAST_INLINE bool part_is_right(const struct pattern *pattern, const struct pattern_place *place,
			       uint32_t offset, const uint8_t *part, size_t bytes,
			       struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	const uint64_t q = (pattern->restart ? 0 : place->position) + offset;

	if (pattern_is_prbs(pattern->kind) && !offset)
		return prbs_is_right_ahead(pattern, place, part, bytes, cpu, ahead);
	if (pattern_is_prbs(pattern->kind))
		return prbs_follows(
			pattern,
			prbs_window(pattern, pattern_prbs_phase(pattern, place, offset), cpu.clmul),
			part, bytes, cpu, ahead);
	if (pattern_is_counter(pattern->kind) && q <= UINT64_MAX - bytes)
		return counter_is_right(pattern->kind, q, part, bytes, cpu, ahead);
	ahead_all(ahead);
	return false;
}

uint32_t pattern_check_ahead(const struct pattern *pattern, const struct pattern_place *place,
			     const uint8_t *payload, size_t bytes,
			     const struct pattern_ahead *ahead, struct pattern_mismatch *mismatch)
{
	const struct fast_cpu cpu = fast_cpu_now();

	memset(mismatch, 0, sizeof(*mismatch));
	if (pattern->kind == PATTERN_NONE)
		return 0;
	if (part_is_right(pattern, place, 0, payload, bytes, cpu, ahead))
		return 0;
	return filled_check(pattern, place, 0, payload, bytes, cpu, mismatch);
}

uint32_t pattern_check_part(const struct pattern *pattern, const struct pattern_place *place,
			    uint32_t offset, const uint8_t *part, size_t bytes,
			    struct pattern_mismatch *mismatch)
{
	const struct fast_cpu cpu = fast_cpu_now();

	memset(mismatch, 0, sizeof(*mismatch));
	if (pattern->kind == PATTERN_NONE || !bytes)
		return 0;
	if (part_is_right(pattern, place, offset, part, bytes, cpu, NULL))
		return 0;
	return filled_check(pattern, place, offset, part, bytes, cpu, mismatch);
}
