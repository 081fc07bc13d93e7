/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definition of pattern_word(). Included by pattern.h; compiles as C (gnu17) and as CUDA C++17.
 *
 * A kernel that gives pattern_word() a pattern whose `kind` is a compile-time constant gets code for
 * that pattern only.
 */
#ifndef GDRCAP_PATTERN_WORD_H
#define GDRCAP_PATTERN_WORD_H

#ifdef __CUDA_ARCH__
#define GDRCAP_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define GDRCAP_UNROLL /* the host pass of nvcc knows no pragma that its compiler knows too */
#elif defined(__clang__)
#define GDRCAP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GDRCAP_UNROLL _Pragma("GCC unroll 32")
#endif

GDRCAP_HD uint32_t pattern_swap32(uint32_t x)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(x, 0, 0x0123);
#else
	return __builtin_bswap32(x);
#endif
}

GDRCAP_HD int pattern_is_prbs(uint32_t kind)
{
	return kind >= PATTERN_PRBS7 && kind <= PATTERN_PRBS31;
}

GDRCAP_HD int pattern_is_counter(uint32_t kind)
{
	return kind >= PATTERN_COUNTER8 && kind <= PATTERN_COUNTER64_LE;
}

/*
 * x modulo 2^n - 1 by adding up n-bit digits, since 2^n = 1. May return 2^n - 1 for 0: the tables
 * cover that position too, and it is the same place in the sequence.
 */
GDRCAP_HD uint64_t pattern_fold(uint64_t x, uint32_t n, uint64_t period)
{
	while (x > period)
		x = (x & period) + (x >> n);
	return x;
}

/*
 * Bit position in the period of payload byte `offset`. The stream's position is reduced before
 * offset is added, so a frame whose (hostile) position is just below 2^64 bytes keeps its phase.
 */
GDRCAP_HD uint64_t pattern_prbs_phase(const struct pattern *pattern,
				      const struct pattern_place *place, uint32_t offset)
{
	uint64_t start = pattern->restart ? 0 : place->position;

	start = pattern_fold(start, pattern->degree, pattern->period);
	return pattern_fold((start + offset) << 3, pattern->degree, pattern->period);
}

/* What a jump reads from memory: a caller may have something to do before it comes. */
struct pattern_jump {
	uint64_t window;
	uint32_t power;
};

GDRCAP_HD void pattern_prbs_jump(const struct pattern *pattern, uint64_t phase,
				 struct pattern_jump *jump)
{
	jump->window = pattern->windows[phase >> pattern->lo_bits];
	jump->power = pattern->powers[phase & ((1u << pattern->lo_bits) - 1)];
}

/* Coefficients 16 * part .. 16 * part + 15 of the power, part 0 or 1: the jump is the sum of both.
 * 31 is the largest degree; the powers of smaller ones have zeros above. */
GDRCAP_HD uint32_t pattern_jump_part(const struct pattern_jump *jump, uint32_t part)
{
	const uint64_t window = jump->window << (16 * part);
	const uint32_t power = jump->power >> (16 * part);
	uint32_t bits = 0;

	GDRCAP_UNROLL
	for (uint32_t j = 0; j < 16; j++)
		bits ^= (uint32_t)(window >> (32 - j)) & (0u - (power >> j & 1u));
	return bits;
}

/* 32 uninverted bits, first bit in bit 31. */
GDRCAP_HD uint32_t pattern_jump_bits(const struct pattern_jump *jump)
{
	return pattern_jump_part(jump, 0) ^ pattern_jump_part(jump, 1);
}

/* 32 uninverted bits from bit position `phase`, first bit in bit 31. */
GDRCAP_HD uint32_t pattern_prbs_bits(const struct pattern *pattern, uint64_t phase)
{
	struct pattern_jump jump;

	pattern_prbs_jump(pattern, phase, &jump);
	return pattern_jump_bits(&jump);
}

/* Payload bytes of 32 such bits. */
GDRCAP_HD uint32_t pattern_prbs_bytes(const struct pattern *pattern, uint32_t bits)
{
	return pattern_swap32(bits ^ (0u - pattern->invert));
}

GDRCAP_HD uint32_t pattern_prbs_word(const struct pattern *pattern,
				     const struct pattern_place *place, uint32_t offset)
{
	struct pattern_jump jump;

	pattern_prbs_jump(pattern, pattern_prbs_phase(pattern, place, offset), &jump);
	return pattern_prbs_bytes(pattern, pattern_jump_bits(&jump));
}

/* Four bytes from offset `r` of the byte string that the low (first) and high 32 bits make. */
GDRCAP_HD uint32_t pattern_bytes_of(uint32_t low, uint32_t high, uint32_t r)
{
#ifdef __CUDA_ARCH__
	return __funnelshift_r(low, high, 8 * r);
#else
	return (uint32_t)(((uint64_t)high << 32 | low) >> (8 * r));
#endif
}

/* The bytes of each half of a word swapped. */
GDRCAP_HD uint32_t pattern_swap16(uint32_t x)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(x, 0, 0x2301);
#else
	return (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
#endif
}

/* Four bytes of counters of 1 << log2 bytes, from byte r of counter `index` on. */
GDRCAP_HD uint32_t pattern_counter_bytes(uint32_t log2, int big_endian, uint64_t index, uint32_t r)
{
	uint32_t i = (uint32_t)index, low, high;
	uint64_t wide;

	switch (log2) {
	case 0:
		/* four bytes of 8-bit sums: bit 7 apart, so that no carry leaves a byte */
		low = (i & 0x7fu) * 0x01010101u + 0x03020100u;
		return low ^ ((i & 0x80u) * 0x01010101u);
	case 1:
		low = (i & 0xffffu) | (i + 1) << 16;
		high = (i + 2) & 0xffffu;
		if (big_endian) {
			low = pattern_swap16(low);
			high = pattern_swap16(high);
		}
		return pattern_bytes_of(low, high, r);
	case 2:
		low = big_endian ? pattern_swap32(i) : i;
		high = big_endian ? pattern_swap32(i + 1) : i + 1;
		return pattern_bytes_of(low, high, r);
	default:
		/* r < 4: both words are of this counter; else the second is of the next, which
		 * after the last position (2^64 - 1) is 0 */
		wide = r < 4 ? index : (index + 1) & (UINT64_MAX >> 3);
		if (big_endian) {
			low = pattern_swap32(r < 4 ? (uint32_t)(index >> 32) : i);
			high = pattern_swap32(r < 4 ? i : (uint32_t)(wide >> 32));
		} else {
			low = r < 4 ? i : (uint32_t)(index >> 32);
			high = r < 4 ? (uint32_t)(wide >> 32) : (uint32_t)wide;
		}
		return pattern_bytes_of(low, high, r & 3);
	}
}

/* The same; q is the position of the first of the four bytes. */
GDRCAP_HD uint32_t pattern_counter_word(uint32_t log2, int big_endian, uint64_t q)
{
	return pattern_counter_bytes(log2, big_endian, q >> log2, (uint32_t)q & ((1u << log2) - 1));
}

/* All 64 bits of a product. */
GDRCAP_HD void pattern_product(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low)
{
#ifdef __CUDA_ARCH__
	/* of C's the compiler makes two products, of which each takes as long */
	asm("{ .reg .u64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }"
	    : "=r"(*low), "=r"(*high)
	    : "r"(a), "r"(b));
#else
	const uint64_t product = (uint64_t)a * b;

	*high = (uint32_t)(product >> 32);
	*low = (uint32_t)product;
#endif
}

/*
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011):
 * counter[4] becomes the output.
 */
GDRCAP_HD void pattern_philox(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

	GDRCAP_UNROLL
	for (int round = 0; round < 10; round++) {
		uint32_t high0, low0, high1, low1;

		pattern_product(0xd2511f53u, c0, &high0, &low0);
		pattern_product(0xcd9e8d57u, c2, &high1, &low1);
		c0 = high1 ^ c1 ^ key0;
		c1 = low1;
		c2 = high0 ^ c3 ^ key1;
		c3 = low0;
		key0 += 0x9e3779b9u;
		key1 += 0xbb67ae85u;
	}
	counter[0] = c0;
	counter[1] = c1;
	counter[2] = c2;
	counter[3] = c3;
}

/* The 16 payload bytes from offset 16 * block, as four little-endian words. */
GDRCAP_HD void pattern_random_block(const struct pattern *pattern,
				    const struct pattern_place *place, uint32_t block,
				    uint32_t out[4])
{
	out[0] = block;
	out[1] = place->stream;
	out[2] = (uint32_t)place->sequence;
	out[3] = (uint32_t)(place->sequence >> 32);
	pattern_philox(out, (uint32_t)pattern->seed, (uint32_t)(pattern->seed >> 32));
}

GDRCAP_HD uint32_t pattern_random_word(const struct pattern *pattern,
				       const struct pattern_place *place, uint32_t offset)
{
	const uint32_t w = offset >> 2 & 3, r = offset & 3;
	uint32_t block[4], low, high;

	pattern_random_block(pattern, place, offset >> 4, block);
	/* selects, since an array with a computed index would live in a GPU's local memory */
	low = w < 2 ? (w ? block[1] : block[0]) : (w == 2 ? block[2] : block[3]);
	if (!r)
		return low;
	high = w == 0 ? block[1] : (w == 1 ? block[2] : block[3]);
	if (w == 3) {
		pattern_random_block(pattern, place, (offset >> 4) + 1, block);
		high = block[0];
	}
	return pattern_bytes_of(low, high, r);
}

/* Index in the file of payload byte `offset`. */
GDRCAP_HD uint64_t pattern_file_index(const struct pattern *pattern,
				      const struct pattern_place *place, uint32_t offset)
{
	uint64_t start = pattern->restart ? 0 : place->position % pattern->period;

	return (start + offset) % pattern->period;
}

GDRCAP_HD uint32_t pattern_file_word(const struct pattern *pattern,
				     const struct pattern_place *place, uint32_t offset)
{
	uint64_t at = pattern_file_index(pattern, place, offset);
	uint32_t word = 0;

	for (uint32_t b = 0; b < 4; b++) {
		word |= (uint32_t)pattern->file[at] << (8 * b);
		at = at + 1 == pattern->period ? 0 : at + 1;
	}
	return word;
}

GDRCAP_HD uint32_t pattern_word(const struct pattern *pattern, const struct pattern_place *place,
				uint32_t offset)
{
	const uint64_t q = (pattern->restart ? 0 : place->position) + offset;
	uint32_t r;

	switch (pattern->kind) {
	case PATTERN_PRBS7:
	case PATTERN_PRBS9:
	case PATTERN_PRBS11:
	case PATTERN_PRBS15:
	case PATTERN_PRBS20:
	case PATTERN_PRBS23:
	case PATTERN_PRBS31:
		return pattern_prbs_word(pattern, place, offset);
	case PATTERN_COUNTER8:
		return pattern_counter_word(0, 0, q);
	case PATTERN_COUNTER16_BE:
		return pattern_counter_word(1, 1, q);
	case PATTERN_COUNTER16_LE:
		return pattern_counter_word(1, 0, q);
	case PATTERN_COUNTER32_BE:
		return pattern_counter_word(2, 1, q);
	case PATTERN_COUNTER32_LE:
		return pattern_counter_word(2, 0, q);
	case PATTERN_COUNTER64_BE:
		return pattern_counter_word(3, 1, q);
	case PATTERN_COUNTER64_LE:
		return pattern_counter_word(3, 0, q);
	case PATTERN_CONSTANT:
		return (pattern->value & 0xffu) * 0x01010101u;
	case PATTERN_WALKING_ONE:
		r = (uint32_t)q & 7;
		return r < 4 ? pattern_bytes_of(0x10204080u, 0x01020408u, r)
			     : pattern_bytes_of(0x01020408u, 0x10204080u, r - 4);
	case PATTERN_RANDOM:
		return pattern_random_word(pattern, place, offset);
	case PATTERN_FILE:
		return pattern_file_word(pattern, place, offset);
	default:
		return 0;
	}
}

#endif
