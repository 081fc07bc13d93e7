/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads, stores and fences of one order and scope, by PTX. Each is as weak as its users can bear, which CUDA's
 * volatile accesses and __threadfence_system() are not. What it is needed for, and its partner, is said where it is used.
 * The image table's, which are C's too, are in kernels/place_atomic.h.
 */
#ifndef GDRCAP_CUDA_PTX_CUH
#define GDRCAP_CUDA_PTX_CUH

#include <stdint.h>

#define PTX_CUDA_VERSION (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__)
/* fence.acquire and fence.release: PTX 8.6, from compute capability 9.0 on */
#define PTX_HALF_FENCES (__CUDA_ARCH__ >= 900 && PTX_CUDA_VERSION >= 1208)
/* st.mmio: PTX 8.2 */
#define PTX_MMIO (PTX_CUDA_VERSION >= 1202)

/* What lies in shared or in global memory where the compiler cannot see that: loads need not ask. */
template <typename T> __device__ __forceinline__ T &known_shared(T *at)
{
	__builtin_assume(__isShared(at));
	return *at;
}

template <typename T> __device__ __forceinline__ T *known_global(T *at)
{
	__builtin_assume(__isGlobal(at));
	return at;
}

/* ---- with the CPU or a device on the bus: system scope ---- */

/* A word that says that others, written before it, are there. */
__device__ __forceinline__ uint64_t load_acquire_system(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

__device__ __forceinline__ uint32_t load_acquire_system(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

/* The same where `at` is known to be global memory, which saves asking. */
__device__ __forceinline__ uint32_t load_acquire_system_global(const void *at)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

/* A word that others write meanwhile, and that says nothing of any other. */
__device__ __forceinline__ uint64_t load_relaxed_system(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

__device__ __forceinline__ uint32_t load_relaxed_system(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

/* The same of global memory, and no line of L1 goes for what is read once. */
__device__ __forceinline__ uint32_t load_relaxed_system_once(const void *at)
{
	uint32_t value;

	asm volatile("ld.relaxed.sys.global.L1::no_allocate.u32 %0, [%1];"
		     : "=r"(value)
		     : "l"(at)
		     : "memory");
	return value;
}

/* A word that is whole whenever it is read, and ordered by what is stored or fenced after or before it. */
__device__ __forceinline__ void store_relaxed_system(uint64_t *at, uint64_t value)
{
	asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ __forceinline__ void store_relaxed_system(uint32_t *at, uint32_t value)
{
	asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* A word that says that what was read and written before it is over. */
__device__ __forceinline__ void store_release_system(uint64_t *at, uint64_t value)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

__device__ __forceinline__ void store_release_system(uint32_t *at, uint32_t value)
{
	asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* Of a device's register: one access of this width, whatever lies there. */
__device__ __forceinline__ void store_register(uint64_t *at, uint64_t value)
{
#if PTX_MMIO
	asm volatile("st.mmio.relaxed.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
	store_relaxed_system(at, value);
#endif
}

/* Behind many relaxed loads: makes acquires of them, for the price of one. */
__device__ __forceinline__ void fence_acquire_system(void)
{
#if PTX_HALF_FENCES
	asm volatile("fence.acquire.sys;" ::: "memory");
#else
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

/* Before relaxed stores: makes releases of them. */
__device__ __forceinline__ void fence_release_system(void)
{
#if PTX_HALF_FENCES
	asm volatile("fence.release.sys;" ::: "memory");
#else
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

/* Both: also what was read already is read anew behind it, by nothing of L1. */
__device__ __forceinline__ void fence_acq_rel_system(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* ---- between blocks of one GPU, where system scope would cost a trip to the bus ---- */

__device__ __forceinline__ uint64_t load_acquire_gpu(const uint64_t *at)
{
	uint64_t value;

	asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
	return value;
}

__device__ __forceinline__ void store_release_gpu(uint64_t *at, uint64_t value)
{
	asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/* The time, ns, in which all blocks of the GPU agree. */
__device__ __forceinline__ uint64_t global_ns(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
	return ns;
}

#endif
