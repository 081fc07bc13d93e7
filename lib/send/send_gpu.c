/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots to a kernel that is already running, and its frames back. */
#include "send/send_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64u /* one writer each */

/* At least one entry a slot, so none is written again before its frame was taken. */
static uint32_t depth_of(uint32_t slots)
{
	uint32_t depth = 16; /* lengths fill whole lines */

	while (depth < slots)
		depth *= 2;
	return depth;
}

size_t send_gpu_bytes(uint32_t slots)
{
	const size_t depth = depth_of(slots);

	return (size_t)2 * LINE + depth * (sizeof(struct gdrcap_gpu_tx_slot) + sizeof(uint32_t));
}

int send_gpu_init(struct send_gpu *gpu, void *memory, uint32_t slots)
{
	const size_t depth = depth_of(slots);
	uint8_t *at = memory;

	memset(gpu, 0, sizeof(*gpu));
	gpu->slot = calloc(depth, sizeof(*gpu->slot));
	gpu->last = calloc(slots, sizeof(*gpu->last));
	if (!gpu->slot || !gpu->last) {
		send_gpu_fini(gpu);
		return -ENOMEM;
	}
	gpu->room = (uint64_t *)(void *)at;
	gpu->submitted = (uint64_t *)(void *)(at + LINE);
	gpu->slots = (struct gdrcap_gpu_tx_slot *)(void *)(at + (size_t)2 * LINE);
	gpu->bytes = (uint32_t *)(void *)(gpu->slots + depth);
	gpu->mask = (uint32_t)depth - 1;
	gpu->count = slots;
	return 0;
}

void send_gpu_fini(struct send_gpu *gpu)
{
	free(gpu->slot);
	free(gpu->last);
	memset(gpu, 0, sizeof(*gpu));
}

struct gdrcap_gpu_tx send_gpu_view(const struct send_gpu *gpu, uint32_t bytes_max)
{
	const struct gdrcap_gpu_tx view = {
		.room = gpu->room,
		.submitted = gpu->submitted,
		.slots = gpu->slots,
		.bytes = gpu->bytes,
		.mask = gpu->mask,
		.count = gpu->count,
		.bytes_max = bytes_max,
	};

	return view;
}

void send_gpu_give(struct send_gpu *gpu, uint32_t slot, uint8_t *data)
{
	const uint32_t at = (uint32_t)gpu->given & gpu->mask;

	gpu->slots[at].data = data;
	gpu->slots[at].before = gpu->last[slot];
	/* A frame whose length is not set is not sent with that of an older one. */
	__atomic_store_n(&gpu->bytes[at], 0, __ATOMIC_RELAXED);
	gpu->slot[at] = slot;
	gpu->given++;
}

void send_gpu_tell(struct send_gpu *gpu)
{
	if (gpu->told == gpu->given)
		return;
	/* ROOM. An add, as STOP may be set meanwhile. */
	__atomic_fetch_add(gpu->room, gpu->given - gpu->told, __ATOMIC_RELEASE);
	gpu->told = gpu->given;
}

bool send_gpu_look(const struct send_gpu *gpu, uint64_t *count)
{
	/* SUBMIT */
	const uint64_t submitted = __atomic_load_n(gpu->submitted, __ATOMIC_ACQUIRE);

	/* Fewer than were taken are, as a difference, more than there can be. */
	*count = submitted - gpu->accepted;
	if (*count <= gpu->told - gpu->accepted)
		return true;
	/* LATE */
	if (!send_gpu_is_by_stream(gpu) || *count >= SEND_GPU_STOP ||
	    !(__atomic_load_n(gpu->room, __ATOMIC_RELAXED) & SEND_GPU_STOP))
		return false;
	*count = gpu->told - gpu->accepted;
	return true;
}

void send_gpu_by_stream(struct send_gpu *gpu)
{
	/* Partner: SUBMIT, before which it is. */
	__atomic_store_n(&gpu->by_stream, 1, __ATOMIC_RELEASE);
}

bool send_gpu_is_by_stream(const struct send_gpu *gpu)
{
	return __atomic_load_n(&gpu->by_stream, __ATOMIC_RELAXED) != 0;
}

uint32_t send_gpu_take(struct send_gpu *gpu, uint32_t *bytes)
{
	const uint32_t at = (uint32_t)gpu->accepted & gpu->mask, slot = gpu->slot[at];

	/* Once: what the kernel writes after it has submitted is nobody's length. */
	*bytes = __atomic_load_n(&gpu->bytes[at], __ATOMIC_RELAXED);
	gpu->last[slot] = ++gpu->accepted;
	return slot;
}

void send_gpu_stop(const struct send_gpu *gpu)
{
	/* STOP */
	if (gpu->room)
		__atomic_fetch_or(gpu->room, SEND_GPU_STOP, __ATOMIC_RELEASE);
}
