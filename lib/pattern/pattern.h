/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload patterns: the one definition that the sender, the CPU backend and the CUDA kernels share.
 *
 * A pattern is a function from a position to a byte. Positions are in bytes. For the
 * stream-continuous patterns the position counts the payload bytes of the whole stream; with
 * `restart` set it counts from the start of each frame's payload. The random pattern is a function
 * of (seed, stream, sequence number, offset in the payload), so it needs no position.
 *
 * PRBS conventions (ITU-T O.150): the most significant bit of each byte is sent first; the register
 * starts all ones; 15, 23 and 31 are inverted. The bit at position 0 is the first bit that leaves
 * the register.
 *
 * This header and everything it includes compile as C (gnu17) and as CUDA C++17.
 */
#ifndef GDRCAP_PATTERN_H
#define GDRCAP_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GDRCAP_HD __host__ __device__ __forceinline__
#else
#define GDRCAP_HD static inline
#endif

/* The numbers are on the wire (header field `pattern`): never renumber. */
enum pattern_kind {
	PATTERN_NONE = 0,   /* payload is not checked; sent as zeros */
	PATTERN_PRBS7 = 1,  /* x^7 + x^6 + 1 */
	PATTERN_PRBS9 = 2,  /* x^9 + x^5 + 1 */
	PATTERN_PRBS11 = 3, /* x^11 + x^9 + 1 */
	PATTERN_PRBS15 = 4, /* x^15 + x^14 + 1, inverted */
	PATTERN_PRBS20 = 5, /* x^20 + x^3 + 1 */
	PATTERN_PRBS23 = 6, /* x^23 + x^18 + 1, inverted */
	PATTERN_PRBS31 = 7, /* x^31 + x^28 + 1, inverted */
	PATTERN_COUNTER8 = 8,
	PATTERN_COUNTER16_BE = 9,
	PATTERN_COUNTER16_LE = 10,
	PATTERN_COUNTER32_BE = 11,
	PATTERN_COUNTER32_LE = 12,
	PATTERN_COUNTER64_BE = 13,
	PATTERN_COUNTER64_LE = 14,
	PATTERN_CONSTANT = 15,	  /* every byte is `value` */
	PATTERN_WALKING_ONE = 16, /* 0x80, 0x40, ... 0x01, 0x80, ... */
	PATTERN_RANDOM = 17, /* Philox4x32-10: counter (offset / 16, stream, sequence low and high),
			      * key (seed low and high); words little-endian, in order */
	PATTERN_FILE = 18,   /* the bytes of a file, repeated */
	PATTERN_KINDS
};

/*
 * All that is needed to produce byte `position` of a pattern. Plain data, passed by value to
 * kernels; the pointers are addresses that the code which runs the check can read (device pointers
 * for a kernel). Fill it with pattern_init().
 */
struct pattern {
	uint32_t kind;	  /* enum pattern_kind */
	uint32_t restart; /* 1: position counts from each frame's payload */
	uint32_t invert;  /* 1: PRBS bits are inverted (the O.150 default is already applied) */
	uint32_t value;	  /* PATTERN_CONSTANT: the byte */
	uint64_t seed;	  /* PATTERN_RANDOM */
	/*
	 * PRBS of degree n and lower tap m: byte[i] = byte[i - far] ^ byte[i - near] (^ 0xff when
	 * inverted), far = n * 2^k and near = m * 2^k bytes, since squaring a polynomial over GF(2)
	 * doubles its exponents. k is the least that makes near >= 64, so that 64 bytes can be
	 * made at a time; to check bytes that are already there, far = n and near = m serve too.
	 */
	uint32_t degree, tap, near_bytes, far_bytes;
	uint64_t period; /* PRBS: 2^n - 1 bits; file: bytes; others 0 */
	/*
	 * The jump: window(p) is linear in x^p mod f(x), f(x) = x^n + x^(n - m) + 1 since
	 * bit[i + n] = bit[i + n - m] ^ bit[i]. p = hi * 2^lo_bits + lo (p = 2^n - 1 works too);
	 * windows[hi] holds the 64 uninverted bits from position hi * 2^lo_bits, first bit in
	 * bit 63; powers[lo] holds x^lo mod f(x), coefficient of x^j in bit j.
	 */
	uint32_t lo_bits;
	const uint64_t *windows;
	const uint32_t *powers;
	const uint8_t *file; /* PATTERN_FILE: `period` bytes */
};

/* Which frame's payload is meant. */
struct pattern_place {
	uint64_t position; /* of the payload's first byte in the stream, bytes */
	uint64_t sequence;
	uint32_t stream;
};

/*
 * The four payload bytes at offset `offset` (any value, need not be a multiple of four) of the
 * frame at `place`, as a little-endian word: the byte at `offset` is in bits 7..0. O(1).
 */
GDRCAP_HD uint32_t pattern_word(const struct pattern *pattern, const struct pattern_place *place,
				uint32_t offset);

/* ---- host only: lib/pattern/pattern.c ---- */
#ifdef __cplusplus
extern "C" {
#endif

struct pattern_config {
	enum pattern_kind kind;
	int restart;
	int invert; /* -1: as in O.150; 0 no; 1 yes (-EINVAL for other than PRBS) */
	uint8_t value;
	uint64_t seed;
	const uint8_t *file; /* PATTERN_FILE: not copied, must outlive the pattern */
	size_t file_bytes;
};

/*
 * Builds the pattern and, for PRBS, its tables (PRBS-31: 256 KiB + 256 KiB). 0, -EINVAL or -ENOMEM.
 * The pattern's pointers are host pointers; a kernel back end uploads the tables
 * (pattern_table_bytes()) and replaces the pointers in its own copy.
 */
int pattern_init(struct pattern *pattern, const struct pattern_config *config);
void pattern_free(struct pattern *pattern);

/* Sizes in bytes of what the pattern points to (0 when it points to nothing). */
struct pattern_tables {
	size_t windows_bytes, powers_bytes, file_bytes;
};
struct pattern_tables pattern_table_bytes(const struct pattern *pattern);

/* "prbs31", "counter16be", "constant", ...; NULL for an unknown kind. 0, or -EINVAL for an unknown
 * name. */
extern const char *const pattern_names[PATTERN_KINDS + 1]; /* by kind; NULL-ended */
const char *pattern_name(enum pattern_kind kind);
int pattern_from_name(const char *name, enum pattern_kind *kind);

/* Writes `bytes` payload bytes of the frame at `place`. The host generator's fast path. */
void pattern_fill(const struct pattern *pattern, const struct pattern_place *place, uint8_t *to,
		  size_t bytes);

/*
 * Compares; returns the number of wrong bits, and where it is not 0 the offset of the first wrong
 * byte with what was expected and got. The CPU backend's fast path: near memory speed when the
 * payload is right. Bit for bit the same answer as pattern_word() byte by byte.
 */
struct pattern_mismatch {
	uint32_t wrong_bits, offset;
	uint8_t expected, got;
};
struct pattern_ahead;
/* Fetches meanwhile what will be read next: pattern_ahead.h; NULL: nothing. */
uint32_t pattern_check_ahead(const struct pattern *pattern, const struct pattern_place *place,
			     const uint8_t *payload, size_t bytes,
			     const struct pattern_ahead *ahead, struct pattern_mismatch *mismatch);
/* The same of the payload's bytes from `offset` on, which `part` points to; the mismatch's offset
 * counts from the payload's first byte. */
uint32_t pattern_check_part(const struct pattern *pattern, const struct pattern_place *place,
			    uint32_t offset, const uint8_t *part, size_t bytes,
			    struct pattern_mismatch *mismatch);

#ifdef __cplusplus
}
#endif

#include "pattern/pattern_word.h" /* the definition of pattern_word(), for C and CUDA */

#endif
