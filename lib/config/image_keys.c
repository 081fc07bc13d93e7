/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a layout of images: one table, and the values of single keys. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/image_draft.h"
#include "config/image_load.h"
#include "config/option_table.h"
#include "kernels/place.h"

enum key_type {
	KEY_NUMBER,
	KEY_SIZE, /* bytes, with K, M, G */
	KEY_TIME, /* seconds; kept in ms */
	KEY_BOOL,
	KEY_WORD,
	KEY_FILL, /* a number or "none" */
	KEY_NAME,
	KEY_FIELD,
	KEY_FIELDS,
	KEY_RULES,
};

#define FIELDS (1u << IMAGE_PARSER_FIELDS)
#define GVSP (1u << IMAGE_PARSER_GVSP)
#define RTP (1u << IMAGE_PARSER_RTP_RAW)
#define SPEAD (1u << IMAGE_PARSER_SPEAD)
#define ALL (FIELDS | GVSP | RTP | SPEAD)

static const char *const base_words[] = { "frame", "udp", NULL };
static const char *const parser_words[] = { "fields", "gvsp", "rtp-raw", "spead", NULL };
static const char *const end_words[] = { "marker", NULL };
static const char *const number_words[] = { "timestamp", NULL };
static const char *const legs_words[] = { "any", "1", "2", NULL };
static const char *const size_words[] = { "fixed", "sender", NULL };
static const char *const sampling_words[] = { "YCbCr-4:2:2", "YCbCr-4:1:1", "YCbCr-4:4:4", "RGB",
					      "BGR",	     "RGBA",	    "BGRA",	   NULL };
static const char *const convert_words[] = {
	"none",		 "swap16",	  "swap32",	     "swap64",		"unpack10-be",
	"unpack12-be",	 "mono10p",	  "mono12p",	     "int8-float16",	"int8-float32",
	"int16-float16", "int16-float32", "int16be-float16", "int16be-float32", NULL
};
static const char *const incomplete_words[] = { "deliver", "drop", NULL };
static const char *const full_words[] = { "drop_new", "drop_oldest", NULL };
static const char *const engine_words[] = { "auto", "launched", "resident", NULL };
_Static_assert(IMAGE_BASE_FRAME == 0 && IMAGE_BASE_UDP == 1, "base_words");
_Static_assert(RTE_DIM(convert_words) == IMAGE_CONVERTS + 1, "convert_words");
_Static_assert(IMAGE_PARSER_FIELDS == 0 && IMAGE_PARSER_SPEAD == 3, "parser_words");

#define KINDS_MAX (UINT64_MAX - 1) /* UINT64_MAX says that there is no such packet */

/* A key may have several paths; the first is the one that is written. */
static const struct key_row {
	const char *path;
	enum image_key key;
	enum key_type type;
	unsigned int parsers;
	uint64_t min, max, initial;
	const char *const *words;
} rows[] = {
	{ "name", IMAGE_KEY_NAME, KEY_NAME, ALL, 0, 0, 0, NULL },
	{ "base", IMAGE_KEY_BASE, KEY_WORD, ALL, 0, 0, IMAGE_BASE_UDP, base_words },
	{ "parser", IMAGE_KEY_PARSER, KEY_WORD, ALL, 0, 0, 0, parser_words },
	{ "kind", IMAGE_KEY_KIND, KEY_FIELD, FIELDS, 0, 0, 0, NULL },
	{ "begin.kind", IMAGE_KEY_KIND_BEGIN, KEY_NUMBER, FIELDS, 0, KINDS_MAX, UINT64_MAX, NULL },
	{ "data.kind", IMAGE_KEY_KIND_DATA, KEY_NUMBER, FIELDS, 0, KINDS_MAX, UINT64_MAX, NULL },
	{ "end.kind", IMAGE_KEY_KIND_END, KEY_NUMBER, FIELDS, 0, KINDS_MAX, UINT64_MAX, NULL },
	{ "data.payload", IMAGE_KEY_PAYLOAD, KEY_NUMBER, FIELDS, 0, FRAME_MAX_BYTES, 0, NULL },
	{ "data.payload_more", IMAGE_KEY_PAYLOAD_MORE, KEY_FIELD, FIELDS, 0, 0, 0, NULL },
	{ "data.length", IMAGE_KEY_LENGTH, KEY_FIELD, FIELDS, 0, 0, 0, NULL },
	{ "end.mark", IMAGE_KEY_END_MARK, KEY_FIELD, FIELDS, 0, 0, 0, NULL },
	{ "end.pieces", IMAGE_KEY_END_PIECES, KEY_FIELD, FIELDS, 0, 0, 0, NULL },
	{ "end", IMAGE_KEY_END_WORD, KEY_WORD, RTP, 0, 0, 0, end_words },
	{ "stream", IMAGE_KEY_STREAM, KEY_FIELD, ALL, 0, 0, 0, NULL },
	{ "number", IMAGE_KEY_NUMBER, KEY_FIELD, FIELDS | SPEAD, 0, 0, 0, NULL },
	{ "number", IMAGE_KEY_NUMBER_WORD, KEY_WORD, RTP, 0, 0, 0, number_words },
	{ "late", IMAGE_KEY_LATE, KEY_NUMBER, ALL, 0, INT64_MAX, 64, NULL },
	{ "legs", IMAGE_KEY_LEGS, KEY_WORD, ALL, 0, 0, 1, legs_words },
	{ "counts", IMAGE_KEY_COUNTS, KEY_BOOL, ALL, 0, 1, 1, NULL },
	{ "index", IMAGE_KEY_INDEX, KEY_FIELDS, FIELDS | SPEAD, 0, 0, 0, NULL },
	{ "place", IMAGE_KEY_PLACE, KEY_FIELDS, FIELDS | SPEAD, 0, 0, 0, NULL },
	{ "timestamp", IMAGE_KEY_TIMESTAMP, KEY_FIELD, ALL, 0, 0, 0, NULL },
	{ "begin.timestamp", IMAGE_KEY_TIMESTAMP, KEY_FIELD, ALL, 0, 0, 0, NULL },
	{ "fields", IMAGE_KEY_FIELDS, KEY_FIELDS, ALL, 0, 0, 0, NULL },
	{ "begin.fields", IMAGE_KEY_FIELDS, KEY_FIELDS, ALL, 0, 0, 0, NULL },
	{ "bytes", IMAGE_KEY_BYTES, KEY_SIZE, ALL, 1, IMAGE_BYTES_MAX, 0, NULL },
	{ "piece", IMAGE_KEY_PIECE, KEY_SIZE, FIELDS | GVSP | SPEAD, 1, FRAME_MAX_BYTES, 0, NULL },
	{ "data.piece", IMAGE_KEY_PIECE, KEY_SIZE, FIELDS | GVSP | SPEAD, 1, FRAME_MAX_BYTES, 0,
	  NULL },
	{ "pieces", IMAGE_KEY_PIECES, KEY_NUMBER, ALL, 1, IMAGE_PIECES_MAX, 0, NULL },
	{ "row", IMAGE_KEY_ROW, KEY_SIZE, FIELDS, 1, IMAGE_BYTES_MAX, 0, NULL },
	{ "pitch", IMAGE_KEY_PITCH, KEY_SIZE, FIELDS | RTP, 1, IMAGE_BYTES_MAX, 0, NULL },
	{ "size", IMAGE_KEY_SIZE, KEY_WORD, FIELDS | GVSP | SPEAD, 0, 0, 0, size_words },
	{ "width", IMAGE_KEY_WIDTH, KEY_NUMBER, RTP, 1, 32768, 0, NULL },
	{ "height", IMAGE_KEY_HEIGHT, KEY_NUMBER, RTP, 1, 32768, 0, NULL },
	{ "group.pixels", IMAGE_KEY_GROUP_PIXELS, KEY_NUMBER, RTP, 1, 64, 0, NULL },
	{ "group.bytes", IMAGE_KEY_GROUP_BYTES, KEY_NUMBER, RTP, 1, 512, 0, NULL },
	{ "sampling", IMAGE_KEY_SAMPLING, KEY_WORD, RTP, 0, 0, 0, sampling_words },
	{ "depth", IMAGE_KEY_DEPTH, KEY_NUMBER, RTP, 8, 16, 8, NULL },
	{ "convert", IMAGE_KEY_CONVERT, KEY_WORD, ALL, 0, 0, 0, convert_words },
	{ "ring", IMAGE_KEY_RING, KEY_NUMBER, ALL, 2, PLACE_RING_MAX, 8, NULL },
	{ "open", IMAGE_KEY_OPEN, KEY_NUMBER, ALL, 1, PLACE_RING_MAX - 1, 2, NULL },
	{ "timeout", IMAGE_KEY_TIMEOUT, KEY_TIME, ALL, 1, 3600000, 100, NULL },
	{ "linger", IMAGE_KEY_LINGER, KEY_TIME, ALL, 0, 3600000, 1, NULL },
	{ "fill", IMAGE_KEY_FILL, KEY_FILL, ALL, 0, 255, 0, NULL },
	{ "incomplete", IMAGE_KEY_INCOMPLETE, KEY_WORD, ALL, 0, 0, 0, incomplete_words },
	{ "full", IMAGE_KEY_FULL, KEY_WORD, ALL, 0, 0, 0, full_words },
	{ "engine", IMAGE_KEY_ENGINE, KEY_WORD, ALL, 0, 0, 0, engine_words },
	{ "match", IMAGE_KEY_MATCH, KEY_RULES, ALL, 0, 0, 0, NULL },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct field_row {
	const char *name;
	enum key_type type;
	uint64_t min, max;
} field_rows[FIELD_KEYS] = {
	[FIELD_KEY_AT] = { "at", KEY_NUMBER, 0, IMAGE_FIELD_END_MAX - 1 },
	[FIELD_KEY_ITEM] = { "item", KEY_NUMBER, 1, 0x7fff },
	[FIELD_KEY_BYTES] = { "bytes", KEY_NUMBER, 1, 8 },
	[FIELD_KEY_LITTLE] = { "little", KEY_BOOL, 0, 1 },
	[FIELD_KEY_BIT] = { "bit", KEY_NUMBER, 0, 8 * IMAGE_FIELD_END_MAX - 1 },
	[FIELD_KEY_BITS] = { "bits", KEY_NUMBER, 1, 64 },
	[FIELD_KEY_SHIFT] = { "shift", KEY_NUMBER, 0, 63 },
	[FIELD_KEY_MASK] = { "mask", KEY_NUMBER, 1, UINT64_MAX },
	[FIELD_KEY_SUBTRACT] = { "subtract", KEY_NUMBER, 0, UINT64_MAX },
	[FIELD_KEY_DIVIDE] = { "divide", KEY_NUMBER, 1, UINT64_MAX },
	[FIELD_KEY_MODULO] = { "modulo", KEY_NUMBER, 2, UINT64_MAX },
	[FIELD_KEY_TIMES] = { "times", KEY_NUMBER, 1, UINT64_MAX },
	[FIELD_KEY_WRAP] = { "wrap", KEY_NUMBER, 2, UINT64_MAX },
	[FIELD_KEY_FIRST] = { "first", KEY_NUMBER, 0, UINT64_MAX },
};

/* ---- the table ---- */

static const struct key_row *row_of(enum image_key key)
{
	const struct key_row *row = rows;

	while (row->key != key)
		row++;
	return row;
}

const char *image_key_path(enum image_key key)
{
	return row_of(key)->path;
}

const char *image_key_word(enum image_key key, uint64_t value)
{
	return row_of(key)->words[value];
}

unsigned int image_key_parsers(enum image_key key)
{
	return row_of(key)->parsers;
}

const char *image_field_key_name(enum field_key key)
{
	return field_rows[key].name;
}

static bool is_compound(const struct key_row *row)
{
	return row->type >= KEY_FIELD;
}

enum image_node image_draft_node(const char *path, bool compound, enum image_key *key)
{
	const size_t length = strlen(path);
	bool section = false;

	for (size_t i = 0; i < ROWS; i++) {
		section |= !strncmp(rows[i].path, path, length) && rows[i].path[length] == '.';
		if (strcmp(rows[i].path, path) != 0 || is_compound(&rows[i]) != compound)
			continue;
		*key = rows[i].key;
		return rows[i].type == KEY_FIELD    ? IMAGE_NODE_FIELD
		       : rows[i].type == KEY_FIELDS ? IMAGE_NODE_FIELDS
		       : rows[i].type == KEY_RULES  ? IMAGE_NODE_RULES
						    : IMAGE_NODE_VALUE;
	}
	return section ? IMAGE_NODE_SECTION : IMAGE_NODE_NONE;
}

/* ---- errors ---- */

static int refuse(const struct image_draft *draft, unsigned int line, const char *path,
		  const char *format, va_list args)
{
	char what[384], at[16] = "";

	vsnprintf(what, sizeof(what), format, args);
	if (draft->lines)
		snprintf(at, sizeof(at), ":%u", line);
	if (!*path)
		return error_set(draft->error, -EINVAL, "%s%s: %s%s", draft->where, at,
				 *draft->prefix ? "image: " : "", what);
	return error_set(draft->error, -EINVAL, "%s%s: %s%s: %s", draft->where, at, draft->prefix,
			 path, what);
}

int image_draft_refuse(const struct image_draft *draft, unsigned int line, const char *path,
		       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	refuse(draft, line, path, format, args);
	va_end(args);
	return -EINVAL;
}

int image_draft_refuse_key(const struct image_draft *draft, enum image_key key, const char *format,
			   ...)
{
	const unsigned int line = draft->line[key];
	va_list args;

	va_start(args, format);
	refuse(draft, line ? line : draft->begins, image_key_path(key), format, args);
	va_end(args);
	return -EINVAL;
}

int image_draft_unknown(struct image_draft *draft, unsigned int line, const char *path)
{
	struct nearest nearest = { .name = path };
	char quoted[TEXT_QUOTE_BYTES];

	for (size_t i = 0; i < ROWS; i++)
		nearest_consider(&nearest, rows[i].path);
	return image_draft_refuse(draft, line, text_quote(quoted, sizeof(quoted), path),
				  "is an unknown key%s",
				  nearest.best ? nearest_hint(&nearest, "")
					       : "; allowed: the keys of docs/images.md");
}

/* ---- values ---- */

static int value_parse(enum key_type type, const char *text, uint64_t *value)
{
	uint32_t flag = 0;
	int ret;

	switch (type) {
	case KEY_SIZE:
		return parse_size(text, value);
	case KEY_TIME:
		return parse_duration(text, value);
	case KEY_BOOL:
		ret = parse_bool(text, &flag);
		*value = flag;
		return ret;
	default:
		return parse_u64(text, value);
	}
}

static const char *value_problem(enum key_type type)
{
	return type == KEY_SIZE	  ? "is not a size such as 4096, 64K or 2G"
	       : type == KEY_TIME ? "is not a time in seconds such as 10 or 0.25"
	       : type == KEY_BOOL ? "is not true or false"
				  : "is not a whole number";
}

/* A number, a size, a time or a switch. */
static int number_set(struct image_draft *draft, unsigned int line, const char *path,
		      enum key_type type, uint64_t min, uint64_t max, const char *text,
		      uint64_t *to)
{
	char quoted[TEXT_QUOTE_BYTES];
	uint64_t value = 0;
	const int ret = value_parse(type, text, &value);
	const unsigned int digits = type == KEY_TIME ? 3 : 0;
	char low[TEXT_COUNT_BYTES], high[TEXT_COUNT_BYTES];

	text_quote(quoted, sizeof(quoted), text);
	if (ret == -EINVAL)
		return image_draft_refuse(draft, line, path, "'%s' %s", quoted,
					  value_problem(type));
	if (!ret && value >= min && value <= max) {
		*to = value;
		return 0;
	}
	return image_draft_refuse(draft, line, path, "'%s' is out of range; allowed: %s..%s",
				  quoted, text_decimal(low, min, digits),
				  text_decimal(high, max, digits));
}

static int word_set(struct image_draft *draft, unsigned int line, const struct key_row *row,
		    const char *text)
{
	char quoted[TEXT_QUOTE_BYTES], allowed[256];
	size_t used = 0;

	for (uint64_t i = 0; row->words[i]; i++) {
		if (!strcmp(row->words[i], text)) {
			draft->value[row->key] = i;
			return 0;
		}
		used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s",
					 i ? ", " : "", row->words[i]);
	}
	return image_draft_refuse(draft, line, row->path,
				  "'%s' is not one of the words; allowed: %s",
				  text_quote(quoted, sizeof(quoted), text), allowed);
}

bool image_name_is(const char *text, size_t length)
{
	return length && length <= IMAGE_NAME_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") >=
		       length;
}

static int name_set(struct image_draft *draft, unsigned int line, const char *text)
{
	char quoted[TEXT_QUOTE_BYTES];

	if (!image_name_is(text, strlen(text)))
		return image_draft_refuse(draft, line, "name",
					  "'%s' is no name; allowed: 1 to %u letters, digits, '_' "
					  "or '-'",
					  text_quote(quoted, sizeof(quoted), text), IMAGE_NAME_MAX);
	strcpy(draft->name, text);
	return 0;
}

int image_draft_claim(struct image_draft *draft, unsigned int line, const char *path,
		      enum image_key key)
{
	if (draft->line[key])
		return draft->lines
			       ? image_draft_refuse(draft, line, path,
						    "is given twice, first in line %u; leave one "
						    "out",
						    draft->line[key])
			       : image_draft_refuse(draft, line, path,
						    "is given twice; leave one out");
	draft->given[key] = true;
	draft->line[key] = line;
	draft->value[key] = row_of(key)->initial;
	memset(draft->field[key], 0, sizeof(draft->field[key]));
	return 0;
}

int image_draft_set_field(struct image_draft *draft, unsigned int line, const char *path,
			  enum image_key key, uint32_t i, const char *name, const char *text)
{
	struct draft_field *field = &draft->field[key][i];
	char whole[96], quoted[TEXT_QUOTE_BYTES];
	uint32_t f = 0;

	while (f < FIELD_KEYS && strcmp(field_rows[f].name, name) != 0)
		f++;
	snprintf(whole, sizeof(whole), "%s.%s", path, text_quote(quoted, sizeof(quoted), name));
	if (f == FIELD_KEYS)
		return image_draft_refuse(draft, line, whole,
					  "is an unknown key; allowed: at or item, bytes, little, "
					  "bit and bits, shift, mask, subtract, divide, modulo, "
					  "times; of number also wrap and first");
	if (key != IMAGE_KEY_NUMBER && (f == FIELD_KEY_WRAP || f == FIELD_KEY_FIRST))
		return image_draft_refuse(draft, line, whole, "is of number only; leave it out");
	if (field->given & 1u << f)
		return image_draft_refuse(draft, line, whole, "is given twice; leave one out");
	if (number_set(draft, line, whole, field_rows[f].type, field_rows[f].min, field_rows[f].max,
		       text, &field->value[f]))
		return -EINVAL;
	field->given |= 1u << f;
	field->line = line;
	if (draft->value[key] <= i)
		draft->value[key] = i + 1;
	return 0;
}

/* "number.at": the key of a field, of a field that is no list's or its first. */
static int set_in_field(struct image_draft *draft, unsigned int line, const char *path,
			const char *text)
{
	const char *dot = strrchr(path, '.');
	enum image_key key;
	enum image_node node;
	char first[64];

	if (!dot || dot - path >= (long)sizeof(first))
		return image_draft_unknown(draft, line, path);
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	node = image_draft_node(first, true, &key);
	if (node != IMAGE_NODE_FIELD && node != IMAGE_NODE_FIELDS)
		return image_draft_unknown(draft, line, path);
	if (!draft->line[key] && image_draft_claim(draft, line, first, key))
		return -EINVAL;
	return image_draft_set_field(draft, line, first, key, 0, dot + 1, text);
}

int image_draft_set(struct image_draft *draft, unsigned int line, const char *path,
		    const char *text)
{
	const struct key_row *row = rows;
	enum image_key key = IMAGE_KEYS;

	switch (image_draft_node(path, false, &key)) {
	case IMAGE_NODE_VALUE:
		break;
	case IMAGE_NODE_SECTION:
		return image_draft_refuse(draft, line, path,
					  "is a word, but must be a map of its keys");
	default:
		if (image_draft_node(path, true, &key) == IMAGE_NODE_NONE)
			return set_in_field(draft, line, path, text);
		if (key != IMAGE_KEY_MATCH)
			return image_draft_refuse(
				draft, line, path,
				"is one value, but must be a map such as {at: 0, bytes: 4}");
		return image_draft_claim(draft, line, path, key)
			       ? -EINVAL
			       : image_draft_add_rule(draft, line, text);
	}
	if (image_draft_claim(draft, line, path, key))
		return -EINVAL;
	while (row->key != key)
		row++;
	if (row->type == KEY_NAME)
		return name_set(draft, line, text);
	if (row->type == KEY_WORD)
		return word_set(draft, line, row, text);
	if (row->type == KEY_FILL && !strcmp(text, "none")) {
		draft->value[key] = IMAGE_FILL_NONE;
		return 0;
	}
	return number_set(draft, line, path, row->type, row->min, row->max, text,
			  &draft->value[key]);
}

int image_draft_add_rule(struct image_draft *draft, unsigned int line, const char *text)
{
	char why[128], quoted[TEXT_QUOTE_BYTES];
	struct match_rule *rule;

	if (draft->match.count == GDRCAP_MATCH_MAX)
		return image_draft_refuse(draft, line, "match", "more than %u are given",
					  GDRCAP_MATCH_MAX);
	rule = &draft->match.rule[draft->match.count];
	text_quote(quoted, sizeof(quoted), text);
	if (strlen(text) >= sizeof(rule->text))
		return image_draft_refuse(draft, line, "match", "'%s' is too long", quoted);
	if (frame_match_parse(&rule->rule, text, why, sizeof(why)))
		return image_draft_refuse(draft, line, "match", "'%s' %s", quoted, why);
	strcpy(rule->text, text);
	draft->match.count++;
	return 0;
}

void image_draft_init(struct image_draft *draft, const char *where, const char *prefix, bool lines,
		      struct gdrcap_error *error)
{
	memset(draft, 0, sizeof(*draft));
	draft->where = where;
	draft->prefix = prefix;
	draft->lines = lines;
	draft->error = error;
	draft->begins = 1;
	for (size_t i = 0; i < ROWS; i++)
		draft->value[rows[i].key] = rows[i].initial;
}

void image_draft_again(struct image_draft *draft)
{
	memset(draft->line, 0, sizeof(draft->line));
}
