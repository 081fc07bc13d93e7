/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames from a kernel that is already running: the device side of gdrcap_get_gpu_tx(); part of
 * gdrcap_device.cuh, which includes it. Inline only; compute capability 7.0 or later. Without nvcc this
 * header alone is included, and its functions are for a CPU thread, in C and C++ (`gpu: host`).
 *
 * Frames of a queue are numbered from 0, and leave in the order of their numbers. Frame `seq` has a slot of
 * its own once there is room for it. gdrcap_gpu_tx_reserve() and gdrcap_gpu_tx_submit() are called by all
 * threads of a block, the others by any thread of it:
 *
 *     uint64_t seq = gdrcap_gpu_tx_first(tx);
 *
 *     for (;;) {
 *             int n;
 *
 *             while ((n = gdrcap_gpu_tx_reserve(tx, seq, 64)) == 0)
 *                     __nanosleep(200);
 *             if (n < 0)
 *                     return;
 *             for (int i = threadIdx.x; i < n; i += blockDim.x)
 *                     gdrcap_gpu_tx_set_bytes(tx, seq + i, fill(gdrcap_gpu_tx_data(tx, seq + i)));
 *             seq = gdrcap_gpu_tx_submit(tx, seq, n);
 *     }
 *
 * A queue is for one block at a time. Nothing may wait for the whole device while it runs (cudaMalloc,
 * cudaFree, the default stream, a kernel that is loaded lazily), and what is at `tx` is there until
 * gdrcap_destroy(): the kernel leaves before.
 */
#ifndef GDRCAP_DEVICE_TX_CUH
#define GDRCAP_DEVICE_TX_CUH

#include "gdrcap.h"

#ifdef __CUDACC__
#define GDRCAP_GPU_TX __device__ __forceinline__
#else
#define GDRCAP_GPU_TX static inline
#endif

/* ROOM: entries and memory of the slots, before we use them. The partner is the worker's add. */
GDRCAP_GPU_TX uint64_t gdrcap_gpu_tx_room(const struct gdrcap_gpu_tx tx)
{
	uint64_t room;

#ifdef __CUDACC__
	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(room) : "l"(tx.room) : "memory");
#else
	room = __atomic_load_n(tx.room, __ATOMIC_ACQUIRE);
#endif
	return room;
}

/* SUBMIT: the frames and their lengths, before they are taken. The partner is the worker's load-acquire. */
GDRCAP_GPU_TX void gdrcap_gpu_tx_publish(const struct gdrcap_gpu_tx tx, uint64_t submitted)
{
#ifdef __CUDACC__
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(tx.submitted), "l"(submitted) : "memory");
#else
	__atomic_store_n(tx.submitted, submitted, __ATOMIC_RELEASE);
#endif
}

/** The number of the frame that comes next: 0, or what the kernel before this one has left. */
GDRCAP_GPU_TX uint64_t gdrcap_gpu_tx_first(const struct gdrcap_gpu_tx tx)
{
	return *(const volatile uint64_t *)tx.submitted;
}

/**
 * How many of the frames seq, seq + 1, ... have a slot, up to `max`; seq is the one that comes next. Fewer, or
 * 0, is the queue's back-pressure: all other slots wait or are at the port. -1: the run is over, and what is
 * submitted now may be too late. Frames that are not submitted after it stay free.
 */
GDRCAP_GPU_TX int gdrcap_gpu_tx_reserve(const struct gdrcap_gpu_tx tx, uint64_t seq, int max)
{
	uint64_t room;

#ifdef __CUDACC__
	__shared__ uint64_t shared_room;

	__syncthreads(); /* all have read what the call before left */
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
		shared_room = gdrcap_gpu_tx_room(tx);
	__syncthreads();
	room = shared_room;
#else
	room = gdrcap_gpu_tx_room(tx);
#endif
	if (room >> 62)
		return -1;
	room -= seq;
	if (room > tx.count || max <= 0) /* seq is not the queue's */
		return 0;
	return room < (uint64_t)max ? (int)room : max;
}

/** Where frame `seq`, which has a slot, begins: room for tx.bytes_max bytes. */
GDRCAP_GPU_TX uint8_t *gdrcap_gpu_tx_data(const struct gdrcap_gpu_tx tx, uint64_t seq)
{
	return ((const volatile struct gdrcap_gpu_tx_slot *)tx.slots)[seq & tx.mask].data;
}

/** Which frame is back now that seq has its slot: its number + 1; 0: nobody has had it yet. Slots come back
 * in the port's order, and each one says so once. */
GDRCAP_GPU_TX uint64_t gdrcap_gpu_tx_back(const struct gdrcap_gpu_tx tx, uint64_t seq)
{
	return ((const volatile struct gdrcap_gpu_tx_slot *)tx.slots)[seq & tx.mask].before;
}

/** Its length, without FCS: from 60 to tx.bytes_max. One with another length, or none, is not sent; the
 * others are, and gdrcap_get_tx_counts() counts it in `refused`. */
GDRCAP_GPU_TX void gdrcap_gpu_tx_set_bytes(const struct gdrcap_gpu_tx tx, uint64_t seq,
					   uint32_t bytes)
{
	*(volatile uint32_t *)&tx.bytes[seq & tx.mask] = bytes;
}

/**
 * Hands the next `count` frames over, from seq on, of those that were reserved: the number of the frame after
 * them. No thread of the block may touch them afterwards.
 */
GDRCAP_GPU_TX uint64_t gdrcap_gpu_tx_submit(const struct gdrcap_gpu_tx tx, uint64_t seq, int count)
{
#ifdef __CUDACC__
	__syncthreads(); /* every thread's frames and lengths */
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
#endif
		gdrcap_gpu_tx_publish(tx, seq + (uint64_t)count);
	return seq + (uint64_t)count;
}

#endif
