/* SPDX-License-Identifier: BSD-3-Clause */
/* The option `image`: a value is a preset, YAML, or a file of one or several layouts. What is kept of each
 * is what it came to, as YAML. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "config/image_load.h"

int config_give_image(struct gdrcap_config *config, const struct option_row *row,
		      const struct image_settings *image, unsigned int before,
		      struct gdrcap_error *error)
{
	const char *name = row->named.key;
	char *one, *texts;

	if (before == row->most)
		return error_set(error, -EINVAL, "%s: more than %u are given; allowed: up to %u",
				 name, row->most, row->most);
	one = image_explain(image);
	texts = one ? config_texts(config, row, before, one, 1) : NULL;
	free(one);
	if (!texts)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	option_put(row, &config->settings, image, before);
	config_keep(config, row, texts, before + 1);
	return 0;
}

/* A file that is about images has layouts, and rules that hold for those without any of their own. */
static const char *other_option(const struct gdrcap_config *file, const struct option_row *row)
{
	const struct option_row *other;

	for (size_t i = 0; (other = option_at(i)); i++)
		if (file->given[i] && other != row && strcmp(other->named.key, "match") != 0)
			return other->named.key;
	return NULL;
}

/* As the file is called, without its folder and ending; nothing where that is no name. */
static void name_after(struct image_settings *image, const char *path)
{
	const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
	const size_t length = strcspn(stem, ".");

	if (image_name_is(stem, length))
		snprintf(image->name, sizeof(image->name), "%.*s", (int)length, stem);
}

static int take_file(struct gdrcap_config *config, const struct option_row *row,
		     struct gdrcap_config *file, const char *path, unsigned int before,
		     struct gdrcap_error *error)
{
	const struct match_list *match = &file->settings.match;
	int ret = 0;

	for (uint32_t i = 0; i < file->settings.images && !ret; i++) {
		struct image_settings *image = &file->settings.image[i];

		if (!image->match.count)
			image_match(image, match);
		if (!image->name[0] && file->settings.images == 1)
			name_after(image, path);
		ret = config_give_image(config, row, image, before + i, error);
	}
	return ret;
}

static int load_file(struct gdrcap_config *config, const struct option_row *row, const char *name,
		     const char *path, unsigned int before, struct gdrcap_error *error)
{
	struct gdrcap_config *file = gdrcap_config_new();
	char quoted[TEXT_QUOTE_BYTES];
	struct gdrcap_error why;
	const char *other;
	int ret;

	text_quote(quoted, sizeof(quoted), path);
	if (!file)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	file->is_image_file = true;
	ret = gdrcap_config_load(file, path, &why);
	other = ret ? NULL : other_option(file, row);
	if (ret == -ENOENT)
		error_set(error, -EINVAL,
			  "%s: '%s' is no preset (%s), no YAML map, and there is no such file",
			  name, quoted, image_presets());
	else if (ret)
		error_set(error, ret == -ENOMEM ? ret : -EINVAL, "%s: %s", name, why.text);
	else if (other)
		ret = error_set(error, -EINVAL,
				"%s: '%s' gives %s too; a file of images has image and match only "
				"(others: --config)",
				name, quoted, other);
	else if (!file->settings.images)
		ret = error_set(error, -EINVAL, "%s: '%s' has no image:", name, quoted);
	else
		ret = take_file(config, row, file, path, before, error);
	if (!ret && input_list_add_all(&config->read, &file->read))
		ret = error_set(error, -ENOMEM, "%s: out of memory", name);
	gdrcap_config_free(file);
	return ret == -ENOMEM || !ret ? ret : -EINVAL;
}

int config_give_images(struct gdrcap_config *config, const struct option_row *row, const char *name,
		       const char *value, unsigned int before, struct gdrcap_error *error)
{
	struct image_settings *image = malloc(sizeof(*image));
	struct gdrcap_config *copy = config_copy(config);
	char quoted[TEXT_QUOTE_BYTES];
	int ret = image && copy ? image_load_text(value, name, image, error)
				: error_set(error, -ENOMEM, "%s: out of memory", name);

	if (!ret)
		ret = config_give_image(copy, row, image, before, error);
	else if (ret == -ENOENT && config->is_image_file)
		ret = error_set(error, -EINVAL, "%s: '%s' is neither a preset (%s) nor a map", name,
				text_quote(quoted, sizeof(quoted), value), image_presets());
	else if (ret == -ENOENT)
		ret = load_file(copy, row, name, value, before, error);
	free(image);
	if (ret)
		gdrcap_config_free(copy);
	else
		config_replace(config, copy);
	return ret;
}
