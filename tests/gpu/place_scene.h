/* SPDX-License-Identifier: BSD-3-Clause */
/* Images for a back end to place: frames in its memory, a burst ring, and what comes out of it. */
#ifndef GDRCAP_TEST_PLACE_SCENE_H
#define GDRCAP_TEST_PLACE_SCENE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "kernels/frame_records.h"
#include "kernels/kernels.h"

#define PLACE_GUARD 0xa5u /* what lies behind each image */

/* One ring, frames of which each has a slot, and image buffers. */
struct place_scene {
	const struct kernel_ops *ops;
	struct kernel_device *device;
	bool gpu;
	uint32_t slot_shift, descs, bursts, images;
	uint64_t image_bytes;

	struct burst_ring_view ring;
	struct frame_desc *desc;
	struct burst_ready *ready;
	struct burst_result *result;
	struct place_record *records;
	uint32_t *stop;
	uint8_t *frames, *host_frames; /* of the device; to be copied there */
	struct place_view view;
	struct kernel_workers *workers;
	uint64_t published, collected;
	uint32_t next_desc;
};

static inline uint64_t place_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline void *shared_alloc(const struct place_scene *s, size_t bytes)
{
	void *memory = NULL;

	if (!s->gpu)
		memory = aligned_alloc(128, (bytes + 127) & ~(size_t)127);
	else if (cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) != cudaSuccess)
		memory = NULL;
	if (!memory) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	memset(memory, 0, bytes);
	return memory;
}

static inline void *device_alloc(const struct place_scene *s, size_t bytes)
{
	void *memory = NULL;

	if (!s->gpu)
		return shared_alloc(s, bytes);
	if (cudaMalloc(&memory, bytes) != cudaSuccess ||
	    s->ops->fill(s->device, memory, 0, bytes)) {
		fprintf(stderr, "no GPU memory\n");
		exit(1);
	}
	return memory;
}

static inline void shared_free(const struct place_scene *s, void *memory)
{
	if (s->gpu)
		cudaFreeHost(memory);
	else
		free(memory);
}

static inline void device_free(const struct place_scene *s, void *memory)
{
	if (s->gpu)
		cudaFree(memory);
	else
		free(memory);
}

/* `layout`, slot_shift, descs, bursts, images: set before. Buffers are all given, and filled with
 * PLACE_GUARD. */
static inline void scene_create(struct place_scene *s, const struct image_layout *layout)
{
	struct place_view *view = &s->view;

	s->image_bytes = image_in_buffer(layout, layout->bytes);
	s->desc = shared_alloc(s, s->descs * sizeof(*s->desc));
	s->ready = shared_alloc(s, s->bursts * sizeof(*s->ready));
	s->result = shared_alloc(s, s->bursts * sizeof(*s->result));
	s->records = shared_alloc(s, s->descs * sizeof(*s->records));
	s->stop = shared_alloc(s, 128);
	s->frames = device_alloc(s, (size_t)s->descs << s->slot_shift);
	s->host_frames = calloc(s->descs, (size_t)1 << s->slot_shift);
	s->ring = (struct burst_ring_view){
		.desc = s->desc,
		.ready = s->ready,
		.result = s->result,
		.records = (struct frame_record *)s->records,
		.stop = s->stop,
		.frames = s->frames,
		.frames_bytes = (uint64_t)s->descs << s->slot_shift,
		.desc_mask = s->descs - 1,
		.burst_mask = s->bursts - 1,
		.slot_shift = s->slot_shift,
	};
	view->layout = *layout;
	view->ring = s->images;
	view->stride = (s->image_bytes + 255 + 128) & ~(uint64_t)255;
	view->present_words = place_words(layout->pieces);
	view->table = device_alloc(s, sizeof(*view->table));
	view->images = device_alloc(s, view->stride * s->images);
	s->ops->fill(s->device, view->images, PLACE_GUARD, view->stride * s->images);
	view->present = device_alloc(s, 4ull * view->present_words * s->images);
	view->shared = shared_alloc(s, sizeof(*view->shared));
	view->present_host = shared_alloc(s, 4ull * view->present_words * s->images);
	for (uint32_t i = 0; i < s->images; i++)
		place_give(view->shared, i);
}

static inline void scene_destroy(struct place_scene *s)
{
	shared_free(s, s->desc);
	shared_free(s, s->ready);
	shared_free(s, s->result);
	shared_free(s, s->records);
	shared_free(s, s->stop);
	shared_free(s, s->view.shared);
	shared_free(s, s->view.present_host);
	device_free(s, s->frames);
	device_free(s, s->view.table);
	device_free(s, s->view.images);
	device_free(s, s->view.present);
	free(s->host_frames);
}

static inline int scene_start(struct place_scene *s, uint32_t workers, bool resident, uint32_t hint)
{
	const struct kernel_job job = {
		.role = KERNEL_PLACE,
		.rings = &s->ring,
		.ring_count = 1,
		.workers_per_ring = workers,
		.frame_bytes_hint = hint,
		.places = &s->view,
		.place_count = 1,
		.resident = resident,
	};
	const int ret = s->ops->start(s->device, &job, &s->workers);

	if (ret)
		fprintf(stderr, "start: %s\n", kernel_error());
	return ret;
}

static inline bool scene_stop(struct place_scene *s)
{
	__atomic_store_n(s->stop, 1, __ATOMIC_RELAXED);
	if (s->ops->join(s->workers, 60000)) {
		fprintf(stderr, "join: %s\n", kernel_error());
		return false;
	}
	__atomic_store_n(s->stop, 0, __ATOMIC_RELAXED);
	return true;
}

/* Publishes the next `count` descriptors as a burst. */
static inline void scene_publish(struct place_scene *s, uint32_t count)
{
	const uint32_t bits = (uint32_t)__builtin_ctz(s->bursts);

	burst_publish(&s->ready[s->published & (s->bursts - 1)], NULL,
		      &s->desc[s->next_desc & (s->descs - 1)], s->published, bits, count,
		      s->next_desc);
	s->next_desc += count;
	s->published++;
}

/* The oldest burst's records; NULL: it is not done. */
static inline const struct place_record *scene_collect(struct place_scene *s, uint32_t *records)
{
	const uint32_t bits = (uint32_t)__builtin_ctz(s->bursts),
		       at = s->collected & (s->bursts - 1);

	if (s->collected == s->published || !burst_is_done(&s->result[at], s->collected, bits))
		return NULL;
	*records = burst_word_count(s->result[at].done);
	s->collected++;
	return &s->records[burst_word_first(s->ready[at].word) & (s->descs - 1)];
}

/* Record r of those, which may come round the ring's end. */
static inline const struct place_record *scene_record(const struct place_scene *s,
						      const struct place_record *first, uint32_t r)
{
	return &s->records[((uint32_t)(first - s->records) + r) & (s->descs - 1)];
}

#endif
