/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options: one table drives YAML, gdrcap_config_set(), the command line, --help, the defaults
 * and the range checks; docs/configuration.md is compared with it by a test.
 */
#ifndef GDRCAP_OPTION_TABLE_H
#define GDRCAP_OPTION_TABLE_H

#include "gdrcap.h"

enum option_type {
	OPTION_TEXT,
	OPTION_PATTERN, /* text: a name that lib/pattern knows */
	OPTION_LIST,	/* GDRCAP_PORTS_MAX texts */
	OPTION_NUMBER,
	OPTION_HEX,	 /* number, written 0x... */
	OPTION_SIZE,	 /* bytes, with K, M, G */
	OPTION_COUNT,	 /* number, with k, M, G and e6 */
	OPTION_DURATION, /* seconds; kept in ms */
	OPTION_BOOL,
	OPTION_ENUM, /* index in names[] */
};

struct option_row {
	struct gdrcap_option named;
	enum option_type type;
	uint32_t offset, width; /* in struct gdrcap_config, bytes; list: width of one entry */
	uint64_t min, max;	/* numbers; durations in ms */
	int zero; /* numbers: 0 is accepted below min and says "choose" or "no limit" */
	const char *const *names; /* enum, NULL-ended */
	/* Text: what is wrong with it ("is ..."), or NULL. */
	const char *(*check)(const char *text);
	const char *allowed; /* text: for error texts */
	int empty;	     /* text: the empty text is accepted and says "default" */
	/* Default, as it would be written. In the struct, zero and "" stand for it. NULL: zero. */
	const char *initial;
};

/* Row `index`, or NULL after the last. */
const struct option_row *option_at(size_t index);
/* By YAML path or flag; NULL for none. */
const struct option_row *option_find(const char *name);
/* The path (or, with `flags`, the flag) that `name` may be a slip of; NULL when none is near. Only
 * paths that begin with `prefix` count. */
const char *option_nearest(const char *name, const char *prefix, int flags);

/*
 * Sets the row's field from text. -EINVAL: error text "NAME: what is wrong; allowed: ...", with
 * `name` as the caller wrote it. Lists: see gdrcap_config_set().
 */
int option_set(const struct option_row *row, const char *name, struct gdrcap_config *config,
	       const char *value, int append, struct gdrcap_error *error);
/* Puts the default where the field is zero. */
void option_set_default(const struct option_row *row, struct gdrcap_config *config);
/* The field against the row, for structs that were filled by hand. */
int option_check(const struct option_row *row, const struct gdrcap_config *config,
		 struct gdrcap_error *error);

#define OPTION_ALLOWED_BYTES 320
/* What the row accepts, in words. Returns `to`. */
const char *option_allowed(const struct option_row *row, char to[OPTION_ALLOWED_BYTES]);

#define OPTION_QUOTE_BYTES 64
/* Foreign text, fit for an error text: printable, and cut when long. Returns `to`. */
const char *option_quote(char *to, size_t bytes, const char *text);

#endif
