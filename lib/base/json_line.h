/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of JSON objects, written and read, and an object on one line of a stream. Without memory they are NULL. */
#ifndef GDRCAP_JSON_LINE_H
#define GDRCAP_JSON_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* The object, which it takes over, as one line, ended by a NUL that *bytes leaves out, which is the caller's to free; NULL: there was no memory for
 * it. `flags`: as below. */
char *json_line_text(json_t *object, size_t flags, size_t *bytes);
/* Prints the object, which it takes over, as one line; NULL: there was no memory for it. `flags`:
 * jansson's, besides JSON_COMPACT. 0 or a negative errno. */
int json_line_print(FILE *to, json_t *object, size_t flags);

/* Integers are signed in jansson, and where many programs read them. A larger one is text: exact, so
 * that the sums hold, and no number that is wrong. */
json_t *json_count(uint64_t count);
json_t *json_count_if(bool known, uint64_t count);
json_t *json_number(double value);
json_t *json_number_if(bool known, double value);
/* Device names and file names may hold any bytes; JSON is UTF-8. NULL: null. */
json_t *json_text(const char *text);
/* UTC, RFC 3339, to the nanosecond: of ns since 1970. */
json_t *json_time(uint64_t ns);
json_t *json_text_if(const char *text); /* "": null */

/* Takes `item` over; a NULL item or a failure empties *array to NULL, so errors need one check. */
void json_add(json_t **array, json_t *item);

/* What is at a path of keys with dots between them; NULL: nothing is. */
json_t *json_at(const json_t *object, const char *path);
/* True where a count is there, and known. */
bool json_get_count(const json_t *object, const char *path, uint64_t *count);
/* The same; 0 where it is not known. */
uint64_t json_count_at(const json_t *object, const char *path);
double json_number_at(const json_t *object, const char *path);
/* "" where it is not known. */
const char *json_text_at(const json_t *object, const char *path);

struct json_row {
	const char *key;
	json_t *value;
};
/* Takes the values over. 0; else memory was short. */
int json_put(json_t *object, const struct json_row *rows, size_t count);

#endif
