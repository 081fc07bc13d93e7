/* SPDX-License-Identifier: BSD-3-Clause */
/* The option `image`, given to a fresh configuration: one case after the other. */
#ifndef GDRCAP_TEST_IMAGE_OPTION_H
#define GDRCAP_TEST_IMAGE_OPTION_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

static struct gdrcap_error error;
static struct gdrcap_config *config;

static inline void fresh(void)
{
	memset(&error, 0, sizeof(error));
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	assert_non_null(config);
}

static inline int set(const char *key, const char *value)
{
	return gdrcap_config_set(config, key, value, &error);
}

static inline int image(const char *text)
{
	fresh();
	return set("image", text);
}

static inline int yaml(const char *text)
{
	fresh();
	return gdrcap_config_parse(config, "f.yaml", text, strlen(text), &error);
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static inline const struct image_settings *loaded(const char *text)
{
	if (image(text))
		fail_msg("%s: %s", text, error.text);
	assert_int_equal(config->settings.images, 1);
	return &config->settings.image[0];
}

static inline void assert_refused(const char *text, const char *start, const char *part)
{
	if (!image(text))
		fail_msg("accepted: %s", text);
	assert_int_equal(error.code, -EINVAL);
	if (strncmp(error.text, start, strlen(start)))
		fail_msg("'%s' does not begin with '%s'", error.text, start);
	assert_has(error.text, part);
	assert_int_equal(config->settings.images, 0);
	assert_null(gdrcap_config_get(config, "image", 0));
}

#endif
