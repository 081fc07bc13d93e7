/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML by events: what is left out of it, and where an error is. */
#include "config/yaml_reader.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

unsigned int yaml_reader_line(const struct yaml_reader *reader)
{
	return (unsigned int)reader->event.start_mark.line + 1;
}

const char *yaml_reader_text(const struct yaml_reader *reader)
{
	return (const char *)reader->event.data.scalar.value;
}

static unsigned int line_at(const struct yaml_reader *reader, size_t offset)
{
	unsigned int line = 1;
	size_t i;

	for (i = 0; i < offset && i < reader->bytes; i++)
		line += reader->text[i] == '\n';
	return line;
}

int yaml_reader_refuse(struct yaml_reader *reader, unsigned int line, const char *what)
{
	return error_set(reader->error, -EINVAL, "%s:%u: %s", reader->name, line, what);
}

int yaml_reader_too_large(const char *name, struct gdrcap_error *error)
{
	return error_set(error, -EINVAL,
			 "%s: is larger than 1 MiB, which no configuration is; check the path",
			 name);
}

int yaml_reader_open(struct yaml_reader *reader, const char *name, const char *text, size_t bytes,
		     struct gdrcap_error *error)
{
	const char *nul;

	memset(reader, 0, sizeof(*reader));
	reader->text = text && bytes ? text : "";
	reader->bytes = text ? bytes : 0;
	reader->error = error;
	text_quote(reader->name, sizeof(reader->name), name);
	if (reader->bytes > YAML_BYTES_MAX)
		return yaml_reader_too_large(reader->name, error);
	nul = memchr(reader->text, '\0', reader->bytes);
	if (nul)
		return yaml_reader_refuse(reader, line_at(reader, (size_t)(nul - reader->text)),
					  "holds a NUL byte: is not text; allowed: YAML in UTF-8");
	if (!yaml_parser_initialize(&reader->parser))
		return error_set(error, -ENOMEM, "%s: out of memory", reader->name);
	yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)reader->text,
				     reader->bytes);
	return 0;
}

void yaml_reader_close(struct yaml_reader *reader)
{
	if (reader->has_event)
		yaml_event_delete(&reader->event);
	yaml_parser_delete(&reader->parser);
}

/* Does the indentation of this line hold a tab? The commonest cause of a syntax error. */
static bool line_has_tab(const struct yaml_reader *reader, unsigned int line)
{
	const char *at = reader->text, *end = reader->text + reader->bytes;

	while (--line && at < end) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	while (at < end && *at == ' ')
		at++;
	return at < end && *at == '\t';
}

static int syntax_refuse(struct yaml_reader *reader)
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

int yaml_reader_next(struct yaml_reader *reader)
{
	const yaml_event_t *event = &reader->event;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (reader->has_event)
		yaml_event_delete(&reader->event);
	reader->has_event = false;
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		return syntax_refuse(reader);
	reader->has_event = true;
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return yaml_reader_refuse(reader, yaml_reader_line(reader),
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
		return yaml_reader_refuse(reader, yaml_reader_line(reader),
					  "anchors (&name) are not allowed; write each value out");
	if (tag)
		return yaml_reader_refuse(reader, yaml_reader_line(reader),
					  "tags (!name) are not allowed; write the value alone");
	return 0;
}

int yaml_reader_begin(struct yaml_reader *reader)
{
	int ret;

	do {
		ret = yaml_reader_next(reader);
	} while (!ret && (reader->event.type == YAML_STREAM_START_EVENT ||
			  reader->event.type == YAML_DOCUMENT_START_EVENT));
	return ret;
}

int yaml_reader_end(struct yaml_reader *reader)
{
	int ret;

	do {
		ret = yaml_reader_next(reader);
		if (ret)
			return ret;
		if (reader->event.type == YAML_DOCUMENT_START_EVENT)
			return yaml_reader_refuse(reader, yaml_reader_line(reader),
						  "a second document begins; put all into one");
	} while (reader->event.type != YAML_STREAM_END_EVENT);
	return 0;
}

const char *yaml_reader_no_value(const struct yaml_reader *reader)
{
	const char *text = yaml_reader_text(reader);

	if (strlen(text) != reader->event.data.scalar.length)
		return "holds a NUL byte";
	if (reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return NULL;
	return !*text || !strcmp(text, "~") || !strcasecmp(text, "null") ? "has no value" : NULL;
}

int yaml_reader_key(struct yaml_reader *reader, char *key, size_t bytes)
{
	const yaml_event_t *event = &reader->event;
	const unsigned int line = yaml_reader_line(reader);
	const char *text;

	if (event->type != YAML_SCALAR_EVENT)
		return yaml_reader_refuse(reader, line,
					  "a key must be a word, not a list or a map");
	text = yaml_reader_text(reader);
	if (!strcmp(text, "<<") && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return yaml_reader_refuse(reader, line,
					  "merge keys (<<) are not allowed; write the keys out");
	if (strlen(text) != event->data.scalar.length)
		return yaml_reader_refuse(reader, line, "a key holds a NUL byte");
	if (strlen(text) >= bytes)
		return yaml_reader_refuse(reader, line, "a key is longer than any is");
	strcpy(key, text);
	return 0;
}
