/* SPDX-License-Identifier: BSD-3-Clause */
/* Where images are written: one file with the bytes of all and its index, or a picture's file each. */
#ifndef GDRCAP_APP_IMAGE_FILE_H
#define GDRCAP_APP_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"
#include "image_index.h"

enum image_format { IMAGE_RAW, IMAGE_PGM, IMAGE_PPM, IMAGE_PNG };

struct image_file {
	const char
		*path; /* "out.png": pictures go to out-0.png, out-1.png, ... by gdrcap_image.seq */
	enum image_format format;
	uint32_t width, height;	  /* pixels of a picture */
	int bits;		  /* image_bits_of() */
	int fd;			  /* of raw images' file; -1: there is none */
	struct image_index index; /* of it; file.path NULL: none, it is a pipe or a device */
	char *index_path;
	char why[256]; /* why image_file_write() failed */
};

/* "raw", ...: its format, or -EINVAL. PNG is not in every build: -ENOTSUP. */
int image_format_of(const char *name);
/* By a layout, as it is kept: 0: bytes and words as they were sent; 10, 12 or 16: words that were converted, less
 * significant byte first, with so many bits; -EINVAL: converted to what is no pixel's. */
int image_bits_of(const char *layout);
/* With all set but `fd`. 0, or a negative errno with its text. */
int image_file_open(struct image_file *file, struct gdrcap_error *error);
/* Appends it, or writes picture `image.seq`, for which `data` may be changed. Pixels lie row by row without padding,
 * values of 16 bits, unless they are words by `bits`, with their more significant byte first. 0, or a
 * negative errno and the reason in file->why. */
int image_file_write(struct image_file *file, uint8_t *data, const struct image_about *about);
/* 0, or a negative errno: not all is written. */
int image_file_close(struct image_file *file);

#endif
