/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of images: from YAML, from a preset, and back to YAML. */
#ifndef GDRCAP_IMAGE_LOAD_H
#define GDRCAP_IMAGE_LOAD_H

#include "config/settings.h"
#include "config/yaml_reader.h"

/* A map of `reader`, which has just begun, to the map's end. Error texts say "NAME:LINE: PREFIXkey: what".
 * 0, -EINVAL or -ENOMEM, as below. */
int image_load_map(struct yaml_reader *reader, const char *prefix, struct image_settings *image);
/* A map as YAML, or a preset such as "gvsp,bytes=307200,piece=1364". `name` is what error texts
 * begin with. -ENOENT: neither, maybe a file's name. */
int image_load_text(const char *text, const char *name, struct image_settings *image,
		    struct gdrcap_error *error);
/* "gvsp, rtp-raw, spead" */
const char *image_presets(void);

/* The layout has these rules for its own. */
void image_match(struct image_settings *image, const struct match_list *match);
/* Can these characters be an image's name? */
bool image_name_is(const char *text, size_t length);

/*
 * The layout as YAML, each key in a line of its own, such that image_load_text() gives the same again.
 * In memory that the caller frees; NULL: there is none.
 */
char *image_explain(const struct image_settings *image);

#endif
