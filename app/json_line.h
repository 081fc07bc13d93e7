/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRCAP_APP_JSON_LINE_H
#define GDRCAP_APP_JSON_LINE_H

#include <stdio.h>

#include <jansson.h>

/* Prints the object, which it takes over, as one line; NULL: there was no memory for it. `flags`:
 * jansson's, besides JSON_COMPACT. 0 or a negative errno. */
int json_line_print(FILE *to, json_t *object, size_t flags);

#endif
