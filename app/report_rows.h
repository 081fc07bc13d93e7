/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the table for people, each of a key of the JSON object: inside of report_*.c. */
#ifndef GDRCAP_APP_REPORT_ROWS_H
#define GDRCAP_APP_REPORT_ROWS_H

#include <stdio.h>

#include "report.h"

#define REPORT_RED "\033[31m"
#define REPORT_GREEN "\033[32m"
#define REPORT_PLAIN "\033[0m"

/* What a row does where its key is null, or 0. */
enum row_when {
	ROW_ALWAYS,   /* null: "not known" */
	ROW_KNOWN,    /* null: no row */
	ROW_NOT_ZERO, /* null or 0: no row */
};
struct report_row {
	const char *label, *path, *meaning;
	enum row_when when;
};
/* Counts. */
void report_print_rows(FILE *to, const json_t *object, const struct report_row *rows, size_t count);
/* With that many decimals. */
void report_print_number(FILE *to, const char *label, double value, int decimals,
			 const char *meaning);
/* So many columns of 15 characters, a count or a word each. */
void report_print_cells(FILE *to, const json_t *object, const char *const *paths, size_t count);

/* In place of what is said of frames that were checked: report_images.c. */
void report_print_images(FILE *to, const struct report *report);
void report_print_incomplete(FILE *to, const struct report *report);

#endif
