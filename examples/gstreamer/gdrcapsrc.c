/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GStreamer source of gdrcap's images: gst-launch-1.0 gdrcapsrc config=FILE.yaml ! videoconvert ! autovideosink
 * Built outside of gdrcap's tree by
 *   cc -shared -fPIC -o libgstgdrcap.so gdrcapsrc.c buffers.c pixels.c \
 *      $(pkg-config --cflags --libs gdrcap gstreamer-base-1.0 gstreamer-video-1.0)
 * GST_PLUGIN_PATH names the folder that it lies in. docs/embedding.md, "GStreamer", explains the properties.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <gst/base/gstpushsrc.h>

#include "buffers.h"

GST_DEBUG_CATEGORY_STATIC(gdrcapsrc_debug);
#define GST_CAT_DEFAULT gdrcapsrc_debug

#define RTP_HZ 90000
#define SENDER_HZ 1000000000

enum { TIMESTAMPS_ARRIVAL, TIMESTAMPS_SENDER };
enum {
	PROP_CONFIG = 1,
	PROP_OPTIONS,
	PROP_INDEX,
	PROP_CAPS,
	PROP_TIMESTAMPS,
	PROP_SENDER_CLOCK,
	PROP_DROP_INCOMPLETE,
};

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
	guint64 first_ticks;	/* of the sender, at first_time */
	GstClockTime first_time, last_time;
};

G_DECLARE_FINAL_TYPE(GdrcapSrc, gdrcap_src, GDRCAP, SRC, GstPushSrc)
G_DEFINE_TYPE(GdrcapSrc, gdrcap_src, GST_TYPE_PUSH_SRC)

static GstStaticPadTemplate template = GST_STATIC_PAD_TEMPLATE(
	"src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS("video/x-raw; video/x-bayer"));

/* The library's lines; any thread. */
static void log_line(void *context, enum gdrcap_log_level level, const char *line)
{
	static const GstDebugLevel levels[] = { GST_LEVEL_ERROR, GST_LEVEL_WARNING, GST_LEVEL_INFO,
						GST_LEVEL_INFO, GST_LEVEL_DEBUG };

	(void)context;
	GST_CAT_LEVEL_LOG(gdrcapsrc_debug, levels[MIN(level, GDRCAP_LOG_DEBUG)], NULL, "%s", line);
}

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
	if (counts.incomplete + counts.dropped + counts.skipped + counts.no_room > 0)
		GST_ELEMENT_WARNING(
			self, STREAM, FAILED, ("images are missing or have holes"),
			("%" G_GUINT64_FORMAT " complete, %" G_GUINT64_FORMAT
			 " incomplete, %" G_GUINT64_FORMAT " dropped as no buffer was free (ring: "
			 "in image), %" G_GUINT64_FORMAT " skipped",
			 counts.complete, counts.incomplete, counts.dropped, counts.skipped));
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

/* GST_FLOW_CUSTOM_SUCCESS: nobody knows what this image is, and the next may say. */
static GstFlowReturn caps_negotiate(GdrcapSrc *self, const struct gdrcap_image *image)
{
	GstCaps *given;
	gchar *why = NULL;
	gboolean settled;

	if (self->pixels.caps && !self->caps_wanted &&
	    !pixels_differ(&self->layout, self->pixels.fields, image) &&
	    image->bytes >= self->pixels.bytes)
		return GST_FLOW_OK;
	GST_OBJECT_LOCK(self);
	given = self->caps ? gst_caps_ref(self->caps) : NULL;
	GST_OBJECT_UNLOCK(self);
	if (!self->pixels.caps || !pixels_lack_leader(&self->layout, image)) {
		settled = pixels_settle(&self->pixels, &self->layout, image, given, &why);
		gst_clear_caps(&given);
		if (!settled && !self->pixels.caps && pixels_lack_leader(&self->layout, image)) {
			GST_WARNING_OBJECT(self, "%s", why);
			g_free(why);
			return GST_FLOW_CUSTOM_SUCCESS;
		}
		if (!settled) {
			GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("%s", why), (NULL));
			g_free(why);
			return GST_FLOW_NOT_NEGOTIATED;
		}
	}
	gst_clear_caps(&given);
	if (!gst_base_src_set_caps(GST_BASE_SRC(self), self->pixels.caps)) {
		GST_ELEMENT_ERROR(self, STREAM, FORMAT,
				  ("the next element does not take %" GST_PTR_FORMAT,
				   (void *)self->pixels.caps),
				  (NULL));
		return GST_FLOW_NOT_NEGOTIATED;
	}
	self->takes_strides = takes_strides(self);
	self->caps_wanted = FALSE;
	return GST_FLOW_OK;
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
	if (!buffer_fill(made, self->run, image, &self->pixels, self->takes_strides)) {
		gst_buffer_unref(made);
		GST_ELEMENT_ERROR(self, RESOURCE, READ, ("an image could not be copied"), (NULL));
		return GST_FLOW_ERROR;
	}
	*buffer = made;
	return GST_FLOW_OK;
}

/* ---- the object ---- */

static void gdrcap_src_set_property(GObject *object, guint id, const GValue *value,
				    GParamSpec *spec)
{
	GdrcapSrc *self = GDRCAP_SRC(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case PROP_CONFIG:
		g_free(self->config);
		self->config = g_value_dup_string(value);
		break;
	case PROP_OPTIONS:
		g_free(self->options);
		self->options = g_value_dup_string(value);
		break;
	case PROP_INDEX:
		self->index = g_value_get_uint(value);
		break;
	case PROP_CAPS:
		gst_caps_replace(&self->caps, (GstCaps *)gst_value_get_caps(value));
		break;
	case PROP_TIMESTAMPS:
		self->timestamps = g_value_get_enum(value);
		break;
	case PROP_SENDER_CLOCK:
		self->sender_clock = g_value_get_uint(value);
		break;
	case PROP_DROP_INCOMPLETE:
		self->drop_incomplete = g_value_get_boolean(value);
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

static void gdrcap_src_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
	GdrcapSrc *self = GDRCAP_SRC(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case PROP_CONFIG:
		g_value_set_string(value, self->config);
		break;
	case PROP_OPTIONS:
		g_value_set_string(value, self->options);
		break;
	case PROP_INDEX:
		g_value_set_uint(value, self->index);
		break;
	case PROP_CAPS:
		gst_value_set_caps(value, self->caps);
		break;
	case PROP_TIMESTAMPS:
		g_value_set_enum(value, self->timestamps);
		break;
	case PROP_SENDER_CLOCK:
		g_value_set_uint(value, self->sender_clock);
		break;
	case PROP_DROP_INCOMPLETE:
		g_value_set_boolean(value, self->drop_incomplete);
		break;
	default:
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

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

static void properties_install(GObjectClass *class)
{
	static const GEnumValue timestamps[] = {
		{ TIMESTAMPS_ARRIVAL, "When an image's last piece came", "arrival" },
		{ TIMESTAMPS_SENDER, "By the sender's time stamps, from the first one on",
		  "sender" },
		{ 0, NULL, NULL },
	};
	const GParamFlags flags =
		G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

#define PROPERTY(id, spec) g_object_class_install_property(class, id, spec)
	PROPERTY(PROP_CONFIG,
		 g_param_spec_string("config", "Configuration", "gdrcap's YAML file", NULL, flags));
	PROPERTY(PROP_OPTIONS,
		 g_param_spec_string("options", "Options",
				     "KEY=VALUE; KEY=VALUE: options over those of the file", NULL,
				     flags));
	PROPERTY(PROP_INDEX,
		 g_param_spec_uint("index", "Index", "Which of the configuration's images", 0,
				   GDRCAP_IMAGES_MAX - 1, 0, flags));
	PROPERTY(PROP_CAPS,
		 g_param_spec_boxed("caps", "Caps",
				    "What the images are, where the layout does not say all",
				    GST_TYPE_CAPS, flags));
	PROPERTY(PROP_TIMESTAMPS,
		 g_param_spec_enum("timestamps", "Time stamps", "What buffers' times are",
				   g_enum_register_static("GdrcapSrcTimestamps", timestamps),
				   TIMESTAMPS_ARRIVAL, flags));
	PROPERTY(PROP_SENDER_CLOCK,
		 g_param_spec_uint("sender-clock", "Sender's clock",
				   "Ticks a second of the sender's time stamps (of RTP: 90000)", 1,
				   G_MAXUINT, SENDER_HZ, flags));
	PROPERTY(PROP_DROP_INCOMPLETE,
		 g_param_spec_boolean("drop-incomplete", "Drop incomplete",
				      "Leave out incomplete images instead of flagging them", FALSE,
				      flags));
}

static void gdrcap_src_class_init(GdrcapSrcClass *class)
{
	GObjectClass *object = G_OBJECT_CLASS(class);
	GstElementClass *element = GST_ELEMENT_CLASS(class);
	GstBaseSrcClass *base = GST_BASE_SRC_CLASS(class);

	GST_DEBUG_CATEGORY_INIT(gdrcapsrc_debug, "gdrcapsrc", 0, "gdrcap's images");
	object->set_property = gdrcap_src_set_property;
	object->get_property = gdrcap_src_get_property;
	object->finalize = gdrcap_src_finalize;
	base->start = gdrcap_src_start;
	base->stop = gdrcap_src_stop;
	base->unlock = gdrcap_src_unlock;
	base->unlock_stop = gdrcap_src_unlock_stop;
	base->negotiate = gdrcap_src_negotiate;
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
