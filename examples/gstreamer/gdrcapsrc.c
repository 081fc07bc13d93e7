/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GStreamer source of gdrcap's images: gst-launch-1.0 gdrcapsrc config=FILE.yaml ! videoconvert ! autovideosink
 * Built outside of gdrcap's tree by
 *   cc -shared -fPIC -o libgstgdrcap.so gdrcapsrc.c properties.c buffers.c pixels.c \
 *      $(pkg-config --cflags --libs gdrcap gstreamer-base-1.0 gstreamer-video-1.0)
 * GST_PLUGIN_PATH names the folder that it lies in. docs/embedding.md, "GStreamer", explains the properties.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "gdrcapsrc.h"

GST_DEBUG_CATEGORY_STATIC(gdrcapsrc_debug);
#define GST_CAT_DEFAULT gdrcapsrc_debug

#define RTP_HZ 90000

G_DEFINE_TYPE(GdrcapSrc, gdrcap_src, GST_TYPE_PUSH_SRC)

#ifdef GDRCAPSRC_WITH_CUDA
#define CAPS "video/x-raw(memory:CUDAMemory); video/x-raw; video/x-bayer"
#else
#define CAPS "video/x-raw; video/x-bayer"
#endif
static GstStaticPadTemplate template =
	GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(CAPS));

/* The library's lines; any thread. */
static void log_line(void *context, enum gdrcap_log_level level, const char *line)
{
	static const GstDebugLevel levels[] = { GST_LEVEL_ERROR, GST_LEVEL_WARNING, GST_LEVEL_INFO,
						GST_LEVEL_INFO, GST_LEVEL_DEBUG };

	(void)context;
	GST_CAT_LEVEL_LOG(gdrcapsrc_debug, levels[MIN(level, GDRCAP_LOG_DEBUG)], NULL, "%s", line);
}

/* ---- memory of the GPU's ---- */

#ifdef GDRCAPSRC_WITH_CUDA

static void cuda_replace(GdrcapSrc *self, struct cuda *cuda)
{
	struct cuda *before;

	GST_OBJECT_LOCK(self);
	before = self->cuda;
	self->cuda = cuda;
	GST_OBJECT_UNLOCK(self);
	cuda_free(before);
}

/* Caps in GPU memory, where the images lie there and the next element takes it; else NULL. */
static GstCaps *cuda_negotiate(GdrcapSrc *self, const struct gdrcap_image *image)
{
	GstCaps *caps;

	cuda_replace(self, NULL);
	if (self->run->readable || !self->pixels.is_raw ||
	    GST_VIDEO_INFO_N_PLANES(&self->pixels.info) != 1)
		return NULL;
	caps = cuda_caps(self->pixels.caps);
	if (gst_pad_peer_query_accept_caps(GST_BASE_SRC_PAD(self), caps))
		cuda_replace(self, cuda_new(image, &self->pixels.info));
	if (!self->cuda)
		gst_clear_caps(&caps);
	return caps;
}

static gboolean gdrcap_src_query(GstBaseSrc *base, GstQuery *query)
{
	GdrcapSrc *self = GDRCAP_SRC(base);
	gboolean answered = FALSE;

	if (GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT) {
		GST_OBJECT_LOCK(self);
		answered = self->cuda && cuda_query(self->cuda, GST_ELEMENT(self), query);
		GST_OBJECT_UNLOCK(self);
	}
	return answered || GST_BASE_SRC_CLASS(gdrcap_src_parent_class)->query(base, query);
}

#endif

/* ---- configuration ---- */

/* "KEY=VALUE; KEY=VALUE" */
static int options_set(struct gdrcap_config *config, const gchar *options,
		       struct gdrcap_error *error)
{
	gchar **parts = g_strsplit(options ? options : "", ";", -1);
	int ret = 0;

	for (gchar **part = parts; *part && ret == 0; part++) {
		gchar *value = strchr(g_strstrip(*part), '=');

		if (!**part)
			continue;
		if (value)
			*value++ = '\0';
		ret = gdrcap_config_set(config, *part, value ? value : "true", error);
	}
	g_strfreev(parts);
	return ret;
}

/* Everything but the start: nothing comes before the pipeline plays. */
static int run_prepare(GdrcapSrc *self, struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	int ret;

	if (!config) {
		g_strlcpy(error->text, "no memory", sizeof(error->text));
		return error->code = -ENOMEM;
	}
	gdrcap_config_set_log(config, log_line, NULL);
	GST_OBJECT_LOCK(self);
	ret = self->config ? gdrcap_config_load(config, self->config, error) : 0;
	if (ret == 0)
		ret = options_set(config, self->options, error);
	GST_OBJECT_UNLOCK(self);
	if (ret == 0)
		ret = gdrcap_config_set(config, "consumer.name", "host", error);
	if (ret == 0)
		ret = run_create(config, self->index, &self->run, error);
	if (ret == 0)
		layout_read(&self->layout, gdrcap_config_get(config, "image", self->index));
	gdrcap_config_free(config);
	return ret;
}

static gboolean gdrcap_src_start(GstBaseSrc *base)
{
	GdrcapSrc *self = GDRCAP_SRC(base);
	struct gdrcap_error error = { .code = 0 };
	int fd;

	if (run_prepare(self, &error)) {
		if (error.kind == GDRCAP_ERROR_CONFIG)
			GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, ("%s", error.text), (NULL));
		else
			GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ, ("%s", error.text), (NULL));
		return FALSE;
	}
	fd = gdrcap_image_fd(self->run->images);
	if (fd < 0) {
		GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ, ("no descriptor to wait for images"),
				  ("%s", g_strerror(-fd)));
		g_clear_pointer(&self->run, run_unref);
		return FALSE;
	}
	gst_poll_fd_init(&self->fd);
	self->fd.fd = fd;
	gst_poll_add_fd(self->poll, &self->fd);
	gst_poll_fd_ctl_read(self->poll, &self->fd, TRUE);
	self->started = FALSE;
	self->caps_wanted = TRUE;
	self->first_time = self->last_time = GST_CLOCK_TIME_NONE;
	return TRUE;
}

static void counts_tell(GdrcapSrc *self)
{
	struct gdrcap_image_counts counts;

	if (gdrcap_get_image_counts(self->run->session, self->index, &counts, sizeof(counts)))
		return;
	if (counts.incomplete + counts.dropped + counts.skipped + counts.no_room + counts.conflict >
	    0)
		GST_ELEMENT_WARNING(self, STREAM, FAILED, ("images are missing or have holes"),
				    ("%" G_GUINT64_FORMAT " complete, %" G_GUINT64_FORMAT
				     " incomplete, %" G_GUINT64_FORMAT
				     " dropped as no buffer was free (ring: "
				     "in image), %" G_GUINT64_FORMAT " skipped, %" G_GUINT64_FORMAT
				     " frames of a second sender",
				     counts.complete, counts.incomplete, counts.dropped,
				     counts.skipped, counts.conflict));
	else
		GST_INFO_OBJECT(self, "%" G_GUINT64_FORMAT " images, all complete",
				counts.complete);
}

static gboolean gdrcap_src_stop(GstBaseSrc *base)
{
	GdrcapSrc *self = GDRCAP_SRC(base);

	/* Images that are still downstream stay valid: the last one destroys the session. */
	gdrcap_stop(self->run->session, NULL);
	gst_poll_remove_fd(self->poll, &self->fd);
#ifdef GDRCAPSRC_WITH_CUDA
	cuda_replace(self, NULL);
#endif
	g_clear_pointer(&self->run, run_unref);
	pixels_clear(&self->pixels);
	return TRUE;
}

static gboolean gdrcap_src_unlock(GstBaseSrc *base)
{
	gst_poll_set_flushing(GDRCAP_SRC(base)->poll, TRUE);
	return TRUE;
}

static gboolean gdrcap_src_unlock_stop(GstBaseSrc *base)
{
	gst_poll_set_flushing(GDRCAP_SRC(base)->poll, FALSE);
	return TRUE;
}

/* ---- caps: known with the first image ---- */

static gboolean gdrcap_src_negotiate(GstBaseSrc *base)
{
	GDRCAP_SRC(base)->caps_wanted = TRUE;
	return TRUE;
}

/* Whether downstream asks for rows at their usual distance. */
static gboolean takes_strides(GdrcapSrc *self)
{
	GstQuery *query = gst_query_new_allocation(self->pixels.caps, FALSE);
	const gboolean takes = gst_pad_peer_query(GST_BASE_SRC_PAD(self), query) &&
			       gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);

	gst_query_unref(query);
	return takes && self->pixels.is_raw;
}

static GstFlowReturn caps_set(GdrcapSrc *self, const struct gdrcap_image *image)
{
	GstCaps *caps = NULL;
	gboolean taken;

#ifdef GDRCAPSRC_WITH_CUDA
	caps = cuda_negotiate(self, image);
#endif
	if (!caps)
		caps = gst_caps_ref(self->pixels.caps);
	taken = gst_base_src_set_caps(GST_BASE_SRC(self), caps);
	if (!taken)
		GST_ELEMENT_ERROR(self, STREAM, FORMAT,
				  ("the next element does not take %" GST_PTR_FORMAT, (void *)caps),
				  (NULL));
	gst_caps_unref(caps);
	if (!taken)
		return GST_FLOW_NOT_NEGOTIATED;
	self->takes_strides = takes_strides(self);
	self->caps_wanted = FALSE;
	return GST_FLOW_OK;
}

/* What the image is, from what it says of itself, or as those before. FALSE: *why, which is to be freed. */
static gboolean pixels_choose(GdrcapSrc *self, const struct gdrcap_image *image, gchar **why)
{
	GstCaps *given;
	gboolean settled;

	if (self->pixels.caps && pixels_lack_leader(&self->layout, image)) {
		if (image->bytes >= self->pixels.bytes)
			return TRUE;
		*why = g_strdup("its leader is lost, and it is smaller than those before");
		return FALSE;
	}
	GST_OBJECT_LOCK(self);
	given = self->caps ? gst_caps_ref(self->caps) : NULL;
	GST_OBJECT_UNLOCK(self);
	settled = pixels_settle(&self->pixels, &self->layout, image, given, why);
	gst_clear_caps(&given);
	return settled;
}

/* GST_FLOW_CUSTOM_SUCCESS: nobody knows what this image is, and the next may say. */
static GstFlowReturn caps_negotiate(GdrcapSrc *self, const struct gdrcap_image *image)
{
	gchar *why = NULL;

	if (self->pixels.caps && !self->caps_wanted &&
	    !pixels_differ(&self->layout, self->pixels.fields, image) &&
	    image->bytes >= self->pixels.bytes)
		return GST_FLOW_OK;
	if (pixels_choose(self, image, &why))
		return caps_set(self, image);
	/* A wrong layout, or caps, are wrong for the first image; anybody can send one wrong leader. */
	if (!self->pixels.caps && !pixels_lack_leader(&self->layout, image)) {
		GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("%s", why), (NULL));
		g_free(why);
		return GST_FLOW_NOT_NEGOTIATED;
	}
	GST_WARNING_OBJECT(self, "image %" G_GUINT64_FORMAT " is left out: %s",
			   (guint64)image->number, why);
	g_free(why);
	return GST_FLOW_CUSTOM_SUCCESS;
}

/* ---- time ---- */

/* When the image's last piece came, as the pipeline's running time. */
static GstClockTime arrival_time(GdrcapSrc *self, const struct gdrcap_image *image)
{
	GstClock *clock = gst_element_get_clock(GST_ELEMENT(self));
	struct timespec now;
	GstClockTime time, age;

	if (!clock)
		return GST_CLOCK_TIME_NONE;
	time = gst_clock_get_time(clock) - gst_element_get_base_time(GST_ELEMENT(self));
	gst_object_unref(clock);
	clock_gettime(CLOCK_REALTIME, &now);
	age = GST_TIMESPEC_TO_TIME(now);
	age = age > image->last_time ? age - image->last_time : 0;
	return time > age ? time - age : 0;
}

/* As far behind the first image's arrival as the sender's time stamps say. */
static GstClockTime sender_time(GdrcapSrc *self, const struct gdrcap_image *image)
{
	const gboolean is_rtp = strcmp(self->layout.parser, "rtp-raw") == 0;
	const guint64 ticks = is_rtp ? image->number : image->timestamp;

	if (!is_rtp && ticks == 0) /* its leader was lost */
		return GST_CLOCK_TIME_NONE;
	if (!GST_CLOCK_TIME_IS_VALID(self->first_time) || ticks < self->first_ticks) {
		self->first_time = arrival_time(self, image);
		self->first_ticks = ticks;
	}
	if (!GST_CLOCK_TIME_IS_VALID(self->first_time))
		return GST_CLOCK_TIME_NONE;
	return self->first_time + gst_util_uint64_scale(ticks - self->first_ticks, GST_SECOND,
							is_rtp ? RTP_HZ : self->sender_clock);
}

static void stamp(GdrcapSrc *self, GstBuffer *buffer, const struct gdrcap_image *image)
{
	GstClockTime time = self->timestamps == TIMESTAMPS_SENDER ? sender_time(self, image)
								  : arrival_time(self, image);

	/* Two clocks were read: never backwards. */
	if (self->timestamps == TIMESTAMPS_ARRIVAL && GST_CLOCK_TIME_IS_VALID(self->last_time) &&
	    time < self->last_time)
		time = self->last_time;
	self->last_time = time;
	GST_BUFFER_PTS(buffer) = time;
	GST_BUFFER_OFFSET(buffer) = image->number;
	if (image->end != GDRCAP_IMAGE_COMPLETE)
		GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_CORRUPTED);
	if (image->skipped)
		GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
}

/* ---- images ---- */

/* The run is over: by its end, or by an error. */
static GstFlowReturn run_end(GdrcapSrc *self)
{
	struct gdrcap_error error;

	if (gdrcap_stop(self->run->session, &error)) {
		GST_ELEMENT_ERROR(self, RESOURCE, READ, ("%s", error.text), (NULL));
		return GST_FLOW_ERROR;
	}
	counts_tell(self);
	return GST_FLOW_EOS;
}

/* The next image, which is the caller's. */
static GstFlowReturn image_next(GdrcapSrc *self, const struct gdrcap_image **image)
{
	int n;

	/* By gdrcap_image_fd()'s rule: poll until it returns 0, then wait. */
	while ((n = gdrcap_image_poll(self->run->images, image, 1)) == 0)
		if (gst_poll_wait(self->poll, GST_CLOCK_TIME_NONE) < 0 && errno == EBUSY)
			return GST_FLOW_FLUSHING;
	return n > 0 ? GST_FLOW_OK : run_end(self);
}

/* The image's bytes; it is given back with the buffer, or at once. */
static gboolean image_fill(GdrcapSrc *self, GstBuffer *buffer, const struct gdrcap_image *image)
{
#ifdef GDRCAPSRC_WITH_CUDA
	if (self->cuda) {
		const gboolean filled = cuda_fill(self->cuda, buffer, image, &self->pixels);

		gdrcap_image_release(self->run->images, &image, 1);
		return filled;
	}
#endif
	return buffer_fill(buffer, self->run, image, &self->pixels, self->takes_strides);
}

static GstFlowReturn gdrcap_src_create(GstPushSrc *push, GstBuffer **buffer)
{
	GdrcapSrc *self = GDRCAP_SRC(push);
	const struct gdrcap_image *image;
	struct gdrcap_error error;
	GstFlowReturn flow;

	if (!self->started && gdrcap_start(self->run->session, &error)) {
		GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ, ("%s", error.text), (NULL));
		return GST_FLOW_ERROR;
	}
	if (!self->started)
		GST_INFO_OBJECT(self, "frames are received");
	self->started = TRUE;
	do {
		flow = image_next(self, &image);
		if (flow != GST_FLOW_OK)
			return flow;
		flow = image->end != GDRCAP_IMAGE_COMPLETE && self->drop_incomplete
			       ? GST_FLOW_CUSTOM_SUCCESS
			       : caps_negotiate(self, image);
		if (flow != GST_FLOW_OK)
			gdrcap_image_release(self->run->images, &image, 1);
	} while (flow == GST_FLOW_CUSTOM_SUCCESS);
	if (flow != GST_FLOW_OK)
		return flow;
	/* The image may be given back with its last byte copied, so what it says comes first. */
	GstBuffer *made = gst_buffer_new();

	stamp(self, made, image);
	if (!image_fill(self, made, image)) {
		gst_buffer_unref(made);
		GST_ELEMENT_ERROR(self, RESOURCE, READ, ("an image could not be copied"), (NULL));
		return GST_FLOW_ERROR;
	}
	*buffer = made;
	return GST_FLOW_OK;
}

/* ---- the object ---- */

static void gdrcap_src_finalize(GObject *object)
{
	GdrcapSrc *self = GDRCAP_SRC(object);

	g_free(self->config);
	g_free(self->options);
	gst_clear_caps(&self->caps);
	gst_poll_free(self->poll);
	G_OBJECT_CLASS(gdrcap_src_parent_class)->finalize(object);
}

static void gdrcap_src_init(GdrcapSrc *self)
{
	self->poll = gst_poll_new(TRUE);
	self->sender_clock = SENDER_HZ;
	gst_base_src_set_live(GST_BASE_SRC(self), TRUE);
	gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
}

static void gdrcap_src_class_init(GdrcapSrcClass *class)
{
	GObjectClass *object = G_OBJECT_CLASS(class);
	GstElementClass *element = GST_ELEMENT_CLASS(class);
	GstBaseSrcClass *base = GST_BASE_SRC_CLASS(class);

	GST_DEBUG_CATEGORY_INIT(gdrcapsrc_debug, "gdrcapsrc", 0, "gdrcap's images");
	object->finalize = gdrcap_src_finalize;
	base->start = gdrcap_src_start;
	base->stop = gdrcap_src_stop;
	base->unlock = gdrcap_src_unlock;
	base->unlock_stop = gdrcap_src_unlock_stop;
	base->negotiate = gdrcap_src_negotiate;
#ifdef GDRCAPSRC_WITH_CUDA
	base->query = gdrcap_src_query;
#endif
	GST_PUSH_SRC_CLASS(class)->create = gdrcap_src_create;
	properties_install(object);
	gst_element_class_add_static_pad_template(element, &template);
	gst_element_class_set_static_metadata(
		element, "gdrcap image source", "Source/Video/Network",
		"Images assembled from raw Ethernet frames", "The gdrcap authors");
}

static gboolean plugin_init(GstPlugin *plugin)
{
	return gst_element_register(plugin, "gdrcapsrc", GST_RANK_NONE, gdrcap_src_get_type());
}

#define PACKAGE "gdrcap"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, gdrcap,
		  "Images of cameras and sensors, from raw Ethernet frames", plugin_init,
		  GDRCAP_VERSION, "BSD", "gdrcap", "gdrcap")
