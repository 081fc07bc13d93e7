/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration: options given one by one, each parsed into its place in struct settings. */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/config_files.h"

static size_t place_of(const struct option_row *row)
{
	return (size_t)(row - option_at(0));
}

struct gdrcap_config *gdrcap_config_new(void)
{
	struct gdrcap_config *config = calloc(1, sizeof(*config));
	const struct option_row *row;
	size_t i;

	for (i = 0; config && (row = option_at(i)); i++)
		option_set_default(row, &config->settings);
	return config;
}

static void config_clear(struct gdrcap_config *config)
{
	for (size_t i = 0; i < GDRCAP_OPTIONS_MAX; i++)
		free(config->text[i]);
	input_list_free(&config->read);
}

void gdrcap_config_free(struct gdrcap_config *config)
{
	if (config)
		config_clear(config);
	free(config);
}

/* Of the first `count` values of an option. */
static size_t texts_bytes(const char *text, unsigned int count)
{
	const char *at = text;

	while (count--)
		at += strlen(at) + 1;
	return (size_t)(at - text);
}

struct gdrcap_config *config_copy(const struct gdrcap_config *config)
{
	struct gdrcap_config *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *config;
	memset(copy->text, 0, sizeof(copy->text));
	copy->read = (struct input_list){ 0 };
	if (input_list_add_all(&copy->read, &config->read)) {
		gdrcap_config_free(copy);
		return NULL;
	}
	for (size_t i = 0; i < GDRCAP_OPTIONS_MAX; i++) {
		const size_t bytes = texts_bytes(config->text[i], config->given[i]);

		if (!bytes)
			continue;
		copy->text[i] = malloc(bytes);
		if (!copy->text[i]) {
			gdrcap_config_free(copy);
			return NULL;
		}
		memcpy(copy->text[i], config->text[i], bytes);
	}
	return copy;
}

void config_replace(struct gdrcap_config *to, struct gdrcap_config *from)
{
	config_clear(to);
	*to = *from;
	free(from);
}

char *config_texts(const struct gdrcap_config *config, const struct option_row *row,
		   unsigned int before, const char *more, unsigned int count)
{
	const char *kept = config->text[place_of(row)];
	const size_t kept_bytes = texts_bytes(kept, before), bytes = texts_bytes(more, count);
	char *texts = malloc(kept_bytes + bytes);

	if (!texts)
		return NULL;
	if (kept_bytes)
		memcpy(texts, kept, kept_bytes);
	memcpy(texts + kept_bytes, more, bytes);
	return texts;
}

void config_keep(struct gdrcap_config *config, const struct option_row *row, char *texts,
		 unsigned int count)
{
	const size_t index = place_of(row);

	free(config->text[index]);
	config->text[index] = texts;
	config->given[index] = (uint8_t)count;
}

int config_give(struct gdrcap_config *config, const struct option_row *row, const char *name,
		const char *value, bool add, struct gdrcap_error *error)
{
	const unsigned int before = add ? config->given[place_of(row)] : 0;
	uint32_t flag;
	char *texts;
	int ret;

	/* One spelling for gdrcap_config_get(). */
	if (row->type == OPTION_BOOL && parse_bool(value, &flag) == 0)
		value = flag ? "true" : "false";
	if (row->empty && !*value) {
		config_keep(config, row, NULL, 0);
		option_set_default(row, &config->settings);
		return 0;
	}
	if (row->type == OPTION_IMAGES)
		return config_give_images(config, row, name, value, before, error);
	texts = config_texts(config, row, before, value, 1);
	if (!texts)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	ret = option_set(row, name, &config->settings, value, before, error);
	if (ret) {
		free(texts);
		return ret;
	}
	config_keep(config, row, texts, before + 1);
	return 0;
}

static int config_key(struct gdrcap_config *config, const char *key, const char *value, bool add,
		      struct gdrcap_error *error)
{
	const struct option_row *row;
	char quoted[TEXT_QUOTE_BYTES];

	if (!config || !key || (add && !value))
		return error_set(error, -EINVAL, "no %s is given",
				 !config ? "configuration"
				 : !key	 ? "option"
					 : "value");
	row = option_find(key);
	if (!row) {
		struct nearest nearest = { .name = key };

		option_consider(&nearest, "", false);
		option_consider(&nearest, "", true);
		return error_set(error, -EINVAL, "%s: unknown option%s",
				 text_quote(quoted, sizeof(quoted), key),
				 nearest_hint(&nearest, ""));
	}
	if (add && !row->named.is_list)
		return error_set(error, -EINVAL, "%s: takes one value: gdrcap_config_set()", key);
	if (value)
		return config_give(config, row, key, value, add, error);
	config_keep(config, row, NULL, 0);
	option_set_default(row, &config->settings);
	return 0;
}

int gdrcap_config_set(struct gdrcap_config *config, const char *key, const char *value,
		      struct gdrcap_error *error)
{
	return error_of_config(error, config_key(config, key, value, false, error));
}

int gdrcap_config_add(struct gdrcap_config *config, const char *key, const char *value,
		      struct gdrcap_error *error)
{
	return error_of_config(error, config_key(config, key, value, true, error));
}

const char *gdrcap_config_get(const struct gdrcap_config *config, const char *key, uint32_t index)
{
	const struct option_row *row = config && key ? option_find(key) : NULL;
	size_t i;

	if (!row)
		return NULL;
	i = place_of(row);
	if (!config->given[i])
		return index == 0 ? row->initial : NULL;
	return index < config->given[i] ? config->text[i] + texts_bytes(config->text[i], index)
					: NULL;
}

bool config_says_no_frames(const struct gdrcap_config *config)
{
	static const char *const options[] = { "pattern.name", "frame.format", "expect", "image" };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (config->given[place_of(option_find(options[i]))])
			return false;
	return true;
}

void gdrcap_config_set_log(struct gdrcap_config *config,
			   void (*line)(void *context, enum gdrcap_log_level level,
					const char *line),
			   void *context)
{
	if (!config)
		return;
	config->log = line;
	config->log_context = context;
}

void gdrcap_config_set_memory(struct gdrcap_config *config, void *addr, uint64_t bytes)
{
	if (!config)
		return;
	config->settings.memory_addr = addr;
	config->settings.memory_bytes = bytes;
}

int gdrcap_config_set_image_memory(struct gdrcap_config *config, uint32_t index, void *addr,
				   uint64_t bytes, uint64_t stride)
{
	if (!config || index >= SETTINGS_IMAGES_MAX)
		return -EINVAL;
	config->settings.image_buffers[index] = (struct image_buffers){ addr, bytes, stride };
	return 0;
}

int config_settle(const struct gdrcap_config *config, struct settings *settings,
		  struct gdrcap_error *error)
{
	int ret;

	if (!config)
		return error_of_config(error,
				       error_set(error, -EINVAL, "no configuration is given"));
	*settings = config->settings;
	ret = settings_settle(settings, error);
	if (!ret)
		ret = config_check_outputs(config, error);
	return error_of_config(error, ret);
}

int gdrcap_config_check(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	struct settings settings;

	return config_settle(config, &settings, error);
}
