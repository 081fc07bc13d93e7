/* SPDX-License-Identifier: BSD-3-Clause */
/* Between options.c and options_images.c. */
#ifndef GDRCAP_APP_OPTIONS_IMAGES_H
#define GDRCAP_APP_OPTIONS_IMAGES_H

#include "options.h"

/* Says why, and keeps it. Returns -EINVAL. */
int options_refuse(struct app_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints a file for --config or --image: what is kept of each layout, as one of a list. 1 or -EINVAL. */
int options_images_explain(struct app_options *options);
/* Who takes images is this program, and which of them go to a file it knows. 0 or -EINVAL. */
int options_images_complete(struct app_options *options);

#endif
