/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of app/merge share: summaries that are written as text, and given to one merge. */
#ifndef GDRCAP_TEST_MERGE_PLAY_H
#define GDRCAP_TEST_MERGE_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"

#define FILES_MAX 16
#define TEXT_MAX 65536

static struct merge merge; /* too large for a stack frame */
static struct merge_input inputs[FILES_MAX];

/* A summary that is being written. */
struct text {
	char at[TEXT_MAX];
	size_t bytes;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text->bytes += (size_t)vsnprintf(text->at + text->bytes, sizeof(text->at) - text->bytes,
					 format, arguments);
	va_end(arguments);
	assert_true(text->bytes < sizeof(text->at));
}

static int setup(void **state)
{
	memset(&merge, 0, sizeof(merge));
	memset(inputs, 0, sizeof(inputs));
	merge.inputs = inputs;
	return 0;
}

static int teardown(void **state)
{
	for (uint32_t i = 0; i < merge.input_count; i++)
		merge_input_free(&inputs[i]);
	merge_free(&merge);
	return 0;
}

static struct merge_input *give(const char *text, size_t bytes)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h",
					     "i", "j", "k", "l", "m", "n", "o", "p" };
	struct merge_input *input = &inputs[merge.input_count];

	assert_true(merge.input_count < FILES_MAX);
	input->file = names[merge.input_count++];
	assert_int_equal(merge_text(input, text, bytes), 0);
	return input;
}

#endif
