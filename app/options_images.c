/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of images that only a program has: what a layout comes to, and how images are written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_file.h"
#include "options_inside.h"

int options_images_explain(struct app_options *options)
{
	const char *text, *next;
	uint32_t i;

	for (i = 0; (text = gdrcap_config_get(options->config, "image", i)); i++) {
		if (!i)
			printf("image:\n");
		for (next = "  - "; *text; text += strcspn(text, "\n") + 1, next = "    ")
			printf("%s%.*s\n", next, (int)strcspn(text, "\n"), text);
	}
	return i ? 1
		 : options_refuse(options, "--explain-image: there is no image; give --image, or a "
					   "--config file with one");
}

/* How they are written. */
static int complete_format(struct app_options *options)
{
	const char *layout;
	char rest;

	if (!options->save_images && (options->image_format || options->image_size))
		return options_refuse(
			options, "--%s: is of saved images; give --save-images, or leave it out",
			options->image_format ? "image-format" : "image-size");
	options->save_format =
		options->image_format ? image_format_of(options->image_format) : IMAGE_RAW;
	if (options->save_format == -ENOTSUP)
		return options_refuse(options,
				      "--image-format: this program was built without libpng; "
				      "use pgm, ppm or raw");
	if (options->save_format < 0)
		return options_refuse(options,
				      "--image-format: '%s' is none; allowed: raw, pgm, ppm, png",
				      options->image_format);
	if ((options->save_format == IMAGE_RAW) != !options->image_size)
		return options_refuse(
			options, options->image_size ? "--image-size: raw images have none; give "
						       "--image-format, or leave it out"
						     : "--image-format: a picture has a size; give "
						       "--image-size WIDTHxHEIGHT");
	if (options->image_size &&
	    (sscanf(options->image_size, "%5ux%5u%c", &options->save_width, &options->save_height,
		    &rest) != 2 ||
	     options->save_width - 1 >= 65535 || options->save_height - 1 >= 65535))
		return options_refuse(
			options,
			"--image-size: '%s' is no size; allowed: WIDTHxHEIGHT, such as "
			"640x480, 1..65535 each",
			options->image_size);
	layout = gdrcap_config_get(options->config, "image", 0);
	options->save_bits = layout && options->image_size ? image_bits_of(layout) : 0;
	if (options->save_bits < 0)
		return options_refuse(options,
				      "--image-format: what the images are converted to (convert) "
				      "is no pixel of 16 bits; use raw");
	return 0;
}

int options_images_complete(struct app_options *options)
{
	const char *consumer = gdrcap_config_get(options->config, "consumer", 0);
	const char *every = gdrcap_config_get(options->config, "save_every", 0);
	char *end;

	if (!gdrcap_config_get(options->config, "image", 0))
		return options->save_images || options->image_format || options->image_size
			       ? options_refuse(options, "--save-images: there are no images; give "
							 "--image, or --save for frames")
			       : 0;
	if (!strcmp(consumer, "validate"))
		gdrcap_config_set(options->config, "consumer", "host", NULL);
	options->save_images_every = 1;
	if (options->save_images && every) {
		options->save_images_every = (uint32_t)strtoul(every, &end, 10);
		if (*end)
			return options_refuse(options,
					      "--save-every: of images a plain number, not "
					      "'%s'",
					      every);
		gdrcap_config_set(options->config, "save_every", NULL, NULL);
	}
	return complete_format(options);
}
