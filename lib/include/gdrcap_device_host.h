/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * For `gpu: host`: what gdrcap_device.cuh does in a kernel, for a CPU thread that stands for one, in C and C++.
 * Each of them as its twin there, gdrcap_gpu_...(): a thread is a block of one. Frames that are to be sent:
 * gdrcap_device_tx.cuh, whose functions are for the CPU where nvcc does not compile it; frames of a batch:
 * gdrcap_frame() and its neighbours in gdrcap.h.
 */
#ifndef GDRCAP_DEVICE_HOST_H
#define GDRCAP_DEVICE_HOST_H

#include <string.h>

#include "gdrcap.h"
#include "gdrcap_device_tx.cuh"

/* The tag of batch `seq` in ready and done words. */
static inline uint64_t gdrcap_host_tag(const struct gdrcap_gpu_queue *queue, uint64_t seq)
{
	return ((seq >> __builtin_popcount(queue->burst_mask)) + 1) & 0xffffu;
}

/* TAKE. The partner is the capture thread's store-release (PUBLISH). */
static inline uint64_t gdrcap_host_word(const struct gdrcap_gpu_queue *queue, uint64_t seq)
{
	return __atomic_load_n(queue->ready + (seq & queue->burst_mask) * queue->ready_stride,
			       __ATOMIC_ACQUIRE);
}

/** Batch `seq`, if it is there: 1 and *batch filled, 0 none yet, -1 the session is stopping and it was not there. */
static inline int gdrcap_host_try_next(const struct gdrcap_gpu_queue *queue, uint64_t seq,
				       struct gdrcap_batch *batch)
{
	const uint64_t tag = gdrcap_host_tag(queue, seq);
	uint64_t word = gdrcap_host_word(queue, seq);

	if (word >> 48 != tag) {
		if (!__atomic_load_n(queue->stop, __ATOMIC_ACQUIRE))
			return 0;
		word = gdrcap_host_word(queue, seq); /* what was published before the stop */
		if (word >> 48 != tag)
			return -1;
	}
	memset(batch, 0, sizeof(*batch));
	batch->seq = seq;
	batch->data = queue->data;
	batch->pkts = queue->pkts + ((uint32_t)word & queue->pkt_mask);
	batch->count = (uint32_t)(word >> 32) & 0x3fffu; /* flags above */
	batch->slot_bytes = queue->slot_bytes;
	if (queue->heads) {
		batch->heads = queue->heads + ((uint32_t)word & queue->pkt_mask);
		batch->head_data = queue->head_data;
		batch->head_slot_bytes = queue->head_slot_bytes;
	}
	return 1;
}

/** Gives the batch back. */
static inline void gdrcap_host_release(const struct gdrcap_gpu_queue *queue, uint64_t seq)
{
	/* DONE. The partner is the capture thread's load-acquire (COLLECT). */
	__atomic_store_n(queue->done + (seq & queue->burst_mask) * queue->done_stride,
			 gdrcap_host_tag(queue, seq) << 48, __ATOMIC_RELEASE);
}

/* GIVE. The partner is the accountant's store-release. */
static inline uint64_t gdrcap_host_image_word(const struct gdrcap_gpu_images *images, uint64_t seq)
{
	const char *at = (const char *)images->ready + (seq & images->mask) * images->stride;

	return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

/** Image `seq`, if it is there: 1 and *image filled, 0 none yet, -1 the session is stopping and it was not there. */
static inline int gdrcap_host_image_try_next(const struct gdrcap_gpu_images *images, uint64_t seq,
					     struct gdrcap_image *image)
{
	const char *from = (const char *)images->images + (seq & images->mask) * images->stride;

	if (gdrcap_host_image_word(images, seq) != seq + 1) {
		/* END. The partner is the store-release of the stop word, after the last image's. */
		if (!__atomic_load_n(images->stop, __ATOMIC_ACQUIRE))
			return 0;
		if (gdrcap_host_image_word(images, seq) != seq + 1)
			return -1;
	}
	memset(image, 0, sizeof(*image));
	memcpy(image, from,
	       images->image_bytes < sizeof(*image) ? images->image_bytes : sizeof(*image));
	return 1;
}

/** Gives the image back. */
static inline void gdrcap_host_image_release(const struct gdrcap_gpu_images *images, uint64_t seq)
{
	/* BACK. The partner is the accountant's load-acquire. */
	__atomic_store_n(images->done + (seq & images->mask), seq + 1, __ATOMIC_RELEASE);
}

#endif
