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
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "pattern/pattern_fast.h"

/* Bits from `have` on follow from the first `have` (>= n) by the recurrence, m at a time. */
static inline uint64_t prbs_extend(const struct pattern *pattern, uint64_t window,
				   unsigned int have)
{
	const unsigned int n = pattern->degree, m = pattern->tap;

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
#elif defined(__aarch64__)
/* prbs_jump() is a product over GF(2) modulo 2^64. */
__attribute__((target("+crypto"))) static uint64_t prbs_jump_clmul(uint64_t window, uint32_t power)
{
	return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(window, power)), 0);
}
#else
static uint64_t prbs_jump_clmul(uint64_t window, uint32_t power)
{
	return prbs_jump(window, power);
}
#endif

uint64_t prbs_window(const struct pattern *pattern, uint64_t phase, bool clmul)
{
	const uint64_t window = pattern->windows[phase >> pattern->lo_bits];
	const uint32_t power = pattern->powers[phase & ((1u << pattern->lo_bits) - 1)];

	return prbs_extend(pattern,
			   clmul ? prbs_jump_clmul(window, power) : prbs_jump(window, power),
			   65 - pattern->degree);
}

int prbs_init(struct pattern *pattern)
{
	static const struct {
		uint8_t degree, tap;
	} taps[] = {
		[PATTERN_PRBS7] = { 7, 6 },    [PATTERN_PRBS9] = { 9, 5 },
		[PATTERN_PRBS11] = { 11, 9 },  [PATTERN_PRBS15] = { 15, 14 },
		[PATTERN_PRBS20] = { 20, 3 },  [PATTERN_PRBS23] = { 23, 18 },
		[PATTERN_PRBS31] = { 31, 28 },
	};
	const uint32_t n = taps[pattern->kind].degree, m = taps[pattern->kind].tap;
	const uint32_t polynomial = 1u << n | 1u << (n - m) | 1u;
	const bool clmul = fast_cpu_now().clmul;
	uint64_t *windows, window;
	uint32_t *powers, power = 1;

	pattern->degree = n;
	pattern->tap = m;
	pattern->period = (1ull << n) - 1;
	pattern->far_bytes = n;
	pattern->near_bytes = m;
	while (pattern->near_bytes < 64) {
		pattern->far_bytes *= 2;
		pattern->near_bytes *= 2;
	}
	pattern->lo_bits = (n + 1) / 2;

	windows = malloc(sizeof(*windows) << (n - pattern->lo_bits));
	powers = malloc(sizeof(*powers) << pattern->lo_bits);
	if (!windows || !powers) {
		free(windows);
		free(powers);
		return -ENOMEM;
	}
	for (size_t lo = 0; lo < 1u << pattern->lo_bits; lo++) {
		powers[lo] = power;
		power <<= 1;
		if (power >> n)
			power ^= polynomial;
	}
	/* the register starts all ones; from here `power` is one row of windows */
	window = prbs_extend(pattern, ~0ull << (64 - n), n);
	for (size_t hi = 0; hi < 1u << (n - pattern->lo_bits); hi++) {
		windows[hi] = window;
		window = clmul ? prbs_jump_clmul(window, power) : prbs_jump(window, power);
		window = prbs_extend(pattern, window, 65 - n);
	}
	pattern->windows = windows;
	pattern->powers = powers;
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
FAST_INLINE void words_extend(const struct pattern *pattern, uint64_t *words, size_t count)
{
	size_t n = pattern->degree, m = pattern->tap, i = 1;

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

static void words_extend_generic(const struct pattern *pattern, uint64_t *words, size_t count)
{
	words_extend(pattern, words, count);
}

FAST_TARGET_AVX2 static void words_extend_avx2(const struct pattern *pattern, uint64_t *words,
					       size_t count)
{
	words_extend(pattern, words, count);
}

/* As many words, of which the first is `window`. */
static void prbs_words(const struct pattern *pattern, uint64_t window, uint64_t *words,
		       size_t count, struct fast_cpu cpu)
{
	words[0] = window;
	if (cpu.level >= FAST_AVX2)
		words_extend_avx2(pattern, words, count);
	else
		words_extend_generic(pattern, words, count);
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
void prbs_fill(const struct pattern *pattern, const struct pattern_place *place, uint32_t offset,
	       uint8_t *to, size_t bytes, struct fast_cpu cpu)
{
	const size_t n = pattern->degree, m = pattern->tap, count = (bytes + 7) / 8;
	const size_t head = count < n ? count : n, row = count < 4 * n ? count : 4 * n;
	const uint64_t invert = 0ull - pattern->invert;
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
	prbs_words(pattern,
		   prbs_window(pattern, pattern_prbs_phase(pattern, place, offset), cpu.clmul),
		   words, head, cpu);
	for (i = 0; i < row; i++) {
		next = i < n ? word_bytes(words[i], invert)
			     : ring.words[i - n] ^ ring.words[i - m] ^ invert;
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

/* ---- checking ---- */

/* Eight bytes as 64 bits, the first in bit 63. */
FAST_INLINE uint64_t bits_at(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, 8);
	return word_bytes(word, 0);
}

/* True when fewer than 8 bytes are what `window` begins with. */
static bool few_are_right(uint64_t window, const uint8_t *at, size_t bytes, uint64_t invert)
{
	uint64_t got = 0;

	for (size_t i = 0; i < bytes; i++)
		got |= (uint64_t)at[i] << (56 - 8 * i);
	return !((got ^ window ^ invert) & ~(~0ull >> (8 * bytes)));
}

/*
 * What is wrong in the 64 bits `here`, given the 64 before. The polynomial is squared until its
 * largest distance is above 32; both distances then lead back into the two words.
 */
struct near_bits {
	unsigned int far, near; /* 64 less the distances */
};

FAST_INLINE uint64_t bits_wrong(struct near_bits back, uint64_t before, uint64_t here,
				uint64_t invert)
{
	return here ^ (before << back.far | here >> (64 - back.far)) ^
	       (before << back.near | here >> (64 - back.near)) ^ invert;
}

/* Not 0 when a byte of [8, bytes) does not follow from those before it; bytes is 8 at least. */
FAST_INLINE uint64_t words_wrong(const struct pattern *pattern, const uint8_t *at, size_t bytes,
				 uint64_t invert)
{
	const unsigned int twice = pattern->degree > 16 ? 1 : pattern->degree > 8 ? 2 : 3;
	const struct near_bits back = { 64 - (pattern->degree << twice),
					64 - (pattern->tap << twice) };
	uint64_t before = bits_at(at), any = 0;
	size_t i = 8;

	for (; i + 8 <= bytes; i += 8) {
		const uint64_t here = bits_at(at + i);

		any |= bits_wrong(back, before, here, invert);
		before = here;
	}
	if (i < bytes) {
		const unsigned int rest = 8 * (unsigned int)(bytes - i);

		/* what a bit should be, only bits before it say: none after the last is needed */
		any |= bits_wrong(back, before, bits_at(at + bytes - 8) << (64 - rest), invert) &
		       ~(~0ull >> rest);
	}
	return any;
}

/* What is wrong in the 64 bytes at `at`. */
#define ROW_WRONG(vector, at)                                                                      \
	do {                                                                                       \
		for (size_t part = 0; part < 64; part += sizeof(vector))                           \
			wrong |= *(const vector *)((at) + part) ^                                  \
				 *(const vector *)((at) + part - far) ^                            \
				 *(const vector *)((at) + part - near) ^ inverted;                 \
	} while (0)

/*
 * True when every byte from `far` on follows from the bytes before; there are 64 at least. Nothing
 * is written here, so the shortest distances serve: far = n and near = m bytes. Rows begin where
 * lines do, but for the first and the last, which overlap others: of the three loads one then stays
 * within its line.
 */
#define REST_VARIANT(level, target, size)                                                          \
	typedef uint64_t vector_##level __attribute__((vector_size(size), aligned(1), may_alias)); \
                                                                                                   \
	target static bool rest_is_right_##level(const uint8_t *at, size_t bytes, size_t far,      \
						 size_t near, uint64_t invert,                     \
						 const struct pattern_ahead *ahead)                \
	{                                                                                          \
		const vector_##level inverted = (vector_##level){ 0 } + invert;                    \
		const uint8_t *const last = at + bytes - 64;                                       \
		struct pattern_ahead lines = ahead_begin(ahead, at);                               \
		vector_##level wrong = { 0 };                                                      \
		uint64_t any = 0;                                                                  \
                                                                                                   \
		ROW_WRONG(vector_##level, at + far);                                               \
		for (at += far + 64 - (uintptr_t)(at + far) % 64; at <= last; at += 64) {          \
			ahead_line(&lines);                                                        \
			ROW_WRONG(vector_##level, at);                                             \
		}                                                                                  \
		ahead_all(&lines);                                                                 \
		ROW_WRONG(vector_##level, last);                                                   \
		for (size_t lane = 0; lane < sizeof(wrong) / 8; lane++)                            \
			any |= wrong[lane];                                                        \
		return !any;                                                                       \
	}

REST_VARIANT(generic, , FAST_BYTES_GENERIC)
REST_VARIANT(avx2, FAST_TARGET_AVX2, FAST_BYTES_AVX2)
REST_VARIANT(avx512, FAST_TARGET_AVX512, FAST_BYTES_AVX512)

/* True when the payload is `window` and what follows from it. */
FAST_INLINE bool all_follows(const struct pattern *pattern, uint64_t window, const uint8_t *payload,
			     size_t bytes, struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	const size_t far = pattern->degree, near = pattern->tap, head = far < 8 ? 8 : far;
	const uint64_t invert = 0ull - pattern->invert;
	const bool is_short = bytes < far + 64;

	if (is_short)
		ahead_all(ahead);
	if (bytes < 8)
		return few_are_right(window, payload, bytes, invert);
	if ((bits_at(payload) ^ window ^ invert) |
	    words_wrong(pattern, payload, is_short ? bytes : head, invert))
		return false;
	if (is_short)
		return true;
	if (cpu.level == FAST_AVX512)
		return rest_is_right_avx512(payload, bytes, far, near, invert, ahead);
	if (cpu.level == FAST_AVX2)
		return rest_is_right_avx2(payload, bytes, far, near, invert, ahead);
	return rest_is_right_generic(payload, bytes, far, near, invert, ahead);
}

bool prbs_follows(const struct pattern *pattern, uint64_t window, const uint8_t *payload,
		  size_t bytes, struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	return all_follows(pattern, window, payload, bytes, cpu, ahead);
}

bool prbs_is_right_ahead(const struct pattern *pattern, const struct pattern_place *place,
			 const uint8_t *payload, size_t bytes, struct fast_cpu cpu,
			 const struct pattern_ahead *ahead)
{
	return all_follows(pattern,
			   prbs_window(pattern, pattern_prbs_phase(pattern, place, 0), cpu.clmul),
			   payload, bytes, cpu, ahead);
}
