/* SPDX-License-Identifier: BSD-3-Clause */
/* Text from outside (names of files and devices, words of drivers) on its way to a terminal. */
#ifndef GDRCAP_TEXT_H
#define GDRCAP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a terminal obeys instead of showing it: 0x00 to 0x1f, 0x7f, and U+0080 to U+009F (U+009B is
 * ESC [), be it in UTF-8 or as a byte that is part of none, as terminals of 8 bits take it.
 */
bool text_has_control(const char *text);
/* Puts `with` in the place of each byte of them. */
void text_clean(char *text, char with);

#define TEXT_COUNT_BYTES 32
/* "10,000,000"; `to` has TEXT_COUNT_BYTES. Returns it. */
const char *text_count(char *to, uint64_t count);

/* count / 10^digits, as YAML and JSON write numbers, whatever the locale: "0.5". Returns `to`, of TEXT_COUNT_BYTES. */
const char *text_decimal(char *to, uint64_t count, unsigned int digits);

#define TEXT_QUOTE_BYTES 64
/* Untrusted text, fit for an error text: printable, and cut when long. Returns `to`. */
const char *text_quote(char *to, size_t bytes, const char *text);

#endif
