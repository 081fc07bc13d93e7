/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run has to say of its images: inside of report*.c. */
#ifndef GDRCAP_APP_REPORT_IMAGES_H
#define GDRCAP_APP_REPORT_IMAGES_H

#include "report.h"

/* In place of what is said of frames that were checked. */
void report_print_images(FILE *to, const struct report *report);
void report_print_incomplete(FILE *to, const struct report *report);
/* An array, an entry a description; null where there are none. `compact`: without streams
 * and incomplete ones. NULL: no memory. */
json_t *report_images_to_json(const struct report *report, int compact);
/* All descriptions together. */
void report_images_total(const struct report *report, struct gdrcap_image_counts *total);

/* What all of its text is: report_text.c. */
void report_print_row(FILE *to, const char *name, uint64_t count, const char *unit);

#endif
