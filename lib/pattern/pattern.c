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

int pattern_plan_init(struct pattern_plan *plan, const struct pattern_config *config)
{
	memset(plan, 0, sizeof(*plan));
	if ((unsigned int)config->kind >= PATTERN_KINDS || config->invert < -1 ||
	    config->invert > 1)
		return -EINVAL;
	/* an inversion that would not happen must not be accepted in silence */
	if (config->invert == 1 && !pattern_is_prbs(config->kind))
		return -EINVAL;
	plan->kind = config->kind;
	plan->restart = !!config->restart;
	if (pattern_is_prbs(plan->kind)) {
		plan->invert = config->invert >= 0 ? (uint32_t)config->invert
						   : plan->kind == PATTERN_PRBS15 ||
							     plan->kind == PATTERN_PRBS23 ||
							     plan->kind == PATTERN_PRBS31;
		return prbs_plan_init(plan);
	}
	if (plan->kind == PATTERN_CONSTANT)
		plan->value = config->value;
	if (plan->kind == PATTERN_RANDOM)
		plan->seed = config->seed;
	if (plan->kind == PATTERN_FILE) {
		if (!config->file || !config->file_bytes)
			return -EINVAL;
		plan->file = config->file;
		plan->period = config->file_bytes;
	}
	return 0;
}

void pattern_plan_free(struct pattern_plan *plan)
{
	free((void *)plan->windows);
	free((void *)plan->powers);
	memset(plan, 0, sizeof(*plan));
}

struct pattern_tables pattern_plan_tables(const struct pattern_plan *plan)
{
	struct pattern_tables tables = { 0 };

	if (pattern_is_prbs(plan->kind)) {
		tables.windows_bytes = sizeof(*plan->windows) << (plan->degree - plan->lo_bits);
		tables.powers_bytes = sizeof(*plan->powers) << plan->lo_bits;
	} else if (plan->kind == PATTERN_FILE) {
		tables.file_bytes = plan->period;
	}
	return tables;
}

/* The last resort, for positions that wrap around 2^64 inside a frame. */
static void words_fill(const struct pattern_plan *plan, const struct pattern_place *place,
		       uint32_t offset, uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)pattern_word(plan, place, offset + (uint32_t)i);
}

static void random_fill(const struct pattern_plan *plan, const struct pattern_place *place,
			uint32_t offset, uint8_t *to, size_t bytes)
{
	uint32_t block = offset / 16;
	size_t skip = offset % 16;

	while (bytes) {
		const size_t part = bytes < 16 - skip ? bytes : 16 - skip;
		uint64_t halves[2];
		uint32_t out[4];

		pattern_random_block(plan, place, block++, out);
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
static void place_fill(const struct pattern_plan *plan, const struct pattern_place *place,
		       uint32_t offset, uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	static const uint8_t walk[8] = { 0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1 };
	const uint64_t q = (plan->restart ? 0 : place->position) + offset;

	if (pattern_is_prbs(plan->kind)) {
		prbs_fill(plan, place, offset, to, bytes, cpu);
		return;
	}
	switch (plan->kind) {
	case PATTERN_NONE:
		memset(to, 0, bytes);
		return;
	case PATTERN_CONSTANT:
		memset(to, (int)plan->value, bytes);
		return;
	case PATTERN_WALKING_ONE:
		repeat_fill(walk, sizeof(walk), q % 8, to, bytes);
		return;
	case PATTERN_RANDOM:
		random_fill(plan, place, offset, to, bytes);
		return;
	case PATTERN_FILE:
		repeat_fill(plan->file, plan->period, pattern_file_index(plan, place, offset), to,
			    bytes);
		return;
	default:
		if (pattern_is_counter(plan->kind) && q <= UINT64_MAX - bytes)
			counter_fill(plan->kind, q, to, bytes, cpu);
		else
			words_fill(plan, place, offset, to, bytes);
	}
}

void pattern_fill(const struct pattern_plan *plan, const struct pattern_place *place, uint8_t *to,
		  size_t bytes)
{
	place_fill(plan, place, 0, to, bytes, fast_cpu_now());
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
FAST_INLINE uint32_t filled_check(const struct pattern_plan *plan,
				  const struct pattern_place *place, uint32_t offset,
				  const uint8_t *payload, size_t bytes, struct fast_cpu cpu,
				  struct pattern_mismatch *mismatch)
{
	uint8_t expected[2048]; /* stays in the first-level cache */

	for (size_t at = 0; at < bytes; at += sizeof(expected)) {
		const size_t part = bytes - at < sizeof(expected) ? bytes - at : sizeof(expected);
		const uint32_t from = offset + (uint32_t)at;

		place_fill(plan, place, from, expected, part, cpu);
		if (memcmp(expected, payload + at, part))
			piece_count(expected, payload + at, from, part, mismatch);
	}
	return mismatch->wrong_bits;
}

/*
 * True when the payload's bytes from `offset` on are right, for the kinds that need not be written
 * to be compared; false says nothing yet.
 */
FAST_INLINE bool part_is_right(const struct pattern_plan *plan, const struct pattern_place *place,
			       uint32_t offset, const uint8_t *part, size_t bytes,
			       struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	const uint64_t q = (plan->restart ? 0 : place->position) + offset;

	if (pattern_is_prbs(plan->kind) && !offset)
		return prbs_is_right_ahead(plan, place, part, bytes, cpu, ahead);
	if (pattern_is_prbs(plan->kind))
		return prbs_follows(
			plan, prbs_window(plan, pattern_prbs_phase(plan, place, offset), cpu.clmul),
			part, bytes, cpu, ahead);
	if (pattern_is_counter(plan->kind) && q <= UINT64_MAX - bytes)
		return counter_is_right(plan->kind, q, part, bytes, cpu, ahead);
	ahead_all(ahead);
	return false;
}

uint32_t pattern_check_ahead(const struct pattern_plan *plan, const struct pattern_place *place,
			     const uint8_t *payload, size_t bytes,
			     const struct pattern_ahead *ahead, struct pattern_mismatch *mismatch)
{
	const struct fast_cpu cpu = fast_cpu_now();

	memset(mismatch, 0, sizeof(*mismatch));
	if (plan->kind == PATTERN_NONE)
		return 0;
	if (part_is_right(plan, place, 0, payload, bytes, cpu, ahead))
		return 0;
	return filled_check(plan, place, 0, payload, bytes, cpu, mismatch);
}

uint32_t pattern_check_part(const struct pattern_plan *plan, const struct pattern_place *place,
			    uint32_t offset, const uint8_t *part, size_t bytes,
			    struct pattern_mismatch *mismatch)
{
	const struct fast_cpu cpu = fast_cpu_now();

	memset(mismatch, 0, sizeof(*mismatch));
	if (plan->kind == PATTERN_NONE || !bytes)
		return 0;
	if (part_is_right(plan, place, offset, part, bytes, cpu, NULL))
		return 0;
	return filled_check(plan, place, offset, part, bytes, cpu, mismatch);
}
