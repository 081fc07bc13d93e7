/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML to options. The schema is two maps deep: a scalar or a list of ports by key, or a section of
 * them. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "config/image_load.h"
#include "config/option_table.h"
#include "config/yaml_reader.h"

#define KEY_BYTES 64

struct reader {
	struct yaml_reader yaml;
	struct gdrcap_config *config;
	unsigned int
		row_line[GDRCAP_OPTIONS_MAX]; /* where an option was given, from 1; 0: not yet */
	unsigned int
		section_line[GDRCAP_OPTIONS_MAX]; /* the same for a section, at its first option */
	unsigned int keys;			  /* read so far */
};

static int value_refuse(struct reader *reader, unsigned int line, const char *key, const char *what,
			const struct option_row *row)
{
	char allowed[OPTION_ALLOWED_BYTES], quoted[TEXT_QUOTE_BYTES];

	return error_set(reader->yaml.error, -EINVAL, "%s:%u: %s: %s; allowed: %s",
			 reader->yaml.name, line, text_quote(quoted, sizeof(quoted), key), what,
			 row ? option_allowed(row, allowed)
			     : "its keys, indented, each with a value");
}

/* The current scalar as the row's value. */
static int read_scalar(struct reader *reader, const struct option_row *row, bool add)
{
	const char *problem = yaml_reader_no_value(&reader->yaml);
	const unsigned int line = yaml_reader_line(&reader->yaml);
	struct gdrcap_error error;

	if (problem)
		return value_refuse(reader, line, row->named.key, problem, row);
	if (config_give(reader->config, row, row->named.key, yaml_reader_text(&reader->yaml), add,
			&error))
		return error_set(reader->yaml.error, error.code, "%s:%u: %s", reader->yaml.name,
				 line, error.text);
	return 0;
}

/* One of a list's values. */
static int read_entry(struct reader *reader, const struct option_row *row, bool add)
{
	struct image_settings image;
	int ret;

	if (reader->yaml.event.type == YAML_SCALAR_EVENT)
		return read_scalar(reader, row, add);
	if (row->type != OPTION_IMAGES || reader->yaml.event.type != YAML_MAPPING_START_EVENT)
		return value_refuse(reader, yaml_reader_line(&reader->yaml), row->named.key,
				    "is a list of something else than text", row);
	ret = image_load_map(&reader->yaml, "image.", &image);
	return ret ? ret
		   : config_give_image(reader->config, row, &image,
				       add ? reader->config->settings.images : 0,
				       reader->yaml.error);
}

static int read_list(struct reader *reader, const struct option_row *row)
{
	unsigned int line = yaml_reader_line(&reader->yaml);
	bool add = false;
	int ret;

	for (;; add = true) {
		ret = yaml_reader_next(&reader->yaml);
		if (ret)
			return ret;
		if (reader->yaml.event.type == YAML_SEQUENCE_END_EVENT)
			break;
		ret = read_entry(reader, row, add);
		if (ret)
			return ret;
	}
	return add ? 0 : value_refuse(reader, line, row->named.key, "is an empty list", row);
}

/* Notes in *first where `key` is given; a second time is an error. */
static int key_claim(struct reader *reader, const char *key, unsigned int *first, unsigned int line)
{
	if (*first)
		return error_set(reader->yaml.error, -EINVAL,
				 "%s:%u: %s: is given twice, first in line %u; leave one out",
				 reader->yaml.name, line, key, *first);
	*first = line;
	return 0;
}

static int row_claim(struct reader *reader, const struct option_row *row, unsigned int line)
{
	reader->keys++;
	return key_claim(reader, row->named.key, &reader->row_line[row - option_at(0)], line);
}

static int read_value(struct reader *reader, const struct option_row *row, unsigned int line)
{
	int ret;

	ret = row_claim(reader, row, line);
	if (ret)
		return ret;
	ret = yaml_reader_next(&reader->yaml);
	if (ret)
		return ret;
	if (reader->yaml.event.type == YAML_SCALAR_EVENT ||
	    (reader->yaml.event.type == YAML_MAPPING_START_EVENT && row->type == OPTION_IMAGES))
		return read_entry(reader, row, false);
	if (reader->yaml.event.type == YAML_SEQUENCE_START_EVENT && row->named.is_list)
		return read_list(reader, row);
	return value_refuse(reader, yaml_reader_line(&reader->yaml), row->named.key,
			    reader->yaml.event.type == YAML_MAPPING_START_EVENT
				    ? "is a map, but must be one value"
				    : "is a list, but must be one value",
			    row);
}

/* The current event as a key under `section` ("" or "frame."), into `path`. */
static int read_key(struct reader *reader, const char *section, char path[KEY_BYTES])
{
	const size_t length = strlen(section);

	strcpy(path, section);
	return yaml_reader_key(&reader->yaml, path + length, KEY_BYTES - length);
}

static int key_refuse(struct reader *reader, unsigned int line, const char *path,
		      const char *section)
{
	struct nearest nearest = { .name = path };
	char quoted[TEXT_QUOTE_BYTES];
	const struct option_row *row;

	text_quote(quoted, sizeof(quoted), path);
	/* Right word, wrong place: the whole path, a flag, or another section's key. */
	row = option_find(path);
	if (!row)
		row = option_find(path + strlen(section));
	if (row)
		return error_set(reader->yaml.error, -EINVAL,
				 "%s:%u: %s: is not a key here; the option is %s%s",
				 reader->yaml.name, line, quoted, row->named.key,
				 strchr(row->named.key, '.')
					 ? ", written as a map: section, then key indented below"
					 : ", at the outermost level");
	option_consider(&nearest, section, false);
	option_consider(&nearest, "", false);
	return error_set(reader->yaml.error, -EINVAL, "%s:%u: %s: is an unknown key%s",
			 reader->yaml.name, line, quoted,
			 nearest.best ? nearest_hint(&nearest, "")
				      : "; allowed: the keys of docs/configuration.md");
}

/* The next key of a map, as a path, and its line. 1; 0: the map ends; or a negative errno. */
static int next_key(struct reader *reader, const char *section, char path[KEY_BYTES],
		    unsigned int *line)
{
	int ret = yaml_reader_next(&reader->yaml);

	*line = 0;
	if (ret || reader->yaml.event.type == YAML_MAPPING_END_EVENT)
		return ret;
	*line = yaml_reader_line(&reader->yaml);
	ret = read_key(reader, section, path);
	return ret ? ret : 1;
}

static int read_section(struct reader *reader, const char *section)
{
	const struct option_row *row;
	char path[KEY_BYTES];
	unsigned int line;
	int ret;

	while ((ret = next_key(reader, section, path, &line)) > 0) {
		/* By path only: option_find() takes flags too, but none has a dot. */
		row = option_find(path);
		if (!row)
			return key_refuse(reader, line, path, section);
		ret = read_value(reader, row, line);
		if (ret)
			return ret;
	}
	return ret;
}

/* The first row of a section ("frame."), or NULL. */
static const struct option_row *section_find(const char *section)
{
	const struct option_row *row;
	size_t i;

	for (i = 0; (row = option_at(i)); i++)
		if (!strncmp(row->named.key, section, strlen(section)))
			break;
	return row;
}

/*
 * `path` names a section, whose first row is `first`: a map, or, where the section has a `name`,
 * just that name.
 */
static int read_section_or_name(struct reader *reader, const char *path,
				const struct option_row *first, unsigned int line)
{
	char section[KEY_BYTES + 1], name[KEY_BYTES + 5];
	const struct option_row *row;
	int ret;

	strcpy(section, path);
	strcat(section, ".");
	strcpy(name, section);
	strcat(name, "name");
	ret = key_claim(reader, path, &reader->section_line[first - option_at(0)], line);
	if (!ret)
		ret = yaml_reader_next(&reader->yaml);
	if (ret)
		return ret;
	if (reader->yaml.event.type == YAML_MAPPING_START_EVENT)
		return read_section(reader, section);
	row = option_find(name);
	if (reader->yaml.event.type != YAML_SCALAR_EVENT || !row)
		return value_refuse(reader, yaml_reader_line(&reader->yaml), path, "is not a map",
				    NULL);
	ret = row_claim(reader, row, line);
	return ret ? ret : read_scalar(reader, row, false);
}

static int read_map(struct reader *reader)
{
	const struct option_row *row, *first;
	char path[KEY_BYTES], section[KEY_BYTES + 1];
	unsigned int line;
	int ret;

	while ((ret = next_key(reader, "", path, &line)) > 0) {
		strcpy(section, path);
		strcat(section, ".");
		row = option_find(path);
		/* Sections before flags: `pattern` is both. */
		first = section_find(section);
		if (first)
			ret = read_section_or_name(reader, path, first, line);
		else if (row && !strchr(path, '.') && !strcmp(row->named.key, path))
			ret = read_value(reader, row, line);
		else
			ret = key_refuse(reader, line, path, "");
		if (ret)
			return ret;
	}
	return ret;
}

static int empty_refuse(struct reader *reader)
{
	return error_set(reader->yaml.error, -EINVAL,
			 "%s: is empty: no key; allowed: the keys of docs/configuration.md",
			 reader->yaml.name);
}

static int read_stream(struct reader *reader)
{
	const yaml_event_t *event = &reader->yaml.event;
	int ret = yaml_reader_begin(&reader->yaml);

	if (ret)
		return ret;
	if (event->type == YAML_STREAM_END_EVENT ||
	    (event->type == YAML_SCALAR_EVENT && yaml_reader_no_value(&reader->yaml)))
		return empty_refuse(reader);
	if (event->type != YAML_MAPPING_START_EVENT)
		return yaml_reader_refuse(&reader->yaml, yaml_reader_line(&reader->yaml),
					  "is not a map; write lines such as \"port: ring:wire\"");
	ret = read_map(reader);
	if (ret)
		return ret;
	return reader->keys ? yaml_reader_end(&reader->yaml) : empty_refuse(reader);
}

int config_read_yaml(struct gdrcap_config *config, const char *name, const char *text, size_t bytes,
		     struct gdrcap_error *error)
{
	struct reader reader = { .config = config };
	int ret = yaml_reader_open(&reader.yaml, name, text, bytes, error);

	if (ret)
		return ret;
	ret = read_stream(&reader);
	yaml_reader_close(&reader.yaml);
	return ret;
}
