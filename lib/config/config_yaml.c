/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YAML to options, by libyaml's events and not by its document tree: an event says
 * where an anchor, an alias or a tag is, and text that nests too deeply, or would grow without
 * bounds through aliases, is refused before anything is built from it.
 *
 * The schema is two maps deep: a scalar or a list of ports by key, or a section of them.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "config/option_table.h"

#define KEY_BYTES 64

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; valid while has_event */
	int has_event;
	const char *text;
	size_t bytes;
	const char *name;
	struct gdrcap_config *config;
	unsigned int
		row_line[GDRCAP_OPTIONS_MAX]; /* where an option was given, from 1; 0: not yet */
	unsigned int
		section_line[GDRCAP_OPTIONS_MAX]; /* the same for a section, at its first option */
	unsigned int keys;			  /* read so far */
	struct gdrcap_error *error;
};

static unsigned int event_line(const struct reader *reader)
{
	return (unsigned int)reader->event.start_mark.line + 1;
}

static unsigned int line_at(const struct reader *reader, size_t offset)
{
	unsigned int line = 1;
	size_t i;

	for (i = 0; i < offset && i < reader->bytes; i++)
		line += reader->text[i] == '\n';
	return line;
}

static int reader_refuse(struct reader *reader, unsigned int line, const char *what)
{
	return error_set(reader->error, -EINVAL, "%s:%u: %s", reader->name, line, what);
}

/* Does the indentation of this line hold a tab? The commonest cause of a syntax error. */
static int line_has_tab(const struct reader *reader, unsigned int line)
{
	const char *at = reader->text, *end = reader->text + reader->bytes;

	while (--line && at < end) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			return 0;
		at++;
	}
	while (at < end && *at == ' ')
		at++;
	return at < end && *at == '\t';
}

static int syntax_refuse(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	unsigned int line = (unsigned int)parser->problem_mark.line + 1;

	if (parser->error == YAML_MEMORY_ERROR)
		return error_set(reader->error, -ENOMEM, "%s: out of memory", reader->name);
	if (parser->error == YAML_READER_ERROR)
		return error_set(reader->error, -EINVAL,
				 "%s:%u: is not text (%s); allowed: YAML in UTF-8", reader->name,
				 line_at(reader, parser->problem_offset),
				 parser->problem ? parser->problem : "unreadable");
	return error_set(reader->error, -EINVAL, "%s:%u: is not YAML: %s%s%s%s", reader->name, line,
			 parser->problem ? parser->problem : "unreadable",
			 parser->context ? " " : "", parser->context ? parser->context : "",
			 line_has_tab(reader, line) ? "; indent with blanks, not with tabs" : "");
}

/* The next event, which must be free of what this format leaves out of YAML. */
static int reader_next(struct reader *reader)
{
	const yaml_event_t *event = &reader->event;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (reader->has_event)
		yaml_event_delete(&reader->event);
	reader->has_event = 0;
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		return syntax_refuse(reader);
	reader->has_event = 1;
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return reader_refuse(reader, event_line(reader),
				     "aliases (*name) are not allowed; write the value out");
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor)
		return reader_refuse(reader, event_line(reader),
				     "anchors (&name) are not allowed; write each value out");
	if (tag)
		return reader_refuse(reader, event_line(reader),
				     "tags (!name) are not allowed; write the value alone");
	return 0;
}

static int value_refuse(struct reader *reader, unsigned int line, const char *key, const char *what,
			const struct option_row *row)
{
	char allowed[OPTION_ALLOWED_BYTES], quoted[TEXT_QUOTE_BYTES];

	return error_set(reader->error, -EINVAL, "%s:%u: %s: %s; allowed: %s", reader->name, line,
			 text_quote(quoted, sizeof(quoted), key), what,
			 row ? option_allowed(row, allowed)
			     : "its keys, indented, each with a value");
}

/* Has a plain scalar no value in YAML's sense? */
static int scalar_is_null(const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return 0;
	return !*text || !strcmp(text, "~") || !strcasecmp(text, "null");
}

/* The current scalar as the row's value. */
static int read_scalar(struct reader *reader, const struct option_row *row, bool add)
{
	const yaml_event_t *event = &reader->event;
	const char *text = (const char *)event->data.scalar.value;
	struct gdrcap_error error;
	unsigned int line = event_line(reader);

	if (scalar_is_null(event))
		return value_refuse(reader, line, row->named.key, "has no value", row);
	if (strlen(text) != event->data.scalar.length)
		return value_refuse(reader, line, row->named.key, "holds a NUL byte", row);
	if (config_give(reader->config, row, row->named.key, text, add, &error))
		return error_set(reader->error, error.code, "%s:%u: %s", reader->name, line,
				 error.text);
	return 0;
}

static int read_list(struct reader *reader, const struct option_row *row)
{
	unsigned int line = event_line(reader);
	bool add = false;
	int ret;

	for (;; add = true) {
		ret = reader_next(reader);
		if (ret)
			return ret;
		if (reader->event.type == YAML_SEQUENCE_END_EVENT)
			break;
		if (reader->event.type != YAML_SCALAR_EVENT)
			return value_refuse(reader, event_line(reader), row->named.key,
					    "is a list of something else than text", row);
		ret = read_scalar(reader, row, add);
		if (ret)
			return ret;
	}
	return add ? 0 : value_refuse(reader, line, row->named.key, "is an empty list", row);
}

/* Notes in *first where `key` is given; a second time is an error. */
static int key_claim(struct reader *reader, const char *key, unsigned int *first, unsigned int line)
{
	if (*first)
		return error_set(reader->error, -EINVAL,
				 "%s:%u: %s: is given twice, first in line %u; leave one out",
				 reader->name, line, key, *first);
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
	ret = reader_next(reader);
	if (ret)
		return ret;
	if (reader->event.type == YAML_SCALAR_EVENT)
		return read_scalar(reader, row, false);
	if (reader->event.type == YAML_SEQUENCE_START_EVENT && row->named.is_list)
		return read_list(reader, row);
	return value_refuse(reader, event_line(reader), row->named.key,
			    reader->event.type == YAML_MAPPING_START_EVENT
				    ? "is a map, but must be one value"
				    : "is a list, but must be one value",
			    row);
}

/* The current event as a key under `section` ("" or "frame."), into `path`. */
static int read_key(struct reader *reader, const char *section, char path[KEY_BYTES])
{
	const yaml_event_t *event = &reader->event;
	const char *text;

	if (event->type != YAML_SCALAR_EVENT)
		return reader_refuse(reader, event_line(reader),
				     "a key must be a word, not a list or a map");
	text = (const char *)event->data.scalar.value;
	if (!strcmp(text, "<<") && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return reader_refuse(reader, event_line(reader),
				     "merge keys (<<) are not allowed; write the keys out");
	if (strlen(text) != event->data.scalar.length)
		return reader_refuse(reader, event_line(reader), "a key holds a NUL byte");
	if (strlen(section) + strlen(text) >= KEY_BYTES)
		return reader_refuse(reader, event_line(reader), "a key is longer than any is");
	strcpy(path, section);
	strcat(path, text);
	return 0;
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
		return error_set(reader->error, -EINVAL,
				 "%s:%u: %s: is not a key here; the option is %s%s", reader->name,
				 line, quoted, row->named.key,
				 strchr(row->named.key, '.')
					 ? ", written as a map: section, then key indented below"
					 : ", at the outermost level");
	option_consider(&nearest, section, false);
	option_consider(&nearest, "", false);
	return error_set(reader->error, -EINVAL, "%s:%u: %s: is an unknown key%s", reader->name,
			 line, quoted,
			 nearest.best ? nearest_hint(&nearest, "")
				      : "; allowed: the keys of docs/configuration.md");
}

static int read_section(struct reader *reader, const char *section)
{
	const struct option_row *row;
	char path[KEY_BYTES];
	unsigned int line;
	int ret;

	for (;;) {
		ret = reader_next(reader);
		if (ret || reader->event.type == YAML_MAPPING_END_EVENT)
			return ret;
		line = event_line(reader);
		ret = read_key(reader, section, path);
		if (ret)
			return ret;
		/* By path only: option_find() takes flags too, but none has a dot. */
		row = option_find(path);
		if (!row)
			return key_refuse(reader, line, path, section);
		ret = read_value(reader, row, line);
		if (ret)
			return ret;
	}
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
		ret = reader_next(reader);
	if (ret)
		return ret;
	if (reader->event.type == YAML_MAPPING_START_EVENT)
		return read_section(reader, section);
	row = option_find(name);
	if (reader->event.type != YAML_SCALAR_EVENT || !row)
		return value_refuse(reader, event_line(reader), path, "is not a map", NULL);
	ret = row_claim(reader, row, line);
	return ret ? ret : read_scalar(reader, row, false);
}

static int read_map(struct reader *reader)
{
	const struct option_row *row, *first;
	char path[KEY_BYTES], section[KEY_BYTES + 1];
	unsigned int line;
	int ret;

	for (;;) {
		ret = reader_next(reader);
		if (ret || reader->event.type == YAML_MAPPING_END_EVENT)
			return ret;
		line = event_line(reader);
		ret = read_key(reader, "", path);
		if (ret)
			return ret;
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
}

static int read_stream(struct reader *reader)
{
	int ret;

	do {
		ret = reader_next(reader);
		if (ret)
			return ret;
	} while (reader->event.type == YAML_STREAM_START_EVENT ||
		 reader->event.type == YAML_DOCUMENT_START_EVENT);
	if (reader->event.type == YAML_STREAM_END_EVENT ||
	    (reader->event.type == YAML_SCALAR_EVENT && scalar_is_null(&reader->event)))
		return error_set(reader->error, -EINVAL,
				 "%s: is empty: no key; allowed: the keys of docs/configuration.md",
				 reader->name);
	if (reader->event.type != YAML_MAPPING_START_EVENT)
		return reader_refuse(reader, event_line(reader),
				     "is not a map; write lines such as \"port: ring:wire\"");
	ret = read_map(reader);
	if (ret)
		return ret;
	if (!reader->keys)
		return error_set(reader->error, -EINVAL,
				 "%s: is empty: no key; allowed: the keys of docs/configuration.md",
				 reader->name);
	do {
		ret = reader_next(reader);
		if (ret)
			return ret;
		if (reader->event.type == YAML_DOCUMENT_START_EVENT)
			return reader_refuse(reader, event_line(reader),
					     "a second document begins; put all into one");
	} while (reader->event.type != YAML_STREAM_END_EVENT);
	return 0;
}

int config_read_yaml(struct gdrcap_config *config, const char *name, const char *text, size_t bytes,
		     struct gdrcap_error *error)
{
	struct reader reader = {
		.config = config, .name = name, .text = text, .bytes = bytes, .error = error
	};
	const char *nul = memchr(text, '\0', bytes);
	int ret;

	if (nul)
		return reader_refuse(&reader, line_at(&reader, (size_t)(nul - text)),
				     "holds a NUL byte: is not text; allowed: YAML in UTF-8");
	if (!yaml_parser_initialize(&reader.parser))
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, bytes);
	ret = read_stream(&reader);
	if (reader.has_event)
		yaml_event_delete(&reader.event);
	yaml_parser_delete(&reader.parser);
	return ret;
}
