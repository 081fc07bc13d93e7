/* SPDX-License-Identifier: BSD-3-Clause */
/* Counter payloads, a vector at a time. */
#include <string.h>

#include "pattern/pattern_fast.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SWAPPED(big_endian) (big_endian)
#else
#define SWAPPED(big_endian) (!(big_endian))
#endif

/* Byte swaps by shifts, so that they need no more than the baseline's instructions. */
#define SWAP1(v) ((void)0)
#define SWAP2(v) ((v) = (v) << 8 | (v) >> 8)
#define SWAP4(v)                                                                                   \
	((v) = (v) << 16 | (v) >> 16, (v) = ((v)&0x00ff00ffu) << 8 | ((v) >> 8 & 0x00ff00ffu))
#define SWAP8(v)                                                                                   \
	((v) = (v) << 32 | (v) >> 32,                                                              \
	 (v) = ((v)&0x0000ffff0000ffffull) << 16 | ((v) >> 16 & 0x0000ffff0000ffffull),            \
	 (v) = ((v)&0x00ff00ff00ff00ffull) << 8 | ((v) >> 8 & 0x00ff00ff00ff00ffull))

/* The first counters of the widest vector. */
#define LANES8(n) (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7
#define LANES32(n) LANES8(n), LANES8((n) + 8), LANES8((n) + 16), LANES8((n) + 24)

static const uint8_t lanes1[64] = { LANES32(0), LANES32(32) };
static const uint16_t lanes2[32] = { LANES32(0) };
static const uint32_t lanes4[16] = { LANES8(0), LANES8(8) };
static const uint64_t lanes8[8] = { LANES8(0) };

/* The vector that starts with counter number n. */
#define COUNTERS_FROM(vector, element, lanes, n) (*(const vector *)(lanes) + (element)(n))

/* From counter `index` on, which starts at to[0]. The last, partial vector goes through a copy. */
#define COUNTER_FILL(width, vector, element, lanes, SWAP)                                          \
	do {                                                                                       \
		vector counter = COUNTERS_FROM(vector, element, lanes, index), out;                \
                                                                                                   \
		for (; bytes; to += sizeof(out), bytes -= sizeof(out)) {                           \
			out = counter;                                                             \
			if (swapped)                                                               \
				SWAP(out);                                                         \
			if (bytes < sizeof(out)) {                                                 \
				memcpy(to, &out, bytes);                                           \
				break;                                                             \
			}                                                                          \
			*(vector *)to = out;                                                       \
			counter += (element)(sizeof(out) / (width));                               \
		}                                                                                  \
	} while (0)

/* 64 bytes from `at` on; `counter` goes on with them. */
#define COUNTER_ROW(width, vector, element, SWAP, at)                                              \
	do {                                                                                       \
		for (size_t part = 0; part < 64; part += sizeof(vector)) {                         \
			vector out = counter;                                                      \
                                                                                                   \
			if (swapped)                                                               \
				SWAP(out);                                                         \
			wrong |= out ^ *(const vector *)((at) + part);                             \
			counter += (element)(sizeof(vector) / (width));                            \
		}                                                                                  \
	} while (0)

/*
 * Whole counters, 64 bytes of them at least. Rows begin where lines do, as far as counters do too,
 * but for the first and the last, which overlap others.
 */
#define COUNTER_CHECK(width, vector, element, lanes, SWAP)                                         \
	do {                                                                                       \
		const uint8_t *const last = at + bytes - 64;                                       \
		const size_t skip = (64 - (uintptr_t)at % 64) & ~(size_t)((width)-1);              \
		vector counter = COUNTERS_FROM(vector, element, lanes, index), wrong = { 0 };      \
                                                                                                   \
		COUNTER_ROW(width, vector, element, SWAP, at);                                     \
		counter = COUNTERS_FROM(vector, element, lanes, index + skip / (width));           \
		for (at += skip; at <= last; at += 64) {                                           \
			ahead_line(&lines);                                                        \
			COUNTER_ROW(width, vector, element, SWAP, at);                             \
		}                                                                                  \
		counter = COUNTERS_FROM(vector, element, lanes, index + (bytes - 64) / (width));   \
		COUNTER_ROW(width, vector, element, SWAP, last);                                   \
		for (size_t lane = 0; lane < sizeof(wrong) / (width); lane++)                      \
			any |= wrong[lane];                                                        \
	} while (0)

#define EACH_WIDTH(ACTION, level)                                                                  \
	do {                                                                                       \
		switch (log2) {                                                                    \
		case 0:                                                                            \
			ACTION(1, level##_1, uint8_t, lanes1, SWAP1);                              \
			break;                                                                     \
		case 1:                                                                            \
			ACTION(2, level##_2, uint16_t, lanes2, SWAP2);                             \
			break;                                                                     \
		case 2:                                                                            \
			ACTION(4, level##_4, uint32_t, lanes4, SWAP4);                             \
			break;                                                                     \
		default:                                                                           \
			ACTION(8, level##_8, uint64_t, lanes8, SWAP8);                             \
			break;                                                                     \
		}                                                                                  \
	} while (0)

#define COUNTER_VARIANT(level, target, size)                                                       \
	typedef uint8_t level##_1 __attribute__((vector_size(size), aligned(1), may_alias));       \
	typedef uint16_t level##_2 __attribute__((vector_size(size), aligned(1), may_alias));      \
	typedef uint32_t level##_4 __attribute__((vector_size(size), aligned(1), may_alias));      \
	typedef uint64_t level##_8 __attribute__((vector_size(size), aligned(1), may_alias));      \
                                                                                                   \
	target static void counter_rows_##level(uint32_t log2, bool swapped, uint64_t index,       \
						uint8_t *to, size_t bytes)                         \
	{                                                                                          \
		EACH_WIDTH(COUNTER_FILL, level);                                                   \
	}                                                                                          \
                                                                                                   \
	target static bool rows_are_right_##level(uint32_t log2, bool swapped, uint64_t index,     \
						  const uint8_t *at, size_t bytes,                 \
						  const struct pattern_ahead *ahead)               \
	{                                                                                          \
		struct pattern_ahead lines = ahead_begin(ahead, at);                               \
		uint64_t any = 0;                                                                  \
                                                                                                   \
		EACH_WIDTH(COUNTER_CHECK, level);                                                  \
		ahead_all(&lines);                                                                 \
		return !any;                                                                       \
	}

COUNTER_VARIANT(generic, , FAST_BYTES_GENERIC)
COUNTER_VARIANT(avx2, FAST_TARGET_AVX2, FAST_BYTES_AVX2)
COUNTER_VARIANT(avx512, FAST_TARGET_AVX512, FAST_BYTES_AVX512)

/* log2 of a counter's bytes; 1: its first byte is the most significant. */
struct counter_form {
	uint32_t log2;
	bool big_endian;
};

static inline struct counter_form counter_form(uint32_t kind)
{
	return (struct counter_form){
		.log2 = kind == PATTERN_COUNTER8 ? 0 : (kind - PATTERN_COUNTER8 + 1) / 2,
		.big_endian = kind != PATTERN_COUNTER8 && (kind - PATTERN_COUNTER16_BE) % 2 == 0,
	};
}

void counter_fill(uint32_t kind, uint64_t q, uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	const struct counter_form form = counter_form(kind);
	const uint32_t log2 = form.log2;
	const bool swapped = SWAPPED(form.big_endian);

	/* up to the first whole counter */
	for (; bytes && q & ((1u << log2) - 1); q++, bytes--)
		*to++ = (uint8_t)pattern_counter_word(log2, form.big_endian, q);
	if (cpu.level == FAST_AVX512)
		counter_rows_avx512(log2, swapped, q >> log2, to, bytes);
	else if (cpu.level == FAST_AVX2)
		counter_rows_avx2(log2, swapped, q >> log2, to, bytes);
	else
		counter_rows_generic(log2, swapped, q >> log2, to, bytes);
}

/* ---- checking ---- */

/* Up to this many bytes go word by word: a whole vector's and what a counter may begin before it. */
#define WORDS_MAX 72u

FAST_INLINE uint32_t counter_word_got(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, 4);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return word;
#else
	return __builtin_bswap32(word);
#endif
}

/* Not 0 when one of at least 4 bytes is wrong; they may begin and end within a counter. */
FAST_INLINE uint32_t counter_words_wrong(struct counter_form form, uint64_t q, const uint8_t *at,
					 size_t bytes)
{
	const size_t last = bytes - 4;
	uint32_t any = counter_word_got(at + last) ^
		       pattern_counter_word(form.log2, form.big_endian, q + last);

	for (size_t i = 0; i < last; i += 4)
		any |= counter_word_got(at + i) ^
		       pattern_counter_word(form.log2, form.big_endian, q + i);
	return any;
}

static bool counter_few_are_right(struct counter_form form, uint64_t q, const uint8_t *at,
				  size_t bytes)
{
	uint32_t any = 0;

	if (bytes >= 4)
		return !counter_words_wrong(form, q, at, bytes);
	for (size_t i = 0; i < bytes; i++)
		any |= at[i] ^ (pattern_counter_word(form.log2, form.big_endian, q + i) & 0xff);
	return !any;
}

bool counter_is_right(uint32_t kind, uint64_t q, const uint8_t *payload, size_t bytes,
		      struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	const struct counter_form form = counter_form(kind);
	const uint32_t width = 1u << form.log2, begun = (uint32_t)(0 - q) & (width - 1);
	const bool swapped = SWAPPED(form.big_endian);
	const uint8_t *at = payload + begun;
	const uint64_t index = (q + begun) >> form.log2;
	size_t whole;

	if (bytes < WORDS_MAX) {
		ahead_all(ahead);
		return counter_few_are_right(form, q, payload, bytes);
	}
	/* the counters that the ends cut: 7 bytes at most each */
	if (counter_words_wrong(form, q, payload, 8) |
	    counter_words_wrong(form, q + bytes - 8, payload + bytes - 8, 8))
		return false;
	whole = (bytes - begun) & ~(size_t)(width - 1);
	if (cpu.level == FAST_AVX512)
		return rows_are_right_avx512(form.log2, swapped, index, at, whole, ahead);
	if (cpu.level == FAST_AVX2)
		return rows_are_right_avx2(form.log2, swapped, index, at, whole, ahead);
	return rows_are_right_generic(form.log2, swapped, index, at, whole, ahead);
}
