/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order between a CPU's accesses to memory and a device that reads and writes the same memory. On x86 acquire and release
 * say it all: these cost nothing there. An Arm CPU's acquire and release order what the CPUs see (inner shareable domain);
 * a device is of the outer one.
 */
#ifndef GDRCAP_DEVICE_ORDER_H
#define GDRCAP_DEVICE_ORDER_H

/* Between the load that says what a device wrote (an acquire), and what is read, or written over, because of it. */
static inline void device_order_load(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#endif
}

/* Between all accesses that a device is to find done, and the store (a release) that tells it so. */
static inline void device_order_store(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#endif
}

/* Between stores to memory and those to a device's register; behind one, empties a write-combining buffer. */
static inline void device_order_register(void)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
