/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PRBS on the host: the tables of the jump, and filling and checking at memory speed.
 *
 * a[i + n] = a[i + n - m] ^ a[i], so the sequence's characteristic polynomial is
 * f(x) = x^n + x^(n - m) + 1, and with x^p = sum c_j x^j (mod f) the bits from position q + p are
 * the sum of c_j times the bits from position q + j.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "pattern_fast.h"

/* Bits from `have` on follow from the first `have` (>= n) by the recurrence, m at a time. */
static inline uint64_t prbs_extend(const struct pattern_plan *plan, uint64_t window, unsigned int have)
{
	const unsigned int n = plan->degree, m = plan->tap;

	for (; have < 64; have += m) {
		const uint64_t later = ~0ull >> have;

		window = (window & ~later) | (((window >> n) ^ (window >> m)) & later);
	}
	return window;
}

/* The jump by x^p, given as `power`: right in its first 65 - n bits. */
static inline uint64_t prbs_jump(uint64_t window, uint32_t power)
{
	uint64_t to = 0;

	for (unsigned int j = 0; j < 31; j++)
		to ^= (window << j) & (0ull - (power >> j & 1));
	return to;
}

#if defined(__x86_64__)
/* prbs_jump() is a product over GF(2) modulo 2^64. */
__attribute__((target("pclmul,sse2"))) static uint64_t prbs_jump_clmul(uint64_t window, uint32_t power)
{
	const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)window),
						     _mm_cvtsi64_si128((long long)power), 0);

	return (uint64_t)_mm_cvtsi128_si64(product);
}
#else
static uint64_t prbs_jump_clmul(uint64_t window, uint32_t power)
{
	return prbs_jump(window, power);
}
#endif

uint64_t prbs_window(const struct pattern_plan *plan, uint64_t phase, bool clmul)
{
	const uint64_t window = plan->windows[phase >> plan->lo_bits];
	const uint32_t power = plan->powers[phase & ((1u << plan->lo_bits) - 1)];

	return prbs_extend(plan,
			   clmul ? prbs_jump_clmul(window, power) : prbs_jump(window, power),
			   65 - plan->degree);
}

int prbs_plan_init(struct pattern_plan *plan)
{
	static const struct {
		uint8_t degree, tap;
	} taps[] = {
		[PATTERN_PRBS7] = { 7, 6 },    [PATTERN_PRBS9] = { 9, 5 },
		[PATTERN_PRBS11] = { 11, 9 },  [PATTERN_PRBS15] = { 15, 14 },
		[PATTERN_PRBS20] = { 20, 3 },  [PATTERN_PRBS23] = { 23, 18 },
		[PATTERN_PRBS31] = { 31, 28 },
	};
	const uint32_t n = taps[plan->kind].degree, m = taps[plan->kind].tap;
	const uint32_t polynomial = 1u << n | 1u << (n - m) | 1u;
	const bool clmul = fast_cpu_now().clmul;
	uint64_t *windows, window;
	uint32_t *powers, power = 1;

	plan->degree = n;
	plan->tap = m;
	plan->period = (1ull << n) - 1;
	plan->far_bytes = n;
	plan->near_bytes = m;
	while (plan->near_bytes < 64) {
		plan->far_bytes *= 2;
		plan->near_bytes *= 2;
	}
	plan->lo_bits = (n + 1) / 2;

	windows = malloc(sizeof(*windows) << (n - plan->lo_bits));
	powers = malloc(sizeof(*powers) << plan->lo_bits);
	if (!windows || !powers) {
		free(windows);
		free(powers);
		return -ENOMEM;
	}
	for (size_t lo = 0; lo < 1u << plan->lo_bits; lo++) {
		powers[lo] = power;
		power <<= 1;
		if (power >> n)
			power ^= polynomial;
	}
	/* the register starts all ones; from here `power` is one row of windows */
	window = prbs_extend(plan, ~0ull << (64 - n), n);
	for (size_t hi = 0; hi < 1u << (n - plan->lo_bits); hi++) {
		windows[hi] = window;
		window = clmul ? prbs_jump_clmul(window, power) : prbs_jump(window, power);
		window = prbs_extend(plan, window, 65 - n);
	}
	plan->windows = windows;
	plan->powers = powers;
	return 0;
}

/* The 64 bits from bit `at` on. */
static inline uint64_t words_bits(const uint64_t *words, size_t at)
{
	const unsigned int r = at % 64;

	return words[at / 64] << r | words[at / 64 + 1] >> 1 >> (63 - r);
}

/*
 * `count` words of 64 uninverted bits from `phase` on; words[count] is written too. The further it
 * comes, the longer the distances a squared polynomial allows, until a word takes one step.
 */
static void prbs_words(const struct pattern_plan *plan, uint64_t phase, uint64_t *words,
		       size_t count, bool clmul)
{
	size_t n = plan->degree, m = plan->tap;

	words[0] = prbs_window(plan, phase, clmul);
	words[1] = 0;
	for (size_t i = 1; i < count; i++) {
		const size_t at = 64 * i;

		words[i + 1] = 0;
		while (2 * n <= at) {
			n *= 2;
			m *= 2;
		}
		for (size_t done = 0; done < 64; done += m) {
			uint64_t bits = words_bits(words, at + done - n) ^
					words_bits(words, at + done - m);

			if (m < 64)
				bits &= ~(~0ull >> m);
			words[i] |= bits >> done;
		}
	}
}

#define HEAD_WORDS 80 /* PRBS-20's far_bytes */

/* The first bytes, 8 * HEAD_WORDS at most, rounded up to whole words in `to`. */
static void prbs_head(const struct pattern_plan *plan, uint64_t phase, uint64_t *to, size_t bytes,
		      bool clmul)
{
	const size_t count = (bytes + 7) / 8;
	const uint64_t invert = 0ull - plan->invert;
	uint64_t words[HEAD_WORDS + 1];

	prbs_words(plan, phase, words, count, clmul);
	for (size_t i = 0; i < count; i++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		to[i] = __builtin_bswap64(words[i] ^ invert);
#else
		to[i] = words[i] ^ invert;
#endif
	}
}

typedef uint64_t vector64 __attribute__((vector_size(64), aligned(1), may_alias));
typedef uint64_t word8 __attribute__((aligned(1), may_alias));

FAST_INLINE void rest_fill(uint8_t *to, size_t from, size_t bytes, size_t far, size_t near,
			   uint64_t invert)
{
	const vector64 inverted = { invert, invert, invert, invert, invert, invert, invert, invert };
	size_t i = from;

	for (; i + 64 <= bytes; i += 64) {
		/* what is read should have left the store buffer */
		if (2 * far <= i && near < 1024) {
			far *= 2;
			near *= 2;
		}
		*(vector64 *)(to + i) = *(const vector64 *)(to + i - far) ^
					*(const vector64 *)(to + i - near) ^ inverted;
	}
	for (; i + 8 <= bytes; i += 8)
		*(word8 *)(to + i) =
			*(const word8 *)(to + i - far) ^ *(const word8 *)(to + i - near) ^ invert;
	for (; i < bytes; i++)
		to[i] = (uint8_t)(to[i - far] ^ to[i - near] ^ invert);
}

/*
 * True when every byte from `far` on follows from the bytes before. Nothing is written here, so
 * the shortest distances serve: far = n and near = m bytes.
 */
FAST_INLINE bool rest_is_right(const uint8_t *at, size_t bytes, size_t far, size_t near,
			       uint64_t invert)
{
	const vector64 inverted = { invert, invert, invert, invert, invert, invert, invert, invert };
	vector64 wrong = { 0 };
	uint64_t any = 0;
	size_t i = far;

	if (bytes - far >= 64) {
		for (; i + 64 <= bytes; i += 64)
			wrong |= *(const vector64 *)(at + i) ^ *(const vector64 *)(at + i - far) ^
				 *(const vector64 *)(at + i - near) ^ inverted;
		i = bytes - 64; /* the tail, overlapping what was checked */
		wrong |= *(const vector64 *)(at + i) ^ *(const vector64 *)(at + i - far) ^
			 *(const vector64 *)(at + i - near) ^ inverted;
		for (unsigned int lane = 0; lane < 8; lane++)
			any |= wrong[lane];
		return !any;
	}
	for (; i + 8 <= bytes; i += 8)
		any |= *(const word8 *)(at + i) ^ *(const word8 *)(at + i - far) ^
		       *(const word8 *)(at + i - near) ^ invert;
	for (; i < bytes; i++)
		any |= (uint8_t)(at[i] ^ at[i - far] ^ at[i - near] ^ invert);
	return !any;
}

#define REST_VARIANT(level, target)                                                                \
	target static void rest_fill_##level(uint8_t *to, size_t from, size_t bytes, size_t far,   \
					     size_t near, uint64_t invert)                         \
	{                                                                                          \
		rest_fill(to, from, bytes, far, near, invert);                                     \
	}                                                                                          \
	target static bool rest_is_right_##level(const uint8_t *at, size_t bytes, size_t far,      \
						 size_t near, uint64_t invert)                     \
	{                                                                                          \
		return rest_is_right(at, bytes, far, near, invert);                                \
	}

REST_VARIANT(generic, )
REST_VARIANT(avx2, FAST_TARGET_AVX2)
REST_VARIANT(avx512, FAST_TARGET_AVX512)

#define FILL_PART 2048

/*
 * Goes through a buffer in the first-level cache: the recurrence reads what it wrote, and the
 * frame's own lines may still be on their way from memory.
 */
void prbs_fill(const struct pattern_plan *plan, const struct pattern_place *place, uint32_t offset,
	       uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	const size_t far = plan->far_bytes, near = plan->near_bytes;
	const uint64_t invert = 0ull - plan->invert;
	size_t part = bytes < far ? bytes : far, end = far;
	union {
		uint64_t words[HEAD_WORDS];
		uint8_t bytes[8 * HEAD_WORDS + FILL_PART];
	} buffer;

	if (!bytes)
		return;
	prbs_head(plan, pattern_prbs_phase(plan, place, offset), buffer.words, part, cpu.clmul);
	memcpy(to, buffer.bytes, part);
	while (bytes -= part) {
		to += part;
		/* the next part follows from the `far` bytes before `end` */
		if (end > far)
			memmove(buffer.bytes, buffer.bytes + end - far, far);
		part = bytes < FILL_PART ? bytes : FILL_PART;
		end = far + part;
		if (cpu.level == FAST_AVX512)
			rest_fill_avx512(buffer.bytes, far, end, far, near, invert);
		else if (cpu.level == FAST_AVX2)
			rest_fill_avx2(buffer.bytes, far, end, far, near, invert);
		else
			rest_fill_generic(buffer.bytes, far, end, far, near, invert);
		memcpy(to, buffer.bytes + far, part);
	}
}

bool prbs_is_right(const struct pattern_plan *plan, const struct pattern_place *place,
		   const uint8_t *payload, size_t bytes, struct fast_cpu cpu)
{
	const size_t far = plan->degree, near = plan->tap;
	const size_t head = bytes < far ? bytes : far;
	const uint64_t invert = 0ull - plan->invert;
	uint64_t words[4]; /* 31 bytes */

	if (!bytes)
		return true;
	prbs_head(plan, pattern_prbs_phase(plan, place, 0), words, head, cpu.clmul);
	if (memcmp(payload, words, head))
		return false;
	if (bytes == head)
		return true;
	if (cpu.level == FAST_AVX512)
		return rest_is_right_avx512(payload, bytes, far, near, invert);
	if (cpu.level == FAST_AVX2)
		return rest_is_right_avx2(payload, bytes, far, near, invert);
	return rest_is_right_generic(payload, bytes, far, near, invert);
}
