/* SPDX-License-Identifier: BSD-3-Clause */
/* The images of one description, in the hands of the caller. */
#ifndef GDRCAP_IMAGES_H
#define GDRCAP_IMAGES_H

#include "image/assembler.h"
#include "image/image_gpu.h"
#include "kernels/kernels.h"

struct gdrcap_images {
	struct image_ring ring;
	struct image_gpu gpu; /* of a running kernel of the caller's: image_gpu_init(), or zeroed */
	struct assembler assembler; /* the accountant's; of its slots the caller has the images */
	const struct kernel_ops *ops;
	struct kernel_device *device;
	const struct image_layout *layout;
	const char *name;
	uint64_t given;	      /* images that the caller took; the caller's thread only */
	_Atomic bool started; /* streams may wait: the run's end will let them go */
};

/* `config->view` is kept; the assembler has all buffers then. */
void images_init(struct gdrcap_images *images, const struct assembler_config *config,
		 const struct kernel_ops *ops, struct kernel_device *device, const char *name);
/* The accountant, in each round: images go to the running kernel, and those that it gave back to the
 * assembler. False: some wait until it gives back others. */
bool images_feed(struct gdrcap_images *images);
/* assembler_finish(), and all were given to the running kernel. */
bool images_finish(struct gdrcap_images *images, uint64_t now);
/* assembler_end(), and images_end(): images that still wait for a kernel count as dropped. */
void images_close(struct gdrcap_images *images, uint64_t now);
/* No image will follow; any thread. */
void images_end(struct gdrcap_images *images);

#endif
