/* SPDX-License-Identifier: BSD-3-Clause */
/* Images as memory of gst-plugins-bad's CUDA library, where it was there at build time. */
#ifndef CUDA_MEMORY_H
#define CUDA_MEMORY_H

#include "pixels.h"

#ifdef GDRCAPSRC_WITH_CUDA

/* A picture's allocator and stream, in the CUDA context that the images lie in. */
struct cuda;

/* The same caps, in GPU memory. */
GstCaps *cuda_caps(const GstCaps *caps);
/* NULL: this image's memory is no GPU's, or the library has no memory for such pixels. */
struct cuda *cuda_new(const struct gdrcap_image *image, const GstVideoInfo *info);
void cuda_free(struct cuda *cuda);
/* Answers who asks for the context. */
gboolean cuda_query(struct cuda *cuda, GstElement *element, GstQuery *query);
/* One copy on the GPU, which has ended when it returns: the library cannot wrap what it did not allocate.
 * FALSE: CUDA refused it. */
gboolean cuda_fill(struct cuda *cuda, GstBuffer *buffer, const struct gdrcap_image *image,
		   const struct pixels *pixels);

#endif
#endif
