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
static inline uint64_t prbs_extend(const struct pattern_plan *plan, uint64_t window,
				   unsigned int have)
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
__attribute__((target("pclmul,sse2"))) static uint64_t prbs_jump_clmul(uint64_t window,
								       uint32_t power)
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
 * `count` words (at most n) of 64 uninverted bits, words[0] given; words[count] is written too.
 * The further it comes, the longer the distances a squared polynomial allows, until a word takes
 * one step.
 */
FAST_INLINE void words_extend(const struct pattern_plan *plan, uint64_t *words, size_t count)
{
	size_t n = plan->degree, m = plan->tap, i = 1;

	words[1] = 0;
	while (i < count) {
		size_t end = count;

		while (2 * n <= 64 * i) {
			n *= 2;
			m *= 2;
		}
		if (m >= 64) {
			/* until the distances can be doubled again */
			if (end > (2 * n + 63) / 64)
				end = (2 * n + 63) / 64;
			for (; i < end; i++)
				words[i] = words_bits(words, 64 * i - n) ^
					   words_bits(words, 64 * i - m);
			words[i] = 0;
			continue;
		}
		words[i + 1] = 0;
		for (size_t done = 0; done < 64; done += m)
			words[i] |= ((words_bits(words, 64 * i + done - n) ^
				      words_bits(words, 64 * i + done - m)) &
				     ~(~0ull >> m)) >>
				    done;
		i++;
	}
}

static void words_extend_generic(const struct pattern_plan *plan, uint64_t *words, size_t count)
{
	words_extend(plan, words, count);
}

FAST_TARGET_AVX2 static void words_extend_avx2(const struct pattern_plan *plan, uint64_t *words,
					       size_t count)
{
	words_extend(plan, words, count);
}

/* As many words, of which the first is `window`. */
static void prbs_words(const struct pattern_plan *plan, uint64_t window, uint64_t *words,
		       size_t count, struct fast_cpu cpu)
{
	words[0] = window;
	if (cpu.level >= FAST_AVX2)
		words_extend_avx2(plan, words, count);
	else
		words_extend_generic(plan, words, count);
}

/* The payload's next 8 bytes as they are in memory. */
static inline uint64_t word_bytes(uint64_t word, uint64_t invert)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(word ^ invert);
#else
	return word ^ invert;
#endif
}

typedef uint64_t vector32 __attribute__((vector_size(32), may_alias));
typedef uint64_t vector32_any __attribute__((vector_size(32), aligned(1), may_alias));

#define FETCH_BYTES 1536
#define RING 64u /* vectors; a power of two above the largest n */

/* Vectors from number n on; `to` is vector 0's place, `bytes` counts from there. */
FAST_INLINE void rest_fill(vector32 ring[RING], uint8_t *to, size_t bytes, size_t n, size_t m,
			   uint64_t invert)
{
	const vector32 inverted = (vector32){ 0 } + invert;
	size_t v = n;

	for (; 32 * v + 32 <= bytes; v++) {
		const vector32 next = ring[(v - n) % RING] ^ ring[(v - m) % RING] ^ inverted;

		ring[v % RING] = next;
		*(vector32_any *)(to + 32 * v) = next;
	}
	ring[v % RING] = ring[(v - n) % RING] ^ ring[(v - m) % RING] ^ inverted;
	memcpy(to + 32 * v, &ring[v % RING], bytes - 32 * v);
}

#define FILL_VARIANT(level, target)                                                                \
	target static void rest_fill_##level(vector32 ring[RING], uint8_t *to, size_t bytes,       \
					     size_t n, size_t m, uint64_t invert)                  \
	{                                                                                          \
		rest_fill(ring, to, bytes, n, m, invert);                                          \
	}

FILL_VARIANT(generic, )
FILL_VARIANT(avx2, FAST_TARGET_AVX2)

/*
 * After n words the squared polynomial's distances are n and m whole words, after 4 n words n and
 * m vectors of 32 bytes. Every load is of what one store wrote: one that spans several would wait
 * until they left the store buffer, where the last frame's stores wait for memory.
 */
void prbs_fill(const struct pattern_plan *plan, const struct pattern_place *place, uint32_t offset,
	       uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	const size_t n = plan->degree, m = plan->tap, count = (bytes + 7) / 8;
	const size_t head = count < n ? count : n, row = count < 4 * n ? count : 4 * n;
	const uint64_t invert = 0ull - plan->invert;
	uint64_t words[31 + 1];
	union {
		uint64_t words[4 * RING];
		vector32 vectors[RING];
	} ring;
	size_t full = bytes / 8, i;
	uint64_t next = 0;

	if (!bytes)
		return;
	if (full > row)
		full = row;
	/* short stores to lines that are not there would fill the store buffer */
	for (i = 0; i < bytes && i < FETCH_BYTES; i += 64)
		__builtin_prefetch(to + i, 1);
	prbs_words(plan, prbs_window(plan, pattern_prbs_phase(plan, place, offset), cpu.clmul),
		   words, head, cpu);
	for (i = 0; i < row; i++) {
		next = i < n ? word_bytes(words[i], invert) :
			       ring.words[i - n] ^ ring.words[i - m] ^ invert;
		ring.words[i] = next;
		if (i == full)
			break;
		memcpy(to + 8 * i, &next, 8);
	}
	if (i < row)
		memcpy(to + 8 * i, &next, bytes % 8);
	else if (cpu.level >= FAST_AVX2 && bytes > 8 * row)
		rest_fill_avx2(ring.vectors, to, bytes, n, m, invert);
	else if (bytes > 8 * row)
		rest_fill_generic(ring.vectors, to, bytes, n, m, invert);
}

/* True when the first bytes (n at most) are `window` and what follows from it. */
FAST_INLINE bool head_is_right(const struct pattern_plan *plan, uint64_t window, const uint8_t *at,
			       size_t bytes, struct fast_cpu cpu)
{
	const uint64_t invert = 0ull - plan->invert;
	uint64_t words[4 + 1], got, any = 0;
	const size_t full = bytes / 8, rest = bytes % 8;

	prbs_words(plan, window, words, full + (rest != 0), cpu);
	for (size_t i = 0; i < full; i++) {
		memcpy(&got, at + 8 * i, 8);
		any |= got ^ word_bytes(words[i], invert);
	}
	if (rest) {
		got = 0;
		for (size_t i = 0; i < rest; i++)
			got |= (uint64_t)at[8 * full + i] << (56 - 8 * i);
		any |= (got ^ words[full] ^ invert) >> (64 - 8 * rest);
	}
	return !any;
}

typedef uint64_t vector64 __attribute__((vector_size(64), aligned(1), may_alias));
typedef uint64_t word8 __attribute__((aligned(1), may_alias));

/*
 * True when every byte from `far` on follows from the bytes before. Nothing is written here, so
 * the shortest distances serve: far = n and near = m bytes.
 */
FAST_INLINE bool rest_is_right(const uint8_t *at, size_t bytes, size_t far, size_t near,
			       uint64_t invert)
{
	const vector64 inverted = (vector64){ 0 } + invert;
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
	target static bool rest_is_right_##level(const uint8_t *at, size_t bytes, size_t far,      \
						 size_t near, uint64_t invert)                     \
	{                                                                                          \
		return rest_is_right(at, bytes, far, near, invert);                                \
	}

REST_VARIANT(generic, )
REST_VARIANT(avx2, FAST_TARGET_AVX2)
REST_VARIANT(avx512, FAST_TARGET_AVX512)

FAST_INLINE bool all_follows(const struct pattern_plan *plan, uint64_t window,
			     const uint8_t *payload, size_t bytes, struct fast_cpu cpu)
{
	const size_t far = plan->degree, near = plan->tap;
	const size_t head = bytes < far ? bytes : far;
	const uint64_t invert = 0ull - plan->invert;

	if (!head_is_right(plan, window, payload, head, cpu))
		return false;
	if (bytes == head)
		return true;
	if (cpu.level == FAST_AVX512)
		return rest_is_right_avx512(payload, bytes, far, near, invert);
	if (cpu.level == FAST_AVX2)
		return rest_is_right_avx2(payload, bytes, far, near, invert);
	return rest_is_right_generic(payload, bytes, far, near, invert);
}

bool prbs_follows(const struct pattern_plan *plan, uint64_t window, const uint8_t *payload,
		  size_t bytes, struct fast_cpu cpu)
{
	return all_follows(plan, window, payload, bytes, cpu);
}

bool prbs_is_right(const struct pattern_plan *plan, const struct pattern_place *place,
		   const uint8_t *payload, size_t bytes, struct fast_cpu cpu)
{
	if (!bytes)
		return true;
	return all_follows(plan, prbs_window(plan, pattern_prbs_phase(plan, place, 0), cpu.clmul),
			   payload, bytes, cpu);
}
