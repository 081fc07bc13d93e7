/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes text of any origin fit for a terminal and a log. */
#include "base/text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static bool continues(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 character at `at`; 0: there is none. A short form written long is none. */
static size_t utf8_bytes(const unsigned char *at)
{
	const unsigned char first = at[0], second = first ? at[1] : 0;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4 || !continues(second))
		return 0;
	if (first < 0xe0)
		return 2;
	if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
	    (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ||
	    !continues(at[2]))
		return 0;
	if (first < 0xf0)
		return 3;
	return continues(at[3]) ? 4 : 0;
}

/* Bytes of the character at `at`, and whether it is a control character. */
static size_t character(const char *text, bool *control)
{
	const unsigned char *at = (const unsigned char *)text;
	const size_t bytes = utf8_bytes(at);

	if (bytes == 1)
		*control = at[0] < 0x20 || at[0] == 0x7f;
	else if (bytes == 2)
		*control = at[0] == 0xc2 && at[1] < 0xa0;
	else
		*control = bytes == 0 && at[0] < 0xa0;
	return bytes ? bytes : 1;
}

bool text_has_control(const char *text)
{
	bool control = false;

	while (*text && !control)
		text += character(text, &control);
	return control;
}

void text_clean(char *text, char with)
{
	while (*text) {
		bool control;
		size_t bytes = character(text, &control);

		for (; bytes; bytes--, text++)
			if (control)
				*text = with;
	}
}

const char *text_quote(char *to, size_t bytes, const char *text)
{
	size_t n;

	for (n = 0; n + 1 < bytes && text[n]; n++)
		to[n] = text[n] < 0x20 || text[n] > 0x7e ? '?' : text[n];
	to[n] = '\0';
	if (text[n] && bytes > 4)
		memcpy(to + n - 3, "...", 3);
	return to;
}

const char *text_count(char *to, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *end = to;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*end++ = ',';
		*end++ = digits[i];
	}
	*end = '\0';
	return to;
}

const char *text_decimal(char *to, uint64_t count, unsigned int digits)
{
	uint64_t unit = 1;
	char *end;

	for (unsigned int i = 0; i < digits; i++)
		unit *= 10;
	end = to + snprintf(to, TEXT_COUNT_BYTES, "%" PRIu64 ".%0*" PRIu64, count / unit,
			    (int)digits, count % unit);
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		*--end = '\0';
	return to;
}
