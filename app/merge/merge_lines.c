/* SPDX-License-Identifier: BSD-3-Clause */
/* The object of a summary's text: the only one, or of JSON lines the last, where all of them are of one run. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "merge/merge.h"

/* FNV-1a. */
static uint64_t hash_of(const char *text, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return hash;
}

/* `line`: of the text's first. */
static int not_json(struct merge_input *input, const json_error_t *error, const char *text,
		    size_t bytes, unsigned line)
{
	/* A word that is cut off is none, and all was read. */
	if (text[strspn(text, " \t\r\n")] == '{' &&
	    (json_error_code(error) == json_error_premature_end_of_input ||
	     error->position >= (int)bytes))
		return merge_refuse(input, MERGE_UNKNOWN,
				    "is cut off: its run, or the copy, did not get to its end");
	if (json_error_code(error) == json_error_out_of_memory)
		return -ENOMEM;
	return merge_refuse(input, MERGE_REFUSED, "is no JSON: line %u: %s",
			    line + (error->line > 0 ? (unsigned)error->line - 1 : 0), error->text);
}

/* The lines of one run name the same one, whatever it ended by. Takes the line's over into `last`. */
static int check_run(struct merge_input *input, const json_t *object, struct merge_input *last,
		     unsigned line)
{
	struct merge_input next = { .file = input->file };

	if (merge_run(&next, object) < 0)
		return merge_refuse(input, MERGE_REFUSED, "line %u: %s", line, next.why);
	if (last->has_run && next.has_run && !merge_same_run(last, &next))
		return merge_refuse(
			input, MERGE_REFUSED,
			"has more than one run: line %u is of another than the lines before it, "
			"which did not end (killed?); give each a file of its own",
			line);
	if (next.has_run)
		*last = next;
	return 0;
}

/* Of JSON lines all but the last are of a run that goes on: else these are several runs. */
static int check_line(struct merge_input *input, const char *text, size_t bytes,
		      struct merge_input *last, unsigned line)
{
	json_error_t error;
	json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	const char *result = json_string_value(json_object_get(object, "result"));
	int rc = 0;

	if (!object)
		rc = merge_refuse(input, MERGE_REFUSED, "is no JSON: line %u: %s", line,
				  error.text);
	else if (!result || strcmp(result, "running") != 0)
		rc = merge_refuse(
			input, MERGE_REFUSED,
			"has more than one summary: line %u ends a run, and more follows; "
			"give each a file of its own",
			line);
	else
		rc = check_run(input, object, last, line);
	json_decref(object);
	return rc;
}

static int read_lines(struct merge_input *input, const char *text, size_t bytes)
{
	struct merge_input last = { .has_run = input->has_run, .run = input->run };
	unsigned line = 1;
	json_error_t error;
	json_t *object;
	int rc;

	for (const char *end; (end = memchr(text, '\n', bytes)); line++) {
		const size_t length = (size_t)(end - text);

		rc = length ? check_line(input, text, length, &last, line) : 0;
		if (rc)
			return rc;
		text = end + 1;
		bytes -= length + 1;
	}
	input->text_hash = hash_of(text, bytes);
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	rc = object ? check_run(input, object, &last, line)
		    : not_json(input, &error, text, bytes, line);
	if (!rc)
		rc = merge_object(input, object);
	json_decref(object);
	return rc;
}

int merge_first_line(struct merge_input *input, const char *text, size_t bytes)
{
	struct merge_input last = { 0 };
	const int rc = check_line(input, text, bytes, &last, 1);

	input->has_run = last.has_run;
	input->run = last.run;
	return rc;
}

int merge_text(struct merge_input *input, const char *text, size_t bytes)
{
	json_error_t error;
	json_t *object;
	int rc;

	while (bytes && isspace((unsigned char)text[bytes - 1]))
		bytes--;
	if (bytes == 0) {
		merge_refuse(input, MERGE_UNKNOWN, "is empty: its machine gave nothing");
		return 0;
	}
	input->text_hash = hash_of(text, bytes);
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (object)
		rc = merge_object(input, object);
	else if (json_error_code(&error) == json_error_end_of_input_expected)
		rc = read_lines(input, text, bytes);
	else
		rc = not_json(input, &error, text, bytes, 1);
	json_decref(object);
	if (rc)
		merge_input_free(input);
	return rc == -ENOMEM ? rc : 0;
}
