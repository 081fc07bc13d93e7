/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options: one row of one table makes an option, and drives YAML, gdrcap_config_set(), the command
 * line, --help, its default, its range and its place in struct settings; docs/configuration.md is
 * compared with it by a test.
 */
#ifndef GDRCAP_OPTION_TABLE_H
#define GDRCAP_OPTION_TABLE_H

#include <stdbool.h>

#include "base/nearest.h"
#include "gdrcap.h"

enum option_type {
	OPTION_TEXT,   /* what `parse` reads */
	OPTION_LIST,   /* several of what `parse` reads */
	OPTION_IMAGES, /* a list too: config/image_load.h */
	OPTION_NUMBER,
	OPTION_HEX,	 /* number, written 0x... */
	OPTION_SIZE,	 /* bytes, with K, M, G */
	OPTION_COUNT,	 /* number, with k, M, G and e6 */
	OPTION_DURATION, /* seconds; kept in ms */
	OPTION_BOOL,
	OPTION_ENUM, /* index in named.words[] */
};

struct option_row {
	struct gdrcap_option named;
	enum option_type type;
	uint32_t offset, width;	     /* in struct settings, bytes; list: of its first entry */
	uint32_t count_offset, most; /* list: of its length (uint32_t), and the longest */
	uint64_t min, max;	     /* numbers; durations in ms */
	int zero; /* numbers: 0 is accepted below min and says "choose" or "no limit" */
	/* Text: its meaning into settings, or what is wrong with it: option_parse.h. */
	const char *(*parse)(const char *text, void *to);
	const char *allowed; /* text: for error texts */
	uint32_t length;     /* text: characters at most; 0: OPTION_TEXT_MAX */
	int empty;	     /* text: the empty text is accepted and says "default" */
	const char *initial; /* the default, as it would be written; NULL: zero, or none */
};

#define OPTION_TEXT_MAX 511u /* characters of any value */

/* Row `index`, or NULL after the last. */
const struct option_row *option_at(size_t index);
/* By YAML path or flag; NULL for none. */
const struct option_row *option_find(const char *name);
/* Considers the paths (or, with `flags`, the flags) of options whose paths begin with `prefix`. */
void option_consider(struct nearest *nearest, const char *prefix, bool flags);

struct settings;

/*
 * Puts the value into its place; a list's as entry `at`, which ends it. -EINVAL: error text "NAME: what
 * is wrong; allowed: ...", with `name` as the caller wrote it, and nothing is changed.
 */
int option_set(const struct option_row *row, const char *name, struct settings *settings,
	       const char *value, uint32_t at, struct gdrcap_error *error);
/* Entry `at` of a list, which ends it. */
void option_put(const struct option_row *row, struct settings *settings, const void *entry,
		uint32_t at);
void option_set_default(const struct option_row *row, struct settings *settings);

#define OPTION_ALLOWED_BYTES 320
/* What the row accepts, in words. Returns `to`. */
const char *option_allowed(const struct option_row *row, char to[OPTION_ALLOWED_BYTES]);

#endif
