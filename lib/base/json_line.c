/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of JSON objects, and an object on one line of a stream. */
#include "base/json_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *json_count(uint64_t count)
{
	char digits[24];

	if (count <= INT64_MAX)
		return json_integer((json_int_t)count);
	snprintf(digits, sizeof(digits), "%" PRIu64, count);
	return json_string(digits);
}

json_t *json_count_if(bool known, uint64_t count)
{
	return known ? json_count(count) : json_null();
}

json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_number_if(bool known, double value)
{
	return known ? json_number(value) : json_null();
}

json_t *json_text(const char *text)
{
	json_t *string;
	char *copy;

	if (!text)
		return json_null();
	string = json_string(text);
	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	string = json_string(copy);
	free(copy);
	return string;
}

json_t *json_time(uint64_t ns)
{
	const time_t seconds = (time_t)(ns / 1000000000u);
	char text[48] = "";
	struct tm day;
	size_t used;

	if (!gmtime_r(&seconds, &day))
		return json_null();
	used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &day);
	snprintf(text + used, sizeof(text) - used, ".%09uZ", (unsigned int)(ns % 1000000000u));
	return json_string(text);
}

json_t *json_text_if(const char *text)
{
	return text[0] ? json_text(text) : json_null();
}

void json_add(json_t **array, json_t *item)
{
	if (*array && item && json_array_append_new(*array, item) == 0)
		return;
	if (!*array)
		json_decref(item);
	json_decref(*array);
	*array = NULL;
}

json_t *json_at(const json_t *object, const char *path)
{
	const json_t *at = object;
	const char *dot;

	for (; at && (dot = strchr(path, '.')); path = dot + 1) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		at = json_object_get(at, name);
	}
	return at ? json_object_get(at, path) : NULL;
}

bool json_get_count(const json_t *object, const char *path, uint64_t *count)
{
	const json_t *value = json_at(object, path);

	*count = json_is_integer(value)	 ? (uint64_t)json_integer_value(value)
		 : json_is_string(value) ? strtoull(json_string_value(value), NULL, 10)
					 : 0;
	return json_is_integer(value) || json_is_string(value);
}

uint64_t json_count_at(const json_t *object, const char *path)
{
	uint64_t count;

	(void)json_get_count(object, path, &count);
	return count;
}

double json_number_at(const json_t *object, const char *path)
{
	return json_number_value(json_at(object, path));
}

const char *json_text_at(const json_t *object, const char *path)
{
	const char *text = json_string_value(json_at(object, path));

	return text ? text : "";
}

int json_put(json_t *object, const struct json_row *rows, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		rc |= json_object_set_new(object, rows[i].key, rows[i].value);
	return rc;
}

char *json_line_text(json_t *object, size_t flags, size_t *bytes)
{
	/* Escapes, so that a terminal obeys no C1 control character of a file's name. */
	const size_t all = JSON_COMPACT | JSON_ENSURE_ASCII | flags;
	char *text = NULL;
	size_t length;

	length = object ? json_dumpb(object, NULL, 0, all) : 0;
	if (length)
		text = malloc(length + 2);
	if (text) {
		json_dumpb(object, text, length, all);
		text[length] = '\n';
		text[length + 1] = '\0';
		*bytes = length + 1;
	}
	json_decref(object);
	return text;
}

int json_line_print(FILE *to, json_t *object, size_t flags)
{
	size_t bytes = 0, written;
	char *text = json_line_text(object, flags, &bytes);

	if (!text)
		return -ENOMEM;
	errno = 0;
	written = fwrite(text, 1, bytes, to);
	free(text);
	if (written != bytes || fflush(to) == EOF)
		return errno ? -errno : -EIO;
	return 0;
}
