/* SPDX-License-Identifier: BSD-3-Clause */
/* The element, for its two files: the source, and its properties. */
#ifndef GDRCAPSRC_H
#define GDRCAPSRC_H

#include <gst/base/gstpushsrc.h>

#include "buffers.h"
#include "cuda_memory.h"

#define SENDER_HZ 1000000000

enum { TIMESTAMPS_ARRIVAL, TIMESTAMPS_SENDER };

struct _GdrcapSrc {
	GstPushSrc parent;
	GstPoll *poll; /* until an image is there, or a state change wants the thread */

	/* Properties, under the object's lock. */
	gchar *config, *options;
	guint index, sender_clock;
	gint timestamps;
	GstCaps *caps;
	gboolean drop_incomplete;

	/* From start to stop. */
	struct run *run;
	GstPollFD fd;
	struct layout layout;
	struct pixels pixels;
	gboolean started;	/* frames are received */
	gboolean caps_wanted;	/* again, as the pads or the images are others */
	gboolean takes_strides; /* downstream reads GstVideoMeta */
#ifdef GDRCAPSRC_WITH_CUDA
	struct cuda
		*cuda; /* NULL: buffers are in system memory. Under the lock, as queries read it */
#endif
	guint64 first_ticks; /* of the sender, at first_time */
	GstClockTime first_time, last_time;
};

G_DECLARE_FINAL_TYPE(GdrcapSrc, gdrcap_src, GDRCAP, SRC, GstPushSrc)

/* The class's properties, with what reads and sets them. */
void properties_install(GObjectClass *class);

#endif
