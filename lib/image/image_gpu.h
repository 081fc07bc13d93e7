/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images on their way to a kernel that is already running, and back: an entry for each of the last
 * `mask` + 1 images, in memory that both sides read. The kernel's side: gdrcap_device.cuh. Orderings, by
 * name:
 *
 * GIVE: the accountant's store-release of `ready` = seq + 1 after the entry's image. Partner: the kernel's
 * ld.acquire.sys in gdrcap_gpu_image_try_next(). Without it the kernel would read the image of `mask` + 1
 * images ago, or bytes that its placing had not written yet: those are ordered before by DONE and COLLECT
 * (burst_ring.h), and what a closing filled in by the release of closed[].use (place.h).
 * BACK: the kernel's st.release.sys of `done` = seq + 1, behind a barrier of the block, in
 * gdrcap_gpu_image_release(). Partner: the accountant's acquire load. Without it a buffer would be
 * written again while a thread still reads it.
 * END: store-release of `stop` after the last GIVE. Partner: the kernel's ld.acquire.sys, after which it
 * looks at `ready` once more. Without it the last image would be left behind.
 *
 * An entry is written again only when its image is back, so no block can miss its image however late it
 * looks; a block that keeps one holds up images `mask` + 1 further on. Tests: tests/unit/test_image_gpu.c,
 * tests/gpu/test_image_litmus_cuda.cu.
 */
#ifndef GDRCAP_IMAGE_GPU_H
#define GDRCAP_IMAGE_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/stream_count.h"
#include "gdrcap.h"
#include "kernels/place.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMAGE_GPU_NONE UINT32_MAX

/* Writer: the accountant. */
struct image_gpu_entry {
	uint64_t ready; /* GIVE */
	struct gdrcap_image image;
} __attribute__((aligned(64)));

struct image_gpu {
	struct image_gpu_entry *entry; /* NULL: the caller's threads take the images */
	uint64_t *done;		       /* BACK. Writer: the kernel */
	uint32_t *stop;		       /* END */
	uint64_t *told;		       /* COUNT: images so far, for streams (stream_count.h) */
	uint32_t mask;
	/* The accountant's own. */
	uint64_t given, back; /* images so far; all before `back` are back */
	uint32_t slot[4 *
		      PLACE_RING_MAX]; /* whose buffer an entry has; IMAGE_GPU_NONE: it is back */
};

/* Of the memory for a ring of `buffers`. */
size_t image_gpu_bytes(uint32_t buffers);
/* `memory`: zeroed, aligned to 64; NULL: none. */
void image_gpu_init(struct image_gpu *gpu, void *memory, uint32_t buffers);

/* What the kernel is told; zeroed where there is no memory. */
struct gdrcap_gpu_images image_gpu_view(const struct image_gpu *gpu);

/* There is an entry for one more. */
bool image_gpu_room(const struct image_gpu *gpu);
/* GIVE. There is room. */
void image_gpu_give(struct image_gpu *gpu, const struct gdrcap_image *image, uint32_t slot);
/* BACK: each buffer that came back, in turn; IMAGE_GPU_NONE: no more. *seq: 0 to begin with. */
uint32_t image_gpu_next_back(struct image_gpu *gpu, uint64_t *seq);
/* END; any thread, also several times. */
void image_gpu_end(struct image_gpu *gpu);

#ifdef __cplusplus
}
#endif

#endif
