/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that lives as long as somebody has one of its images, and GStreamer's buffers of these. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "pixels.h"

struct run {
	gatomicrefcount users; /* the element, and each buffer that wraps an image */
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	gboolean readable; /* by the CPU, where they lie */
};

/* 0, or a negative errno with its reason. */
int run_create(const struct gdrcap_config *config, guint index, struct run **run,
	       struct gdrcap_error *error);
/* The last one destroys the session, on its thread. */
void run_unref(struct run *run);

/*
 * Puts the image's picture into an empty buffer: its own memory, read only, where the CPU can read it,
 * else one copy from the GPU. Where rows are further apart than usual, and nobody reads a GstVideoMeta,
 * they are copied to their usual distance. The image is given back with the buffer, or at once. FALSE: the
 * GPU did not copy.
 */
gboolean buffer_fill(GstBuffer *buffer, struct run *run, const struct gdrcap_image *image,
		     const struct pixels *pixels, gboolean takes_strides);

#endif
