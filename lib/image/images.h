/* SPDX-License-Identifier: BSD-3-Clause */
/* The images of one description, in the hands of the caller. */
#ifndef GDRCAP_IMAGES_H
#define GDRCAP_IMAGES_H

#include "image/assembler.h"
#include "kernels/kernels.h"

struct gdrcap_images {
	struct image_ring ring;
	struct assembler assembler; /* the accountant's; of its slots the caller has the images */
	const struct kernel_ops *ops;
	struct kernel_device *device;
	const struct image_layout *layout;
	const char *name;
	uint64_t given; /* images that the caller took; the caller's thread only */
};

/* `config->view` is kept; the assembler has all buffers then. */
void images_init(struct gdrcap_images *images, const struct assembler_config *config,
		 const struct kernel_ops *ops, struct kernel_device *device, const char *name);

#endif
