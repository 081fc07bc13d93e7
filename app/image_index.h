/* SPDX-License-Identifier: BSD-3-Clause */
/* Where each image of a file of raw images lies, and what of it is missing: a JSON line an image, in FILE.jsonl. */
#ifndef GDRCAP_APP_IMAGE_INDEX_H
#define GDRCAP_APP_IMAGE_INDEX_H

#include <stdint.h>

#include "gdrcap.h"
#include "json_file.h"

/* What is kept of an image that is to be written. */
struct image_about {
	struct gdrcap_image image; /* its pointers are no longer good */
	struct gdrcap_range *missing;
	int ranges, room; /* in `missing`: that count, and that there is room for */
};

struct image_index {
	struct json_file file;
	uint64_t at; /* of the next image in the file of images */
};

/* The index of `images`; to be freed. NULL: no memory. */
char *image_index_path(const char *images);
/* While the image is the caller's. 0 or -ENOMEM. `about` is zeros at first; its `missing` is to be freed. */
int image_about_fill(struct image_about *about, const struct gdrcap_image *image);
/* The image is in the file as a whole. 0, or a negative errno: its line is not there. */
int image_index_add(struct image_index *index, const struct image_about *about);

#endif
