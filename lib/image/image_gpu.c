/* SPDX-License-Identifier: BSD-3-Clause */
/* Images to a kernel that is already running, and back. */
#include "image/image_gpu.h"

#include <string.h>

#define LINE 64u /* no word of another writer's in the same */

/* Four times the buffers: a block that keeps one image stops the others only so much later. */
static uint32_t depth_of(uint32_t buffers)
{
	uint32_t depth = 4;

	while (depth < 4 * buffers)
		depth *= 2;
	return depth;
}

size_t image_gpu_bytes(uint32_t buffers)
{
	const size_t depth = depth_of(buffers);

	return depth * (sizeof(struct image_gpu_entry) + sizeof(uint64_t)) + (size_t)2 * LINE;
}

void image_gpu_init(struct image_gpu *gpu, void *memory, uint32_t buffers)
{
	const uint32_t depth = depth_of(buffers);

	memset(gpu, 0, sizeof(*gpu));
	gpu->entry = memory;
	if (!memory)
		return;
	gpu->mask = depth - 1;
	gpu->done = (uint64_t *)(gpu->entry + depth);
	gpu->stop = (uint32_t *)(gpu->done + depth);
	gpu->told = gpu->done + depth + LINE / sizeof(uint64_t);
}

struct gdrcap_gpu_images image_gpu_view(const struct image_gpu *gpu)
{
	struct gdrcap_gpu_images view = { 0 };

	if (!gpu->entry)
		return view;
	view.images = &gpu->entry->image;
	view.ready = &gpu->entry->ready;
	view.done = gpu->done;
	view.stop = gpu->stop;
	view.mask = gpu->mask;
	view.image_bytes = sizeof(struct gdrcap_image);
	view.stride = sizeof(struct image_gpu_entry);
	return view;
}

bool image_gpu_room(const struct image_gpu *gpu)
{
	return gpu->given - gpu->back <= gpu->mask;
}

void image_gpu_give(struct image_gpu *gpu, const struct gdrcap_image *image, uint32_t slot)
{
	struct image_gpu_entry *entry = &gpu->entry[gpu->given & gpu->mask];

	entry->image = *image;
	entry->image.seq = gpu->given;
	gpu->slot[gpu->given & gpu->mask] = slot;
	gpu->given++;
	/* GIVE */
	__atomic_store_n(&entry->ready, gpu->given, __ATOMIC_RELEASE);
	stream_count_add(gpu->told, 1);
}

uint32_t image_gpu_next_back(struct image_gpu *gpu, uint64_t *seq)
{
	if (*seq < gpu->back)
		*seq = gpu->back;
	for (; *seq < gpu->given; ++*seq) {
		const uint32_t at = (uint32_t)*seq & gpu->mask, slot = gpu->slot[at];

		/* BACK */
		if (slot == IMAGE_GPU_NONE ||
		    __atomic_load_n(&gpu->done[at], __ATOMIC_ACQUIRE) != *seq + 1)
			continue;
		gpu->slot[at] = IMAGE_GPU_NONE;
		return slot;
	}
	while (gpu->back < gpu->given &&
	       gpu->slot[(uint32_t)gpu->back & gpu->mask] == IMAGE_GPU_NONE)
		gpu->back++;
	return IMAGE_GPU_NONE;
}

void image_gpu_end(struct image_gpu *gpu)
{
	if (!gpu->stop)
		return;
	/* END */
	__atomic_store_n(gpu->stop, 1, __ATOMIC_RELEASE);
	stream_count_end(gpu->told);
}
