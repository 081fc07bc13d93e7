/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message passing by ROOM and SUBMIT (lib/send/send_gpu.h), for CPU threads and for a kernel. The kernel
 * writes a frame into each slot that it has and submits it with its length; the worker checks that both belong
 * to this number, overwrites the frame and gives the slot back; the kernel checks that, and whom it had
 * before. A store or load that passed its barrier is a value of an earlier frame.
 */
#ifndef GDRCAP_TEST_SEND_LITMUS_H
#define GDRCAP_TEST_SEND_LITMUS_H

#include <gdrcap_device_tx.cuh>

#include "send/send_gpu.h"

#define LITMUS_WORDS 16u /* of 8 bytes in a frame: two lines */
#define LITMUS_SLOTS_MAX 256u

#ifdef __CUDACC__
#define LITMUS_HD __host__ __device__ static inline
#else
#define LITMUS_HD static inline
#endif

/* What the kernel (side 0) and the worker (side 1) write as word w of frame seq. */
LITMUS_HD uint64_t litmus_value(uint64_t seq, uint32_t w, uint32_t side)
{
	return (seq * 2 + side) * UINT64_C(0x9e3779b97f4a7c15) + w;
}

LITMUS_HD uint32_t litmus_bytes(uint64_t seq)
{
	return 60 + (uint32_t)(seq % 1000003);
}

/* ---- the kernel ---- */

/* Word w of frame seq's slot is as the worker left it; 1: it is not. */
GDRCAP_GPU_TX uint32_t litmus_wrong_word(const struct gdrcap_gpu_tx tx, uint64_t seq, uint32_t w)
{
	const uint64_t *words = (const uint64_t *)(const void *)gdrcap_gpu_tx_data(tx, seq);
	const uint64_t back = gdrcap_gpu_tx_back(tx, seq);

	return back > seq || (back && words[w] != litmus_value(back - 1, w, 1));
}

GDRCAP_GPU_TX void litmus_write_word(const struct gdrcap_gpu_tx tx, uint64_t seq, uint32_t w)
{
	((uint64_t *)(void *)gdrcap_gpu_tx_data(tx, seq))[w] = litmus_value(seq, w, 0);
}

/* ---- the worker ---- */

struct send_litmus {
	struct send_gpu gpu;
	uint64_t *frames; /* LITMUS_WORDS a slot */
	uint32_t held[LITMUS_SLOTS_MAX], holds;
	uint64_t random, wrong;
};

static inline uint64_t *litmus_frame(const struct send_litmus *litmus, uint32_t slot)
{
	return litmus->frames + (size_t)slot * LITMUS_WORDS;
}

static inline int litmus_init(struct send_litmus *litmus, uint32_t slots, void *memory,
			      uint64_t *frames)
{
	const int ret = send_gpu_init(&litmus->gpu, memory, slots);

	litmus->frames = frames;
	litmus->holds = 0;
	litmus->random = 88172645463325252u;
	litmus->wrong = 0;
	for (uint32_t i = 0; ret == 0 && i < slots; i++)
		send_gpu_give(&litmus->gpu, i, (uint8_t *)litmus_frame(litmus, i));
	send_gpu_tell(&litmus->gpu);
	return ret;
}

/* Gives any `count` of the slots back that it holds, as a port does. */
static inline void litmus_give(struct send_litmus *litmus, uint32_t count)
{
	for (; count; count--) {
		uint32_t i, slot;

		litmus->random ^= litmus->random << 13;
		litmus->random ^= litmus->random >> 7;
		litmus->random ^= litmus->random << 17;
		i = (uint32_t)(litmus->random % litmus->holds);
		slot = litmus->held[i];
		litmus->held[i] = litmus->held[--litmus->holds];
		send_gpu_give(&litmus->gpu, slot, (uint8_t *)litmus_frame(litmus, slot));
	}
	send_gpu_tell(&litmus->gpu);
}

/* Takes what was submitted, up to `most`: how many. */
static inline uint32_t litmus_take(struct send_litmus *litmus, uint32_t most)
{
	uint64_t count;
	uint32_t taken = 0;

	litmus->wrong += !send_gpu_look(&litmus->gpu, &count);
	for (; taken < count && taken < most; taken++) {
		const uint64_t seq = litmus->gpu.accepted;
		uint32_t bytes;
		const uint32_t slot = send_gpu_take(&litmus->gpu, &bytes);
		uint64_t *words = litmus_frame(litmus, slot);

		litmus->wrong += bytes != litmus_bytes(seq);
		for (uint32_t w = 0; w < LITMUS_WORDS; w++) {
			litmus->wrong += words[w] != litmus_value(seq, w, 0);
			words[w] = litmus_value(seq, w, 1);
		}
		litmus->held[litmus->holds++] = slot;
	}
	return taken;
}

/* Both; all slots are with it for a moment now and then. How many were taken. */
static inline uint32_t litmus_round(struct send_litmus *litmus)
{
	const uint32_t taken = litmus_take(litmus, 1 + (uint32_t)(litmus->random >> 8) % 32);

	if (litmus->holds)
		litmus_give(litmus, 1 + (uint32_t)(litmus->random >> 16) % litmus->holds);
	return taken;
}

#endif
