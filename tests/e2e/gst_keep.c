/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps buffers of gdrcapsrc until its pipeline is gone, and writes them then: gst_keep CONFIG COUNT FILE. */
#include <stdio.h>

#include <gst/gst.h>

struct kept {
	GMutex lock;
	GCond news;
	GQueue buffers;
};

static void keep(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
	struct kept *kept = data;

	(void)sink;
	(void)pad;
	g_mutex_lock(&kept->lock);
	g_queue_push_tail(&kept->buffers, gst_buffer_ref(buffer));
	g_cond_signal(&kept->news);
	g_mutex_unlock(&kept->lock);
}

/* TRUE: all of them are the session's own memory, and nobody may write it. */
static gboolean buffers_write(struct kept *kept, FILE *file)
{
	gboolean wrapped = TRUE;
	GstBuffer *buffer;

	while ((buffer = g_queue_pop_head(&kept->buffers))) {
		GstMemory *memory = gst_buffer_peek_memory(buffer, 0);
		GstMapInfo map;

		wrapped &= gst_buffer_n_memory(buffer) == 1 && GST_MEMORY_IS_READONLY(memory);
		if (!gst_buffer_map(buffer, &map, GST_MAP_READ))
			return FALSE;
		fwrite(map.data, map.size, 1, file);
		gst_buffer_unmap(buffer, &map);
		gst_buffer_unref(buffer); /* the last one destroys the session */
	}
	return wrapped;
}

int main(int argc, char **argv)
{
	struct kept kept = { .buffers = G_QUEUE_INIT };
	GstElement *pipeline, *source, *sink;
	FILE *file = argc == 4 ? fopen(argv[3], "wb") : NULL;
	gboolean good;

	if (!file)
		return 2;
	gst_init(NULL, NULL);
	pipeline = gst_pipeline_new(NULL);
	source = gst_element_factory_make("gdrcapsrc", NULL);
	sink = gst_element_factory_make("fakesink", NULL);
	if (!source || !sink)
		return 2;
	g_object_set(source, "config", argv[1], NULL);
	g_object_set(sink, "signal-handoffs", TRUE, "enable-last-sample", FALSE, "sync", FALSE,
		     NULL);
	g_signal_connect(sink, "handoff", G_CALLBACK(keep), &kept);
	gst_bin_add_many(GST_BIN(pipeline), source, sink, NULL);
	gst_element_link(source, sink);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	g_mutex_lock(&kept.lock);
	while (kept.buffers.length < (guint)g_ascii_strtoull(argv[2], NULL, 10))
		g_cond_wait(&kept.news, &kept.lock);
	g_mutex_unlock(&kept.lock);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	gst_object_unref(pipeline);
	good = buffers_write(&kept, file);
	return fclose(file) == 0 && good ? 0 : 1;
}
