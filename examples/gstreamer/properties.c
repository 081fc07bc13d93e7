/* SPDX-License-Identifier: BSD-3-Clause */
/* The element's properties. */
#include "gdrcapsrc.h"

enum {
	PROP_CONFIG = 1,
	PROP_OPTIONS,
	PROP_INDEX,
	PROP_CAPS,
	PROP_TIMESTAMPS,
	PROP_SENDER_CLOCK,
	PROP_DROP_INCOMPLETE,
};

static void property_set(GObject *object, guint id, const GValue *value, GParamSpec *spec)
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

static void property_get(GObject *object, guint id, GValue *value, GParamSpec *spec)
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

void properties_install(GObjectClass *class)
{
	static const GEnumValue timestamps[] = {
		{ TIMESTAMPS_ARRIVAL, "When an image's last piece came", "arrival" },
		{ TIMESTAMPS_SENDER, "By the sender's time stamps, from the first one on",
		  "sender" },
		{ 0, NULL, NULL },
	};
	const GParamFlags flags =
		G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

	class->set_property = property_set;
	class->get_property = property_get;
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
