/* SPDX-License-Identifier: BSD-3-Clause */
/* Images for the caller: poll, wait, what is missing, release. */
#include "image/images.h"

#include <errno.h>

#include "base/guest.h"
#include "capture/ring_wait.h"

void images_init(struct gdrcap_images *images, const struct assembler_config *config,
		 const struct kernel_ops *ops, struct kernel_device *device, const char *name)
{
	assembler_init(&images->assembler, config, &images->ring);
	images->ops = ops;
	images->device = device;
	images->layout = &config->view->layout;
	images->name = name;
	for (uint32_t slot = 0; slot < config->view->ring; slot++)
		images->assembler.slot[slot].owner = images;
}

static const struct assembler_slot *slot_of(const struct gdrcap_image *image)
{
	return (const struct assembler_slot *)((uintptr_t)image -
					       offsetof(struct assembler_slot, image));
}

const char *gdrcap_images_name(const struct gdrcap_images *images)
{
	return images ? images->name : NULL;
}

/* ---- to and from a running kernel ---- */

bool images_feed(struct gdrcap_images *images)
{
	struct image_gpu *gpu = &images->gpu;
	uint64_t seq = 0;
	uint32_t slot;

	if (!gpu->entry)
		return true;
	while ((slot = image_gpu_next_back(gpu, &seq)) != IMAGE_GPU_NONE)
		image_ring_return(&images->ring, slot);
	while (image_gpu_room(gpu)) {
		if (!image_ring_hold(&images->ring, &slot))
			return true;
		image_gpu_give(gpu, &images->assembler.slot[slot].image, slot);
	}
	return false;
}

bool images_finish(struct gdrcap_images *images, uint64_t now)
{
	const bool closed = assembler_finish(&images->assembler, now);

	return images_feed(images) && closed;
}

void images_close(struct gdrcap_images *images, uint64_t now)
{
	assembler_end(&images->assembler, now);
	/* what a kernel that gives nothing back left no room for */
	if (!images_feed(images))
		while (assembler_drop_oldest(&images->assembler))
			;
	images_end(images);
}

void images_end(struct gdrcap_images *images)
{
	image_ring_end(&images->ring);
	image_gpu_end(&images->gpu);
}

/* ---- polling ---- */

/* One poll of the caller's. */
struct image_taker {
	struct gdrcap_images *images;
	const struct gdrcap_image **image;
	unsigned int max;
};

static int taker_poll(void *context)
{
	const struct image_taker *taker = context;
	struct gdrcap_images *images = taker->images;
	/* Read before the ring: whoever sees it set also sees the last image. Partner: the release
	 * store in image_ring_end(). */
	const int ended = atomic_load_explicit(&images->ring.ended, memory_order_acquire);
	unsigned int n = 0;
	uint32_t slot;

	for (; n < taker->max && image_ring_hold(&images->ring, &slot); n++) {
		struct gdrcap_image *image = &images->assembler.slot[slot].image;

		image->seq = images->given++;
		taker->image[n] = image;
	}
	return n ? (int)n : ended ? -ESHUTDOWN : 0;
}

static uint64_t taker_next(void *context)
{
	const struct image_taker *taker = context;

	return atomic_load_explicit(&taker->images->ring.taken, memory_order_relaxed);
}

/* 0 when there is something to poll. A running kernel's are not the caller's threads'. */
static int images_check(const struct gdrcap_images *images, const void *image)
{
	if (guest_is_child())
		return -EPERM;
	return images && image && !images->gpu.entry ? 0 : -EINVAL;
}

int gdrcap_image_poll(struct gdrcap_images *images, const struct gdrcap_image **image,
		      unsigned int max)
{
	struct image_taker taker = { images, image, max };
	int ret = images_check(images, image);

	if (ret < 0 || max == 0)
		return ret;
	ret = taker_poll(&taker);
	if (ret == 0 && atomic_load_explicit(&images->ring.wake.asked, memory_order_relaxed))
		ret = ring_poll_arm(&(struct ring_poll){ &images->ring.wake, taker_poll, taker_next,
							 &taker, false, NULL });
	return ret;
}

int gdrcap_image_wait(struct gdrcap_images *images, const struct gdrcap_image **image,
		      unsigned int max, int64_t usec)
{
	struct image_taker taker = { images, image, max };
	const int ret = images_check(images, image);

	if (ret < 0 || max == 0)
		return ret;
	return ring_poll_wait(&(struct ring_poll){ &images->ring.wake, taker_poll, taker_next,
						   &taker, false, NULL },
			      usec);
}

int gdrcap_image_fd(struct gdrcap_images *images)
{
	const int ret = images_check(images, images);

	return ret < 0 ? ret : ring_wake_fd(&images->ring.wake);
}

/* ---- what is in one ---- */

int gdrcap_image_missing(const struct gdrcap_image *image, struct gdrcap_range *ranges,
			 unsigned int max)
{
	const struct image_layout *layout;

	if (guest_is_child())
		return -EPERM;
	if (!image || (max && !ranges))
		return -EINVAL;
	layout = slot_of(image)->owner->layout;
	return (int)image_bits_missing(layout, image->present,
				       image->pieces ? image->pieces : layout->pieces, ranges, max);
}

int gdrcap_image_copy(const struct gdrcap_image *image, uint64_t from, uint64_t bytes, void *to)
{
	const struct gdrcap_images *images;

	if (guest_is_child())
		return -EPERM;
	if (!image || !to || from > image->bytes || bytes > image->bytes - from)
		return -EINVAL;
	images = slot_of(image)->owner;
	return images->ops->copy_out(images->device, to, image->data + from, bytes);
}

/* ---- back ---- */

static void image_release(void *arg)
{
	const struct assembler_slot *slot = arg;
	struct gdrcap_images *images = slot->owner;

	image_ring_return(&images->ring, (uint32_t)(slot - images->assembler.slot));
}

static void *release_arg(const struct gdrcap_image *image)
{
	return (void *)(uintptr_t)slot_of(image);
}

void gdrcap_image_release(struct gdrcap_images *images, const struct gdrcap_image *const *image,
			  unsigned int count)
{
	if (images_check(images, image) < 0)
		return;
	for (unsigned int i = 0; i < count; i++)
		if (image[i])
			image_release(release_arg(image[i]));
}

int gdrcap_image_release_after(struct gdrcap_images *images,
			       const struct gdrcap_image *const *image, unsigned int count,
			       struct CUstream_st *stream)
{
	int ret = images_check(images, image);

	if (ret < 0)
		return ret;
	for (unsigned int i = 0; i < count; i++) {
		ret = image[i] ? images->ops->after(images->device, stream, image_release,
						    release_arg(image[i]))
			       : -EINVAL;
		if (ret < 0)
			return i ? (int)i : ret;
	}
	return (int)count;
}
