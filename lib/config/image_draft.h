/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layout of images as somebody wrote it, in YAML or as a preset with `key=value`: each key's value, and
 * where it was given. image_settle() makes struct image_settings of it.
 */
#ifndef GDRCAP_IMAGE_DRAFT_H
#define GDRCAP_IMAGE_DRAFT_H

#include "config/settings.h"

/* The keys of a layout; docs/images.md says what they mean. */
enum image_key {
	IMAGE_KEY_NAME,
	IMAGE_KEY_BASE,
	IMAGE_KEY_PARSER,
	IMAGE_KEY_KIND,
	IMAGE_KEY_KIND_BEGIN,
	IMAGE_KEY_KIND_DATA,
	IMAGE_KEY_KIND_END,
	IMAGE_KEY_PAYLOAD,
	IMAGE_KEY_PAYLOAD_MORE,
	IMAGE_KEY_LENGTH,
	IMAGE_KEY_END_MARK,
	IMAGE_KEY_END_PIECES,
	IMAGE_KEY_END_WORD,
	IMAGE_KEY_STREAM,
	IMAGE_KEY_NUMBER,
	IMAGE_KEY_NUMBER_WORD,
	IMAGE_KEY_LATE,
	IMAGE_KEY_LEGS,
	IMAGE_KEY_COUNTS,
	IMAGE_KEY_INDEX,
	IMAGE_KEY_PLACE,
	IMAGE_KEY_TIMESTAMP,
	IMAGE_KEY_FIELDS,
	IMAGE_KEY_BYTES,
	IMAGE_KEY_PIECE,
	IMAGE_KEY_PIECES,
	IMAGE_KEY_ROW,
	IMAGE_KEY_PITCH,
	IMAGE_KEY_SIZE,
	IMAGE_KEY_WIDTH,
	IMAGE_KEY_HEIGHT,
	IMAGE_KEY_GROUP_PIXELS,
	IMAGE_KEY_GROUP_BYTES,
	IMAGE_KEY_SAMPLING,
	IMAGE_KEY_DEPTH,
	IMAGE_KEY_CONVERT,
	IMAGE_KEY_RING,
	IMAGE_KEY_OPEN,
	IMAGE_KEY_TIMEOUT,
	IMAGE_KEY_LINGER,
	IMAGE_KEY_FILL,
	IMAGE_KEY_INCOMPLETE,
	IMAGE_KEY_FULL,
	IMAGE_KEY_ENGINE,
	IMAGE_KEY_MATCH,
	IMAGE_KEYS
};

/* The keys of a field. */
enum field_key {
	FIELD_KEY_AT,
	FIELD_KEY_ITEM,
	FIELD_KEY_BYTES,
	FIELD_KEY_LITTLE,
	FIELD_KEY_BIT,
	FIELD_KEY_BITS,
	FIELD_KEY_SHIFT,
	FIELD_KEY_MASK,
	FIELD_KEY_SUBTRACT,
	FIELD_KEY_DIVIDE,
	FIELD_KEY_MODULO,
	FIELD_KEY_TIMES,
	FIELD_KEY_WRAP,
	FIELD_KEY_FIRST,
	FIELD_KEYS
};

struct draft_field {
	uint64_t value[FIELD_KEYS];
	uint32_t given; /* a bit for each key */
	unsigned int line;
};

struct image_draft {
	const char *where;  /* what error texts begin with: a file, an option */
	const char *prefix; /* of paths in them: "image." or "" */
	bool lines;	    /* they say the line too */
	struct gdrcap_error *error;
	unsigned int begins; /* line of the layout itself */
	bool given[IMAGE_KEYS];
	unsigned int line[IMAGE_KEYS]; /* 0: not given since image_draft_again() */
	uint64_t
		value[IMAGE_KEYS]; /* numbers, switches, words; a time in ms; of fields: how many */
	struct draft_field field[IMAGE_KEYS][IMAGE_TERMS_MAX];
	char name[SETTINGS_NAME_BYTES];
	struct match_list match;
};
_Static_assert(IMAGE_FIELDS_MAX == IMAGE_TERMS_MAX, "one room for both lists");

/* Values of words. */
enum { IMAGE_SIZE_FIXED, IMAGE_SIZE_SENDER };
enum { IMAGE_INCOMPLETE_DELIVER, IMAGE_INCOMPLETE_DROP };
enum { IMAGE_FULL_DROP_NEW, IMAGE_FULL_DROP_OLDEST };
#define IMAGE_FILL_NONE 256u
#define IMAGE_NAME_MAX 63u

/* Defaults everywhere; `begins`: the layout's line. */
void image_draft_init(struct image_draft *draft, const char *where, const char *prefix, bool lines,
		      struct gdrcap_error *error);
/* What was given may be given once more: `key=value` after a preset. */
void image_draft_again(struct image_draft *draft);

/* What a path is: a value, a field, fields, rules, or a section whose paths go on. */
enum image_node {
	IMAGE_NODE_NONE,
	IMAGE_NODE_VALUE,
	IMAGE_NODE_FIELD,
	IMAGE_NODE_FIELDS,
	IMAGE_NODE_RULES,
	IMAGE_NODE_SECTION,
};
/* Of a map or list (`compound`), or of a scalar, at `path`; *key: not of a section. */
enum image_node image_draft_node(const char *path, bool compound, enum image_key *key);

/* Notes that a key is given here; a second time is refused. 0 or -EINVAL, as all below. */
int image_draft_claim(struct image_draft *draft, unsigned int line, const char *path,
		      enum image_key key);
/* A scalar at `path`, which may go on to a field's key: "number.at". */
int image_draft_set(struct image_draft *draft, unsigned int line, const char *path,
		    const char *text);
/* Key `name` of field `i` of what is claimed at `path`. */
int image_draft_set_field(struct image_draft *draft, unsigned int line, const char *path,
			  enum image_key key, uint32_t i, const char *name, const char *text);
int image_draft_add_rule(struct image_draft *draft, unsigned int line, const char *text);
/* -EINVAL: there is no such key; suggests the nearest. */
int image_draft_unknown(struct image_draft *draft, unsigned int line, const char *path);

int image_draft_refuse(const struct image_draft *draft, unsigned int line, const char *path,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same of a key, in its line if it was given, under its first path. */
int image_draft_refuse_key(const struct image_draft *draft, enum image_key key, const char *format,
			   ...) __attribute__((format(printf, 3, 4)));

/* The key's first path. */
const char *image_key_path(enum image_key key);
/* The name of value `value` of a key whose values are words. */
const char *image_key_word(enum image_key key, uint64_t value);
/* Bits 1 << enum image_parser: who may have the key. */
unsigned int image_key_parsers(enum image_key key);
/* Name of a field's key. */
const char *image_field_key_name(enum field_key key);

#endif
