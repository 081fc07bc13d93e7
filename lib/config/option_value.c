/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: text to field, field against its row, and the words for what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/option_table.h"
#include "pattern/pattern.h"

const char *option_quote(char *to, size_t bytes, const char *text)
{
	size_t n;

	for (n = 0; n + 1 < bytes && text[n]; n++)
		to[n] = text[n] < 0x20 || text[n] > 0x7e ? '?' : text[n];
	to[n] = '\0';
	if (text[n] && bytes > 4)
		memcpy(to + n - 3, "...", 3);
	return to;
}

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
		snprintf(to, 32, "%.10g", (double)number / 1000);
		return to;
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
	const char *name;
	int i;

	switch (row->type) {
	case OPTION_TEXT:
	case OPTION_LIST:
		snprintf(to, OPTION_ALLOWED_BYTES, "%s", row->allowed);
		break;
	case OPTION_PATTERN:
	case OPTION_ENUM:
		to[0] = '\0';
		for (i = 0; used < OPTION_ALLOWED_BYTES; i++) {
			name = row->type == OPTION_ENUM ? row->names[i]
							: pattern_name((enum pattern_kind)i);
			if (!name)
				break;
			used += (size_t)snprintf(to + used, OPTION_ALLOWED_BYTES - used, "%s%s",
						 i ? ", " : "", name);
		}
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
	char quoted[OPTION_QUOTE_BYTES], allowed[OPTION_ALLOWED_BYTES];

	return error_set(error, -EINVAL, "%s: '%s' %s; allowed: %s", name,
			 option_quote(quoted, sizeof(quoted), value), problem,
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
		for (*number = 0; row->names[*number]; ++*number)
			if (!strcmp(row->names[*number], value))
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
	size_t names = 0;

	if (row->type == OPTION_ENUM) {
		while (row->names[names])
			names++;
		return number < names;
	}
	return number >= row->min && number <= row->max;
}

static uint64_t field_number(const struct option_row *row, const struct gdrcap_config *config)
{
	const char *at = (const char *)config + row->offset;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (row->width) {
	case sizeof(u64):
		memcpy(&u64, at, sizeof(u64));
		return u64;
	case sizeof(u32):
		memcpy(&u32, at, sizeof(u32));
		return u32;
	default:
		memcpy(&u16, at, sizeof(u16));
		return u16;
	}
}

static int number_set(const struct option_row *row, const char *name, struct gdrcap_config *config,
		      const char *value, struct gdrcap_error *error)
{
	char *at = (char *)config + row->offset;
	uint64_t number = 0;
	uint32_t u32;
	uint16_t u16;
	int ret;

	ret = number_parse(row, value, &number);
	if (ret == -EINVAL)
		return value_refuse(row, name, value, number_problem(row), error);
	if (ret || (!number_in_range(row, number) && !(row->zero && number == 0)))
		return value_refuse(row, name, value, "is out of range", error);
	u32 = (uint32_t)number;
	u16 = (uint16_t)number;
	if (row->width == sizeof(number))
		memcpy(at, &number, sizeof(number));
	else if (row->width == sizeof(u32))
		memcpy(at, &u32, sizeof(u32));
	else
		memcpy(at, &u16, sizeof(u16));
	return 0;
}

static const char *text_problem(const struct option_row *row, const char *text)
{
	if (!*text)
		return row->empty ? NULL : "is empty";
	if (text_has_control(text))
		return "holds a control character";
	return row->check ? row->check(text) : NULL;
}

static int text_set(const struct option_row *row, const char *name, struct gdrcap_config *config,
		    const char *value, int append, struct gdrcap_error *error)
{
	char *at = (char *)config + row->offset;
	unsigned int entry = 0;
	const char *problem;
	char too_long[64];

	if (strlen(value) >= row->width) {
		snprintf(too_long, sizeof(too_long), "is longer than %u characters",
			 row->width - 1);
		return value_refuse(row, name, value, too_long, error);
	}
	problem = text_problem(row, value);
	if (problem)
		return value_refuse(row, name, value, problem, error);
	if (row->type == OPTION_LIST) {
		if (append)
			while (entry < GDRCAP_PORTS_MAX && at[entry * row->width])
				entry++;
		else
			memset(at, 0, (size_t)GDRCAP_PORTS_MAX * row->width);
		if (entry == GDRCAP_PORTS_MAX)
			return error_set(error, -EINVAL,
					 "%s: more than %d are given; allowed: up to %d", name,
					 GDRCAP_PORTS_MAX, GDRCAP_PORTS_MAX);
		at += (size_t)entry * row->width;
	}
	memset(at, 0, row->width);
	memcpy(at, value, strlen(value));
	return 0;
}

int option_set(const struct option_row *row, const char *name, struct gdrcap_config *config,
	       const char *value, int append, struct gdrcap_error *error)
{
	if (row->type == OPTION_TEXT || row->type == OPTION_PATTERN || row->type == OPTION_LIST)
		return text_set(row, name, config, value, append, error);
	return number_set(row, name, config, value, error);
}

void option_set_default(const struct option_row *row, struct gdrcap_config *config)
{
	static const char zeros[8];
	const char *at = (const char *)config + row->offset;
	size_t compared = row->width < sizeof(zeros) ? row->width : sizeof(zeros);

	/* A text that is not empty begins with a byte that is not zero. */
	if (row->type == OPTION_TEXT || row->type == OPTION_PATTERN || row->type == OPTION_LIST)
		compared = 1;
	if (row->initial && !memcmp(at, zeros, compared))
		option_set(row, row->named.key, config, row->initial, 0, NULL);
}

int option_check(const struct option_row *row, const struct gdrcap_config *config,
		 struct gdrcap_error *error)
{
	unsigned int entries = row->type == OPTION_LIST ? GDRCAP_PORTS_MAX : 1, i;
	const char *at = (const char *)config + row->offset;
	char number[32];
	uint64_t value;

	if (row->type != OPTION_TEXT && row->type != OPTION_PATTERN && row->type != OPTION_LIST) {
		value = field_number(row, config);
		if (!value || number_in_range(row, value))
			return 0;
		snprintf(number, sizeof(number), "%" PRIu64, value);
		return value_refuse(row, row->named.key,
				    row->type == OPTION_ENUM || row->type == OPTION_BOOL
					    ? number
					    : number_write(row, value, number),
				    "is out of range", error);
	}
	for (i = 0; i < entries; i++, at += row->width) {
		const char *problem;

		if (!memchr(at, '\0', row->width))
			return error_set(error, -EINVAL, "%s: is not ended by a zero byte",
					 row->named.key);
		if (!*at) /* stands for the default; ends a list */
			return 0;
		problem = text_problem(row, at);
		if (problem)
			return value_refuse(row, row->named.key, at, problem, error);
	}
	return 0;
}
