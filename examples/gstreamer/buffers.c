/* SPDX-License-Identifier: BSD-3-Clause */
/* Images as GStreamer's buffers: wrapped where the CPU can read them, else copied from the GPU. */
#include <errno.h>
#include <string.h>

#include "buffers.h"

/* ---- the session ---- */

int run_create(const struct gdrcap_config *config, guint index, struct run **run,
	       struct gdrcap_error *error)
{
	const char *memory = gdrcap_config_get(config, "memory", 0);
	struct run *made = g_new0(struct run, 1);
	struct gdrcap_summary summary;
	int ret;

	g_atomic_ref_count_init(&made->users);
	if (!gdrcap_config_get(config, "image", index)) {
		g_snprintf(error->text, sizeof(error->text),
			   "image %u: the configuration has no such description; give image "
			   "(docs/images.md), and index where there are several",
			   index);
		error->kind = GDRCAP_ERROR_CONFIG;
		ret = error->code = -EINVAL;
	} else {
		ret = gdrcap_create(config, &made->session, error);
	}
	if (ret) {
		g_free(made);
		return ret;
	}
	made->images = gdrcap_get_images(made->session, index);
	gdrcap_get_summary(made->session, &summary, sizeof(summary));
	/* Images are in GPU memory where there is a GPU, unless pinned memory was asked for. */
	made->readable = strcmp(summary.driver, "gpu_host") == 0 ||
			 (memory && strcmp(memory, "pinned") == 0);
	*run = made;
	return 0;
}

void run_unref(struct run *run)
{
	if (!g_atomic_ref_count_dec(&run->users))
		return;
	gdrcap_destroy(run->session);
	g_free(run);
}

/* ---- wrapped images ---- */

struct lease {
	struct run *run;
	const struct gdrcap_image *image;
};

static void lease_end(gpointer data)
{
	struct lease *lease = data;

	gdrcap_image_release(lease->run->images, &lease->image, 1);
	run_unref(lease->run);
	g_free(lease);
}

static GstMemory *image_wrap(struct run *run, const struct gdrcap_image *image, gsize bytes)
{
	struct lease *lease = g_new(struct lease, 1);

	g_atomic_ref_count_inc(&run->users);
	*lease = (struct lease){ .run = run, .image = image };
	return gst_memory_new_wrapped(GST_MEMORY_FLAG_READONLY, image->data, bytes, 0, bytes, lease,
				      lease_end);
}

/* ---- copies ---- */

static GstMemory *image_copy(const struct gdrcap_image *image, gsize bytes)
{
	GstMemory *memory = gst_allocator_alloc(NULL, bytes, NULL);
	GstMapInfo map;
	int ret = -ENOMEM;

	if (memory && gst_memory_map(memory, &map, GST_MAP_WRITE)) {
		ret = gdrcap_image_copy(image, 0, bytes, map.data);
		gst_memory_unmap(memory, &map);
	}
	if (ret && memory)
		gst_memory_unref(memory);
	return ret ? NULL : memory;
}

/* Rows at their usual distance, with zeros between them. */
static GstMemory *rows_copy(const guint8 *from, const struct pixels *pixels)
{
	GstMemory *memory = gst_allocator_alloc(NULL, pixels->usual * pixels->rows, NULL);
	GstMapInfo map;

	if (!memory || !gst_memory_map(memory, &map, GST_MAP_WRITE))
		return NULL;
	for (guint i = 0; i < pixels->rows; i++) {
		guint8 *to = map.data + i * pixels->usual;

		memcpy(to, from + i * pixels->stride, pixels->row);
		memset(to + pixels->row, 0, pixels->usual - pixels->row);
	}
	gst_memory_unmap(memory, &map);
	return memory;
}

static GstMemory *image_rows(const struct run *run, const struct gdrcap_image *image,
			     const struct pixels *pixels)
{
	guint8 *copy = NULL;
	GstMemory *memory = NULL;

	if (!run->readable) {
		copy = g_malloc(pixels->bytes);
		if (gdrcap_image_copy(image, 0, pixels->bytes, copy)) {
			g_free(copy);
			return NULL;
		}
	}
	memory = rows_copy(copy ? copy : image->data, pixels);
	g_free(copy);
	return memory;
}

gboolean buffer_fill(GstBuffer *buffer, struct run *run, const struct gdrcap_image *image,
		     const struct pixels *pixels, gboolean takes_strides)
{
	const gboolean unusual =
		pixels->stride != pixels->usual || pixels->bytes < pixels->usual * pixels->rows;
	const gboolean wraps = run->readable && (!unusual || takes_strides);
	GstMemory *memory;

	if (wraps)
		memory = image_wrap(run, image, pixels->bytes);
	else if (!unusual || takes_strides)
		memory = image_copy(image, pixels->bytes);
	else
		memory = image_rows(run, image, pixels);
	if (!wraps)
		gdrcap_image_release(run->images, &image, 1);
	if (!memory)
		return FALSE;
	gst_buffer_append_memory(buffer, memory);
	if (takes_strides && pixels->is_raw && GST_VIDEO_INFO_N_PLANES(&pixels->info) == 1) {
		gsize offset[GST_VIDEO_MAX_PLANES] = { 0 };
		gint stride[GST_VIDEO_MAX_PLANES] = { (gint)pixels->stride };

		gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE,
					       GST_VIDEO_INFO_FORMAT(&pixels->info),
					       (guint)GST_VIDEO_INFO_WIDTH(&pixels->info),
					       pixels->rows, 1, offset, stride);
	}
	return TRUE;
}
