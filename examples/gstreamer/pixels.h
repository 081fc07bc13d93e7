/* SPDX-License-Identifier: BSD-3-Clause */
/* What an image's bytes are in GStreamer's words: from the layout, from what the sender says of it, and from
 * the caps that the user gave. */
#ifndef PIXELS_H
#define PIXELS_H

#include <gst/video/video.h>

#include <gdrcap.h>

/* A layout, as gdrcap_config_get(config, "image", index) writes it. 0: it does not say. */
struct layout {
	gchar parser[16], sampling[16], convert[20];
	guint64 width, height, depth, pitch;
};

struct pixels {
	GstCaps *caps; /* NULL: not known yet */
	GstVideoInfo info;
	gboolean is_raw; /* video/x-raw: `info` is filled in */
	gsize row;	 /* bytes of a row, without what is between rows */
	gsize stride;	 /* from row to row, in the image */
	gsize usual;	 /* what GStreamer's elements expect it to be without a GstVideoMeta */
	gsize bytes;	 /* of the image, from its first row on */
	guint rows;
	guint64 fields[4]; /* that the sender said of them */
};

void layout_read(struct layout *layout, const gchar *text);

/* A GigE Vision leader says what its image is; one that was lost says nothing. */
gboolean pixels_lack_leader(const struct layout *layout, const struct gdrcap_image *image);
/* Whether the sender says of `image` something else than `fields`, which it said before. */
gboolean pixels_differ(const struct layout *layout, const guint64 *fields,
		       const struct gdrcap_image *image);

/* `given`: the user's caps, or NULL. FALSE: *why says what is missing; free it. */
gboolean pixels_settle(struct pixels *pixels, const struct layout *layout,
		       const struct gdrcap_image *image, const GstCaps *given, gchar **why);
void pixels_clear(struct pixels *pixels);

#endif
