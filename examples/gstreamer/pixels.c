/* SPDX-License-Identifier: BSD-3-Clause */
/* What an image's bytes are in GStreamer's words. */
#include <string.h>

#include "pixels.h"

#define RAW "video/x-raw"
#define BAYER "video/x-bayer"

/* By the numbers of GenICam's Pixel Format Naming Convention, which a GigE Vision leader has (0: none), and
 * by RFC 4175's sampling and depth (NULL: none). Where two stand for the same, the first is taken. */
static const struct format {
	const gchar *media, *name;
	guint bits; /* of a pixel */
	guint32 number;
	const gchar *sampling;
	guint depth;
	const gchar *convert;
} formats[] = {
	{ RAW, "GRAY8", 8, 0x01080001, NULL, 0, "none" },
	{ RAW, "GRAY16_LE", 16, 0x01100007, NULL, 0, "none" },
	{ RAW, "GRAY16_BE", 16, 0, NULL, 0, "none" },
	{ BAYER, "grbg", 8, 0x01080008, NULL, 0, "none" },
	{ BAYER, "rggb", 8, 0x01080009, NULL, 0, "none" },
	{ BAYER, "gbrg", 8, 0x0108000a, NULL, 0, "none" },
	{ BAYER, "bggr", 8, 0x0108000b, NULL, 0, "none" },
	{ RAW, "RGB", 24, 0x02180014, "RGB", 8, "none" },
	{ RAW, "BGR", 24, 0x02180015, "BGR", 8, "none" },
	{ RAW, "RGBA", 32, 0x02200016, "RGBA", 8, "none" },
	{ RAW, "BGRA", 32, 0x02200017, "BGRA", 8, "none" },
	{ RAW, "RGBA64_BE", 64, 0, "RGBA", 16, "none" },
	{ RAW, "RGBA64_LE", 64, 0, "RGBA", 16, "swap16" },
	{ RAW, "BGRA64_BE", 64, 0, "BGRA", 16, "none" },
	{ RAW, "BGRA64_LE", 64, 0, "BGRA", 16, "swap16" },
	{ RAW, "UYVY", 16, 0x0210001f, "YCbCr-4:2:2", 8, "none" },
	{ RAW, "YUY2", 16, 0x02100032, NULL, 0, "none" },
	{ RAW, "UYVP", 20, 0, "YCbCr-4:2:2", 10, "none" },
	{ RAW, "v216", 32, 0, "YCbCr-4:2:2", 16, "swap16" },
	{ RAW, "IYU1", 12, 0x020c001e, "YCbCr-4:1:1", 8, "none" },
	{ RAW, "IYU2", 24, 0x02180020, "YCbCr-4:4:4", 8, "none" },
};

/* ---- the layout ---- */

/* The value of a line "key: value" that is no part of a map. */
static void word_read(gchar *to, gsize size, gchar *const *lines, const gchar *key)
{
	const gsize length = strlen(key);

	to[0] = '\0';
	for (; *lines; lines++)
		if (g_str_has_prefix(*lines, key) && g_str_has_prefix(*lines + length, ": "))
			g_strlcpy(to, *lines + length + 2, size);
}

static guint64 number_read(gchar *const *lines, const gchar *key)
{
	gchar word[32];

	word_read(word, sizeof(word), lines, key);
	return g_ascii_strtoull(word, NULL, 0);
}

void layout_read(struct layout *layout, const gchar *text)
{
	gchar **lines = g_strsplit(text, "\n", -1);

	word_read(layout->parser, sizeof(layout->parser), lines, "parser");
	word_read(layout->sampling, sizeof(layout->sampling), lines, "sampling");
	word_read(layout->convert, sizeof(layout->convert), lines, "convert");
	layout->width = number_read(lines, "width");
	layout->height = number_read(lines, "height");
	layout->depth = number_read(lines, "depth");
	layout->pitch = number_read(lines, "pitch");
	g_strfreev(lines);
}

static gboolean is_gvsp(const struct layout *layout)
{
	return strcmp(layout->parser, "gvsp") == 0;
}

gboolean pixels_lack_leader(const struct layout *layout, const struct gdrcap_image *image)
{
	return is_gvsp(layout) && !(image->fields[0] && image->fields[1] && image->fields[2]);
}

gboolean pixels_differ(const struct layout *layout, const guint64 *fields,
		       const struct gdrcap_image *image)
{
	return is_gvsp(layout) && !pixels_lack_leader(layout, image) &&
	       (fields[0] != image->fields[0] || fields[1] != image->fields[1] ||
		fields[2] != image->fields[2]);
}

/* ---- caps ---- */

static const struct format *format_of_layout(const struct layout *layout,
					     const struct gdrcap_image *image)
{
	for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
		if (strcmp(formats[i].convert, layout->convert) != 0)
			continue;
		if (is_gvsp(layout) ? formats[i].number && formats[i].number == image->fields[2]
				    : formats[i].sampling &&
					      strcmp(formats[i].sampling, layout->sampling) == 0 &&
					      formats[i].depth == layout->depth)
			return &formats[i];
	}
	return NULL;
}

static const struct format *format_of_caps(const GstStructure *structure)
{
	const gchar *name = gst_structure_get_string(structure, "format");

	for (guint i = 0; name && i < G_N_ELEMENTS(formats); i++)
		if (strcmp(formats[i].name, name) == 0 &&
		    gst_structure_has_name(structure, formats[i].media))
			return &formats[i];
	return NULL;
}

/* What is known without the user. */
static GstCaps *caps_of_layout(const struct layout *layout, const struct gdrcap_image *image)
{
	const struct format *format = format_of_layout(layout, image);
	const guint64 width = is_gvsp(layout) ? image->fields[0] : layout->width;
	const guint64 height = is_gvsp(layout) ? image->fields[1] : layout->height;
	GstCaps *caps = format ? gst_caps_new_simple(format->media, "format", G_TYPE_STRING,
						     format->name, NULL)
			       : gst_caps_from_string(RAW "; " BAYER);

	if (width && height && width <= G_MAXINT32 && height <= G_MAXINT32)
		gst_caps_set_simple(caps, "width", G_TYPE_INT, (gint)width, "height", G_TYPE_INT,
				    (gint)height, NULL);
	return caps;
}

/* Images come when they come. */
static GstCaps *caps_settle(const struct layout *layout, const struct gdrcap_image *image,
			    const GstCaps *given)
{
	GstCaps *caps = caps_of_layout(layout, image);

	if (given) {
		GstCaps *both = gst_caps_intersect((GstCaps *)given, caps);

		gst_caps_unref(caps);
		caps = both;
	}
	if (gst_caps_is_empty(caps))
		return caps;
	caps = gst_caps_truncate(caps);
	if (!gst_structure_has_field(gst_caps_get_structure(caps, 0), "framerate"))
		gst_caps_set_simple(caps, "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
	return caps;
}

static gchar *why_not_known(const struct layout *layout, const struct gdrcap_image *image)
{
	static const gchar remedy[] = "give caps, for instance "
				      "caps=video/x-raw,format=GRAY8,width=640,height=480";

	if (pixels_lack_leader(layout, image))
		return g_strdup_printf("the image's leader is lost, and nobody knows its pixels: "
				       "%s",
				       remedy);
	if (is_gvsp(layout))
		return g_strdup_printf(
			"the camera's pixel format 0x%08" G_GINT64_MODIFIER
			"x (convert: %s) has no name in GStreamer: have the camera send another, "
			"or %s",
			(guint64)image->fields[2], layout->convert, remedy);
	if (layout->sampling[0])
		return g_strdup_printf("sampling %s of %" G_GUINT64_FORMAT
				       " bits (convert: %s) has no name in GStreamer: %s",
				       layout->sampling, layout->depth, layout->convert, remedy);
	return g_strdup_printf("the layout does not say what its pixels are: %s", remedy);
}

/* ---- where the bytes are ---- */

/* `bytes` of a row as sent, in the image. */
static gsize converted(const struct layout *layout, gsize bytes)
{
	if (strcmp(layout->convert, "unpack10-be") == 0 || strcmp(layout->convert, "mono10p") == 0)
		return bytes / 5 * 8;
	if (strcmp(layout->convert, "unpack12-be") == 0 || strcmp(layout->convert, "mono12p") == 0)
		return bytes / 3 * 4;
	return bytes; /* swapped; floats are no format of GStreamer's */
}

static gboolean shape_raw(struct pixels *pixels, gchar **why)
{
	if (!gst_video_info_from_caps(&pixels->info, pixels->caps)) {
		*why = g_strdup_printf("caps %" GST_PTR_FORMAT " are no picture's",
				       (void *)pixels->caps);
		return FALSE;
	}
	pixels->usual = (gsize)GST_VIDEO_INFO_PLANE_STRIDE(&pixels->info, 0);
	/* Those that the table does not have lie as GStreamer lays them out. */
	pixels->row = pixels->usual;
	pixels->bytes = GST_VIDEO_INFO_SIZE(&pixels->info);
	return TRUE;
}

static gboolean shape(struct pixels *pixels, const struct layout *layout,
		      const struct gdrcap_image *image, gchar **why)
{
	const GstStructure *structure = gst_caps_get_structure(pixels->caps, 0);
	const struct format *format = format_of_caps(structure);
	gint width = 0, height = 0;

	pixels->is_raw = gst_structure_has_name(structure, RAW);
	if (!gst_structure_get_int(structure, "width", &width) ||
	    !gst_structure_get_int(structure, "height", &height) || width <= 0 || height <= 0) {
		*why = g_strdup("width and height are missing in caps");
		return FALSE;
	}
	if (pixels->is_raw && !shape_raw(pixels, why))
		return FALSE;
	if (!pixels->is_raw)
		pixels->usual = GST_ROUND_UP_4((gsize)width);
	pixels->rows = (guint)height;
	pixels->stride = pixels->usual;
	if (!format)
		return TRUE;
	pixels->row = (gsize)width * format->bits / 8;
	pixels->stride = layout->pitch ? converted(layout, layout->pitch) : pixels->row;
	pixels->bytes = pixels->stride * pixels->rows;
	if (pixels->bytes > image->bytes) /* nothing follows the last row */
		pixels->bytes -= pixels->stride - pixels->row;
	if (pixels->stride < pixels->row) {
		*why = g_strdup_printf("a row of caps has %" G_GSIZE_FORMAT
				       " bytes, and rows are %" G_GSIZE_FORMAT
				       " apart: correct the width or format",
				       pixels->row, pixels->stride);
		return FALSE;
	}
	return TRUE;
}

/* A sender that says how large an image is may send less than the layout has room for, and a camera's may
 * have more behind its last row. */
static gboolean fits(const struct pixels *pixels, const struct layout *layout,
		     const struct gdrcap_image *image, gchar **why)
{
	const gsize most = MAX(pixels->bytes, pixels->stride * pixels->rows);

	if (pixels->bytes <= image->bytes &&
	    (is_gvsp(layout) || image->end != GDRCAP_IMAGE_COMPLETE || image->bytes <= most))
		return TRUE;
	*why = g_strdup_printf("a picture of caps has %" G_GSIZE_FORMAT
			       " bytes, and an image %" G_GUINT64_FORMAT
			       ": correct width, height or format",
			       pixels->bytes, (guint64)image->bytes);
	return FALSE;
}

gboolean pixels_settle(struct pixels *pixels, const struct layout *layout,
		       const struct gdrcap_image *image, const GstCaps *given, gchar **why)
{
	GstCaps *caps = caps_settle(layout, image, given);
	struct pixels settled = { .caps = caps };
	gboolean good = FALSE;

	if (gst_caps_is_empty(caps))
		*why = g_strdup_printf("caps %" GST_PTR_FORMAT " are not what the layout says",
				       (void *)given);
	else if (!gst_structure_get_string(gst_caps_get_structure(caps, 0), "format"))
		*why = why_not_known(layout, image);
	else
		good = shape(&settled, layout, image, why) && fits(&settled, layout, image, why);
	if (!good) {
		gst_caps_unref(caps);
		return FALSE;
	}
	for (guint i = 0; i < G_N_ELEMENTS(settled.fields); i++)
		settled.fields[i] = image->fields[i];
	pixels_clear(pixels);
	*pixels = settled;
	return TRUE;
}

void pixels_clear(struct pixels *pixels)
{
	gst_clear_caps(&pixels->caps);
}
