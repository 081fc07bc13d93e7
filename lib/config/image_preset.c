/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of images by name, with `key=value` after it; or as YAML in one text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/image_load.h"
#include "config/image_settle.h"
#include "config/option_table.h"

/* What a user could have written. */
static const struct preset {
	const char *name, *yaml;
} presets[] = {
	{ "gvsp", "parser: gvsp\n"
		  "timestamp: {at: 12, bytes: 8}\n"
		  "fields:\n"
		  "  - {at: 24, bytes: 4}\n"	/* width */
		  "  - {at: 28, bytes: 4}\n"	/* height */
		  "  - {at: 20, bytes: 4}\n" }, /* pixel format */
	{ "rtp-raw", "parser: rtp-raw\n"
		     "number: timestamp\n"
		     "end: marker\n"
		     "timestamp: {at: 4, bytes: 4}\n" },
	{ "spead", "parser: spead\n"
		   "number: {item: 1}\n" /* the heap's */
		   "place: {item: 3}\n"
		   "size: sender\n" },
};
#define PRESETS (sizeof(presets) / sizeof(presets[0]))

const char *image_presets(void)
{
	return "gvsp, rtp-raw, spead";
}

/* One map, and nothing else. */
static int load_yaml(struct image_draft *draft, const char *name, const char *text,
		     struct gdrcap_error *error)
{
	struct yaml_reader reader;
	int ret = yaml_reader_open(&reader, name, text, strlen(text), error);

	if (ret)
		return ret;
	ret = yaml_reader_begin(&reader);
	if (!ret && reader.event.type != YAML_MAPPING_START_EVENT)
		ret = yaml_reader_refuse(&reader, yaml_reader_line(&reader),
					 "is not a map; an image is {number: {at: ...}, ...}");
	if (!ret)
		ret = image_draft_map(draft, &reader);
	if (!ret)
		ret = yaml_reader_end(&reader);
	yaml_reader_close(&reader);
	return ret;
}

/* ",key=value,..." */
static int load_changes(struct image_draft *draft, const char *text)
{
	char copy[OPTION_TEXT_MAX + 1], *word = copy, *next, *value;
	char quoted[TEXT_QUOTE_BYTES];

	for (strcpy(copy, text); word; word = next) {
		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		value = strchr(word, '=');
		if (!value || value == word || !value[1])
			return image_draft_refuse(
				draft, 1, "",
				"'%s' is not key=value; write gvsp,bytes=307200,piece=1364",
				text_quote(quoted, sizeof(quoted), word));
		*value++ = '\0';
		if (image_draft_set(draft, 1, word, value))
			return -EINVAL;
	}
	return 0;
}

static int load_preset(struct image_draft *draft, const struct preset *preset, const char *changes,
		       const char *name, struct gdrcap_error *error)
{
	int ret;

	image_draft_init(draft, name, "", false, error);
	ret = load_yaml(draft, preset->name, preset->yaml, error);
	strcpy(draft->name, preset->name);
	image_draft_again(draft);
	return ret || !changes ? ret : load_changes(draft, changes);
}

int image_load_text(const char *text, const char *name, struct image_settings *image,
		    struct gdrcap_error *error)
{
	const size_t length = strcspn(text, ",");
	struct image_draft *draft;
	size_t i = 0;
	int ret;

	while (i < PRESETS &&
	       (strncmp(presets[i].name, text, length) != 0 || presets[i].name[length]))
		i++;
	if (i == PRESETS && *text != '{' && !strchr(text, '\n'))
		return -ENOENT;
	if (i < PRESETS && strlen(text) > OPTION_TEXT_MAX)
		return error_set(error, -EINVAL, "%s: is longer than %u characters", name,
				 OPTION_TEXT_MAX);
	draft = malloc(sizeof(*draft));
	if (!draft)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	if (i < PRESETS) {
		ret = load_preset(draft, &presets[i], text[length] ? text + length + 1 : NULL, name,
				  error);
	} else {
		image_draft_init(draft, name, "", true, error);
		ret = load_yaml(draft, name, text, error);
	}
	if (!ret)
		ret = image_settle(draft, image);
	free(draft);
	return ret;
}
