/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YAML by libyaml's events and not by its document tree: an event says where an anchor, an alias or a
 * tag is, and text that nests too deeply, or would grow without bounds through aliases, is refused
 * before anything is built from it.
 */
#ifndef GDRCAP_YAML_READER_H
#define GDRCAP_YAML_READER_H

#include <stdbool.h>
#include <yaml.h>

#include "base/text.h"
#include "gdrcap.h"

#define YAML_BYTES_MAX ((size_t)1 << 20)
#define YAML_NAME_BYTES (TEXT_QUOTE_BYTES * 3)

struct yaml_reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; valid while has_event */
	bool has_event;
	const char *text;
	size_t bytes;
	char name[YAML_NAME_BYTES]; /* of the file, printable */
	struct gdrcap_error *error;
};

/* 0, -EINVAL (too long, or no text) or -ENOMEM; then there is nothing to close. `text` stays the
 * caller's. */
int yaml_reader_open(struct yaml_reader *reader, const char *name, const char *text, size_t bytes,
		     struct gdrcap_error *error);
void yaml_reader_close(struct yaml_reader *reader);

/* The next event, which must be free of what we leave out of YAML. 0, -EINVAL or -ENOMEM. */
int yaml_reader_next(struct yaml_reader *reader);
/* The first event of the one document's content; that of an empty one is the stream's end. */
int yaml_reader_begin(struct yaml_reader *reader);
/* Nothing may follow the content. */
int yaml_reader_end(struct yaml_reader *reader);

/* Of the current event, from 1. */
unsigned int yaml_reader_line(const struct yaml_reader *reader);
/* The current scalar. */
const char *yaml_reader_text(const struct yaml_reader *reader);
/* What keeps the current scalar from being a value or a key: "has no value", "holds a NUL byte"; NULL:
 * nothing. */
const char *yaml_reader_no_value(const struct yaml_reader *reader);
/* The current event as a key, into `key`. 0 or -EINVAL. */
int yaml_reader_key(struct yaml_reader *reader, char *key, size_t bytes);

/* -EINVAL, with "NAME:LINE: what". */
int yaml_reader_refuse(struct yaml_reader *reader, unsigned int line, const char *what);
int yaml_reader_too_large(const char *name, struct gdrcap_error *error);

#endif
