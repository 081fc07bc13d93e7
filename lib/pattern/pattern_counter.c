/* SPDX-License-Identifier: BSD-3-Clause */
/* Counter payloads, 64 bytes at a time. */
#include <string.h>

#include "pattern_fast.h"

typedef uint8_t counters1 __attribute__((vector_size(64), aligned(1), may_alias));
typedef uint16_t counters2 __attribute__((vector_size(64), aligned(1), may_alias));
typedef uint32_t counters4 __attribute__((vector_size(64), aligned(1), may_alias));
typedef uint64_t counters8 __attribute__((vector_size(64), aligned(1), may_alias));

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FOREIGN(big_endian) (big_endian)
#else
#define FOREIGN(big_endian) (!(big_endian))
#endif

/* Byte swaps by shifts, so that they need no more than the baseline's instructions. */
#define SWAP1(v) (v)
#define SWAP2(v) ((v) << 8 | (v) >> 8)
#define SWAP4(v) (((v) << 24) | (((v) << 8) & 0xff0000) | (((v) >> 8) & 0xff00) | ((v) >> 24))

FAST_INLINE void swap8(counters8 *v)
{
	*v = (*v << 32) | (*v >> 32);
	*v = ((*v & 0x0000ffff0000ffffull) << 16) | ((*v >> 16) & 0x0000ffff0000ffffull);
	*v = ((*v & 0x00ff00ff00ff00ffull) << 8) | ((*v >> 8) & 0x00ff00ff00ff00ffull);
}

/*
 * One loop for each width: `index` is the first counter's, to[0] its first byte. The last, partial
 * vector goes through a copy.
 */
#define COUNTER_LOOP(width, vector, element, swap)                                                 \
	do {                                                                                       \
		vector counter, out;                                                               \
                                                                                                   \
		for (unsigned int lane = 0; lane < 64 / (width); lane++)                           \
			counter[lane] = (element)(index + lane);                                   \
		for (; bytes; to += 64, bytes -= 64) {                                             \
			out = counter;                                                             \
			if (foreign)                                                               \
				swap;                                                              \
			if (bytes < 64) {                                                          \
				memcpy(to, &out, bytes);                                           \
				break;                                                             \
			}                                                                          \
			*(vector *)to = out;                                                       \
			counter += (element)(64 / (width));                                        \
		}                                                                                  \
	} while (0)

FAST_INLINE void counter_rows(uint32_t log2, bool foreign, uint64_t index, uint8_t *to,
			      size_t bytes)
{
	switch (log2) {
	case 0:
		COUNTER_LOOP(1, counters1, uint8_t, out = SWAP1(out));
		break;
	case 1:
		COUNTER_LOOP(2, counters2, uint16_t, out = SWAP2(out));
		break;
	case 2:
		COUNTER_LOOP(4, counters4, uint32_t, out = SWAP4(out));
		break;
	default:
		COUNTER_LOOP(8, counters8, uint64_t, swap8(&out));
		break;
	}
}

#define COUNTER_VARIANT(level, target)                                                             \
	target static void counter_rows_##level(uint32_t log2, bool foreign, uint64_t index,       \
						uint8_t *to, size_t bytes)                         \
	{                                                                                          \
		if (foreign)                                                                       \
			counter_rows(log2, true, index, to, bytes);                                \
		else                                                                               \
			counter_rows(log2, false, index, to, bytes);                               \
	}

COUNTER_VARIANT(generic, )
COUNTER_VARIANT(avx2, FAST_TARGET_AVX2)
COUNTER_VARIANT(avx512, FAST_TARGET_AVX512)

void counter_fill(uint32_t kind, uint64_t q, uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	const uint32_t log2 = kind == PATTERN_COUNTER8 ? 0 : (kind - PATTERN_COUNTER8 + 1) / 2;
	const bool big_endian = log2 && (kind - PATTERN_COUNTER16_BE) % 2 == 0;
	const bool foreign = FOREIGN(big_endian);

	/* up to the first whole counter */
	for (; bytes && q & ((1u << log2) - 1); q++, bytes--)
		*to++ = (uint8_t)pattern_counter_word(log2, big_endian, q);
	if (cpu.level == FAST_AVX512)
		counter_rows_avx512(log2, foreign, q >> log2, to, bytes);
	else if (cpu.level == FAST_AVX2)
		counter_rows_avx2(log2, foreign, q >> log2, to, bytes);
	else
		counter_rows_generic(log2, foreign, q >> log2, to, bytes);
}
