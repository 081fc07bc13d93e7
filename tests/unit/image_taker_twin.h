/* SPDX-License-Identifier: BSD-3-Clause */
/* What gdrcap_device.cuh does for a running kernel's images, by hand for a CPU thread. */
#ifndef GDRCAP_TEST_IMAGE_TAKER_TWIN_H
#define GDRCAP_TEST_IMAGE_TAKER_TWIN_H

#include <gdrcap.h>

/* A build with these other than the device's orders shows that a test can fail. */
#ifndef TWIN_RELEASE
#define TWIN_RELEASE __ATOMIC_RELEASE
#endif
#ifndef TWIN_ACQUIRE
#define TWIN_ACQUIRE __ATOMIC_ACQUIRE
#endif

static inline uint64_t twin_word(const struct gdrcap_gpu_images *images, uint64_t seq)
{
	const char *ready = (const char *)images->ready;

	/* GIVE */
	return __atomic_load_n(
		(const uint64_t *)(const void *)(ready + (seq & images->mask) * images->stride),
		TWIN_ACQUIRE);
}

/* As gdrcap_gpu_image_try_next(). */
static inline int twin_try_next(const struct gdrcap_gpu_images *images, uint64_t seq,
				struct gdrcap_image *image)
{
	const char *entries = (const char *)images->images;

	if (twin_word(images, seq) != seq + 1) {
		/* END */
		if (!__atomic_load_n(images->stop, TWIN_ACQUIRE))
			return 0;
		if (twin_word(images, seq) != seq + 1)
			return -1;
	}
	*image = *(const struct gdrcap_image *)(const void *)(entries + (seq & images->mask) *
										images->stride);
	return 1;
}

static inline void twin_release(const struct gdrcap_gpu_images *images, uint64_t seq)
{
	/* BACK */
	__atomic_store_n(&images->done[seq & images->mask], seq + 1, TWIN_RELEASE);
}

#endif
