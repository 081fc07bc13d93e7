/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout of images from a YAML map. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/image_load.h"
#include "config/image_settle.h"

#define PATH_BYTES 64

struct walk {
	struct yaml_reader *yaml;
	struct image_draft *draft;
};

static int walk_key(struct walk *walk, const char *section, char path[PATH_BYTES],
		    unsigned int *line)
{
	const size_t length = strlen(section);

	*line = yaml_reader_line(walk->yaml);
	strcpy(path, section);
	return yaml_reader_key(walk->yaml, path + length, PATH_BYTES - length);
}

/* The current event, which must be a value. */
static const char *walk_scalar(struct walk *walk, const char *path)
{
	const unsigned int line = yaml_reader_line(walk->yaml);
	const char *problem;

	if (walk->yaml->event.type != YAML_SCALAR_EVENT) {
		image_draft_refuse(walk->draft, line, path, "is a %s, but must be one value",
				   walk->yaml->event.type == YAML_MAPPING_START_EVENT ? "map"
										      : "list");
		return NULL;
	}
	problem = yaml_reader_no_value(walk->yaml);
	if (problem)
		image_draft_refuse(walk->draft, line, path, "%s", problem);
	return problem ? NULL : yaml_reader_text(walk->yaml);
}

/* A field's map, to its end. */
static int walk_field(struct walk *walk, const char *path, enum image_key key, uint32_t i)
{
	char name[PATH_BYTES], whole[2 * PATH_BYTES];
	unsigned int line = yaml_reader_line(walk->yaml);
	const char *text;
	int ret;

	if (i >= IMAGE_TERMS_MAX)
		return image_draft_refuse(walk->draft, line, path, "more than %u are given",
					  IMAGE_TERMS_MAX);
	if (walk->yaml->event.type != YAML_MAPPING_START_EVENT)
		return image_draft_refuse(walk->draft, line, path,
					  "is not a map such as {at: 0, bytes: 4}");
	walk->draft->field[key][i].line = line;
	for (;;) {
		ret = yaml_reader_next(walk->yaml);
		if (ret || walk->yaml->event.type == YAML_MAPPING_END_EVENT)
			break;
		ret = walk_key(walk, "", name, &line);
		if (!ret)
			ret = yaml_reader_next(walk->yaml);
		if (ret)
			return ret;
		snprintf(whole, sizeof(whole), "%s.%s", path, name);
		text = walk_scalar(walk, whole);
		if (!text || image_draft_set_field(walk->draft, line, path, key, i, name, text))
			return -EINVAL;
	}
	if (!ret && !walk->draft->field[key][i].given)
		return image_draft_refuse(walk->draft, line, path, "is an empty map");
	return ret;
}

/* A list of fields or of rules, to its end. */
static int walk_list(struct walk *walk, const char *path, enum image_key key, enum image_node node)
{
	const unsigned int line = yaml_reader_line(walk->yaml);
	uint32_t i = 0;
	const char *text;
	int ret;

	for (;; i++) {
		ret = yaml_reader_next(walk->yaml);
		if (ret || walk->yaml->event.type == YAML_SEQUENCE_END_EVENT)
			break;
		if (node == IMAGE_NODE_FIELDS) {
			ret = walk_field(walk, path, key, i);
		} else {
			text = walk_scalar(walk, path);
			ret = text ? image_draft_add_rule(walk->draft, yaml_reader_line(walk->yaml),
							  text)
				   : -EINVAL;
		}
		if (ret)
			return ret;
	}
	return ret || i ? ret : image_draft_refuse(walk->draft, line, path, "is an empty list");
}

static int walk_map(struct walk *walk, const char *section);

static int walk_value(struct walk *walk, const char *path, unsigned int line)
{
	const yaml_event_type_t type = walk->yaml->event.type;
	char section[PATH_BYTES + 1];
	enum image_key key = IMAGE_KEYS;
	enum image_node node;
	const char *text;

	if (type == YAML_SCALAR_EVENT) {
		text = walk_scalar(walk, path);
		return text ? image_draft_set(walk->draft, line, path, text) : -EINVAL;
	}
	node = image_draft_node(path, true, &key);
	if (node == IMAGE_NODE_SECTION && type == YAML_MAPPING_START_EVENT) {
		snprintf(section, sizeof(section), "%s.", path);
		return walk_map(walk, section);
	}
	if (node == IMAGE_NODE_NONE && image_draft_node(path, false, &key) == IMAGE_NODE_NONE)
		return image_draft_unknown(walk->draft, line, path);
	if (node == IMAGE_NODE_NONE || node == IMAGE_NODE_SECTION ||
	    (node == IMAGE_NODE_FIELD && type != YAML_MAPPING_START_EVENT) ||
	    (node == IMAGE_NODE_RULES && type != YAML_SEQUENCE_START_EVENT))
		return image_draft_refuse(walk->draft, line, path, "is a %s, but must be a %s",
					  type == YAML_MAPPING_START_EVENT ? "map" : "list",
					  node == IMAGE_NODE_NONE    ? "value"
					  : node == IMAGE_NODE_RULES ? "list of rules"
								     : "map");
	if (image_draft_claim(walk->draft, line, path, key))
		return -EINVAL;
	return type == YAML_MAPPING_START_EVENT ? walk_field(walk, path, key, 0)
						: walk_list(walk, path, key, node);
}

/* Keys under `section` ("" or "begin."), to the map's end. */
static int walk_map(struct walk *walk, const char *section)
{
	char path[PATH_BYTES];
	unsigned int line;
	int ret;

	for (;;) {
		ret = yaml_reader_next(walk->yaml);
		if (ret || walk->yaml->event.type == YAML_MAPPING_END_EVENT)
			return ret;
		ret = walk_key(walk, section, path, &line);
		if (!ret)
			ret = yaml_reader_next(walk->yaml);
		if (!ret)
			ret = walk_value(walk, path, line);
		if (ret)
			return ret;
	}
}

int image_draft_map(struct image_draft *draft, struct yaml_reader *reader)
{
	struct walk walk = { reader, draft };

	draft->begins = yaml_reader_line(reader);
	return walk_map(&walk, "");
}

int image_load_map(struct yaml_reader *reader, const char *prefix, struct image_settings *image)
{
	struct image_draft *draft = malloc(sizeof(*draft));
	int ret;

	if (!draft)
		return error_set(reader->error, -ENOMEM, "%s: out of memory", reader->name);
	image_draft_init(draft, reader->name, prefix, true, reader->error);
	ret = image_draft_map(draft, reader);
	if (!ret)
		ret = image_settle(draft, image);
	free(draft);
	return ret;
}
