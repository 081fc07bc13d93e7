/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomic accesses of kernels/place.h, by C's built-ins and by PTX. Words in the table are shared by
 * workers of one device, and named so; words in pinned memory are shared with the CPU: _system.
 */
#ifndef GDRCAP_PLACE_ATOMIC_H
#define GDRCAP_PLACE_ATOMIC_H

#include "pattern/pattern.h"

#ifdef __CUDA_ARCH__
GDRCAP_HD uint32_t place_load(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

GDRCAP_HD uint64_t place_load64(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

GDRCAP_HD uint32_t place_load_relaxed32(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

GDRCAP_HD uint64_t place_load_relaxed(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

GDRCAP_HD uint64_t place_load_system(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

/* What was read before it comes before what is read behind it, also of memory that the CPU writes. */
GDRCAP_HD void place_fence(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

GDRCAP_HD void place_store_system(uint32_t *at, uint32_t value)
{
	asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

GDRCAP_HD void place_store(uint32_t *at, uint32_t value)
{
	asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

GDRCAP_HD void place_store_relaxed32(uint32_t *at, uint32_t value)
{
	asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

GDRCAP_HD void place_store_relaxed(uint64_t *at, uint64_t value)
{
	asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

GDRCAP_HD uint64_t place_add64(uint64_t *at, uint64_t value)
{
	uint64_t before;

	asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(before)
		     : "l"(at), "l"(value)
		     : "memory");
	return before;
}

/* Nobody waits for what it was. */
GDRCAP_HD void place_add64_release(uint64_t *at, uint64_t value)
{
	asm volatile("red.release.gpu.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

GDRCAP_HD uint64_t place_and64(uint64_t *at, uint64_t value)
{
	uint64_t before;

	asm volatile("atom.acq_rel.gpu.and.b64 %0, [%1], %2;"
		     : "=l"(before)
		     : "l"(at), "l"(value)
		     : "memory");
	return before;
}

/* 1: it was *expected, and is `value` now; else *expected is what it was. */
GDRCAP_HD int place_cas64(uint64_t *at, uint64_t *expected, uint64_t value)
{
	const uint64_t compare = *expected;

	asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(*expected)
		     : "l"(at), "l"(compare), "l"(value)
		     : "memory");
	return *expected == compare;
}

/* What it was; it is `value` now where that was `expected`. Orders nothing. */
GDRCAP_HD uint32_t place_cas32(uint32_t *at, uint32_t expected, uint32_t value)
{
	uint32_t before;

	asm volatile("atom.relaxed.gpu.cas.b32 %0, [%1], %2, %3;"
		     : "=r"(before)
		     : "l"(at), "r"(expected), "r"(value)
		     : "memory");
	return before;
}

GDRCAP_HD uint32_t place_or(uint32_t *at, uint32_t value)
{
	uint32_t before;

	asm volatile("atom.relaxed.gpu.or.b32 %0, [%1], %2;"
		     : "=r"(before)
		     : "l"(at), "r"(value)
		     : "memory");
	return before;
}

GDRCAP_HD void place_and(uint32_t *at, uint32_t value)
{
	asm volatile("red.relaxed.gpu.and.b32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* 1: it was 0, and is 1 now. */
GDRCAP_HD uint32_t place_take(uint32_t *at)
{
	uint32_t before;

	asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], 0, 1;"
		     : "=r"(before)
		     : "l"(at)
		     : "memory");
	return !before;
}

GDRCAP_HD void place_pause(void)
{
	__nanosleep(64);
}
#else
GDRCAP_HD uint32_t place_load(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

GDRCAP_HD uint64_t place_load64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

GDRCAP_HD uint32_t place_load_relaxed32(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

GDRCAP_HD uint64_t place_load_relaxed(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

GDRCAP_HD uint64_t place_load_system(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

GDRCAP_HD void place_fence(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

GDRCAP_HD void place_store_system(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

GDRCAP_HD void place_store(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

GDRCAP_HD void place_store_relaxed32(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

GDRCAP_HD void place_store_relaxed(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

GDRCAP_HD uint64_t place_add64(uint64_t *at, uint64_t value)
{
	return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

GDRCAP_HD void place_add64_release(uint64_t *at, uint64_t value)
{
	__atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

GDRCAP_HD uint64_t place_and64(uint64_t *at, uint64_t value)
{
	return __atomic_fetch_and(at, value, __ATOMIC_ACQ_REL);
}

GDRCAP_HD int place_cas64(uint64_t *at, uint64_t *expected, uint64_t value)
{
	return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

GDRCAP_HD uint32_t place_cas32(uint32_t *at, uint32_t expected, uint32_t value)
{
	__atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expected;
}

GDRCAP_HD uint32_t place_or(uint32_t *at, uint32_t value)
{
	return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}

GDRCAP_HD void place_and(uint32_t *at, uint32_t value)
{
	__atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}

GDRCAP_HD uint32_t place_take(uint32_t *at)
{
	uint32_t free = 0;

	return __atomic_compare_exchange_n(at, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

GDRCAP_HD void place_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
#endif

#endif
