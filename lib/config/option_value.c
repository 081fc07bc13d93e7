/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: text to their place in struct settings, and the words for what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/option_table.h"
#include "config/settings.h"

static const char *number_write(const struct option_row *row, uint64_t number, char to[32])
{
	static const char suffix[] = { 'T', 'G', 'M', 'K' };
	unsigned int i;

	if (number == UINT64_MAX) {
		snprintf(to, 32, "2^64-1");
		return to;
	}
	if (number == UINT32_MAX) {
		snprintf(to, 32, "2^32-1");
		return to;
	}
	switch (row->type) {
	case OPTION_HEX:
		snprintf(to, 32, "0x%" PRIx64, number);
		return to;
	case OPTION_SIZE:
		for (i = 0; i < 4; i++) {
			unsigned int shift = 40 - 10 * i;

			if (number >> shift && !(number & ((UINT64_C(1) << shift) - 1))) {
				snprintf(to, 32, "%" PRIu64 "%c", number >> shift, suffix[i]);
				return to;
			}
		}
		break;
	case OPTION_DURATION:
		return text_decimal(to, number, 3);
	default:
		break;
	}
	snprintf(to, 32, "%" PRIu64, number);
	return to;
}

const char *option_allowed(const struct option_row *row, char to[OPTION_ALLOWED_BYTES])
{
	char low[32], high[32];
	size_t used = 0;

	switch (row->type) {
	case OPTION_TEXT:
	case OPTION_LIST:
	case OPTION_IMAGES:
		snprintf(to, OPTION_ALLOWED_BYTES, "%s", row->allowed);
		break;
	case OPTION_ENUM:
		for (int i = 0; row->named.words[i] && used < OPTION_ALLOWED_BYTES; i++)
			used += (size_t)snprintf(to + used, OPTION_ALLOWED_BYTES - used, "%s%s",
						 i ? ", " : "", row->named.words[i]);
		break;
	case OPTION_BOOL:
		snprintf(to, OPTION_ALLOWED_BYTES, "true or false");
		break;
	default:
		snprintf(to, OPTION_ALLOWED_BYTES, "%s%s..%s%s", row->zero ? "0 or " : "",
			 number_write(row, row->min, low), number_write(row, row->max, high),
			 row->type == OPTION_DURATION ? " s" : "");
	}
	return to;
}

static int value_refuse(const struct option_row *row, const char *name, const char *value,
			const char *problem, struct gdrcap_error *error)
{
	char quoted[TEXT_QUOTE_BYTES], allowed[OPTION_ALLOWED_BYTES];

	return error_set(error, -EINVAL, "%s: '%s' %s; allowed: %s", name,
			 text_quote(quoted, sizeof(quoted), value), problem,
			 option_allowed(row, allowed));
}

static int number_parse(const struct option_row *row, const char *value, uint64_t *number)
{
	uint32_t flag;
	int ret;

	switch (row->type) {
	case OPTION_HEX:
		if (value[0] != '0' || (value[1] != 'x' && value[1] != 'X'))
			return -EINVAL;
		return parse_u64(value, number);
	case OPTION_SIZE:
		return parse_size(value, number);
	case OPTION_COUNT:
		return parse_count(value, number);
	case OPTION_DURATION:
		return parse_duration(value, number);
	case OPTION_BOOL:
		ret = parse_bool(value, &flag);
		if (!ret)
			*number = flag;
		return ret;
	case OPTION_ENUM:
		for (*number = 0; row->named.words[*number]; ++*number)
			if (!strcmp(row->named.words[*number], value))
				return 0;
		return -EINVAL;
	default:
		return parse_u64(value, number);
	}
}

static const char *number_problem(const struct option_row *row)
{
	switch (row->type) {
	case OPTION_HEX:
		return "is not a number that begins with 0x";
	case OPTION_SIZE:
		return "is not a size such as 4096, 64K or 2G";
	case OPTION_COUNT:
		return "is not a whole count such as 1000000, 10M or 1e6";
	case OPTION_DURATION:
		return "is not a time in seconds such as 10 or 0.25";
	case OPTION_BOOL:
	case OPTION_ENUM:
		return "is not one of the words";
	default:
		return "is not a whole number";
	}
}

static int number_in_range(const struct option_row *row, uint64_t number)
{
	return row->type == OPTION_ENUM || (number >= row->min && number <= row->max);
}

static int number_set(const struct option_row *row, const char *name, char *at, const char *value,
		      struct gdrcap_error *error)
{
	uint64_t number = 0;
	int ret;

	ret = number_parse(row, value, &number);
	if (ret == -EINVAL)
		return value_refuse(row, name, value, number_problem(row), error);
	if (ret || (!number_in_range(row, number) && !(row->zero && number == 0)))
		return value_refuse(row, name, value, "is out of range", error);
	/* The low bytes: little-endian, as every machine with such cards. */
	memcpy(at, &number, row->width);
	return 0;
}

static int text_set(const struct option_row *row, const char *name, char *at, const char *value,
		    struct gdrcap_error *error)
{
	const char *problem = !*value			? "is empty"
			      : text_has_control(value) ? "holds a control character"
							: row->parse(value, at);

	return problem ? value_refuse(row, name, value, problem, error) : 0;
}

static void list_end(const struct option_row *row, struct settings *settings, uint32_t count)
{
	memset((char *)settings + row->offset + (size_t)count * row->width, 0,
	       (size_t)(row->most - count) * row->width);
	memcpy((char *)settings + row->count_offset, &count, sizeof(count));
}

int option_set(const struct option_row *row, const char *name, struct settings *settings,
	       const char *value, uint32_t at, struct gdrcap_error *error)
{
	const uint32_t longest = row->length ? row->length : OPTION_TEXT_MAX;
	char *field = (char *)settings + row->offset, problem[64];
	int ret;

	if (strlen(value) > longest) {
		snprintf(problem, sizeof(problem), "is longer than %u characters", longest);
		return value_refuse(row, name, value, problem, error);
	}
	if (row->type == OPTION_TEXT)
		return text_set(row, name, field, value, error);
	if (row->type != OPTION_LIST)
		return number_set(row, name, field, value, error);
	if (at >= row->most)
		return error_set(error, -EINVAL, "%s: more than %u are given; allowed: up to %u",
				 name, row->most, row->most);
	ret = text_set(row, name, field + (size_t)at * row->width, value, error);
	if (ret)
		return ret;
	list_end(row, settings, at + 1);
	return 0;
}

void option_put(const struct option_row *row, struct settings *settings, const void *entry,
		uint32_t at)
{
	memcpy((char *)settings + row->offset + (size_t)at * row->width, entry, row->width);
	list_end(row, settings, at + 1);
}

void option_set_default(const struct option_row *row, struct settings *settings)
{
	if (row->named.is_list)
		list_end(row, settings, 0);
	else
		memset((char *)settings + row->offset, 0, row->width);
	if (row->initial)
		option_set(row, row->named.key, settings, row->initial, 0, NULL);
}
