/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside lib/pattern only: the vector paths of pattern_fill() and pattern_check_ahead(). Each takes the
 * instruction sets to use, so that a test can run all that the CPU has.
 */
#ifndef GDRCAP_PATTERN_FAST_H
#define GDRCAP_PATTERN_FAST_H

#include <stdbool.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "pattern/pattern.h"
#include "pattern/pattern_ahead.h"

enum fast_level {
	FAST_GENERIC, /* what the compiler's target has: SSE2 on x86-64, NEON on aarch64 */
	FAST_AVX2,    /* and BMI2, whose shifts by a register take one operation */
	FAST_AVX512,
};

struct fast_cpu {
	enum fast_level level;
	bool clmul; /* PCLMULQDQ; PMULL of 64 bits */
	bool crc;   /* the CRC32 instruction of SSE4.2; CRC32CX */
};

/*
 * What this CPU has: a few loads and tests of libgcc's record, or the kernel's word of it, so there is no state to set up.
 * An ifunc (target_clones) would run before a sanitizer's runtime is ready.
 */
static inline struct fast_cpu fast_cpu_now(void)
{
	struct fast_cpu cpu = { .level = FAST_GENERIC };

#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		cpu.level = FAST_AVX2;
	if (cpu.level == FAST_AVX2 && __builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw"))
		cpu.level = FAST_AVX512;
	cpu.clmul = __builtin_cpu_supports("pclmul");
	cpu.crc = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
	const unsigned long has = getauxval(AT_HWCAP);

	cpu.clmul = has & HWCAP_PMULL;
	cpu.crc = has & HWCAP_CRC32;
#endif
	return cpu;
}

#if defined(__x86_64__)
/* Tuned for the first that had it: for the baseline's CPUs gcc would load vectors in halves. */
#define FAST_TARGET_AVX2 __attribute__((target("avx2,bmi2,tune=haswell")))
#define FAST_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,bmi2")))
#else
#define FAST_TARGET_AVX2
#define FAST_TARGET_AVX512
#endif
/* A level's vectors. Of wider ones gcc makes accesses to memory, many times slower. */
#define FAST_BYTES_GENERIC 16
#define FAST_BYTES_AVX2 32
#define FAST_BYTES_AVX512 64
#define FAST_INLINE static inline __attribute__((always_inline))

/* ---- pattern_prbs.c ---- */

/* Fills in degree, tap, distances, period and tables for pattern->kind. 0 or -ENOMEM. */
int prbs_init(struct pattern *pattern);

/* 64 uninverted bits from bit position `phase`, first bit in bit 63. */
uint64_t prbs_window(const struct pattern *pattern, uint64_t phase, bool clmul);

void prbs_fill(const struct pattern *pattern, const struct pattern_place *place, uint32_t offset,
	       uint8_t *to, size_t bytes, struct fast_cpu cpu);

/*
 * True when all bytes are right; does not say where they are not. Here and below, what is ahead is
 * fetched unless bytes are wrong.
 */
bool prbs_is_right_ahead(const struct pattern *pattern, const struct pattern_place *place,
			 const uint8_t *payload, size_t bytes, struct fast_cpu cpu,
			 const struct pattern_ahead *ahead);

static inline bool prbs_is_right(const struct pattern *pattern, const struct pattern_place *place,
				 const uint8_t *payload, size_t bytes, struct fast_cpu cpu)
{
	return prbs_is_right_ahead(pattern, place, payload, bytes, cpu, NULL);
}

/* The same of a payload that may be anywhere in the sequence: true when all of it
 * follows from its first 64 uninverted bits (first bit in bit 63), which are given. */
bool prbs_follows(const struct pattern *pattern, uint64_t window, const uint8_t *payload,
		  size_t bytes, struct fast_cpu cpu, const struct pattern_ahead *ahead);

/* ---- pattern_counter.c ---- */

/* `q` is the position of to[0]; q + bytes must not pass 2^64. */
void counter_fill(uint32_t kind, uint64_t q, uint8_t *to, size_t bytes, struct fast_cpu cpu);

/* True when all bytes are right; q as above. */
bool counter_is_right(uint32_t kind, uint64_t q, const uint8_t *payload, size_t bytes,
		      struct fast_cpu cpu, const struct pattern_ahead *ahead);

#endif
